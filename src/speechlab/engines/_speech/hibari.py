"""hibari: a tiny English voice (8 MB) that speaks a hundred times faster than real time, at 24 kHz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._require import require
from speechlab.engines._chunks import chunk_text
from speechlab.engines._protocols import EngineVoice
from speechlab.engines._speech.phonemes import Reader, ReadHere
from speechlab.engines._speech.synthesis import resolve_voice, speak_pieces
from speechlab.engines._weights.specs import HIBARI
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import EngineError, InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE_RATE = 24_000


class HibariEngine:
    """hibari as a :class:`~speechlab.engines.Synthesizer`.

    It has only the voice that the package contains. The other voices would need a download.

    Args:
        seed: Seed of the breath noise of the vocoder; the same seed gives the same samples.
        threads: Threads of one inference; one is enough.
        reader: Front end that reads the texts; by default in this process.
    """

    model = "hibari-heart"
    sample_rate = SAMPLE_RATE

    def __init__(self, *, seed: int = 0, threads: int = 1, reader: Reader | None = None) -> None:
        self._reader = reader or ReadHere()
        self._seed = seed
        self._threads = threads
        self._voice: Any = None

    @property
    def voices(self) -> Sequence[EngineVoice]:
        return (EngineVoice("heart", ("en",), "Female", "hibari, American English, very fast"),)

    def find_model(self) -> None:
        """Find the weights, and check their hashes."""
        require("hibari")
        ModelStore().ensure_files(HIBARI)

    def load(self) -> None:
        """Load the model now instead of on first use (about 1 s)."""
        if self._voice is None:
            self.find_model()
            self._voice = require("hibari").Hibari(
                voice="heart", threads=self._threads, g2p=self._reader.english
            )

    def close(self) -> None:
        """Release the model; the next use loads it again."""
        self._voice = None

    def check_text(self, text: str, voice: str) -> None:
        """Check that the voice can read a text, without loading the model."""
        has_latin = any(char.isascii() and char.isalnum() for char in text)
        if any(char.isalpha() for char in text) and not has_latin:
            # A mistake of the caller, not a failure of the engine, so that the request is not repeated.
            message = (
                f"the voice {voice!r} reads English only, and this text has no Latin letter or digit; "
                "choose a voice of the text's language"
            )
            raise InvalidRequestError(message, parameter="text", rule="2.2")

    def synthesize(
        self, text: str, voice: str, *, temperature: float | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Speak a text piece by piece (see the protocol); ``temperature`` is ignored."""
        del temperature
        resolve_voice(voice, self.voices, "hibari")
        self.check_text(text, voice)
        self.load()
        generator = np.random.default_rng(self._seed)
        return speak_pieces(chunk_text(text), lambda part: self._speak_piece(part, generator), SAMPLE_RATE)

    def _speak_piece(self, text: str, generator: np.random.Generator) -> NDArray[np.float32]:
        engine = self._voice
        if engine is None:
            raise EngineError("the engine was closed while it was speaking; start the utterance again")
        sounds = [np.zeros(0, dtype=np.float32)]
        for read in engine.phonemize(text):
            if any(char.isalpha() for char in read):
                try:
                    sounds.append(
                        np.asarray(engine.from_ids(engine.ids(read), rng=generator), dtype=np.float32)
                    )
                except Exception as error:
                    raise EngineError(f"hibari failed on a piece of {len(read)} phonemes: {error}") from error
        return np.concatenate(sounds)
