"""Long recordings: cut at silences, transcribed piece by piece, and joined on the time axis of the recording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack

from speechlab._arguments import build_argument_error, describe_missing_columns, is_number
from speechlab._pandas import pd
from speechlab._traces import warn_user
from speechlab.audio import cut_at_silences
from speechlab.batch._options import CallingOptions, TranscriptionOptions, WaitingOptions, expose_options
from speechlab.batch._outcome import find_user_stacklevel, suppress_failure_warnings
from speechlab.batch._plan.columns import check_unique_columns
from speechlab.batch._plan.parameters import check_recording_cell
from speechlab.batch._plan.source import open_source
from speechlab.batch._plan.steps import TranscriptionStep
from speechlab.batch._process import plan_table, run_plan
from speechlab.batch._store_options import CHUNK_ROWS, use_store
from speechlab.batch._table.timed import FAULTS_ATTRIBUTE, collect_segments, format_reasons
from speechlab.errors import AudioDecodeError, AudioError, InvalidRequestError
from speechlab.segments import doubts
from speechlab.segments import frame as segment_frame
from speechlab.tables import cell_to_text

if TYPE_CHECKING:
    from speechlab.batch._history import Run
    from speechlab.batch._plan.source import Table
    from speechlab.client import Client
    from speechlab.store import Store

# Default length of a piece in seconds. It is below the limits of services (10 MB of audio at 16 kHz; the
# embedded service accepts 48 MB) and above the 30-second window of recognizers. A failed call costs five
# minutes of audio.
PIECE_S = 300.0
# Pieces in memory: as many as the default number of concurrent calls.
_MAX_PIECES = 8
_SOUND_COLUMN = "_sound"
_Faults = dict[int, list[str]]


@dataclass
class _Rows:
    """Labels of the rows read so far, and the faults of rows by position."""

    labels: list[pd.Index[Any]] = field(default_factory=list)
    faults: _Faults = field(default_factory=lambda: defaultdict(list))

    def iter_rows(self, frames: Iterable[pd.DataFrame]) -> Iterator[tuple[int, dict[Any, Any]]]:
        """Yield the position of each row and its cells."""
        position = 0
        for frame in frames:
            check_unique_columns(frame)
            self.labels.append(frame.index)
            yield from enumerate(frame.to_dict("records"), position)
            position += len(frame)


@expose_options(TranscriptionOptions, vad="segments")
def transcribe_long(
    frame: Table, lab: Client, *, piece_s: float = PIECE_S, **options: Unpack[TranscriptionOptions]
) -> pd.DataFrame:
    """Transcribe recordings of any length, with times.

    Each recording is cut at its quietest places into pieces of at most ``piece_s`` seconds, and a batch transcribes
    the pieces. The key of a piece depends on its audio. The same call again, also after an interrupt, therefore sends
    only the missing pieces. Files are read block by block, and at most eight pieces are in memory.

    Args:
        frame: A table with one row for each recording, of any kind that :func:`transcribe` accepts.
        lab: The client.
        piece_s: The longest piece, in seconds, at least 1.
        **options: The options of :func:`transcribe`, with ``vad="segments"``. The cells of the column ``audio`` are
            recordings. Channels are mixed to mono, and sample rates above 16 kHz, which recognizers do
            not use, are reduced to 16 kHz.

    Returns:
        One segment frame, of pandas: ``file`` (as :func:`to_segments` names it), ``start`` and ``end`` (seconds from
        the beginning of the recording, to the microsecond), ``text``, ``row`` (index label of the recording's row),
        ``piece`` (number of the piece, from 0 in each recording) and ``doubt`` (why the text may be a hallucination,
        by the rules of :func:`speechlab.segments.doubts`; empty for most). A warning names recordings that
        cannot be read and pieces that failed; ``attrs["speechlab_faults"]`` has the reasons by the row's position.

    Raises:
        InvalidRequestError: An argument is not allowed, or a column is missing.
        AudioDecodeError: A recording cannot be read, and ``on_error="raise"``.
        ExceptionGroup: Pieces failed, and ``on_error="raise"``.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    table = _transcribe_recordings(lab, frame, piece_s, options)
    if faults := table.attrs.get(FAULTS_ATTRIBUTE):
        are = "1 recording is" if len(faults) == 1 else f"{len(faults)} recordings are"
        message = (
            f"{are} not whole: {format_reasons(faults.values())}. attrs[{FAULTS_ATTRIBUTE!r}] has all reasons; "
            "the same call again asks for what is missing"
        )
        warn_user(message, stacklevel=find_user_stacklevel())
    return table


def _transcribe_recordings(
    lab: Client, frame: Table, piece_s: float, options: TranscriptionOptions
) -> pd.DataFrame:
    if not is_number(piece_s) or not 1 <= piece_s < float("inf"):
        raise build_argument_error("piece_s", piece_s, "a number of seconds, at least 1")
    remaining: dict[str, Any] = dict(options)
    source = open_source(frame, "audio")
    column = remaining.pop("audio", source.columns[0] if source.series else "audio")
    if source.columns and column not in source.columns:
        raise InvalidRequestError(
            describe_missing_columns(source.columns, column, arguments=("audio",)), parameter=str(column)
        )
    if remaining.setdefault("vad", "segments") != "segments":
        raise InvalidRequestError("long recordings are transcribed with vad='segments'", parameter="vad")
    how = {name: remaining.pop(name) for name in CallingOptions.__annotations__ if name in remaining}
    source = source.with_recordings(column)
    remaining.setdefault("prefix", "piece_")
    rows = _Rows()
    strict = how.get("on_error") == "raise"
    chunk_rows = remaining.pop("chunk_rows", CHUNK_ROWS)
    pieces = _cut_recordings(
        source.iter_pieces(chunk_rows, {column}), column, float(piece_s), rows, strict=strict
    )
    first = next(pieces, None)
    if first is None:
        return _join_segments([], rows)
    with use_store(remaining.get("store")) as store:
        remaining |= {"store": store, "audio": _SOUND_COLUMN, "columns": "all"}
        patience = {name: how[name] for name in WaitingOptions.__annotations__ if name in how}
        plan = plan_table(lab, TranscriptionStep, chain([first], pieces), remaining | patience)
        with suppress_failure_warnings():  # the warning about recordings has the reasons of failed pieces
            run = run_plan(lab, plan, how)
        return _join_segments(_iter_segments(run, store, remaining["prefix"], rows.faults), rows)


def _cut_recordings(
    frames: Iterator[pd.DataFrame], column: Any, piece_s: float, rows: _Rows, *, strict: bool
) -> Iterator[pd.DataFrame]:
    """Tables of a few pieces each. A recording that cannot be read becomes a fault of its row."""
    waiting: list[dict[Any, Any]] = []
    for row, cells in rows.iter_rows(frames):
        cell, number = cells.pop(column), -1
        cells |= {"_file": cell_to_text(cell) or "", "_row": row}
        try:
            for number, piece in enumerate(cut_at_silences(check_recording_cell(cell, column), piece_s)):
                waiting.append(
                    {**cells, "_piece": number, "_start_s": piece.start_s, _SOUND_COLUMN: piece.flac}
                )
                if len(waiting) == _MAX_PIECES:
                    yield pd.DataFrame(waiting)
                    waiting = []
            if number < 0:
                raise AudioDecodeError(f"{cells['_file']} holds no sound")
        except (AudioError, InvalidRequestError) as error:
            if strict:
                raise
            rows.faults[row].append(str(error))
    if waiting:
        yield pd.DataFrame(waiting)


def _iter_segments(run: Run, store: Store, prefix: str, faults: _Faults) -> Iterator[pd.DataFrame]:
    """Yield the segments of a run's pieces, with times from the beginning of each recording."""
    for chunk in run.parts():
        table, reasons = collect_segments(chunk, store, prefix=prefix, audio=_SOUND_COLUMN)
        of = chunk.iloc[table["position"]]
        for name in ("start", "end"):
            table[name] = (table[name] + of["_start_s"].to_numpy()).round(6)
        for name in ("file", "row", "piece"):
            table[name] = of[f"_{name}"].to_numpy()
        yield table[["file", "start", "end", "text", "row", "piece"]]
        for position, piece in enumerate(chunk.to_dict("records")):
            reason = reasons.get(position, "").partition(": ")[2]
            if piece[f"{prefix}status"] not in ("ok", "cached"):
                reason = str(piece[f"{prefix}error"])
            if reason:
                where = f"{piece['_file']} at {piece['_start_s']:.0f} s"
                faults[int(piece["_row"])].append(f"{where}: {reason}")


def _join_segments(tables: Iterable[pd.DataFrame], rows: _Rows) -> pd.DataFrame:
    kinds = {"row": "int64", "piece": "int64"}
    empty = segment_frame([]).assign(row=0, piece=0).astype(kinds)
    filled = [table for table in tables if len(table)]
    result = segment_frame(pd.concat(filled, ignore_index=True) if filled else empty)
    result["doubt"] = doubts(result)
    if rows.labels:
        labels = rows.labels[0].append(rows.labels[1:])
        result["row"] = labels.take(result["row"].to_numpy(dtype="int64"))
    if rows.faults:
        result.attrs[FAULTS_ATTRIBUTE] = {row: "; ".join(rows.faults[row]) for row in sorted(rows.faults)}
    return result
