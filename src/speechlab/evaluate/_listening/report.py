"""The report of a listening test."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab._platform import package_version
from speechlab.display import Html, element, table
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._report import Report, drawn
from speechlab.listening import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

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
    findings: tuple[str, ...] = ()
    method: str = "mos"
    smallest: float = 0.2
    record: Mapping[str, Any] = field(default_factory=dict)

    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return systems, pairs, listeners, and what was excluded."""
        del clips  # the answers hold no sound
        told = [element("li", one, dir="auto") for one in self.findings]
        excluded = element("ul", *told) if told else element("p", "Nobody was excluded, and all finished.")
        return [self._systems(), self._pairs(), excluded, self._listeners()]

    def headline(self) -> pd.DataFrame:
        """Return the systems with their means and intervals, and which others each is significantly better than.

        For ABX, the pairs with the share of right answers, and whether that could be chance.
        """
        better = self.pairs[self.pairs["significant"]] if len(self.pairs) else self.pairs
        chances = {
            f"{row['first']} or {row['second']}": row["p_holm"] for row in self.pairs.to_dict("records")
        }
        lines = []
        for row in self.summary.to_dict("records"):
            line = {
                "Pair" if self.method == "abx" else "System": _named(row),
                METHODS[self.method].measure.capitalize().replace("Mushra", "MUSHRA"): self._figure(
                    row["mean"]
                ),
                "95 % interval": _range(self._figure(row["low"]), self._figure(row["high"])),
                **{name.capitalize(): row[name] for name in ("answers", "listeners", "items")},
            }
            if self.method == "abx":
                line["p (Holm)"] = _p(chances.get(row["system"], math.nan))
            else:
                line["Better than"] = _listed(_worse_than(row["system"], better))
            lines.append(line)
        return pd.DataFrame(lines)

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

    def _systems(self) -> Html:
        rows = [
            [
                element("strong", _named(row), dir="auto"),
                element("strong", self._figure(row["mean"])),
                _range(self._figure(row["low"]), self._figure(row["high"])),
                self._figure(row["median"]),
                *(str(row[name]) for name in ("answers", "listeners", "items")),
            ]
            for row in self.summary.to_dict("records")
        ]
        measure = str(self.summary["measure"].iloc[0]) if len(self.summary) else "score"
        heads = ("pair" if self.method == "abx" else "system", measure, "95 % interval", "median")
        caption = "Listeners and items both vary: two-way bootstrap."
        return table(
            (*heads, "answers", "listeners", "items"), rows, caption=caption, right=(1, 2, 3, 4, 5, 6)
        )

    def _pairs(self) -> Html:
        rows = [
            [
                element("span", row["first"], dir="auto"),
                element("span", row["second"], dir="auto"),
                element("strong" if row["significant"] else "span", self._figure(row["difference"])),
                _range(self._figure(row["low"]), self._figure(row["high"])),
                _p(row["p_holm"]),
                self._figure(row["detectable"]),
                _more(row),
            ]
            for row in self.pairs.to_dict("records")
        ]
        caption = (
            f"Pairs: {METHODS[self.method].difference}. Bold: significant at 5 % after Holm. The last columns: "
            f"what this test can find, and what it takes to find {self.smallest:g}, each in 80 % of tests."
        )
        heads = ("first", "second", "difference", "95 % interval", "p (Holm)", "detectable", "takes more")
        return table(heads, rows, caption=caption, right=(2, 3, 4, 5))

    def _listeners(self) -> Html:
        rows = [
            [
                element("span", row["listener"], dir="auto"),
                str(row["answers"]) + ("" if row["finished"] else " (not finished)"),
                f"{row['checks'] - row['checks_failed']} of {row['checks']}" if row["checks"] else "–",
                self._figure(row["mean"]),
                "–" if math.isnan(row["agreement"]) else f"{row['agreement']:.2f}",
                f"{row['minutes']:.1f}",
                element("em", row["excluded"]) if row["excluded"] else "–",
            ]
            for row in self.listeners.to_dict("records")
        ]
        heads = ("listener", "answers", "checks passed", "mean", "agreement", "minutes", "excluded")
        alpha = "–" if math.isnan(self.agreement) else f"{self.agreement:.2f}"
        caption = f"Listeners: agreement with the mean of the others; Krippendorff's alpha of all: {alpha}"
        return table(heads, rows, caption=caption, right=(1, 2, 3, 4, 5))

    def _figure(self, value: float) -> str:
        return "–" if math.isnan(value) else f"{value:.{METHODS[self.method].digits}f}"

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


def _listed(names: Sequence[str]) -> str | None:
    """A few names, or the number of many names; None for no names."""
    if len(names) > _LISTED:
        return f"{len(names)} systems"
    return ", ".join(names) or None


def _named(row: Mapping[Any, Any]) -> str:
    return f"{row['system']}" if row["role"] == "test" else f"{row['system']} ({row['role']})"


def _range(low: str, high: str) -> str:
    return "–" if "–" in {low, high} else f"{low} to {high}".replace(" ", "\N{NO-BREAK SPACE}")


def _p(p: float) -> str:
    return "–" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


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
