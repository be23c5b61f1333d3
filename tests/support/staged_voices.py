"""A service whose voices are tones: one quiet, one loud, some that fail."""

from contextlib import contextmanager
from typing import Any

import numpy as np

from speechlab import datasets
from speechlab.audio import AudioClip
from speechlab.client import Client
from speechlab.engines import EngineVoice
from speechlab.errors import EngineError
from speechlab.service import Provider, ServedEngine, run_service
from support.clients import KEY
from support.staged import StagedVoice, staged_config

HOSTILE = "<img src=x onerror='window.fired=1'> $5 and $6 \u202egnp </script>"
VOICES = (
    EngineVoice("quiet", ("ja",), "Female", "A quiet voice"),
    EngineVoice("loud", ("en",), "Male", "A loud voice"),
    EngineVoice("both", ("ja", "en"), "Male", HOSTILE),
    EngineVoice("broken", ("en",), "Female", "A voice that fails"),
    EngineVoice("breaks-later", ("zh",), "Female", "A voice that fails later"),
    EngineVoice("endless", ("en",), "Neutral", "A voice that never ends"),
)
LEVELS = {"quiet": 0.02, "loud": 0.6}


class ToneVoices(StagedVoice):
    """Speaks two seconds of a tone."""

    def _pieces(self, voice: str) -> Any:
        times = np.arange(self.sample_rate // 2) / self.sample_rate
        piece = (LEVELS.get(voice, 0.2) * np.sin(2 * np.pi * 440 * times)).astype(np.float32)
        if voice == "broken":
            raise EngineError(f"no sound today {HOSTILE}")
        yield piece
        while voice == "endless":
            yield piece
        if voice == "breaks-later":
            raise EngineError("the engine failed after its first sound")
        for _ in range(3):
            yield piece


class RecordedVoices(StagedVoice):
    """Speaks recordings of a data set, one for each voice, whatever the text."""

    def _pieces(self, voice: str) -> Any:
        (number,) = [number for number, one in enumerate(self.voices) if one.name == voice]
        if "outage" in voice:
            raise EngineError("the weights of this voice are damaged")
        path = datasets.zh_speech()["audio"].iloc[number]
        samples = AudioClip.from_file(path).resample(self.sample_rate).samples
        for start in range(0, len(samples), 12_000):
            yield samples[start : start + 12_000] * (1.0, 0.3, 0.7)[number % 3]


@contextmanager
def voices_service(speaker: StagedVoice | None = None, name: str = "tones", **options: Any):
    """Run it, and give a client of it."""
    voices = speaker or ToneVoices(voices=VOICES)
    engine = ServedEngine(name, "synthesizer", lambda: voices, Provider(name, heavy=False))
    silent = Provider("whole", streamable=frozenset())
    whole = ServedEngine("whole", "synthesizer", lambda: ToneVoices(voices=VOICES[1:2]), silent, heavy=False)
    with (
        run_service(staged_config(engine, *([] if speaker else [whole]))) as service,
        Client(base_url=service.base_url, api_key=KEY, max_retries=0, **options) as client,
    ):
        yield client
