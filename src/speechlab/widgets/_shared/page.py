"""One page that holds a widget with its data, and needs no kernel and no network."""

from __future__ import annotations

import base64
import hashlib
import html
from typing import Any

import orjson

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{script_hash}'; \
style-src 'sha256-{style_hash}'; media-src blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>{title}</title><style>{style}</style></head>
<body><noscript>This page needs JavaScript, which it holds itself.</noscript><main id="{place}"></main>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body></html>
"""
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 16px; background: #fff; }
@media (prefers-color-scheme: dark) { body { background: #14171d; } }
"""


def page_of(title: str, place: str, module: str, stand_in: str, style: str, data: dict[str, Any]) -> str:
    """Return the page, whose policy lets nothing in and nothing out.

    Args:
        title: Its title.
        place: Id of the element that the widget is shown in.
        module: Source of the widget.
        stand_in: Source of what stands in for the kernel.
        style: Style sheet of the widget.
        data: What the stand-in answers from.
    """
    script = module.replace("export default ", "const widget = ") + "\n" + stand_in
    css = _STYLE + style
    return _PAGE.format(
        title=html.escape(title), place=place, script=script, script_hash=hash_of(script), style=css,
        style_hash=hash_of(css), data=json_text(data),
    )  # fmt: skip


def json_text(value: object) -> str:
    """Return JSON that cannot end the element that holds it, nor, by the two separators, a line of it."""
    data = orjson.dumps(value).decode()
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def base64_text(data: bytes) -> str:
    """Return bytes as a text for a page."""
    return base64.b64encode(data).decode("ascii")


def hash_of(text: str) -> str:
    """Return the hash by which a policy knows a script or a style sheet."""
    return base64_text(hashlib.sha256(text.encode("utf-8")).digest())
