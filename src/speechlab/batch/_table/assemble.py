"""Assembly of tables, the input's rows with typed columns of outcomes; and what is recorded with a run of them."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import is_hashable
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab._platform import find_installed_version
from speechlab._require import require
from speechlab.batch._outcome import Outcome
from speechlab.batch._plan.columns import (
    BOOKKEEPING,
    build_column,
    collect_result_columns,
    list_clashing_columns,
    list_earlier_bookkeeping,
    pad_label,
)
from speechlab.batch._plan.plan import check_plan
from speechlab.batch._store_options import use_store
from speechlab.contract import CONTRACT_VERSION
from speechlab.errors import InvalidRequestError, SpeechLabError

if TYPE_CHECKING:
    from speechlab.batch._plan.plan import Chunk, Plan
    from speechlab.batch._plan.source import TableSource
    from speechlab.batch._plan.steps import RowStep
    from speechlab.store import StoredResult

# Key of the run's id in a table's ``attrs``, and of the manifest in the metadata of an exported file.
RUN_ATTRIBUTE = "speechlab_run"
# Suffix, in the store, of a column of the input that has the name of a bookkeeping column.
_INPUT_SUFFIX = " (input)"


@shorten_tracebacks
def assemble(plan: Plan) -> pd.DataFrame:
    """Make the table of a plan from the results in the store, without a call.

    Use it after a stopped run, or in another program during a run.

    Args:
        plan: The plan.

    Returns:
        A table with the input's columns, index and order, and the result columns. The status of a row is ``cached``
        if the store has its result, ``error`` if its last attempt failed, and ``cancelled`` if it was never asked.

    Raises:
        InvalidRequestError: The table is an iterator, which can be read only once.
        StoreError: The store cannot be read.
    """
    check_plan(plan)
    if not plan.source.is_rereadable:
        message = "an iterator can be read only once; load the run instead: speechlab.batch.load(run)"
        raise InvalidRequestError(message, parameter="source")
    frames = []
    with use_store(plan.store) as store:
        for chunk in plan.iter_chunks(store):
            outcomes = dict.fromkeys(chunk.calls, Outcome("cancelled", error_text="not asked yet"))
            failed = store.failures(list(chunk.calls))
            outcomes |= {
                key: Outcome.from_earlier_failure(attempt, "error") for key, attempt in failed.items()
            }
            results = store.get_many(chunk.calls)
            outcomes |= {key: Outcome("cached", stored) for key, stored in results.items()}
            frames.append(assemble_chunk(chunk, plan.step, outcomes, plan.prefix))
    joined = join_frames(frames, type(plan.step), plan.prefix)
    return to_requested_form(joined, plan.source, plan.prefix, plan.columns)


def assemble_chunk(chunk: Chunk, step: RowStep, outcomes: dict[str, Outcome], prefix: str) -> pd.DataFrame:
    """Return rows with the result columns added, in place of the bookkeeping of an earlier step."""
    counted: set[str] = set()
    rows = [_build_row(row, step, outcomes, counted) for row in chunk.rows]
    columns = chunk.frame.columns
    made = collect_result_columns(step)
    if earlier := list_earlier_bookkeeping(columns, prefix):
        replaced = [name for name in earlier if name.removeprefix(prefix) in made]
        result = chunk.frame.drop(columns=[pad_label(name, columns) for name in replaced])
    else:
        taken = list_clashing_columns(columns, prefix)
        result = _rename_labels(
            chunk.frame.copy(),
            {pad_label(name, columns): pad_label(name + _INPUT_SUFFIX, columns) for name in taken},
        )
    for name, kind in made.items():
        column = build_column([row.get(name) for row in rows], kind, chunk.frame.index)
        result[pad_label(prefix + name, result.columns)] = column
    return result


def to_requested_form(table: pd.DataFrame, source: TableSource, prefix: str, columns: str) -> pd.DataFrame:
    """Return a joined table in the user's form: with the requested columns, and of polars if the input was."""
    booked = {prefix + name for name in BOOKKEEPING} if columns == "all" else set()
    if columns != "all":
        table = drop_bookkeeping(table, prefix)
    given: Any = source.polars
    if given is None:
        return table
    polars = require("polars")
    given = given.collect() if hasattr(given, "collect") else given
    # the input's columns are unchanged; a column of the bookkeeping is the result's, even if the input had its name
    inputs = [name for name in given.columns if name in table.columns and name not in booked]
    new = table[[name for name in table.columns if name not in inputs]]
    result: pd.DataFrame = given.select(inputs).hstack(polars.from_pandas(new.reset_index(drop=True)))
    return result


def drop_bookkeeping(frame: pd.DataFrame, prefix: str) -> pd.DataFrame:
    """Return rows without the bookkeeping. Columns of the input that were renamed for it get their names back."""
    columns = frame.columns
    booked = [prefix + name for name in BOOKKEEPING]
    left_out = {pad_label(name, columns) for name in booked}
    remaining = frame.iloc[:, [at for at, name in enumerate(columns.tolist()) if name not in left_out]]
    return _rename_labels(
        remaining, {pad_label(name + _INPUT_SUFFIX, columns): pad_label(name, columns) for name in booked}
    )


def _rename_labels(frame: pd.DataFrame, names: Mapping[Any, Any]) -> pd.DataFrame:
    columns = frame.columns
    if not any(name in columns for name in names):
        return frame
    labels = [names.get(name, name) for name in columns.tolist()]
    several = columns.nlevels > 1
    frame.columns = (
        pd.MultiIndex.from_tuples(labels, names=columns.names)
        if several
        else pd.Index(labels, name=columns.name, tupleize_cols=False)
    )
    return frame


def _build_row(
    row: str | SpeechLabError, step: RowStep, outcomes: dict[str, Outcome], counted: set[str]
) -> dict[str, Any]:
    outcome = Outcome("error", error=row) if isinstance(row, SpeechLabError) else outcomes[row]
    # the first of several equal rows has the cost
    bears = Outcome(outcome.status) if row in counted else outcome
    cells = {
        "status": outcome.status,
        "attempts": bears.attempts,
        "latency_s": outcome.latency_s,
        "first_byte_s": outcome.first_byte_s,
        "answered_at": _format_time(outcome.failed_at if outcome.stored is None else outcome.stored.created),
        "usage_characters": bears.characters,
        "usage_audio_s": bears.audio_s,
        "usage_tokens": bears.tokens,
    }
    if isinstance(row, str):
        counted.add(row)
        cells["key"] = row
    if (error := outcome.error) is not None:
        status = getattr(error, "status", None) or None
        return {**cells, "error_type": type(error).__name__, "error": str(error), "http_status": status}
    if outcome.error_text is not None:
        facts = {"error_type": outcome.error_type, "http_status": outcome.http_status}
        return {**cells, **facts, "error": outcome.error_text}
    values = step.to_cells(outcome.stored) if outcome.stored is not None else {}
    return {**cells, **values}


def _format_time(moment: float | None) -> str | None:
    """Return a time as text in UTC, to the millisecond."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def join_frames(
    frames: Sequence[pd.DataFrame], step: type[RowStep], prefix: str, *, from_files: bool = False
) -> pd.DataFrame:
    """Join the pieces of a table to one with the types of a table that was never divided."""
    if len(frames) == 1 and not from_files:
        return frames[0]
    frames = [_open_odd_categories(frame) for frame in frames]
    joined = _concatenate_frames(frames) if frames else pd.DataFrame()
    added = {
        pad_label(prefix + name, joined.columns): kind for name, kind in collect_result_columns(step).items()
    }
    for name, kind in added.items():
        # pieces differ in their categories
        if not frames or (kind in {"status", "category"} and name in joined.columns):
            values = [value for frame in frames for value in frame[name].tolist()]
            joined[name] = build_column(values, kind, joined.index)
    for name in joined.columns if len(frames) > 1 else ():
        if name in added:
            continue
        if _has_mergeable_categories(name, frames):
            columns = pd.api.types.union_categoricals([frame[name] for frame in frames], ignore_order=True)
            joined[name] = pd.Series(columns, index=joined.index)
    return joined


def _open_odd_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with cells in place of categories that pandas cannot compare: a tuple before other values."""
    odd = [at for at, kind in enumerate(frame.dtypes) if not is_hashable(kind)]
    opened = frame.copy(deep=False) if odd else frame
    for at in odd:
        opened.isetitem(at, frame.iloc[:, at].astype(object).array)
    return opened


def _concatenate_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the pieces without ``attrs``, which pandas would compare and which may have arrays."""
    if len(frames) == 1:
        return frames[0]
    attrs = frames[0].attrs
    bare = [frame.copy(deep=False) for frame in frames]
    for frame in bare:
        frame.attrs = {}
    joined = pd.concat(bare)
    joined.attrs = attrs
    return joined


def _has_mergeable_categories(name: Any, frames: Sequence[pd.DataFrame]) -> bool:
    """Return whether a column has categories of one type in all pieces."""
    kinds = [frame[name].dtype if name in frame.columns else None for frame in frames]
    if all(kind == kinds[0] for kind in kinds):
        return False  # pandas has joined them
    of = {kind.categories.dtype if isinstance(kind, pd.CategoricalDtype) else None for kind in kinds}
    return len(of) == 1 and None not in of


class ResultDigest:
    """The SHA-256 of the results of rows, in their order."""

    def __init__(self, step: type[RowStep]) -> None:
        self._evidence_of = step.to_digest_values
        self._sha = hashlib.sha256()

    def add(self, row: str, stored: StoredResult | None) -> None:
        """Add a row."""
        evidence = None if stored is None else self._evidence_of(stored)
        self._sha.update(orjson.dumps([row, evidence], option=orjson.OPT_SORT_KEYS))

    def hexdigest(self) -> str:
        """Return the digest of the rows so far, in lower-case hexadecimal."""
        return self._sha.hexdigest()


def format_row_key(key: str | None, error: object) -> str:
    """Text of a row in digests: its key, or the error of an invalid row."""
    return key if key is not None else f"error: {error}"


def collect_environment() -> dict[str, Any]:
    """Return the versions that a run depends on, without facts about the user or the machine."""
    return {
        "contract": CONTRACT_VERSION,
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": {
            name: find_installed_version(name) for name in ("speechlab", "pandas", "pyarrow", "numpy")
        },
    }
