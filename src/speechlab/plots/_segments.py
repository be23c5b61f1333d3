"""Segments over time: tiers below the waveform and the spectrogram of their recording."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle

from speechlab._arguments import build_argument_error, is_number
from speechlab.audio import AudioClip, to_clip
from speechlab.errors import InvalidRequestError, SegmentError
from speechlab.plots._figure import (
    SMALL_PT,
    PaperFigure,
    build_figure,
    check_width,
    choose_fonts,
    choose_tone,
    disable_math_text,
    wrap_name,
)
from speechlab.segments import crop, frame, in_order

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import RendererAgg

# Number of points across the figure; more points would overlap.
_POINTS = 2_000
_WINDOW_S = 0.025
_LOWEST_DB = -120.0
_RANGE_DB = 70.0
_HIGHEST_HZ = 8_000
_LANE_INCHES = 0.34
_LINES = 2
_MARGIN_PX, _LEAST_PX = 4, 6


def timeline(
    tiers: pd.DataFrame | Mapping[str, pd.DataFrame],
    audio: AudioClip | bytes | str | os.PathLike[str] | None = None,
    *,
    start: float = 0.0,
    end: float | None = None,
    spectrogram: bool = True,
    language: str | None = None,
    width: float = 8.0,
) -> PaperFigure:
    """Draw segments over time, below the waveform and the spectrogram of their recording.

    Each table is a tier of bars with texts; overlapping segments are below each other. The first tier also shades the
    waveform, which shows the parts of the recording without a segment. Instants are lines.

    >>> from speechlab import plots, segments
    >>> said = segments.frame([(0.5, 2.0, "Hello."), (2.4, 3.0, "Yes.")], file="talk.wav")
    >>> figure = plots.timeline({"reference": said, "found": segments.shift(said, 0.1)})
    >>> figure.savefig("talk.pdf")  # doctest: +SKIP

    Args:
        tiers: A segment frame of one recording; or several frames, by the names of their tiers.
        audio: The recording: a clip, a path or bytes; None for the tiers alone.
        start: Start of the figure in seconds.
        end: End of the figure in seconds; None for the end of the recording, or of the last segment.
        spectrogram: Whether to draw the spectrogram below the waveform.
        language: ISO 639-1 code of the texts, which determines the shapes of Chinese and Japanese letters.
        width: Width in inches; the height follows from the content.

    Returns:
        A matplotlib ``Figure`` outside pyplot; save it with ``figure.savefig("talk.pdf")``. ``figure.axes`` are the
        waveform, the spectrogram and the tiers, as far as they are drawn. A notebook displays the figure.

    Raises:
        SegmentError: A tier is not a segment frame, or has several recordings.
        AudioError: The recording cannot be decoded.
        OSError: The file of the recording cannot be read.
        InvalidRequestError: There is nothing to draw, or a number is not usable.
    """
    tables = dict(tiers) if isinstance(tiers, Mapping) else {"segments": tiers}
    checked = {str(name): _check_one_recording(table, str(name)) for name, table in tables.items()}
    clip = None if audio is None else to_clip(audio)
    begin, stop = _resolve_span(start, end, clip, checked)
    check_width(width)
    lanes_of = {name: _crop_and_assign_lanes(table, begin, stop) for name, table in checked.items()}
    panels = ([1.0] if clip is not None else []) + ([1.3] if clip is not None and spectrogram else [])
    lanes = sum(int(table["lane"].max()) + 1 if len(table) else 1 for table in lanes_of.values())
    heights = [*panels, *([lanes * _LANE_INCHES + 0.1] if lanes_of else [])]
    figure = build_figure(width, sum(heights) + 0.55)
    panels_of = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
    each: list[Axes] = list(panels_of[:, 0])
    if clip is not None:
        _draw_waveform(each[0], clip, begin, stop, next(iter(lanes_of.values()), None))
        if spectrogram:
            _draw_spectrogram(each[1], clip, begin, stop)
    each[-1].set_xlim(begin, stop)
    each[-1].set_xlabel("time (s)", fontsize=SMALL_PT)
    for axes in each:
        axes.tick_params(labelsize=SMALL_PT)
    if lanes_of:
        texts = "".join([*lanes_of, *(text for table in lanes_of.values() for text in table["text"])])
        _draw_tiers(each[-1], lanes_of, choose_fonts(texts, language))
    return figure


def _check_one_recording(table: pd.DataFrame, name: str) -> pd.DataFrame:
    checked = frame(table)
    files = checked["file"].unique().tolist()
    if len(files) > 1:
        message = (
            f"the tier {name!r} has {len(files)} recordings, such as {files[0]!r} and {files[1]!r}; choose one: "
            f"table[table['file'] == {files[0]!r}]"
        )
        raise SegmentError(message, column="file")
    return checked


def _resolve_span(
    start: float, end: float | None, clip: AudioClip | None, tiers: Mapping[str, pd.DataFrame]
) -> tuple[float, float]:
    if not is_number(start) or not 0 <= start < float("inf"):
        raise build_argument_error("start", start, "a number of seconds, at least 0")
    if end is None:
        latest = [float(table["end"].max()) for table in tiers.values() if len(table)]
        end = clip.duration_s if clip is not None else max(latest, default=0.0)
    if not is_number(end) or not start < end < float("inf"):
        message = f"there is nothing to draw from {start!r} to {end!r} seconds; give a recording, segments, or an end"
        raise InvalidRequestError(message, parameter="end")
    return float(start), float(end)


def _crop_and_assign_lanes(table: pd.DataFrame, begin: float, stop: float) -> pd.DataFrame:
    """Return the segments within a stretch, cut at its edges, each in the first lane that is free at its start."""
    if len(table):
        table = in_order(crop(table, frame([(begin, stop)], file=table["file"].iloc[0])))
    free: list[float] = []
    lanes = []
    for start, end in zip(table["start"].tolist(), table["end"].tolist(), strict=True):
        lane = next((number for number, at in enumerate(free) if at <= start), len(free))
        free[lane : lane + 1] = [max(end, start + 1e-6)]
        lanes.append(lane)
    return table.assign(lane=np.array(lanes, dtype=np.int64))


def _draw_waveform(
    axes: Axes, clip: AudioClip, begin: float, stop: float, first: pd.DataFrame | None
) -> None:
    part = clip.crop(min(begin, clip.duration_s), min(stop, clip.duration_s))
    if part.frames:
        low, high = part.peaks(min(_POINTS, part.frames)).T
        at = begin + (np.arange(len(low)) + 0.5) * part.duration_s / len(low)
        axes.fill_between(at, low, high, color=choose_tone("line"), linewidth=0.4)
    if first is not None:
        for left, right in zip(first["start"].tolist(), first["end"].tolist(), strict=True):
            axes.axvspan(left, right, color=choose_tone("shade"), zorder=0, linewidth=0)
    top = max(0.02, 1.05 * float(np.abs(part.samples).max(initial=0)))
    axes.set_ylim(-top, top)
    axes.set_ylabel("amplitude", fontsize=SMALL_PT)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_spectrogram(axes: Axes, clip: AudioClip, begin: float, stop: float) -> None:
    part = clip.crop(min(begin, clip.duration_s), min(stop, clip.duration_s)).to_mono()
    highest = min(_HIGHEST_HZ, clip.sample_rate / 2)
    size = max(16, int(_WINDOW_S * part.sample_rate))
    if part.frames >= size:
        count = min(_POINTS, (part.frames - size) * 4 // size + 1)
        starts = np.linspace(0, part.frames - size, count).astype(np.int64)
        window = np.hanning(size).astype(np.float32)
        bins = int(highest / part.sample_rate * size) + 1
        rows = [np.abs(np.fft.rfft(part.samples[at : at + size] * window)[:bins]) for at in starts]
        magnitudes = np.maximum(np.array(rows), 10 ** (_LOWEST_DB / 20))
        levels = (20 * np.log10(magnitudes)).astype(np.float32)  # dB, shape (times, frequencies)
        loudest = max(float(levels.max()), _LOWEST_DB + _RANGE_DB)  # silence is white
        extent = (begin, begin + part.duration_s, 0, highest / 1000)
        axes.imshow(
            levels.T, origin="lower", aspect="auto", cmap="gray_r", extent=extent, vmin=loudest - _RANGE_DB,
            vmax=loudest, interpolation="bilinear",
        )  # fmt: skip
    axes.set_ylim(0, highest / 1000)
    axes.set_ylabel("frequency (kHz)", fontsize=SMALL_PT)


def _draw_tiers(axes: Axes, tiers: Mapping[str, pd.DataFrame], families: list[str]) -> None:
    height, places, labels = 0, [], []
    bars: list[tuple[Any, ...]] = []
    for name, table in tiers.items():
        lanes = int(table["lane"].max()) + 1 if len(table) else 1
        columns = (table[column].tolist() for column in ("start", "end", "text", "lane"))
        for left, right, text, lane in zip(*columns, strict=True):
            bars.append((left, right, text, -(height + lane) - 0.5))
        places.append(-height - lanes / 2)
        labels.append(name)
        height += lanes
        axes.axhline(-height, color=choose_tone("shade"), linewidth=0.8)
    axes.set_ylim(-height, 0)
    axes.set_yticks(places, [wrap_name(label) for label in labels], fontfamily=families)
    disable_math_text(axes.get_yticklabels())
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    for left, right, _, middle in bars:
        box = Rectangle(
            (left, middle - 0.4),
            right - left,
            0.8,
            facecolor=choose_tone("bar"),
            edgecolor=choose_tone("ink"),
            linewidth=0.7,
        )
        axes.add_patch(box)
    _draw_texts(axes, bars, families)


def _draw_texts(axes: Axes, bars: list[tuple[Any, ...]], families: list[str]) -> None:
    """Write texts into their bars, on at most two lines, shortened if necessary."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # sets the widths of the axes
    renderer: RendererAgg = figure.canvas.get_renderer()  # type: ignore[attr-defined]  # Agg canvases have it
    corners = np.array([(bar[at], 0.0) for bar in bars for at in (0, 1)]).reshape(-1, 2)
    places = axes.transData.transform(corners)[:, 0]
    for (left, right, text, middle), begin, stop in zip(bars, places[::2], places[1::2], strict=True):
        room = float(stop - begin) - _MARGIN_PX
        if room < _LEAST_PX or not text.strip():
            continue
        written = axes.text(
            (left + right) / 2, middle, "", ha="center", va="center", fontsize=SMALL_PT - 1,
            fontfamily=families, linespacing=1.0, color=choose_tone("ink"), parse_math=False,
        )  # fmt: skip
        written.set_in_layout(False)

        def can_fit(part: str, written: Any = written, room: float = room) -> bool:
            written.set_text(part)
            return bool(written.get_window_extent(renderer).width <= room)

        written.set_text(_fit_text(" ".join(text.split()), can_fit))


def _fit_text(text: str, fits: Any) -> str:
    """Break a text into lines that fit, and shorten the last one if necessary; empty if not even a letter fits."""
    lines: list[str] = []
    remainder = text
    while remainder and len(lines) < _LINES:
        if fits(remainder):
            lines.append(remainder)
            return "\n".join(lines)
        last = len(lines) + 1 == _LINES
        end, counts = "…" if last else "", range(1, len(remainder) + 1)
        length = bisect_left(counts, x=True, key=lambda count: not fits(remainder[:count] + end))
        if length == 0:
            break
        if last:
            lines.append(remainder[:length].rstrip() + "…")
            break
        space = remainder.rfind(" ", 0, length + 1)
        at = space if space > 0 else length
        lines.append(remainder[:at].rstrip())
        remainder = remainder[at:].lstrip()
    return "\n".join(lines)
