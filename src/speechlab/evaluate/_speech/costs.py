"""What systems cost: their prices, the cost of the rows of a report, and which of them nothing dominates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from speechlab._arguments import build_argument_error, is_missing
from speechlab._pandas import pd
from speechlab.batch import Amounts, Price
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._speech.summary import build_name_columns, choose_start_time_column
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_count_column,
    build_rate_column,
)
from speechlab.evaluate._writing.contents import Drawing

# What studies are charged by, and the column of the summary with the price of it.
HOURS, CHARACTERS = "per_hour", "per_million_characters"
_CHARGES = {
    HOURS: ("audio_s", 3600, "price_per_hour", "an hour"),
    CHARACTERS: ("characters", 1_000_000, "price_per_million_characters", "a million characters"),
}
_FIELDS = frozenset(field.name for field in fields(Price))
_ALLOWED = """the price of each system, as in {"ours": sl.evaluate.Price(per_hour=0.36)}"""


def resolve_prices(prices: object, names: Sequence[str], charge: str) -> dict[str, Any]:
    """Check prices, by the names of systems or services; return those of each system, for the record."""
    if prices is None:
        return {}
    if isinstance(prices, Price) or (isinstance(prices, Mapping) and prices and set(prices) <= _FIELDS):
        prices = dict.fromkeys(names, prices)
    if not isinstance(prices, Mapping) or not prices:
        raise build_argument_error("prices", prices, _ALLOWED)
    by_name = {str(name): _to_price(name, price, charge) for name, price in prices.items()}
    found = {name: key for name in names for key in (name.partition(", ")[0], name) if key in by_name}
    if strange := [name for name in by_name if name not in found.values()]:
        offered = ", ".join(map(repr, names))
        message = (
            f"prices has {strange[0]!r:.60}, which is no system of this study; its systems are {offered}"
        )
        raise InvalidRequestError(message, parameter="prices")
    if len(currencies := sorted({price.currency for price in by_name.values()})) > 1:
        message = f"prices in {' and '.join(currencies)} cannot be compared; give all of them in one currency"
        raise InvalidRequestError(message, parameter="prices")
    return {"prices": {name: by_name[key].to_dict() for name, key in found.items()}}


def _to_price(name: object, price: object, charge: str) -> Price:
    """Return a price that may be written as a dictionary, as in a file of prices, if the study is charged by it."""
    if isinstance(price, Mapping) and not isinstance(price, Price) and price and set(price) <= _FIELDS:
        price = Price(**price)
    if not isinstance(price, Price):
        raise build_argument_error(f"prices[{name!r}]", price, _ALLOWED)
    if not {charge, "per_call"} & set(price.to_dict()):
        message = (
            f"the price of {name!r:.60} says nothing of what this study sends; give {charge}= or per_call="
        )
        raise InvalidRequestError(message, parameter="prices")
    return price


def add_costs(
    summary: pd.DataFrame,
    table: pd.DataFrame,
    places: Mapping[str, str],
    prices: Mapping[str, Mapping[str, Any]],
    charge: str = HOURS,
    text: str = "",
) -> pd.DataFrame:
    """Return the summary with ``cost`` (of the rows with an output), ``currency`` and the price of an amount.

    ``places`` has the columns of languages in the summary, each with that of the table.
    """
    if not prices:
        return summary
    amount, count, column, _ = _CHARGES[charge]
    rows = table[table["status"].isin(["ok", "cached"])]
    sizes = rows[text].astype("string").str.len() if text else rows["duration_s"]
    sums = rows.assign(size=sizes.astype("float64"))
    keys = [name for name in ("system", "condition", "voice") if name in summary.columns]
    grouped = sums.groupby([*keys, *places.values()], observed=True)["size"]
    # One unknown length makes a sum unknown.
    amounts = pd.DataFrame({"size": grouped.sum(), "known": grouped.count(), "calls": grouped.size()})
    of_line = {tuple(map(str, key)): row for key, row in zip(amounts.index, amounts.to_numpy(), strict=True)}
    costs, units, currencies = [], [], []
    for line in summary[[*keys, *places]].astype(str).itertuples(index=False, name=None):
        facts = prices.get(line[0]) if "system" in keys else next(iter(prices.values()))
        price = None if facts is None else Price(**facts)
        size, known, calls = of_line.get(line, (0.0, 0, 0))
        whole = price is not None and (known == calls or amount not in price)
        cost = Amounts(calls=calls, **{amount: size}).compute_cost(price) if whole else np.nan
        costs.append(cost)
        if price is not None and "calls" not in price:
            units.append(count * price[amount])
        else:
            units.append(count * cost / size if size and known == calls else np.nan)
        currencies.append(None if price is None else price.currency)
    further: dict[str, Any] = {"cost": costs, column: units, "currency": pd.array(currencies, dtype="string")}
    return summary.assign(**further)


def compute_unit_prices(summary: pd.DataFrame, charge: str = HOURS) -> dict[str, float]:
    """Return what each system charges for an amount, on average of its lines; without those that nobody knows."""
    column = _CHARGES[charge][2]
    if column not in summary.columns or "system" not in summary.columns:
        return {}
    means = summary.groupby(summary["system"].astype(str), sort=False)[column].mean().dropna()
    return {str(name): float(price) for name, price in means.items()}


def build_cost_views(
    summary: pd.DataFrame, charge: str = HOURS, first: Sequence[DisplayColumn] = ()
) -> list[View]:
    """Return what each line of the summary cost, behind the columns ``first``; nothing without prices."""
    _, _, column, words = _CHARGES[charge]
    if column not in summary.columns:
        return []
    priced = summary[summary["currency"].notna()]
    currency = str(priced["currency"].iloc[0])
    outputs = build_count_column("outputs", "utterances_scored")
    is_whole = (
        summary["common_rate"].equals(summary["error_rate"]) if "error_rate" in summary.columns else True
    )
    rate = "error rate" if is_whole else "on the same clips"
    columns = [
        *(first or (*build_name_columns(summary), outputs, build_rate_column(rate, "common_rate"))),
        _build_money_column(f"this set ({currency})", "cost"),
        _build_money_column(f"{words} ({currency})", column),
    ]
    note = "The cost of the rows with an output, at the prices that were given; what failed is not counted."
    return [View.from_rows("Cost", columns, priced, note)]


def _build_money_column(head: str, name: str) -> DisplayColumn:
    def format_cell(row: Mapping[Any, Any]) -> str | None:
        value = row[name]
        if is_missing(value):
            return None
        return f"{value:,.2f}" if value >= 1 or not value else f"{value:.2g}"

    return DisplayColumn(head, format_cell, figure=True)


def build_trade_off(
    summary: pd.DataFrame, charge: str = HOURS
) -> tuple[dict[str, pd.DataFrame], list[Drawing]]:
    """Return the table ``costs`` of systems with their price, errors and time, and the figure of it."""
    column = _CHARGES[charge][2]
    if "system" not in summary.columns or column not in summary.columns:
        return {}, []
    start = choose_start_time_column(summary)
    rows = summary.drop_duplicates(["system", "language"])  # conditions stand in the order of the request
    rows = rows[rows[column].notna() & rows["common_rate"].notna()]
    if rows["system"].nunique() < 2:
        return {}, []
    times = rows[start] if start in rows.columns else pd.Series(np.nan, rows.index)
    costs = pd.DataFrame(
        {
            **{name: rows[name] for name in ("system", "language", "unit", "currency")},
            "price": rows[column].astype("float64"),
            "error_rate": rows["common_rate"].astype("float64"),
            "time_s": times.astype("float64"),
        }
    ).reset_index(drop=True)
    costs["on_front"] = _mark_front(costs)
    label = f"price of {_CHARGES[charge][3]} ({costs['currency'].iloc[0]})"
    options = {"by": "language", "label": label}
    return {"costs": costs}, [Drawing("Errors, price and time", "trade_offs", ("costs",), options)]


def _mark_front(costs: pd.DataFrame) -> list[bool]:
    """Return which systems no other of their language dominates: none is as good in all and better in something."""
    marks = []
    for row in costs.to_dict("records"):
        others = costs[costs["language"] == row["language"]]
        measures = [name for name in ("price", "error_rate", "time_s") if not others[name].isna().any()]
        values = others[measures].to_numpy(dtype=np.float64)
        own = np.array([row[name] for name in measures])
        marks.append(not ((values <= own).all(axis=1) & (values < own).any(axis=1)).any())
    return marks
