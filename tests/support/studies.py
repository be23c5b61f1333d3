"""A service for studies whose engines are staged, and which can end at any stage."""

from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from speechlab.client import Client
from speechlab.engines import EngineVoice
from speechlab.service import Provider, ServedEngine, run_service
from support.clients import KEY
from support.staged import StagedRecognizer, StagedTranslator, StagedVoice, staged_config


class Tones(StagedVoice):
    """Speaks half a second of a tone."""

    def _pieces(self, voice: str) -> Any:
        times = np.arange(12_000) / 24_000
        height = 220 if voice == "low" else 330
        yield (0.3 * np.sin(2 * np.pi * height * times)).astype(np.float32)


class Staged:
    """A service with all three kinds of engines, and how it ends."""

    def __init__(self, names: tuple[str, ...], languages: tuple[str, ...]) -> None:
        voices = tuple(EngineVoice(name, languages, "Female", f"A voice called {name}") for name in names)
        self.api_key = KEY
        self.voice = Tones(voices=voices)
        self.ears = StagedRecognizer(hears=lambda duration_s: "good morning")
        self.translator = StagedTranslator()

    def ending(self, stage: str) -> Any:
        """A function of progress that ends the service when the calls of a batch of this name are made."""

        def told(*given: Any) -> None:
            name, done, total = ("", *given) if len(given) == 2 else given
            if name.startswith(stage) and done >= total > 0:
                self.end()

        return told


@contextmanager
def serving(names=("low", "high"), languages=("en",)):
    staged = Staged(names, languages)
    config = staged_config(
        ServedEngine("tone", "synthesizer", lambda: staged.voice, Provider("tone", heavy=False)),
        ServedEngine("ears", "recognizer", lambda: staged.ears, heavy=False),
        ServedEngine("echo", "translator", lambda: staged.translator, heavy=False),
    )
    with ExitStack() as stack:
        service = stack.enter_context(run_service(config))
        staged.end, staged.base_url = stack.close, service.base_url
        with Client(base_url=service.base_url, api_key=KEY) as staged.lab:
            yield staged
