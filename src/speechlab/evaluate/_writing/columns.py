"""Tables for people: columns declared once, rendered for pages, notebooks, terminals, Markdown and LaTeX alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.display import Html, element, end_directions, format_percent, join, table, write_minus
from speechlab.evaluate._study_arguments import parse_language_code
from speechlab.text import get_language_name

if TYPE_CHECKING:
    from typing import TypeAlias

    Row: TypeAlias = Mapping[Any, Any]
    # Returns the filter of the rows that have something in common, as JSON; nothing where the page cannot show them.
    RowFinder: TypeAlias = Callable[[Mapping[str, Any]], str]


_NOTHING = "–"
# Colors of bars that are seen on light and on dark pages.
_STRONG_BAR, _BAR = "#4285d6", "rgba(128,128,128,.55)"
_BAR_STYLE = (
    "display:inline-block;width:8em;height:1em;margin-right:10px;vertical-align:-.12em;"
    "border-left:1px solid rgba(128,128,128,.6);print-color-adjust:exact;"
)
# What a cell says of a yes and of a no.
_TICK, _NO = "✓", "\N{NO-BREAK SPACE}"
# Columns that name a line of a summary.
_LINE_KEYS = ("system", "condition", "voice", "language", "source_lang", "target_lang")
_EMPTY_TEXTS = frozenset({_NOTHING, _NO, "0", "0.0%"})
# What headings mean, for the note below a table.
_HEADING_EXPLANATIONS = {
    "95% interval": "95% interval: where the true value lies, as far as these rows can tell.",
    "p (Holm)": "p: how often chance alone makes such a difference; below 0.05 it counts as shown, after Holm's "
    "correction for several comparisons.",
    "with notation": "With notation: the rate if 4719 for 4 7 1 9 counted as an error.",
    "loops": "Loops: texts that say the same again and again.",
    "hallucinations": "Hallucinations: text that nobody said.",
    "tails lost": "Tails lost: texts without the last words.",
    "RTF": "RTF (real-time factor): seconds of waiting for one second of sound; below 1 is faster than speech.",
    "loudness (LUFS)": "LUFS: loudness; the nearer to 0, the louder.",
    "this voice": "This voice: where the other voices are understood.",
    "text or recognizer": "Text or recognizer: where most voices fail.",
    "chrF": "chrF: likeness to the reference from 0 to 100; more is closer.",
    "chrF back": "chrF back: likeness to the text after a translation back.",
    "agreement": "Agreement with the mean of the other listeners: 1 is full, 0 is none.",
    "smallest detectable difference": "Smallest detectable difference: one of this size shows in 8 of 10 such tests.",
    "on the same clips": "On the same clips: the rate on those that all systems answered, as in the answer.",
    "on the same texts": "On the same texts: the score on those that all systems answered; the figure has it.",
    "DNSMOS (1 to 5)": "DNSMOS: a network's guess of how people would rate the sound, from 1 (bad) to 5 (excellent); "
    "it hears noise and distortion, not how natural a voice is.",
    "clips that look wrong": "Clips that look wrong: those of the voice that reach full scale (overdriven), that end "
    "within a sound (cut off), or that say their end twice.",
}


class Bar(NamedTuple):
    """A bar beside a number, with its interval if that is known."""

    value: float
    low: float | None = None
    high: float | None = None
    strong: bool = True


class DisplayColumn(NamedTuple):
    """A column of a table for people.

    ``cell`` and ``detail`` (a small second line on pages) return the text of a row, or None. Columns of figures are
    aligned right; an optional one is left out if no row has anything in it. ``bar`` returns the bar beside a number;
    ``rows`` what the rows behind a cell have in common, by column: a text, True, or a range of numbers.
    """

    head: str
    cell: Callable[[Row], str | None]
    figure: bool = False
    strong: bool = False
    optional: bool = False
    detail: Callable[[Row], str | None] | None = None
    bar: Callable[[Row], Bar | None] | None = None
    rows: Callable[[Row], dict[str, Any] | None] | None = None


@dataclass(frozen=True)
class TextColumn:
    """A column as texts."""

    head: str
    texts: tuple[str, ...]
    details: tuple[str | None, ...]
    figure: bool = False
    strong: bool = False
    bars: tuple[Bar | None, ...] = ()
    rows: tuple[dict[str, Any] | None, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether several rows have one and the same text, which is words and no number."""
        if not len(self.texts) > 1 == len({*self.texts}):
            return False
        return not self.figure or self.texts[0][:1].isalpha()


@dataclass(frozen=True)
class View:
    """A table for people."""

    title: str
    columns: tuple[TextColumn, ...]
    note: str = ""

    @classmethod
    def from_rows(
        cls, title: str, columns: Sequence[DisplayColumn], rows: Sequence[Row] | pd.DataFrame, note: str = ""
    ) -> View:
        """Return the table of some rows."""
        records: Sequence[Row] = rows if isinstance(rows, list) else rows.to_dict("records")  # type: ignore[union-attr]
        filled = []
        for column in columns:
            texts = tuple(column.cell(row) or _NOTHING for row in records)
            if column.optional and all(text in _EMPTY_TEXTS for text in texts):
                continue
            details = tuple(None if column.detail is None else column.detail(row) for row in records)
            bars = () if column.bar is None else _scale_bars([column.bar(row) for row in records])
            behind = () if column.rows is None else tuple(column.rows(row) for row in records)
            filled.append(TextColumn(column.head, texts, details, column.figure, column.strong, bars, behind))
        return cls(title, tuple(filled), note)

    @classmethod
    def from_plain(cls, saved: Mapping[str, Any]) -> View:
        """Return the table from its plain form in a saved report."""
        columns = [TextColumn(**_to_tuples(column)) for column in saved["columns"]]
        return cls(saved["title"], tuple(columns), saved["note"])

    def __len__(self) -> int:
        return len(self.columns[0].texts) if self.columns else 0

    def to_frame(self) -> pd.DataFrame:
        """Return the table as texts, None where a value is missing.

        ``attrs`` has the names of columns of numbers (``figures``) and the note below the table (``note``).
        """
        texts = {
            column.head: [None if text in {_NOTHING, _NO} else text for text in column.texts]
            for column in self.columns
        }
        frame = pd.DataFrame(texts, dtype=object)
        frame.attrs["figures"] = [column.head for column in self.columns if column.figure]
        frame.attrs["note"] = self.explain_headings()
        return frame

    def explain_headings(self, before: Collection[str] = ()) -> str:
        """Return the note below the table, with what its headings mean that were not explained before."""
        new = {*self.headings} - {*before}
        return " ".join(
            [self.note, *(words for head, words in _HEADING_EXPLANATIONS.items() if head in new)]
        ).strip()

    def render_html(self, explained: Collection[str] = (), find_rows: RowFinder | None = None) -> Html:
        """Return the table with its note below it; a text that is the same in all rows is in its caption.

        With ``find_rows`` counts and names are links to the rows behind them.
        """
        constant = [column for column in self.columns if column.is_constant][: len(self.columns) - 1]
        varying = [column for column in self.columns if column not in constant]
        facts = [_format_constant(column) for column in constant if column.texts[0] != _NOTHING]
        caption = f"{self.title}\nAll rows: {', '.join(facts)}" if facts else self.title
        cells = [[_render_cell(column, at, find_rows) for column in varying] for at in range(len(self))]
        right = [place for place, column in enumerate(varying) if column.figure]
        markup = table([column.head for column in varying], cells, caption=caption, right=right)
        note = self.explain_headings(explained)
        return join("", [markup, element("p", element("small", note))]) if note else markup

    @property
    def headings(self) -> list[str]:
        """The headings."""
        return [one.head for one in self.columns]


def _format_constant(column: TextColumn) -> str:
    """Return what all rows have in common: a language by its name, anything else after its heading."""
    text = end_directions(column.texts[0])
    return text if column.head == "language" else f"{column.head} {text}"


def _render_cell(column: TextColumn, at: int, find_rows: RowFinder | None) -> Html:
    text, detail = column.texts[at], column.details[at]
    unbroken = text.replace(" ", "\N{NO-BREAK SPACE}") if column.figure else text
    # Bars begin in one line, however long the numbers behind them are.
    width = f"display:inline-block;min-width:{max(map(len, column.texts))}.5ch" if column.bars else None
    main = element("strong" if column.strong else "span", unbroken, style=width)
    behind = column.rows[at] if column.rows and text not in _EMPTY_TEXTS else None
    if behind is not None and find_rows is not None and (rows := find_rows(behind)):
        main = element("a", main, href="#rows", data_rows=rows)
    if column.bars and (bar := column.bars[at]) is not None:
        main = join("", [_render_bar(bar), main])
    if detail is None:
        return main
    return join(Html("<br>"), [main, element("small", detail.replace(" ", "\N{NO-BREAK SPACE}"))])


def _to_tuples(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return saved fields, whose lists are tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in saved.items()}


def _scale_bars(bars: Sequence[Bar | None]) -> tuple[Bar | None, ...]:
    """Return bars whose ends are shares of the longest."""
    ends = [end for bar in bars if bar is not None for end in (bar.value, bar.high) if end is not None]
    longest = max(ends, default=0.0) or 1.0
    return tuple(
        None
        if bar is None
        else Bar(
            bar.value / longest,
            None if bar.low is None else bar.low / longest,
            None if bar.high is None else bar.high / longest,
            bar.strong,
        )
        for bar in bars
    )


def _render_bar(bar: Bar) -> Html:
    """Return a bar from 0 to its value, with a line along its interval, drawn by gradients alone."""
    color = _STRONG_BAR if bar.strong else _BAR
    layers = [f"linear-gradient(to right,{color} {bar.value:.1%},transparent 0) 0 50%/100% 9px no-repeat"]
    if bar.low is not None and bar.high is not None:
        stops = f"transparent {bar.low:.1%},currentColor 0,currentColor {bar.high:.1%},transparent 0"
        layers.insert(0, f"linear-gradient(to right,{stops}) 0 50%/100% 1.5px no-repeat")
    return element(
        "span", class_="bar", style=f"{_BAR_STYLE}background:{','.join(layers)}", aria_hidden="true"
    )


def build_plain_columns(frame: pd.DataFrame) -> list[DisplayColumn]:
    """Return a plain column for each column of a table."""
    return [
        build_number_column(name, name, ".3g")
        if frame[name].dtype.kind in "fiu"
        else build_text_column(name, name)
        for name in map(str, frame.columns)
    ]


def build_text_column(head: str, name: str, *, strong: bool = False, optional: bool = False) -> DisplayColumn:
    """Return a column of texts."""
    return DisplayColumn(head, lambda row: _format_text(row.get(name)), strong=strong, optional=optional)


def build_language_column(*, optional: bool = False) -> DisplayColumn:
    """Return the column of languages, by their names."""

    def format_cell(row: Row) -> str | None:
        return None if is_missing(row.get("language")) else format_language(str(row["language"]))

    return DisplayColumn("language", format_cell, optional=optional)


def select_rows(row: Row, **more: Any) -> dict[str, Any]:
    """Return what the rows of a line of a summary have in common, by column."""
    known = {name: row[name] for name in _LINE_KEYS if not is_missing(row.get(name))}
    return {**{name: str(value) for name, value in known.items()}, **more}


def build_count_column(
    head: str, name: str, *, optional: bool = False, counted: tuple[str, Any] | None = None
) -> DisplayColumn:
    """Return a column of whole numbers; ``counted`` is the column, with its value, of the rows that are counted."""
    column = DisplayColumn(
        head, lambda row: _format_number(row.get(name), ",.0f"), figure=True, optional=optional
    )
    if counted is None:
        return column
    return column._replace(rows=lambda row: select_rows(row, **{counted[0]: counted[1]}))


def build_number_column(
    head: str,
    name: str,
    form: str = ".2f",
    *,
    strong: bool = False,
    optional: bool = False,
    with_range: bool = False,
) -> DisplayColumn:
    """Return a column of numbers; ``with_range`` shows ``<name>_low`` to ``<name>_high`` below them on pages."""

    def format_range(row: Row) -> str | None:
        words = format_interval(row.get(f"{name}_low"), row.get(f"{name}_high"), form)
        return None if words is None or len({*words.split(" to ")}) == 1 else words

    column = DisplayColumn(head, lambda row: _format_number(row.get(name), form), True, strong, optional)
    return column._replace(detail=format_range) if with_range else column


def build_rate_column(head: str, name: str, *, strong: bool = False, optional: bool = False) -> DisplayColumn:
    """Return a column of fractions, in percent."""

    def format_cell(row: Row) -> str | None:
        return None if is_missing(row.get(name)) else format_percent(row[name])

    return DisplayColumn(head, format_cell, figure=True, strong=strong, optional=optional)


def build_charted_rate_column(
    head: str, name: str, is_strong: Callable[[Row], bool] | None = None
) -> DisplayColumn:
    """Return a column of fractions, in percent, each beside its bar; ``is_strong`` says which are colored."""

    def build_bar(row: Row) -> Bar | None:
        if is_missing(row.get(name)):
            return None
        low, high = (row.get(f"{name}_{end}") for end in ("low", "high"))
        known = not is_missing(low) and not is_missing(high)
        ends = (float(low), float(high)) if known else ()  # type: ignore[arg-type]  # numbers
        return Bar(float(row[name]), *ends)._replace(strong=is_strong is None or is_strong(row))

    return build_rate_column(head, name, strong=True)._replace(bar=build_bar)


def build_interval_column(low: str, high: str, form: str = ".2f") -> DisplayColumn:
    """Return a column of 95% intervals, from the columns of their ends."""
    return DisplayColumn("95% interval", lambda row: format_interval(row[low], row[high], form), figure=True)


def build_count_of_total_column(head: str, part: str, whole: str) -> DisplayColumn:
    """Return a column of how many rows there are, of how many in all."""

    def format_cell(row: Row) -> str:
        counted, total = row[part], row[whole]
        return f"{counted:,.0f}" if counted == total else f"{counted:,.0f} of {total:,.0f}"

    return DisplayColumn(head, format_cell, figure=True, rows=select_rows)


def build_p_value_column() -> DisplayColumn:
    """Return the column of p-values."""
    return DisplayColumn("p (Holm)", lambda row: format_p_value(row.get("p_holm")), figure=True)


def format_p_value(p: object) -> str | None:
    """Write a p-value with three decimals; None if there is none."""
    if is_missing(p):
        return None
    if p < 0.001:  # type: ignore[operator]  # a number
        return "< 0.001"
    return f"{p:.4f}" if f"{p:.3f}" == "0.050" else f"{p:.3f}"  # on which side of 0.05 it is


def describe_p_value(p: object) -> str:
    """Write a p-value for a sentence: ``p = 0.012``."""
    text_of_p = format_p_value(p) or "none"
    return f"p {text_of_p}" if text_of_p.startswith("<") else f"p = {text_of_p}"


def format_interval(low: object, high: object, form: str = ".2f") -> str | None:
    """Write an interval: ``1.0% to 2.0%``; None if it is missing."""
    if is_missing(low) or is_missing(high):
        return None
    return write_minus(f"{float(low) + 0.0:{form}} to {float(high) + 0.0:{form}}")  # type: ignore[arg-type]  # numbers


def format_language(code: str) -> str:
    """Return the name of a language, or a substitute for a missing one."""
    plain_code = parse_language_code(code)
    return get_language_name(plain_code) if plain_code else str(code)


def capitalize_sentence(words: object) -> str:
    """Words as the beginning of a sentence."""
    text = str(words)
    return text[:1].upper() + text[1:]


def _format_text(value: object) -> str | None:
    if isinstance(value, bool | np.bool_):
        return _TICK if value else _NO
    return None if is_missing(value) else str(value)


def _format_number(value: object, form: str) -> str | None:
    """Write a number; one that is smaller than its last decimal is not written as nothing."""
    if is_missing(value):
        return None
    number = float(value)  # type: ignore[arg-type]  # a number, as was seen above
    text = format(number + 0.0, form)
    return "< 0.01" if text == "0.00" and number > 0 else write_minus(text)
