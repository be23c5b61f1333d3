"""The view of a player in the saved notebook: its clips with a preview of their sound, and its first segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.audio import clip_figure, sound_preview, waveform_png
from speechlab.display import audio_figure, data_url, element, table
from speechlab.errors import AudioError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from speechlab.audio import SoundReader
    from speechlab.display import Html

_MAX_SEGMENTS = 50
_WHOLE_S = 120.0
_BEGINNING_S = 30.0
"""Length of the preview of longer recordings."""
_WIDTH = 480


def static_clips(readers: Mapping[str, SoundReader], facts: Sequence[str]) -> list[Html]:
    """Return the figures of the clips, each with a preview of its sound."""
    return [_figure(name, reader, fact) for (name, reader), fact in zip(readers.items(), facts, strict=True)]


def static_player(figures: Sequence[Html], tiers: Sequence[Mapping[str, Any]]) -> Html:
    """Return the clips, and the first segments of each tier."""
    return element("div", *figures, *[part for tier in tiers for part in _tier(tier)])


def _figure(name: str, reader: SoundReader, facts: str) -> Html:
    try:
        if reader.duration_s <= _WHOLE_S:
            return clip_figure(reader.read(0.0, reader.duration_s), title=name or None)
        preview = sound_preview(reader.read(0.0, _BEGINNING_S))
        outline = reader.outline(0.0, reader.duration_s, _WIDTH).reshape(-1)
    except (AudioError, OSError) as error:
        return audio_figure(None, title=name or None, facts=[facts, f"no sound: {error}"])
    picture = waveform_png(outline, width=_WIDTH, height=48, scale=1)
    return audio_figure(
        preview.url,
        title=name or None,
        facts=[facts, "lossy preview (Opus)", f"plays the first {preview.seconds:.0f} s only"],
        image_url=data_url(picture, "image/png"),
        image_alt=f"Waveform of {name or 'the recording'}",
    )


def _tier(tier: Mapping[str, Any]) -> list[Html | str | None]:
    segments = tier["segments"]
    shown = segments[:_MAX_SEGMENTS]
    if not shown:
        return []
    speakers = any(one.get("speaker") for one in segments)
    rows = [
        (f"{one['start']:.2f}", f"{one['end']:.2f}", *([one["speaker"]] if speakers else []), one["text"])
        for one in shown
    ]
    heads = ["start (s)", "end (s)", *(["speaker"] if speakers else []), "text"]
    langs = [None] * (len(heads) - 1) + [tier["lang"] or None]
    more = len(segments) - len(shown)
    return [
        element("p", element("strong", tier["name"], dir="auto")) if tier["name"] else None,
        table(heads, rows, langs=langs, right=(0, 1)),
        f"and {more:,} more segment{'' if more == 1 else 's'}" if more else None,
    ]
