"""What recognition gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from speechlab.client._events import Timing
from speechlab.contract import RecognitionReply, ReplySegment
from speechlab.display import audio_figure, table
from speechlab.text import writes_without_spaces

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.client._operations.call import RawResponse


@dataclass(frozen=True)
class Transcript:
    """What was said, and when where that was asked for (``vad="segments"``).

    Attributes:
        text: All that was said; with segments their texts, joined as the language writes.
        language: Language code, found or given.
        confidence: 0 to 1, or None where the service does not tell.
        pieces: The segments as the service sent them, or None if it sent none.
        timing: How long it took, and how many attempts.
        reply: The whole reply, with fields that the contract does not know.
    """

    text: str
    language: str = ""
    confidence: float | None = None
    pieces: tuple[ReplySegment, ...] | None = None
    timing: Timing = field(default_factory=Timing)
    reply: RecognitionReply | None = field(default=None, repr=False, compare=False)

    @property
    def segments(self) -> pd.DataFrame:
        """Columns ``start`` and ``end`` in seconds, and ``text``; without rows if there are no segments."""
        import pandas as pd

        pieces = self.pieces or ()
        return pd.DataFrame(
            {
                "start": pd.Series([piece.start for piece in pieces], dtype="float64"),
                "end": pd.Series([piece.end for piece in pieces], dtype="float64"),
                "text": pd.Series([piece.text for piece in pieces], dtype="str"),
            }
        )

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        lang = self.language or None
        facts = [self.language or "language unknown"]
        if self.confidence is not None:
            facts.append(f"confidence {self.confidence:.2f}")
        if self.pieces is None:
            return audio_figure(None, title="Transcript", facts=facts, text=self.text, lang=lang)
        rows = [(f"{piece.start:.2f}", f"{piece.end:.2f}", piece.text) for piece in self.pieces]
        head = audio_figure(None, title="Transcript", facts=[*facts, f"{len(rows)} segments"])
        return head + table(["start (s)", "end (s)", "text"], rows, langs=[None, None, lang])


def join_texts(texts: list[str], language: str) -> str:
    """Join the texts of segments: with a space, unless the language, or the characters that meet, use none.

    Args:
        texts: In order.
        language: Language code; empty if unknown.
    """
    parts = [text.strip() for text in texts if text.strip()]
    unspaced = writes_without_spaces(language)
    joined = ""
    for part in parts:
        meeting = unspaced or (not language and joined and _unspaced(joined[-1]) and _unspaced(part[0]))
        joined += part if not joined or meeting else f" {part}"
    return joined


def _unspaced(character: str) -> bool:
    return (
        "\u2e80" <= character <= "\ud7a3" and not character >= "\uac00"
    ) or "\uff00" <= character <= "\uffef"


def read_transcript(reply: RawResponse) -> Transcript:
    """Read the reply of recognition; its fields tell which form it has, not what was asked for.

    Raises:
        ContractError: It has neither form.
    """
    parsed = RecognitionReply.parse(reply.json())
    text = parsed.text
    if parsed.segments is not None and not text:
        text = join_texts([segment.text for segment in parsed.segments], parsed.language)
    return Transcript(
        text or "", parsed.language, parsed.confidence, parsed.segments, timing=reply.timing, reply=parsed
    )


def kept_transcript(transcript: Transcript) -> dict[str, Any]:
    """What a batch reads of a kept transcript."""
    kept: dict[str, Any] = {
        "text": transcript.text,
        "language": transcript.language,
        "confidence": transcript.confidence,
    }
    if transcript.pieces is not None:
        kept["segments"] = [
            {"start": piece.start, "end": piece.end, "text": piece.text} for piece in transcript.pieces
        ]
    return kept
