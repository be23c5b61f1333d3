"""The first rows of an audio table as plain HTML, for the saved notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from speechlab.audio import draw_waveform
from speechlab.display import (
    Html,
    data_url,
    diff,
    element,
    end_directions,
    format_count,
    join,
    render_difference_legend,
    write_minus,
)
from speechlab.errors import AudioError
from speechlab.widgets._shared.sounds import describe_error
from speechlab.widgets._table.columns import MAX_WHOLE, ColumnView, to_json_value
from speechlab.widgets._table.marks import format_marks_file
from speechlab.widgets._table.rows import ANNOTATIONS, Rows

if TYPE_CHECKING:
    from speechlab.widgets._table.differences import Piece

    _Differences: TypeAlias = Mapping[tuple[int, str], list[Piece] | None]

_MAX_BYTES = 600_000
_MAX_CLIP_BYTES = 60_000
_MAX_COLUMNS = 12
_BINS = 150
_ROW = "display:flex;flex-wrap:wrap;gap:2px 14px;padding:6px 0;border-top:1px solid rgba(128,128,128,.32)"
_SOUND = "flex:0 0 190px;min-height:32px;display:flex;align-items:center;gap:8px"
_TEXTS = "flex:1 1 300px;min-width:0;overflow-wrap:anywhere"
_BUTTON = "flex:none;width:32px;height:32px;border-radius:16px;overflow:clip"
# Without scripts only the browser's own player plays; of it, the round button shows its beginning alone.
_PLAYER = "display:block;width:150px;height:32px;margin-left:-11px"
_WAVE = "display:block;flex:1 1 auto;min-width:0;width:150px;height:28px"
_SOFT = "opacity:.74"
_NAME = "opacity:.74;font-size:.88em"


def render_static_table(
    rows: Rows,
    count: int,
    title: str,
    first: Sequence[int] = (),
    view: Mapping[str, Any] | None = None,
    max_bytes: int = _MAX_BYTES,
) -> Html:
    """Return the first rows, by default what failed or is noted first, and all marks, ratings and notes.

    A row is a line with breaks, because a table in a narrow cell would be cut off. ``view`` is that of the browser:
    ``rows`` (the first positions), ``count`` and ``words``.
    """
    columns = [column for column in rows.layout.columns if column.shown][:_MAX_COLUMNS]
    room = max_bytes
    lines = []
    if view and view.get("words"):
        order = [row for row in view["rows"] if 0 <= row < len(rows)]
    else:
        failed = set(rows.failed)
        noted = (
            row
            for row in range(len(rows))
            if row in failed or any(rows.noted[name][row] for name in ANNOTATIONS)
        )
        first = first or list(islice(noted, count))
        order = [*first, *(row for row in range(min(count, len(rows))) if row not in set(first))]
        view = None
    reference = rows.layout.reference
    differences = {
        (row, column.title): pieces
        for column in columns
        if reference and column.compared and column.title != reference
        for row, pieces in zip(
            order[:count],
            rows.compare_column(order[:count], reference, column.title),
            strict=True,
        )
    }
    for row in order[:count]:
        texts = _render_row_cells(rows, row, columns, differences)
        if rows.layout.audio is None:
            lines.append(element("div", texts, style=_ROW))
            continue
        sound, size = _render_sound(rows, row, min(room, _MAX_CLIP_BYTES))
        room -= size
        lines.append(element("div", element("div", sound, style=_SOUND), texts, style=_ROW))
    facts = [f"{view['count']:,} of {len(rows):,} rows" if view else f"{len(rows):,} rows"]
    facts += [end_directions(str(words)) for words in view["words"]] if view else []
    if len(lines) < (view["count"] if view else len(rows)):
        which = f"{len(lines)}" if first else f"the first {len(lines)}"
        facts.append(f"{which} of them here" if lines else "none of them here")
    if lines and rows.layout.audio is not None:
        facts.append("lossy previews (Opus)")
    head = element("div", element("strong", title), element("span", " · ", " · ".join(facts), style=_SOFT))
    style = "font-size:13px;line-height:1.45;max-width:1100px"
    legend = render_difference_legend() if any(differences.values()) else None
    return element("div", head, *lines, legend, _render_annotations(rows), style=style)


def _render_annotations(rows: Rows) -> Html | None:
    """Return the marks, ratings and notes of all rows as the text of a file for ``sl.show(frame, marks=file)``."""
    file = format_marks_file(rows)
    rated = format_count(file.rows, "row")
    summary = f"Marks, ratings and notes of {rated}, as a file for sl.show(frame, marks=file)"
    left_out = {"further rows": file.rows_left, "notes": file.notes_left}
    words = " and ".join(f"{count:,} {what}" for what, count in left_out.items() if count)
    if not (file.rows or words):
        return None
    if words:
        summary += f"; {words} have no room here and are in table.frame only"
    block = element(
        "pre", file.text, style="white-space:pre-wrap;overflow-wrap:anywhere;max-height:200px;overflow:auto"
    )
    return element("details", element("summary", summary), block)


def _render_sound(rows: Rows, row: int, room: int) -> tuple[object, int]:
    try:
        url = rows.sounds.build_preview_url(row, room) if room > 2_000 else ""
    except (AudioError, OSError) as error:
        return element("em", describe_error(error)), 0
    if not url:
        return None, 0
    sound = element("audio", src=url, controls=True, preload="none", style=_PLAYER)
    outline = rows.sounds.compute_outline(row, _BINS)
    peaks = np.frombuffer(outline.peaks, np.int8) / np.float32(127)
    picture = data_url(draw_waveform(peaks, width=_BINS, height=28, scale=1), "image/png")
    wave = element("img", src=picture, alt=f"waveform, {outline.seconds:.1f} s", style=_WAVE)
    return join("", [element("div", sound, style=_BUTTON), wave]), len(url) + len(picture)


def _render_row_cells(rows: Rows, row: int, columns: list[ColumnView], differences: _Differences) -> Html:
    """Return the cells of a row: short values in one line, and each text in its own line."""
    short = [_render_row_annotations(rows, row)]
    short += [_render_cell(rows, row, column, differences) for column in columns if column.kind != "text"]
    texts = [_render_cell(rows, row, column, differences) for column in columns if column.kind == "text"]
    line = join(Html(" &ensp;"), [cell for cell in short if cell is not None])
    below = [element("div", cell) for cell in texts if cell is not None]
    return element("div", element("div", line) if line else None, *below, style=_TEXTS)


def _render_row_annotations(rows: Rows, row: int) -> Html | None:
    """Return the mark, the rating and the note of a row, or None without any."""
    mark, rating, note = (rows.noted[name][row] for name in ANNOTATIONS)
    judgments = ["★ marked" if mark else "", f"rated {rating}" if rating else ""]
    judged = " · ".join(judgment for judgment in judgments if judgment)
    if not (judged or note):
        return None
    words = element("span", f" “{note}”", dir="auto", style="unicode-bidi:isolate") if note else None
    return element("strong", judged, words)


def _render_cell(rows: Rows, row: int, column: ColumnView, differences: _Differences) -> Html | None:
    value: Any = to_json_value(rows.frame[column.name].iloc[row], column.kind)
    if value in (None, [], ""):
        return None
    lang, pieces = column.lang or rows.find_language(row), differences.get((row, column.title))
    cell: object = value
    if column.kind == "number":
        cell = value if isinstance(value, str) else _format_number(value, column.decimals)
    elif column.kind == "list":
        each = [element("span", text, dir="auto", style="unicode-bidi:isolate") for text in value]
        cell = join(", ", each)
    elif pieces is not None:
        cell = _render_difference(pieces, lang)
    else:
        cell = element("span", value, lang=lang or None, dir="auto")
    return element("span", element("span", column.label, " ", style=_NAME), cell)


def _format_number(value: float, decimals: int) -> str:
    """Format a number with its decimals, or with three significant digits if those would mislead."""
    fixed = value == 0 or 0.5 * 10**-decimals <= abs(value) <= MAX_WHOLE
    return write_minus(f"{value:.{decimals}f}" if fixed else f"{value:.3g}")


def _render_difference(pieces: list[Piece], lang: str) -> Html:
    steps: list[tuple[Literal["equal", "substitute", "delete", "insert"], str, str, str]] = []
    for kind, text, name in pieces:
        if kind == "insert" and steps and steps[-1][0] == "delete":
            steps[-1] = ("substitute", steps[-1][1], text, name)
        else:
            steps.append((kind, text, text, name))
    return diff(steps, lang=lang or None, separator="")
