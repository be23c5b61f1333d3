"""Recordings of any length are read where they are asked for, and are the same as in memory."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from speechlab.audio import AudioClip, FileSegment, SoundReader, compute_peaks, rms_dbfs
from speechlab.audio import _reader as reader
from speechlab.errors import AudioDecodeError, AudioError

RATE = 8_000


@pytest.fixture(params=["memory", "PCM_16", "FLOAT", "flac"])
def recording(request, monkeypatch, tmp_path):
    """The samples of a recording of 40 s and a reader, of files that count as long too."""
    monkeypatch.setattr(reader, "_MAX_KEPT_SAMPLES", 1_000)
    random = np.random.default_rng(1)
    samples = np.round(random.uniform(-0.9, 0.9, (40 * RATE, 2)) * 2**15).astype(np.float32) / 2**15
    if request.param == "memory":
        return samples, SoundReader(AudioClip(samples, RATE))
    if request.param == "flac":
        path = tmp_path / "long.flac"
        soundfile.write(path, samples, RATE, subtype="PCM_16")
    else:
        path = tmp_path / "long.wav"
        soundfile.write(path, samples, RATE, subtype=request.param)
    return samples, SoundReader(path)


def test_what_is_read_is_what_stands_there(recording):
    samples, sound = recording
    assert (sound.frames, sound.channels, sound.sample_rate, sound.duration_s) == (40 * RATE, 2, RATE, 40.0)
    for start, end in [(0.0, 1.0), (12.5, 13.25), (39.5, 99.0), (5.0, 5.0)]:
        part = samples[round(start * RATE) : round(end * RATE)]
        assert np.array_equal(sound.read(start, end).samples, part)


def test_outlines_hold_every_extreme(recording):
    samples, sound = recording
    whole = sound.read_outline(0.0, 40.0, 50)
    assert whole[:, 0].min() == samples.min()
    assert whole[:, 1].max() == samples.max()
    # its stretches are exact to 256 frames, so each holds nearly what the exact one holds
    assert np.abs(whole - compute_peaks(samples, 50)).max() < 0.05
    near = sound.read_outline(20.0, 20.1, 50)
    assert np.array_equal(near, compute_peaks(samples[20 * RATE : 20 * RATE + 800], 50))
    assert sound.rms_dbfs() == pytest.approx(rms_dbfs(samples), abs=0.01)


def test_a_file_that_is_gone_or_shorter_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(reader, "_MAX_KEPT_SAMPLES", 1_000)
    path = AudioClip(np.zeros(RATE), RATE).save(tmp_path / "tone.wav")
    sound = SoundReader(path)
    AudioClip(np.zeros(100), RATE).save(path)
    with pytest.raises(AudioError, match=r"shorter than it was|cannot be read"):
        sound.read_outline(0.0, 1.0, 1)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        sound.read(0.0, 1.0)
    with pytest.raises(FileNotFoundError):
        SoundReader(path)
    path.write_bytes(b"no sound at all")
    with pytest.raises(AudioDecodeError):
        SoundReader(path)


def test_a_segment_beyond_the_damage_of_a_file_says_so(tmp_path):
    noise = np.random.default_rng(0).uniform(-0.3, 0.3, 16_000)
    path = AudioClip(noise, 16_000).save(tmp_path / "a.flac")
    path.write_bytes(path.read_bytes()[:8_000])
    with pytest.raises(AudioDecodeError, match="cut short"):
        _ = FileSegment(path, 0.9, 1.0).samples
