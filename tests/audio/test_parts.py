"""What a file holds is all there, or an error says where it ends; every reader finds the same. ffmpeg's answers."""

from __future__ import annotations

import struct
import time
from contextlib import suppress

import numpy as np
import pytest

from speechlab.audio import (
    AudioClip,
    FileSegment,
    SoundReader,
    build_stream_encoder,
    cut_at_silences,
    decode,
    detect_format,
    measure_length_s,
)
from speechlab.errors import AudioDecodeError, AudioError

RATE = 24_000


def tone(rate=RATE, seconds=1.0):
    return AudioClip((0.4 * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)), rate)


W, OGG, M, F = (tone().encode(name) for name in ("wav", "ogg", "mp3", "flac"))
V, V2 = tone(22_050).encode("ogg"), tone(44_100).encode("ogg")
with build_stream_encoder("mp3", RATE) as _encoder:
    RAW = _encoder.write(tone().samples) + _encoder.close()  # 44 frames without a Xing header
ID3 = b"ID3\3\0\0\0\0\0\n" + bytes(10)
FOOTED = b"ID3\4\0\x10\0\0\0\n" + bytes(10) + b"3DI\4\0\x10\0\0\0\n"
ID3V1 = b"TAG" + b"x" * 125
LYRICS = b"LYRICSBEGIN" + b"IND00002" + b"11" + b"000021" + b"LYRICS200"


def ape(flags):
    return b"APETAGEX" + struct.pack("<4I8x", 2000, 44, 1, flags)


APE = ape(0xA000_0000) + b"\3\0\0\0\0\0\0\0key\0" + ape(0x8000_0000)
APE1 = b"\3\0\0\0\0\0\0\0key\0" + ape(0)


def sized(data, riff=None):
    """The WAV with these sizes."""
    total = (data + 36) & 0xFFFF_FFFF if riff is None else riff
    return W[:4] + struct.pack("<I", total) + W[8:40] + struct.pack("<I", data) + W[44:]


OPEN = sized(0xFFFF_FFFF, 0xFFFF_FFFF)
LIST = b"LIST" + struct.pack("<I", 5) + b"abcde\0"
DATA = b"data" + struct.pack("<I", 48_000) + W[44:]
TOTAL = bytes([F[21] & 0xF0, 0, 0, 0, 0])

WHOLE = {
    "wav, wav": (W + W, 2.0),
    "wav, tags, wav": (W[:4] + struct.pack("<I", 48_050) + W[8:] + LIST + W, 2.0),
    "wav with tags of an odd length that is not filled up": (W + LIST[:-1] + W, 2.0),
    "open wav, wav": (OPEN + W, 2.0),
    "three open wavs": (OPEN * 3, 3.0),
    "wav with two data chunks": (W + DATA, 2.0),
    "wav, zeros": (W + bytes(5_000), 1.0),
    "wav, old tag": (W + ID3V1, 1.0),
    "tag, wav": (ID3 + W, 1.0),
    "tag, open wav": (ID3 + OPEN, 1.0),
    "data 0, riff 0": (sized(0, 0), 1.0),
    "data 0, riff 36": (sized(0, 36), 1.0),
    "data 0, riff right": (sized(0, len(W) - 8), 1.0),
    "data 0, then another": (sized(0, 0) + W, 2.0),
    "riff 0": (sized(48_000, 0), 1.0),
    "riff open, data guessed too large": (sized(100_000, 0xFFFF_FFFF), 1.0),
    "riff open, data guessed too small": (sized(1_000, 0xFFFF_FFFF), 1.0),
    **{
        f"data {size:#x}": (sized(size), 1.0) for size in (0x7FFF_FFFF, 0xFFFF_FFFF, 0x8000_0000, 0x7FFF_F000)
    },
    **{f"data {size:,}": (sized(size), 1.0) for size in (1_000_000_000, 2_000_000_000, 3_999_999_964)},
    "ogg, ogg": (OGG + OGG, 2.0),
    "vorbis, vorbis, vorbis": (V * 3, 3.0),
    "tag, ogg, old tag": (ID3 + OGG + ID3V1, 1.0),
    "flac, flac": (F + F, 2.0),
    "tag, flac": (ID3 + F, 1.0),
    "tag, flac, old tag": (ID3 + F + ID3V1, 1.0),
    "flac of unknown length": (F[:21] + TOTAL + F[26:], 1.0),
    "flac of too small a length": (F[:21] + TOTAL[:4] + b"\x7f" + F[26:], 1.0),
    "tag, mp3": (ID3 + M, 1.0),
    "mp3, mp3": (M + M, 2.0),
    "tag, mp3, tag, mp3": (ID3 + M + ID3 + M, 2.0),
    "tag with a footer, mp3": (FOOTED + M, 1.0),
    "two tags, mp3": (FOOTED + ID3 + M, 1.0),
    "mp3, old tag, mp3, old tag": (M + ID3V1 + M + ID3V1, 2.0),
    "ape, mp3, ape, old tag": (APE + M + APE + ID3V1, 1.0),
    "mp3, old ape": (M + APE1, 1.0),
    "mp3, lyrics, old tag": (M + LYRICS + ID3V1, 1.0),
    "mp3, zeros, mp3": (M + bytes(700) + M, 2.0),
    "tag, zeros, mp3": (ID3 + bytes(301) + M, 1.0),
    "mp3, text": (M + b"no frame " * 50, 1.0),
    "mp3 without a header": (RAW, 1.056),
    "mp3 with a tag between its frames": (RAW[: 192 * 10] + ID3 + RAW[192 * 10 :], 1.056),
}


def read(data, path):
    """The length by every reader."""
    path.write_bytes(data)
    whole = FileSegment(path)
    return {
        "from_file": AudioClip.from_file(path).duration_s,
        "decode": decode(data).duration_s,
        "length": measure_length_s(path),
        "length of bytes": measure_length_s(data),
        "segment": whole.duration_s,
        "its samples": len(whole.samples) / whole.sample_rate,
        "reader": SoundReader(path).duration_s,
        "pieces": sum(AudioClip.from_bytes(piece.flac).duration_s for piece in cut_at_silences(path, 60)),
    }


@pytest.mark.parametrize("name", WHOLE)
def test_all_of_a_file_is_read_by_every_reader(name, tmp_path):
    data, seconds = WHOLE[name]
    lengths = read(data, tmp_path / "a")
    assert lengths == pytest.approx(dict.fromkeys(lengths, seconds), abs=1e-4)


def test_joined_files_sound_as_each_of_them():
    for data in (OPEN + W, ID3 + M + ID3 + M, F + F, W + LIST + W, W + DATA):
        one = decode(M if data[:3] == b"ID3" else W)
        assert decode(data) == AudioClip.concatenate([one, one])


BROKEN = {
    "sizes that end too early": (sized(24_000), "ends at byte 24,044"),
    "ogg of two rates": (OGG + V, "at byte 8,187 begins a stream of 22050 Hz"),
    "vorbis of two rates": (V + V2, "at byte 4,745 begins a stream of 44100 Hz"),
    "wavs of two rates": (W + tone(8_000).encode("wav"), "at byte 48,044 begins a stream of 8000 Hz"),
    "mp3 of two rates": (M + tone(16_000).encode("mp3"), f"at byte {len(M):,} begins a stream of 16000 Hz"),
    "mp3, then wav": (M + W, r"begins another file \(WAV\)"),
    "ogg, then flac": (OGG + F, r"begins another file \(FLAC\)"),
    "mp3 with a hole": (M[:1_200] + bytes([1] * 300) + M[1_500:], "damaged at byte"),
    "ogg without a page": (
        OGG[: OGG.find(b"OggS", 1_000)] + OGG[OGG.find(b"OggS", OGG.find(b"OggS", 1_000) + 1) :],
        "lacks",
    ),
    "flac cut within": (F[:-2_000], "cut short: it has"),
    "wav cut": (W[:-1_000], "declares 48000 bytes and has 47000"),
    "a large wav cut": (sized(1_234_567_890), "declares 1234567890 bytes and has 48000"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_whole_is_an_error_for_every_reader(name, tmp_path):
    data, message = BROKEN[name]
    path = tmp_path / "a"
    path.write_bytes(data)
    readers = [
        AudioClip.from_file,
        measure_length_s,
        lambda source: FileSegment(source).duration_s,
        lambda source: list(cut_at_silences(source, 60)),
    ]
    for reader in readers:
        with pytest.raises(AudioDecodeError, match=message):
            reader(path)


def test_a_tag_before_another_format_gives_the_true_reason():
    with pytest.raises(AudioError, match="behind its tag, unsupported audio: this is AAC in ADTS"):
        decode(ID3 + b"\xff\xf1\x50\x80" + bytes(100))
    assert detect_format(ID3) == "mp3"  # nothing else is known


def test_very_short_mp3_has_its_exact_length():
    for rate in (8_000, 24_000, 44_100):
        for frames in (1, 10, 46, 47, 48, 600):
            data = AudioClip(np.full(frames, 0.1), rate).encode("mp3")
            assert decode(data).frames == frames
            assert measure_length_s(data) == frames / rate


def test_a_large_flac_is_one_stream_by_a_few_of_its_frames():
    noise = AudioClip(np.random.default_rng(1).uniform(-0.5, 0.5, 20 * RATE), RATE)
    data = noise.encode("flac")
    assert len(data) > 700_000
    assert measure_length_s(data) == 20.0
    assert measure_length_s(data + data) == 40.0 == decode(data + data).duration_s
    assert measure_length_s(data + F) == 21.0


def test_forged_files_take_little_time():
    for data in (
        W[:12] + b"data\0\0\0\0" * 200_000,
        (W[:40] + bytes(4)) * 40_000,
        M + b"LYRICSBEGINLYRICS200" * 50_000,
        M + bytes(2_000_000) + b"x",
        F[:42] * 40_000,
        OGG[:28] * 40_000,
    ):
        began = time.process_time()
        with suppress(AudioError):
            decode(data)
        assert time.process_time() - began < 3.0
