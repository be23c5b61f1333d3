"""Cheaper translators that are no worse than dearer ones: what their chrF loses, text by text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from speechlab.evaluate._advice.no_worse import Contest, Losses, compare_with_dearer, describe_failed_rows
from speechlab.evaluate._speech.costs import CHARACTERS, compute_unit_prices
from speechlab.evaluate._translation.translation_differences import (
    find_common_positions,
    group_repeated_texts,
    place_texts,
)
from speechlab.evaluate._writing.differences import CHRF
from speechlab.evaluate._writing.sentences import quote_name
from speechlab.metrics import compute_chrf_pseudo_values

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.evaluate._translation.translation_measures import Columns


def compare_translators_with_dearer(
    summary: pd.DataFrame,
    differences: pd.DataFrame,
    table: pd.DataFrame,
    columns: Columns,
    margin: float,
    baseline: str,
) -> pd.DataFrame:
    """Return of each cheaper system and direction whether its chrF is no worse than that of a dearer one."""
    contests = {}
    prices = compute_unit_prices(summary, CHARACTERS)
    placed = place_texts(table) if prices else table.iloc[:0]
    for (source, target), group in placed.groupby([columns.source_lang, columns.target_lang], sort=False):
        direction = f"{source} → {target}"
        rows = {str(name): part.set_index("_place") for name, part in group.groupby("system", sort=False)}
        p_values = differences.loc[differences["language"] == direction, "p"].dropna().tolist()
        contests[direction, ""] = Contest([*rows], p_values, partial(_compute_losses, rows, columns))
    return compare_with_dearer(contests, prices, margin, baseline)


def _compute_losses(rows: Mapping[str, pd.DataFrame], columns: Columns, dear: str, cheap: str) -> Losses:
    """Return how much lower the chrF of the cheaper of two systems is in each text, as pseudo-values."""
    pair = {name: rows[name] for name in (dear, cheap)}
    failed = {name: int(part["failed"].sum()) for name, part in pair.items()}
    untested = describe_failed_rows((cheap, dear), failed, {name: len(part) for name, part in pair.items()})
    # Corpus chrF leaves empty translations out.
    empty = {name: int((part["translation"].str.strip() == "").sum()) for name, part in pair.items()}
    if not untested and (name := next((name for name in (cheap, dear) if empty[name]), "")):
        untested = f"{quote_name(name)} came back empty on {empty[name]} of {len(pair[name])}"
    needed = ["translation", *([columns.reference] if columns.reference else [])]
    places = find_common_positions(pair, needed)
    if not columns.reference or not len(places):
        return Losses(np.empty(0), np.empty(0), 0.0, unit=CHRF, untested=untested or "there is no reference")
    shared = {name: part.loc[places] for name, part in pair.items()}
    texts = {name: part["translation"].tolist() for name, part in shared.items()}
    references = shared[dear][columns.reference].tolist()
    blocks = group_repeated_texts(shared[dear][columns.text])
    values = compute_chrf_pseudo_values(references, texts, blocks)
    losses = (values[dear] - values[cheap]) / 100
    worst = float(values[dear].mean()) / 100
    return Losses(losses, np.ones_like(losses), len(losses) / len(places), worst, CHRF, untested)
