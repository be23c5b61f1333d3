"""Protocols of the three kinds of engine, each of which fits on a page.

An engine is a plain object that works on text and samples. It knows nothing of HTTP, formats, keys or
voices' UUIDs; the service wraps it in those. Its methods block, and are called from a worker thread, one call
at a time for each engine object. Work that takes time is handed over in pieces by an iterator, so that the
caller can stop between two pieces by closing it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EngineVoice:
    """A voice as its engine knows it.

    Attributes:
        name: The engine's own name of the voice, such as ``"jf_alpha"``.
        languages: Codes of the languages that it reads, the best first.
        gender: ``"Male"``, ``"Female"`` or ``"Neutral"``.
        description: One sentence for people who choose a voice.
    """

    name: str
    languages: tuple[str, ...]
    gender: str
    description: str


@runtime_checkable
class Synthesiser(Protocol):
    """Text in, sound out."""

    @property
    def model(self) -> str:
        """Id of the model, reported to clients."""
        ...

    @property
    def sample_rate(self) -> int:
        """Rate of the samples that :meth:`synthesise` yields, in Hz."""
        ...

    @property
    def voices(self) -> Sequence[EngineVoice]:
        """The voices that can speak now."""
        ...

    def synthesise(
        self, text: str, voice: str, *, temperature: float | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Speak a text, piece by piece.

        An engine that cannot read every text may have a method ``check_text(text, voice)``, which raises an
        InvalidRequestError without loading anything, so that such a text is refused before it counts. One whose
        weights may be missing may have ``find()``, which raises a ModelError, and ``load()``.

        The first piece is short, so that it comes soon; silence before and after the speech is trimmed, and the
        pauses between pieces are part of them. Joined, the pieces are the whole utterance.

        Args:
            text: What to say; not empty.
            voice: ``name`` of one of :attr:`voices`.
            temperature: Variation, 0 for none; engines without it ignore it.

        Yields:
            Mono samples, float32 in [-1, 1], shape (frames,), at :attr:`sample_rate`.

        Raises:
            EngineError: The engine failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class RecognitionOptions:
    """Settings of a recognition (section 2.3 of the contract, with its defaults).

    Attributes:
        language: Code, or None to identify the language.
        hotwords: Words and phrases to expect.
        temperature: 0 for the most likely text; above, sampled.
        top_p: Nucleus of the sampling.
        frequency_penalty: Discourages words by how often they came.
        repetition_penalty: Above 1 discourages repetition.
        vad: ``"off"``, ``"on"`` (speech only) or ``"segments"``.
        min_silence_gap: Milliseconds of silence that split two segments.
        segment_padding: Milliseconds added at the segments' edges.
        initial_segment_padding_ms: Milliseconds of pre-roll before the first segment.
        speech_pad_ms: Milliseconds added to found speech.
        min_segment_duration: Seconds; shorter segments are merged.

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
    """A timed piece of a transcript: ``start`` and ``end`` in seconds from the beginning of the audio."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Recognition:
    """Transcript of a recording.

    Attributes:
        text: The whole transcript; empty where nobody speaks.
        language: Code of the language given or found.
        confidence: 0 to 1; 0 where nobody speaks.
        segments: Timed pieces, in order, not overlapping; only with ``vad="segments"``.
    """

    text: str
    language: str
    confidence: float
    segments: tuple[RecognitionSegment, ...] = ()


@runtime_checkable
class Recogniser(Protocol):
    """Sound in, text out."""

    @property
    def model(self) -> str:
        """Id of the model."""
        ...

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the languages that can be recognised and told apart."""
        ...

    def recognise(self, samples: NDArray[np.float32], options: RecognitionOptions) -> Recognition:
        """Transcribe a recording.

        Args:
            samples: Mono, float32 in [-1, 1], shape (frames,), at 16,000 Hz.
            options: Language, sampling and segments.

        Raises:
            EngineError: The engine failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class TranslationJob:
    """A text to translate.

    Attributes:
        text: The source text.
        source: Code of its language.
        target: Code of the language wanted.
        keywords: Terms to keep as they are.
        context: Text that helps to understand, and is not translated.
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
        prompt_tokens: Tokens read, only in the last piece.
        completion_tokens: Tokens written, only in the last piece.
        missing_keywords: Terms of the source that the whole translation lost; only in the last piece.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    missing_keywords: tuple[str, ...] = ()


@runtime_checkable
class Translator(Protocol):
    """Text in one language in, text in another out."""

    @property
    def model(self) -> str:
        """Id of the model, of the form ``vendor/name``."""
        ...

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the languages between which it translates."""
        ...

    def translate(self, job: TranslationJob) -> Iterator[TranslationDelta]:
        """Translate, token by token.

        Yields:
            Pieces of text; joined, they are the translation. The last piece has both token counts.

        Raises:
            EngineError: The engine failed.
        """
        ...
