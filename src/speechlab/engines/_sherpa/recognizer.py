"""Recognizers of sherpa-onnx as an engine: NeMo (Parakeet), Zipformer, SenseVoice, Paraformer, Whisper, Moonshine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.engines._protocols import Recognition, RecognitionOptions, checkpoint
from speechlab.engines._recognition.decoding import (
    SAMPLE_RATE,
    Span,
    TimedWord,
    build_segments,
    check_input,
    cut_at_pauses,
    find_speech,
    pad_and_join_spans,
    pad_spans,
)
from speechlab.engines._sherpa.formats import build_recognizer_format
from speechlab.engines._sherpa.layouts import RecognizerModel, find_recognizer
from speechlab.engines._sherpa.process import ModelProcess
from speechlab.engines._sherpa.source import ModelSource
from speechlab.text import guess_language, join_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.engines._weights.store import ModelStore

# Seconds of sound that are recognized at once: Whisper takes 30, and the memory of others grows with the square.
_MAX_PIECE_S = 25.0
_MARGIN_S = 0.25
# Seconds of a token after which no other comes.
_LAST_TOKEN_S = 0.2
# The confidence where a model reports no probabilities.
_UNKNOWN_CONFIDENCE = 0.5
_WITH_LANGUAGE = ("from_whisper", "from_sense_voice")


class SherpaRecognizer:
    """A recognizer of sherpa-onnx as a :class:`~speechlab.engines.Recognizer`, in a process of its own.

    ``hotwords`` and the options of sampling are ignored.

    Args:
        model: Folder of the model, with its ``.onnx`` files and ``tokens.txt``, or a repository of the hub,
            ``owner/name[@revision]``.
        languages: Codes of its languages, if neither the model nor the folder's name states them.
        precision: ``"int8"`` or ``"float32"``, if the folder has both.
        threads: Threads of one inference.
        store: Model store that remembers what was fetched; the user's cache by default.
        allow_download: Whether a model of the hub is fetched if it is not here.
    """

    def __init__(
        self,
        model: str | Path = "",
        *,
        languages: Sequence[str] = (),
        precision: str = "int8",
        threads: int = 2,
        store: ModelStore | None = None,
        allow_download: bool = True,
    ) -> None:
        self._source = ModelSource(
            "sherpa", model, build_recognizer_format(precision), store, allow_download=allow_download
        )
        self._languages = tuple(languages)
        self._precision = precision
        self._found: RecognizerModel | None = None
        if self._source.is_here:
            self.find_model()
        self._threads = threads
        self._process: ModelProcess | None = None

    @property
    def model(self) -> str:
        """Name of the folder, or repository and commit."""
        return self._source.id

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the model's languages."""
        return self._get_model().languages

    def find_model(self) -> None:
        """Find the model and check its files, without loading them."""
        self._found = find_recognizer(
            self._source.find(), self._source.name, self._languages, self._precision
        )

    def load(self) -> None:
        """Load the model now instead of on first use, or again if its process has ended."""
        if self._process is None or not self._process.is_running:
            self.close()
            what = f"the model in {self._get_model().folder}"
            self._process = ModelProcess(what, self._build_settings())

    def close(self) -> None:
        """Release the model; the next use loads it again."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def recognize(self, samples: NDArray[np.float32], options: RecognitionOptions) -> Recognition:
        """Transcribe a recording (see the protocol); without speech, the text is empty and the confidence 0."""
        check_input(samples, options, self.languages)
        duration = len(samples) / SAMPLE_RATE
        segmenting = options.vad == "segments"
        speech = find_speech(samples, options.min_silence_gap if segmenting else 400)
        if not speech:
            return Recognition("", options.language or self.languages[0], 0.0)
        self.load()
        words: list[TimedWord] = []
        texts, log_probabilities = [], []
        seconds_by_language: dict[str, float] = {}
        for span in _cut_pieces(samples, speech, duration, segmenting=segmenting):
            checkpoint()
            reply = self._recognize_piece(samples, span, options.language)
            words += _build_words(reply, span)
            texts.append(reply["text"])
            log_probabilities += reply["log_probabilities"]
            code = reply["language"].strip("<|>")
            if reply["text"].strip() and code in self.languages:
                seconds_by_language[code] = seconds_by_language.get(code, 0.0) + span.end - span.start
        language = options.language or self._choose_language(texts, seconds_by_language)
        segments = build_segments(words, speech, options, duration) if segmenting else ()
        text = join_texts([segment.text for segment in segments] if segmenting else texts, language)
        if not text:
            return Recognition("", language, 0.0)
        confidence = _UNKNOWN_CONFIDENCE
        if log_probabilities:
            confidence = min(1.0, math.exp(sum(log_probabilities) / len(log_probabilities)))
        return Recognition(text, language, confidence, segments)

    def _get_model(self) -> RecognizerModel:
        if self._found is None:
            self.find_model()
        assert self._found is not None
        return self._found

    def _build_settings(self) -> dict[str, Any]:
        model = self._get_model()
        return {
            "make": "recognizer",
            "factory": model.factory,
            "options": model.options | {"num_threads": self._threads},
            "takes_language": model.identifies and model.factory in _WITH_LANGUAGE,
        }

    def _recognize_piece(
        self, samples: NDArray[np.float32], span: Span, language: str | None
    ) -> dict[str, Any]:
        process = self._process
        assert process is not None
        piece = samples[round(span.start * SAMPLE_RATE) : round(span.end * SAMPLE_RATE)]
        asked = {"language": (language or "") if self._get_model().identifies else ""}
        return process.request(asked, np.asarray(piece, dtype=np.float32).tobytes())[0]

    def _choose_language(self, texts: Sequence[str], seconds_by_language: dict[str, float]) -> str:
        """Return the language of most of the speech; empty if the model does not say which of several it is."""
        if seconds_by_language:
            return max(seconds_by_language, key=lambda code: seconds_by_language[code])
        if len(self.languages) == 1:
            return self.languages[0]
        guessed = guess_language(texts)
        return guessed if guessed and guessed in self.languages else ""


def _cut_pieces(
    samples: NDArray[np.float32], speech: Sequence[Span], duration: float, *, segmenting: bool
) -> list[Span]:
    """Return the parts to recognize one by one; with segments, each is a stretch of speech or less."""
    spans = (
        pad_spans(speech, _MARGIN_S, duration)
        if segmenting
        else pad_and_join_spans(speech, _MARGIN_S, duration)
    )
    pieces = []
    for span in spans:
        if span.end - span.start <= _MAX_PIECE_S:
            pieces.append(span)
            continue
        sound = samples[round(span.start * SAMPLE_RATE) : round(span.end * SAMPLE_RATE)]
        pieces += [Span(span.start + start, span.start + end) for start, end in cut_at_pauses(sound, ())]
    return pieces


def _build_words(reply: dict[str, Any], span: Span) -> list[TimedWord]:
    """Return the words of a piece, with their times in the recording where the model gives times of tokens."""
    text, times = reply["text"].strip(), reply["times"]
    tokens = [token.replace("▁", " ") for token in reply["tokens"]]
    if not text:
        return []
    if not times or len(times) != len(tokens) or "".join(tokens).strip() != text:
        return [TimedWord(span.start, span.end, f" {text}")]
    starts = [min(span.end, span.start + time) for time in times]
    words: list[TimedWord] = []
    for token, start, following in itertools.zip_longest(tokens, starts, starts[1:]):
        end = min(span.end, start + _LAST_TOKEN_S) if following is None else max(start, following)
        if words and not token.startswith(" ") and words[-1].text[-1:].isascii() and token.isascii():
            words[-1] = TimedWord(words[-1].start, end, words[-1].text + token)
        else:
            words.append(TimedWord(start, end, token))
    return words
