"""OpenJTalk with the voice "mei": Japanese, 48 kHz, robotic but clear and fast.

The voice is licensed CC BY 3.0 and asks for credit: "MMDAgent, Nagoya Institute of Technology".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from speechlab._require import require
from speechlab.engines._chunks import chunk_text
from speechlab.engines._protocols import EngineVoice
from speechlab.engines._speech.phonemes import OPENJTALK_LOCK, Reader, ReadHere
from speechlab.engines._speech.synthesis import resolve_voice, speak_pieces
from speechlab.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE_RATE = 48_000
# The voice peaks at about 1.25 of full scale. With this factor it does not clip.
_FULL_SCALE = 32_768 * 1.3


class OpenJTalkEngine:
    """OpenJTalk as a :class:`~speechlab.engines.Synthesizer`.

    Args:
        reader: Front end that reads the texts; by default in this process.
    """

    model = "openjtalk-mei"
    sample_rate = SAMPLE_RATE

    def __init__(self, *, reader: Reader | None = None) -> None:
        self._reader = reader or ReadHere()

    @property
    def voices(self) -> Sequence[EngineVoice]:
        return (EngineVoice("mei", ("ja",), "Female", "OpenJTalk, Japanese, robotic but clear, very fast"),)

    def load(self) -> None:
        """Load the dictionary and the voice now instead of on first use (about 1 s)."""
        self._speak_piece("あ")

    def close(self) -> None:
        """Do nothing: the library keeps its state for the life of the process."""

    def synthesize(
        self, text: str, voice: str, *, temperature: float | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Speak a text piece by piece (see the protocol); ``temperature`` is ignored."""
        del temperature
        resolve_voice(voice, self.voices, "openjtalk")
        require("pyopenjtalk")
        return speak_pieces(chunk_text(text), self._speak_piece, SAMPLE_RATE)

    def _speak_piece(self, text: str) -> NDArray[np.float32]:
        # Without text to read, the library would print a warning to the terminal.
        if not any(char.isalnum() for char in text):
            return np.zeros(0, dtype=np.float32)
        library = require("pyopenjtalk")
        labels = self._reader.labels(text.strip())
        try:
            with OPENJTALK_LOCK:
                samples, _ = library.synthesize(labels)
        except Exception as error:
            raise EngineError(
                f"OpenJTalk failed on a piece of {len(text)} characters: {type(error).__name__}"
            ) from error
        # Some texts (one letter a hundred times) make its filter diverge, beyond the range of float32.
        return np.clip(np.asarray(samples, dtype=np.float64) / _FULL_SCALE, -1.0, 1.0).astype(np.float32)
