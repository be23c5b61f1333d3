"""Whisper on CTranslate2, decoding windows ourselves so that other work can run between them.

Speech is detected first in any case, because Whisper invents text for silence. The recording is shortened to its
speech with some silence around it. The first window of 30 seconds is encoded once; the language is identified on that
encoding, among the supported ones, and the same encoding is then decoded. (``transcribe`` of faster-whisper encodes
it twice, which doubles the cost of a short clip.)

``top_p`` and ``frequency_penalty`` have no counterpart in CTranslate2's Whisper and are ignored.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._require import require
from speechlab.audio import compute_missing_pre_roll
from speechlab.engines._chunks import estimate_spoken_length
from speechlab.engines._protocols import Recognition, RecognitionOptions, RecognitionSegment, checkpoint
from speechlab.engines._recognition.decoding import (
    SAMPLE_RATE,
    Span,
    TimedWord,
    Timeline,
    build_decoder_settings,
    compute_confidence,
    cut_at_pauses,
    find_speech,
    has_repetition,
    join_words_by_span,
    load_whisper_model,
    merge_brief_spans,
    pad_and_join_spans,
    pad_spans,
    shift_segment,
)
from speechlab.engines._weights.specs import WHISPER_BASE
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import EngineError, ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Seconds of silence kept around speech: "off" keeps most of the recording, "on" the speech.
_MARGIN_S = {"off": 1.0, "on": 0.25, "segments": 0.4}
# Probability of the language, among the supported ones, below which it is identified in each piece.
_SURE_PROBABILITY = 0.8
# Characters per second of the slowest speech, in Japanese and Chinese, and in English; less text is
# incomplete.
_MIN_CHARS_PER_S = (1.5, 5.0)
# Minimum length of the text decoded in pieces, as a share of the whole text, if only the language was
# uncertain.
_MIN_LENGTH_RATIO = 0.8
_REQUIRED_FILES = ("config.json", "model.bin", "tokenizer.json")


class WhisperEngine:
    """Whisper as a :class:`~speechlab.engines.Recognizer`.

    Args:
        model: Folder of a CTranslate2 Whisper model; None for the pinned Whisper base.
        store: Model store of the pinned model; the user's cache by default.
        languages: Codes of the languages to recognize and identify.
        threads: Threads of one inference.
        beam_size: Width of the search at temperature 0.
        simplified: Convert Chinese to simplified characters; Whisper writes traditional ones about half the time.
        compute_type: CTranslate2's type of numbers.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        store: ModelStore | None = None,
        languages: Sequence[str] = ("ja", "en", "zh"),
        threads: int = 2,
        beam_size: int = 5,
        simplified: bool = True,
        compute_type: str = "int8",
    ) -> None:
        self._folder = Path(model).expanduser() if model is not None else None
        self._store = store or ModelStore()
        self._languages = tuple(languages)
        self._threads = threads
        self._beam_size = beam_size
        self._simplified = simplified
        self._compute_type = compute_type
        self._whisper: Any = None
        self._converter: Any = None

    @property
    def model(self) -> str:
        """``"whisper-base"``, or the name of the folder."""
        return self._folder.name if self._folder is not None else WHISPER_BASE.name

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the languages that it recognizes and identifies."""
        return self._languages

    def find_model(self) -> None:
        """Find the model, joined and with the right hash, without loading it; the first time takes seconds."""
        self._prepare_model_folder()

    def load(self) -> None:
        """Load the model now instead of on first use: 1 to 2 s, and longer the first time, when it is joined."""
        if self._whisper is None:
            self._whisper = load_whisper_model(
                self._prepare_model_folder(), self._threads, self._compute_type
            )

    def close(self) -> None:
        """Release the model; the next use loads it again."""
        self._whisper = None

    def recognize(self, samples: NDArray[np.float32], options: RecognitionOptions) -> Recognition:
        """Transcribe a recording (see the protocol).

        Without speech, the text is empty, the confidence 0, and the language the given one or the first of
        :attr:`languages`.
        """
        if options.language is not None and options.language not in self._languages:
            allowed = ", ".join(self._languages)
            raise EngineError(
                f"the language {options.language!r} is not recognized here; choose one of: {allowed}"
            )
        if options.vad not in _MARGIN_S:
            raise EngineError(f"vad={options.vad!r} is not known; choose one of: {', '.join(_MARGIN_S)}")
        if samples.ndim != 1:
            raise EngineError(
                f"the samples have the shape {samples.shape}; give one channel, shape (frames,)"
            )
        duration = len(samples) / SAMPLE_RATE
        segmenting = options.vad == "segments"
        speech = find_speech(samples, options.min_silence_gap if segmenting else 400)
        nothing = Recognition("", options.language or self._languages[0], 0.0)
        if not speech:
            return nothing
        self.load()
        checkpoint()  # for half an hour, the detection takes seconds, and so do the features below
        spans = pad_and_join_spans(speech, _MARGIN_S[options.vad], duration)
        shortened = np.concatenate(
            [samples[round(span.start * SAMPLE_RATE) : round(span.end * SAMPLE_RATE)] for span in spans]
        )
        try:
            result, language, certainty = self._decode(shortened, options)
            transcript = "".join(segment.text for segment in result).strip()
            spoken_s = sum(span.end - span.start for span in speech)
            unsure = options.language is None and certainty < _SURE_PROBABILITY
            is_doubtful = (
                has_repetition(transcript) or len(transcript) < spoken_s * _MIN_CHARS_PER_S[language == "en"]
            )
            if unsure or is_doubtful:
                second = self._decode_if_several_pieces(shortened, options)
                second_text = "".join(segment.text for segment in second[0]) if second else ""
                if second and (
                    is_doubtful
                    or estimate_spoken_length(second_text)
                    > _MIN_LENGTH_RATIO * estimate_spoken_length(transcript)
                ):
                    result, language, certainty = second
        except (RuntimeError, ValueError) as error:
            raise EngineError(f"Whisper failed on {duration:.1f} s of audio: {error}") from error
        text = self._simplify_if_chinese("".join(segment.text for segment in result).strip(), language)
        if not text:
            return Recognition("", language, 0.0)
        segments: tuple[RecognitionSegment, ...] = ()
        if segmenting:
            segments = self._build_segments(result, language, Timeline(spans), speech, options, duration)
            text = (
                ("" if language in {"ja", "zh"} else " ").join(segment.text for segment in segments).strip()
            )
        return Recognition(text, language, compute_confidence(result) * certainty, segments)

    def _decode(
        self, sound: NDArray[np.float32], options: RecognitionOptions
    ) -> tuple[list[Any], str, float]:
        whisper = self._whisper
        features = whisper.feature_extractor(sound)
        frames = min(3_000, features.shape[-1] - 1)  # those of 30 s
        first = whisper.encode(require("faster_whisper.audio").pad_or_trim(features[:, :frames]))
        language, certainty = options.language, 1.0
        if language is None:
            language, certainty = self._identify_language(first)
        tokenizer = require("faster_whisper.tokenizer").Tokenizer(
            whisper.hf_tokenizer, whisper.model.is_multilingual, task="transcribe", language=language
        )
        settings = build_decoder_settings(tokenizer, options, self._beam_size, len(sound) / SAMPLE_RATE)
        segments = list(whisper.generate_segments(features, tokenizer, settings, False, first))
        return segments, language, certainty

    def _decode_if_several_pieces(
        self, sound: NDArray[np.float32], options: RecognitionOptions
    ) -> tuple[list[Any], str, float] | None:
        """Decode each piece in its own language; None if there is only one piece.

        A loop cannot cross a pause, whereas words that are really repeated are recognized again. The recording has
        the language of most of its speech.
        """
        decoded: list[Any] = []
        seconds_by_language: dict[str, float] = {}
        sureness = 0.0
        stretches = find_speech(sound, gap_ms=150)
        seams = [(first.end + second.start) / 2 for first, second in itertools.pairwise(stretches)]
        pieces = cut_at_pauses(sound, seams)
        if len(pieces) < 2:
            return None
        for start, end in pieces:
            piece = sound[round(start * SAMPLE_RATE) : round(end * SAMPLE_RATE)]
            segments, language, certainty = self._decode(piece, options)
            decoded += [shift_segment(segment, start) for segment in segments]
            seconds_by_language[language] = seconds_by_language.get(language, 0.0) + end - start
            sureness += certainty * (end - start)
        language = max(seconds_by_language, key=lambda code: seconds_by_language[code])
        return decoded, language, sureness / sum(seconds_by_language.values())

    def _identify_language(self, encoded: Any) -> tuple[str, float]:
        """Return the most probable supported language, and its probability among the supported ones."""
        if not self._whisper.model.is_multilingual:
            return "en", 1.0
        scores = {
            token[2:-2]: float(score) for token, score in self._whisper.model.detect_language(encoded)[0]
        }
        certainties = {code: scores.get(code, 0.0) for code in self._languages}
        best = max(certainties, key=lambda code: certainties[code])
        total = sum(certainties.values())
        return best, (certainties[best] / total if total > 0 else 1.0 / len(certainties))

    def _build_segments(
        self,
        found: Sequence[Any],
        language: str,
        timeline: Timeline,
        speech: Sequence[Span],
        options: RecognitionOptions,
        duration: float,
    ) -> tuple[RecognitionSegment, ...]:
        words = [
            timeline.to_original_word(TimedWord(word.start, max(word.end, word.start), word.word))
            for segment in found
            for word in segment.words or ()
        ]
        pad = options.speech_pad_ms / 1000
        spans = merge_brief_spans(pad_spans(speech, pad, duration), options.min_segment_duration)
        owned = join_words_by_span(words, spans)
        leading = 0.0
        if owned:
            first = owned[0][0].start
            onset = next((span.start for span in speech if span.end > first), 0.0)
            leading = float(compute_missing_pre_roll(options.initial_segment_padding_ms / 1000, onset, first))
        margin = options.segment_padding / 1000
        padded = pad_spans([span for span, _ in owned], margin, duration, leading=leading)
        return tuple(
            RecognitionSegment(
                round(span.start, 3),
                min(round(span.end, 3), duration),
                self._simplify_if_chinese(text, language),
            )
            for span, (_, text) in zip(padded, owned, strict=True)
        )

    def _simplify_if_chinese(self, text: str, language: str) -> str:
        if language != "zh" or not self._simplified or not text:
            return text
        if self._converter is None:
            self._converter = require("opencc").OpenCC("t2s")
        return str(self._converter.convert(text))

    def _prepare_model_folder(self) -> Path:
        if self._folder is None:
            return self._store.ensure_files(WHISPER_BASE)["model.bin"].parent
        absent = [name for name in _REQUIRED_FILES if not (self._folder / name).is_file()]
        if absent:
            raise ModelError(
                f"{self._folder} is not a CTranslate2 Whisper model: it lacks {', '.join(absent)}; "
                f"give a folder made by ct2-transformers-converter with --copy_files tokenizer.json"
            )
        return self._folder
