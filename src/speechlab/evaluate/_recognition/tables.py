"""Tables of a report of recognition: differences of systems, hotwords, and measures beside the error rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.evaluate._arguments import code_or_none
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._report import ALIKE
from speechlab.evaluate._speech.scorers import SCORE
from speechlab.evaluate._speech.summary import BLOCK, ENOUGH
from speechlab.evaluate._writing.columns import Shown, View, chance, count, interval_text, number, rate, text
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


def pairs_view(pairs: pd.DataFrame) -> View:
    """Return the differences of all pairs of systems, with test results."""
    sides = [
        name for name in ("language", "condition") if name in pairs.columns and pairs[name].nunique() > 1
    ]
    columns = [
        *(text(name, name) for name in sides),
        Shown("systems", lambda row: f"{row['b']} − {row['a']}", strong=True),
        count("recordings", "utterances"),
        Shown("difference (points)", lambda row: _points(row, ""), figure=True, strong=True),
        Shown("95 % interval", _interval, figure=True),
        chance("p (Holm)", "p_holm"),
        Shown("verdict", _verdict),
    ]
    note = (
        "On the recordings that all systems have: below 0, the first named makes fewer errors. P is exact, paired by "
        f"recording, and corrected for all rows of a language. An interval takes {ENOUGH} recordings."
    )
    return View("Differences of systems", columns, pairs.to_dict("records"), note)


def hotwords_view(hotwords: pd.DataFrame) -> View:
    """Return the counts of hotwords and the error rates of the rest, with p against the setting without."""
    sides = [name for name in ("language", "condition", "system") if name in hotwords.columns]
    columns = [
        *(text(name, name) for name in sides),
        count("hotwords said", "hotwords_said"),
        count("came through", "hotwords_hit"),
        rate("recall", "recall", strong=True),
        chance("p (recall)", "p_missed", optional=True),
        count("put in", "hotwords_added"),
        chance("p (put in)", "p_added", optional=True),
        rate("errors of the rest", "rest_rate"),
        chance("p (rest)", "p_rest", optional=True),
        text("verdict", "verdict", optional=True),
    ]
    note = (
        "How many hotwords of those said came through, and how many were put where nobody said them. Each p is "
        "exact, paired by recording, against the setting without them, and corrected for all of these."
    )
    return View("Hotwords", columns, hotwords.to_dict("records"), note)


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
    return View("Formatting, entities and scores", columns, measures.to_dict("records"), note)


def _rate_interval(row: Mapping[Any, Any]) -> str | None:
    enough = row["utterances"] >= ENOUGH
    return interval_text(row.get("error_rate_low"), row.get("error_rate_high"), ".1%") if enough else None


def _points(row: Mapping[Any, Any], end: str) -> str:
    points = round(100 * row[f"difference{end}"], 1) + 0.0  # -0.0 becomes 0.0
    return f"{points:+.1f}" if points else "0.0"


def _interval(row: Mapping[Any, Any]) -> str | None:
    if is_missing(row["difference_low"]):
        return None
    return f"{_points(row, '_low')} to {_points(row, '_high')}"


def _verdict(row: Mapping[Any, Any]) -> str:
    better = row["a"] if row["difference"] > 0 else row["b"]
    return f"{better} is better" if row["significant"] else ALIKE
