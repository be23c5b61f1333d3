"""The report of the study of voices."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from speechlab.evaluate._arguments import code_or_none
from speechlab.evaluate._choice.advice import choices
from speechlab.evaluate._choice.html import advice_parts, errors_table, sound_table, voices_table
from speechlab.evaluate._choice.measured import sounds
from speechlab.evaluate._speech.html import clip_rows
from speechlab.evaluate._speech.report import SpeechReport
from speechlab.evaluate._speech.summary import ranking_units, summarized

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from speechlab.display import Html
    from speechlab.evaluate._choice.order import Order
    from speechlab.metrics import Attribution, Ranking

_ATTRIBUTED = (
    *("shared_rate", "engine_rate", "own_rate", "homophones", "number_errors", "spelling_errors"),
    *("endings_lost", "worst_utterance", "worst_share", "take_sd"),
)
_RANKED = ("group", "first_share", "p_best", "needed")


@dataclass(frozen=True, eq=False, repr=False)
class VoicesReport(SpeechReport):
    """Report of which voice to take.

    Attributes:
        choice: The advice, one row for each language: ``language``, ``voice_name``, ``certainty`` (*settled*: better
            than all others, significantly; *likely*: first in four of five resampled sets of sentences or more;
            *open*; *none*), ``first_share``, ``more_sentences`` (that would tell it from the runner-up), ``order``
            and ``advice`` (sentences).
        rankings: By language, what :func:`speechlab.metrics.rank` gave.
        attribution: What :func:`speechlab.metrics.attribute` gave; None where nothing was scored.
        notes: What was left out, and why.
        table: As of :class:`SpeechReport`, with ``take``, ``engine`` and the columns of
            :func:`speechlab.metrics.speech_measures`.
        summary: As of :class:`SpeechReport`; with ``group``, ``first_share``, ``p_best`` and ``needed`` of the
            rankings; ``shared_rate``, ``engine_rate``, ``own_rate`` and more of the attribution; medians of the
            measures (``loudness_lufs``, ``morae_per_s``, ``characters_per_s``, ``leading_silence_s``,
            ``trailing_silence_s``, ``longest_pause_s``, ``dnsmos_overall`` and others), and how many clips are
            ``clipped``, ``truncated``, ``repeated`` or were ``rated`` by DNSMOS.
    """

    choice: pd.DataFrame = field(default_factory=lambda: choices({}, {}, _no_speed()))
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    attribution: Attribution | None = None
    notes: Sequence[str] = ()

    @classmethod
    def ordered(
        cls,
        title: str,
        table: pd.DataFrame,
        order: Order,
        text: str,
        language: str,
        segments: pd.DataFrame,
        speed: pd.DataFrame,
        notes: Sequence[str],
    ) -> VoicesReport:
        """Summarise measured rows, whose voices were put in order."""
        summary = summarized(table, language, speed, groups=text)
        summary = summary.merge(sounds(table, language), on=["voice", "language"], how="left")
        summary = _with_order(summary, order)
        choice = choices(order.rankings, order.open, speed)
        kept = title, table, summary, text, language, segments, speed
        return cls(*kept, choice, order.rankings, order.attribution, tuple(notes))

    @property
    def advice(self) -> str:
        """Which voice to take, by language, in sentences."""
        rows = self.choice.to_dict("records")
        return "\n".join(f"{row['order']} {row['advice']}" for row in rows)

    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return the advice, the voices, how they sound, what stands out, and the rows that can be heard."""
        rows = self.table.rename(columns={self.text: "text", self.language: "language"})
        findings = self.attribution.findings if self.attribution is not None else []
        return [
            advice_parts(self.choice, findings, self.notes),
            voices_table(self.summary),
            errors_table(self.summary),
            sound_table(self.summary, timed=len(self.speed) > 0),
            clip_rows(rows, max_rows=clips),
        ]

    def plot(self, **options: Any) -> Figure:
        """Draw the rates that the voices are ranked by, and the part of each that is the voice's own.

        Args:
            **options: As for :func:`speechlab.plots.error_rates`.
        """
        # By name: figures stand a floor above this room, and load when one is drawn.
        summary = self.summary.assign(unit=ranking_units(self.summary))
        given = {"by": ["voice_name", "language"], "rates": ["ranking_rate", "own_rate"], **options}
        figure: Figure = import_module("speechlab.plots").error_rates(summary, **given)
        return figure

    def facts(self) -> Mapping[str, str]:
        """Return versions, normalisers, counts, and how the voices were compared and timed."""
        timed = (
            f"{len(self.speed)} calls, one at a time, voices in turns" if len(self.speed) else "not measured"
        )
        groups = "exact paired test by sentence, Holm, 5 % level; more sentences for a chance of 80 %"
        intervals = f"{super().facts()['intervals']}, sentences drawn as wholes"
        return {**super().facts(), "intervals": intervals, "order": groups, "speed": timed}

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write what :meth:`SpeechReport.save` writes, and ``choice.csv``, ``attribution.csv`` and ``speed.csv``.

        Raises:
            StoreError: A file cannot be written.
        """
        path = super().save(folder)
        self.choice.to_csv(path / "choice.csv", index=False)
        if self.attribution is not None:
            self.attribution.errors.to_csv(path / "attribution.csv", index=False)
        if len(self.speed):
            self.speed.to_csv(path / "speed.csv", index=False)
        return path

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}({self.title!r}, {len(self.table)} rows)", self.advice, *self.notes]
        return "\n".join(line for line in lines if line)


def _with_order(summary: pd.DataFrame, order: Order) -> pd.DataFrame:
    import pandas as pd

    placed = [one.systems[["system", *_RANKED]].assign(language=code) for code, one in order.rankings.items()]
    keys = ["voice_name", "language"]
    empty = pd.DataFrame(columns=[*keys, *_RANKED])
    ranked = pd.concat(placed).rename(columns={"system": "voice_name"}) if placed else empty
    out = summary.merge(ranked, on=keys, how="left")
    if order.attribution is None:
        return out.reindex(columns=[*out.columns, *_ATTRIBUTED])
    found = order.attribution.voices[["voice", "language", *_ATTRIBUTED]]
    found = found.rename(columns={"voice": "voice_name", "language": "_code"})
    out = out.assign(_code=out["language"].map(code_or_none))
    return out.merge(found, on=["voice_name", "_code"], how="left").drop(columns="_code")


def _no_speed() -> pd.DataFrame:
    from speechlab.evaluate._speech.speed import no_speed

    return no_speed()
