"""The first rows of an audio table as plain HTML, for the saved notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from speechlab.audio import sound_preview
from speechlab.display import Html, diff, element, join
from speechlab.errors import AudioError
from speechlab.widgets._table.columns import MAX_WHOLE, cell_value
from speechlab.widgets._table.sounds import reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from speechlab.widgets._table.columns import ShownColumn
    from speechlab.widgets._table.differences import Piece
    from speechlab.widgets._table.rows import Rows

    _Differences: TypeAlias = Mapping[tuple[int, str], list[Piece] | None]

_MAX_BYTES = 600_000
_MAX_CLIP_BYTES = 60_000
_MAX_COLUMNS = 12
_ROW = "display:flex;flex-wrap:wrap;gap:2px 14px;padding:6px 0;border-top:1px solid rgba(128,128,128,.32)"
_SOUND = "flex:0 0 230px;min-height:32px"
_TEXTS = "flex:1 1 300px;min-width:0;overflow-wrap:anywhere"
_PLAYER = "display:block;width:100%;height:32px"
_SOFT = "opacity:.74"
_NAME = "opacity:.74;font-size:.88em"


def static_table(rows: Rows, count: int, title: str, first: Sequence[int] = ()) -> Html:
    """Return the first rows, with at most half a megabyte of sound.

    A row is a line with breaks, because a table in a narrow cell would be cut off.

    Args:
        rows: The table.
        count: Number of rows.
        title: Title above the rows.
        first: Positions of rows that come before the others.
    """
    shown = [column for column in rows.layout.columns if column.shown][:_MAX_COLUMNS]
    room = _MAX_BYTES
    lines = []
    order = [*first, *(row for row in range(min(count, len(rows))) if row not in set(first))]
    differences = _differences(rows, order[:count], shown)
    for row in order[:count]:
        texts = _texts(rows, row, shown, differences)
        if rows.layout.audio is None:
            lines.append(element("div", texts, style=_ROW))
            continue
        sound, taken = _sound(rows, row, min(room, _MAX_CLIP_BYTES))
        room -= taken
        lines.append(element("div", element("div", sound, style=_SOUND), texts, style=_ROW))
    facts = [f"{len(rows):,} rows"]
    if len(lines) < len(rows):
        which = f"{len(lines)}" if first else f"the first {len(lines)}"
        facts.append(f"{which} of them here" if lines else "none of them here")
    if lines and rows.layout.audio is not None:
        facts.append("lossy previews (Opus)")
    head = element("div", element("strong", title), element("span", " · ", " · ".join(facts), style=_SOFT))
    return element("div", head, *lines, style="font-size:13px;line-height:1.45;max-width:1100px")


def _sound(rows: Rows, row: int, room: int) -> tuple[object, int]:
    try:
        preview = sound_preview(rows.sounds.clip(row), max_bytes=room) if room > 2_000 else None
    except (AudioError, OSError) as error:
        return element("em", reason(error)), 0
    if preview is None:
        return None, 0
    url = preview.url
    return element("audio", src=url, controls=True, preload="none", style=_PLAYER), len(url)


def _differences(rows: Rows, shown: Sequence[int], columns: list[ShownColumn]) -> _Differences:
    reference = rows.layout.reference
    return {
        (row, column.title): pieces
        for column in columns
        if reference and column.compared and column.title != reference
        for row, pieces in zip(
            shown, rows.differences(shown, reference, column.title, classes=False), strict=True
        )
    }


def _texts(rows: Rows, row: int, columns: list[ShownColumn], differences: _Differences) -> Html:
    """Return the cells of a row: short values in one line, and each text in its own line."""
    short = [_named(rows, row, column, differences) for column in columns if column.kind != "text"]
    texts = [_named(rows, row, column, differences) for column in columns if column.kind == "text"]
    line = join(Html(" &ensp;"), [cell for cell in short if cell is not None])
    below = [element("div", cell) for cell in texts if cell is not None]
    return element("div", element("div", line) if line else None, *below, style=_TEXTS)


def _named(rows: Rows, row: int, column: ShownColumn, differences: _Differences) -> Html | None:
    cell = _cell(rows, row, column, differences.get((row, column.title)))
    return None if cell is None else element("span", element("span", column.title, " ", style=_NAME), cell)


def _cell(rows: Rows, row: int, column: ShownColumn, pieces: list[Piece] | None) -> object:
    value: Any = cell_value(rows.frame[column.name].iloc[row], column.kind)
    if value is None:
        return None
    if column.kind == "number":
        return value if isinstance(value, str) else _number(value, column.decimals)
    if column.kind == "list":
        each = [element("span", one, dir="auto", style="unicode-bidi:isolate") for one in value]
        return join(", ", each) if each else None
    lang = column.lang or rows.lang_of(row)
    if pieces is not None:
        return _difference(pieces, lang)
    return element("span", value, lang=lang or None, dir="auto")


def _number(value: float, decimals: int) -> str:
    """Format a number with its decimals, or with three significant digits if those would mislead."""
    plain = value == 0 or 0.5 * 10**-decimals <= abs(value) <= MAX_WHOLE
    return f"{value:.{decimals}f}" if plain else f"{value:.3g}"


def _difference(pieces: list[Piece], lang: str) -> Html:
    steps: list[tuple[Literal["equal", "substitute", "delete", "insert"], str, str]] = []
    for kind, text, _ in pieces:
        if kind == "insert" and steps and steps[-1][0] == "delete":
            steps[-1] = ("substitute", steps[-1][1], text)
        else:
            steps.append((kind, text, text))
    return diff(steps, lang=lang or None, separator="")
