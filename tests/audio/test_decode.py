"""Decoding what is damaged, forged, endless, or merely unusual; formats, and what looks like them."""

import struct
import tracemalloc
from io import BytesIO

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.audio import AudioClip, DecodeLimits, decode, detect_format
from speechlab.errors import AudioDecodeError, AudioError, AudioLimitError

RATE = 24_000


def tone(seconds=1.0, rate=RATE, channels=1):
    mono = 0.4 * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)
    return mono if channels == 1 else np.stack([mono * (n + 1) / channels for n in range(channels)], axis=1)


CLIP = AudioClip((tone() * 32768).astype(np.int16), RATE)
FILES = {name: CLIP.encode(name) for name in ("wav", "flac", "ogg", "mp3")}
FILES["vorbis"] = AudioClip(tone(rate=22_050), 22_050).encode("ogg")


def wav(riff, data, body, channels=1, rate=RATE, before=b"", after=b""):
    layout = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * channels * 2, channels * 2, 16)
    head = b"RIFF" + struct.pack("<I", riff) + b"WAVE" + layout + before
    return head + b"data" + struct.pack("<I", data) + body + after


def flac_with_total(total, data=FILES["flac"]):
    fields = int.from_bytes(data[18:26], "big") & ~((1 << 36) - 1) | total
    return data[:18] + fields.to_bytes(8, "big") + data[26:]


PCM = CLIP.encode("pcm")


def test_streamed_wav_is_read_to_its_end():
    for size in (0, 0xFFFF_FFFF, 0x7FFF_FFFF, 0x7FFF_FFFF - 36, 0xFFFF_FFFF - 36):
        for riff in (0, 36, 0xFFFF_FFFF, 0x7FFF_FFFF):
            assert decode(wav(riff, size, PCM)) == CLIP


@given(
    st.binary(min_size=8, max_size=400),
    st.integers(1, 4),
    st.sampled_from([8_000, 22_050, 48_000]),
    st.binary(max_size=20),
    st.booleans(),
)
def test_plain_wav_is_what_soundfile_reads(body, channels, rate, tag, before):
    body = body[: len(body) - len(body) % (2 * channels)]
    # Of a LIST chunk with nonsense in it, soundfile loses the sound that follows.
    chunk = b"note" + struct.pack("<I", len(tag)) + tag + bytes(len(tag) % 2)
    around = {"before": chunk} if before else {"after": chunk}
    data = wav(36 + len(chunk) + len(body), len(body), body, channels, rate, **around)
    expected, expected_rate = soundfile.read(BytesIO(data), dtype="float32")
    clip = decode(data)
    assert clip.sample_rate == expected_rate == rate
    assert clip.samples.dtype == np.float32
    assert clip.samples.shape == expected.shape
    assert np.array_equal(clip.samples, expected)


def test_an_empty_wav_is_empty_even_where_tags_follow():
    tags = b"LIST" + struct.pack("<I", 4) + b"INFO"
    assert decode(wav(36, 0, b"")).frames == 0
    assert decode(wav(36 + len(tags), 0, b"", after=tags)).frames == 0
    assert decode(wav(0xFFFF_FFFF, 0xFFFF_FFFF, b"")).frames == 0


@given(st.sampled_from(sorted(FILES)), st.binary(max_size=400), st.integers(0, 2_000))
@settings(max_examples=60, deadline=None)
def test_garbage_after_a_header_gives_sound_or_our_own_error(name, noise, position):
    data = bytearray(FILES[name])
    data[position : position + len(noise)] = noise
    try:
        clip = decode(bytes(data))
    except AudioError:
        return
    assert np.isfinite(clip.samples).all()


def test_a_forged_flac_total_costs_no_memory():
    tracemalloc.start()
    with pytest.raises(AudioDecodeError, match="cut short"):
        decode(flac_with_total((1 << 36) - 1))
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flac", "ogg", "mp3"])
def test_silence_in_a_few_bytes_meets_the_limit(name):
    bomb = AudioClip(np.zeros(90 * 8_000, np.float32), 8_000).encode(name)
    with pytest.raises(AudioLimitError, match="the limit is 60 s"):
        decode(bomb, DecodeLimits(max_seconds=60))
    with pytest.raises(AudioLimitError, match="1000000 bytes of float32"):
        decode(bomb, DecodeLimits(max_decoded_bytes=1_000_000))


def test_a_thousand_channels_are_refused_before_they_are_read():
    with pytest.raises(AudioLimitError, match="1024 channels; 1 to 32 are allowed"):
        decode(wav(36 + 2048 * 10, 2048 * 10, bytes(2048 * 10), channels=1024))


def test_rates_are_limited():
    with pytest.raises(AudioLimitError, match="1 Hz"):
        decode(wav(36 + len(PCM), len(PCM), PCM, rate=1))
    with pytest.raises(AudioLimitError, match="8000 to 16000 Hz are allowed"):
        decode(FILES["mp3"], DecodeLimits(min_sample_rate=8_000, max_sample_rate=16_000))


def test_other_kinds_of_wav_are_read():
    for subtype in ("PCM_U8", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW", "IMA_ADPCM"):
        buffer = BytesIO()
        soundfile.write(buffer, tone(channels=2), RATE, format="WAV", subtype=subtype)
        clip = decode(buffer.getvalue())
        assert (clip.sample_rate, clip.channels, clip.source_format) == (RATE, 2, "wav")
        assert np.corrcoef(clip.samples[:RATE, 0], tone(channels=2)[:, 0])[0, 1] > 0.99, subtype


def test_float_wav_of_unusable_samples_is_refused():
    for value in (np.nan, 32767.0):
        buffer = BytesIO()
        soundfile.write(buffer, np.full(100, value, np.float32), RATE, format="WAV", subtype="FLOAT")
        with pytest.raises(AudioDecodeError, match="no usable audio"):
            decode(buffer.getvalue())


def test_nothing_reaches_the_process_s_stderr(capfd):
    for name, data in FILES.items():
        decode(data)
        with pytest.raises(AudioDecodeError):
            decode(data[: len(data) // 2])
        assert capfd.readouterr() == ("", ""), name


KNOWN = [
    (b"RIFF\x24\0\0\0WAVEfmt ", "wav"),
    (b"OggS\0\x02", "ogg"),
    (b"fLaC\0\0\0\x22", "flac"),
    (b"ID3\x04\0\0\0\0\0\0", "mp3"),
    (b"\xff\xfb\x90\x64", "mp3"),  # MPEG-1 layer III
    (b"\xff\xf3\x44\xc4", "mp3"),  # MPEG-2
    (b"\xff\xe3\x44\xc4", "mp3"),  # MPEG-2.5
]


def test_the_four_formats_are_known_by_their_header():
    for data, expected in KNOWN:
        assert detect_format(data) == detect_format(memoryview(bytearray(data))) == expected
