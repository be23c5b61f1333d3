"""Tables for people: columns declared once, rendered for pages, notebooks, terminals and papers alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._arguments import is_missing
from speechlab.display import Html, element, join, percent, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd

    Row = Mapping[Any, Any]

_NOTHING = frozenset({"–", "0", "0.0%"})
_EXPLAINED = {
    "95 % interval": "95 % interval: where the true value lies, as far as these rows can tell.",
    "p (Holm)": "p: how often chance alone makes such a difference; below 0.05 it counts as shown, after Holm's "
    "correction for several comparisons.",
    "group": "Those that share a letter cannot be told apart.",
    "with notation": "With notation: the rate if 4719 for 4 7 1 9 counted as an error.",
    "RTF": "RTF: seconds of computing for one second of sound; below 1 is faster than speech.",
    "loudness (LUFS)": "LUFS: loudness; the nearer to 0, the louder.",
    "the voice's own": "The voice's own: where the other voices are understood.",
    "whatever the voice": "Whatever the voice: where most voices fail, so rather the text's or the recogniser's.",
    "chrF": "chrF: likeness to the reference from 0 to 100; more is closer.",
    "chrF back": "chrF back: likeness to the text after a translation back.",
    "agreement": "Agreement with the mean of the other listeners: 1 is full, 0 is none.",
    "detectable": "Detectable: the smallest difference that this test would find in 8 of 10 tests.",
}
"""What headings mean, for the note below a table."""


class Shown(NamedTuple):
    """A column of a table for people.

    Attributes:
        head: Its heading.
        cell: Function of a row that returns the text of its cell; None for a missing value.
        figure: Whether its texts are numbers, which are aligned right.
        strong: Whether the page prints it in bold.
        optional: Whether it is left out if no row has anything in it.
        detail: Function of a row that returns a small second line for pages, such as a range.
    """

    head: str
    cell: Callable[[Row], str | None]
    figure: bool = False
    strong: bool = False
    optional: bool = False
    detail: Callable[[Row], str | None] | None = None


@dataclass(frozen=True)
class TextColumn:
    """A column as texts.

    Attributes:
        head: Its heading.
        texts: The text of each row; ``–`` for a missing value.
        details: A small second line of each row for pages; None for none.
        figure: Whether its texts are numbers, which are aligned right.
        strong: Whether the page prints it in bold.
    """

    head: str
    texts: tuple[str, ...]
    details: tuple[str | None, ...]
    figure: bool = False
    strong: bool = False


@dataclass(frozen=True)
class View:
    """A table for people.

    Attributes:
        title: What it shows.
        columns: Its columns, without those that have nothing in them.
        note: How to read it.
    """

    title: str
    columns: tuple[TextColumn, ...]
    note: str = ""

    @classmethod
    def of(
        cls, title: str, columns: Sequence[Shown], rows: Sequence[Row] | pd.DataFrame, note: str = ""
    ) -> View:
        """Return the table of some rows."""
        each: Sequence[Row] = rows if isinstance(rows, list) else rows.to_dict("records")  # type: ignore[union-attr]
        shown = []
        for column in columns:
            texts = tuple(column.cell(row) or "–" for row in each)
            details = tuple(None if column.detail is None else column.detail(row) for row in each)
            if not column.optional or any(text not in _NOTHING for text in texts):
                shown.append(TextColumn(column.head, texts, details, column.figure, column.strong))
        words = [words for head, words in _EXPLAINED.items() if any(one.head == head for one in shown)]
        return cls(title, tuple(shown), " ".join([note, *words]).strip())

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> View:
        """Return the table from its plain form in a saved report."""
        columns = [
            TextColumn(**{**one, "texts": tuple(one["texts"]), "details": tuple(one["details"])})
            for one in kept["columns"]
        ]
        return cls(kept["title"], tuple(columns), kept["note"])

    def __len__(self) -> int:
        return len(self.columns[0].texts) if self.columns else 0

    def frame(self) -> pd.DataFrame:
        """Return the table as texts, None where a value is missing; ``attrs["figures"]`` names columns of numbers."""
        import pandas as pd

        texts = {one.head: [None if text == "–" else text for text in one.texts] for one in self.columns}
        frame = pd.DataFrame(texts, dtype=object)
        frame.attrs["figures"] = [one.head for one in self.columns if one.figure]
        return frame

    def html(self) -> Html:
        """Return the table with its note below it; a text that is the same in all rows stands in its caption."""
        same = [one for one in self.columns if not one.figure and len(one.texts) > 1 == len({*one.texts})]
        shown = [one for one in self.columns if one not in same[: len(self.columns) - 1]]
        facts = "; ".join(f"{one.head}: {one.texts[0]}" for one in same if one not in shown)
        caption = f"{self.title}. {facts[:1].upper()}{facts[1:]}." if facts else f"{self.title}."
        lines = [[_cell(column, at) for column in shown] for at in range(len(self))]
        right = [place for place, column in enumerate(shown) if column.figure]
        made = table([column.head for column in shown], lines, caption=caption, right=right)
        return join("", [made, element("p", element("small", self.note))]) if self.note else made


def _cell(column: TextColumn, at: int) -> Html:
    text, detail = column.texts[at], column.details[at]
    plain = text.replace(" ", "\N{NO-BREAK SPACE}") if column.figure else text
    main = element("strong" if column.strong else "span", plain)
    if detail is None:
        return main
    return join(Html("<br>"), [main, element("small", detail.replace(" ", "\N{NO-BREAK SPACE}"))])


def plain_columns(frame: pd.DataFrame) -> list[Shown]:
    """Return a plain column for each column of a table."""
    return [
        number(name, name, ".3g") if frame[name].dtype.kind in "fiu" else text(name, name)
        for name in map(str, frame.columns)
    ]


def text(head: str, name: str, *, strong: bool = False, optional: bool = False) -> Shown:
    """Return a column of texts."""
    return Shown(head, lambda row: _text(row.get(name)), strong=strong, optional=optional)


def count(head: str, name: str, *, optional: bool = False) -> Shown:
    """Return a column of whole numbers."""
    return Shown(head, lambda row: _form(row.get(name), ",.0f"), figure=True, optional=optional)


def number(
    head: str,
    name: str,
    form: str = ".2f",
    *,
    strong: bool = False,
    optional: bool = False,
    ends: bool = False,
) -> Shown:
    """Return a column of numbers; with ``ends``, pages show the range ``<name>_low`` to ``<name>_high`` below."""
    detail = None
    if ends:

        def detail(row: Row) -> str | None:
            return interval_text(row.get(f"{name}_low"), row.get(f"{name}_high"), form)

    return Shown(
        head,
        lambda row: _form(row.get(name), form),
        figure=True,
        strong=strong,
        optional=optional,
        detail=detail,
    )


def rate(head: str, name: str, *, strong: bool = False, optional: bool = False) -> Shown:
    """Return a column of fractions, in percent."""
    return Shown(
        head,
        lambda row: None if is_missing(row.get(name)) else percent(row[name]),
        figure=True,
        strong=strong,
        optional=optional,
    )


def chance(head: str, name: str, *, optional: bool = False) -> Shown:
    """Return a column of p-values."""
    return Shown(head, lambda row: p_text(row.get(name)), figure=True, optional=optional)


def p_text(p: object) -> str | None:
    """Write a p-value with three decimals; None if there is none."""
    if is_missing(p):
        return None
    return "< 0.001" if p < 0.001 else f"{p:.3f}"  # type: ignore[operator]  # a number


def p_words(p: object) -> str:
    """Write a p-value for a sentence: ``p = 0.012``."""
    told = p_text(p) or "none"
    return f"p {told}" if told.startswith("<") else f"p = {told}"


def interval_text(low: object, high: object, form: str = ".2f") -> str | None:
    """Write an interval: ``1.0% to 2.0%``; None if it is missing."""
    if is_missing(low) or is_missing(high):
        return None
    return f"{_form(low, form)} to {_form(high, form)}"


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence: ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def plural(count: int, one: str, several: str = "") -> str:
    """A number with its noun: ``1 row``, ``2 rows``."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def _text(value: object) -> str | None:
    return None if is_missing(value) else str(value)


def _form(value: object, form: str) -> str | None:
    return None if is_missing(value) else format(float(value) + 0.0, form)  # type: ignore[arg-type]  # a number
