"""Parts of reprs and reports.

All parts work in untrusted notebooks: ``src`` is on the ``audio`` element itself, pictures are PNG, words are visible
text, and style is in ``style`` attributes. Colors are those of the page, or mid-tones with enough contrast on light
and dark pages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from speechlab._arguments import is_number, is_whole_number
from speechlab.display._html import Html, element, end_directions, join

_BORDER = "1px solid rgba(128,128,128,.32)"
_FIGURE = "margin:4px 0 8px;max-width:640px;font-family:inherit;line-height:1.45"
_CAPTION = "margin:0 0 6px;text-align:left;font-style:normal;color:inherit"
_MUTED = "opacity:.74;font-size:.92em"
_WAVEFORM = (
    "display:block;box-sizing:border-box;width:100%;max-width:100%;height:72px;margin:0;"
    f"border:{_BORDER};border-radius:6px;background:rgba(128,128,128,.07)"
)
_PLAYER = "display:block;width:100%;height:36px;margin:6px 0 0"
_TEXT = "margin:8px 0 0"
_TABLE_CAPTION = "text-align:left;padding:4px 10px"
_CELL = f"padding:4px 10px;border-bottom:{_BORDER};vertical-align:top;white-space:normal;"
_MAX_WORD = 16
_TAGS = re.compile("<[^<>]*>")
# The first words of a caption, and the rest of it.
_CAPTION_HEAD = re.compile(r"(.+?(?:[:.]|(?=\n)))(\s.+)", re.DOTALL)
# Notebooks typeset text between two dollar signs as mathematics, except below these classes, which they keep in
# untrusted outputs.
_NO_MATHEMATICS = "tex2jax_ignore mathjax_ignore"
_HAIR_SPACE = "\u200a"
_MARKS = {
    "insert": "text-decoration:underline;background:rgba(46,160,67,.32);color:inherit",
    "delete": "text-decoration:line-through;background:rgba(229,83,75,.34);color:inherit",
}
# What is marked more softly, as in the live table: what sounds alike, and what is only spelled in another way.
_SOUNDS_ALIKE = "text-decoration-style:dashed;background:rgba(222,160,30,.32)"
_SOFTER_MARKS = {
    "homophone": _SOUNDS_ALIKE,
    "tone": _SOUNDS_ALIKE,
    "notation": "text-decoration-style:dotted;background:none;opacity:.8",
}


def notebook_output(*children: object, class_: str | None = None) -> Html:
    """Return the root element of a notebook output, in which no text is typeset as mathematics.

    Figures, tables, differences and collapsible parts are such roots themselves.

    Args:
        *children: Parts of this room; text is escaped.
        class_: A further class.

    Example:
        >>> "&lt;b&gt;" in notebook_output("<b>")
        True
    """
    return element("div", *children, class_=f"{_NO_MATHEMATICS} {class_}" if class_ else _NO_MATHEMATICS)


def audio_figure(
    audio_url: str | None,
    *,
    title: str | None = None,
    facts: Iterable[object] = (),
    image_url: str | None = None,
    image_alt: str = "",
    text: object = None,
    lang: str | None = None,
) -> Html:
    """Return the figure of a recording: caption, picture, native player and transcript.

    Args:
        audio_url: Data URL of the sound; None for no player.
        title: Name of the recording.
        facts: Short facts for the caption, in order.
        image_url: Data URL of a picture of the sound.
        image_alt: Alternative text of the picture.
        text: Transcript, shown below the player.
        lang: BCP 47 tag of the text, such as ``"ja"``; browsers choose its glyphs by it.

    Example:
        >>> "<audio" in audio_figure("data:audio/wav;base64,UklGRg==", title="Greeting")
        True
    """
    separator = Html(" · ")
    head = element("strong", title, dir="auto") if title else None
    tail = element("span", join(separator, facts), style=_MUTED)
    caption = [part for part in (head, tail) if part]
    return element(
        "figure",
        element("figcaption", join(element("span", separator, style=_MUTED), caption), style=_CAPTION),
        element("img", src=image_url, alt=image_alt, style=_WAVEFORM) if image_url else None,
        element("audio", src=audio_url, controls=True, preload="metadata", style=_PLAYER)
        if audio_url
        else None,
        element("p", text, lang=lang, dir="auto", style=_TEXT) if text is not None else None,
        class_=_NO_MATHEMATICS,
        style=_FIGURE,
    )


def table(
    columns: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    caption: object = None,
    langs: Sequence[str | None] | None = None,
    right: Iterable[int] = (),
) -> Html:
    """A table. Numbers are right-aligned; floats have four significant digits of the largest number in the column.

    Args:
        columns: Headings.
        rows: Cells of each row, as many as headings: text, numbers, None (an en dash) or :class:`Html`.
        caption: Caption of the table; its first words, up to a line break, a full stop or a colon, are bold.
        langs: BCP 47 tag for the text of each column, or None.
        right: Numbers of further columns to align right, for figures that are texts.

    Raises:
        ValueError: A row has more or fewer cells than there are headings.

    Example:
        >>> "<th" in table(["voice", "rate"], [["anna", 0.05], ["ben", None]])
        True
    """
    tags = list(langs) if langs is not None else [None] * len(columns)
    lines = [list(row) for row in rows]
    for count in {len(tags), *map(len, lines)} - {len(columns)}:
        raise ValueError(f"{len(columns)} headings do not fit {count} cells or languages; give one for each")
    figures = set(right)
    cells = list(zip(*lines, strict=True)) or [() for _ in columns]
    kinds = [_ColumnFormat(list(column), right=index in figures) for index, column in enumerate(cells)]
    heads = (
        element("th", name, scope="col", style=kind.build_style(head=True))
        for name, kind in zip(columns, kinds, strict=True)
    )
    body = (
        element("tr", *map(_ColumnFormat.render_cell, kinds, line, tags, map(str, columns))) for line in lines
    )
    table_element = element(
        "table",
        _render_caption(caption),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
        style="border-collapse:collapse;margin:8px 0",
    )
    # Content wider than the cell of a notebook can be scrolled, also by keys, and is not cut off.
    return element(
        "div",
        table_element,
        class_=_NO_MATHEMATICS,
        style="max-width:100%;overflow-x:auto",
        role="group",
        tabindex=0,
        aria_label=str(_split_caption(caption)[0] or "Table").rstrip(":."),
    )


def _render_caption(caption: object) -> Html | None:
    if not caption:
        return None
    head, remainder = _split_caption(caption)
    below = element("br") if remainder.startswith("\n") else None
    return element("caption", element("strong", head), below, remainder.lstrip("\n"), style=_TABLE_CAPTION)


def _split_caption(caption: object) -> tuple[object, str]:
    """Return the bold head of a caption, and the rest; markup is not split."""
    match = None if isinstance(caption, Html) else _CAPTION_HEAD.fullmatch(str(caption or ""))
    return (match[1], match[2]) if match else (caption, "")


def render_details(summary: object, *body: object, opened: bool = False) -> Html:
    """Return a collapsible part: the line that is always visible, and its content."""
    head = element("summary", summary, style="cursor:pointer")
    return element("details", head, *body, open=opened, class_=_NO_MATHEMATICS, style="margin:6px 0")


def diff(
    operations: Iterable[
        tuple[Literal["equal", "substitute", "delete", "insert"], str, str]
        | tuple[Literal["equal", "substitute", "delete", "insert"], str, str, str]
    ],
    *,
    lang: str | None = None,
    separator: str = " ",
) -> Html:
    """Reference and hypothesis in one line: missing text is struck out, inserted text underlined.

    Args:
        operations: Kind, reference text and hypothesis text, in order; the side that a kind lacks is ignored. A
            fourth text is the class of a difference: ``homophone``, ``tone`` and ``notation`` are marked softly.
        lang: BCP 47 tag of the text.
        separator: Between operations; empty for scripts without spaces.

    Example:
        >>> "<del" in diff([("equal", "good", "good"), ("substitute", "morning", "mourning")])
        True
    """
    pieces: list[Html] = []
    for kind, reference, hypothesis, *classes in operations:
        if kind == "equal":
            pieces.append(element("span", reference))
            continue
        softer = "".join(f";{_SOFTER_MARKS[name]}" for name in classes if name in _SOFTER_MARKS)
        deletion = element("del", reference, style=_MARKS["delete"] + softer) if kind != "insert" else None
        insertion = element("ins", hypothesis, style=_MARKS["insert"] + softer) if kind != "delete" else None
        # A hair space, so that a word and its replacement do not read as one word.
        pieces.append(join(_HAIR_SPACE if deletion and insertion else "", (deletion, insertion)))
    return element("span", join(separator, pieces), lang=lang, dir="auto", class_=_NO_MATHEMATICS)


def render_difference_legend() -> Html:
    """Return what the marks of differences mean, as they are drawn."""
    marks = (
        (diff([("delete", "missing", "")]), diff([("insert", "", "inserted")])),
        (diff([("insert", "", "sounds alike", "homophone")]),),
        (diff([("insert", "", "only another spelling", "notation")]),),
    )
    parts = [join(" ", pair) for pair in marks]
    return element("div", element("span", "Differences: ", style=_MUTED), join(Html(" · "), parts))


def join_with_and(items: Sequence[str]) -> str:
    """Parts of a sentence, such as "a, b and c"."""
    texts = [end_directions(item) for item in items]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


_NUMBERS = ("no", "one", "two", "three", "four", "five")


def format_count(count: int, singular: str, several: str = "", *, in_words: bool = False) -> str:
    """Return a number with its noun: ``1 row``, ``2 rows``; with ``in_words`` small ones as ``two rows``."""
    number = _NUMBERS[count] if in_words and count < len(_NUMBERS) else f"{count:,}"
    return f"{number} {singular if count == 1 else several or f'{singular}s'}"


def format_percent(rate: object) -> str:
    """Return a fraction as a percentage with one decimal, such as 5.1%; a missing fraction as a dash."""
    return f"{rate:.1%}" if is_number(rate) and rate == rate else "–"


def write_minus(number: str) -> str:
    """Return a number for people: its hyphens, which begin numbers below zero, are minus signs."""
    return number.replace("-", "\N{MINUS SIGN}")


class _ColumnFormat:
    """Format of one column's cells: numbers right-aligned, floats with the same number of decimals."""

    def __init__(self, values: list[object], *, right: bool = False) -> None:
        numbers = [value for value in values if is_number(value)]
        filled = sum(value is not None for value in values)
        self.numeric = right or (bool(numbers) and len(numbers) == filled)
        # A column is as wide as its longest word, unless the other columns would not fit into a narrow cell.
        texts = [value for value in values if isinstance(value, str) and not isinstance(value, Html)]
        self.endless = any(len(word) > _MAX_WORD for text in texts for word in text.split())
        sizes = [abs(float(value)) for value in numbers if math.isfinite(value)]
        # Four significant digits of the largest number; further digits of the others would be noise.
        largest = max(sizes, default=0.0) or 1.0
        # Counts are floats where one of them is missing.
        whole = all(size.is_integer() for size in sizes)
        self.decimals = 0 if whole else min(max(3 - math.floor(math.log10(largest)), 0), 6)

    def render_cell(self, value: object, lang: str | None, label: str) -> Html:
        """Return one cell. On a screen too narrow for columns, the label precedes the value."""
        attributes: dict[str, str | bool] = {"data_label": label, "data_figure": self.numeric}
        if is_number(value):
            text = str(value) if is_whole_number(value) else f"{float(value):.{self.decimals}f}"
            return element("td", text, style=self.build_style(), **attributes)
        content = "–" if value is None else value
        nothing = isinstance(content, str) and _TAGS.sub("", content) == "–"
        return element(
            "td", content, lang=lang, dir="auto", style=self.build_style(), data_nothing=nothing, **attributes
        )

    def build_style(self, *, head: bool = False) -> str:
        wrap = "overflow-wrap:anywhere;" if self.endless and not head else "overflow-wrap:break-word;"
        weight = "font-weight:600;" if head else ""
        numeric = "text-align:right;font-variant-numeric:tabular-nums"
        return _CELL + wrap + weight + (numeric if self.numeric else "text-align:left")
