"""Whisper on CTranslate2, decoding windows ourselves so that other work can run between them.

Speech is detected first in any case, because Whisper invents text for silence. The recording is shortened to its
speech with some silence around it. The first window of 30 seconds is encoded once; the language is identified on that
encoding, among the supported ones, and the same encoding is then decoded. (``transcribe`` of faster-whisper encodes
it twice, which doubles the cost of a short clip.)

``top_p`` and ``frequency_penalty`` have no counterpart in CTranslate2's Whisper and are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._require import require
from speechlab.engines._chunks import estimate_spoken_length
from speechlab.engines._devices import choose_device, find_ctranslate2_problem
from speechlab.engines._protocols import (
    Recognition,
    RecognitionOptions,
    RecognitionSegment,
    checkpoint,
    list_some_codes,
)
from speechlab.engines._recognition.decoding import (
    SAMPLE_RATE,
    Span,
    TimedWord,
    Timeline,
    build_decoder_settings,
    build_segments,
    check_compute_type,
    check_input,
    compute_confidence,
    find_speech,
    has_repetition,
    load_whisper_model,
    pad_and_join_spans,
    shift_segment,
)
from speechlab.engines._recognition.gaps import (
    Decoded,
    change_texts,
    choose_main_language,
    fill_gap,
    find_gaps,
    get_min_chars_per_s,
)
from speechlab.engines._recognition.repeats import (
    choose_tested_piece,
    cut_into_pieces,
    find_repeating_windows,
    is_alike,
    replace_window,
)
from speechlab.engines._recognition.word_times import align_words
from speechlab.engines._weights.formats import WHISPER_FORMAT, WHISPER_SIZES
from speechlab.engines._weights.hub import FetchedModel, find_or_fetch_model, format_model_id
from speechlab.engines._weights.names import parse_model_name
from speechlab.engines._weights.official import find_official_source
from speechlab.engines._weights.specs import WHISPER_BASE
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import EngineError, ModelError
from speechlab.text import writes_without_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.engines._recognition.word_times import Place

_DEFAULT_LANGUAGES = ("ja", "en", "zh")
# Seconds of silence kept around speech: "off" keeps most of the recording, "on" the speech.
_MARGIN_S = {"off": 1.0, "on": 0.25, "segments": 0.4}
# Probability of the language, among the supported ones, below which it is identified in each piece.
_SURE_PROBABILITY = 0.8
# Seconds of sound around speech that is decoded alone.
_GAP_MARGIN_S = 0.2
# Minimum length of the text decoded in pieces, as a share of the whole text, if only the language was
# uncertain.
_MIN_LENGTH_RATIO = 0.8
# Tokens of languages, and the number of the last text's end in models of English alone.
_LANGUAGE_TOKEN = re.compile(r'"content": ?"<\|([a-z]{2,3})\|>"')
_ENGLISH_ONLY = re.compile(r'"id": ?50256,\s*"content": ?"<\|endoftext\|>"')


class WhisperEngine:
    """Whisper as a :class:`~speechlab.engines.Recognizer`.

    Args:
        model: Folder of a CTranslate2 Whisper model, a usual size such as ``"large-v3-turbo"``, or a repository of
            the hub, ``owner/name[@revision]``; None for the pinned Whisper base.
        store: Model store of the pinned model; the user's cache by default.
        languages: Codes of the languages to identify; others of the model are recognized if they are named.
        threads: Threads of one inference.
        beam_size: Width of the search at temperature 0.
        simplified: Convert Chinese to simplified characters; Whisper writes traditional ones about half the time.
        compute_type: CTranslate2's type of numbers; by default int8 on the CPU, and float16 on a GPU.
        device: ``"auto"`` (a GPU, if machine and libraries can), ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        allow_download: Whether a named model is fetched if it is not here.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        store: ModelStore | None = None,
        languages: Sequence[str] = _DEFAULT_LANGUAGES,
        threads: int = 2,
        beam_size: int = 5,
        simplified: bool = True,
        compute_type: str | None = None,
        device: str = "auto",
        allow_download: bool = True,
    ) -> None:
        self._store = store or ModelStore()
        self._source = (
            find_official_source(WHISPER_BASE, self._store)
            if model is None
            else parse_model_name(model, WHISPER_SIZES)
        )
        self._found: FetchedModel | None = None
        self._languages = tuple(languages)
        self._device = device
        self._allow_download = allow_download
        self._threads = threads
        self._beam_size = beam_size
        self._simplified = simplified
        self._compute_type = compute_type
        self._known_languages: tuple[str, ...] | None = None
        self._whisper: Any = None
        self._converter: Any = None

    @property
    def model(self) -> str:
        """``"whisper-base"``, the name of the folder, or repository and commit."""
        return WHISPER_BASE.name if self._source is None else format_model_id(self._source, self._found)

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the languages that it identifies, then those that it recognizes if they are named."""
        if self._known_languages is None:
            self._known_languages = self._find_known_languages()
        return self._known_languages

    def find_model(self) -> None:
        """Find the model, joined and with the right hash, without loading it; the first time takes seconds."""
        device = choose_device(self._device, find_ctranslate2_problem)
        check_compute_type(self._compute_type, device)
        self._prepare_model_folder()
        self._check_languages()

    def load(self) -> None:
        """Load the model now instead of on first use: 1 to 2 s, and longer the first time, when it is joined."""
        if self._whisper is None:
            folder = self._prepare_model_folder()
            device = choose_device(self._device, find_ctranslate2_problem)
            self._whisper = load_whisper_model(folder, self._threads, self._compute_type, device)

    def close(self) -> None:
        """Release the model; the next use loads it again."""
        self._whisper = None

    def recognize(self, samples: NDArray[np.float32], options: RecognitionOptions) -> Recognition:
        """Transcribe a recording (see the protocol).

        Without speech, the text is empty, the confidence 0, and the language the given one or the first of
        :attr:`languages`.
        """
        check_input(samples, options, self.languages)
        duration = len(samples) / SAMPLE_RATE
        segmenting = options.vad == "segments"
        speech = find_speech(samples, options.min_silence_gap if segmenting else 400)
        if not speech:
            return Recognition("", options.language or self.languages[0], 0.0)
        self.load()
        checkpoint()  # for half an hour, the detection takes seconds, and so do the features below
        spans = pad_and_join_spans(speech, _MARGIN_S[options.vad], duration)
        timeline = Timeline(spans)
        shortened = np.concatenate(
            [samples[round(span.start * SAMPLE_RATE) : round(span.end * SAMPLE_RATE)] for span in spans]
        )
        try:
            stretches = [timeline.to_shortened_span(span) for span in speech]
            decoded = self._decode_all(shortened, options, stretches)
        except (RuntimeError, ValueError) as error:
            raise EngineError(f"Whisper failed on {duration:.1f} s of audio: {error}") from error
        confidence = compute_confidence(decoded.segments) * decoded.certainty
        if decoded.is_mixed:
            decoded = change_texts(decoded, self._simplify_if_chinese)
        text, language = decoded.text.strip(), decoded.language
        if not decoded.is_mixed:
            text = self._simplify_if_chinese(text, language)
        segments: tuple[RecognitionSegment, ...] = ()
        if segmenting:
            segments = self._build_segments(decoded, timeline, speech, options, duration)
            separator = "" if writes_without_spaces(language) else " "
            text = separator.join(segment.text for segment in segments if segment.text).strip()
        if not text and not segments:
            return Recognition("", language, 0.0)
        return Recognition(text, language, confidence if text else 0.0, segments)

    def align(
        self, samples: NDArray[np.float32], text: str, places: Sequence[Place], language: str
    ) -> NDArray[np.float64]:
        """Return start, end and confidence of words of a text that was said; ``places`` says where they are in it."""
        options = RecognitionOptions(language=language)
        check_input(samples, options, self.languages)
        self.load()
        try:
            return align_words(
                self._whisper, samples, text, places, language, lambda part: self._decode(part, options).text
            )
        except RuntimeError as error:
            raise EngineError(f"Whisper failed on {len(text)} characters of text: {error}") from error

    def _decode_all(
        self, sound: NDArray[np.float32], options: RecognitionOptions, stretches: Sequence[Span]
    ) -> Decoded:
        """Decode a recording, in pieces if it is doubtful, and again where text is missing."""
        decoded = self._decode(sound, options)
        transcript = decoded.text.strip()
        spoken_s = sum(stretch.end - stretch.start for stretch in stretches)
        unsure = options.language is None and decoded.certainty < _SURE_PROBABILITY
        repeats = has_repetition(transcript)
        lacks_text = len(transcript) < spoken_s * get_min_chars_per_s(decoded.language)
        is_doubtful = repeats or lacks_text
        if repeats and not (unsure or lacks_text):
            decoded = self._decode_loops(decoded, sound, options)
        elif unsure or is_doubtful:
            second = self._decode_if_several_pieces(sound, options)
            if second and (
                is_doubtful
                or estimate_spoken_length(second.text)
                > _MIN_LENGTH_RATIO * estimate_spoken_length(transcript)
            ):
                return second
        # One stretch alone would be the same sound again.
        return self._decode_gaps(decoded, sound, options, stretches) if len(stretches) > 1 else decoded

    def _decode(self, sound: NDArray[np.float32], options: RecognitionOptions) -> Decoded:
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
        finds_language = options.language is None and whisper.model.is_multilingual
        whisper.identify = self._identify_language if finds_language else None
        whisper.window_language = ""
        pairs = [
            (segment, whisper.window_language)  # that of its window: the next one is decoded later
            for segment in whisper.generate_segments(features, tokenizer, settings, False, first)
        ]
        decoded = Decoded(
            tuple(segment for segment, _ in pairs), tuple(code for _, code in pairs), language, certainty
        )
        return choose_main_language(decoded) if decoded.is_mixed else decoded

    def _decode_gaps(
        self,
        decoded: Decoded,
        sound: NDArray[np.float32],
        options: RecognitionOptions,
        stretches: Sequence[Span],
    ) -> Decoded:
        """Decode stretches of speech alone that have hardly any text."""
        filled, duration = decoded, len(sound) / SAMPLE_RATE
        for gap in find_gaps(decoded, stretches):
            start, end = max(0.0, gap.start - _GAP_MARGIN_S), min(duration, gap.end + _GAP_MARGIN_S)
            found = self._decode(sound[round(start * SAMPLE_RATE) : round(end * SAMPLE_RATE)], options)
            if not has_repetition(found.text):
                shifted = tuple(shift_segment(segment, start) for segment in found.segments)
                filled = fill_gap(filled, gap, replace(found, segments=shifted))
        return choose_main_language(filled) if filled.is_mixed else filled

    def _decode_loops(
        self, decoded: Decoded, sound: NDArray[np.float32], options: RecognitionOptions
    ) -> Decoded:
        """Decode the windows whose text repeats itself in pieces, unless a piece says that it is so in the sound."""
        # From the end: the numbers of earlier segments stay.
        for window in reversed(find_repeating_windows(decoded, len(sound) / SAMPLE_RATE)):
            part = sound[round(window.span.start * SAMPLE_RATE) : round(window.span.end * SAMPLE_RATE)]
            pieces = cut_into_pieces(part)
            if len(pieces) < 2:
                continue
            number, text = choose_tested_piece(window, pieces)
            start, end = (round(limit * SAMPLE_RATE) for limit in pieces[number])
            alone = replace(options, language=window.language, vad="off")
            if is_alike(text, self._decode(part[start:end], alone).text):
                continue
            if found := self._decode_if_several_pieces(part, options):
                shifted = tuple(shift_segment(segment, window.span.start) for segment in found.segments)
                decoded = replace_window(decoded, window, replace(found, segments=shifted))
        return choose_main_language(decoded) if decoded.is_mixed else decoded

    def _decode_if_several_pieces(
        self, sound: NDArray[np.float32], options: RecognitionOptions
    ) -> Decoded | None:
        """Decode each piece in its own language; None if there is only one piece.

        A loop cannot cross a pause, whereas words that are really repeated are recognized again. The recording has
        the language of most of its speech.
        """
        segments: list[Any] = []
        languages: list[str] = []
        seconds_by_language: dict[str, float] = {}
        sureness = 0.0
        pieces = cut_into_pieces(sound)
        if len(pieces) < 2:
            return None
        for start, end in pieces:
            decoded = self._decode(sound[round(start * SAMPLE_RATE) : round(end * SAMPLE_RATE)], options)
            segments += [shift_segment(segment, start) for segment in decoded.segments]
            languages += decoded.languages
            code = decoded.language
            seconds_by_language[code] = seconds_by_language.get(code, 0.0) + end - start
            sureness += decoded.certainty * (end - start)
        language = max(seconds_by_language, key=lambda code: seconds_by_language[code])
        certainty = sureness / sum(seconds_by_language.values())
        return Decoded(tuple(segments), tuple(languages), language, certainty)

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
        decoded: Decoded,
        timeline: Timeline,
        speech: Sequence[Span],
        options: RecognitionOptions,
        duration: float,
    ) -> tuple[RecognitionSegment, ...]:
        words = [
            timeline.to_original_word(TimedWord(word.start, max(word.end, word.start), word.word))
            for segment in decoded.segments
            for word in segment.words or ()
        ]
        segments = build_segments(words, speech, options, duration)
        if decoded.is_mixed:  # each text has been simplified in its own language
            return segments
        return tuple(
            replace(segment, text=self._simplify_if_chinese(segment.text, decoded.language))
            for segment in segments
        )

    def _simplify_if_chinese(self, text: str, language: str) -> str:
        if language != "zh" or not self._simplified or not text:
            return text
        if self._converter is None:
            self._converter = require("opencc").OpenCC("t2s")
        return str(self._converter.convert(text))

    def _find_known_languages(self) -> tuple[str, ...]:
        try:
            tokenizer = (self._prepare_model_folder() / "tokenizer.json").read_text(encoding="utf-8")
        except (ModelError, OSError):  # said when the model is needed
            return self._languages
        if _ENGLISH_ONLY.search(tokenizer):
            return ("en",)
        return tuple(dict.fromkeys([*self._languages, *sorted(set(_LANGUAGE_TOKEN.findall(tokenizer)))]))

    def _check_languages(self) -> None:
        """Refuse languages that the model does not know; Whisper fails on them only when it identifies one."""
        extra = set(self._languages) - set(_DEFAULT_LANGUAGES)
        if extra:
            tokenizer = (self._prepare_model_folder() / "tokenizer.json").read_text(encoding="utf-8")
            known = {"en"} if _ENGLISH_ONLY.search(tokenizer) else set(_LANGUAGE_TOKEN.findall(tokenizer))
            if unknown := sorted(extra - known):
                listed = list_some_codes(sorted(known))
                raise ModelError(f"{self.model} does not know the languages {unknown}; it knows {listed}")

    def _prepare_model_folder(self) -> Path:
        if self._source is None:
            return self._store.ensure_files(WHISPER_BASE)["model.bin"].parent
        if self._found is None:
            self._found = find_or_fetch_model(
                self._source, WHISPER_FORMAT, self._store, allow_download=self._allow_download
            )
        return self._found.main.parent
