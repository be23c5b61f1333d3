"""The plan of a batch: the calls that a table needs, before any is made."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from speechlab._arguments import no_column
from speechlab.batch._keeping import CHUNK_ROWS, KeepingOptions, StoreLike, opened
from speechlab.batch._plan.columns import result_columns
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from speechlab.batch._plan.rows import PlannedCall, RowStep
    from speechlab.batch._plan.source import TableSource
    from speechlab.store import Stored


@dataclass(frozen=True, slots=True)
class Chunk:
    """The calls for a piece of the table.

    Attributes:
        frame: The rows.
        calls: Calls by key, each once however many rows ask it, in the order of the rows.
        rows: For each row its key, or the error that keeps it from being asked.
        found: What the store can answer, by key.
    """

    frame: pd.DataFrame
    calls: dict[str, PlannedCall]
    rows: list[str | SpeechLabError]
    found: dict[str, Stored] = field(default_factory=dict, repr=False)

    @property
    def pending(self) -> list[PlannedCall]:
        """The calls to make."""
        return [call for key, call in self.calls.items() if key not in self.found]

    def summary(self) -> dict[str, float]:
        """Count what running it will take; see :meth:`Plan.summary`."""
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
        }


@dataclass(frozen=True)
class Plan:
    """The calls to make for a table. It holds no client; running it takes one.

    Attributes:
        step: The operation with its parameters.
        source: The table.
        store: Where results are kept and looked up.
        prefix: What goes before the names of the new columns.
        service: Identity of the service, never a credential.
        chunk_rows: Rows of a file or stream that are in memory at once.
    """

    step: RowStep
    source: TableSource
    store: StoreLike
    prefix: str = ""
    service: str = ""
    chunk_rows: int = CHUNK_ROWS
    _whole: list[Chunk] = field(default_factory=list, repr=False)

    def chunks(self, store: Store) -> Iterator[Chunk]:
        """Plan the table piece by piece; one that is in memory is planned once, and whole."""
        if self._whole:
            yield from self._whole
            return
        for frame in self.source.pieces(self.chunk_rows, self.step.texts):
            check_columns(frame, self.step, self.prefix)
            yield make_chunk(frame, self.step, store)

    def summary(self) -> dict[str, float]:
        """Count what running the plan will take.

        A file is read once for this. Calls that are the same in distant parts of a file count twice here, and
        are made once.

        Returns:
            ``rows``, ``invalid`` rows, ``calls`` to make, ``cached`` results, ``duplicates`` among the rows, and
            ``characters`` and ``audio_s`` (seconds of recordings) to send.

        Raises:
            InvalidRequestError: The table comes from an iterator, which can be read only once.
        """
        if not self.source.again:
            message = (
                "an iterator can be read only once; run the plan, or give a file or a list of DataFrames"
            )
            raise InvalidRequestError(message, parameter="source")
        totals: dict[str, float] = {}
        with opened(self.store) as store:
            for chunk in self.chunks(store):
                for name, count in chunk.summary().items():
                    totals[name] = totals.get(name, 0) + count
        return totals

    def _one(self) -> Chunk:
        if not self._whole:
            message = (
                "only the plan of a table in memory knows all of its rows; a file is planned while it is read"
            )
            raise InvalidRequestError(message, parameter="source")
        return self._whole[0]

    @property
    def calls(self) -> dict[str, PlannedCall]:
        """Calls by key, for a table in memory."""
        return self._one().calls

    @property
    def rows(self) -> list[str | SpeechLabError]:
        """For each row its key or its error, for a table in memory."""
        return self._one().rows

    @property
    def cached(self) -> frozenset[str]:
        """Keys that the store can answer, for a table in memory."""
        return frozenset(self._one().found)

    def __repr__(self) -> str:
        what = f"{len(self.rows)} rows, {len(self._one().pending)} calls" if self._whole else "not read yet"
        return f"Plan({self.step.operation}: {what})"


def check_plan(plan: object) -> Plan:
    """Refuse what is no plan.

    Raises:
        InvalidRequestError: It is none.
    """
    if isinstance(plan, Plan):
        return plan
    message = f"plan is {plan!r}; give what sl.batch.plan_synthesis and its like return"
    raise InvalidRequestError(message, parameter="plan")


def make_plan(source: TableSource, step: RowStep, keeping: KeepingOptions, *, service: str) -> Plan:
    """Plan the calls for a table; one in memory is planned now, others while they are read.

    Raises:
        InvalidRequestError: The table lacks a column. A bad row is no reason to raise; it becomes an error row.
    """
    store = keeping["store"]
    kept = store if isinstance(store, Store) or store is None else os.fspath(store)
    plan = Plan(step, source, kept, keeping["prefix"], service, keeping["chunk_rows"])
    if source.whole is not None:
        check_columns(source.whole, step, keeping["prefix"])
        with opened(store) as open_store:
            plan._whole.append(make_chunk(source.whole, step, open_store))  # noqa: SLF001 - its only maker
    return plan


def check_columns(frame: pd.DataFrame, step: RowStep, prefix: str) -> None:
    """Refuse a table that lacks columns, or has some that would be overwritten.

    Raises:
        InvalidRequestError: Which.
    """
    missing = [name for name in step.needs if name not in frame.columns]
    if missing:
        raise InvalidRequestError(no_column(frame.columns, *missing), parameter=missing[0])
    if not frame.columns.is_unique:
        twice = sorted(map(repr, frame.columns[frame.columns.duplicated()]))
        raise InvalidRequestError(f"the table has several columns named {', '.join(twice)}; rename them")
    taken = [prefix + name for name in result_columns(step) if prefix + name in frame.columns]
    if taken:
        message = (
            f"the table already has the column {', '.join(map(repr, taken))}; give the new columns a prefix, "
            "for example prefix='asr_', or drop the old ones"
        )
        raise InvalidRequestError(message, parameter="prefix")


def make_chunk(frame: pd.DataFrame, step: RowStep, store: Store) -> Chunk:
    """Plan the calls for some rows, and look up which results the store has."""
    calls: dict[str, PlannedCall] = {}
    rows: list[str | SpeechLabError] = []
    for record in _records(frame, step):
        try:
            call = step.call(record)
        except SpeechLabError as error:
            rows.append(error)
        else:
            calls.setdefault(call.key, call)
            rows.append(call.key)
    return Chunk(frame, calls, rows, store.get_many(calls))


def _records(frame: pd.DataFrame, step: RowStep) -> Iterator[dict[str, Any]]:
    names = list(dict.fromkeys(step.needs))
    for cells in zip(*(frame[name].tolist() for name in names), strict=True):
        yield dict(zip(names, cells, strict=True))
