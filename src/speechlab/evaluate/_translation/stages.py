"""The report on losses from speech to speech. Each stage can be heard."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from speechlab._arguments import is_missing
from speechlab._platform import package_version
from speechlab.display import Html, element, join, percent, table
from speechlab.evaluate._made import SPEECH_TO_SPEECH
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.html import player

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
_HEADS = (
    "Language",
    "Step",
    "Utterances",
    "chrF",
    "Lost",
    "95 % interval",
    "Error rate",
    "p (Holm)",
    "Verdict",
)


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

    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return the steps with what each of them loses, and the rows."""
        head = self.headline()
        lines = [
            [
                None if is_missing(cell) else element("strong", cell) if name == "chrF" else str(cell)
                for name, cell in row.items()
            ]
            for row in head.to_dict("records")
        ]
        against = "references" if self.columns[3] else "translation of what was said"
        caption = f"What is lost at each step: chrF against the {against}, texts normalised."
        found = [
            table(
                list(head.columns),
                lines,
                caption=caption,
                right=range(len(head.columns) - 7, len(head.columns) - 1),
            )
        ]
        if clips != 0:
            audio, text, language, _ = self.columns
            shown = self.table if clips is None else self.table.head(clips)
            rows = [
                [
                    _texts(row, str(row[language]), (text, "hypothesis")),
                    _texts(row, self.target_lang, tuple(STEPS)),
                    join(Html("<br>"), [_sound(row[audio]), _sound(row["spoken"])]),
                    _rate(row),
                    _rate(row, "again_"),
                    None if is_missing(row["error"]) else f"{row['failed_at']}: {row['error']}",
                ]
                for row in shown.to_dict("records")
            ]
            ways = "translated: the text; what was recognised; that, spoken and recognised"
            heads = (
                "said, and recognised",
                ways,
                "said, and spoken",
                "errors",
                "errors at the end",
                "failed",
            )
            found.append(table(heads, rows, caption="Rows"))
        return found

    def headline(self) -> pd.DataFrame:
        """Return the steps in a few columns, written out for people."""
        return pd.DataFrame(
            [
                {
                    **({"System": row["system"]} if "system" in row else {}),
                    "Language": f"{row['language']} → {self.target_lang}",
                    "Step": row["step"],
                    "Utterances": row["utterances"],
                    "chrF": f"{row['chrf']:.1f}",
                    "Lost": None if is_missing(row["lost"]) else f"{row['lost']:+.1f}",
                    "95 % interval": _interval(row),
                    "Error rate": _rate(row),
                    "p (Holm)": None if is_missing(row["p_holm"]) else f"{row['p_holm']:.3f}",
                    "Verdict": row["verdict"],
                }
                for row in self.summary.to_dict("records")
            ],
            columns=None if len(self.summary) else list(_HEADS),
        )

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


def _interval(row: Mapping[Hashable, Any]) -> str | None:
    low, high = row.get("lost_low"), row.get("lost_high")
    return None if is_missing(low) else f"{low:+.1f} to {high:+.1f}"
