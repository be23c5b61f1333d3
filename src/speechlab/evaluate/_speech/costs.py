"""What systems cost: their prices, the cost of the rows of a report, and which of them nothing dominates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from speechlab._arguments import build_argument_error, is_missing
from speechlab._pandas import pd
from speechlab.batch import Price
from speechlab.display import join_with_and
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._speech.summary import build_name_columns, choose_start_time_column
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_count_column,
    build_rate_column,
)
from speechlab.evaluate._writing.contents import Drawing
from speechlab.evaluate._writing.sentences import join_names, quote_name

# What studies are charged by: fields of a price, with the amount that it is for.
HOURS, CHARACTERS = "per_hour", "per_million_characters"
_AMOUNTS = {HOURS: (3600, "an hour"), CHARACTERS: (1_000_000, "a million characters")}
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
    by_name = {str(name): _to_charge(name, price, charge) for name, price in prices.items()}
    found = {name: key for name in names for key in (name.partition(", ")[0], name) if key in by_name}
    if strange := [name for name in by_name if name not in found.values()]:
        offered = ", ".join(map(repr, names))
        message = (
            f"prices has {strange[0]!r:.60}, which is no system of this study; its systems are {offered}"
        )
        raise InvalidRequestError(message, parameter="prices")
    if len(currencies := sorted({str(price["currency"]) for price in by_name.values()})) > 1:
        message = f"prices in {' and '.join(currencies)} cannot be compared; give all of them in one currency"
        raise InvalidRequestError(message, parameter="prices")
    return {"prices": {name: by_name[key] for name, key in found.items()}}


def _to_charge(name: object, price: object, charge: str) -> dict[str, Any]:
    """Return what a study is charged by, of a price that may be written as a dictionary, as in a file of prices."""
    if isinstance(price, Mapping) and not isinstance(price, Price) and price:
        if strange := [key for key in price if key not in _FIELDS]:
            allowed = join_with_and([field.name for field in fields(Price)])
            message = f"the price of {name!r:.60} has {strange[0]!r:.60}, which is none of {allowed}"
            raise InvalidRequestError(message, parameter="prices")
        try:
            price = Price(**price)
        except InvalidRequestError as error:
            raise InvalidRequestError(f"the price of {name!r:.60}: {error}", parameter="prices") from None
    if not isinstance(price, Price):
        raise build_argument_error(f"prices[{name!r}]", price, _ALLOWED)
    if (value := getattr(price, charge)) is None:
        message = f"the price of {name!r:.60} says nothing of what this study sends; give {charge}="
        raise InvalidRequestError(message, parameter="prices")
    return {charge: value, "currency": price.currency}


def read_unit_prices(settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the price of each system for its amount, from the settings of a record."""
    prices = settings.get("prices", {})
    return {name: value for name, price in prices.items() for key, value in price.items() if key in _AMOUNTS}


def add_costs(
    summary: pd.DataFrame, table: pd.DataFrame, settings: Mapping[str, Any], text: str, places: Sequence[str]
) -> pd.DataFrame:
    """Return the summary with ``cost`` (of the rows with an output and a length), ``currency`` and the unit price.

    ``places`` are the columns of the languages in the table; in a summary of speech there is one, ``language``.
    """
    prices = read_unit_prices(settings)
    if not prices or (len(prices) > 1 and "system" not in summary.columns):  # one of several systems
        return summary
    first = next(iter(settings["prices"].values()))
    charge = next(name for name in _AMOUNTS if name in first)
    rows, sizes = _measure_sizes(table, charge, text)
    keys = [name for name in ("system", "condition", "voice") if name in summary.columns]
    by = [rows[name].astype(str) for name in (*keys, *places)]
    sums = sizes.groupby(by).sum(min_count=1)
    lines = summary[[*keys, *(name if name in summary.columns else "language" for name in places)]].astype(
        str
    )
    costed = sums.reindex(pd.MultiIndex.from_frame(lines), fill_value=0.0).to_numpy()
    systems = lines["system"] if "system" in keys else pd.Series(next(iter(prices)), lines.index)
    price = systems.map(prices).astype("float64")
    currency = pd.Series(first["currency"], lines.index, dtype="string").where(price.notna())
    further: dict[str, Any] = {
        "cost": costed * price / _AMOUNTS[charge][0],
        f"price_{charge}": price,
        "currency": currency,
    }
    return summary.assign(**further)


def _measure_sizes(table: pd.DataFrame, charge: str, text: str) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Return the rows with an output, and what each is charged for: seconds or characters, NaN where not known."""
    rows = table[table["status"].isin(["ok", "cached"])]
    sizes = rows["duration_s"] if charge == HOURS else rows[text].astype("string").str.len()
    return rows, sizes.astype("float64")


def list_cost_notes(table: pd.DataFrame, settings: Mapping[str, Any], text: str) -> list[str]:
    """Return which systems have no price, and how many rows have no length, of which the cost is not known."""
    prices = read_unit_prices(settings)
    if not prices or (len(prices) > 1 and "system" not in table.columns):
        return []
    charge = next(name for name in _AMOUNTS if name in next(iter(settings["prices"].values())))
    rows, sizes = _measure_sizes(table, charge, text)
    several = "system" in table.columns
    names = table["system"].astype(str).unique().tolist() if several else []
    notes = []
    if len(names) > 1 and (unpriced := [name for name in names if name not in prices]):
        words = "it has no cost, and no part in tests of cheaper systems that may be no worse"
        notes.append(f"There is no price of {join_names(unpriced)}: {words}.")
    lengths = sizes.notna().groupby(rows["system"].astype(str) if several else np.zeros(len(rows)))
    counts = lengths.agg(["sum", "size"]).itertuples()
    known = [(name, some, total) for name, some, total in counts if not several or name in prices]
    parts = [
        " ".join([*([quote_name(name)] if several else []), f"{some:,} of {total:,}"])
        for name, some, total in known
        if some < total
    ]
    what = "length (duration_s)" if charge == HOURS else "text"
    if parts and not any(some for _, some, _ in known):
        notes.append(f"No row with an output has a {what}, so there is no cost.")
    elif parts:
        notes.append(f"The cost is that of the rows with a {what}: {join_with_and(parts)}.")
    return notes


def _find_price_column(summary: pd.DataFrame) -> tuple[str, str]:
    """Return the column of the price of an amount, and what that is of; both empty without prices."""
    found = ((f"price_{name}", words) for name, (_, words) in _AMOUNTS.items())
    return next((one for one in found if one[0] in summary.columns), ("", ""))


def build_cost_views(summary: pd.DataFrame, first: Sequence[DisplayColumn] = ()) -> list[View]:
    """Return what each line of the summary cost, behind the columns ``first``; nothing without prices."""
    column, words = _find_price_column(summary)
    if not column:
        return []
    priced = summary[summary["currency"].notna()]
    currency = str(priced["currency"].iloc[0])
    if not first:
        is_whole = summary["common_rate"].equals(summary["error_rate"])
        outputs = build_count_column("outputs", "utterances_scored")
        rate = build_rate_column("error rate" if is_whole else "on the same clips", "common_rate")
        first = (*build_name_columns(summary), outputs, rate)
    money = [
        DisplayColumn(f"{head} ({currency})", partial(_format_money, name), figure=True)
        for head, name in (("this set", "cost"), (words, column))
    ]
    note = "The cost of the rows with an output, at the prices that were given; what failed is not counted."
    return [View.from_rows("Cost", [*first, *money], priced, note)]


def _format_money(name: str, row: Mapping[Any, Any]) -> str | None:
    if is_missing(value := row[name]):
        return None
    return f"{value:,.2f}" if value >= 1 or not value else f"{value:.2g}"


def count_failed_rows(summary: pd.DataFrame, table: pd.DataFrame, language: str) -> pd.Series[int]:
    """Return how many rows of each line of the summary have no output."""
    keys = [name for name in ("system", "condition", "voice") if name in summary.columns]
    failed = table.loc[table["status"].isin(["error", "skipped"]), [*keys, language]].astype(str)
    lines = summary[[*keys, "language"]].astype(str)
    counts = failed.groupby([*keys, language]).size().reindex(pd.MultiIndex.from_frame(lines), fill_value=0)
    return pd.Series(counts.to_numpy(), lines.index, dtype="Int64")


def list_trade_off_drawings(summary: pd.DataFrame) -> list[Drawing]:
    """Return the figure of the price, the errors and the time of systems, drawn of the table ``rates``."""
    column, words = _find_price_column(summary)
    known = summary[summary[column].notna() & summary["common_rate"].notna()] if column else summary[:0]
    if "system" not in known.columns or known["system"].nunique() < 2:
        return []
    start = choose_start_time_column(summary)
    options = {
        "price": column,
        "rate": "ranking_rate",
        "label": f"price of {words} ({known['currency'].iloc[0]})",
    }
    options |= {"time": start} if start in summary.columns else {}
    return [Drawing("Errors, price and time", "trade_offs", ("rates",), options)]
