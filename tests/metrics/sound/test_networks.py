"""Speaker embeddings against the original, whose figures are in speakers.json."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from speechlab import datasets
from speechlab.audio import AudioClip
from speechlab.engines import embed_speaker
from speechlab.errors import InvalidRequestError, ModelError
from speechlab.metrics import speaker_embedding, speaker_similarity

RATE = 16_000
ORIGINAL = json.loads(Path(__file__).with_name("speakers.json").read_text(encoding="utf-8"))["embeddings"]


@pytest.fixture(scope="module")
def weights():
    if find_spec("resemblyzer") is None:
        reason = "needs weights: pip install --no-deps resemblyzer==0.1.4"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


def voice(pitch, seconds, level=0.2, seed=0):
    """A buzz with three formants and a little noise, without pauses."""
    at = np.arange(round(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(pitch * (1 + 0.1 * np.sin(2 * np.pi * 3 * at))) / RATE
    sound = np.zeros(len(at))
    for number in range(1, 30):
        height = sum(np.exp(-(((number * pitch - formant) / 150) ** 2)) for formant in (600, 1700, 2600))
        sound += (height + 0.02) * np.sin(number * phase)
    sound += 0.05 * np.random.default_rng(seed).normal(size=len(at))
    return (level * sound / np.sqrt(np.mean(sound**2))).astype(np.float32)


SOUNDS = {
    "low": voice(110, 4.0),
    "high": voice(220, 2.3),  # the last window is too empty to count
    "short": voice(150, 0.7),  # less than a window
    "quiet": voice(180, 3.0, level=0.003),  # amplified
}


@pytest.mark.parametrize("name", SOUNDS)
def test_the_original_agrees(weights, name):
    vector = speaker_embedding(AudioClip(SOUNDS[name], RATE))
    assert (vector.shape, vector.dtype) == ((256,), np.float32)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(vector, ORIGINAL[name], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_pauses_are_left_out_much_as_the_original_does_it(weights):
    """The original asks WebRTC's detector of speech, so this is a likeness and no equality."""
    recording = datasets.zh_speech().set_index("id").loc["zh-054", "audio"]
    assert speaker_embedding(recording) @ np.array(ORIGINAL["zh-054"]) > 0.99
    sound = AudioClip.from_file(recording).to_mono().resample(RATE).samples
    paused = AudioClip(np.concatenate([sound, np.zeros(4 * RATE, np.float32), sound]), RATE)
    assert speaker_similarity(paused, recording) > 0.98


@pytest.mark.slow
def test_similarity_is_of_speakers(weights):
    one, again, other = (AudioClip(voice(pitch, 2, seed=pitch), RATE) for pitch in (120, 123, 240))
    embedding = speaker_embedding(one)
    alike, apart = speaker_similarity(embedding, again), speaker_similarity(one, other)
    assert alike > apart + 0.1
    stereo = AudioClip(np.stack([one.samples, one.samples], axis=1), RATE)
    assert speaker_similarity(embedding, stereo) == pytest.approx(1, abs=1e-6)


def test_what_has_no_speaker_is_refused():
    for frames, problem in ((0, "an empty clip has no speaker"), (RATE, "a silent clip")):
        with pytest.raises(InvalidRequestError, match=problem):
            speaker_embedding(AudioClip(np.zeros(frames, np.float32), RATE))
    with pytest.raises(InvalidRequestError, match=r"one is an array of shape \(16000,\), not an embedding"):
        speaker_similarity(np.zeros(RATE, np.float32), np.zeros(256, np.float32))


def test_without_weights_the_error_has_the_command(monkeypatch):
    load = embed_speaker.__globals__["_load_lstm_weights"].__wrapped__  # as if they were not loaded yet
    monkeypatch.setitem(embed_speaker.__globals__, "_load_lstm_weights", load)
    monkeypatch.setattr("speechlab.engines._weights.store.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install --no-deps resemblyzer==0\.1\.4"):
        speaker_embedding(AudioClip(SOUNDS["short"], RATE))
