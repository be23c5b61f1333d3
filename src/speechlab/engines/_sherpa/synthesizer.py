"""Voices of sherpa-onnx as an engine: Piper and other VITS voices, Matcha, Kokoro, Kitten."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.engines._chunks import chunk_text
from speechlab.engines._protocols import EngineVoice, checkpoint
from speechlab.engines._sherpa.formats import VOICE_FORMAT
from speechlab.engines._sherpa.phonemes import read_text, select_known
from speechlab.engines._sherpa.process import ModelProcess
from speechlab.engines._sherpa.source import ModelSource
from speechlab.engines._sherpa.voices import VoiceModel, find_voices
from speechlab.engines._speech.phonemes import Reader, ReadHere
from speechlab.engines._speech.synthesis import resolve_voice, speak_pieces
from speechlab.engines._weights.onnx_header import encode_metadata
from speechlab.errors import EngineError, ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.engines._weights.store import ModelStore

# Kokoro's loudest voice peaks at 1.1 of full scale.
_GAINS = {"Kokoro": 0.8}


class SherpaSynthesizer:
    """Voices of sherpa-onnx as a :class:`~speechlab.engines.Synthesizer`, in a process of their own.

    Args:
        model: Folder of the model, the ``.onnx`` file of a voice in it, or a repository of the hub,
            ``owner/name[@revision][:file]``.
        languages: Codes of the languages of all its voices, if the model does not state them.
        threads: Threads of one inference.
        reader: Front end that reads English and Japanese texts; by default in this process.
        store: Model store that remembers what was fetched; the user's cache by default.
        allow_download: Whether a model of the hub is fetched if it is not here.
    """

    def __init__(
        self,
        model: str | Path = "",
        *,
        languages: Sequence[str] = (),
        threads: int = 2,
        reader: Reader | None = None,
        store: ModelStore | None = None,
        allow_download: bool = True,
    ) -> None:
        self._source = ModelSource("sherpa-voice", model, VOICE_FORMAT, store, allow_download=allow_download)
        self._languages = tuple(languages)
        self._found: VoiceModel | None = None
        if self._source.is_here:
            self.find_model()
        self._threads = threads
        self._reader = reader or ReadHere()
        self._process: ModelProcess | None = None

    @property
    def model(self) -> str:
        """Name of the folder or of the file of a Piper voice, or repository and commit."""
        found = self._found
        return Path(found.options["model"]).stem if found is not None and found.piper else self._source.id

    @property
    def sample_rate(self) -> int:
        """Rate of the samples in Hz, as the model states it."""
        return self._model.sample_rate

    @property
    def voices(self) -> Sequence[EngineVoice]:
        """The speakers of the model."""
        return self._model.voices

    def find_model(self) -> None:
        """Find the voices and check their files, without loading them."""
        self._found = find_voices(self._source.find(), self._source.name, self._languages)

    def load(self) -> None:
        """Load the model now instead of on first use, or again if its process has ended."""
        if self._process is not None and self._process.is_running:
            return
        self.close()
        with tempfile.TemporaryDirectory(prefix="speechlab-") as folder:
            self._process = ModelProcess(
                f"the voice in {self._model.folder}",
                _build_settings(self._model, Path(folder), self._threads),
            )
        stated, actual = self._model.sample_rate, self._process.described["sample_rate"]
        if actual != stated:
            self.close()
            raise ModelError(
                f"the voice in {self._model.folder} states {stated} Hz, but speaks at {actual} Hz"
            )

    def close(self) -> None:
        """Release the model; the next use loads it again."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def synthesize(
        self, text: str, voice: str, *, temperature: float | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Speak a text piece by piece (see the protocol); ``temperature`` is ignored."""
        del temperature
        profile = resolve_voice(voice, self.voices, "sherpa-voice")
        self.load()
        return speak_pieces(chunk_text(text), lambda part: self._speak_piece(part, profile), self.sample_rate)

    @property
    def _model(self) -> VoiceModel:
        if self._found is None:
            self.find_model()
        assert self._found is not None
        return self._found

    def _speak_piece(self, text: str, voice: EngineVoice) -> NDArray[np.float32]:
        process = self._process
        if process is None:
            raise EngineError("the engine was closed while it was speaking; start the utterance again")
        if not any(char.isalnum() for char in text):
            return np.zeros(0, dtype=np.float32)
        checkpoint()
        asked: dict[str, Any] = {"text": text.strip(), "speaker": self.voices.index(voice)}
        # Kokoro reads Chinese with the lexicon of its folder.
        reads_text = voice.languages[0] == "zh" and bool(self._model.options.get("lexicon"))
        if self._model.phonemes and not reads_text:
            espeak_voice = self._model.espeak_voice or _to_espeak_voice(voice)
            asked["phonemes"] = read_text(
                text.strip(), self._model.phonemes, espeak_voice, voice.languages[0], self._reader
            )
            if self._model.piper:
                asked["phonemes"] = select_known(asked["phonemes"], self._model.piper["phoneme_id_map"])
            if not asked["phonemes"].strip():
                return np.zeros(0, dtype=np.float32)
        _, data = process.request(asked)
        samples = np.frombuffer(data, dtype=np.float32) * np.float32(_GAINS.get(self._model.kind, 1.0))
        if not samples.size:
            raise EngineError(f"the voice {voice.name!r} cannot read a piece of {len(text)} characters")
        return samples


def _to_espeak_voice(voice: EngineVoice) -> str:
    """Return espeak-ng's name of the language of a voice of Kokoro; its name tells British from American."""
    names = {
        "en": "en-gb" if voice.name.startswith("b") else "en-us",
        "fr": "fr-fr",
        "pt": "pt-br",
        "zh": "cmn",
    }
    return names.get(voice.languages[0], voice.languages[0])


def _build_settings(model: VoiceModel, folder: Path, threads: int) -> dict[str, Any]:
    """Return what the process shall load; a voice as Piper publishes it gets metadata and tokens in ``folder``."""
    options = dict(model.options)
    if model.piper:
        options |= {"model": str(folder / "model.onnx"), "tokens": str(folder / "tokens.txt")}
        shutil.copyfile(model.options["model"], options["model"])
        metadata = {
            "model_type": "vits",
            "comment": "piper",
            "language": model.voices[0].languages[0],
            "voice": model.espeak_voice or model.voices[0].languages[0],
            "has_espeak": "1",
            "n_speakers": str(len(model.voices)),
            "sample_rate": str(model.sample_rate),
        }
        with Path(options["model"]).open("ab") as stream:
            stream.write(encode_metadata(metadata))
        lines = [f"{mark} {ids[0]}\n" for mark, ids in model.piper["phoneme_id_map"].items() if mark != "\n"]
        Path(options["tokens"]).write_text("".join(lines), encoding="utf-8")
    return {"make": "voice", "kind": model.kind, "options": options, "rules": model.rules, "threads": threads}
