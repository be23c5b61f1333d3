"""Kokoro-82M on ONNX Runtime: Japanese and English, 24 kHz; and the same model with a temperature.

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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from speechlab.engines._chunks import chunk_text, split_to_limit
from speechlab.engines._devices import Device, choose_device, find_onnxruntime_problem
from speechlab.engines._protocols import EngineVoice
from speechlab.engines._speech.kokoro_model import (
    STYLE_SIZE,
    KokoroModel,
    describe_voices,
    load_shared_model,
    read_styles,
)
from speechlab.engines._speech.kokoro_voices import list_installed_voices
from speechlab.engines._speech.phonemes import Reader, ReadHere, phonemize
from speechlab.engines._speech.synthesis import resolve_voice, speak_pieces
from speechlab.engines._weights.formats import build_kokoro_format
from speechlab.engines._weights.hub import FetchedModel, find_or_fetch_model, format_model_id
from speechlab.engines._weights.names import parse_model_name
from speechlab.engines._weights.official import find_official_source
from speechlab.engines._weights.specs import KOKORO
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE_RATE = 24_000
TOKEN_LIMIT = 500
# Precisions in which a GPU is faster; it does not know the integers of the others.
_GPU_PRECISIONS = ("fp16", "fp32")

BUNDLED_VOICES = (
    EngineVoice("jf_alpha", ("ja",), "Female", "Kokoro, Japanese, clear and even"),
    EngineVoice("jf_gongitsune", ("ja",), "Female", "Kokoro, Japanese, a story teller"),
    EngineVoice("jf_nezumi", ("ja",), "Female", "Kokoro, Japanese, light"),
    EngineVoice(
        "jf_tebukuro", ("ja",), "Female", "Kokoro, Japanese, warm; the one that recognizers read best"
    ),
    EngineVoice("jm_kumo", ("ja", "en"), "Male", "Kokoro, Japanese, and English just as clearly"),
)


_PINNED_ID = "kokoro-82m-int8"


class KokoroEngine:
    """Kokoro as a :class:`~speechlab.engines.Synthesizer`.

    Args:
        model: Folder of Kokoro in ONNX with its voices, the path of a model in it, or a repository of the hub,
            ``owner/name[@revision][:file]``; None for the pinned model, or with a precision for the usual repository.
        precision: Precision of a named model: ``"fp32"``, ``"fp16"``, ``"int8"`` and others; by default fp32.
        store: Model store of the model; the user's cache by default.
        threads: Threads of one inference.
        reader: Front end that reads the texts; by default in this process.
        device: ``"auto"`` (a GPU for fp16 and fp32, if machine and libraries can), ``"cpu"``, ``"cuda"`` or
            ``"cuda:1"``.
        allow_download: Whether a named model is fetched if it is not here.
    """

    sample_rate = SAMPLE_RATE

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        precision: str | None = None,
        store: ModelStore | None = None,
        threads: int = 2,
        reader: Reader | None = None,
        device: str = "auto",
        allow_download: bool = True,
    ) -> None:
        is_named = model is not None or precision is not None
        self._precision = precision or ("fp32" if is_named else "int8")
        self._format = build_kokoro_format(self._precision)
        self._store = store or ModelStore()
        self._source = (
            parse_model_name(model or "kokoro", self._format.usual)
            if is_named
            else find_official_source(KOKORO, self._store)
        )
        self._found: FetchedModel | None = None
        self._device = device
        self._allow_download = allow_download
        self._reader = reader or ReadHere()
        self._threads = threads
        self._model: KokoroModel | None = None
        self._styles: dict[str, NDArray[np.float32]] = {}

    @property
    def model(self) -> str:
        """``"kokoro-82m-int8"``, the name of the folder or file, or repository and commit."""
        return _PINNED_ID if self._source is None else format_model_id(self._source, self._found)

    @property
    def voices(self) -> Sequence[EngineVoice]:
        """The bundled Japanese voices, and the English ones once ``kokoro-voices`` has been added.

        Of a named model those of its files whose language can be read; they are looked for, and fetched if necessary.
        """
        if self._source is None:
            return (*BUNDLED_VOICES, *(voice for voice, _ in list_installed_voices(self._store)))
        if not self._styles:
            self._styles = read_styles(self._find_named_model().files)
        return describe_voices(list(self._styles), BUNDLED_VOICES)

    def find_model(self) -> None:
        """Find the model, joined and with the right hash, without loading it; the first time takes seconds."""
        self._choose_device()
        if self._source is None:
            self._store.ensure_files(KOKORO)
        else:
            self._find_named_model()

    def _find_named_model(self) -> FetchedModel:
        assert self._source is not None
        if self._found is None:
            self._found = find_or_fetch_model(
                self._source, self._format, self._store, allow_download=self._allow_download
            )
        return self._found

    def _choose_device(self) -> Device:
        # A model of integers is no faster on a GPU.
        is_float = self._source is not None and self._precision in _GPU_PRECISIONS
        wanted = self._device if is_float or self._device != "auto" else "cpu"
        return choose_device(wanted, find_onnxruntime_problem)

    def load(self) -> None:
        """Load the model now instead of on first use: 1 to 2 s, and longer the first time, when it is joined."""
        if self._model is not None:
            return
        if self._source is not None:
            files = self._find_named_model().files
            main = self._find_named_model().main
            vocabulary = files.get("tokenizer.json") or self._store.ensure_files(KOKORO)["vocab.json"]
            self._styles = self._styles or read_styles(files)
        else:
            paths = self._store.ensure_files(KOKORO)
            main, vocabulary = paths["kokoro-v1.0.int8.onnx"], paths["vocab.json"]
            self._styles = read_styles({"voices_ja.npz": paths["voices_ja.npz"]})
        self._model = load_shared_model(main, vocabulary, self._threads, self._choose_device())

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
        return self._speak_text(text, profile.name, np.zeros(STYLE_SIZE, dtype=np.float32))

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
            raw = np.fromfile(paths[voice], dtype="<f4").reshape(-1, STYLE_SIZE)
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
    def model(self) -> str:
        """``"kokoro-82m-int8-expressive"``."""
        return f"{_PINNED_ID}-expressive"

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
