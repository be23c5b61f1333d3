"""Kokoro-82M, int8, on ONNX Runtime: Japanese and English, 24 kHz; and the same model with a temperature.

The inference is this module's, not the package's. It uses two threads that do not spin, because spinning threads
block cores for other work. It never cuts phonemes off, and trims the half second of silence that the model adds
around each piece. The same text gives the same samples, bit for bit, on the same machine.

Kokoro has no sampling. Its style vector determines the manner of reading. Gaussian noise on that vector changes the
manner but not the words (measured: no change of the error rate from temperature 0 to 1). The standard deviation of
the noise is half of that between the voices, times the temperature. The noise is drawn once for each utterance, so
that the voice is the same in all of its pieces. Each call varies, as with any sampling; with ``seed`` the noise
depends on the seed, the voice, the text and the temperature only.
"""

from __future__ import annotations

import hashlib
import json
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._require import require
from speechlab.engines._chunks import chunk_text, split_to_limit
from speechlab.engines._protocols import EngineVoice
from speechlab.engines._speech.kokoro_voices import list_installed_voices
from speechlab.engines._speech.phonemes import Reader, ReadHere, phonemize
from speechlab.engines._speech.synthesis import resolve_voice, speak_pieces
from speechlab.engines._weights.specs import KOKORO
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE_RATE = 24_000
TOKEN_LIMIT = 500
_STYLE_SIZE = 256
# The loudest voice peaks at 1.1 of full scale. One gain for all keeps the pieces of an utterance at one level.
_GAIN = 0.8

BUNDLED_VOICES = (
    EngineVoice("jf_alpha", ("ja",), "Female", "Kokoro, Japanese, clear and even"),
    EngineVoice("jf_gongitsune", ("ja",), "Female", "Kokoro, Japanese, a story teller"),
    EngineVoice("jf_nezumi", ("ja",), "Female", "Kokoro, Japanese, light"),
    EngineVoice(
        "jf_tebukuro", ("ja",), "Female", "Kokoro, Japanese, warm; the one that recognizers read best"
    ),
    EngineVoice("jm_kumo", ("ja", "en"), "Male", "Kokoro, Japanese, and English just as clearly"),
)


@dataclass(slots=True, weakref_slot=True)
class KokoroModel:
    """The loaded model, shared by all engines of a process that use the same files."""

    session: Any
    vocabulary: dict[str, int]

    def synthesize_tokens(self, tokens: Sequence[int], style: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the samples of at most 500 tokens.

        Args:
            tokens: Tokens without the framing zeros.
            style: Style vector, float32, shape (256,).

        Returns:
            Samples, float32, shape (frames,), at 24 kHz, with the model's silence at both ends.
        """
        inputs = {
            "tokens": np.array([[0, *tokens, 0]], dtype=np.int64),
            "style": style.reshape(1, _STYLE_SIZE).astype(np.float32),
            "speed": np.ones(1, dtype=np.float32),
        }
        return np.asarray(self.session.run(None, inputs)[0], dtype=np.float32).ravel() * np.float32(_GAIN)


_models: weakref.WeakValueDictionary[str, KokoroModel] = weakref.WeakValueDictionary()
_models_lock = threading.Lock()


def _load_shared_model(paths: dict[str, Path], threads: int) -> KokoroModel:
    key = f"{paths['kokoro-v1.0.int8.onnx']}|{threads}"
    with _models_lock:
        model = _models.get(key)
        if model is None:
            runtime = require("onnxruntime")
            options = runtime.SessionOptions()
            options.intra_op_num_threads = threads
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            options.log_severity_level = 3
            session = runtime.InferenceSession(
                str(paths["kokoro-v1.0.int8.onnx"]), options, providers=["CPUExecutionProvider"]
            )
            vocabulary = json.loads(paths["vocab.json"].read_text(encoding="utf-8"))["vocab"]
            model = _models[key] = KokoroModel(session, vocabulary)
    return model


class KokoroEngine:
    """Kokoro as a :class:`~speechlab.engines.Synthesizer`.

    Args:
        store: Model store of the model; the user's cache by default.
        threads: Threads of one inference.
        reader: Front end that reads the texts; by default in this process.
    """

    model = "kokoro-82m-int8"
    sample_rate = SAMPLE_RATE

    def __init__(
        self, *, store: ModelStore | None = None, threads: int = 2, reader: Reader | None = None
    ) -> None:
        self._reader = reader or ReadHere()
        self._store = store or ModelStore()
        self._threads = threads
        self._model: KokoroModel | None = None
        self._styles: dict[str, NDArray[np.float32]] = {}

    @property
    def voices(self) -> Sequence[EngineVoice]:
        """The bundled Japanese voices, and the English ones once ``kokoro-voices`` has been added."""
        return (*BUNDLED_VOICES, *(voice for voice, _ in list_installed_voices(self._store)))

    def find_model(self) -> None:
        """Find the model, joined and with the right hash, without loading it; the first time takes seconds."""
        self._store.ensure_files(KOKORO)

    def load(self) -> None:
        """Load the model now instead of on first use: 1 to 2 s, and longer the first time, when it is joined."""
        if self._model is not None:
            return
        paths = self._store.ensure_files(KOKORO)
        with np.load(paths["voices_ja.npz"]) as bundled:
            self._styles = {
                name: bundled[name].reshape(-1, _STYLE_SIZE).astype(np.float32) for name in bundled.files
            }
        self._model = _load_shared_model(paths, self._threads)

    def close(self) -> None:
        """Release the model; the next use loads it again."""
        self._model = None
        self._styles = {}

    def synthesize(
        self, text: str, voice: str, *, temperature: float | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Speak a text piece by piece (see the protocol); ``temperature`` is ignored."""
        del temperature
        profile = resolve_voice(voice, self.voices, "kokoro")
        self.load()
        return self._speak_text(text, profile.name, np.zeros(_STYLE_SIZE, dtype=np.float32))

    def _speak_text(self, text: str, voice: str, shift: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
        british = voice.startswith("b")
        return speak_pieces(
            chunk_text(text), lambda part: self._speak_piece(part, voice, shift, british), SAMPLE_RATE
        )

    def _speak_piece(
        self, text: str, voice: str, shift: NDArray[np.float32], british: bool
    ) -> NDArray[np.float32]:
        model = self._model
        if model is None:
            raise EngineError("the engine was closed while it was speaking; start the utterance again")
        read = "".join(
            char for char in phonemize(text, self._reader, british=british) if char in model.vocabulary
        )
        if not any(char.isalpha() for char in read):
            return np.zeros(0, dtype=np.float32)
        if voice not in self._styles:
            paths = {installed.name: path for installed, path in list_installed_voices(self._store)}
            raw = np.fromfile(paths[voice], dtype="<f4").reshape(-1, _STYLE_SIZE)
            self._styles[voice] = raw.astype(np.float32)
        style = self._styles[voice]
        sounds = []
        for piece in split_to_limit(read, TOKEN_LIMIT):
            tokens = [model.vocabulary[char] for char in piece]
            row = style[min(len(tokens), len(style)) - 1] + shift
            try:
                sounds.append(model.synthesize_tokens(tokens, row))
            except Exception as error:
                # ONNX Runtime raises classes of its own. Their messages contain shapes, but never the user's text.
                raise EngineError(f"Kokoro failed on a piece of {len(tokens)} phonemes: {error}") from error
        return np.concatenate(sounds)


_EXPRESSIVE_VOICES = {
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
        return tuple(voice for _, voice in _EXPRESSIVE_VOICES.values())

    def synthesize(
        self, text: str, voice: str, *, temperature: float | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Speak a text piece by piece (see the protocol)."""
        profile = resolve_voice(voice, self.voices, "q")
        self.load()
        # 0.5 is the contract's default for voices with a temperature.
        heat = 0.5 if temperature is None else min(max(temperature, 0.0), 2.0)
        base = _EXPRESSIVE_VOICES[profile.name][0]
        return self._speak_text(text, base, self._generate_style_noise(text, base, heat))

    def _generate_style_noise(self, text: str, voice: str, heat: float) -> NDArray[np.float32]:
        styles = np.stack(
            [style[len(style) // 4] for name, style in self._styles.items() if name.startswith("j")]
        )
        entropy: int | None = None
        if self._seed is not None:
            digest = hashlib.sha256(f"{self._seed}\0{voice}\0{heat!r}\0{text}".encode()).digest()
            entropy = int.from_bytes(digest[:16], "big")
        generator = np.random.default_rng(entropy)
        # Half of what sets voices apart, at a temperature of 1: up to there, other readings had no more errors (WER).
        noise = generator.standard_normal(styles.shape[1]) * styles.std(axis=0) * (0.5 * heat)
        return np.asarray(noise, dtype=np.float32)
