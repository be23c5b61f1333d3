"""Differences between the results of two runs, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab._brief import briefly
from speechlab.batch._history.run import load
from speechlab.batch._plan.columns import make_column
from speechlab.batch._plan.steps import STEPS
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._history.run import Run, RunLike
    from speechlab.batch._keeping import StoreLike

_DONE = ("ok", "cached")
_COLUMNS = {"change": "category", "column": "string", "a": "string", "b": "string"}


@briefly
def diff(run_a: RunLike, run_b: RunLike, store: StoreLike = None) -> pd.DataFrame:
    """List the differences between the results of two runs.

    Rows are matched by their index label, and rows with equal labels by their order. The columns of the bookkeeping
    (``ok`` or ``cached``, times, attempts) are not compared.

    Args:
        run_a: The earlier run, in any form that :func:`load` takes.
        run_b: The later run, of the same operation.
        store: The store of both runs; None for the user's own store, or if the runs are two folders.

    Returns:
        One row for each difference: ``row`` (index label), ``change`` (``added``, ``removed`` or ``changed``),
        ``column``, and the values ``a`` and ``b`` as text.

    Raises:
        InvalidRequestError: The runs are of different operations.
        StoreError: A run does not exist, or has no table.
    """
    import pandas as pd

    one, other = load(run_a, store), load(run_b, store)
    if one.record.operation != other.record.operation:
        message = (
            f"{one.id} is a run of {one.record.operation} and {other.id} of {other.record.operation}; "
            "compare runs of the same operation"
        )
        raise InvalidRequestError(message, parameter="run_b")
    left, right = _comparable(one), _comparable(other)
    lines: list[tuple[Any, ...]] = [
        (label[0], "removed", None, None, None) for label in left if label not in right
    ]
    lines += [(label[0], "added", None, None, None) for label in right if label not in left]
    for label, values in left.items():
        for name, before in values.items():
            after = right[label][name] if label in right else before
            if before != after:
                lines.append((label[0], "changed", name, before, after))
    cells = list(zip(*lines, strict=True)) or [()] * 5
    index = pd.RangeIndex(len(lines))
    made: dict[str, Any] = {"row": pd.Series(list(cells[0]), index=index, dtype=_label_type(one, other))}
    for (column, kind), told in zip(_COLUMNS.items(), cells[1:], strict=True):
        made[column] = make_column(list(told), kind, index)
    return pd.DataFrame(made)


def _label_type(*runs: Run) -> Any:
    """The type of index labels, if the runs agree on it."""
    kinds = {next(run.parts()).index.dtype for run in runs}
    return kinds.pop() if len(kinds) == 1 else "object"


def _comparable(run: Run) -> dict[tuple[Any, int], dict[str, str | None]]:
    seen: dict[Any, int] = {}
    rows: dict[tuple[Any, int], dict[str, str | None]] = {}
    names = ("status", *STEPS[run.record.operation].content, "error")
    prefix = run.manifest.get("prefix", "")
    for frame in run.parts():
        columns = [frame[prefix + name].tolist() for name in names]
        for label, *cells in zip(frame.index, *columns, strict=True):
            count = seen[label] = seen.get(label, -1) + 1
            values = dict(zip(names, map(_text, cells), strict=True))
            values["status"] = "done" if values["status"] in _DONE else values["status"]
            if values.get("audio"):
                values["audio"] = Path(str(values["audio"])).name
            rows[label, count] = values
    return rows


def _text(value: object) -> str | None:
    return None if is_missing(value) else str(value)
