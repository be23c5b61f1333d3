"""Tiers of segments: from tables, transcripts and tuples, and as tables of a saved notebook."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from speechlab._pandas import pd
from speechlab.display import Html, element, format_count, table
from speechlab.errors import AudioError

_MAX_SEGMENTS = 50
# A tier in the form of the browser: ``name``, ``lang``, ``segments``, and ``words`` if these are single words.
Tier = dict[str, Any]


def to_tiers(segments: Any, duration_s: float, lang: str) -> list[Tier]:
    """Return a tier for each name of a mapping, or one without a name; segments end with the recording.

    The words of a transcript, if it has their times, are a tier of their own.
    """
    if segments is None:
        return []
    named = isinstance(segments, Mapping) and not set(segments) & {"start", "end"}
    tiers: list[Tier] = []
    for name, given in (segments if named else {"": segments}).items():
        tier: Tier = {"lang": str(getattr(given, "language", None) or lang)}
        listed = _to_segments(given, duration_s)
        words = getattr(given, "words", None)
        words = words if isinstance(words, pd.DataFrame) and "word" in words else None
        if isinstance(given, pd.DataFrame) and "word" in given and "text" not in given:
            tier["words"] = True
        if listed or words is None:
            label = str(name) if name or words is None else "segments"
            tiers.append({"name": label, **tier, "segments": listed})
        if words is not None:
            label = f"{name}, words" if name else "words"
            tiers.append({"name": label, **tier, "words": True, "segments": _to_segments(words, duration_s)})
    return tiers


def _to_segments(segments: Any, duration_s: float) -> list[dict[str, Any]]:
    inner = getattr(segments, "segments", segments)
    if inner is None:
        return []
    if hasattr(inner, "to_dict") and hasattr(inner, "columns"):
        inner = inner.to_dict("records")
    if isinstance(inner, str | bytes | Mapping) or not isinstance(inner, Iterable):
        raise AudioError(
            f"segments are a {type(inner).__name__}; give a DataFrame, or (start, end, text) for each"
        )
    return [_to_segment(item, duration_s) for item in inner]


def _to_segment(item: Any, duration_s: float) -> dict[str, Any]:
    try:
        if isinstance(item, Mapping):
            start, end, text = item["start"], item["end"], item.get("text", item.get("word", ""))
        elif hasattr(item, "start"):
            start, end, text = item.start, item.end, getattr(item, "text", "")
        else:
            start, end, *texts = item
            (text,) = texts or ("",)
        first, last = float(start), float(end)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AudioError(f"{item!r} is not a segment; it needs start and end in seconds, and text") from error
    if not (0 <= first <= last and math.isfinite(last)):
        raise AudioError(f"segment from {first!r} to {last!r} s; give 0 <= start <= end, in seconds")
    empty = text is None or (isinstance(text, float) and math.isnan(text))
    # Recognizers round: the last segment often ends a few milliseconds after the recording.
    start, end = min(first, duration_s), min(last, duration_s)
    return {"start": start, "end": end, "text": "" if empty else str(text)}


def render_tier(tier: Tier) -> list[Html | str | None]:
    """Return the first segments of a tier for the saved notebook."""
    segments = tier["segments"]
    listed = segments[:_MAX_SEGMENTS]
    if not listed:
        return []
    speakers = any(segment.get("speaker") for segment in segments)
    rows = [
        (
            f"{segment['start']:.2f}",
            f"{segment['end']:.2f}",
            *([segment["speaker"]] if speakers else []),
            segment["text"],
        )
        for segment in listed
    ]
    heads = ["start (s)", "end (s)", *(["speaker"] if speakers else []), "text"]
    langs = [None] * (len(heads) - 1) + [tier["lang"] or None]
    more = len(segments) - len(listed)
    return [
        element("p", element("strong", tier["name"], dir="auto")) if tier["name"] else None,
        table(heads, rows, langs=langs, right=(0, 1)),
        f"and {format_count(more, 'more segment')}" if more else None,
    ]
