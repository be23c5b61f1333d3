"""What a report consists of: an answer to decide by, findings as records, and further values that studies fill in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from speechlab._pandas import pd
from speechlab._platform import get_package_version
from speechlab.evaluate._writing.columns import View, build_plain_columns
from speechlab.evaluate._writing.methods import Methods
from speechlab.metrics import RATIO, UNPAIRED, WORSE, judge
from speechlab.text import Lexicon


class Conclusion(NamedTuple):
    """The answer of a study.

    Attributes:
        text: What to do, or what was learned: one sentence.
        certainty: How sure that is, and the runner-up: one sentence; empty if there is nothing to add.

    Example:
        >>> str(Conclusion("Take heart.", "It is first on ten sentences, too narrowly to be sure."))
        'Take heart. It is first on ten sentences, too narrowly to be sure.'
    """

    text: str
    certainty: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.certainty}".strip()


# Rows from which a page shows a part of them.
MANY_ROWS = 20_000
# Rows with most errors, and rows at random, that it then shows.
SHOWN_ROWS = 1_000
_NOTHING = Conclusion("")
# Figures of what a table has as numbers, with bars.
_CHARTS = frozenset({"error_rates", "translation_scores"})


@dataclass(frozen=True)
class Finding:
    """A finding of a study.

    Attributes:
        text: The finding in sentences to quote.
        language: Code of the language that it is about; empty if it is about all.
        condition: The condition of the recordings; empty if it is about all.
        systems: The voices, services or settings that it compares.
        numbers: The numbers in its text, by name.
        shown: Where a page has it: ``page`` for notable findings, ``method`` behind the methods, empty where a table
            says the same.

    Example:
        >>> str(Finding("Three of 20 listeners did not finish."))
        'Three of 20 listeners did not finish.'
    """

    text: str
    language: str = ""
    condition: str = ""
    systems: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    shown: str = "page"

    def __str__(self) -> str:
        return self.text


def to_findings(values: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """Return findings from their plain form in a saved report."""
    return tuple(Finding(**{**value, "systems": tuple(value["systems"])}) for value in values)


@dataclass(frozen=True)
class Drawing:
    """A figure that is drawn when it is displayed.

    Attributes:
        title: What it shows.
        function: The function of :mod:`speechlab.plots` that draws it.
        frames: Names of the tables of the report that it draws.
        options: Arguments of the function.
    """

    title: str
    function: str
    frames: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ShownRows:
    """How the rows are shown, to be played, searched and sorted.

    Scored rows come with their errors, the worst first; others by the column ``lowest``, its lowest numbers first.
    Options are those of :class:`speechlab.widgets.AudioTable`, or of :class:`speechlab.widgets.ErrorBrowser`.
    """

    frame: str = "table"
    scored: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    lowest: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Contents:
    """The values of a report; :class:`speechlab.evaluate.Report` says what each is."""

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    conclusion: Conclusion = _NOTHING
    study: str = ""
    findings: Sequence[Finding] = ()
    notes: Sequence[str] = ()
    differences: pd.DataFrame = field(default_factory=lambda: judge([]))
    speed: pd.DataFrame = field(default_factory=pd.DataFrame)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    views: Sequence[View] = ()
    drawings: Sequence[Drawing] = ()
    shown: ShownRows = field(default_factory=ShownRows)
    said: Methods = field(default_factory=lambda: Methods("", ()))
    facts: Mapping[str, str] = field(default_factory=lambda: {"speechlab": get_package_version()})
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def systems(self) -> list[str]:
        """The names of the systems, in the order that was given; empty if there is one."""
        return list(dict.fromkeys(self.table["system"].astype(str))) if "system" in self.table.columns else []

    def to_study_rows(self) -> pd.DataFrame:
        """Return the rows with the names of columns that studies have, where the table has others."""
        names = {column: role for role, column in self.columns.items()}
        replaced = set(names.values()) - set(names)
        return self.table.drop(columns=list(replaced), errors="ignore").rename(columns=names)

    def resolve_frame(self, name: str) -> pd.DataFrame:
        """Return a table of the report by its name."""
        return self.tables[name] if name in self.tables else getattr(self, name)

    @property
    def lexicon(self) -> Lexicon:
        """The spellings that a study of readings confirmed; empty for other studies."""
        frame = self.tables.get("lexicon", pd.DataFrame())
        return Lexicon(tuple(map(str, row)) for row in frame.fillna("").itertuples(index=False, name=None))

    @property
    def answer(self) -> str:
        """What to do, or what was learned, and how sure that is; two sentences to quote."""
        return str(self.conclusion)

    @property
    def worse(self) -> bool:
        """Whether something is significantly worse; of two reports, what became worse."""
        return WORSE in set(self.differences["verdict"])

    @property
    def better(self) -> bool:
        """Whether something is significantly better."""
        return "better" in set(self.differences["verdict"])

    @property
    def slower(self) -> bool:
        """Whether something is significantly slower."""
        return "slower" in set(self.differences["verdict"])

    @property
    def paired(self) -> bool:
        """Whether anything but speed could be tested, since there were pairs of rows."""
        scores = self.differences[self.differences["unit"] != RATIO]
        return bool((scores["verdict"] != UNPAIRED).any())

    def headline(self) -> pd.DataFrame:
        """Return the most important table as texts, as the page, the notebook and the terminal show it."""
        return self.build_views()[0].to_frame()

    def build_views(self) -> Sequence[View]:
        """Return the tables for people; the plain summary where a study has none."""
        return self.views or (View.from_rows(self.title, build_plain_columns(self.summary), self.summary),)

    @property
    def charted(self) -> set[str]:
        """Titles of figures that a page leaves out, since a table has the same as bars."""
        has_bars = any(column.bars for column in self.build_views()[0].columns)
        return {one.title for one in self.drawings if has_bars and one.function in _CHARTS}

    def failures(self) -> pd.DataFrame:
        """Return the rows that failed, or that nothing could be done for."""
        if "status" not in self.table.columns:
            return self.table.iloc[:0]
        return self.table[self.table["status"].isin(["error", "skipped"])]


def select_shown_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a long table that a person can look at: those with most errors, and a sample, in their order."""
    if len(frame) <= MANY_ROWS:
        return frame
    worst = np.array([], dtype=np.intp)
    if "error_rate" in frame.columns:
        rates = frame["error_rate"].astype("Float64").to_numpy(dtype=np.float64, na_value=-1.0)
        worst = np.argsort(-rates, kind="stable")[:SHOWN_ROWS]
    remaining = np.setdiff1d(np.arange(len(frame)), worst)
    sample = np.random.default_rng(0).choice(remaining, SHOWN_ROWS, replace=False)
    return frame.iloc[np.union1d(worst, sample)]
