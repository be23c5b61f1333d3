"""The order of systems: rankings by language and condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from speechlab.evaluate._blocks import BLOCK
from speechlab.evaluate._recognition.conditions import AS_RECORDED
from speechlab.evaluate._speech.summary import ranking_scores
from speechlab.evaluate._writing.contents import Finding
from speechlab.evaluate._writing.differences import of_study
from speechlab.metrics import judge, rank

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speechlab.metrics import Ranking

FEWEST = 6
"""Recordings below which the exact test can show no difference at the 5 % level (2 ** (1 - 6) < 0.05)."""
_PLACES = ("system", "utterances", "error_rate", "group", "first_share", "p_best", "needed")


class SystemOrder(NamedTuple):
    """Systems in order.

    Attributes:
        systems: One row for each language, condition and system, the best first.
        differences: All pairs of each language and condition.
        verdicts: The order, in sentences.
    """

    systems: pd.DataFrame
    differences: pd.DataFrame
    verdicts: tuple[Finding, ...]


def ordered(table: pd.DataFrame, text: str, language: str, about: str = "") -> SystemOrder:
    """Rank the systems of each language and condition on their common recordings, Japanese by readings."""
    places, pairs, verdicts = [], [], []
    only = f" This is about {'this' if about.startswith('one') else 'these'} {about} alone." if about else ""
    with_language = table[table[language].notna()]
    for code, rows in with_language.groupby(language, observed=True, sort=False):
        by_condition, findings = _rankable(rows, text, language, str(code))
        verdicts += findings
        if not by_condition:
            continue
        rankings = rank(
            pd.concat(list(by_condition.values())).assign(**{_PART: list(_parts(by_condition))}),
            by=_PART,
            system="system",
            utterance="recording",
            groups=BLOCK if BLOCK in table.columns else None,
        )
        for name, ranking in rankings.items():
            facts = {"language": code, **({_CONDITION: name} if _CONDITION in table.columns else {})}
            places.append(ranking.systems[list(_PLACES)].assign(**facts))
            pairs.append(of_study(ranking.pairs, **facts))
            label = ", ".join(map(str, facts.values()))
            words = f"{label}: {ranking.sentence}{_few(ranking)}{_excluded(ranking.excluded)}{only}"
            names = tuple(ranking.systems["system"].tolist())
            count = {"recordings": int(ranking.systems["utterances"].iloc[0])}
            where = str(facts.get(_CONDITION, ""))
            shown = "method" if where in {"", AS_RECORDED} else ""
            verdicts.append(Finding(words, str(code), where, names, count, shown))
    return SystemOrder(_joined(places, pd.DataFrame()), _joined(pairs, judge([])), tuple(verdicts))


def _rankable(
    rows: pd.DataFrame, text: str, language: str, code: str
) -> tuple[dict[str, pd.DataFrame], list[Finding]]:
    """Return the rows of a language that can be ranked, by condition, and findings on those that cannot."""
    by_condition: dict[str, pd.DataFrame] = {}
    findings = []
    conditions = rows.groupby(_CONDITION, observed=True, sort=False) if _CONDITION in rows else [("", rows)]
    for condition, group in conditions:
        label = ", ".join(filter(None, (code, str(condition))))
        where_shown = "page" if condition in {"", AS_RECORDED} else ""
        scores = ranking_scores(
            group,
            text,
            language,
            ["system", "recording", *([BLOCK] if BLOCK in group.columns else [])],
        )
        alive = scores[scores["errors"].notna()]
        failed = [name for name in group["system"].unique() if name not in set(alive["system"])]
        if failed:
            has = "has" if len(failed) == 1 else "have"
            words = f"{label}: {'; '.join(failed)} failed on all recordings, and {has} no place in the order."
            findings.append(Finding(words, code, str(condition), tuple(failed), shown=where_shown))
        count = alive["system"].nunique()
        if count < 2:
            continue
        if not (alive.groupby("recording")["system"].nunique() == count).any():
            words = f"{label}: no recording was recognised by all; run the study again for the others."
            findings.append(Finding(words, code, str(condition), shown=where_shown))
            continue
        by_condition[str(condition)] = alive
    return by_condition, findings


def _parts(parts: dict[str, pd.DataFrame]) -> Iterator[str]:
    """Yield the condition of each row of the concatenated tables."""
    for name, rows in parts.items():
        yield from [name] * len(rows)


_CONDITION, _PART = "condition", "speechlab: condition"


def _joined(tables: list[pd.DataFrame], none: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True) if tables else none


def _few(order: Ranking) -> str:
    count = int(order.pairs["blocks"].iloc[0])
    what = "recordings" if order.tested == "utterance" else "blocks of recordings"
    return f" Fewer than {FEWEST} {what} can show no difference." if count < FEWEST else ""


def _excluded(count: int) -> str:
    what = (
        "recording that not all systems have is" if count == 1 else "recordings that not all systems have are"
    )
    return f" {count} {what} left out." if count else ""
