"""Modules for the browser: a file and its imports become one text, because a widget contains its source."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_IMPORT = re.compile(r"^import \{[^}]*\} from \"(?P<path>\./[^\"]+|\.\./[^\"]+)\";\n", re.MULTILINE)
# Only whole lines, so that no text in quotes is taken for a comment.
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/[ \t]*)\n", re.MULTILINE | re.DOTALL)
_INDENT = re.compile(r"^[ \t]+|\n(?=\n)", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


@cache
def module_source(entry: Path) -> str:
    """Return an ES module with the modules that it imports, each once and before its users.

    Names are not changed, so top-level names of joined modules have to differ. Comments and indents are removed,
    because every widget sends its source to the browser.
    """
    parts: dict[Path, str] = {}
    _collect(entry.resolve(), parts)
    return _INDENT.sub("", _COMMENT.sub("", "\n".join(parts.values())))


def _collect(path: Path, parts: dict[Path, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for found in _IMPORT.finditer(text):
        needed = (path.parent / found["path"]).resolve()
        if needed not in parts:
            _collect(needed, parts)
    parts[path] = _EXPORT.sub("", _IMPORT.sub("", text))


@cache
def style_sheet(*sheets: Path) -> str:
    """Return the shared colours of all widgets, and the style sheets of one widget."""
    return "\n".join(path.read_text(encoding="utf-8") for path in (_HERE / "colors.css", *sheets))
