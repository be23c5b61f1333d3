"""The player widget: its traits, and how clips and segments become them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from speechlab._arguments import is_number
from speechlab.audio import AudioClip, clip_figure
from speechlab.display import element, table
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.widgets._shared.live import LiveWidget
from speechlab.widgets._shared.module import module_source, style_sheet

if TYPE_CHECKING:
    from speechlab.contract import AudioFormat
    from speechlab.display import Html

_HERE = Path(__file__).parent
_PEAKS = 2_000
_MAX_STATIC_SEGMENTS = 50


class Player(LiveWidget):
    """A recording to look at, drag through and hear, with segments that play to the sample.

    A click on the waveform seeks, a drag selects, and a click on a segment plays exactly that. Keys on the
    waveform: space plays and pauses, the arrows move by a second, Page Up and Page Down by five, Home and End to
    the ends, Enter plays the selection and Escape drops it. Position and selection are known here at once::

        player = sl.widgets.Player(clip, transcript)
        player  # shows it
        player.selection  # (1.52, 2.40) after a drag

    The player lives as long as the kernel does. In the saved notebook stands what needs none: the clip as it shows
    itself, and its segments.

    Args:
        audio: A clip, the path or the bytes of a file; or a transcript that carries its ``audio``.
        segments: What is said when: a DataFrame with ``start``, ``end`` (seconds) and ``text``; a transcript, by its
            ``segments``; or an iterable of mappings or of ``(start, end, text)``. None for none.
        lang: BCP 47 tag of the texts, such as ``"ja"``; browsers choose glyphs by it.
        title: Name shown above; by default that of the clip.
        format: Format in which the sound travels to the browser: ``"flac"`` (exact), ``"wav"`` or ``"mp3"``.

    Raises:
        AudioError: No usable sound, segments without times, or a format that players do not take.
        FileNotFoundError: There is no such file.
        InvalidRequestError: ``title`` or ``lang`` is no text.
    """

    _esm = module_source(_HERE / "player.js")
    _css = style_sheet(_HERE / "player.css")

    audio = traitlets.Bytes().tag(sync=True)
    peaks = traitlets.Bytes().tag(sync=True)
    sample_rate = traitlets.Int().tag(sync=True)
    duration = traitlets.Float().tag(sync=True)
    facts = traitlets.Unicode().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    lang = traitlets.Unicode().tag(sync=True)
    segments = traitlets.List(traitlets.Dict()).tag(sync=True)
    current_time = traitlets.Float(0.0).tag(sync=True)
    playing = traitlets.Bool(default_value=False).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    selection = traitlets.Tuple().tag(sync=True)

    def __init__(
        self,
        audio: AudioClip | str | os.PathLike[str] | bytes | Any,
        segments: Any = None,
        *,
        lang: str | None = None,
        title: str | None = None,
        format: AudioFormat | str = "flac",  # noqa: A002
    ) -> None:
        for name, given in (("title", title), ("lang", lang)):
            if given is not None and not isinstance(given, str):
                raise InvalidRequestError(f"{name} {given!r} must be a text, or None", parameter=name)
        if segments is None and hasattr(audio, "segments"):
            segments = audio.segments
        clip = _clip_of(audio)
        if str(format) not in {"flac", "wav", "mp3"}:
            raise AudioError(f"format is {format!r}; players take 'flac', 'wav' or 'mp3'")
        if clip.frames == 0:
            raise AudioError(f"{clip!r} is empty; there is nothing to play")
        sound = clip if clip.channels <= 2 else clip.to_mono()
        data = sound.encode(format)
        spans = _segments_of(segments, clip.duration_s)
        language = lang or getattr(segments, "language", None) or getattr(audio, "language", None) or ""
        scaled = np.rint(clip.peaks(min(_PEAKS, clip.frames)) * 127).astype(np.int8)
        lossy = " · lossy (MP3)" if str(format) == "mp3" else ""
        super().__init__(
            audio=data,
            peaks=scaled.tobytes(),
            sample_rate=clip.sample_rate,
            duration=clip.duration_s,
            facts=f"{clip.duration_s:.2f} s · {clip.sample_rate} Hz{lossy}",
            segments=spans,
            title=title or clip.title or "",
            lang=str(language),
        )
        self._clip = clip

    def static_html(self) -> Html:
        """Return the clip as it shows itself, and its first segments."""
        shown = self.segments[:_MAX_STATIC_SEGMENTS]
        rows = [(f"{one['start']:.2f}", f"{one['end']:.2f}", one["text"]) for one in shown]
        more = len(self.segments) - len(shown)
        return element(
            "div",
            clip_figure(self._clip, title=self.title or None),
            table(["start (s)", "end (s)", "text"], rows, langs=[None, None, self.lang or None], right=(0, 1))
            if rows
            else None,
            f"and {more} more segments" if more else None,
        )

    def __repr__(self) -> str:
        name = f"{self.title!r}, " if self.title else ""
        return f"Player({name}{self.duration:.2f} s, {len(self.segments)} segments)"

    def play(self, start: float | None = None, end: float | None = None) -> None:
        """Play from ``start`` (seconds; by default where it stands) to ``end`` (by default the end).

        Raises:
            InvalidRequestError: A time is no number.
        """
        first, last = (
            None if given is None else _seconds(name, given)
            for name, given in (("start", start), ("end", end))
        )
        self.send({"type": "play", "start": first, "end": last})

    def pause(self) -> None:
        """Pause where it is."""
        self.send({"type": "pause"})

    def seek(self, seconds: float) -> None:
        """Move to a time in seconds; beyond the ends is the nearer end.

        Raises:
            InvalidRequestError: The time is no number.
        """
        self.current_time = min(max(_seconds("seconds", seconds), 0.0), self.duration)

    @traitlets.validate("selection")
    def _ordered(self, proposal: Any) -> tuple[float, ...]:
        value = tuple(proposal["value"])
        if value and not (len(value) == 2 and 0 <= value[0] <= value[1]):
            raise traitlets.TraitError(
                f"selection is {value!r}; give (start, end) in seconds, or () for none"
            )
        return value


def _clip_of(audio: Any) -> AudioClip:
    inner = getattr(audio, "audio", audio)
    if isinstance(inner, AudioClip):
        return inner
    if isinstance(inner, bytes | bytearray | memoryview):
        return AudioClip.from_bytes(inner)
    if isinstance(inner, str | os.PathLike):
        return AudioClip.from_file(inner)
    kind = type(audio).__name__
    raise AudioError(
        f"a {kind} is no sound; give an AudioClip, a path, bytes, or a transcript that has its audio"
    )


def _seconds(name: str, value: object) -> float:
    if not is_number(value) or math.isnan(value):
        raise InvalidRequestError(f"{name} {value!r} must be a time in seconds", parameter=name)
    return float(value)


def _segments_of(segments: Any, duration_s: float) -> list[dict[str, Any]]:
    """Plain dicts with start, end and text, which is what crosses to the browser."""
    if segments is None:
        return []
    inner = getattr(segments, "segments", segments)
    if inner is None:
        return []
    if hasattr(inner, "to_dict") and hasattr(inner, "columns"):
        inner = inner.to_dict("records")
    if isinstance(inner, str | bytes | Mapping) or not isinstance(inner, Iterable):
        raise AudioError(
            f"segments are a {type(inner).__name__}; give a DataFrame, or (start, end, text) for each"
        )
    return [_segment(item, duration_s) for item in inner]


def _segment(item: Any, duration_s: float) -> dict[str, Any]:
    try:
        if isinstance(item, Mapping):
            start, end, text = item["start"], item["end"], item.get("text", "")
        elif hasattr(item, "start"):
            start, end, text = item.start, item.end, getattr(item, "text", "")
        else:
            start, end, text = item
        first, last = float(start), float(end)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AudioError(f"{item!r} is no segment; it needs start and end in seconds, and text") from error
    if not (0 <= first <= last and math.isfinite(last)):
        raise AudioError(f"segment from {first!r} to {last!r} s; give 0 <= start <= end, in seconds")
    # Recognisers round: the last segment often ends a few milliseconds after the recording.
    limit = duration_s
    missing = text is None or (isinstance(text, float) and math.isnan(text))
    return {"start": min(first, limit), "end": min(last, limit), "text": "" if missing else str(text)}
