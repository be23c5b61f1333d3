"""The plan of a batch: the calls that a table needs, and what they may cost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from speechlab._arguments import describe_missing_columns, is_number
from speechlab._brief import shorten_tracebacks
from speechlab.batch._plan.columns import (
    check_unique_columns,
    list_clashing_columns,
    list_earlier_bookkeeping,
)
from speechlab.batch._store_options import KeepingOptions, StoreLike, use_store
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.remote import PREFETCHED_ROWS, prefetch
from speechlab.store import Store, StoredResult

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._outcome import PlannedCall
    from speechlab.batch._plan.source import TableSource
    from speechlab.batch._plan.steps import RowStep


# Seconds of speech per character (slow Japanese), an estimate until the run has synthesized speech.
S_PER_CHARACTER = 0.15
# Tokens read and written per character, an estimate until the run has translations.
TOKENS_PER_CHARACTER = 2.0

# The price of one unit of ``calls``, ``characters``, ``audio_s`` (seconds) and ``tokens``, in any currency.
Prices = Mapping[str, float]


class Amounts(NamedTuple):
    """Amounts that a service may charge for."""

    calls: float = 0
    characters: float = 0
    audio_s: float = 0.0
    tokens: float = 0

    def compute_sum(self, other: Amounts, times: int = 1) -> Amounts:
        """Add other amounts ``times`` times; -1 subtracts them."""
        return Amounts(*(amount + times * more for amount, more in zip(self, other, strict=True)))

    def compute_cost(self, prices: Prices | None) -> float:
        """Return the cost of the amounts; 0 without prices."""
        return float(sum(price * getattr(self, name) for name, price in (prices or {}).items()))


def check_prices(prices: object, parameter: str = "prices") -> None:
    """Refuse invalid prices."""
    units = ", ".join(Amounts._fields)
    allowed = f"prices of one unit, such as {{'characters': 15 / 1_000_000}}; the units are {units}"
    if not isinstance(prices, Mapping) or not prices:
        raise InvalidRequestError(f"prices are {prices!r:.60}; give {allowed}", parameter=parameter)
    for name, price in prices.items():
        if name not in Amounts._fields or not is_number(price) or not isfinite(price) or price < 0:
            message = f"{name!r:.40}: {price!r:.40} is not a price; give {allowed}"
            raise InvalidRequestError(message, parameter=parameter)


def estimate_amounts(
    call: PlannedCall,
    s_per_character: float = S_PER_CHARACTER,
    tokens_per_character: float = TOKENS_PER_CHARACTER,
) -> Amounts:
    """Estimate the amounts of a call. Duration of speech and number of tokens are unknown before the reply."""
    what = call.operation.name
    seconds = call.characters * s_per_character if what == "synthesize" else call.audio_s
    tokens = call.characters * tokens_per_character if what == "translate" else 0
    return Amounts(1, call.characters, seconds, tokens)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The calls for a piece of the table."""

    frame: pd.DataFrame
    calls: dict[str, PlannedCall]
    rows: list[str | SpeechLabError]
    found: dict[str, StoredResult] = field(repr=False)

    @property
    def pending(self) -> list[PlannedCall]:
        """The calls to make."""
        return [call for key, call in self.calls.items() if key not in self.found]

    def summarize(self, prices: Prices | None = None) -> dict[str, float]:
        """Count the calls and amounts of a run; see :meth:`Plan.summary`."""
        pending = self.pending
        invalid = sum(isinstance(row, SpeechLabError) for row in self.rows)
        return {
            "rows": len(self.rows),
            "invalid": invalid,
            "calls": len(pending),
            "cached": len(self.calls) - len(pending),
            "duplicates": len(self.rows) - invalid - len(self.calls),
            "characters": sum(call.characters for call in pending),
            "audio_s": round(sum(call.audio_s for call in pending), 3),
            **(
                {}
                if prices is None
                else {"cost": sum(estimate_amounts(call).compute_cost(prices) for call in pending)}
            ),
        }


@dataclass(frozen=True)
class Plan:
    """The calls to make for a table. A plan has no client; :func:`run` takes one."""

    step: RowStep
    source: TableSource
    store: StoreLike
    prefix: str
    columns: str  # "all", or "result" to leave out the bookkeeping
    service: str  # its identity, without a credential
    chunk_rows: int
    _whole: list[Chunk] = field(default_factory=list, repr=False)

    def iter_chunks(self, store: Store) -> Iterator[Chunk]:
        """Plan the table piece by piece. A table in memory is one piece and is planned once."""
        if self._whole:
            yield from self._whole
            return
        for frame in self.source.iter_pieces(self.chunk_rows, self.step.texts):
            check_columns(frame, self)
            yield build_chunk(frame, self.step, store)

    @shorten_tracebacks
    def summary(self, prices: Prices | None = None) -> dict[str, float]:
        """Count the calls and amounts that a run of the plan needs.

        This reads a file once. Equal calls in distant parts of a file count twice here, but are made once.

        Args:
            prices: The price of one unit of each amount, as in a :class:`Budget`, to estimate the ``cost``. The
                estimate for each character is 0.15 seconds of speech, or 2 tokens of a translation.

        Returns:
            ``rows``, ``invalid`` rows, ``calls`` to make, ``cached`` results, ``duplicates`` among the rows,
            ``characters`` and ``audio_s`` (seconds of recordings) to send, and with prices ``cost``.

        Raises:
            InvalidRequestError: The table is an iterator, which can be read only once, or a price is invalid.
        """
        if prices is not None:
            check_prices(prices)
        if not self.source.is_rereadable:
            message = (
                "an iterator can be read only once; run the plan, or give a file or a list of DataFrames"
            )
            raise InvalidRequestError(message, parameter="source")
        totals: dict[str, float] = {}
        with use_store(self.store) as store:
            for chunk in self.iter_chunks(store):
                for name, count in chunk.summarize(prices).items():
                    totals[name] = totals.get(name, 0) + count
        return totals

    def _get_only_chunk(self) -> Chunk:
        if not self._whole:
            message = (
                "only the plan of a table in memory knows all of its rows; a file is planned while it is read"
            )
            raise InvalidRequestError(message, parameter="source")
        return self._whole[0]

    @property
    def calls(self) -> dict[str, PlannedCall]:
        """Calls by key, for a table in memory."""
        return self._get_only_chunk().calls

    @property
    def rows(self) -> list[str | SpeechLabError]:
        """For each row the key of its call or its error, for a table in memory."""
        return self._get_only_chunk().rows

    def __repr__(self) -> str:
        what = (
            f"{len(self.rows)} rows, {len(self._get_only_chunk().pending)} calls"
            if self._whole
            else "not read yet"
        )
        return f"Plan({self.step.operation}: {what})"


def check_plan(plan: object) -> Plan:
    """Refuse a value that is not a plan."""
    if isinstance(plan, Plan):
        return plan
    message = f"plan is {plan!r}; give what sl.batch.plan_synthesis and its like return"
    raise InvalidRequestError(message, parameter="plan")


def build_plan(
    source: TableSource,
    step: RowStep,
    keeping: KeepingOptions,
    open_store: Store,
    service: str,
    advance: Callable[[], object],
) -> Plan:
    """Plan the calls for a table. A table in memory is planned at once, any other while it is read."""
    store = keeping["store"]
    location = store if isinstance(store, Store) or store is None else os.fspath(store)
    plan = Plan(step, source, location, keeping["prefix"], keeping["columns"], service, keeping["chunk_rows"])
    if source.whole is not None:
        check_columns(source.whole, plan)
        plan._whole.append(build_chunk(source.whole, step, open_store, advance))  # noqa: SLF001 - only this function makes plans
    return plan


def check_columns(frame: pd.DataFrame, plan: Plan) -> None:
    """Refuse a table that lacks columns, or has columns that the results would overwrite."""
    step, prefix = plan.step, plan.prefix
    absent = [name for name in step.needs if name not in frame.columns]
    if absent:
        raise InvalidRequestError(
            describe_missing_columns(frame.columns, *absent, frame=frame, arguments=("audio", "text")),
            parameter=str(absent[0])[:60],
        )
    check_unique_columns(frame)
    for name in step.needs:
        if frame[name].ndim > 1:  # a part of the labels of several columns
            labels = ", ".join(repr(label) for label in frame.columns.tolist() if label[0] == name)
            message = f"{name!r} is a part of the names of several columns; give the whole of one: {labels}"
            raise InvalidRequestError(message, parameter=str(name)[:60])
    earlier = list_earlier_bookkeeping(frame.columns, prefix)
    names = [prefix + name for name in step.columns]
    overwritten = [name for name in names if name in frame.columns and name not in earlier]
    booked = list_clashing_columns(frame.columns, prefix) if plan.columns == "all" else []
    if overwritten or booked:
        old = overwritten + booked
        remedies = ["give the columns of this step a prefix, for example prefix='second_'"]
        if not overwritten:
            remedies.append("leave them out with columns='result'")
        if not set(old) & set(step.needs):
            remedies.append(f"drop the old ones: table.drop(columns={old!r})")
        message = f"the table already has {', '.join(map(repr, old))}; {', or '.join(remedies)}"
        raise InvalidRequestError(message, parameter="prefix")


def build_chunk(
    frame: pd.DataFrame, step: RowStep, store: Store, advance: Callable[[], object] = lambda: None
) -> Chunk:
    """Plan the calls for some rows, and look up which results the store has."""
    calls: dict[str, PlannedCall] = {}
    rows: list[str | SpeechLabError] = []
    names = list(dict.fromkeys(step.needs))
    for number, cells in enumerate(zip(*(frame[name].tolist() for name in names), strict=True)):
        if step.works_on == "audio" and number % PREFETCHED_ROWS == 0:
            prefetch(frame[names[0]].iloc[number : number + PREFETCHED_ROWS])
        try:
            call = step.build_call(dict(zip(names, cells, strict=True)))
        except SpeechLabError as error:
            rows.append(error)
        else:
            calls.setdefault(call.key, call)
            rows.append(call.key)
        advance()
    return Chunk(frame, calls, rows, store.get_many(calls))
