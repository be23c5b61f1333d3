"""pyannote.core: an Annotation for each recording, or a Timeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._require import require
from speechlab.errors import SegmentError
from speechlab.segments._frame.schema import frame
from speechlab.segments._frame.ticks import ticks_of

if TYPE_CHECKING:
    import pandas as pd


def to_pyannote(table: pd.DataFrame) -> dict[str, Any]:
    """Return a ``pyannote.core.Annotation`` for each recording, by file.

    The track of a segment is its row number. Its label is its speaker, or ``"speech"`` without a speaker. Other
    columns are left out.

    Raises:
        SegmentError: The table is not a segment frame, or has segments without length, which pyannote drops silently.
        MissingDependencyError: pyannote.core is not installed.
    """
    core = require("pyannote.core")
    checked = frame(table)
    instant = ticks_of(checked["end"]) == ticks_of(checked["start"])
    if instant.any():
        row = int(np.argmax(instant))
        message = f"row {row} has no length, which pyannote does not support; drop it first"
        raise SegmentError(message, column="end", rows=(row,))
    made = {name: core.Annotation(uri=name) for name in checked["file"].unique().tolist()}
    speakers = checked["speaker"] if "speaker" in checked.columns else [""] * len(checked)
    rows = zip(checked["file"], checked["start"], checked["end"], speakers, strict=True)
    for number, (name, start, end, speaker) in enumerate(rows):
        made[name][core.Segment(float(start), float(end)), number] = speaker or "speech"
    return made


def from_pyannote(data: Any, file: str | None = None) -> pd.DataFrame:
    """Make a segment frame of pyannote's annotations or timelines.

    Args:
        data: An ``Annotation`` or a ``Timeline``; or several, in a list or by file.
        file: The recording of annotations without a ``uri``.

    Returns:
        A segment frame, in pyannote's order. The labels of annotations become the column ``speaker``.

    Raises:
        SegmentError: The value is neither an ``Annotation`` nor a ``Timeline``.
    """
    if isinstance(data, Mapping):
        named = [(str(name), one) for name, one in data.items()]
    elif hasattr(data, "uri"):
        named = [(file or data.uri or "", data)]
    elif isinstance(data, Iterable) and not isinstance(data, str):
        named = [(file or getattr(one, "uri", None) or "", one) for one in data]
    else:
        raise SegmentError(f"expected an Annotation or a Timeline, not {data!r:.60}")
    rows: list[dict[str, Any]] = []
    for name, one in named:
        if hasattr(one, "itertracks"):
            tracks = one.itertracks(yield_label=True)
            rows += [
                {"file": name, "start": part.start, "end": part.end, "speaker": str(label)}
                for part, _, label in tracks
            ]
        elif hasattr(one, "support"):
            rows += [{"file": name, "start": part.start, "end": part.end} for part in one]
        else:
            raise SegmentError(f"expected an Annotation or a Timeline, not {one!r:.60}")
    return frame(rows)
