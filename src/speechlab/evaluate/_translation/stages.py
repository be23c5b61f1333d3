"""The report on losses from speech to speech. Each stage can be heard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab._arguments import is_missing
from speechlab._platform import package_version
from speechlab.display import percent
from speechlab.evaluate._writing.columns import (
    Shown,
    View,
    chance,
    count,
    interval,
    named,
    number,
    plural,
    sentence,
    text,
)
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, ShownRows
from speechlab.evaluate._writing.methods import methods_of
from speechlab.metrics import ALIKE

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

STEPS = {
    "ideal": "text translated",
    "translation": "recognised, then translated",
    "again": "spoken and recognised again",
}
"""Columns of the table that are compared with the reference, and the steps before them."""


def stages_report(
    title: str,
    table: pd.DataFrame,
    summary: pd.DataFrame,
    differences: pd.DataFrame,
    columns: Mapping[str, str],
    target_lang: str,
    record: Mapping[str, Any],
) -> Contents:
    """Report what is lost at each step."""
    view = [
        text("system", "system", optional=True),
        Shown("language", lambda row: f"{row['language']} → {target_lang}"),
        text("step", "step"),
        count("utterances", "utterances"),
        number("chrF", "chrf", ".1f", strong=True),
        number("lost", "lost", "+.1f"),
        interval("lost_low", "lost_high", "+.1f"),
        Shown("error rate", _rate, figure=True),
        chance("p (Holm)", "p_holm"),
        text("verdict", "verdict"),
    ]
    against = "references" if columns.get("reference") else "translation of what was said"
    note = f"chrF against the {against}, texts normalised; more is closer."
    rows, options = _stages(table, columns, target_lang)
    methods = ["steps", *(["chrf"] if len(summary) else [])]
    methods += ["randomization", "holm"] if summary["p"].notna().any() else []
    methods += ["paired intervals"] if summary["lost_low"].notna().any() else []
    complete = int(table["again"].notna().sum())
    by = [*(["system"] if "system" in summary.columns else []), "language", "step"]
    return Contents(
        title,
        table,
        summary,
        _answer(table, summary, target_lang),
        "speech_to_speech",
        differences=differences,
        tables={"stages": rows},
        columns=columns,
        views=(View.of("What is lost at each step", view, summary, note),),
        drawings=(Drawing("Scores", "translation_scores", ("summary",), {"by": by}),),
        shown=ShownRows("stages", options=options),
        said=methods_of(title, *methods),
        facts={"speechlab": package_version(), "rows": f"{complete:,} of {len(table):,} went all the way"},
        record=record,
    )


def _answer(table: pd.DataFrame, summary: pd.DataFrame, target_lang: str) -> Conclusion:
    unfinished = int(table["again"].isna().sum())
    unfinished_words = (
        f" {unfinished:,} of {plural(len(table), 'row')} did not go all the way." if unfinished else ""
    )
    steps = summary[summary["lost"].notna()] if len(summary) else summary
    if not len(steps):
        return Conclusion("What is lost on the way could not be measured.", unfinished_words.strip())
    worst = max(steps.to_dict("records"), key=lambda row: float(row["lost"]))
    before = worst["chrf"] + worst["lost"]
    names = {STEPS["translation"]: "recognition", STEPS["again"]: "the voice, or recognition of it,"}
    system = f"{worst['system']}: " if "system" in steps.columns else ""
    directions = f"from {named(str(worst['language']))} to {named(target_lang)}"
    lead = f"{system}{names[worst['step']]} loses most on the way {directions}."
    recordings = plural(int(worst["utterances"]), "recording")
    chance_words = "that may be chance" if worst["verdict"] == ALIKE else "that is beyond chance"
    certainty = (
        f"What arrives is alike by {before:.1f} of 100 before it and {worst['chrf']:.1f} after it (chrF); on "
        f"{recordings}, {chance_words}."
    )
    if worst["lost"] <= 0:
        lead = f"{system}nothing is lost after the translation, {directions}."
        certainty = f"What arrives is alike by {worst['chrf']:.1f} of 100 (chrF), on {recordings}."
    return Conclusion(sentence(lead), f"{certainty}{unfinished_words}")


def _stages(
    table: pd.DataFrame, columns: Mapping[str, str], target_lang: str
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return of each recording what was said, and below it what was spoken.

    What was recognised is compared with what was said, or with the translation that was to be spoken.
    """
    audio, text, language = (columns[name] for name in ("audio", "text", "language"))
    reference = columns.get("reference")
    sides = ["system"] if "system" in table.columns else []
    row_numbers = table.groupby(sides, sort=False).cumcount() + 1 if sides else range(1, len(table) + 1)
    tables = []
    for stage, (sound, expected, recognised, prefix) in {
        "said": (audio, text, "hypothesis", ""),
        "spoken": ("spoken", "translation", "again", "again_"),
    }.items():
        later = stage == "spoken"
        reading = f"{prefix}reading_cer"
        cells = {
            "row": row_numbers,
            **{name: table[name] for name in sides},
            "stage": stage,
            "audio": table[sound],
            "text": table[expected],
            "recognised": table[recognised],
            "error_rate": table[f"{prefix}error_rate"],
            "reading_cer": table.get(reading),
            "translation of what was said": table["ideal"] if later else None,
            "reference": table[reference] if reference and later else None,
            "language": target_lang if later else table[language],
            "failed_at": None if later else table["failed_at"],
            "error": None if later else table["error"],
        }
        tables.append(pd.DataFrame(cells, index=table.index).astype(object).reset_index(drop=True))
    stages = (
        pd.concat(tables).sort_index(kind="stable").sort_values("row", kind="stable").reset_index(drop=True)
    )
    stages = stages.dropna(axis="columns", how="all") if len(stages) else stages
    rates = {name: "float64" for name in ("error_rate", "reading_cer") if name in stages}
    options: dict[str, Any] = {"columns": [name for name in stages.columns if name != "language"]}
    if "recognised" in stages:
        options |= {"reference": "text", "hypotheses": "recognised", "language": "language"}
    options |= {"audio": "audio"} if "audio" in stages else {}
    return stages.astype({"row": "int64", **rates}), options


def _rate(row: Mapping[Hashable, Any]) -> str | None:
    """The error rate of a row; for Japanese that of readings, with that of characters in brackets."""
    rate, reading = row["error_rate"], row.get("reading_cer")
    if is_missing(rate):
        return None
    return percent(rate) if is_missing(reading) else f"{percent(reading)} ({percent(rate)} of characters)"
