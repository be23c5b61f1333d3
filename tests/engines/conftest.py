"""Engines for the tests, each loaded once; the weights lie in the user's cache, where their hashes are checked."""

import unicodedata
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soxr
from rapidfuzz.distance import Levenshtein

from speechlab.engines import create, status

SPEECH = Path(__file__).resolve().parents[3] / "shared" / "speech"


@contextmanager
def running(name, **options):
    state = status(name)
    if not state.ready:
        pytest.skip(f"the engine {name} is not installed here: {state.remedy}")
    engine = create(name, **options)
    engine.load()
    yield engine
    engine.close()


def loaded_once(name):
    @pytest.fixture(scope="session")
    def engine():
        with running(name) as made:
            yield made

    return engine


kokoro, expressive, hibari = map(loaded_once, ("kokoro", "q", "hibari"))
openjtalk, whisper, gemma = map(loaded_once, ("openjtalk", "whisper", "gemma"))


@pytest.fixture(scope="session")
def human_speech():
    if not (SPEECH / "manifest.csv").is_file():
        pytest.skip(f"there are no recordings of people at {SPEECH}")
    return SPEECH


@pytest.fixture(scope="session")
def say():
    """Speak and resample for the recognizer."""

    def speak(engine, text, voice, **options):
        sound = np.concatenate(list(engine.synthesize(text, voice, **options)))
        return soxr.resample(sound, engine.sample_rate, 16_000).astype(np.float32)

    return speak


@pytest.fixture(scope="session")
def error_rate():
    """Character error rate after folding case, width and punctuation."""

    def rate(reference, hypothesis):
        fold = [
            "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())
            for text in (reference, hypothesis)
        ]
        return Levenshtein.distance(*fold) / len(fold[0])

    return rate
