"""Decoding with Whisper: the model, the settings of the search, guards against loops, and stretches of speech.

Stretches of speech, and how they become segments, have times in seconds.
"""

from __future__ import annotations

import itertools
import math
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._require import require
from speechlab.audio import compute_merged_span_indices, compute_missing_pre_roll, widen_spans
from speechlab.engines._protocols import RecognitionOptions, RecognitionSegment, checkpoint, list_some_codes
from speechlab.errors import ConfigurationError, EngineError, ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.engines._devices import Device

_RUNAWAY_RATIO = 2.4
# Probability of another language, among the supported ones, from which a window is decoded in it.
_CLEAR_PROBABILITY = 0.9
# Maximum tokens: for each second of audio, and in addition for a recording. Speech has fewer; a loop ends
# there.
_TOKENS_PER_S, _TOKENS = 20, 20
_SENTENCE_END = re.compile(r"[.。!！?？,、，]+\s*")
# In the letters alone: one letter eight times in a row, or 2 to 20 letters six times in a row.
_SHORT_LOOP = re.compile(r"(.)\1{7}|(.{2,20}?)\2{5}")
_NON_LETTERS = re.compile(r"[\W_]+")


def check_compute_type(compute_type: str | None, device: Device) -> None:
    """Refuse a type of numbers that the library does not have on a device, before the model is loaded.

    Raises:
        ConfigurationError: The device does not have it.
    """
    if compute_type in {None, "default", "auto"}:
        return
    supported = require("ctranslate2").get_supported_compute_types(device.kind, device.index)
    if compute_type not in supported:
        choices = ", ".join(["auto", *sorted(supported)])
        raise ConfigurationError(
            f"compute_type={compute_type!r} is not known on the device {device.kind!r}; choose one of: {choices}"
        )


def load_whisper_model(folder: Path, threads: int, compute_type: str | None, device: Device) -> Any:
    """Load a model; without a type of numbers, float16 on a GPU that has it, and int8 on the CPU."""
    if compute_type is None and device.kind == "cuda":
        has_float16 = "float16" in require("ctranslate2").get_supported_compute_types("cuda", device.index)
        compute_type = "float16" if has_float16 else "float32"
    try:
        return _define_guarded_model()(
            str(folder),
            device=device.kind,
            device_index=device.index,
            compute_type=compute_type or "int8",
            cpu_threads=threads,
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(
            f"the Whisper model in {folder} cannot be loaded: {error}; check or replace the folder"
        ) from error


def _define_guarded_model() -> Any:
    """Return the library's class of a model, guarded against loops; the library is imported when it is needed."""
    library = require("faster_whisper")

    class LoopGuardedModel(library.WhisperModel):  # type: ignore[name-defined,misc]  # the library is imported when it is needed
        """Decodes a window that reached no end a second time: without repetition, and without sampling.

        Text that compresses well can be a loop, or speech that repeats itself. Decoding the recording in pieces
        separates them.

        With ``identify``, each window after the first has its own language, if that is clear.
        """

        identify: Callable[[Any], tuple[str, float]] | None = None
        window_language = main_language = ""

        def encode(self, features: Any) -> Any:
            checkpoint()
            return super().encode(features)

        def generate_with_fallback(self, encoded: Any, prompt: Any, tokenizer: Any, options: Any) -> Any:
            checkpoint()
            prompt = self.adapt_prompt(encoded, prompt, tokenizer)
            # CTranslate2 stops at half of the maximum length, or when prompt and text together have that length.
            new_tokens = options.max_new_tokens
            all_tokens = min(self.max_length, max(2 * new_tokens, len(prompt) + new_tokens))
            most = min(all_tokens // 2, all_tokens - len(prompt))
            options = replace(options, max_new_tokens=all_tokens - len(prompt))
            first = super().generate_with_fallback(encoded, prompt, tokenizer, options)
            if first[3] <= _RUNAWAY_RATIO or len(first[0].sequences_ids[0]) < most - 1:
                return first
            checkpoint()
            options = replace(options, temperatures=[0.0], no_repeat_ngram_size=4)
            second = super().generate_with_fallback(encoded, prompt, tokenizer, options)
            return second if second[3] < first[3] else first

        def adapt_prompt(self, encoded: Any, prompt: list[int], tokenizer: Any) -> list[int]:
            """Return the prompt in the language of the window, and set the tokenizer to it."""
            if not self.window_language:  # the first
                self.main_language = self.window_language = tokenizer.language_code
                return prompt
            if self.identify is None:
                return prompt
            code, certainty = self.identify(encoded)
            self.window_language = code if certainty >= _CLEAR_PROBABILITY else self.main_language
            token = self.hf_tokenizer.token_to_id(f"<|{self.window_language}|>")
            adapted = [token if each == tokenizer.language else each for each in prompt]
            tokenizer.language, tokenizer.language_code = token, self.window_language
            return adapted

    return LoopGuardedModel


def build_decoder_settings(
    tokenizer: Any, options: RecognitionOptions, beam_size: int, duration_s: float
) -> Any:
    """Return faster-whisper's settings for a recording of ``duration_s`` seconds."""
    module = require("faster_whisper.transcribe")
    return module.TranscriptionOptions(
        beam_size=beam_size,
        best_of=1,
        patience=1.0,
        length_penalty=1.0,
        repetition_penalty=options.repetition_penalty,
        no_repeat_ngram_size=0,
        log_prob_threshold=-1.0,
        no_speech_threshold=0.6,
        compression_ratio_threshold=_RUNAWAY_RATIO,
        # A wrong window must not mislead the next one.
        condition_on_previous_text=False,
        prompt_reset_on_temperature=0.5,
        temperatures=[options.temperature],
        initial_prompt=None,
        prefix=None,
        suppress_blank=True,
        suppress_tokens=module.get_suppressed_tokens(tokenizer, [-1]),
        without_timestamps=False,
        max_initial_timestamp=1.0,
        word_timestamps=options.vad == "segments",
        prepend_punctuations="\"'“¿([{-「『（",
        append_punctuations="\"'.。,，!！?？:：”)]}、」』）",
        multilingual=False,
        max_new_tokens=_TOKENS + math.ceil(_TOKENS_PER_S * duration_s),
        clip_timestamps=[0.0],
        hallucination_silence_threshold=None,
        hotwords=", ".join(options.hotwords) or None,
    )


def has_repetition(text: str) -> bool:
    """Whether a text repeats the same words several times, as in a loop of the recognizer, or in real speech."""
    data = text.strip().encode("utf-8")
    if len(data) > 60 and len(data) / len(zlib.compress(data)) > _RUNAWAY_RATIO:
        return True
    sentences = [sentence.strip().lower() for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    runs = zip(*(sentences[shift:] for shift in range(3)), strict=False)
    if _SHORT_LOOP.search(find_letters(text)):
        return True
    return any(len(set(run)) == 1 and len(run[0]) > 3 for run in runs)


def find_letters(text: str) -> str:
    """Return the letters and digits of a text alone, in lower case."""
    return _NON_LETTERS.sub("", text.lower())


def shift_segment(segment: Any, start_s: float) -> Any:
    """Move a segment and its words in time, by the start of its piece in seconds."""
    words = [
        replace(word, start=word.start + start_s, end=word.end + start_s) for word in segment.words or ()
    ]
    return replace(
        segment,
        start=segment.start + start_s,
        end=segment.end + start_s,
        words=words if segment.words is not None else None,
    )


def compute_confidence(found: Sequence[Any]) -> float:
    """Geometric mean of the tokens' probabilities."""
    count = sum(len(segment.tokens) for segment in found)
    if not count:
        return 0.0
    mean = sum(segment.avg_logprob * len(segment.tokens) for segment in found) / count
    return min(1.0, max(0.0, math.exp(mean)))


SAMPLE_RATE = 16_000
# Seconds of speech that are a segment even without text.
_LONG_S = 2.0
_VAD_MODES = ("off", "on", "segments")


def check_input(samples: NDArray[np.float32], options: RecognitionOptions, languages: Sequence[str]) -> None:
    """Refuse a language that the recognizer does not have, unknown detection of speech, and several channels."""
    if options.language is not None and options.language not in languages:
        allowed = list_some_codes(languages)
        raise EngineError(
            f"the language {options.language!r} is not recognized here; choose one of: {allowed}"
        )
    if options.vad not in _VAD_MODES:
        raise EngineError(f"vad={options.vad!r} is not known; choose one of: {', '.join(_VAD_MODES)}")
    if samples.ndim != 1:
        raise EngineError(f"the samples have the shape {samples.shape}; give one channel, shape (frames,)")


# Minimum and maximum length of a piece in seconds.
_PIECE_S = (1.5, 10.0)


def find_speech(samples: NDArray[np.float32], gap_ms: int) -> list[Span]:
    """Return the stretches of speech.

    Args:
        samples: Mono, float32 in [-1, 1], shape (frames,), at 16,000 Hz.
        gap_ms: Minimum silence between two stretches of speech, in milliseconds.
    """
    if not len(samples):
        return []
    peak = float(np.max(np.abs(samples)))
    if not math.isfinite(peak):
        raise EngineError("the audio has samples that are not numbers; decode it again")
    if 0.0 < peak < 0.05:
        # The detector was trained on speech of a usual level, and misses very soft recordings.
        samples = samples * np.float32(0.5 / max(peak, 1e-3))
    vad = require("faster_whisper.vad")
    # Speech shorter than 0.1 s is a click. Padding follows in this package, after the merging.
    settings = vad.VadOptions(min_silence_duration_ms=gap_ms, speech_pad_ms=0, min_speech_duration_ms=100)
    duration = len(samples) / SAMPLE_RATE
    stretches = vad.get_speech_timestamps(np.asarray(samples, dtype=np.float32), settings)
    return [Span(span["start"] / SAMPLE_RATE, min(span["end"] / SAMPLE_RATE, duration)) for span in stretches]


def cut_at_pauses(sound: NDArray[np.float32], seams_s: Sequence[float]) -> list[tuple[float, float]]:
    """Cut a recording at pauses, and long stretches at their quietest places; return starts and ends in seconds."""
    least, most = (round(limit * SAMPLE_RATE) for limit in _PIECE_S)
    seams = [round(seam * SAMPLE_RATE) for seam in seams_s]
    cuts = [0]
    for seam in (*seams, len(sound)):
        while seam - cuts[-1] > most:
            window = sound[cuts[-1] + least : cuts[-1] + most]
            step = SAMPLE_RATE // 20
            loudness = [
                float(np.abs(window[at : at + step]).mean()) for at in range(0, len(window) - step, step)
            ]
            cuts.append(cuts[-1] + least + int(np.argmin(loudness)) * step + step // 2)
        if seam - cuts[-1] >= least and (len(sound) - seam >= least or seam == len(sound)):
            cuts.append(seam)
    if cuts[-1] != len(sound):
        cuts = [*cuts[:-1], len(sound)] if len(cuts) > 1 else [*cuts, len(sound)]
    return [(first / SAMPLE_RATE, last / SAMPLE_RATE) for first, last in itertools.pairwise(cuts)]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time: ``start`` and ``end`` in seconds, ``start < end``."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word (or punctuation) with its time in seconds; the text keeps its leading space."""

    start: float
    end: float
    text: str


def merge_brief_spans(spans: Sequence[Span], minimum: float) -> list[Span]:
    """Merge spans shorter than a minimum with the neighbor that is nearer in time."""
    first, last = compute_merged_span_indices(*_split_starts_and_ends(spans), minimum)
    return [Span(spans[a].start, spans[b].end) for a, b in zip(first.tolist(), last.tolist(), strict=True)]


def pad_spans(
    spans: Sequence[Span], margin: float, duration: float, *, leading: float | None = None
) -> list[Span]:
    """Widen spans by a margin, their first edge by ``leading``, within the file.

    Neighbors that would overlap meet in the middle of their gap.
    """
    before = np.full(len(spans), margin)
    before[:1] = margin if leading is None else leading
    starts, ends = widen_spans(*_split_starts_and_ends(spans), before, margin, duration)
    return [Span(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _split_starts_and_ends(spans: Sequence[Span]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array([span.start for span in spans]), np.array([span.end for span in spans])


def pad_and_join_spans(speech: Sequence[Span], margin: float, duration: float) -> list[Span]:
    """Return the parts of a recording for the recognizer: speech with a margin, without long silences."""
    spans: list[Span] = []
    for span in speech:
        start, end = max(0.0, span.start - margin), min(duration, span.end + margin)
        if spans and start <= spans[-1].end:
            spans[-1] = Span(spans[-1].start, max(end, spans[-1].end))
        else:
            spans.append(Span(start, end))
    return spans


class Timeline:
    """Maps times in the shortened audio, which has the kept spans end to end, to times in the recording."""

    def __init__(self, kept: Sequence[Span]) -> None:
        self._kept = list(kept)
        self._starts: list[float] = []
        total = 0.0
        for span in self._kept:
            self._starts.append(total)
            total += span.end - span.start

    def to_original_time(self, time: float, *, inside: float | None = None) -> float:
        index = max(0, bisect_right(self._starts, time if inside is None else inside) - 1)
        span = self._kept[index]
        return min(span.end, max(span.start, span.start + time - self._starts[index]))

    def to_shortened_span(self, span: Span) -> Span:
        """Return a span of the recording, which lies in one of the kept spans, in the shortened audio."""
        index = max(0, bisect_right([kept.start for kept in self._kept], span.start) - 1)
        shift = self._starts[index] - self._kept[index].start
        return Span(span.start + shift, span.end + shift)

    def to_original_word(self, word: TimedWord) -> TimedWord:
        """Return a word with its times in the recording. A word across a seam belongs to the span of its middle."""
        middle = (word.start + word.end) / 2
        return TimedWord(
            self.to_original_time(word.start, inside=middle),
            self.to_original_time(word.end, inside=middle),
            word.text,
        )


def join_words_by_span(words: Sequence[TimedWord], spans: Sequence[Span]) -> list[tuple[Span, str]]:
    """Assign each word to the span that it overlaps most, or else to the nearest one, without changing the order."""
    texts = [""] * len(spans)
    position = 0
    for word in words:
        if not spans:
            break
        # Never go back, so that the joined text of the segments has the order of the transcript.
        position = max(
            range(position, len(spans)), key=lambda index: _measure_overlap_or_distance(word, spans[index])
        )
        texts[position] += word.text
    return [(span, text.strip()) for span, text in zip(spans, texts, strict=True) if text.strip()]


def _measure_overlap_or_distance(word: TimedWord, span: Span) -> float:
    """Seconds of overlap, or minus the seconds of distance."""
    return min(word.end, span.end) - max(word.start, span.start)


def build_segments(
    words: Sequence[TimedWord], speech: Sequence[Span], options: RecognitionOptions, duration: float
) -> tuple[RecognitionSegment, ...]:
    """Return the segments of a recording: its stretches of speech, merged and padded, with their words."""
    spans = merge_brief_spans(
        pad_spans(speech, options.speech_pad_ms / 1000, duration), options.min_segment_duration
    )
    texts = dict(join_words_by_span(words, spans))
    # Long speech without text is kept, so that nobody takes it for silence.
    owned = [
        (span, texts.get(span, "")) for span in spans if span in texts or span.end - span.start >= _LONG_S
    ]
    leading = 0.0
    if owned:
        first = owned[0][0].start
        onset = next((span.start for span in speech if span.end > first), 0.0)
        leading = float(compute_missing_pre_roll(options.initial_segment_padding_ms / 1000, onset, first))
    margin = options.segment_padding / 1000
    padded = pad_spans([span for span, _ in owned], margin, duration, leading=leading)
    return tuple(
        RecognitionSegment(round(span.start, 3), min(round(span.end, 3), duration), text)
        for span, (_, text) in zip(padded, owned, strict=True)
    )
