"""Tables for people: columns declared once, rendered for pages, notebooks, terminals, Markdown and LaTeX alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.display import Html, element, join, percent, table
from speechlab.evaluate._arguments import code_or_none
from speechlab.text import language_name

if TYPE_CHECKING:
    Row = Mapping[Any, Any]


_NOTHING = frozenset({"–", "0", "0.0%"})
_EXPLAINED = {
    "95 % interval": "95 % interval: where the true value lies, as far as these rows can tell.",
    "p (Holm)": "p: how often chance alone makes such a difference; below 0.05 it counts as shown, after Holm's "
    "correction for several comparisons.",
    "with notation": "With notation: the rate if 4719 for 4 7 1 9 counted as an error.",
    "loops": "Loops: texts that say the same again and again.",
    "hallucinations": "Hallucinations: text that nobody said.",
    "tails lost": "Tails lost: texts without the last words.",
    "RTF": "RTF (real-time factor): seconds of waiting for one second of sound; below 1 is faster than speech.",
    "loudness (LUFS)": "LUFS: loudness; the nearer to 0, the louder.",
    "the voice's own": "The voice's own: where the other voices are understood.",
    "whatever the voice": "Whatever the voice: where most voices fail, so rather the text's or the recogniser's.",
    "chrF": "chrF: likeness to the reference from 0 to 100; more is closer.",
    "chrF back": "chrF back: likeness to the text after a translation back.",
    "agreement": "Agreement with the mean of the other listeners: 1 is full, 0 is none.",
    "smallest to be found": "Smallest to be found: a difference of this size shows in 8 of 10 such tests.",
    "on the same clips": "On the same clips: the rate on those that all have, by which figure and answer go.",
    "on the same texts": "On the same texts: the score on those that all have, by which the figure goes.",
    "DNSMOS (1 to 5)": "DNSMOS: a network's guess of how people would rate the sound, from 1 (bad) to 5 (excellent); "
    "it hears noise and distortion, not how natural a voice is.",
    "clips that look wrong": "Clips that look wrong: those of the voice that reach full scale (overdriven), that end "
    "within a sound (cut off), or that say their end twice.",
}
"""What headings mean, for the note below a table."""


class Shown(NamedTuple):
    """A column of a table for people.

    ``cell`` and ``detail`` (a small second line on pages) return the text of a row, or None. Columns of figures are
    aligned right; an optional one is left out if no row has anything in it.
    """

    head: str
    cell: Callable[[Row], str | None]
    figure: bool = False
    strong: bool = False
    optional: bool = False
    detail: Callable[[Row], str | None] | None = None


@dataclass(frozen=True)
class TextColumn:
    """A column as texts."""

    head: str
    texts: tuple[str, ...]
    details: tuple[str | None, ...]
    figure: bool = False
    strong: bool = False

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
    def of(
        cls, title: str, columns: Sequence[Shown], rows: Sequence[Row] | pd.DataFrame, note: str = ""
    ) -> View:
        """Return the table of some rows."""
        records: Sequence[Row] = rows if isinstance(rows, list) else rows.to_dict("records")  # type: ignore[union-attr]
        filled = []
        for column in columns:
            texts = tuple(column.cell(row) or "–" for row in records)
            details = tuple(None if column.detail is None else column.detail(row) for row in records)
            if not column.optional or any(text not in _NOTHING for text in texts):
                filled.append(TextColumn(column.head, texts, details, column.figure, column.strong))
        return cls(title, tuple(filled), note)

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> View:
        """Return the table from its plain form in a saved report."""
        columns = [
            TextColumn(**{**column, "texts": tuple(column["texts"]), "details": tuple(column["details"])})
            for column in saved["columns"]
        ]
        return cls(saved["title"], tuple(columns), saved["note"])

    def __len__(self) -> int:
        return len(self.columns[0].texts) if self.columns else 0

    def frame(self) -> pd.DataFrame:
        """Return the table as texts, None where a value is missing.

        ``attrs`` has the names of columns of numbers (``figures``) and the note below the table (``note``).
        """
        texts = {
            column.head: [None if text == "–" else text for text in column.texts] for column in self.columns
        }
        frame = pd.DataFrame(texts, dtype=object)
        frame.attrs["figures"] = [column.head for column in self.columns if column.figure]
        frame.attrs["note"] = self.explained()
        return frame

    def explained(self, before: Collection[str] = ()) -> str:
        """Return the note below the table, with what its headings mean that were not explained before."""
        new = {*self.heads} - {*before}
        return " ".join([self.note, *(words for head, words in _EXPLAINED.items() if head in new)]).strip()

    def html(self, explained: Collection[str] = ()) -> Html:
        """Return the table with its note below it; a text that is the same in all rows stands in its caption."""
        constant = [column for column in self.columns if column.is_constant]
        varying = [column for column in self.columns if column not in constant[: len(self.columns) - 1]]
        facts = "; ".join(f"{column.head}: {column.texts[0]}" for column in constant if column not in varying)
        caption = f"{self.title}. The same in all rows: {facts}." if facts else f"{self.title}."
        cells = [[_cell(column, at) for column in varying] for at in range(len(self))]
        right = [place for place, column in enumerate(varying) if column.figure]
        markup = table([column.head for column in varying], cells, caption=caption, right=right)
        note = self.explained(explained)
        return join("", [markup, element("p", element("small", note))]) if note else markup

    @property
    def heads(self) -> list[str]:
        """The headings."""
        return [one.head for one in self.columns]


def _cell(column: TextColumn, at: int) -> Html:
    text, detail = column.texts[at], column.details[at]
    unbroken = text.replace(" ", "\N{NO-BREAK SPACE}") if column.figure else text
    main = element("strong" if column.strong else "span", unbroken)
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
    with_range: bool = False,
) -> Shown:
    """Return a column of numbers; ``with_range`` shows ``<name>_low`` to ``<name>_high`` below them on pages."""

    def ends(row: Row) -> str | None:
        words = interval_text(row.get(f"{name}_low"), row.get(f"{name}_high"), form)
        return None if words is None or len({*words.split(" to ")}) == 1 else words

    column = Shown(head, lambda row: _form(row.get(name), form), True, strong, optional)
    return column._replace(detail=ends) if with_range else column


def rate(head: str, name: str, *, strong: bool = False, optional: bool = False) -> Shown:
    """Return a column of fractions, in percent."""

    def cell(row: Row) -> str | None:
        return None if is_missing(row.get(name)) else percent(row[name])

    return Shown(head, cell, figure=True, strong=strong, optional=optional)


def interval(low: str, high: str, form: str = ".2f") -> Shown:
    """Return a column of 95 % intervals, from the columns of their ends."""
    return Shown("95 % interval", lambda row: interval_text(row[low], row[high], form), figure=True)


def of_all(head: str, part: str, whole: str) -> Shown:
    """Return a column of how many rows there are, of how many in all."""

    def cell(row: Row) -> str:
        counted, total = row[part], row[whole]
        return f"{counted:,.0f}" if counted == total else f"{counted:,.0f} of {total:,.0f}"

    return Shown(head, cell, figure=True)


def chance() -> Shown:
    """Return the column of p-values."""
    return Shown("p (Holm)", lambda row: p_text(row.get("p_holm")), figure=True)


def p_text(p: object) -> str | None:
    """Write a p-value with three decimals; None if there is none."""
    if is_missing(p):
        return None
    if p < 0.001:  # type: ignore[operator]  # a number
        return "< 0.001"
    return f"{p:.4f}" if f"{p:.3f}" == "0.050" else f"{p:.3f}"  # on which side of 0.05 it is


def p_words(p: object) -> str:
    """Write a p-value for a sentence: ``p = 0.012``."""
    text_of_p = p_text(p) or "none"
    return f"p {text_of_p}" if text_of_p.startswith("<") else f"p = {text_of_p}"


def interval_text(low: object, high: object, form: str = ".2f") -> str | None:
    """Write an interval: ``1.0% to 2.0%``; None if it is missing."""
    if is_missing(low) or is_missing(high):
        return None
    return f"{float(low) + 0.0:{form}} to {float(high) + 0.0:{form}}"  # type: ignore[arg-type]  # numbers


def plural(count: int, singular: str, several: str = "") -> str:
    """A number with its noun: ``1 row``, ``2 rows``."""
    return f"{count:,} {singular if count == 1 else several or f'{singular}s'}"


def named(code: str) -> str:
    """Return the name of a language, or what stands in its place."""
    plain_code = code_or_none(code)
    return language_name(plain_code) if plain_code else str(code)


_NUMBERS = ("no", "one", "two", "three", "four", "five")


def in_words(count: int, noun: str) -> str:
    """A number with its noun, small ones in words: ``two listeners``, ``12 listeners``."""
    number = _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"
    return f"{number} {noun}{'' if count == 1 else 's'}"


def sentence(words: object) -> str:
    """Words as the beginning of a sentence."""
    text = str(words)
    return text[:1].upper() + text[1:]


def _text(value: object) -> str | None:
    return None if is_missing(value) else str(value)


def _form(value: object, form: str) -> str | None:
    """Write a number; one that is smaller than its last decimal is not written as nothing."""
    if is_missing(value):
        return None
    number = float(value)  # type: ignore[arg-type]  # a number, as was seen above
    text = format(number + 0.0, form)
    return "< 0.01" if text == "0.00" and number > 0 else text


_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "{}&%$#_"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        "\N{REPLACEMENT CHARACTER}": "?",  # LuaTeX takes it for invalid UTF-8
    }
)
_LIGATURE = re.compile(r"(?<=([-',]))(?=\1)")
"""Separator between characters that LaTeX would draw as one, such as dashes and quotation marks."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")
_SPACE = re.compile(r"\s+")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and characters that change the writing direction."""


def markdown_table(table: pd.DataFrame) -> str:
    """Write what :meth:`View.frame` returned as Markdown, its characters that Markdown or HTML interpret escaped."""
    lines = [
        list(map(markdown_text, table.columns)),
        ["---:" if name in table.attrs["figures"] else "---" for name in table.columns],
    ]
    lines += [[markdown_text(value) for value in row] for row in table.itertuples(index=False, name=None)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def latex_table(table: pd.DataFrame, caption: str, label: str) -> str:
    """Write what :meth:`View.frame` returned as LaTeX, with the rules of the package booktabs."""
    sides = "".join("r" if name in table.attrs["figures"] else "l" for name in table.columns)
    rows = [" & ".join(map(latex_text, row)) + r" \\" for row in table.itertuples(index=False, name=None)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            " & ".join(map(latex_text, table.columns)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def latex_text(value: object) -> str:
    """Escape a text or a cell for LaTeX, on one line."""
    text = _LIGATURE.sub(r"\\hbox{}", _written(value).translate(_LATEX))
    # After the end of a row, or after \item, these characters begin an argument.
    return f"{{}}{text}" if text.startswith(("[", "*")) else text


def markdown_text(value: object) -> str:
    """Escape a text or a cell for Markdown, on one line."""
    return _MARKDOWN.sub(r"\\\1", _written(value))


def _written(value: object) -> str:
    words = "–" if is_missing(value) else _SPACE.sub(" ", str(value)).strip()
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", words)
