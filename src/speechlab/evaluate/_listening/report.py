"""The report of a listening test."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab._platform import package_version
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._listening.answer import listening_answer
from speechlab.evaluate._listening.simulated import SIMULATED
from speechlab.evaluate._report import Report, drawn
from speechlab.evaluate._writing.columns import (
    Shown,
    View,
    chance,
    count,
    interval_text,
    number,
    p_text,
    text,
)
from speechlab.listening import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from speechlab.evaluate._finding import Conclusion, Finding
    from speechlab.widgets import ShownTable

_LISTED = 3


@dataclass(frozen=True, eq=False, repr=False)
class ListeningReport(Report):
    """Report of what listeners heard.

    Attributes:
        title: Title of the page.
        table: The tidy answers, with ``excluded``: why an answer does not count, or nothing.
        summary: One row for each system, the best first: ``system``, ``role`` (test, reference, anchor), ``measure``,
            ``mean`` with ``low`` and ``high`` (95 %, two-way bootstrap), ``median``, ``answers``, ``listeners``,
            ``items``. For A/B the mean is the share of comparisons in which the system was preferred, where no
            preference counts half; for ABX a row is a pair, and the mean the share of right answers.
        pairs: One row for each pair: ``first``, ``second``, ``difference`` with ``low`` and ``high`` (95 %), ``p``,
            ``p_holm``, ``significant``, ``answers``, ``listeners``, ``items``; ``detectable``, the smallest
            difference that a test like this finds in 80 % of cases; ``more_listeners`` or else
            ``more_items``, how many more it takes to find a difference of ``smallest``, infinite where that alone
            does not help.
        listeners: One row for each listener: ``listener``, ``excluded``, ``answers``, ``finished``, ``checks``,
            ``checks_failed``, ``mean``, ``agreement`` (correlation with the mean of the others), ``same_answer``
            (share of the commonest answer), ``minutes``.
        agreement: Krippendorff's alpha: 1 if all listeners agree, 0 if as by chance.
        findings: What was excluded and why, and what else to know.
        method: ``mos``, ``ab``, ``abx`` or ``mushra``.
        smallest: The smallest difference that matters.
        record: When the study was made, with which version and settings; and of the ``test`` its name, title, method,
            question, how many listeners and sessions there were, and when the first one began.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    pairs: pd.DataFrame = field(default_factory=pd.DataFrame)
    listeners: pd.DataFrame = field(default_factory=pd.DataFrame)
    agreement: float = math.nan
    findings: tuple[Finding, ...] = ()
    method: str = "mos"
    smallest: float = 0.2
    record: Mapping[str, Any] = field(default_factory=dict)

    def conclude(self) -> Conclusion:
        made_up = (
            "session" in self.table and self.table["session"].astype(str).str.startswith(SIMULATED).any()
        )
        who = "simulated listener" if made_up else "listener"
        return listening_answer(self.method, self.summary, self.pairs, self.listeners, who)

    def _views(self) -> Sequence[View]:
        digits = f".{METHODS[self.method].digits}f"
        better = self.pairs[self.pairs["significant"]] if len(self.pairs) else self.pairs
        p_of = {f"{row['first']} or {row['second']}": row["p_holm"] for row in self.pairs.to_dict("records")}
        measure = METHODS[self.method].measure
        certainty = (
            Shown("p (Holm)", lambda row: p_text(p_of.get(row["system"])), figure=True)
            if self.method == "abx"
            else Shown("better than", lambda row: _several(_worse_than(row["system"], better)))
        )
        systems = [
            Shown("pair" if self.method == "abx" else "system", _named, strong=True),
            number(measure, "mean", digits, strong=True),
            Shown("95 % interval", lambda row: interval_text(row["low"], row["high"], digits), figure=True),
            number("median", "median", digits),
            *(count(name, name) for name in ("answers", "listeners", "items")),
            certainty,
        ]
        pairs = [
            text("first", "first"),
            text("second", "second"),
            number("difference", "difference", digits, strong=True),
            Shown("95 % interval", lambda row: interval_text(row["low"], row["high"], digits), figure=True),
            chance("p (Holm)", "p_holm"),
            number("detectable", "detectable", digits),
            Shown("takes more", _more),
        ]
        listeners = [
            text("listener", "listener"),
            Shown(
                "answers", lambda row: str(row["answers"]) + ("" if row["finished"] else " (not finished)")
            ),
            Shown("checks passed", _passed, figure=True),
            number("mean", "mean", digits),
            number("agreement", "agreement"),
            number("minutes", "minutes", ".1f"),
            Shown("excluded", lambda row: row["excluded"] or None, optional=True),
        ]
        everybody = "" if self.findings else "Nobody was excluded, and all finished. "
        alpha = "–" if math.isnan(self.agreement) else f"{self.agreement:.2f}"
        what = (
            f"{METHODS[self.method].difference.capitalize()}. The last columns: what this test can find, and what it "
            f"takes to find {self.smallest:g}, each in 80 % of tests."
        )
        notes = (
            "Listeners and items both vary: two-way bootstrap.",
            what,
            f"{everybody}Agreement with the mean of the others; Krippendorff's alpha of all: {alpha}.",
        )
        parts = (
            ("Systems", systems, self.summary),
            ("Pairs", pairs, self.pairs),
            ("Listeners", listeners, self.listeners),
        )
        return [
            View(name, columns, frame.to_dict("records"), note)
            for (name, columns, frame), note in zip(parts, notes, strict=True)
        ]

    def compare(self, earlier: Any, *, names: Any = ("earlier", "now")) -> Any:
        """Refuse to compare two listening tests; what is to be compared has to be heard in one.

        How a sound is rated depends on what else is heard in the test, so that a difference of two tests says little
        of their systems (S. Zieliński, F. Rumsey, S. Bech, On some biases encountered in modern audio quality
        listening tests, Journal of the Audio Engineering Society 56, 2008).

        Args:
            earlier: Any report.
            names: Any.

        Raises:
            InvalidRequestError: Always; says what to do.
        """
        del earlier, names
        message = (
            "two listening tests cannot be compared, since ratings depend on what else is heard in a test; put the "
            "recordings of both into one ListeningTest, as systems of their own, and look at pairs of its report"
        )
        raise InvalidRequestError(message, parameter="earlier")

    def plot(self, **options: Any) -> Figure:
        """Draw systems and listeners: :func:`speechlab.plots.listeners`.

        Args:
            **options: As for that function.
        """
        from speechlab.plots import listeners

        agreement = self.listeners.set_index("listener")["agreement"].dropna()
        notes = {name: f"agreement {value:.2f}" for name, value in agreement.items()}
        return listeners(self.table, self.summary, **{"notes": notes, **options})

    def figures(self) -> Mapping[str, Figure]:
        """Return the figure of systems and listeners."""
        return drawn({"Systems and listeners": self.plot})

    def _rows(self, **options: Any) -> ShownTable:
        seen = ["listener", "item", "system", "score", "order", "time_s", "excluded"]
        if self.method in {"ab", "abx"}:
            seen[3:3] = ["other", "choice"]
        return super()._rows(**{"columns": seen, **options})

    def facts(self) -> Mapping[str, str]:
        """Return versions, counts, and how intervals and tests were made."""
        excluded = int((self.listeners["excluded"] != "").sum()) if len(self.listeners) else 0
        test = (
            "exact binomial, one-sided"
            if self.method == "abx"
            else "Student's t, two-way clustered, two-sided"
        )
        return {
            "speechlab": package_version(),
            "method": self.method,
            "listeners": f"{len(self.listeners)}, of whom {excluded} excluded",
            "tests": f"{test}; Holm over pairs",
            "agreement": f"Krippendorff's alpha, {METHODS[self.method].scale}",
        }


def _worse_than(system: object, better: pd.DataFrame) -> list[str]:
    """The systems that are significantly worse than a system, by the pairs with it."""
    found = []
    for row in better.to_dict("records"):
        first, second = (
            (row["first"], row["second"]) if row["difference"] > 0 else (row["second"], row["first"])
        )
        found += [str(second)] if first == system else []
    return found


def _several(names: Sequence[str]) -> str | None:
    """A few names, or the number of many names; None for no names."""
    return f"{len(names)} systems" if len(names) > _LISTED else ", ".join(names) or None


def _passed(row: Mapping[Any, Any]) -> str | None:
    return f"{row['checks'] - row['checks_failed']} of {row['checks']}" if row["checks"] else None


def _named(row: Mapping[Any, Any]) -> str:
    return f"{row['system']}" if row["role"] == "test" else f"{row['system']} ({row['role']})"


def _more(row: Mapping[Any, Any]) -> str:
    listeners, items = row["more_listeners"], row["more_items"]
    if math.isnan(listeners):
        return "two listeners and two items at least"
    if 0 in (listeners, items):
        return "nothing"
    ways = [
        f"{value:.0f} {name}"
        for value, name in ((listeners, "listeners"), (items, "items"))
        if value < math.inf
    ]
    return " or ".join(ways) or "more listeners and more items"
