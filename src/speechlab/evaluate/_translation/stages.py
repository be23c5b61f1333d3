"""The report on losses from speech to speech. Each stage can be heard."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from speechlab._arguments import is_missing
from speechlab._platform import package_version
from speechlab.display import Html, element, join, percent, table
from speechlab.evaluate._finding import Conclusion
from speechlab.evaluate._made import SPEECH_TO_SPEECH
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.html import player
from speechlab.evaluate._writing.columns import (
    Shown,
    View,
    chance,
    count,
    interval_text,
    number,
    p_words,
    plural,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from matplotlib.figure import Figure

    from speechlab.widgets import ShownTable

STEPS = {
    "ideal": "text translated",
    "translation": "recognised, then translated",
    "again": "spoken and recognised again",
}
"""Columns of the table that are compared with the reference, and the steps before them."""


@dataclass(frozen=True, eq=False, repr=False)
class SpeechToSpeechReport(Report):
    """Report on the loss in each step from speech to speech.

    Attributes:
        title: Title of the page.
        table: One row for each recording, and for each service (``system``) if there are several: the input's
            columns, ``hypothesis`` (the transcript), ``error_rate`` (against the text of the recording;
            ``reading_cer`` by readings for Japanese), ``translation`` (of the hypothesis), ``ideal`` (the translation
            of the text), ``spoken`` (the recording of the translation), ``again`` (its transcript),
            ``again_error_rate`` and ``again_reading_cer`` (against the translation), ``status``, ``failed_at`` (the
            step) and ``error``.
        summary: One row for each service, language and step: ``system`` (of several), ``language``, ``step``,
            ``utterances`` (rows without a failed step), ``chrf`` (against the references; without references, against
            the translation of the text), ``lost`` (points lost in this step; a negative number is a gain) with
            ``lost_low`` and ``lost_high`` (95 %, from 20 texts on), ``error_rate`` and ``reading_cer``
            (of the recogniser in this step, over all rows), ``p``, ``p_holm``, ``significant``, ``verdict`` and
            ``test``.
        columns: Columns of ``table`` with the recordings, their texts, their languages, and the references (empty
            without references).
        target_lang: Code of the language translated into.
        record: As for :class:`Report`.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    columns: tuple[str, str, str, str] = ("audio", "text", "language", "reference")
    target_lang: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)

    _made: ClassVar = SPEECH_TO_SPEECH

    def conclude(self) -> Conclusion:
        lost = int(self.table["again"].isna().sum())
        missing = f" {lost:,} of {plural(len(self.table), 'row')} did not go all the way." if lost else ""
        steps = self.summary[self.summary["lost"].notna()] if len(self.summary) else self.summary
        if not len(steps):
            return Conclusion("What is lost on the way could not be measured.", missing.strip())
        worst = max(steps.to_dict("records"), key=lambda row: float(row["lost"]))
        before = worst["chrf"] + worst["lost"]
        whose = {STEPS["translation"]: "recognition", STEPS["again"]: "the voice, or recognition of it,"}[
            worst["step"]
        ]
        system = f"{worst['system']}: " if "system" in steps.columns else ""
        way = f"{worst['language']} → {self.target_lang}"
        lead = f"{system}{whose} loses most on the way {way}: chrF {before:.1f} to {worst['chrf']:.1f}."
        if worst["lost"] <= 0:
            lead = f"{system}nothing is lost after the translation, {way}: chrF {worst['chrf']:.1f}."
        count = plural(int(worst["utterances"]), "recording")
        sure = "beyond chance" if worst["significant"] else "which may be chance"
        told = f"On {count}, {sure} ({p_words(worst['p_holm'])})."
        return Conclusion(lead[:1].upper() + lead[1:], f"{told}{missing}")

    def _views(self) -> Sequence[View]:
        columns = [
            text("system", "system", optional=True),
            Shown("language", lambda row: f"{row['language']} → {self.target_lang}"),
            text("step", "step"),
            count("utterances", "utterances"),
            number("chrF", "chrf", ".1f", strong=True),
            number("lost", "lost", "+.1f"),
            Shown(
                "95 % interval",
                lambda row: interval_text(row.get("lost_low"), row.get("lost_high"), "+.1f"),
                figure=True,
            ),
            Shown("error rate", _rate, figure=True),
            chance("p (Holm)", "p_holm"),
            text("verdict", "verdict"),
        ]
        against = "references" if self.columns[3] else "translation of what was said"
        note = f"chrF against the {against}, texts normalised; more is closer."
        return [View("What is lost at each step", columns, self.summary.to_dict("records"), note)]

    def _shown_rows(self, clips: int | None) -> Sequence[Html]:
        audio, said, language, _ = self.columns
        shown = self.table if clips is None else self.table.head(clips)
        rows = [
            [
                _texts(row, str(row[language]), (said, "hypothesis")),
                _texts(row, self.target_lang, tuple(STEPS)),
                join(Html("<br>"), [_sound(row[audio]), _sound(row["spoken"])]),
                _rate(row),
                _rate(row, "again_"),
                None if is_missing(row["error"]) else f"{row['failed_at']}: {row['error']}",
            ]
            for row in shown.to_dict("records")
        ]
        ways = "translated: the text; what was recognised; that, spoken and recognised"
        heads = ("said, and recognised", ways, "said, and spoken", "errors", "errors at the end", "failed")
        return [table(heads, rows, caption="Rows")]

    def plot(self, **options: Any) -> Figure:
        """Draw the score after each step: :func:`speechlab.plots.translation_scores` of the summary."""
        from speechlab.plots import translation_scores

        by = [*_sides(self.summary), "language", "step"]
        return translation_scores(self.summary, **{"by": by, **options})

    def _rows(self, **options: Any) -> ShownTable:
        """Return of each recording what was said, and below it what was spoken.

        What was recognised is compared with what was said, or with the translation that was to be spoken.
        """
        from speechlab.widgets import ShownTable

        audio, text, language, reference = self.columns
        target = [self.target_lang] * len(self.table)
        sides = self.table.groupby("system", sort=False) if "system" in self.table else None
        numbers = range(1, len(self.table) + 1) if sides is None else (sides.cumcount() + 1).to_numpy()
        stages = {
            "said": (audio, text, "hypothesis", "error_rate", "reading_cer", self.table[language]),
            "spoken": ("spoken", "translation", "again", "again_error_rate", "again_reading_cer", target),
        }
        parts = [
            pd.DataFrame(
                {
                    "row": numbers,
                    **{name: self.table[name] for name in _sides(self.table)},
                    "stage": stage,
                    "audio": self.table[sound].to_numpy(),
                    "text": self.table[wanted].to_numpy(),
                    "recognised": self.table[heard].to_numpy(),
                    "error_rate": self.table[rate].to_numpy(),
                    "reading_cer": self.table[reading].to_numpy() if reading in self.table else None,
                    "translation of what was said": self.table["ideal"].to_numpy()
                    if stage == "spoken"
                    else None,
                    "reference": self.table[reference].to_numpy()
                    if reference and stage == "spoken"
                    else None,
                    "language": codes,
                    "failed_at": self.table["failed_at"].to_numpy() if stage == "said" else None,
                    "error": self.table["error"].to_numpy() if stage == "said" else None,
                }
            )
            for stage, (sound, wanted, heard, rate, reading, codes) in stages.items()
        ]
        both = pd.concat([part.astype(object).reset_index(drop=True) for part in parts])
        both = both.sort_index(kind="stable").sort_values("row", kind="stable")
        both = both.dropna(axis="columns", how="all") if len(both) else both
        both = both.reset_index(drop=True)
        rates = {name: "float64" for name in ("error_rate", "reading_cer") if name in both}
        usual = {
            "reference": "text",
            "hypotheses": "recognised",
            "language": "language",
            **({"audio": "audio"} if "audio" in both else {}),
            "columns": [name for name in both.columns if name != "language"],
        }
        if "recognised" not in both:
            del usual["reference"], usual["hypotheses"]
        return ShownTable(both.astype({"row": "int64", **rates}), **{**usual, **options})

    def facts(self) -> Mapping[str, str]:
        """Return versions, and how many rows went all the way."""
        whole = int(self.table["again"].notna().sum())
        return {"speechlab": package_version(), "rows": f"{whole:,} of {len(self.table):,} went all the way"}


def _texts(row: Mapping[Hashable, Any], code: str, names: Sequence[str]) -> Html:
    lines = [element("div", row[name] if isinstance(row[name], str) else "–", lang=code) for name in names]
    return element("div", *lines)


def _sides(frame: pd.DataFrame) -> list[str]:
    return ["system"] if "system" in frame.columns else []


def _sound(recording: object) -> Html:
    return player(str(recording)) if isinstance(recording, str | PathLike) else element("span", "–")


def _rate(row: Mapping[Hashable, Any], prefix: str = "") -> str | None:
    """The error rate of a row; for Japanese that of readings, with that of characters in brackets."""
    rate, reading = row[f"{prefix}error_rate"], row.get(f"{prefix}reading_cer")
    if is_missing(rate):
        return None
    return percent(rate) if is_missing(reading) else f"{percent(reading)} ({percent(rate)} of characters)"
