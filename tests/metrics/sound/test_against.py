"""Recordings against references."""

import numpy as np
import pandas as pd
import pytest

from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError
from speechlab.metrics import compare_recordings

RATE = 16_000
VOICE = (np.sin(np.cumsum(np.linspace(0.02, 0.2, RATE))) / 2).astype("f4")
NOISE = np.random.default_rng(0).normal(0, 1, RATE).astype("f4")


def clip(samples, rate=RATE):
    return AudioClip(samples, rate)


@pytest.mark.parametrize("decibels", [0, 10, 30])
@pytest.mark.parametrize("gain", [0.1, 1.0])
def test_the_ratio_is_that_of_the_noise_with_any_gain(decibels, gain):
    noise = NOISE - (NOISE @ VOICE) / (VOICE @ VOICE) * VOICE
    noise *= np.sqrt((VOICE @ VOICE) / (noise @ noise) / 10 ** (decibels / 10))
    table = compare_recordings([clip(gain * (VOICE + noise) / 4)], [clip(VOICE)])
    assert table["si_sdr_db"][0] == pytest.approx(decibels, abs=0.1)


def test_custom_measures_get_samples_at_one_rate():
    seen = []

    def similarity(sound, model, rate):
        seen.append((sound.shape, model.shape, sound.dtype, rate))
        return float(sound[:100] @ model[:100])

    frame = pd.DataFrame(
        {
            "audio": [clip(VOICE, 8_000), None, clip(VOICE)],
            "reference_audio": [clip(VOICE)] * 2 + ["none.wav"],
        },
        index=["a", "b", "c"],
    )
    table = compare_recordings(frame, measures={"similarity": similarity})
    assert seen == [((32_000,), (16_000,), np.float32, RATE)]
    assert table["similarity"].notna().tolist() == [True, False, False]
    assert table["compare_error"].notna().tolist() == [False, False, True]
    assert "none.wav" in table.loc["c", "compare_error"]


def test_a_measure_that_fails_does_not_stop_the_others():
    def broken(sound, model, rate):
        raise ValueError("too short")

    sides = [clip(VOICE + NOISE / 9)], [clip(VOICE)]
    table = compare_recordings(*sides, measures={"broken": broken, "half": lambda *_: 0.5})
    assert table["compare_error"][0] == "broken: ValueError: too short"
    assert table["half"][0] == 0.5
    assert pd.notna(table["si_sdr_db"][0])
    table = compare_recordings(*sides, measures={"text": lambda *_: "x"})
    assert "not a number" in table["compare_error"][0]


def test_silence_has_no_ratio():
    silent = clip(np.zeros(RATE, "f4"))
    table = compare_recordings([silent, clip(VOICE)], [clip(VOICE), silent])
    assert table["si_sdr_db"].isna().all()
    with pytest.raises(InvalidRequestError, match="one for each"):
        compare_recordings([silent], [])
