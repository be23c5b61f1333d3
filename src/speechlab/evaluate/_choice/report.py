"""The report of the study of voices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from speechlab.evaluate._arguments import code_or_none
from speechlab.evaluate._choice.advice import choices
from speechlab.evaluate._choice.measured import sounds, voice_keys
from speechlab.evaluate._choice.order import full_names
from speechlab.evaluate._choice.tables import errors_view, sound_view, voices_view
from speechlab.evaluate._finding import Finding
from speechlab.evaluate._made import VOICES
from speechlab.evaluate._speech.answer import answer_of
from speechlab.evaluate._speech.report import SpeechReport
from speechlab.evaluate._speech.summary import summarized, with_sound_ends
from speechlab.evaluate._speech.tables import load_views

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from speechlab.evaluate._choice.order import Order
    from speechlab.evaluate._finding import Conclusion
    from speechlab.evaluate._writing.columns import View

_ATTRIBUTED = (
    *("shared_rate", "engine_rate", "own_rate"),
    *("homophones", "homophone_errors", "number_errors", "spelling_errors"),
    *("endings_lost", "worst_utterance", "worst_share", "take_sd"),
)
_WHO = "speechlab: voice of a service"
_RANKED = ("group", "first_share", "p_best", "needed")


@dataclass(frozen=True, eq=False, repr=False)
class VoicesReport(SpeechReport):
    """Report of which voice to take.

    Attributes:
        choice: The advice, one row for each language: ``language``, ``system`` (of several services), ``voice_name``,
            ``certainty`` (*settled*: better than all others, significantly; *open*; *none*: there is no choice),
            ``error_rate`` on the ``sentences`` that all voices have, ``more_sentences`` (that would tell it from the
            runner-up), ``order`` and ``advice`` (in words).
        pairs: One row for each pair of voices of a language: ``language``, and the columns of
            :func:`speechlab.metrics.compare_all`.
        attributed: One row for each run of errors: the column ``errors`` of
            :class:`speechlab.metrics.Attribution`.
        variance: One row for each language, as of :class:`speechlab.metrics.Attribution`.
        patterns: What stands out among the errors, in sentences.
        table: As of :class:`SpeechReport`, with ``take``, ``engine`` and the columns of
            :func:`speechlab.metrics.speech_measures`.
        summary: As of :class:`SpeechReport`; with ``group``, ``first_share``, ``p_best`` and ``needed`` of
            :func:`speechlab.metrics.rank`; ``shared_rate``, ``engine_rate``, ``own_rate`` and more of
            :func:`speechlab.metrics.attribute`; medians of the measures (``loudness_lufs``, ``morae_per_s``,
            ``characters_per_s``, ``leading_silence_s``, ``trailing_silence_s``, ``longest_pause_s``,
            ``dnsmos_overall`` and others), and how many clips are ``clipped``, ``truncated``, ``repeated`` or were
            ``rated`` by DNSMOS.
    """

    _made: ClassVar = VOICES
    choice: pd.DataFrame = field(default_factory=pd.DataFrame)
    pairs: pd.DataFrame = field(default_factory=pd.DataFrame)
    attributed: pd.DataFrame = field(default_factory=pd.DataFrame)
    variance: pd.DataFrame = field(default_factory=pd.DataFrame)
    patterns: tuple[str, ...] = ()

    @classmethod
    def ordered(cls, report: SpeechReport, order: Order, notes: Sequence[str]) -> VoicesReport:
        """Summarise the measured rows of a report, whose voices were put in order."""
        table, language, speed = report.table, report.language, report.speed
        summary = summarized(table, language, speed, groups=report.text, items=report.text)
        summary = summary.merge(sounds(table, language), on=voice_keys(summary), how="left")
        pairs = [
            with_sound_ends(one.pairs).assign(language=code)
            for code, one in order.rankings.items()
            if len(one.pairs)
        ]
        found = order.attribution
        return cls(
            title=report.title,
            table=table,
            summary=_with_order(summary, order),
            text=report.text,
            language=language,
            segments=report.segments,
            speed=speed,
            record=report.record,
            choice=_of_services(choices(order.rankings, order.open, _fully_named(speed)), table),
            pairs=pd.concat(pairs, ignore_index=True) if pairs else pd.DataFrame(),
            attributed=pd.DataFrame() if found is None else found.errors,
            variance=pd.DataFrame() if found is None else found.variance,
            patterns=() if found is None else tuple(found.findings),
            notes=tuple(notes),
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The order in each language with its test, and what stands out among the errors."""
        orders = [Finding(row["order"], row["language"]) for row in self.choice.to_dict("records")]
        return (*orders, *map(Finding, self.patterns))

    def _quoted(self) -> Sequence[Finding]:
        return [Finding(pattern) for pattern in self.patterns]

    def conclude(self) -> Conclusion:
        choice = self.choice
        if "system" in choice.columns:
            choice = choice.assign(voice_name=full_names(choice))
        return answer_of(choice.rename(columns={"voice_name": "name"}))

    def _views(self) -> Sequence[View]:
        return [
            voices_view(self.summary),
            errors_view(self.summary),
            sound_view(self.summary, timed=len(self.speed) > 0),
            *load_views(self.speed),
        ]

    def plot(self, **options: Any) -> Figure:
        """Draw the rates that the voices are ranked by, and the part of each that is the voice's own.

        Args:
            **options: As for :func:`speechlab.plots.error_rates`.
        """
        return super().plot(**{"rates": ["ranking_rate", "own_rate"], **options})

    def facts(self) -> Mapping[str, str]:
        """Return versions, normalisers, counts, and how the voices were compared and timed."""
        facts = super().facts()
        timed = (
            f"{len(self.speed)} calls, one at a time, voices in turns" if len(self.speed) else "not measured"
        )
        groups = "exact paired test by sentence, Holm, 5 % level"
        intervals = f"{facts['intervals']}, sentences drawn as wholes"
        return {**facts, "intervals": intervals, "order": groups, "speed": timed}


def _with_order(summary: pd.DataFrame, order: Order) -> pd.DataFrame:
    keys = [_WHO, "language"]
    summary = summary.assign(**{_WHO: full_names(summary)})
    placed = [one.systems[["system", *_RANKED]].assign(language=code) for code, one in order.rankings.items()]
    empty = pd.DataFrame(columns=[*keys, *_RANKED]).astype({_WHO: "string", "language": "string"})
    ranked = pd.concat(placed).rename(columns={"system": _WHO}) if placed else empty
    out = summary.merge(ranked, on=keys, how="left")
    if order.attribution is None:
        return out.reindex(columns=[*out.columns, *_ATTRIBUTED]).drop(columns=_WHO)
    found = order.attribution.voices[["voice", "language", *_ATTRIBUTED]]
    found = found.rename(columns={"voice": _WHO, "language": "_code"})
    out = out.assign(_code=out["language"].map(code_or_none))
    return out.merge(found, on=[_WHO, "_code"], how="left").drop(columns=["_code", _WHO])


def _fully_named(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(voice_name=full_names(rows))


def _of_services(choice: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return the advice, with a column for the service of each voice if there are several services."""
    if "system" not in table.columns:
        return choice
    voices = table[table["voice"].notna()].drop_duplicates(["system", "voice"])
    names = full_names(voices)
    found = {
        name: choice["voice_name"].map(dict(zip(names, voices[name], strict=True))).astype("string")
        for name in ("system", "voice_name")
    }
    return choice.assign(**found)[["language", "system", *choice.columns[1:]]]
