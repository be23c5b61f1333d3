"""A table of sound as one page that needs no kernel and no network."""

from __future__ import annotations

import html
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab.display import Html, element, page_style
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.widgets._shared.module import module_source
from speechlab.widgets._shared.page import base64_text, hash_of, json_text
from speechlab.widgets._table.differences import differences
from speechlab.widgets._table.sounds import reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speechlab.widgets._table.rows import Rows

_STAND_IN = Path(__file__).parent / "browser" / "page.js"
_MAX_BYTES = 270_000_000
"""Largest page: browsers hold no text above about half a gigabyte."""
_BINS = 100
_AT_ONCE = 64
"""Sounds encoded before the room that is left is looked at again."""
_NO_ROOM = "not in this page, which is full"
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{script_hash}'; \
style-src 'sha256-{style_hash}';{more} media-src blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>{title}</title><style>{style}</style></head>
<body><main>{above}<noscript>The rows need JavaScript, which this page holds itself.</noscript>
<div id="table"></div>{below}</main>
<script type="application/json" id="data">{data}</script>
<script type="application/json" id="sounds">{sounds}</script>
<script type="module">{script}</script>
</body></html>
"""
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 16px; background: #fff; }
@media (prefers-color-scheme: dark) { body { background: #14171d; } }
"""
_WITH_MORE = " style-src-attr 'unsafe-inline'; img-src data:;"
"""What finished markup beside the table needs: its attributes of style, and figures."""
_WIDE = """
main { max-width: 1240px; }
main > p, main > ol, main > ul { max-width: 90ch; }
main figure { width: fit-content; max-width: 100%; margin: 12px 0; }
"""


def page_of(
    rows: Rows,
    described: dict[str, Any],
    module: str,
    style: str,
    *,
    above: Html | None = None,
    below: Html | None = None,
    max_bytes: int | None = None,
) -> str:
    """Return the page.

    Args:
        rows: The table.
        described: Its traits, as the browser's side knows them.
        module: Source of the widget.
        style: Its style sheet.
        above: What stands before the table, for a page that is more than the table.
        below: What stands after it.
        max_bytes: Size of the page; sounds for which there is no room say so. None for the largest page, into which
            all sounds must fit.

    Raises:
        InvalidRequestError: The sounds are more than a page can hold.
    """
    script = module.replace("export default ", "const widget = ") + "\n" + module_source(_STAND_IN)
    css = _STYLE + style if above is None else page_style() + _WIDE + style
    data = json_text({"state": described, "max_rating": rows.max_rating, **_held(rows)})
    parts = {
        "title": html.escape(str(described["title"])),
        "script": script,
        "script_hash": hash_of(script),
        "style": css,
        "style_hash": hash_of(css),
        "more": "" if above is None else _WITH_MORE,
        "above": above or "",
        "below": below or "",
        "data": data,
    }
    taken = sum(len(part.encode("utf-8")) for part in parts.values()) + len(_PAGE) + 2_000
    sounds, left_out = _sounds(rows, (max_bytes or _MAX_BYTES) - taken)
    if left_out and max_bytes is None:
        fits = len(rows) - left_out
        message = f"the sounds up to row {fits:,} are all that a page can hold; save a part of the table"
        raise InvalidRequestError(message, parameter="frame")
    if left_out:
        told = (
            f"The sound of {left_out:,} of {len(rows):,} rows is not in this page: it would be larger than "
            f"{(max_bytes or 0) / 1e6:,.0f} MB."
        )
        parts["above"] += element("p", element("strong", told))
    return _PAGE.format(**parts, sounds=json_text(sounds))


def _held(rows: Rows) -> dict[str, Any]:
    outlines = []
    for row in range(len(rows)):
        outline = rows.sounds.outline(row, _BINS)
        outlines.append([base64_text(outline.peaks), round(outline.seconds, 3), outline.error])
    return {"rows": rows.piece(0, len(rows)), "outlines": outlines, "differences": _differences(rows)}


def _sounds(rows: Rows, room: int) -> tuple[list[tuple[str, str]], int]:
    """Sound and note of each row, and how many have a sound for which there is no room."""
    found: list[tuple[str, str]] = []
    left_out = 0
    for data, note in _encoded(rows):
        if data and len(data) + 40 > room:
            found += [("", _NO_ROOM)] * (len(rows) - len(found))
            left_out = sum(not rows.sounds.outline(row, _BINS).error for row in range(len(rows)))
            return found, left_out - sum(bool(one) for one, _ in found)
        found.append((data, note))
        room -= len(data) + 2 * len(note) + 8
    return found, left_out


def _encoded(rows: Rows) -> Iterator[tuple[str, str]]:
    def encoded(row: int) -> tuple[str, str]:
        try:
            sound = rows.sounds.sound(row, preview=True)
        except (AudioError, OSError) as error:
            return "", reason(error)
        return base64_text(sound.data), sound.note

    with ThreadPoolExecutor() as pool:  # encoders do not hold the interpreter's lock
        for first in range(0, len(rows), _AT_ONCE):
            yield from pool.map(encoded, range(first, min(first + _AT_ONCE, len(rows))))


def _differences(rows: Rows) -> dict[str, list[Any]]:
    reference = rows.layout.reference
    found: dict[str, list[Any]] = {}
    for column in rows.layout.columns if reference else ():
        if not column.compared:
            continue
        texts = ((rows.text(row, reference), rows.text(row, column.title), row) for row in range(len(rows)))
        found[column.title] = [
            None
            if said is None or heard is None
            else list(differences(said, heard, column.lang or rows.lang_of(row)))
            for said, heard, row in texts
        ]
    return found
