"""Decoding with Whisper: the model, the settings of the search, and guards against loops."""

from __future__ import annotations

import math
import re
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from speechlab._require import require
from speechlab.engines._protocols import checkpoint
from speechlab.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from speechlab.engines._protocols import RecognitionOptions

_RUNAWAY_RATIO = 2.4
_TOKENS_PER_S, _TOKENS = 20, 20
"""Maximum tokens: for each second of audio, and in addition for a recording. Speech has fewer; a loop ends there."""
_SENTENCE_END = re.compile(r"[.。!！?？,、，]+\s*")
_TIMES = 3
# In the letters alone: one letter eight times in a row, or 2 to 20 letters six times in a row.
_SHORT_LOOP = re.compile(r"(.)\1{7}|(.{2,20}?)\2{5}")
_BETWEEN = re.compile(r"[\W_]+")


def load_whisper(folder: Path, threads: int, compute_type: str) -> Any:
    library = require("faster_whisper")

    class Guarded(library.WhisperModel):  # type: ignore[name-defined,misc]  # the library is imported when it is needed
        """Decodes a window that reached no end a second time: without repetition, and without sampling.

        Text that compresses well can be a loop, or speech that repeats itself. Decoding the recording in pieces
        tells them apart.
        """

        def encode(self, features: Any) -> Any:
            checkpoint()
            return super().encode(features)

        def generate_with_fallback(self, encoded: Any, prompt: Any, tokenizer: Any, options: Any) -> Any:
            checkpoint()
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

    try:
        return Guarded(str(folder), device="cpu", compute_type=compute_type, cpu_threads=threads)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(
            f"the Whisper model in {folder} cannot be loaded: {error}; check or replace the folder"
        ) from error


def decoder_settings(tokenizer: Any, options: RecognitionOptions, beam_size: int, duration_s: float) -> Any:
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


def repeats_itself(text: str) -> bool:
    """Whether a text repeats the same words several times, as in a loop of the recogniser, or in real speech."""
    data = text.strip().encode("utf-8")
    if len(data) > 60 and len(data) / len(zlib.compress(data)) > _RUNAWAY_RATIO:
        return True
    sentences = [sentence.strip().lower() for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    runs = zip(*(sentences[shift:] for shift in range(_TIMES)), strict=False)
    if _SHORT_LOOP.search(_BETWEEN.sub("", text.lower())):
        return True
    return any(len(set(run)) == 1 and len(run[0]) > 3 for run in runs)


def shifted(segment: Any, start_s: float) -> Any:
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


def confidence_of(found: Sequence[Any]) -> float:
    """Geometric mean of the tokens' probabilities."""
    count = sum(len(segment.tokens) for segment in found)
    if not count:
        return 0.0
    mean = sum(segment.avg_logprob * len(segment.tokens) for segment in found) / count
    return min(1.0, max(0.0, math.exp(mean)))
