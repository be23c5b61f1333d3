"""A page with a widget and its data, which needs no kernel and no network."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import orjson

from speechlab.display import Html, escape, page_style
from speechlab.widgets._shared.module import module_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{script_hash}'; \
style-src 'sha256-{style_hash}';{more} media-src blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>{title}</title><style>{style}</style></head>
<body><main>{above}<noscript>{noscript}</noscript><div id="widget"></div>{below}</main>
{held}<script type="module" async>{script}</script>
{later}</body></html>
"""
_HELD = '<script type="application/json" id="{name}">{text}</script>\n'
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 16px; background: #fff; }
@media screen and (prefers-color-scheme: dark) { body { background: #14171d; } }
"""
_WIDE = """
@media screen { main { max-width: 1040px; } }
main > :is(p, ol, ul), main > div:not(#widget) > :is(p, ul) { max-width: 90ch; }
.sl-more {
  min-height: 40px; margin: 8px 0; padding: 4px 14px; border: 1px solid var(--line); border-radius: 8px;
  background: var(--card); color: inherit; font: inherit; cursor: pointer;
}
.sl-more:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media print { .sl-more { display: none; } }
main figure { max-width: 100%; margin: 20px 0 28px; padding: 0; border: 0; background: none; }
main figure img { display: block; width: 100%; max-width: 860px; height: auto; mix-blend-mode: multiply; }
main figcaption { margin-top: 4px; color: var(--soft); font-size: .9rem; }
@media screen and (prefers-color-scheme: dark) {
  main figure img { filter: invert(.91) hue-rotate(180deg); mix-blend-mode: lighten; }
}
"""
_WITH_MORE = " style-src-attr 'unsafe-inline'; img-src data:;"
"""Additions to the policy for markup around the widget: style attributes and figures."""


def page_of(
    title: str,
    module: str,
    stand_in: Path,
    style: str,
    held: Mapping[str, str],
    *,
    later: Mapping[str, str] | None = None,
    noscript: str = "This page needs JavaScript, which it holds itself.",
    above: Html | None = None,
    below: Html | None = None,
) -> str:
    """Return the page, whose content security policy forbids all requests.

    Args:
        title: Title of the page.
        module: Source of the widget.
        stand_in: Module that replaces the kernel and shows the widget in the element ``widget``.
        style: Style sheet of the widget.
        held: Data of the stand-in by the id of its element, as JSON that :func:`json_text` wrote.
        later: Further, large data in the same form, which is read after the widget is shown.
        noscript: Text for browsers without scripts.
        above: Markup before the widget, for a page with more than the widget.
        below: Markup after the widget.
    """
    script = module.replace("export default ", "const widget = ") + "\n" + module_source(stand_in)
    css = _STYLE + style if above is None else f"{page_style()}{_WIDE}{style}"  # none of it is escaped
    return _PAGE.format(
        title=escape(title),
        script=script,
        script_hash=_hash_of(script),
        style=css,
        style_hash=_hash_of(css),
        more="" if above is None else _WITH_MORE,
        above=above or "",
        below=below or "",
        noscript=noscript,
        held=_held(held),
        later=_held(later or {}),
    )


def _held(texts: Mapping[str, str]) -> str:
    return "".join(_HELD.format(name=name, text=text) for name, text in texts.items())


def json_text(value: object) -> str:
    """Return JSON that ends neither its HTML element nor, with U+2028 or U+2029, a line."""
    data = orjson.dumps(value).decode()
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def base64_text(data: bytes) -> str:
    """Return bytes as a text for a page."""
    return base64.b64encode(data).decode("ascii")


def _hash_of(text: str) -> str:
    """Return the hash of a script or a style sheet for the policy."""
    return base64_text(hashlib.sha256(text.encode("utf-8")).digest())
