"""The timed pieces of transcripts: one segment frame of many recordings, in memory or in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab import segments as frames
from speechlab.batch._keeping import opened
from speechlab.batch._plan.columns import make_column
from speechlab.batch._table.record import RUN_ATTRIBUTE, stand_in
from speechlab.errors import InvalidRequestError, SegmentError, StoreError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import pandas as pd

    from speechlab.batch._keeping import StoreLike
    from speechlab.segments import Written
    from speechlab.store import Store

_FIELD = "{file}"


def segments(
    result: pd.DataFrame, store: StoreLike = None, *, prefix: str = "", audio: str | None = None
) -> pd.DataFrame:
    """Return the timed pieces of transcripts that were made with ``vad="segments"``, as one segment frame.

    Args:
        result: What :func:`transcribe` returned, or some of its rows.
        store: The store that was used.
        prefix: The prefix that was used.
        audio: Column of the recordings; None for the one that the run was given, or else ``audio``.

    Returns:
        A segment frame of all recordings, see ``speechlab.segments``: ``file`` (the path; ``sha256:…`` of a recording
        that was bytes or a clip), ``start``, ``end``, ``text``; and ``position`` (of its row in ``result``), ``row``
        (that row's index label) and ``segment`` (its number, from 0). A recording that stands in several rows has
        its segments several times, which ``position`` tells apart.

    Raises:
        InvalidRequestError: The table has no column of keys, or none of recordings.
        SegmentError: The service sent times that cannot be right; the text names the recording.
        StoreError: The store cannot be read.
    """
    import pandas as pd

    columns = getattr(result, "columns", ())
    column = f"{prefix}key"
    if column not in columns:
        message = f"the table has no column {column!r}; give what transcribe returned, and its prefix"
        raise InvalidRequestError(message, parameter="prefix")
    keys = [key if isinstance(key, str) else None for key in result[column].tolist()]
    with opened(store) as open_store:
        found = open_store.get_many([key for key in keys if key is not None])
        recordings = audio or _recordings(result, open_store)
    if recordings not in columns:
        message = f"the table has no column {recordings!r} of recordings; name it with audio="
        raise InvalidRequestError(message, parameter="audio")
    rows: list[tuple[Any, ...]] = []
    for position, (label, key, cell) in enumerate(zip(result.index, keys, result[recordings], strict=True)):
        pieces = found[key].response.get("segments") or () if key in found else ()
        name = stand_in(cell) or "" if pieces else ""
        for number, piece in enumerate(pieces):
            rows.append((name, piece["start"], piece["end"], piece["text"], position, label, number))
    names = ("file", "start", "end", "text", "position", "row", "segment")
    kinds = ("string", "float64", "float64", "string", "int64", "row", "int64")
    empty = pd.RangeIndex(len(rows))
    made: dict[str, Any] = {}
    for at, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        values = [row[at] for row in rows]
        if kind == "row":
            made[name] = pd.Series(values, index=empty, dtype=result.index.dtype)
        else:
            made[name] = make_column(values, kind, empty)
    try:
        return frames.frame(pd.DataFrame(made))
    except SegmentError as error:
        file = f" of {rows[error.rows[0]][0]!r}" if error.rows else ""
        message = f"a segment{file} cannot be right: {error.message}; leave its row out to have the others"
        raise SegmentError(message, column=error.column, rows=error.rows) from error


def _recordings(result: pd.DataFrame, store: Store) -> str:
    """The column that the run was given, as its manifest says."""
    run = result.attrs.get(RUN_ATTRIBUTE)
    if isinstance(run, str):
        try:
            settings = store.run(run).manifest.get("parameters", {})
        except StoreError:  # another store
            return "audio"
        return str(settings.get("columns", {}).get("audio", "audio"))
    return "audio"


def write_segments(
    parts: Iterator[pd.DataFrame],
    store: StoreLike,
    path: str | os.PathLike[str],
    *,
    prefix: str,
    audio: str,
    format: str | None = None,  # noqa: A002 - as everywhere
) -> list[Written]:
    """Write the segments of a run's table, piece by piece; see :meth:`Run.write_segments`."""
    with opened(store) as open_store:
        tables = _tables(parts, open_store, prefix, audio)
        if _FIELD not in str(path):
            return [frames.write(tables, path, format)]
        written, taken = [], set[str]()
        for table in tables:
            for _, part in table.groupby("position", sort=False):
                written.append(frames.write(part, _target(str(path), part["file"].iloc[0], taken), format))
        return written


def _tables(parts: Iterator[pd.DataFrame], store: Store, prefix: str, audio: str) -> Iterator[pd.DataFrame]:
    done = 0
    for part in parts:
        table = segments(part, store, prefix=prefix, audio=audio)
        table["position"] += done
        done += len(part)
        yield table


def _target(path: str, file: str, taken: set[str]) -> Path:
    """The file for a recording; recordings of one name, in several folders, get numbers."""
    stem = (Path(file).stem if not file.startswith("sha256:") else file[7:23]) or "segments"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    target = Path(path.replace(_FIELD, name))
    target.parent.mkdir(parents=True, exist_ok=True)
    return target
