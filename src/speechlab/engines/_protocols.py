"""Protocols of the three kinds of engine, each short enough for one page.

An engine is a plain object that works on text and samples, without HTTP, formats, keys or UUIDs of voices, which the
service adds. Its methods block. They are called from a worker thread, one call at a time for each engine object. Long
work returns its result in pieces by an iterator; the caller stops it between two pieces by closing the iterator.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MAX_CODES = 12


@dataclass(frozen=True, slots=True)
class EngineVoice:
    """A voice of an engine.

    Attributes:
        name: The engine's name of the voice, such as ``"jf_alpha"``.
        languages: Codes of its languages, the best first.
        gender: ``"Male"``, ``"Female"`` or ``"Neutral"``.
        description: One sentence for the choice of a voice.
    """

    name: str
    languages: tuple[str, ...]
    gender: str
    description: str


@runtime_checkable
class Synthesizer(Protocol):
    """An engine that converts text to speech."""

    @property
    def model(self) -> str:
        """Id of the model, as shown to clients."""

    @property
    def sample_rate(self) -> int:
        """Rate of the samples that :meth:`synthesize` yields, in Hz."""

    @property
    def voices(self) -> Sequence[EngineVoice]:
        """The available voices."""

    def synthesize(
        self, text: str, voice: str, *, temperature: float | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Speak a text, piece by piece.

        An engine that cannot read every text may have a method ``check_text(text, voice)``, which raises an
        InvalidRequestError without loading the model. The service then refuses the text before metering. An engine
        whose weights may be missing may have ``find_model()``, which raises a ModelError, and ``load()``.

        The first piece is short, for a short time to the first sound. Silence before and after the speech is trimmed;
        pauses between pieces are part of them. Joined, the pieces are the whole utterance.

        Args:
            text: Text to speak; not empty.
            voice: ``name`` of one of :attr:`voices`.
            temperature: Variation, 0 for none; engines without variation ignore it.

        Yields:
            Mono samples, float32 in [-1, 1], shape (frames,), at :attr:`sample_rate`.

        Raises:
            EngineError: The engine failed.
        """


@dataclass(frozen=True, slots=True)
class RecognitionOptions:
    """Settings of a recognition (section 2.3 of the contract, with its defaults).

    Attributes:
        language: Code, or None to identify the language.
        hotwords: Words and phrases to boost.
        temperature: 0 for the most likely text; sampling above.
        top_p: Nucleus of the sampling.
        frequency_penalty: Penalty for words by their frequency so far.
        repetition_penalty: Values above 1 penalize repetition.
        vad: ``"off"``, ``"on"`` (speech only) or ``"segments"``.
        min_silence_gap: Milliseconds of silence that separate segments.
        segment_padding: Milliseconds added at the segments' edges.
        initial_segment_padding_ms: Milliseconds added before the first segment.
        speech_pad_ms: Milliseconds added to detected speech.
        min_segment_duration: Minimum in seconds; shorter segments are merged.

    Example:
        >>> RecognitionOptions(language="ja", vad="segments").min_silence_gap
        400
    """

    language: str | None = None
    hotwords: tuple[str, ...] = ()
    temperature: float = 0.0
    top_p: float = 0.85
    frequency_penalty: float = 0.5
    repetition_penalty: float = 1.05
    vad: str = "off"
    min_silence_gap: int = 400
    segment_padding: int = 100
    initial_segment_padding_ms: int = 1500
    speech_pad_ms: int = 200
    min_segment_duration: float = 1.5


@dataclass(frozen=True, slots=True)
class RecognitionSegment:
    """A timed segment of a transcript: ``start`` and ``end`` in seconds from the beginning of the audio."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Recognition:
    """The transcript of a recording.

    Attributes:
        text: The whole transcript; empty without speech.
        language: Code of the language, given or identified.
        confidence: 0 to 1; 0 without speech.
        segments: Timed segments, in order and without overlap; only with ``vad="segments"``.
    """

    text: str
    language: str
    confidence: float
    segments: tuple[RecognitionSegment, ...] = ()


@runtime_checkable
class Recognizer(Protocol):
    """An engine that converts speech to text."""

    @property
    def model(self) -> str:
        """Id of the model."""

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the languages that it recognizes, first those that it identifies."""

    def recognize(self, samples: NDArray[np.float32], options: RecognitionOptions) -> Recognition:
        """Transcribe a recording.

        Args:
            samples: Mono, float32 in [-1, 1], shape (frames,), at 16,000 Hz.
            options: Language, sampling and segments.

        Raises:
            EngineError: The engine failed.
        """


@dataclass(frozen=True, slots=True)
class TranslationJob:
    """A text to translate.

    Attributes:
        text: The source text.
        source: Code of the source language.
        target: Code of the target language.
        keywords: Terms to preserve.
        context: Text that helps the translation and is not translated itself.
    """

    text: str
    source: str
    target: str
    keywords: tuple[str, ...] = field(default=())
    context: str | None = None


@dataclass(frozen=True, slots=True)
class TranslationDelta:
    """A piece of a translation.

    Attributes:
        text: The characters; may be empty.
        prompt_tokens: Tokens of the prompt, in the last piece only.
        completion_tokens: Tokens of the translation, in the last piece only.
        missing_keywords: Terms in the source that are missing in the translation, in the last piece only.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    missing_keywords: tuple[str, ...] = ()


@runtime_checkable
class Translator(Protocol):
    """An engine that translates text."""

    @property
    def model(self) -> str:
        """Id of the model, of the form ``vendor/name``."""

    @property
    def languages(self) -> Sequence[str]:
        """Codes of its languages; it translates between any two."""

    def translate(self, job: TranslationJob) -> Iterator[TranslationDelta]:
        """Translate, token by token.

        Yields:
            Pieces of text; joined, they are the translation. The last piece has both token counts.

        Raises:
            EngineError: The engine failed.
        """


def list_some_codes(languages: Sequence[str]) -> str:
    """Return the first codes of languages, for a message."""
    more = f" and {len(languages) - _MAX_CODES} more" if len(languages) > _MAX_CODES else ""
    return ", ".join(languages[:_MAX_CODES]) + more


_thread_state = threading.local()


def checkpoint() -> None:
    """Mark a point at which the engine may be interrupted. Raises the errors of the caller's function.

    Example:
        >>> with call_at_checkpoints(lambda: print("reached")):
        ...     checkpoint()
        reached
    """
    reached: Callable[[], None] | None = getattr(_thread_state, "reached", None)
    if reached is not None:
        reached()


@contextlib.contextmanager
def call_at_checkpoints(reached: Callable[[], None]) -> Iterator[None]:
    """Call a function at each checkpoint of this thread, within a ``with`` block."""
    before = getattr(_thread_state, "reached", None)
    _thread_state.reached = reached
    try:
        yield
    finally:
        _thread_state.reached = before
