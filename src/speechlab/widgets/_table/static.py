"""The first rows of a table of sound as plain HTML, which stands in the saved notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.audio import sound_preview
from speechlab.display import Html, diff, element, join, table
from speechlab.errors import AudioError
from speechlab.widgets._table.columns import cell_value
from speechlab.widgets._table.differences import differences
from speechlab.widgets._table.sounds import reason

if TYPE_CHECKING:
    from speechlab.widgets._table.columns import Column, Layout
    from speechlab.widgets._table.rows import Rows

_MAX_BYTES = 600_000
_MAX_CLIP_BYTES = 60_000
_MAX_COLUMNS = 8
_PLAYER = "display:block;width:220px;max-width:100%;height:32px"
_SOFT = "opacity:.74"


def static_table(rows: Rows, count: int) -> Html:
    """Return the first rows, with sound as long as it takes no more than half a megabyte.

    Args:
        rows: The table.
        count: How many rows.
    """
    shown = [column for column in rows.layout.columns if column.shown][:_MAX_COLUMNS]
    room = _MAX_BYTES
    lines: list[list[object]] = []
    for row in range(min(count, len(rows))):
        sound, taken = _sound(rows, row, min(room, _MAX_CLIP_BYTES))
        room -= taken
        lines.append([sound, *(_cell(rows, row, column) for column in shown)])
    right = [1 + index for index, column in enumerate(shown) if column.kind == "number"]
    facts = [f"{len(rows):,} rows"]
    if len(lines) < len(rows):
        facts.append(f"the first {len(lines)} of them here")
    facts.append("lossy previews (Opus)")
    caption = join("", [element("strong", "Sounds"), element("span", " · ", " · ".join(facts), style=_SOFT)])
    return table(["sound", *(column.title for column in shown)], lines, caption=caption, right=right)


def _sound(rows: Rows, row: int, room: int) -> tuple[object, int]:
    try:
        preview = sound_preview(rows.sounds.clip(row), max_bytes=room) if room > 2_000 else None
    except (AudioError, OSError) as error:
        return element("em", reason(error)), 0
    if preview is None:
        return None, 0
    url = preview.url
    return element("audio", src=url, controls=True, preload="none", style=_PLAYER), len(url)


def _cell(rows: Rows, row: int, column: Column) -> object:
    layout: Layout = rows.layout
    value: Any = cell_value(rows.frame[column.name].iloc[row], column.kind)
    if value is None:
        return None
    if column.kind == "number":
        return f"{value:.{column.decimals}f}"
    lang = column.lang or rows.lang_of(row)
    if column.compared and layout.reference:
        said = cell_value(rows.frame[layout.by_title[layout.reference].name].iloc[row], "text")
        if said is not None:
            return _difference(differences(said, value, lang), lang)
    return element("span", value, lang=lang or None, dir="auto")


def _difference(pieces: list[Any], lang: str) -> Html:
    return diff([(kind, text, text) for kind, text, _ in pieces], lang=lang or None, separator="")
