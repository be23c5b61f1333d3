"""What browsers get: modules and style sheets as one text each, and pages that need no kernel and no network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import orjson

from speechlab.display import Html, element, escape, read_page_style

_HERE = Path(__file__).parent
_IMPORT = re.compile(r"^import \{[^}]*\} from \"(?P<path>\./[^\"]+|\.\./[^\"]+)\";\n", re.MULTILINE)
# Only whole lines, so that no text in quotes is taken for a comment.
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/[ \t]*)\n", re.MULTILINE | re.DOTALL)
_INDENT = re.compile(r"^[ \t]+|\n(?=\n)", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
_PAGE = """<!DOCTYPE html>
<html lang="{lang}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{script_hash}'; \
style-src 'sha256-{style_hash}';{more} media-src blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>{title}</title><style>{style}</style></head>
<body><main>{above}<noscript>{noscript}</noscript><div id="widget"></div>{below}</main>
{held}<script type="module" async>{script}</script>
{later}</body></html>
"""
_DATA_ELEMENT = '<script type="application/json" id="{name}">{text}</script>\n'
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 16px; background: #fff; }
main > h1 { margin: 0 0 12px; font: 600 1.3rem/1.3 system-ui, sans-serif; overflow-wrap: anywhere; }
@media screen and (prefers-color-scheme: dark) { body { background: #14171d; } }
"""
_WIDE = """
@media screen { main { max-width: 1040px; } }
/* The rows use a wide window, the sentences above them do not. */
@media screen and (min-width: 1100px) {
  main > #widget { --wide: min(1600px, 100vw - 56px); width: var(--wide); margin-left: calc(50% - var(--wide) / 2); }
}
main > :is(p, ol, ul), main > div:not(#widget) > :is(p, ul) { max-width: 90ch; }
.sl-more {
  min-height: 40px; margin: 8px 0; padding: 4px 14px; border: 1px solid var(--line); border-radius: 8px;
  background: var(--card); color: inherit; font: inherit; cursor: pointer;
}
a[data-rows] { color: inherit; text-decoration-color: var(--line); text-underline-offset: 3px; }
p > a[data-rows] { color: var(--accent); text-decoration-color: currentColor; }
a[data-rows]:hover { color: var(--accent); text-decoration-color: currentColor; }
.sl-hear {
  width: 24px; height: 24px; margin: -4px 8px -4px 0; padding: 0 0 0 2px; border: 0; border-radius: 50%;
  font-size: 11px;
  background: color-mix(in srgb, var(--accent) 16%, transparent); color: var(--accent); cursor: pointer;
}
:is(.sl-more, .sl-hear):focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media print { :is(.sl-more, .sl-hear) { display: none; } }
main figure { max-width: 100%; margin: 20px 0 28px; padding: 0; border: 0; background: none; }
main figure img { display: block; width: 100%; height: auto; mix-blend-mode: multiply; }
main figcaption { margin-top: 4px; color: var(--soft); font-size: .9rem; }
@media screen and (prefers-color-scheme: dark) {
  main figure img { filter: invert(.93) hue-rotate(180deg); mix-blend-mode: lighten; }
}
"""
# Additions to the policy for markup around the widget: style attributes and figures.
_EXTRA_POLICY = " style-src-attr 'unsafe-inline'; img-src data:;"


@cache
def bundle_module(entry: Path) -> str:
    """Return an ES module with the modules that it imports, each once and before its users.

    Names are not changed, so top-level names of joined modules have to differ. Comments and indents are removed,
    because every widget sends its source to the browser.
    """
    texts: dict[Path, str] = {}
    _collect_modules(entry.resolve(), texts)
    return _INDENT.sub("", _COMMENT.sub("", "\n".join(texts.values())))


def _collect_modules(path: Path, texts: dict[Path, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for statement in _IMPORT.finditer(text):
        imported = (path.parent / statement["path"]).resolve()
        if imported not in texts:
            _collect_modules(imported, texts)
    texts[path] = _EXPORT.sub("", _IMPORT.sub("", text))


@cache
def read_colors_and_style_sheets(*sheets: Path) -> str:
    """Return the shared colors of all widgets, and the style sheets of one widget."""
    return "\n".join(path.read_text(encoding="utf-8") for path in (_HERE / "colors.css", *sheets))


def render_widget_page(
    title: str,
    module: str,
    stand_in: Path,  # a module that replaces the kernel
    style: str,
    held: Mapping[str, str],  # data of the stand-in by the id of its element, of to_json_text
    *,
    lang: str = "en",
    later: Mapping[str, str] | None = None,  # as held, but large: read after the widget is shown
    noscript: str = "This page needs JavaScript, which it holds itself.",
    above: Html | None = None,
    below: Html | None = None,
    with_heading: bool = False,  # the title, where nothing is above the widget
) -> str:
    """Return the page, whose content security policy forbids all requests."""
    script = module.replace("export default ", "const widget = ") + "\n" + bundle_module(stand_in)
    css = _STYLE + style if above is None else f"{read_page_style()}{_WIDE}{style}"  # none of it is escaped
    return _PAGE.format(
        lang=lang,
        title=escape(title),
        script=script,
        script_hash=_hash_text(script),
        style=css,
        style_hash=_hash_text(css),
        more="" if above is None else _EXTRA_POLICY,
        above=above or (element("h1", title, dir="auto") if with_heading else ""),
        below=below or "",
        noscript=noscript,
        held=_render_data_elements(held),
        later=_render_data_elements(later or {}),
    )


def _render_data_elements(texts: Mapping[str, str]) -> str:
    return "".join(_DATA_ELEMENT.format(name=name, text=text) for name, text in texts.items())


def to_json_text(value: object) -> str:
    """Return JSON that ends neither its HTML element nor, with U+2028 or U+2029, a line."""
    data = orjson.dumps(value).decode()
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def to_base64(data: bytes) -> str:
    """Return bytes as a text for a page."""
    return base64.b64encode(data).decode("ascii")


def _hash_text(text: str) -> str:
    """Return the hash of a script or a style sheet for the policy."""
    return to_base64(hashlib.sha256(text.encode("utf-8")).digest())
