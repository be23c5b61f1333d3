"""The timed segments of transcripts: one segment frame of many recordings, in memory or in files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from speechlab import segments as frames
from speechlab._arguments import build_argument_error, is_bool
from speechlab._brief import shorten_tracebacks
from speechlab._files import expand_user_path
from speechlab._frames import to_pandas_frame
from speechlab._traces import warn_user
from speechlab.batch._outcome import find_user_stacklevel
from speechlab.batch._plan.columns import build_frame
from speechlab.batch._store_options import StoreLike, use_store
from speechlab.batch._table.assemble import RUN_ATTRIBUTE
from speechlab.contract import VadMode
from speechlab.errors import InvalidRequestError, SegmentError, StoreError
from speechlab.tables import cell_to_text

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.segments import WriteResult
    from speechlab.store import RunRecord, Store

_Kind: TypeAlias = Literal["segments", "words"]
_SEGMENT_TYPES = {
    "file": "string",
    "start": "float64",
    "end": "float64",
    "text": "string",
    "position": "int64",
    "segment": "int64",
}
_FILE_FIELD = "{file}"
_MAX_REASONS = 3
# Key in the ``attrs`` of a segment frame: the reasons for missing segments by the position of the row.
FAULTS_ATTRIBUTE = "speechlab_faults"


@shorten_tracebacks
def to_segments(
    result: pd.DataFrame, store: StoreLike = None, *, prefix: str = "", audio: Any = None, words: bool = False
) -> pd.DataFrame:
    """Return the timed segments of transcripts made with ``vad="segments"``, as one segment frame.

    Args:
        result: The table that :func:`transcribe` returned, of pandas or polars, or some of its rows.
        store: The store of the batch; None for the user's own store.
        prefix: The prefix of the batch's columns.
        audio: Column of the recordings; None for the column that the run used, or ``audio`` if the run is unknown.
        words: Return the words of systems that give their times, which OpenAI's API and functions may: with ``word``
            and ``confidence`` (NaN if unknown) in place of ``text``, as :func:`speechlab.metrics.word_times` takes
            them.

    Returns:
        A segment frame of all recordings, see ``speechlab.segments``. It has ``file`` (path of the recording, or
        ``sha256:…`` for bytes and clips), ``start`` and ``end`` (seconds), ``text``, ``position`` (of the row in
        ``result``, from 0), ``row`` (index label of the row) and ``segment`` (number in the row, from 0). A recording
        that occurs in several rows has its segments once for each; ``position`` distinguishes them. A row whose reply
        has impossible times has no segments: a warning names it, and ``attrs["speechlab_faults"]`` has the reason by
        position.

    Raises:
        InvalidRequestError: The table has no column of keys or of recordings, the store has none of its transcripts,
            or the results are not transcripts.
        StoreError: The store cannot be read.
    """
    frame = to_pandas_frame(result)
    frame = result if frame is None else frame
    if not is_bool(words):
        raise build_argument_error("words", words, "True or False")
    kind: _Kind = "words" if words else "segments"
    table, faults = collect_segments(frame, store, prefix=prefix, audio=audio, kind=kind)
    if words:
        table = table.rename(columns={"text": "word"})
    elif not len(table) and not faults:
        _check_transcript_results(frame[f"{prefix}key"], store)
    if faults:
        warn_user(
            f"no {kind} of {len(faults)} rows: {format_reasons(faults.values())}",
            stacklevel=find_user_stacklevel(),
        )
        table.attrs[FAULTS_ATTRIBUTE] = faults
    return table


def _check_transcript_results(keys: pd.Series[Any], store: StoreLike) -> None:
    """Refuse results that are not transcripts, and warn about transcripts without segments."""
    with use_store(store) as open_store:
        results = open_store.get_many([key for key in keys.tolist() if isinstance(key, str)]).values()
    for stored in results:
        if stored.operation != "transcribe":
            message = f"the table is one of {stored.operation}; give what transcribe returned, and its prefix"
            raise InvalidRequestError(message, parameter="result")
    if results and not any(stored.request.get("vad") == VadMode.SEGMENTS for stored in results):
        message = (
            "the transcripts have no segments, as they were not asked for; give transcribe vad='segments'"
        )
        warn_user(message, stacklevel=find_user_stacklevel())


def collect_segments(
    result: pd.DataFrame, store: StoreLike, *, prefix: str, audio: Any, kind: _Kind = "segments"
) -> tuple[pd.DataFrame, dict[int, str]]:
    """Return the segment frame of :func:`to_segments`, and the reasons for rows without segments by position."""
    columns = getattr(result, "columns", ())
    column = f"{prefix}key"
    if column not in columns:
        message = f"the table has no column {column!r}; give what transcribe returned, and its prefix"
        raise InvalidRequestError(message, parameter="prefix")
    keys = [key if isinstance(key, str) else None for key in result[column].tolist()]
    with use_store(store) as open_store:
        results = open_store.get_many([key for key in keys if key is not None])
        recordings = audio
        if audio is None:
            recordings, run = "audio", result.attrs.get(RUN_ATTRIBUTE)
            with suppress(StoreError):  # of another store
                recordings = resolve_audio_column(open_store.run(run)) if isinstance(run, str) else "audio"
    statuses = result[f"{prefix}status"].tolist() if f"{prefix}status" in columns else []
    if not results and {"ok", "cached"}.intersection(statuses):
        message = (
            "the store has none of the table's transcripts; give the store that transcribe had, as store="
        )
        raise InvalidRequestError(message, parameter="store")
    if recordings not in columns:
        message = f"the table has no column {recordings!r} of recordings; name it with audio="
        raise InvalidRequestError(message, parameter="audio")
    pieces = {key: stored.response.get(kind) or () for key, stored in results.items()}
    if kind == "words":
        pieces = {key: [{**word, "text": word["word"]} for word in each] for key, each in pieces.items()}
    reasons = _find_segment_faults(pieces)
    rows: list[tuple[Any, ...]] = []
    faults: dict[int, str] = {}
    for position, (key, cell) in enumerate(zip(keys, result[recordings], strict=True)):
        if key is None or not pieces.get(key):
            continue
        name = cell_to_text(cell) or ""
        if key in reasons:
            faults[position] = f"{name}: the service sent times that cannot be right ({reasons[key]})"
            continue
        for number, piece in enumerate(pieces[key]):
            confidence = [piece.get("confidence")] if kind == "words" else []
            rows.append((name, piece["start"], piece["end"], piece["text"], position, number, *confidence))
    table = build_frame(rows, _SEGMENT_TYPES | ({"confidence": "float64"} if kind == "words" else {}))
    table.insert(5, "row", result.index.to_flat_index()[table["position"]])
    return frames.frame(table), faults


def _find_segment_faults(pieces: dict[str, Any]) -> dict[str, str]:
    """Return the faults in the segments of replies by key."""
    try:
        frames.frame([piece for each in pieces.values() for piece in each])
    except SegmentError:
        pass
    else:
        return {}
    reasons = {}
    for key, each in pieces.items():
        try:
            frames.frame(each)
        except SegmentError as error:
            reasons[key] = error.message.replace("row", "segment")
    return reasons


def format_reasons(reasons: Iterable[str]) -> str:
    """Return the first few reasons, for a warning."""
    each = list(reasons)
    more = f"; and {len(each) - _MAX_REASONS} more" if len(each) > _MAX_REASONS else ""
    return "; ".join(each[:_MAX_REASONS]) + more


def resolve_audio_column(run: RunRecord) -> Any:
    """Return the label of the column of a run's recordings; JSON has lists in place of tuples."""
    noted = run.manifest.get("parameters", {}).get("columns", {}).get("audio", "audio")
    return tuple(noted) if isinstance(noted, list) else noted


def write_segments(
    parts: Iterator[pd.DataFrame],
    store: StoreLike,
    path: str | os.PathLike[str],
    *,
    prefix: str,
    audio: Any,
    format: str | None = None,  # noqa: A002 - as everywhere
) -> list[WriteResult]:
    """Write the segments of a run's table, piece by piece; see :meth:`Run.write_segments`."""
    faults: list[str] = []
    with use_store(store) as open_store:
        tables = _iter_segment_tables(parts, open_store, prefix, audio, faults)
        if _FILE_FIELD not in str(path):
            written = [frames.write(tables, path, format)]
        else:
            written, names = [], set[str]()
            for table in tables:
                for _, recording in table.groupby("position", sort=False):
                    target = _choose_target_and_make_folder(str(path), recording["file"].iloc[0], names)
                    written.append(frames.write(recording, target, format))
    if faults:
        warn_user(
            f"no segments of {len(faults)} rows: {format_reasons(faults)}", stacklevel=find_user_stacklevel()
        )
    return written


def _iter_segment_tables(
    parts: Iterator[pd.DataFrame], store: Store, prefix: str, audio: Any, faults: list[str]
) -> Iterator[pd.DataFrame]:
    rows = 0
    for piece in parts:
        table, reasons = collect_segments(piece, store, prefix=prefix, audio=audio)
        faults += reasons.values()
        table["position"] += rows
        rows += len(piece)
        yield table


def _choose_target_and_make_folder(path: str, file: str, taken: set[str]) -> Path:
    """Return the file for a recording; recordings of one name, in several folders, get numbers."""
    stem = (Path(file).stem if not file.startswith("sha256:") else file[7:23]) or "segments"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    target = expand_user_path(path.replace(_FILE_FIELD, name))
    target.parent.mkdir(parents=True, exist_ok=True)
    return target
