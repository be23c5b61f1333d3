"""HTML with automatic escaping.

Transcripts, translations, voice descriptions, file names and error messages come from outside, and a notebook page
can run code in the kernel. Finished markup therefore has the type :class:`Html`, and every other value is text and is
escaped. A forgotten conversion is visible as ``&lt;`` on the page, and never becomes a script.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable

_END, _END_OF_ISOLATE = "\u202c", "\u2069"
_END_MARKS = {
    **dict.fromkeys("\u202a\u202b\u202d\u202e", _END),
    **dict.fromkeys("\u2066\u2067\u2068", _END_OF_ISOLATE),
}
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_VOID = frozenset({"br", "hr", "img", "meta"})
# Elements that a notebook keeps if it is not trusted, and further ones for pages of this package.
_TEXT = frozenset({"a", "code", "del", "em", "ins", "mark", "small", "span", "strong", "sub", "sup"})
_BLOCKS = frozenset({"details", "div", "figcaption", "figure", "li", "ol", "p", "pre", "summary", "ul"})
_TABLES = frozenset({"caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr"})
_PAGES = frozenset({"body", "footer", "head", "header", "html", "main", "nav", "section", "style", "title"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4"})
_ELEMENTS = _VOID | _TEXT | _BLOCKS | _TABLES | _PAGES | _HEADINGS | {"audio", "meter"}
_ATTRIBUTE = re.compile(r"[a-z][a-z-]*\Z")
_URL_ATTRIBUTES = frozenset({"href", "src"})
_URL = re.compile(r"(?:https?://|#|data:(?:audio/[a-z0-9.+-]+|image/(?:png|jpeg));base64,)", re.ASCII)


class Html(str):
    """Finished markup: only constants and results of this room should be. Text that is added to it is escaped."""

    __slots__ = ()

    def __add__(self, other: str) -> Html:
        return Html(str.__add__(self, escape(other)))

    def __radd__(self, other: str) -> Html:
        return Html(str.__add__(escape(other), self))

    def __html__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return str(self)


def escape(value: object) -> Html:
    """Convert a value to markup: text is escaped, quotes included; None is empty, and :class:`Html` is unchanged.

    A text ends what it begins of directions of writing (as U+202E does), so that it never turns the text after it.
    Half surrogate pairs, which UTF-8 does not allow, become question marks.
    """
    if isinstance(value, Html):
        return value
    if value is None:
        return Html()
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    return Html(html.escape(end_directions(text), quote=True))


def end_directions(text: str) -> str:
    """Return a text that ends what it begins of directions of writing, for a sentence with more text after it."""
    return text + _build_closing_marks(text)


def _build_closing_marks(text: str) -> str:
    """The marks that end the embeddings, overrides and isolates which a text leaves open (Unicode's annex 9)."""
    open_marks: list[str] = []
    for mark in _DIRECTIONS.findall(text):
        if mark in _END_MARKS:
            open_marks.append(_END_MARKS[mark])
        elif mark == _END_OF_ISOLATE and mark in open_marks:
            while open_marks.pop() != mark:
                pass
        elif open_marks and open_marks[-1] == mark:
            open_marks.pop()
    return "".join(reversed(open_marks))


def join(separator: object, parts: Iterable[object]) -> Html:
    """Join parts with a separator. Parts and separator are escaped if they are text.

    Example:
        >>> join(", ", ["a", "<b>"])
        'a, &lt;b&gt;'
    """
    return Html(str.join(escape(separator), [escape(item) for item in parts]))


def element(name: str, /, *children: object, **attributes: str | float | bool | None) -> Html:
    """Return one element with its children. ValueError: displays are not made of such elements, attributes or URLs.

    A trailing underscore of an attribute is dropped (``class_``), other underscores become hyphens. True gives an
    attribute without a value; False and None are left out.
    """
    if name not in _ELEMENTS:
        raise ValueError(f"<{name}> is not one of the elements that displays are made of")
    written = []
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if not _ATTRIBUTE.match(attribute) or attribute.startswith("on"):
            raise ValueError(f"{attribute!r} is not an attribute that displays may have")
        if value is None or value is False:
            continue
        if attribute in _URL_ATTRIBUTES and not _URL.match(str(value)):
            allowed = "http(s), a fragment, or base64 data of audio, PNG or JPEG"
            raise ValueError(f"{attribute} {str(value)[:40]!r} is not an address that is allowed: {allowed}")
        # An Html value is text here as well: markup has no place in an attribute.
        written.append(
            f" {attribute}" if value is True else f' {attribute}="{escape(str.__str__(str(value)))}"'
        )
    opening = f"<{name}{''.join(written)}>"
    if name in _VOID:
        return Html(opening)
    return Html(f"{opening}{join('', children)}</{name}>")


def data_url(data: bytes, content_type: str) -> str:
    """Convert bytes to a data URL.

    Args:
        data: The bytes.
        content_type: ``audio/...``, ``image/png`` or ``image/jpeg``.

    Raises:
        ValueError: The type is not allowed, such as SVG, which can contain scripts.

    Example:
        >>> data_url(b"RIFF", "audio/wav")
        'data:audio/wav;base64,UklGRg=='
    """
    url = f"data:{content_type};base64,"
    if not _URL.fullmatch(url):
        raise ValueError(f"{content_type!r} is not shown; allowed are audio, image/png and image/jpeg")
    return url + base64.b64encode(data).decode("ascii")
