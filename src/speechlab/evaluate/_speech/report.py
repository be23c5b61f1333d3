"""The report of studies of speech: one row for each utterance, each of which can be heard."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from speechlab._platform import package_version
from speechlab.evaluate._made import SIDES, SPEECH
from speechlab.evaluate._report import Report, drawn
from speechlab.evaluate._speech.answer import rates_answer
from speechlab.evaluate._speech.html import clip_rows
from speechlab.evaluate._speech.speed import no_speed
from speechlab.evaluate._speech.summary import ENOUGH, NO_SPEAKER, ranking_units, summarized
from speechlab.evaluate._speech.tables import load_views, rates_view, speed_view
from speechlab.metrics import by_bins
from speechlab.segments import frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.figure import Figure

    from speechlab.display import Html
    from speechlab.evaluate._finding import Conclusion
    from speechlab.evaluate._writing.columns import View
    from speechlab.widgets import ShownTable

_BINS = 5
"""Number of bins of the figure of errors by length, which is drawn if each has enough utterances for an interval."""


@dataclass(frozen=True, eq=False, repr=False)
class SpeechReport(Report):
    """Report of how well speech was understood.

    Attributes:
        title: Title of the page.
        table: One row for each utterance: the input's columns; ``voice``, ``voice_name``, ``gender``; ``audio``
            (path), ``duration_s``, ``sample_rate`` (Hz), of recordings ``file`` (its name); ``hypothesis``,
            ``hypothesis_language``, ``confidence``; the columns of :func:`speechlab.metrics.score`; ``loop`` (whether
            the recogniser repeated itself as the reference does not); ``status`` (ok, cached, error, or skipped
            where no voice speaks the language), ``error`` (also of a row whose text came and whose segments have
            times that cannot be right).
        summary: One row for each voice and language, the best of each language first: the columns of
            :func:`speechlab.metrics.summarize`; ``ranking_rate`` with ``ranking_rate_low`` and
            ``ranking_rate_high``, the rate that the order goes by, and ``ranked_by``, its name: ``reading_cer`` for
            Japanese, else ``error_rate``; ``interval_needs``, how many more utterances it takes for a 95 % interval,
            which is missing until then, or more of ``interval_unit`` (``speaker``, ``block``) where rows belong
            together; ``duration_s`` (seconds of audio), ``loops`` (rows); and where speed was measured
            ``timed_calls`` and the medians of the times, with the lowest and the highest call (``rtf_low``,
            ``rtf_high``), and from enough calls quantiles with 95 % intervals (``total_s_p50``, ``total_s_p50_low``,
            ``total_s_p50_high``; ``_p95``, ``_p99``).
        text: Column of ``table`` with what was to be said.
        language: Column of ``table`` with its language.
        segments: With ``vad="segments"``, what :func:`speechlab.batch.segments` gives, one segment frame of all
            recordings; ``position`` counts the rows of ``table``. Without it, a frame without rows.
        speed: One row for each call that was timed, where speed was measured: ``voice``, ``voice_name``,
            ``language``, ``text``, and the columns of :func:`speechlab.evaluate.latency` from ``turn`` on; of
            recognisers ``file``, and of the times ``total_s``, ``duration_s`` (of the recording) and ``rtf``. Without
            it, a table without rows.
        record: As for :class:`Report`.
        notes: As for :class:`Report`.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    text: str = "text"
    language: str = "language"
    segments: pd.DataFrame = field(default_factory=lambda: frame([]))
    speed: pd.DataFrame = field(default_factory=no_speed)
    record: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    _made: ClassVar = SPEECH

    def errors(self, other: SpeechReport | None = None, **options: Any) -> Any:
        """Hear the errors: a :class:`speechlab.widgets.ErrorBrowser` of the table.

        Args:
            other: Another system's report of the same rows, which are shown beside these.
            **options: As for the browser, such as ``names=("small", "large")``.
        """
        from speechlab.widgets import ErrorBrowser

        if other is not None:
            sides = self.table, other.table
            return ErrorBrowser(*sides, reference=self.text, language=self.language, **options)
        usual = {"reference": self.text, "language": self.language, **self._usual()}
        return ErrorBrowser(self.table, **{**usual, **options})

    def _usual(self) -> dict[str, Any]:
        """Return the options of a table of the rows, such as its columns."""
        return {}

    @classmethod
    def of(
        cls,
        title: str,
        scored: pd.DataFrame,
        *,
        text: str = "text",
        language: str = "language",
        segments: pd.DataFrame | None = None,
        speed: pd.DataFrame | None = None,
        record: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> SpeechReport:
        """Summarise scored rows by voice and language."""
        timed = no_speed() if speed is None else speed
        return cls(
            title,
            scored,
            summarized(scored, language, timed, items=text),
            text,
            language,
            frame([]) if segments is None else segments,
            timed,
            record or {},
            tuple(notes),
        )

    @classmethod
    def joined(cls, title: str, reports: Sequence[SpeechReport]) -> SpeechReport:
        """Put several reports into one."""
        import pandas as pd

        tables = [plain_rows(report) for report in reports]
        timed, done = [], 0
        for report in reports:
            if "position" in report.segments:
                timed.append(report.segments.assign(position=report.segments["position"] + done))
            done += len(report.table)
        segments = pd.concat(timed, ignore_index=True) if timed else None
        speeds = [report.speed for report in reports if len(report.speed)]
        speed = pd.concat(speeds, ignore_index=True) if speeds else None
        joined = pd.concat(tables, ignore_index=True)
        records = [dict(report.record) for report in reports if report.record]
        record = {"joined": records} if records else {}
        notes = [note for report in reports for note in report.notes]
        return cls.of(title, joined, segments=segments, speed=speed, record=record, notes=notes)

    def conclude(self) -> Conclusion:
        return rates_answer(self.summary, self.table, self.text, self.language)

    def _views(self) -> Sequence[View]:
        speed = [speed_view(self.summary)] if len(self.speed) else []
        return [rates_view(self.summary), *speed, *load_views(self.speed)]

    def _shown_rows(self, clips: int | None) -> Sequence[Html]:
        return [clip_rows(plain_rows(self), max_rows=clips)]

    def _rows(self, **options: Any) -> ShownTable:
        from speechlab.widgets import shown_errors

        return shown_errors(self.table, reference=self.text, language=self.language, **options)

    def figures(self) -> Mapping[str, Figure]:
        """Return the rates with their intervals, the errors by length, and the speed where it was measured."""
        from speechlab import plots

        rated = self.summary["ranking_rate"].notna().any()
        wanted: dict[str, Any] = {"Error rates, with 95 % intervals": self.plot} if rated else {}
        counts = self.table.groupby("unit", observed=True)["errors"].count()
        if len(counts) and counts.min() >= _BINS * ENOUGH and self.table["duration_s"].nunique() >= _BINS:
            wanted["Error rate against length"] = lambda: plots.error_by_measure(
                by_bins(self.table, "duration_s", bins=_BINS)
            )
        if len(self.speed):
            wanted["Real-time factor of each call"] = partial(
                plots.distributions, _by_system(self.speed), "rtf", "voice_name"
            )
        return drawn(wanted)

    def plot(self, **options: Any) -> Figure:
        """Draw the rates that the voices are ranked by: :func:`speechlab.plots.error_rates` of the summary.

        Args:
            **options: As for that function, such as ``rates=["ranking_rate", "tolerant_cer"]``.
        """
        from speechlab.plots import error_rates

        summary = on_common_rows(self.summary.assign(unit=ranking_units(self.summary)))
        sides = [name for name in SIDES if name in summary.columns]
        by = [*sides, "voice_name", "language"]
        return error_rates(summary, **{"by": by, "rates": "ranking_rate", **options})

    def facts(self) -> Mapping[str, str]:
        """Return versions, normalisers and counts."""
        signatures = self.table["signature"].dropna().astype(str).unique()
        normalizers = ", ".join(
            sorted({part[5:] for one in signatures for part in one.split("|") if part[:5] == "norm:"})
        )
        return {
            "speechlab": package_version(),
            "rows": f"{len(self.table)}, of which {len(self.failed())} failed or were skipped",
            "normalised by": normalizers or "nothing",
            "intervals": f"95 %, bootstrap by utterance, from {ENOUGH} utterances on",
        }

    def failed(self) -> pd.DataFrame:
        """Return the rows that failed, or that nothing could be done for."""
        return self.table[self.table["status"].isin(["error", "skipped"])]


def on_common_rows(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary with the rates on the rows that all lines have, where some line lacks a row."""
    if "common_utterances" not in summary.columns:  # reports of 0.1
        return summary
    other = summary["common_utterances"].notna()
    ends = {end: summary[end].mask(other) for end in ("ranking_rate_low", "ranking_rate_high")}
    counts = summary["utterances_scored"].mask(other, summary["common_utterances"])
    rates = summary["ranking_rate"].mask(other, summary["common_rate"])
    return summary.assign(**ends, utterances_scored=counts, ranking_rate=rates)


def _by_system(speed: pd.DataFrame) -> pd.DataFrame:
    """Calls with the names of their voices, after the names of the services if there are several."""
    if "system" not in speed.columns:
        return speed
    if (speed["voice"] == NO_SPEAKER).all():
        return speed.assign(voice_name=speed["system"])
    return speed.assign(voice_name=speed["system"] + ", " + speed["voice_name"])


def plain_rows(report: SpeechReport) -> pd.DataFrame:
    """Return the rows of a report, with its texts and languages as columns ``text`` and ``language``."""
    names = {report.text: "text", report.language: "language"}
    others = set(names.values()) - set(names)
    return report.table.drop(columns=list(others), errors="ignore").rename(columns=names)
