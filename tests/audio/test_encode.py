"""Whole files and streams: what goes in comes out, as long as it was."""

import tracemalloc
import wave
from io import BytesIO

import av
import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from speechlab.audio import (
    STREAMABLE_FORMATS,
    AudioClip,
    StreamResampler,
    build_stream_encoder,
    can_stream,
    decode,
    detect_format,
    encode,
    encode_blocks,
    resample,
)
from speechlab.errors import AudioError

integers = hnp.arrays(np.int16, st.integers(1, 3_000))
channels = st.sampled_from([1, 2])


def tone(seconds=1.0, rate=24_000):
    return (0.4 * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


@given(samples=integers, layout=channels, name=st.sampled_from(["wav", "flac", "pcm"]))
@settings(max_examples=60, deadline=None)
def test_sixteen_bits_come_back_exactly(samples, layout, name):
    samples = samples[: len(samples) // layout * layout].reshape(-1, layout)
    clip = AudioClip(samples, 24_000)
    data = clip.encode(name)
    again = AudioClip.from_pcm(data, 24_000, layout) if name == "pcm" else decode(data)
    assert again == clip
    assert np.array_equal(np.frombuffer(again.encode("pcm"), "<i2"), samples.ravel())


def test_whole_files_keep_rate_length_and_sound():
    every = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]
    for name, rates in {"mp3": every, "ogg": every, "wav": every[1:2], "flac": every[-1:]}.items():
        for rate in rates:
            clip = AudioClip(tone(0.7, rate), rate)
            data = clip.encode(name)
            assert detect_format(data) == name
            again = decode(data)
            assert (again.sample_rate, again.frames, again.source_format) == (rate, clip.frames, name)
            assert np.corrcoef(again.samples, clip.samples)[0, 1] > 0.95


def test_overshoot_is_clipped_and_does_not_wrap_around():
    data = encode([1.5, -1.5, 1.0, -1.0], "pcm", 8_000)
    assert np.frombuffer(data, "<i2").tolist() == [32767, -32768] * 2


@pytest.mark.slow
@given(
    name=st.sampled_from(sorted(STREAMABLE_FORMATS)),
    rate=st.sampled_from([8_000, 16_000, 22_050, 24_000, 44_100, 48_000]),
    layout=channels,
    sizes=st.lists(st.integers(0, 3_000), min_size=1, max_size=12),
)
@settings(max_examples=60, deadline=None)
def test_a_stream_is_as_long_as_what_went_in(name, rate, layout, sizes):
    total = sum(sizes)
    sound = tone(total / rate, rate)
    samples = sound if layout == 1 else np.stack([sound, -sound], axis=1)
    edges = np.cumsum(sizes)[:-1]
    with build_stream_encoder(name, rate, layout) as encoder:
        data = b"".join([*map(encoder.write, np.split(samples, edges)), encoder.close()])
    if total == 0 and name in {"mp3", "ogg"} and not data:
        return
    clip = AudioClip.from_pcm(data, rate, layout) if name == "pcm" else decode(data)
    assert (clip.sample_rate, clip.channels) == (rate, layout)
    if name == "mp3":
        # No gapless tag in a stream: the encoder's delay and the rest of the last frame are heard as silence.
        assert total <= clip.frames <= total + 1_105 + 2 * 1_152
    else:
        assert clip.frames == total
    if name in {"pcm", "wav"}:
        assert clip == AudioClip(samples, rate).__class__.from_pcm(encode(samples, "pcm", rate), rate, layout)


def test_others_read_our_streams():
    for name, rate in (("mp3", 24_000), ("ogg", 24_000), ("ogg", 22_050), ("wav", 24_000)):
        samples = tone(2.0, rate)
        with build_stream_encoder(name, rate) as encoder:
            data = b"".join([*(encoder.write(part) for part in np.split(samples, 20)), encoder.close()])
        if name != "mp3":
            # libsndfile reads MP3 as well, but writes to stderr while it does.
            assert soundfile.info(BytesIO(data)).duration == pytest.approx(2.0, abs=1e-4)
        with av.open(BytesIO(data)) as container:
            heard = sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))
        assert heard == pytest.approx(2.0, abs=0.1)
        if name == "wav":
            with wave.open(BytesIO(data)) as file:
                assert len(file.readframes(10**6)) == 2 * len(samples)


def test_sound_leaves_soon_and_steadily():
    for name, rate, within_s in (
        ("pcm", 24_000, 0.01),
        ("wav", 24_000, 0.01),
        ("mp3", 24_000, 0.15),
        ("ogg", 24_000, 0.25),
        ("ogg", 44_100, 1.5),
    ):
        step = rate // 100
        # Vorbis fills its pages by size, so that a pure tone would take long: let it be as rich as speech.
        sound = tone(3.0, rate) + np.random.default_rng(0).normal(0, 0.03, 3 * rate)
        sizes = []
        with build_stream_encoder(name, rate) as encoder:
            for part in np.split(sound, 300):
                assert len(part) == step
                sizes.append(len(encoder.write(part)))
        # Headers come at once; this is when sound comes, and again and again.
        heavy = [index for index, size in enumerate(sizes) if size > 150]
        gaps = np.diff([0, *heavy])
        assert gaps.max() * 0.01 <= within_s


def test_half_an_ogg_stream_can_be_heard():
    with build_stream_encoder("ogg") as encoder:
        parts = [encoder.write(part) for part in np.split(tone(2.0), 10)]
    assert 0.5 < decode(b"".join(parts[:6])).duration_s < 1.3


def test_an_encoder_is_closed_once_and_takes_nothing_afterwards():
    assert [can_stream(*of) for of in (("ogg", 22_050), ("flac",), ("mp3", 96_000))] == [True, False, False]
    encoder = build_stream_encoder("ogg")
    encoder.write(tone(0.1))
    assert encoder.close()
    assert encoder.close() == b""
    with pytest.raises(AudioError, match="the encoder is closed"):
        encoder.write(tone(0.1))


@given(st.sampled_from([(24_000, 16_000), (8_000, 24_000), (44_100, 48_000), (16_000, 16_000)]), st.data())
@settings(max_examples=25, deadline=None)
def test_resampling_in_pieces_is_resampling_at_once(rates, data):
    source, target = rates
    samples = tone(0.3, source)
    edges = sorted(data.draw(st.lists(st.integers(0, len(samples)), max_size=6)))
    stream = StreamResampler(source, target)
    pieces = [stream.write(part) for part in np.split(samples, edges)]
    joined = np.concatenate([*pieces, stream.flush()])
    whole = resample(samples, source, target)
    assert abs(len(joined) - len(whole)) <= 1
    n = min(len(joined), len(whole))
    assert np.abs(joined[:n] - whole[:n]).max() < 1e-3
    with pytest.raises(AudioError, match="was flushed"):
        stream.write(samples)


def test_resampling_keeps_the_tone():
    data = encode(AudioClip(tone(), 24_000), "wav", 8_000)
    assert (decode(data).sample_rate, decode(data).frames) == (8_000, 8_000)
    spectrum = np.abs(np.fft.rfft(resample(tone(1.0), 24_000, 16_000)))
    assert spectrum.argmax() == 440


def test_blocks_make_the_file_of_the_whole():
    for name in ("pcm", "wav", "flac", "mp3"):
        sound = tone(9.0)
        blocks = (sound[start : start + 50_001] for start in range(0, len(sound), 50_001))
        assert b"".join(encode_blocks(blocks, sound.shape, 24_000, name)) == encode(sound, name, 24_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wav", "ogg"])
def test_blocks_take_no_memory_for_the_whole(name):
    blocks = (tone(2.0) for _ in range(30))
    tracemalloc.start()
    try:
        size = sum(map(len, encode_blocks(blocks, (30 * 48_000,), 24_000, name)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3_000_000
    assert size > 200_000
