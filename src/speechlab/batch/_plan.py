"""The plan: which requests a table needs, before any of them is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from speechlab.errors import InvalidRequestError, SpeechLabError

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._calls import Call, Step
    from speechlab.store import Store

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a table.

    Attributes:
        step: The operation.
        calls: Requests by key, each once however many rows ask it, in the order of the rows.
        rows: For each row its key, or the error that keeps it from being asked.
        cached: Keys that the store can answer.
    """

    step: Step
    calls: dict[str, Call]
    rows: list[str | SpeechLabError]
    cached: frozenset[str] = field(default=frozenset())

    def summary(self) -> dict[str, int]:
        """Count what running the plan will take.

        Returns:
            ``rows``, ``invalid`` rows, ``calls`` to make, ``cached`` requests, ``duplicates`` among the rows, and
            ``characters`` and ``audio_bytes`` to send.
        """
        pending = [call for key, call in self.calls.items() if key not in self.cached]
        invalid = sum(isinstance(row, SpeechLabError) for row in self.rows)
        return {
            "rows": len(self.rows),
            "invalid": invalid,
            "calls": len(pending),
            "cached": len(self.calls) - len(pending),
            "duplicates": len(self.rows) - invalid - len(self.calls),
            "characters": sum(call.characters for call in pending),
            "audio_bytes": sum(call.audio_bytes for call in pending),
        }


def make_plan(frame: pd.DataFrame, step: Step, store: Store) -> Plan:
    """Build the requests of a table, and look up which of them are answered already.

    Raises:
        InvalidRequestError: The table lacks a column. A bad row is no reason to raise; it becomes an error row.
    """
    missing = [name for name in step.needs if name not in frame.columns]
    if missing:
        have = ", ".join(map(repr, frame.columns)) or "none"
        message = f"the table has no column {', '.join(map(repr, missing))}; it has {have}"
        raise InvalidRequestError(message, parameter=missing[0])
    calls: dict[str, Call] = {}
    rows: list[str | SpeechLabError] = []
    for record in frame.to_dict("records"):
        try:
            call = step.call({str(name): value for name, value in record.items()})
        except SpeechLabError as error:
            rows.append(error)
        else:
            calls.setdefault(call.key, call)
            rows.append(call.key)
    return Plan(step, calls, rows, frozenset(key for key in calls if store.get(key) is not None))
