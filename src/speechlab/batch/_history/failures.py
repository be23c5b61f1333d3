"""Reasons for failed rows, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._brief import briefly
from speechlab.batch._history.run import Run, load
from speechlab.batch._plan.source import as_frame
from speechlab.batch._table.failures import Failures

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._keeping import StoreLike


@briefly
def failures(result: Any, store: StoreLike = None, *, prefix: str = "") -> pd.DataFrame:
    """List the reasons for failed rows, the most frequent first.

    Errors that differ only in quoted values, paths and numbers are one reason.

    Args:
        result: A table that :func:`synthesize`, :func:`transcribe` or :func:`translate` returned, or a part of it;
            or a :class:`Run`.
        store: The store of the batch. It is needed for a table with ``columns="result"``, which has no statuses.
        prefix: The prefix of the batch's columns.

    Returns:
        One row for each reason: ``rows`` (number of rows), ``error_type``, ``http_status``, ``error`` (message of
        the first such row) and ``first`` (index label of that row).

    Raises:
        InvalidRequestError: The table has neither statuses nor the id of its run.
        StoreError: The run does not exist.

    Example:
        >>> rows = pd.DataFrame({"text": ["", "Hi.", " "], "status": ["error", "ok", "error"]})
        >>> rows["error_type"] = ["InvalidRequestError", None, "InvalidRequestError"]
        >>> rows["http_status"], rows["error"] = None, ["text is empty", None, "text is empty"]
        >>> failures(rows)[["rows", "error", "first"]]
           rows          error  first
        0     2  text is empty      0
    """
    frame = as_frame(result)
    if frame is not None and f"{prefix}status" in frame.columns and f"{prefix}error_type" in frame.columns:
        reasons = Failures(prefix)
        reasons.add(frame)
        return reasons.table()
    run = result if isinstance(result, Run) else load(result, store)
    reasons = Failures(run.manifest.get("prefix", ""))
    for part in run.parts():
        reasons.add(part)
    return reasons.table()
