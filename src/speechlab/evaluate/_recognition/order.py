"""The order of systems: ranked by language, and by what was done to the recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from speechlab.errors import InvalidRequestError
from speechlab.evaluate._speech.summary import ENOUGH, ranking_scores
from speechlab.metrics import rank

if TYPE_CHECKING:
    from collections.abc import Hashable

FEWEST = 6
"""Recordings below which the exact test can show no difference at the 5 % level (2 ** (1 - 6) < 0.05)."""
_PLACES = ("system", "utterances", "error_rate", "group", "first_share", "p_best", "needed")


class SystemOrder(NamedTuple):
    """Systems in order.

    Attributes:
        systems: One row for each language, condition and system, the best first.
        pairs: All pairs of each language and condition.
        verdicts: The order in sentences.
    """

    systems: pd.DataFrame
    pairs: pd.DataFrame
    verdicts: tuple[str, ...]


def ordered(table: pd.DataFrame, text: str, language: str) -> SystemOrder:
    """Rank the systems of each language and condition on the recordings that all have; Japanese by readings."""
    places, pairs, verdicts = [], [], []
    keys = [language, *([_CONDITION] if _CONDITION in table.columns else [])]
    known = table[table[language].notna()]
    for key, part in known.groupby(keys, observed=True, sort=False):
        label, facts = _label(key), _facts(key)
        done = ranking_scores(part, text, language, ["system", "recording"])
        alive = done[done["errors"].notna()]
        failed = [name for name in part["system"].unique() if name not in set(alive["system"])]
        if failed:
            verdicts.append(
                f"{label}: {', '.join(failed)} failed on all recordings, and has no place in the order."
            )
        if alive["system"].nunique() < 2:
            continue
        try:
            found = rank(alive, system="system", utterance="recording")
        except InvalidRequestError:
            verdicts.append(
                f"{label}: no recording was recognised by all; run the study again for the others."
            )
            continue
        places.append(found.systems[list(_PLACES)].assign(**facts))
        # Intervals of differences, as of rates, are given where their coverage is sound.
        rough = found.pairs["blocks"] < ENOUGH
        ends = {end: found.pairs[end].mask(rough) for end in ("difference_low", "difference_high")}
        pairs.append(found.pairs.assign(**ends, **facts))
        verdicts.append(f"{label}: {found.sentence}{_few(found.systems)}{_excluded(found.excluded)}")
    return SystemOrder(_joined(places), _joined(pairs), tuple(verdicts))


_CONDITION = "condition"


def _facts(key: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("language", _CONDITION), key, strict=False))


def _label(key: tuple[Hashable, ...]) -> str:
    return ", ".join(str(one) for one in key)


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _few(systems: pd.DataFrame) -> str:
    count = int(systems["utterances"].iloc[0])
    return f" Fewer than {FEWEST} recordings can show no difference." if count < FEWEST else ""


def _excluded(count: int) -> str:
    what = (
        "recording that not all systems have is" if count == 1 else "recordings that not all systems have are"
    )
    return f" {count} {what} left out." if count else ""
