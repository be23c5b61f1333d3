"""The clip as a value, and what can be measured of it."""

import io
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab import audio
from speechlab.audio import AudioClip, build_sound_preview, compute_peaks, concatenate, decode
from support.texts import check_refusals

RATE = 24_000


def tone(seconds=1.0, rate=RATE):
    return (0.4 * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def test_a_clip_cannot_be_changed_by_anyone():
    mine = tone()
    clip = AudioClip(mine, RATE)
    mine[:] = 0
    assert clip.peak == pytest.approx(0.4, abs=1e-3)
    with pytest.raises(ValueError, match="read-only"):
        clip.samples[0] = 1
    with pytest.raises(AttributeError):
        clip.sample_rate = 8_000
    again = pickle.loads(pickle.dumps(clip))
    assert again == clip
    assert not again.samples.flags.writeable


def test_samples_become_float32_in_one():
    for samples, expected in (
        (np.array([0, 16384, -32768], np.int16), [0, 0.5, -1]),
        (np.array([2**30, -(2**31)], np.int32), [0.5, -1]),
        (np.array([0.25, 1.0], np.float64), [0.25, 1.0]),
        (np.array([[0.5], [0.25]], np.float16), [0.5, 0.25]),
        ([0.0, 1.3], [0.0, 1.0]),
    ):
        clip = AudioClip(samples, RATE)
        assert clip.samples.dtype == np.float32
        assert clip.samples.tolist() == pytest.approx(expected)


def test_refusals_of_sounds():
    check_refusals(
        Path(__file__).with_name("refusals.md"), "clips", audio=audio, AudioClip=AudioClip, io=io, np=np
    )


def test_numbers_about_a_clip():
    clip = AudioClip(np.stack([tone(2), -tone(2)], axis=1), np.int64(RATE))
    assert (clip.frames, clip.channels, clip.duration_s, clip.sample_rate) == (48_000, 2, 2.0, RATE)
    assert clip.rms_dbfs == pytest.approx(20 * math.log10(0.4 / math.sqrt(2)), abs=0.01)
    assert AudioClip(np.zeros(5), RATE).rms_dbfs == -math.inf
    assert AudioClip(np.zeros(0), RATE).peak == 0


def test_channels_in_opposite_phase_are_not_mixed_to_silence():
    sound = tone(0.1)
    for left, right, mono in ((1, -1, 1), (-0.9, 1, 1), (1, 1, 1), (1, 0, 0.5), (1, -0.5, 0.25)):
        stereo = AudioClip(np.stack([left * sound, right * sound], axis=1), RATE)
        assert stereo.to_mono() == AudioClip(mono * sound, RATE)


def test_channels_without_anything_in_common_are_averaged():
    noise = np.random.default_rng(1).uniform(-1, 1, (2_000, 64)).astype(np.float32)
    alone = noise * (np.arange(64) == 5)
    for samples in (noise, alone, np.zeros((0, 2), np.float32)):
        assert AudioClip(samples, RATE).to_mono() == AudioClip(samples.mean(axis=1, dtype=np.float32), RATE)


@given(st.floats(0, 3), st.floats(0, 3))
def test_crops_side_by_side_are_the_whole(a, b):
    first, second = sorted((a, b))
    clip = AudioClip(np.arange(2_000) / 2_000, 1_000)
    parts = [clip.crop(0, first), clip.crop(first, second), clip.crop(second)]
    assert concatenate(parts) == clip
    assert concatenate(parts, gap_s=0.002).frames == 2_000 + 2 * 2


def test_saving_by_suffix_and_reading_back(tmp_path):
    for name in ("a.wav", "a.MP3", "a.ogg", "a.opus", "a.flac"):
        clip = AudioClip(tone(), RATE)
        path = clip.save(str(tmp_path / name))
        assert AudioClip.from_file(path).frames == clip.frames
        assert [file.name for file in tmp_path.iterdir()] == [name]
        path.unlink()


def test_saving_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "a.wav"
    path.write_bytes(b"old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        AudioClip(tone(), RATE).save(path)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.wav"]


@given(st.integers(0, 50), st.integers(1, 80))
def test_peaks_bound_every_sample(frames, n):
    samples = np.random.default_rng(frames).uniform(-1, 1, frames)
    outline = compute_peaks(samples, n)
    assert outline.shape == (n, 2)
    assert (outline[:, 0] <= outline[:, 1]).all()
    if frames:
        assert outline.min() == np.float32(samples.min())
        assert outline.max() == np.float32(samples.max())


@pytest.mark.slow
def test_a_long_clip_shows_its_beginning():
    noise = np.random.default_rng(0).uniform(-0.9, 0.9, 130 * 48_000).astype(np.float32)
    long = AudioClip(noise, 48_000)._repr_html_()
    assert len(long) < 1_500_000
    assert "plays the first" in long


def test_a_clip_on_a_page_takes_a_twentieth_of_its_wav():
    noisy = 0.3 * tone(5.0) + np.random.default_rng(0).normal(0, 0.02, 5 * RATE)
    clip = AudioClip(noisy.astype(np.float32), RATE, "tone")
    markup = clip._repr_html_()
    assert len(markup) < 0.05 * len(clip.encode("wav")) * 4 / 3
    assert "lossy preview" in markup
    preview = build_sound_preview(clip)
    assert preview.seconds == 5.0
    assert build_sound_preview(clip) == preview  # a notebook that is executed again stays the same
    assert decode(preview.data).duration_s == pytest.approx(5.0, abs=0.03)


def test_a_folder_that_is_not_there_is_named_as_it_was_given(tmp_path):
    path = tmp_path / "none" / "a.wav"
    with pytest.raises(FileNotFoundError) as caught:
        AudioClip([0.0] * 10, 8_000).save(path)
    assert caught.value.filename == str(path)
