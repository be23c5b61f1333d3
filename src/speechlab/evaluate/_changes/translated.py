"""Pairs of translations of two reports, and tests of their differences by direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.evaluate._changes.tested import (
    changed_rows,
    check_scored,
    check_systems,
    failed_rows,
    paired,
)
from speechlab.evaluate._writing.differences import BACK, CHRF, of_study
from speechlab.metrics import BETTER, POINTS, compare_translations, score_translations

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.evaluate._writing.contents import Contents

_KEYS = ("id", "system", "source_lang", "target_lang", "text", "reference")
_KEPT = ("translation", "back_translation", "chrf", "back_chrf", "status")


def translation_changes(now: Contents, earlier: Contents) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Compare the rows of two reports of translations, by chrF; without references by the chrF of back-translations.

    Returns:
        The common rows, and the differences of each direction.

    Raises:
        InvalidRequestError: The reports have no scores.
    """
    check_systems(now, earlier)
    later, former = (_tidy(report) for report in (now, earlier))
    pairs, new, gone = paired(later, former, _KEYS, _KEPT)
    sides = ("reference", "translation", CHRF), ("text", "back_translation", BACK)
    unit = sides[0] if all("reference" in rows.columns for rows in (later, former)) else sides[1]
    summary = [*_groups(pairs, new, gone, *unit), *failed_rows(pairs)]
    check_scored(summary)
    score = "chrf" if unit[2] == CHRF else "back_chrf"
    found = pairs.assign(score_difference=_numbers(pairs, score) - _numbers(pairs, f"{score}_earlier"))
    old = ("translation_earlier", f"{score}_earlier", "status_earlier")
    kept = [name for name in old if name in found.columns]
    return changed_rows(found, kept, "score_difference"), summary


def _numbers(rows: pd.DataFrame, name: str) -> Any:
    import pandas as pd

    column = rows[name] if name in rows.columns else pd.Series(float("nan"), index=rows.index)
    return column.astype("float64")


def _tidy(report: Contents) -> pd.DataFrame:
    """Rows with the column names of the study, each with its direction."""
    rows = report.plain_rows()
    group = rows["source_lang"].astype(object).map(str) + " → " + rows["target_lang"].astype(object).map(str)
    if "system" in rows.columns:
        group = rows["system"].astype(object).map(str) + ", " + group
    return rows.assign(_group=group).reset_index(drop=True)


def _groups(
    pairs: pd.DataFrame, new: pd.DataFrame, gone: pd.DataFrame, said: str, heard: str, unit: str
) -> list[dict[str, Any]]:
    """Return a row of the summary for each direction with scores."""
    found = []
    for name in dict.fromkeys([*pairs["_group"], *new["_group"], *gone["_group"]]):
        here, alone, before = (rows[rows["_group"] == name] for rows in (pairs, new, gone))
        code = next(iter([*here["target_lang"], *alone["target_lang"], *before["target_lang"]]))
        facts = {"group": name, "language": str(code), "measure": unit, "more": BETTER}
        facts |= {"only_now": len(alone), "only_earlier": len(before)}
        both = _answered(here, said, heard, f"{heard}_earlier")
        if len(both):
            found.append({**_tested(both, said, heard), **facts})
            continue
        scores = [_score(_answered(rows, said, heard), said, heard) for rows in (before, alone)]
        if any(score == score for score in scores):
            told = {"value_a": scores[0], "value_b": scores[1], "difference": scores[1] - scores[0]}
            found.append({**facts, **told, "unit": POINTS, "n": 0})
    return found


def _answered(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    return rows.dropna(subset=list(names)) if set(names) <= set(rows.columns) else rows.iloc[:0]


def _tested(both: pd.DataFrame, said: str, heard: str) -> dict[str, Any]:
    # A repeated text counts as one text: its translations are swapped together.
    groups = None if both["_block"].is_unique else both["_block"].tolist()
    sides = {"earlier": both[f"{heard}_earlier"].tolist(), "now": both[heard].tolist()}
    found = of_study(compare_translations(both[said].tolist(), sides, metrics=["chrf"], groups=groups))
    return {str(name): value for name, value in found.iloc[0].items()}


def _score(rows: pd.DataFrame, said: str, heard: str) -> float:
    if not len(rows):
        return float("nan")
    return score_translations(rows[said].tolist(), rows[heard].tolist(), metrics=["chrf"]).chrf
