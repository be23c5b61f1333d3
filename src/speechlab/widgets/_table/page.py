"""A table of recordings as one page without a kernel and a network."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab.display import Html, element
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.widgets._shared.browser import base64_text, json_text, page_of
from speechlab.widgets._shared.sounds import reason
from speechlab.widgets._table.rows import NOTED, NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speechlab.widgets._table.rows import Rows

_STAND_IN = Path(__file__).parent / "browser" / "page.js"
_MAX_BYTES = 270_000_000
"""Maximum size of a page: browsers do not support texts above about half a gigabyte."""
_BINS = 100
_AT_ONCE = 64
"""Number of sounds that are encoded between two checks of the remaining space."""
_MANY = 1_000
"""Rows from which the size of a page is estimated first: of fewer, all sounds are encoded soon enough."""
_TRIED = 16
"""Number of sounds from which the size of a page is estimated. A page a quarter above the limit is refused by it."""
_DOUBT = 1.25
_MARGIN = 1_000
"""Bytes for the sentence about sounds that are left out."""
_NO_ROOM = "not in this page, which is full"


def table_page(
    rows: Rows,
    described: dict[str, Any],
    module: str,
    style: str,
    above: Html | None,
    below: Html | None,
    max_bytes: int | None,
    *,
    editable: bool,
) -> str:
    """Return the page, see :meth:`ShownTable.page`; ``described`` are the traits of the widget."""
    if max_bytes is None and len(rows) >= _MANY:
        _refuse_too_large(rows)
    state = {**described, "max_rating": rows.max_rating, "editable": editable}
    data: dict[str, Any] = {"state": state, **_held(rows)}
    if editable:
        data["keys"] = [[key, rows.named(row)] for row, key in enumerate(rows.keys())]
    # The page's name in the browser's storage: the same table has the same marks.
    data["name"] = hashlib.sha256(json_text(data["rows"]).encode("utf-8")).hexdigest()[:24]
    held = json_text(data)

    def page(above: Html | None, sounds: object) -> str:
        return page_of(
            described["title"],
            module,
            _STAND_IN,
            style,
            {"data": held},
            later={"sounds": json_text(sounds)},
            noscript="The rows need JavaScript, which this page holds itself.",
            above=above,
            below=below,
        )

    most = _MAX_BYTES if max_bytes is None else max_bytes
    sounds = _sounds(rows, most - len(page(above, ()).encode("utf-8")) - _MARGIN)
    silent = range(len(sounds), len(rows))
    if silent and max_bytes is None:
        message = (
            f"the sounds up to row {len(sounds):,} are all that a page can hold; save a part of the table"
        )
        raise InvalidRequestError(message, parameter="frame")
    if silent:
        left_out = sum(not rows.sounds.outline(row, _BINS).error for row in silent)
        warning = (
            f"The sound of {left_out:,} of {len(rows):,} rows is not in this page: it would be larger than "
            f"{most / 1e6:,.0f} MB."
        )
        above = (above or Html()) + element("p", element("strong", warning))
    return page(above, [*sounds, *[("", _NO_ROOM)] * len(silent)])


def _refuse_too_large(rows: Rows) -> None:
    """Refuse a table that is clearly larger than a page, before all of its sounds are read."""
    tried = range(0, len(rows), max(len(rows) // _TRIED, 1))
    expected = sum(len(data) for data, _ in _encoded(rows, tried)) / max(len(tried), 1) * len(rows)
    if expected > _DOUBT * _MAX_BYTES:
        message = (
            f"the sounds of {len(rows):,} rows take about {expected / 1e6:,.0f} MB, and a page holds "
            f"{_MAX_BYTES / 1e6:.0f} MB; save a part of the table"
        )
        raise InvalidRequestError(message, parameter="frame")


def _held(rows: Rows) -> dict[str, Any]:
    def drawn(row: int) -> list[Any]:
        outline = rows.sounds.outline(row, _BINS)
        return [base64_text(outline.peaks), round(outline.seconds, 3), outline.error]

    with ThreadPoolExecutor() as pool:  # files are read and samples compared without the interpreter's lock
        outlines = list(pool.map(drawn, range(len(rows))))
    nothing = {f"n:{name}": [NOTHING[name]] * len(rows) for name in NOTED}
    return {
        "rows": {**rows.piece(0, len(rows)), **nothing},
        "outlines": outlines,
        "differences": _differences(rows),
    }


def _sounds(rows: Rows, room: int) -> list[tuple[str, str]]:
    """Return the sound and the note of each row. Rows whose sound does not fit have a note only."""
    sounds: list[tuple[str, str]] = []
    room -= (len(_NO_ROOM) + 8) * len(rows)
    for data, note in _encoded(rows, range(len(rows))):
        room -= len(data) + 3 * len(note)
        if data and room < 0:
            break
        sounds.append((data, note))
    return sounds


def _encoded(rows: Rows, places: range) -> Iterator[tuple[str, str]]:
    def encoded(row: int) -> tuple[str, str]:
        try:
            sound = rows.sounds.sound(row, preview=True)
        except (AudioError, OSError) as error:
            return "", reason(error)
        return base64_text(sound.data), sound.note

    with ThreadPoolExecutor() as pool:  # encoders do not hold the interpreter's lock
        for first in range(0, len(places), _AT_ONCE):
            yield from pool.map(encoded, places[first : first + _AT_ONCE])


def _differences(rows: Rows) -> dict[str, list[Any]]:
    reference = rows.layout.reference
    every = range(len(rows))
    compared = [column for column in rows.layout.columns if reference and column.compared]
    return {column.title: rows.differences(every, reference, column.title) for column in compared}
