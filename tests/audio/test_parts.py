"""What a file holds is all there, or an error says where it ends; every reader finds the same. ffmpeg's answers.

Then recordings in pieces, and parts of long ones that are read where they are asked for.
"""

import struct
from contextlib import suppress

import numpy as np
import pytest
import soundfile

from speechlab.audio import (
    AudioClip,
    FileSegment,
    SoundReader,
    build_stream_encoder,
    compute_peaks,
    cut_at_silences,
    decode,
    measure_length_s,
    rms_dbfs,
)
from speechlab.errors import AudioDecodeError, AudioError

RATE = 24_000


def tone(rate=RATE, seconds=1.0):
    return AudioClip((0.4 * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)), rate)


W, OGG, M, F = (tone().encode(name) for name in ("wav", "ogg", "mp3", "flac"))
LONG = AudioClip(np.random.default_rng(1).uniform(-0.5, 0.5, 9 * RATE), RATE).encode(
    "flac"
)  # of several blocks
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
    "wav with two data chunks": (W + DATA, 2.0),
    "wav, zeros": (W + bytes(5_000), 1.0),
    "tag, open wav": (ID3 + OPEN, 1.0),
    "data 0, riff 0": (sized(0, 0), 1.0),
    "data 0, then another": (sized(0, 0) + W, 2.0),
    "riff open, data guessed too large": (sized(100_000, 0xFFFF_FFFF), 1.0),
    "riff open, data guessed too small": (sized(1_000, 0xFFFF_FFFF), 1.0),
    **{f"data {size:,}": (sized(size), 1.0) for size in (0x7FFF_F000, 0xFFFF_FFFF, 1_000_000_000)},
    "ogg, ogg": (OGG + OGG, 2.0),
    "vorbis, vorbis, vorbis": (V * 3, 3.0),
    "tag, ogg, old tag": (ID3 + OGG + ID3V1, 1.0),
    "flac, flac": (F + F, 2.0),
    "tag, flac, old tag": (ID3 + F + ID3V1, 1.0),
    "flac of unknown length": (F[:21] + TOTAL + F[26:], 1.0),
    "flac of too small a length": (F[:21] + TOTAL[:4] + b"\x7f" + F[26:], 1.0),
    "tag, mp3, tag, mp3": (ID3 + M + ID3 + M, 2.0),
    "tag with a footer, mp3": (FOOTED + M, 1.0),
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
    "vorbis of two rates": (V + V2, "at byte 4,745 begins a stream of 44100 Hz"),
    "wavs of two rates": (W + tone(8_000).encode("wav"), "at byte 48,044 begins a stream of 8000 Hz"),
    "mp3 of two rates": (M + tone(16_000).encode("mp3"), f"at byte {len(M):,} begins a stream of 16000 Hz"),
    "mp3, then wav": (M + W, r"begins another file \(WAV\)"),
    "mp3 with a hole": (M[:1_200] + bytes([1] * 300) + M[1_500:], "damaged at byte"),
    "ogg without a page": (
        OGG[: OGG.find(b"OggS", 1_000)] + OGG[OGG.find(b"OggS", OGG.find(b"OggS", 1_000) + 1) :],
        "lacks",
    ),
    "flac cut within": (F[:-2_000], "cut short: it has"),
    "wav cut": (W[:-1_000], "declares 48000 bytes and has 47000"),
    **{
        f"{name} without its last {lost:,} bytes": (data[:-lost], r"\w")
        for name, data in (
            ("wav", W),
            ("flac", F),
            ("long flac", LONG),
            ("ogg", OGG),
            ("vorbis", V),
            ("mp3", M),
        )
        for lost in (3, len(data) // 2)
        if (name, lost) != ("flac", 3)
    },
    "a large wav cut": (sized(1_234_567_890), "declares 1234567890 bytes and has 48000"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_whole_is_an_error_for_every_reader(name, tmp_path):
    data, message = BROKEN[name]
    path = tmp_path / "a"
    path.write_bytes(data)
    readers = [
        AudioClip.from_file,
        lambda source: decode(source.read_bytes()),
        lambda source: list(cut_at_silences(source, 60)),
        lambda source: list(cut_at_silences(source.read_bytes(), 60)),
        measure_length_s,
        lambda source: FileSegment(source).duration_s,
    ]
    if "flac without" in name:  # whose header alone does not tell
        readers = readers[:4]
    for reader in readers:
        with pytest.raises(AudioDecodeError, match=message):
            reader(path)


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


@pytest.mark.timeout(60)  # each takes a moment; otherwise minutes
def test_forged_files_take_little_time():
    for data in (
        W[:12] + b"data\0\0\0\0" * 200_000,
        (W[:40] + bytes(4)) * 40_000,
        M + b"LYRICSBEGINLYRICS200" * 50_000,
        M + bytes(2_000_000) + b"x",
        F[:42] * 40_000,
        OGG[:28] * 40_000,
    ):
        with suppress(AudioError):
            decode(data)


FORMATS = ["wav", "flac", "ogg", "mp3"]


FULL_RATE = 48_000


def sound(seconds=7.5, channels=2):
    """Noise, with silence in the last 0.4 s of each second."""
    frames = int(seconds * FULL_RATE)
    noise = np.random.default_rng(3).uniform(-0.3, 0.3, (frames, channels)).astype(np.float32)
    noise[np.arange(frames) % FULL_RATE > 0.6 * FULL_RATE] = 0
    return AudioClip(noise, FULL_RATE)


@pytest.mark.slow
def test_pieces_make_up_the_recording_and_are_cut_in_silences(tmp_path):
    for form in FORMATS:
        path = sound().save(tmp_path / f"a.{form}")
        pieces = list(cut_at_silences(path, 3.0))
        assert pieces == list(cut_at_silences(path.read_bytes(), 3.0))
        clips = [AudioClip.from_bytes(piece.flac) for piece in pieces]
        assert {(clip.sample_rate, clip.channels) for clip in clips} == {(16_000, 1)}
        assert max(clip.duration_s for clip in clips) <= 3.0
        starts = np.cumsum([0.0, *(clip.duration_s for clip in clips)])
        assert [piece.start_s for piece in pieces] == pytest.approx(starts[:-1].tolist())
        assert starts[-1] == pytest.approx(7.5, abs=0.001) == measure_length_s(path)
        assert all(0.6 <= piece.start_s % 1 <= 1 for piece in pieces[1:])
        whole = AudioClip.from_file(path).to_mono().resample(16_000).samples
        joined = np.concatenate([clip.samples for clip in clips])
        assert np.abs(joined - whole[: len(joined)]).max() < (0.01 if form == "mp3" else 1e-4)


def test_channels_in_opposite_phase_keep_their_sound(tmp_path):
    noise = sound(1.0, 1).samples
    path = AudioClip(np.stack([noise, -noise], axis=1), FULL_RATE).save(tmp_path / "a.wav")
    (piece,) = cut_at_silences(path, 3.0)
    whole = AudioClip(noise, FULL_RATE).resample(16_000).samples
    assert np.abs(AudioClip.from_bytes(piece.flac).samples - whole).max() < 1e-3


def test_a_clip_keeps_a_lower_rate_and_ends_where_it_ends():
    clip = AudioClip(np.full(8_000 * 6, 0.1, np.float32), 8_000)
    pieces = list(cut_at_silences(clip, 3.0))
    assert AudioClip.from_bytes(pieces[0].flac).sample_rate == 8_000
    assert sum(AudioClip.from_bytes(piece.flac).frames for piece in pieces) == clip.frames
    assert len(list(cut_at_silences(clip, 6.0))) == 1
    assert list(cut_at_silences(AudioClip(np.zeros(0, np.float32), 8_000), 3.0)) == []
    assert measure_length_s(clip) == 6.0


def test_what_is_no_recording(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"no sound at all")
    for source in (tmp_path / "a.wav", str(tmp_path / "none.wav"), tmp_path):
        for read in (measure_length_s, lambda given: list(cut_at_silences(given, 3.0))):
            with pytest.raises(AudioDecodeError, match=r"cannot be read|no file|folder"):
                read(source)


LOW_RATE = 8_000


@pytest.fixture(params=["memory", "PCM_16", "FLOAT", "flac"])
def recording(request, monkeypatch, tmp_path):
    """The samples of a recording of 40 s and a reader, of files that count as long too."""
    monkeypatch.setattr("speechlab.audio._reader._MAX_KEPT_SAMPLES", 1_000)
    random = np.random.default_rng(1)
    samples = np.round(random.uniform(-0.9, 0.9, (40 * LOW_RATE, 2)) * 2**15).astype(np.float32) / 2**15
    if request.param == "memory":
        return samples, SoundReader(AudioClip(samples, LOW_RATE))
    if request.param == "flac":
        path = tmp_path / "long.flac"
        soundfile.write(path, samples, LOW_RATE, subtype="PCM_16")
    else:
        path = tmp_path / "long.wav"
        soundfile.write(path, samples, LOW_RATE, subtype=request.param)
    return samples, SoundReader(path)


def test_what_is_read_is_what_stands_there(recording):
    samples, sound = recording
    assert (sound.frames, sound.channels, sound.sample_rate, sound.duration_s) == (
        40 * LOW_RATE,
        2,
        LOW_RATE,
        40.0,
    )
    for start, end in [(0.0, 1.0), (12.5, 13.25), (39.5, 99.0), (5.0, 5.0)]:
        part = samples[round(start * LOW_RATE) : round(end * LOW_RATE)]
        assert np.array_equal(sound.read(start, end).samples, part)


def test_outlines_hold_every_extreme(recording):
    samples, sound = recording
    whole = sound.read_outline(0.0, 40.0, 50)
    assert whole[:, 0].min() == samples.min()
    assert whole[:, 1].max() == samples.max()
    # its stretches are exact to 256 frames, so each holds nearly what the exact one holds
    assert np.abs(whole - compute_peaks(samples, 50)).max() < 0.05
    near = sound.read_outline(20.0, 20.1, 50)
    assert np.array_equal(near, compute_peaks(samples[20 * LOW_RATE : 20 * LOW_RATE + 800], 50))
    assert sound.rms_dbfs() == pytest.approx(rms_dbfs(samples), abs=0.01)


def test_a_file_that_is_gone_or_shorter_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("speechlab.audio._reader._MAX_KEPT_SAMPLES", 1_000)
    path = AudioClip(np.zeros(LOW_RATE), LOW_RATE).save(tmp_path / "tone.wav")
    sound = SoundReader(path)
    AudioClip(np.zeros(100), LOW_RATE).save(path)
    with pytest.raises(AudioError, match=r"shorter than it was|cannot be read"):
        sound.read_outline(0.0, 1.0, 1)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        sound.read(0.0, 1.0)


def test_a_segment_beyond_the_damage_of_a_file_says_so(tmp_path):
    noise = np.random.default_rng(0).uniform(-0.3, 0.3, 16_000)
    path = AudioClip(noise, 16_000).save(tmp_path / "a.flac")
    path.write_bytes(path.read_bytes()[:8_000])
    with pytest.raises(AudioDecodeError, match="cut short"):
        _ = FileSegment(path, 0.9, 1.0).samples
