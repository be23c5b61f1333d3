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
    annotations = {name: core.Annotation(uri=name) for name in checked["file"].unique().tolist()}
    speakers = checked["speaker"] if "speaker" in checked.columns else [""] * len(checked)
    rows = zip(checked["file"], checked["start"], checked["end"], speakers, strict=True)
    for number, (name, start, end, speaker) in enumerate(rows):
        annotations[name][core.Segment(float(start), float(end)), number] = speaker or "speech"
    return annotations


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
        annotations = [(str(name), annotation) for name, annotation in data.items()]
    elif hasattr(data, "uri"):
        annotations = [(file or data.uri or "", data)]
    elif isinstance(data, Iterable) and not isinstance(data, str):
        annotations = [(file or getattr(annotation, "uri", None) or "", annotation) for annotation in data]
    else:
        raise SegmentError(f"expected an Annotation or a Timeline, not {data!r:.60}")
    rows: list[dict[str, Any]] = []
    for name, annotation in annotations:
        if hasattr(annotation, "itertracks"):
            tracks = annotation.itertracks(yield_label=True)
            rows += [
                {"file": name, "start": segment.start, "end": segment.end, "speaker": str(label)}
                for segment, _, label in tracks
            ]
        elif hasattr(annotation, "support"):
            rows += [{"file": name, "start": segment.start, "end": segment.end} for segment in annotation]
        else:
            raise SegmentError(f"expected an Annotation or a Timeline, not {annotation!r:.60}")
    return frame(rows)
