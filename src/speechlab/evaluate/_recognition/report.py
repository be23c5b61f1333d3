"""The report of a study of recognition."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from speechlab.errors import InvalidRequestError
from speechlab.evaluate._made import RECOGNITION
from speechlab.evaluate._recognition.answer import condition_findings, conditions_answer, systems_answer
from speechlab.evaluate._recognition.conditions import AS_RECORDED
from speechlab.evaluate._recognition.flags import flagged
from speechlab.evaluate._recognition.hotwords import hotword_effects
from speechlab.evaluate._recognition.order import ordered
from speechlab.evaluate._recognition.speechless import speechless_table, told_of_nothing
from speechlab.evaluate._recognition.tables import hotwords_view, measures_view, pairs_view
from speechlab.evaluate._report import drawn
from speechlab.evaluate._speech.report import SpeechReport
from speechlab.evaluate._speech.summary import FLAGS, NO_SPEAKER, READING, ranking_units, summarized
from speechlab.evaluate._writing.methods import methods_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from speechlab.display import Html
    from speechlab.evaluate._finding import Conclusion, Finding
    from speechlab.evaluate._recognition.systems import System
    from speechlab.evaluate._writing.columns import View
    from speechlab.evaluate._writing.methods import Methods
    from speechlab.widgets import ShownTable

_BEYOND_DB = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class RecognitionReport(SpeechReport):
    """Report of how well recordings were recognised, by one system or by several beside each other.

    A system is a service, a setting of one, or both.

    Attributes:
        order: The systems in order, for each ``language`` (and ``condition``): ``system``, ``utterances`` (that all
            of them have), ``error_rate``, ``group`` (systems that share a letter cannot be told apart),
            ``first_share``, ``p_best`` and ``needed``, as of :func:`speechlab.metrics.rank`. Without rows for one
            system.
        pairs: All pairs of systems, with ``language`` (and ``condition``): as of
            :func:`speechlab.metrics.compare_all`, ``p_holm`` corrected for all pairs of the language.
        hotwords: Where hotwords were given, one row for each ``language``, ``condition`` and ``system``: the sums of
            :func:`speechlab.metrics.hotword_counts`, ``recall`` (hits over those said) and ``rest_rate`` (the error
            rate outside of hotwords); of settings with hotwords, against the one without, ``p_missed``, ``p_added``
            and ``p_rest`` (Holm, all together) and ``verdict``.
        speechless: One row for each recording without speech and system, where that was asked for: ``sound``,
            ``duration_s``, ``audio``, ``language``, ``system``, ``hypothesis``, ``hallucination``, ``status``,
            ``error``.
        measures: With ``formatting``, ``entities`` or ``scorers``, one row for each ``system``, ``condition``,
            ``language`` and ``measure``: ``utterances``, ``items`` (in the references), ``hits``, ``error_rate`` with
            ``error_rate_low`` and ``error_rate_high``, ``precision``, ``recall``, ``f1``, as of
            :func:`speechlab.metrics.formatting_rates` and :func:`speechlab.metrics.entity_scores`; ``score`` (mean).
        findings: What was found, in sentences; empty for one system and one condition.
        table: As of :class:`SpeechReport`; ``hallucination`` (text where nobody spoke, or a long insertion) and
            ``tail_lost`` (the last words are missing); with several systems or conditions ``recording`` (position
            of the row in what was given), ``system``, ``condition`` and ``snr_db``; with hotwords the columns of
            :func:`speechlab.metrics.hotword_counts`.
        summary: As of :class:`SpeechReport`, one row for each system too where there are several.
    """

    _made: ClassVar = RECOGNITION
    order: pd.DataFrame = field(default_factory=pd.DataFrame)
    pairs: pd.DataFrame = field(default_factory=pd.DataFrame)
    hotwords: pd.DataFrame = field(default_factory=pd.DataFrame)
    speechless: pd.DataFrame = field(default_factory=pd.DataFrame)
    measures: pd.DataFrame = field(default_factory=pd.DataFrame)
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of_rows(
        cls,
        report: SpeechReport,
        systems: Sequence[System] = (),
        nothing: pd.DataFrame | None = None,
        notes: Sequence[str] = (),
        about: str = "",
        measures: pd.DataFrame | None = None,
    ) -> RecognitionReport:
        """Flag the rows of a report, put its systems in order, and say what hotwords did.

        Args:
            report: The rows.
            systems: Who recognised them.
            nothing: What was recognised where nobody spoke.
            notes: What could not be done, in sentences.
            about: The speakers that findings are about; empty for all speakers.
            measures: The measures beside the error rates.
        """
        kept = {one.name: getattr(report, one.name) for one in fields(SpeechReport)} | {"notes": tuple(notes)}
        effects = hotword_effects(flagged(report.table), systems, report.language)
        items = "recording" if "recording" in effects.table.columns else None
        summary = summarized(effects.table, report.language, report.speed, items=items)
        kept |= {"table": effects.table, "summary": summary}
        said = [*effects.verdicts, *([] if nothing is None else told_of_nothing(nothing))]
        kept |= {"hotwords": effects.summary, "speechless": pd.DataFrame() if nothing is None else nothing}
        kept |= {} if measures is None else {"measures": measures}
        if "condition" in report.table.columns:
            said += condition_findings(report.table, report.text, report.language)
        if "system" not in report.table.columns:
            return cls(**kept, findings=tuple(said))
        order = ordered(report.table, report.text, report.language, about)
        return cls(
            **kept,
            order=order.systems,
            pairs=order.pairs,
            findings=(*order.verdicts, *said),
        )

    @property
    def systems(self) -> list[str]:
        """The names of the systems, in the order that was given; empty if there is one."""
        return list(dict.fromkeys(self.table["system"])) if "system" in self.table.columns else []

    def part(self, system: str, condition: str | None = None) -> SpeechReport:
        """Return the report of one of several systems, such as for ``errors`` or ``compare``.

        Args:
            system: Its name.
            condition: One of the conditions; None for all of them.

        Raises:
            InvalidRequestError: There is no such system or condition.
        """
        kept, speed = self.table, self.speed
        for column, value in (("system", system), ("condition", condition)):
            if value is None:
                continue
            known = kept[column].astype(str).unique().tolist() if column in kept.columns else []
            if value not in known:
                there = ", ".join(map(repr, known)) or "none, for there is only one"
                message = f"the report has no {column} {value!r}; it has {there}"
                raise InvalidRequestError(message, parameter=column)
            kept = kept[kept[column] == value].drop(columns=column)
            if column in speed.columns:
                speed = speed[speed[column] == value].drop(columns=column)
        kept = kept.set_axis(_labels(kept), axis="index")
        return SpeechReport.of(
            f"{self.title}: {system}",
            kept,
            text=self.text,
            language=self.language,
            speed=speed,
            record=self.record,
        )

    def side_by_side(self) -> pd.DataFrame:
        """Return one row for each recording, with what each system made of it.

        Returns:
            ``file``, text, language, ``audio`` and, of each system, ``hypothesis_<name>``, ``error_rate_<name>`` and
            ``errors_<name>``; the rows first in which the systems differ most (``error_spread``, in errors).
        """
        names = self.systems
        shared = [
            "file",
            self.text,
            self.language,
            *(["condition"] if "condition" in self.table.columns else []),
        ]
        parts = [self.part(name).table for name in names]
        wide = parts[0][[*shared, "audio"]].copy() if parts else self.table.iloc[:0]
        for column in ("hypothesis", "error_rate", "errors"):
            for name, part in zip(names, parts, strict=True):
                wide[f"{column}_{name}"] = part[column]
        errors = wide[[f"errors_{name}" for name in names]].astype("Float64")
        wide["error_spread"] = errors.max(axis=1) - errors.min(axis=1)
        return wide.sort_values("error_spread", ascending=False, na_position="last", kind="stable")

    def _rows(self, **options: Any) -> ShownTable:
        """Return the rows, the worst first; of several systems, recording by recording."""
        from speechlab.widgets import ShownTable, shown_errors

        names = self.systems
        first = [name for name in ("condition", "file") if name in self.table.columns]
        if not names:
            return super()._rows(**{**self._usual(), **options})
        heard = [f"hypothesis_{name}" for name in names]
        rates = [f"error_rate_{name}" for name in names]
        if len(names) == 2:
            sides = [self.part(name).table for name in names]
            shown = [*first, self.text, *heard, "fewer_errors", "error_difference", *rates, self.language]
            usual = {"reference": self.text, "language": self.language, "names": names, "columns": shown}
            return shown_errors(*sides, **{**usual, **options})
        usual = {"reference": self.text, "hypotheses": heard, "language": self.language}
        shown = [*first, self.text, *heard, "error_spread", *rates, self.language]
        return ShownTable(self.side_by_side(), **{**usual, "columns": shown, **options})

    def _usual(self) -> dict[str, Any]:
        known = self.table.columns
        rates = [
            name for name in (READING, "tolerant_wer") if name in known and self.table[name].notna().any()
        ]
        flags = [name for name in FLAGS.values() if name in known and self.table[name].any()]
        spoken = [] if (self.table["voice"] == NO_SPEAKER).all() else ["voice"]
        first = [name for name in ("system", "condition", "file") if name in known]
        scores = [*rates, "error_rate", "errors", "error_classes", *flags]
        return {"columns": [*first, self.text, "hypothesis", *scores, self.language, *spoken]}

    def conclude(self) -> Conclusion:
        if self.systems:
            return systems_answer(self.order, self.speed, self.findings)
        if "condition" not in self.table.columns:
            return super().conclude()
        changed = [name for name in self.table["condition"].astype(str).unique() if name != AS_RECORDED]
        tested = [finding for finding in self.findings if "before" in finding.numbers]
        return (
            conditions_answer(tested, changed) if tested else super().conclude()
        )  # reports of 0.1 have none

    def _views(self) -> Sequence[View]:
        views = list(super()._views())
        more = [pairs_view(self.pairs)] if len(self.pairs) else []
        more += [hotwords_view(self.hotwords)] if len(self.hotwords) else []
        more += [measures_view(self.measures)] if len(self.measures) else []
        return [views[0], *more, *views[1:]]

    def _quoted(self) -> Sequence[Finding]:
        """Return what is in no table: not the order, other conditions, or hotwords of several settings."""
        own = [
            one
            for one in self.findings
            if one.condition in {"", AS_RECORDED} and "recordings" not in one.numbers
        ]
        hotwords = [one for one in own if "p_missed" in one.numbers]
        return own if len(hotwords) < 2 else [one for one in own if one not in hotwords]

    def _behind(self) -> Sequence[Finding]:
        own = [one for one in super()._behind() if one.condition in {"", AS_RECORDED}]
        return [one for one in own if "p_missed" not in one.numbers]

    def _shown_rows(self, clips: int | None) -> Sequence[Html]:
        found = len(self.speechless) and self.speechless["hallucination"].fillna(value=False).any()
        nothing = [speechless_table(self.speechless, clips=clips)] if found else []
        return [*nothing, *super()._shown_rows(clips)]

    def plot(self, **options: Any) -> Figure:
        """Draw the rates that the systems are ranked by: :func:`speechlab.plots.error_rates` of the summary.

        Args:
            **options: As for that function, such as ``rates=["ranking_rate", "tolerant_cer"]``.
        """
        told = [name for name in ("system", "condition") if name in self.summary.columns]
        if not told:
            return super().plot(**options)
        spoken = [] if (self.summary["voice"] == NO_SPEAKER).all() else ["voice_name"]
        return super().plot(**{"by": [*told, *spoken, "language"], **options})

    def figures(self) -> Mapping[str, Figure]:
        """Return the rates with their intervals, the differences of systems, and what else there is to see."""
        from speechlab import plots

        wanted: dict[str, Any] = {}
        if len(self.pairs):
            wanted["Differences of systems, with 95 % intervals"] = partial(
                plots.differences, _told_apart(self.pairs)
            )
        if len(self._levels()):
            wanted["Error rate against noise"] = self.plot_noise
        return {**super().figures(), **drawn(wanted)}

    def methods(self) -> Methods:
        """Say how the figures came about, and how recordings were changed."""
        noise = self.record.get("settings", {}).get("noise", "speech")
        return methods_of(self.title, *self._measured(), noise=str(noise))

    def _levels(self) -> dict[str, float]:
        """The levels of noise by condition; recordings as they are stand 10 dB beyond the quietest noise."""
        if "snr_db" not in self.table.columns or not self.table["snr_db"].notna().any():
            return {}
        noisy = self.table.dropna(subset="snr_db").drop_duplicates("snr_db")
        places = dict(zip(noisy["condition"].astype(str), noisy["snr_db"].astype(float), strict=True))
        return {**places, AS_RECORDED: max(places.values()) + _BEYOND_DB}

    def plot_noise(self, **options: Any) -> Figure:
        """Draw the error rate against the signal-to-noise ratio: :func:`speechlab.plots.error_by_measure`.

        Recordings as they are stand at the right.

        Args:
            **options: As for that function.

        Raises:
            InvalidRequestError: The study added no noise.
        """
        from speechlab.plots import error_by_measure

        places = self._levels()
        if not places:
            message = "the study added no noise; give recognition levels, as in noise_db=[20, 10, 0]"
            raise InvalidRequestError(message, parameter="noise_db")
        summary = self.summary.assign(unit=ranking_units(self.summary))
        kept = summary[summary["condition"].astype(str).isin(places)]
        at = kept["condition"].astype(str).map(places).astype("float64")
        ends = {f"snr_db_{end}": at for end in ("from", "to", "mean")}
        rates = {f"error_rate{end}": kept[f"ranking_rate{end}"] for end in ("", "_low", "_high")}
        lines = kept.assign(**ends, **rates).sort_values("snr_db_mean", kind="stable")
        if self.systems:  # which have one colour in all panels
            lines = lines.sort_values(
                "system", key=lambda names: names.map(self.systems.index), kind="stable"
            )
        by = [name for name in ("system", "language") if name in kept.columns and kept[name].nunique() > 1]
        figure = error_by_measure(lines, "snr_db", **{"by": by, **options})
        names = [name if name == AS_RECORDED else f"{level:g}" for name, level in places.items()]
        for axes in figure.axes:
            axes.set_xticks(list(places.values()), names)
        return figure


def _labels(table: pd.DataFrame) -> list[str]:
    """A label for each row of a system: the recording and its condition."""
    parts = [table[name].astype(str) for name in ("recording", "condition") if name in table.columns]
    return [", ".join(one) for one in zip(*parts, strict=True)] if parts else list(map(str, table.index))


def _told_apart(pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs of several languages and conditions, with these in their names."""
    keys = [name for name in ("condition", "language") if name in pairs.columns and pairs[name].nunique() > 1]
    if not keys:
        return pairs
    where = pairs[keys].astype(str).agg(", ".join, axis=1)
    return pairs.assign(a=pairs["a"] + " (" + where + ")")
