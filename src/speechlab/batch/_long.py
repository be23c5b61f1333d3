"""Long recordings: cut at silences, recognised piece by piece, and put together in the recording's own time."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from speechlab._arguments import is_number, refused, require_columns
from speechlab.audio import AudioClip
from speechlab.batch._keeping import opened
from speechlab.batch._operations import plan_transcription, run
from speechlab.batch._plan.recordings import is_path
from speechlab.batch._run.options import RunOptions
from speechlab.batch._table.timed import segments
from speechlab.errors import AudioDecodeError, InvalidRequestError
from speechlab.segments import frame as segment_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from numpy.typing import NDArray

    from speechlab.batch._arguments import TranscriptionOptions
    from speechlab.client import Client

PIECE_S = 300.0
"""Below what services take (10 MB of sound at 16 kHz; the embedded one takes 48), above the 30 seconds that
recognisers look at; and a call that fails costs five minutes of sound, not hours."""
_AT_ONCE = 8
_WINDOW_S = 0.02
_QUIET_WINDOWS = 15


def transcribe_long(
    frame: pd.DataFrame, lab: Client, *, piece_s: float = PIECE_S, **options: Unpack[TranscriptionOptions]
) -> pd.DataFrame:
    """Transcribe recordings of any length, with times.

    Each recording is cut where it is quietest, into pieces of at most ``piece_s`` seconds, which go through a batch:
    the key of a piece is its sound, so that the same call again asks only for what is missing. Files are read piece
    by piece, and a few pieces at a time are in memory.

    Args:
        frame: One row for each recording: a table in memory.
        lab: The client.
        piece_s: The longest piece, in seconds, at least 1.
        **options: Those of :func:`transcribe`, with ``vad="segments"``. The column of recordings holds paths of WAV,
            FLAC, OGG or MP3 files; channels are mixed into one.

    Returns:
        One segment frame: ``file``, ``start`` and ``end`` in the recording's own time, ``text``, ``row`` (the label
        of the recording's row) and ``piece`` (from 0 in each recording). A warning tells of pieces that failed.

    Raises:
        InvalidRequestError: An argument is not allowed, or a column is missing.
        AudioDecodeError: A recording cannot be read.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    import pandas as pd

    if not is_number(piece_s) or not 1 <= piece_s < float("inf"):
        raise refused("piece_s", piece_s, "a number of seconds, at least 1")
    given: dict[str, Any] = dict(options)
    column = str(given.pop("audio", "audio"))
    require_columns(frame, column)
    if not len(frame):
        return segment_frame([])
    if given.setdefault("vad", "segments") != "segments":
        raise InvalidRequestError("long recordings are transcribed with vad='segments'", parameter="vad")
    how = {name: given.pop(name) for name in RunOptions.__annotations__ if name in given}
    prefix = given.setdefault("prefix", "piece_")
    with opened(given.get("store")) as store:
        given["store"] = store
        plan = plan_transcription(_pieces(frame, column, float(piece_s)), lab, audio="_sound", **given)
        done = run(plan, lab, **how)
        tables, failed = [], []
        for part in done.parts():
            table = segments(part, store, prefix=prefix, audio="_sound")
            of = part.iloc[table["position"]]
            begin = of["_start_s"].to_numpy()
            table["file"], table["row"] = of["_file"].to_numpy(), frame.index[of["_row"]].to_numpy()
            table["start"], table["end"] = table["start"] + begin, table["end"] + begin
            table["piece"] = of["_piece"].to_numpy()
            tables.append(table.drop(columns=["position", "segment"]))
            bad = part[~part[f"{prefix}status"].isin(["ok", "cached"])]
            failed += [f"{row['_file']} at {row['_start_s']:.0f} s" for row in bad.to_dict("records")]
    if failed:
        some = ", ".join(failed[:3])
        message = f"{len(failed)} pieces have no transcript: {some}; the same again asks for them"
        warnings.warn(message, stacklevel=2)
    return segment_frame(pd.concat(tables, ignore_index=True) if tables else [])


def _pieces(frame: pd.DataFrame, column: str, piece_s: float) -> Iterator[pd.DataFrame]:
    """Tables of a few pieces each."""
    import pandas as pd

    waiting: list[dict[str, Any]] = []
    others = frame.drop(columns=column)
    for row, cell in enumerate(frame[column]):
        if not is_path(cell):
            message = (
                f"column {column!r} holds {cell!r:.40} in row {row}; long recordings are files, named by path"
            )
            raise InvalidRequestError(message, parameter=column)
        file, own = os.fspath(cell), {str(name): others[name].iloc[row] for name in others}
        for number, (start, sound) in enumerate(cut(file, piece_s)):
            facts = {"_file": file, "_row": row, "_piece": number, "_start_s": start, "_sound": sound}
            waiting.append({**own, **facts})
            if len(waiting) == _AT_ONCE:
                yield pd.DataFrame(waiting)
                waiting = []
    if waiting:
        yield pd.DataFrame(waiting)


def cut(file: str, piece_s: float) -> Iterator[tuple[float, bytes]]:
    """Cut a recording where it is quietest; what is in memory is one piece.

    Yields:
        Where each piece begins, in seconds, and its sound as FLAC.

    Raises:
        AudioDecodeError: The file cannot be read.
    """
    import soundfile

    try:
        with soundfile.SoundFile(file) as source:
            rate, start = source.samplerate, 0
            kept = np.zeros(0, dtype=np.float32)
            while True:
                more = source.read(int(piece_s * rate) - len(kept), dtype="float32", always_2d=True)
                kept = np.concatenate([kept, more.mean(axis=1, dtype=np.float32)])
                whole = len(kept) < int(piece_s * rate) or source.tell() >= source.frames
                end = len(kept) if whole else quietest(kept, rate)
                if end:
                    yield start / rate, AudioClip(kept[:end], rate).encode("flac")
                if whole:
                    return
                kept, start = kept[end:], start + end
    except (soundfile.LibsndfileError, OSError) as error:
        raise AudioDecodeError(f"{file} cannot be read: {error}") from error


def quietest(samples: NDArray[np.float32], rate: int) -> int:
    """Return where to cut: the middle of the quietest 0.3 seconds in the last third."""
    width = max(1, int(_WINDOW_S * rate))
    first = len(samples) * 2 // 3
    windows = (len(samples) - first) // width
    if windows < _QUIET_WINDOWS:
        return len(samples)
    block = samples[first : first + windows * width].reshape(windows, width)
    power = np.convolve(np.square(block).mean(axis=1), np.ones(_QUIET_WINDOWS), "valid")
    return first + (int(power.argmin()) + _QUIET_WINDOWS // 2) * width
