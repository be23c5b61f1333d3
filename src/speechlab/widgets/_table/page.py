"""A table of sound as one page that needs no kernel and no network."""

from __future__ import annotations

import base64
import hashlib
import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.errors import AudioError, InvalidRequestError
from speechlab.widgets._shared.module import module_source
from speechlab.widgets._table.differences import differences
from speechlab.widgets._table.sounds import reason

if TYPE_CHECKING:
    from speechlab.widgets._table.rows import Rows

_STAND_IN = Path(__file__).parent / "browser" / "page.js"
_MAX_BYTES = 200_000_000
_BINS = 100
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{script_hash}'; \
style-src 'sha256-{style_hash}'; media-src blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>{title}</title><style>{style}</style></head>
<body><noscript>This page needs JavaScript, which it holds itself.</noscript><main id="table"></main>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body></html>
"""
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 16px; background: #fff; }
@media (prefers-color-scheme: dark) { body { background: #14171d; } }
"""


def page_of(rows: Rows, described: dict[str, Any], module: str, style: str) -> str:
    """Return the page.

    Args:
        rows: The table.
        described: Its traits, as the browser's side knows them.
        module: Source of the widget.
        style: Its style sheet.

    Raises:
        InvalidRequestError: The sounds are more than a page can hold.
    """
    script = module.replace("export default ", "const widget = ") + "\n" + module_source(_STAND_IN)
    css = _STYLE + style
    # "<" cannot end the element that holds the data, and the two separators cannot end a line of it
    data = orjson.dumps({"state": described, "max_rating": rows.max_rating, **_held(rows)}).decode()
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    title = html.escape(str(described["title"]))
    return _PAGE.format(
        title=title, script=script, script_hash=_hash(script), style=css, style_hash=_hash(css), data=data
    )


def _held(rows: Rows) -> dict[str, Any]:
    sounds: list[Any] = []
    outlines: list[Any] = []
    taken = 0
    for row in range(len(rows)):
        outline = rows.sounds.outline(row, _BINS)
        outlines.append([_text(outline.peaks), round(outline.seconds, 3), outline.error])
        try:
            sound = rows.sounds.sound(row, preview=True)
        except (AudioError, OSError) as error:
            sounds.append(["", reason(error)])
            continue
        taken += len(sound.data)
        if taken > _MAX_BYTES:
            message = f"the sounds up to row {row:,} are all that a page can hold; save a part of the table"
            raise InvalidRequestError(message, parameter="frame")
        sounds.append([_text(sound.data), sound.note])
    return {
        "rows": rows.piece(0, len(rows)),
        "sounds": sounds,
        "outlines": outlines,
        "differences": _differences(rows),
    }


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


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _hash(text: str) -> str:
    return _text(hashlib.sha256(text.encode("utf-8")).digest())
