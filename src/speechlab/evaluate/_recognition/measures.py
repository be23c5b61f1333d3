"""Measures beside the error rates: formatting, entities, and scorers of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.evaluate._arguments import code_or_none
from speechlab.evaluate._blocks import BLOCK
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._speech.scorers import SCORE
from speechlab.evaluate._writing.columns import Shown, View, count, interval_text, number, rate, text
from speechlab.evaluate._writing.differences import ENOUGH
from speechlab.metrics import entity_scores, formatting_rates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

_CODE = "speechlab: code"
_MEASURES = (
    *(
        "language",
        "measure",
        "utterances",
        "items",
        "hits",
        "error_rate",
        "error_rate_low",
        "error_rate_high",
    ),
    *("precision", "recall", "f1", "score"),
)


def measures_of(
    table: pd.DataFrame, text: str, language: str, *, formatting: bool, entities: str | None
) -> pd.DataFrame:
    """The measures beside the error rates: formatting, entities and scorers, by system, condition and language."""
    import pandas as pd

    scores = [name for name in table.columns if str(name).startswith(SCORE)]
    keys = [name for name in SIDES if name in table.columns]
    how: dict[str, Any] = {"reference": text, "hypothesis": "hypothesis", "language": _CODE}
    how |= {"groups": BLOCK} if BLOCK in table.columns else {}
    rows: list[dict[Any, Any]] = []
    given = table.assign(**{_CODE: table[language].map(code_or_none)})
    for names, part in given.groupby([*keys, _CODE], sort=False, observed=True):
        about = dict(zip([*keys, "language"], names, strict=True))
        parts = []
        if formatting:
            found = formatting_rates(part, **how)
            parts.append(
                found.drop(columns="language").rename(columns={"kind": "measure", "in_reference": "items"})
            )
        if entities is not None:
            found = entity_scores(part, entities=entities, **how).rename(columns={"entities": "items"})
            heard = int(part["hypothesis"].notna().sum())
            parts.append(found.assign(measure="entities: " + found["class"], utterances=heard))
        rows += [about | row for found in parts for row in found.to_dict("records")]
        for name in scores:
            known = part[name].dropna()
            mean = {"utterances": len(known), "score": known.mean() if len(known) else None}
            rows.append(about | {"measure": name.removeprefix(SCORE), **mean})
    found = pd.DataFrame(rows)
    return found[[name for name in (*keys, *_MEASURES) if name in found.columns]]


def measures_view(measures: pd.DataFrame) -> View:
    """Return the measures beside the error rates."""
    columns = [
        text("system", "system", optional=True),
        text("condition", "condition", optional=True),
        text("language", "language"),
        text("measure", "measure", strong=True),
        count("recordings", "utterances"),
        count("in the texts", "items", optional=True),
        rate("error rate", "error_rate", strong=True),
        Shown("95 % interval", _rate_interval, figure=True, optional=True),
        rate("precision", "precision", optional=True),
        rate("recall", "recall", optional=True),
        rate("F1", "f1", optional=True),
        number("mean score", "score", ".3f", optional=True),
    ]
    note = (
        "Marks, words with capitals, numbers in digits, and entities, by their places in the alignment. Scores are "
        f"means of functions of the user. An interval takes {ENOUGH} recordings."
    )
    return View.of("Formatting, entities and scores", columns, measures, note)


def _rate_interval(row: Mapping[Any, Any]) -> str | None:
    enough = row["utterances"] >= ENOUGH
    return interval_text(row.get("error_rate_low"), row.get("error_rate_high"), ".1%") if enough else None
