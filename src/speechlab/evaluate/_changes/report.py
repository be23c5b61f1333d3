"""Changes since an earlier report: sentences, a table and a figure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from speechlab._arguments import is_missing, refused
from speechlab._platform import package_version
from speechlab.display import element, percent, table
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._changes.speed import SLOWER, speed_changes, speed_view, told_of_speed
from speechlab.evaluate._changes.tested import NAMES, SCORES, VERDICTS, changes
from speechlab.evaluate._changes.translated import translation_changes
from speechlab.evaluate._finding import Conclusion, Finding
from speechlab.evaluate._made import RECOGNITION, SIDES, TRANSLATION, VOICES
from speechlab.evaluate._report import BETTER, WORSE, Report
from speechlab.evaluate._translation.report import TranslationReport
from speechlab.evaluate._writing.columns import Shown, View, chance, count, listed, p_words, plural, text
from speechlab.evaluate._writing.record import service_of

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Mapping, Sequence

    from matplotlib.figure import Figure

    from speechlab.display import Html
    from speechlab.widgets import ShownTable

_OWN = RECOGNITION | VOICES | TRANSLATION
_NOTHING = "Nothing is shown to have changed"
_HEADS = ("group", "pairs", "difference", "95 % interval", "p (Holm)", "verdict")


@dataclass(frozen=True, eq=False, repr=False)
class Changes(Report):
    """The changes between two reports of one study.

    Attributes:
        title: Title of the page.
        table: One row for each row that both have, those first that changed most: that of the later report, with
            ``hypothesis_earlier``, ``errors_earlier``, ``error_difference`` and ``status_earlier``.
        summary: One row for each voice and language, and one for rows that failed if there are any: ``group``,
            ``language``, ``unit``, ``utterances`` (pairs), ``error_rate_earlier``, ``error_rate``, ``difference``,
            ``difference_low`` and ``difference_high`` (95 %, from 20 pairs on), ``p`` (exact, paired), ``p_holm``,
            ``tested`` (what was swapped), ``significant`` (by ``p_holm``), ``paired``, ``verdict`` (worse, better, no
            difference shown, not paired), ``only_now`` and ``only_earlier`` (rows), ``a`` and ``b``. Of translations
            there is one row for each direction, with ``score_earlier`` and ``score`` (chrF) in place of the rates,
            and in ``table`` ``translation_earlier`` and ``score_difference``.
        record: The records of both.
        names: What the two reports are called, the earlier one first.
        speed: Where both measured it, one row for each voice, system or direction and time: ``group``, ``measure``,
            ``calls`` (pairs, of the same items), ``earlier_s`` and ``now_s`` (medians), ``ratio`` (geometric mean;
            above 1 is slower), ``ratio_low`` and ``ratio_high`` (95 %) and ``p`` (Student's t of the logarithms),
            all from 6 pairs on, ``p_holm`` and ``verdict`` (slower, faster, no difference shown). It has
            no part in ``worse``.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    record: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, str] = NAMES
    speed: pd.DataFrame = field(default_factory=pd.DataFrame)

    _made: ClassVar = _OWN

    @classmethod
    def between(
        cls, now: Report, earlier: Report | str | os.PathLike[str], names: Sequence[str] = NAMES
    ) -> Changes:
        """Compare a report with an earlier one of the same study: see :meth:`Report.compare`."""
        first, second = _checked(names)
        before = earlier if isinstance(earlier, Report) else Report.load(earlier)
        if isinstance(now, TranslationReport) and isinstance(before, TranslationReport):
            table, summary = translation_changes(now, before)
        else:
            table, summary = changes(now, before)
        record = {"now": dict(now.record), "earlier": dict(before.record)}
        summary = summary.assign(a=first, b=summary["group"] + f": {second}")
        title = "Changes" if (first, second) == NAMES else f"{second} against {first}"
        return cls(
            f"{title}: {now.title}", table, summary, record, (first, second), speed_changes(now, before)
        )

    @property
    def worse(self) -> bool:
        """Whether a voice and language, or the number of rows that failed, is significantly worse."""
        return bool((self.summary["verdict"] == WORSE).any())

    @property
    def better(self) -> bool:
        """Whether one is significantly better."""
        return bool((self.summary["verdict"] == BETTER).any())

    @property
    def slower(self) -> bool:
        """Whether a voice, system or direction is significantly slower."""
        return len(self.speed) > 0 and bool((self.speed["verdict"] == SLOWER).any())

    @property
    def paired(self) -> bool:
        """Whether any row is in both reports, so that something could be tested."""
        return bool(self.summary["paired"].any())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The changes, in sentences to quote."""
        said = []
        rows = self.summary.to_dict("records")
        first, second = self.names
        way = f", from {first} to {second}" if self._named else ""
        for verdict in VERDICTS:
            groups = [row for row in rows if row["verdict"] == verdict]
            if groups:
                words = f"{verdict.capitalize()}{way}: {'; '.join(map(self._words, groups))}."
                said.append(Finding(words, systems=tuple(str(row["group"]) for row in groups)))
        alone = ("in this report alone", "in the earlier one alone")
        alone = (f"of {second} alone", f"of {first} alone") if self._named else alone
        for name, what in zip(("only_now", "only_earlier"), alone, strict=True):
            if rows_alone := int(self.summary[name].sum()):
                words = (
                    f"{rows_alone:,} {'row is' if rows_alone == 1 else 'rows are'} {what} and not compared."
                )
                said.append(Finding(words, numbers={name: rows_alone}))
        said += [Finding(told)] if (told := told_of_speed(self.speed)) else []
        return tuple(said)

    def conclude(self) -> Conclusion:
        first, second = self.names
        better, worse = (
            ("better", "worse") if not self._named else (f"better in {second}", f"worse in {second}")
        )
        verdicts = self.summary["verdict"]
        parts = [
            f"{listed(_brief(self.summary[verdicts == verdict]))} {word}"
            for verdict, word in ((WORSE, f"became {worse}"), (BETTER, f"became {better}"))
            if (verdicts == verdict).any()
        ]
        if self._named:
            parts = [part.replace("became ", "is ") for part in parts]
        if not self.paired:
            lead = f"{first} and {second} have no row in common, so nothing can be said of changes"
        else:
            nothing = (
                "Nothing is shown to have changed"
                if not self._named
                else f"{first} and {second} are not shown to differ"
            )
            lead = "; ".join(parts) or nothing
        pairs = plural(int(self.summary["utterances"].sum()), "row")
        sure = f"Tested on {pairs} that both have, beyond chance where it is said." if self.paired else ""
        if len(self.speed):
            sure += " Speed: " + ("slower." if self.slower else "no slowing shown.")
        return Conclusion(f"{lead[:1].upper()}{lead[1:]}.", sure.strip())

    def _views(self) -> Sequence[View]:
        heads = self.names if self._named else ("earlier", "now")
        columns = [
            text("group", "group", strong=True),
            count("pairs", "utterances"),
            Shown(heads[0], lambda row: _figures(row)[0], figure=True),
            Shown(heads[1], lambda row: _figures(row)[1], figure=True),
            Shown("difference", lambda row: _figures(row)[2], figure=True, strong=True),
            Shown("95 % interval", _interval, figure=True),
            chance("p (Holm)", "p_holm"),
            text("verdict", "verdict"),
        ]
        note = (
            "Rows that both reports have, by chrF: more is better. P is corrected by Holm's method."
            if self._translated
            else "Error rates of the rows that both reports have. P is exact and corrected by Holm's method."
        )
        view = View("What changed", columns, self.summary.to_dict("records"), note)
        return [view, *([speed_view(self.speed, self.names)] if len(self.speed) else [])]

    def _shown_rows(self, clips: int | None) -> Sequence[Html]:
        shown = self.table if clips is None else self.table.head(clips)
        lines = map(self._line, shown.to_dict("records"))
        return [table(self._heads(), lines, caption="Rows, those first that changed most")]

    def _words(self, row: Mapping[Hashable, Any]) -> str:
        earlier, now, points = _figures(row)
        rates = f"{row['unit'] if row['unit'] in SCORES else ''} {earlier} to {now}".strip()
        if not row["paired"]:
            return f"{row['group']} ({rates}, of other rows)"
        told = [rates, f"{points} points"]
        told += [f"95 % interval {interval}" for interval in [_interval(row)] if interval]
        told.append(p_words(row["p_holm"]))
        told.append(f"{row['utterances']:,} {'pair' if row['utterances'] == 1 else 'pairs'}")
        return f"{row['group']} ({', '.join(told)})"

    @property
    def _named(self) -> bool:
        return tuple(self.names) != NAMES

    @property
    def _translated(self) -> bool:
        return "translation_earlier" in self.table.columns

    def _heads(self) -> tuple[str, ...]:
        if self._translated:
            return "direction", "text", *self.names, "chrF more"
        return "voice", "reference", *self.names, "more errors"

    def _line(self, row: Mapping[Hashable, Any]) -> list[object]:
        """A row of the page: whose it is, what was said, what came of it earlier and now, and the difference."""
        if self._translated:
            who = f"{row['source_lang']} → {row['target_lang']}"
            texts, difference = ("translation_earlier", "translation"), row["score_difference"]
            codes = (row["source_lang"], row["target_lang"])
            told = None if is_missing(difference) else f"{difference:+.1f}"
        else:
            names = [row[name] for name in (*SIDES, "voice_name") if not is_missing(row.get(name))]
            who, texts = ", ".join(map(str, names)) or "–", ("hypothesis_earlier", "hypothesis")
            codes = (row["language"], row["language"])
            told = None if is_missing(row["error_difference"]) else str(int(row["error_difference"]))
        came = [
            element("span", row[name], lang=str(codes[-1])) if isinstance(row[name], str) else None
            for name in texts
        ]
        return [who, element("span", row["text"], lang=str(codes[0])), *came, told]

    def _rows(self, **options: Any) -> ShownTable:
        """Return the rows, in which what was recognised earlier and now is compared with the reference."""
        heard = "translation" if self._translated else "hypothesis"
        both = [f"{heard}_earlier", heard]
        usual: dict[str, Any] = {"hypotheses": both, "reference": "text", "language": "language"}
        sides = [name for name in SIDES if name in self.table.columns]
        columns = ["text", *both, "error_difference", "language", *sides, "voice_name"]
        if self._translated:
            columns, usual = (
                ["text", *both, "score_difference"],
                {"hypotheses": both, "language": "target_lang"},
            )
            if "reference" in self.table.columns:
                columns, usual = ["reference", *columns], {**usual, "reference": "reference"}
        found: dict[str, Any] = {**usual, "columns": columns, **options}
        if not self._named or options:
            return super()._rows(**found)
        called = dict(zip(both, (f"{heard}: {name}" for name in self.names), strict=True))
        shown = replace(self, table=self.table.rename(columns=called))
        found["columns"] = [called.get(name, name) for name in columns]
        return super(Changes, shown)._rows(**{**found, "hypotheses": list(called.values())})

    def plot(self, **options: Any) -> Figure:
        """Draw the differences with their intervals: :func:`speechlab.plots.differences`.

        Args:
            **options: As for that function.

        Raises:
            InvalidRequestError: Nothing is paired.
        """
        from speechlab.plots import differences

        tested = self.summary[self.summary["paired"]]
        if self._translated and (tested["unit"] != "row").any():
            tested, options = tested[tested["unit"] != "row"], {"score": "chrF", **options}
        return differences(tested, **options)

    def figures(self) -> Mapping[str, Figure]:
        """Return the figure of the differences, if anything is paired."""
        return {"Differences, with 95 % intervals": self.plot()} if self.paired else {}

    def facts(self) -> Mapping[str, str]:
        """Return when both reports were made, and of which services."""
        found = {"speechlab": package_version()}
        for key, name in zip(NAMES, self.names, strict=True):
            record = self.record.get(key, {})
            told = [
                str(record.get("made", "")),
                f"speechlab {record.get('speechlab', '?')}",
                service_of(record),
            ]
            if record:
                found[name] = ", ".join(part for part in told if part)
        return found


def _brief(rows: pd.DataFrame) -> list[str]:
    return [f"{row['group']} ({' to '.join(_figures(row)[:2])})" for row in rows.to_dict("records")]


def _figures(row: Mapping[Hashable, Any]) -> tuple[str, str, str]:
    """The earlier value, the new one and the difference: rates in percent and points, scores unchanged."""
    if row["unit"] in SCORES:
        earlier, now = (
            "–" if is_missing(row[name]) else f"{row[name]:.1f}" for name in ("score_earlier", "score")
        )
        return earlier, now, "–" if is_missing(row["difference"]) else f"{row['difference']:+.1f}"
    points = f"{100 * row['difference']:+.1f}" if row["difference"] == row["difference"] else "–"
    return percent(row["error_rate_earlier"]), percent(row["error_rate"]), points


def _interval(row: Mapping[Hashable, Any]) -> str | None:
    points = 1 if row["unit"] in SCORES else 100
    low, high = (points * row[end] for end in ("difference_low", "difference_high"))
    return f"{low:+.1f} to {high:+.1f}" if low == low else None


def _checked(names: Sequence[str]) -> tuple[str, str]:
    """The names of two reports.

    Raises:
        InvalidRequestError: They are not two texts that differ from each other and from the heads of the table.
    """
    given: list[Any] = [] if isinstance(names, str) or not isinstance(names, list | tuple) else list(names)
    if len(given) != 2 or not all(isinstance(one, str) and one.strip() for one in given):
        raise refused("names", names, "two texts, that of the report in brackets first: ('ours', 'theirs')")
    if given[0].strip() == given[1].strip() or set(given) & set(_HEADS):
        message = (
            f"names={names!r} cannot be told apart from each other, or from the columns {', '.join(_HEADS)}"
        )
        raise InvalidRequestError(message, parameter="names")
    return given[0], given[1]
