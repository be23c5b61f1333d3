"""The expressive Kokoro: the same model, with a temperature.

Kokoro has no sampling. Its style vector determines the manner of reading. Gaussian noise on that vector changes the
manner but not the words (measured: no change of the error rate from temperature 0 to 1). The standard deviation of
the noise is half of that between the voices, times the temperature. The noise is drawn once for each utterance, so
that the voice is the same in all of its pieces.

Each call varies, as with any sampling. With ``seed`` the noise depends on the seed, the voice, the text and the
temperature only, so that the same call gives the same samples.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from speechlab.engines._protocols import EngineVoice
from speechlab.engines._speech.kokoro import KokoroEngine
from speechlab.engines._speech.synthesis import check_voice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from speechlab.engines._speech.reading import Reader
    from speechlab.engines._weights.store import ModelStore

DEFAULT_TEMPERATURE = 0.5
_SCALE = 0.5
_VOICES = {
    "q_tebukuro": (
        "jf_tebukuro",
        EngineVoice("q_tebukuro", ("ja",), "Female", "Expressive, Japanese; varies with the temperature"),
    ),
    "q_kumo": (
        "jm_kumo",
        EngineVoice(
            "q_kumo", ("ja", "en"), "Male", "Expressive, Japanese and English; varies with the temperature"
        ),
    ),
}


class ExpressiveEngine(KokoroEngine):
    """Kokoro with style noise.

    Args:
        store: Model store of the model; the user's cache by default.
        threads: Threads of one inference.
        seed: Seed that makes each call repeatable; None for calls that vary.
        reader: Front end that reads the texts; by default in this process.
    """

    model = "kokoro-82m-int8-expressive"

    def __init__(
        self,
        *,
        store: ModelStore | None = None,
        threads: int = 2,
        seed: int | None = None,
        reader: Reader | None = None,
    ) -> None:
        super().__init__(store=store, threads=threads, reader=reader)
        self._seed = seed

    @property
    def voices(self) -> Sequence[EngineVoice]:
        """Two voices: Japanese, and Japanese with English."""
        return tuple(voice for _, voice in _VOICES.values())

    def synthesize(
        self, text: str, voice: str, *, temperature: float | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Speak a text piece by piece (see the protocol)."""
        profile = check_voice(voice, self.voices, "q")
        self.load()
        heat = DEFAULT_TEMPERATURE if temperature is None else min(max(temperature, 0.0), 2.0)
        base = _VOICES[profile.name][0]
        return self._pieces(text, base, self._noise(text, base, heat))

    def _noise(self, text: str, voice: str, heat: float) -> NDArray[np.float32]:
        styles = np.stack(
            [style[len(style) // 4] for name, style in self._styles.items() if name.startswith("j")]
        )
        generator = np.random.default_rng(self._entropy(text, voice, heat))
        noise = generator.standard_normal(styles.shape[1]) * styles.std(axis=0) * (_SCALE * heat)
        return np.asarray(noise, dtype=np.float32)

    def _entropy(self, text: str, voice: str, heat: float) -> int | None:
        if self._seed is None:
            return None
        digest = hashlib.sha256(f"{self._seed}\0{voice}\0{heat!r}\0{text}".encode()).digest()
        return int.from_bytes(digest[:16], "big")
