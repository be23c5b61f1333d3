"""Timed tables: segments with start and end in seconds, their joins, scores and files.

A segment frame has one row for each segment: ``file``, ``start``, ``end``, ``text`` and optional columns. Segments
are half open (a segment includes its start, not its end) and checked. Times are compared to the microsecond. This
room compares times, never texts (error rates are in ``metrics``), and makes no calls.
Used by people with tables of their own, and by client, batches and studies, which give such frames.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.segments._changes.captions import captions, doubts
from speechlab.segments._changes.crop import clips, coverage, crop, gaps, shift
from speechlab.segments._changes.merge import from_speech, merge, resegment, split, subtract
from speechlab.segments._convert import (
    from_audformat,
    from_pyannote,
    from_seglst,
    to_audformat,
    to_pyannote,
    to_records,
    to_seglst,
)
from speechlab.segments._files.formats import WriteResult, choose_format_name, formats, read, write
from speechlab.segments._frame.extent import check_extent
from speechlab.segments._frame.schema import COLUMNS, equal, frame, in_order, keys
from speechlab.segments._joins.align import align
from speechlab.segments._joins.overlap import overlap_join
from speechlab.segments._scores.detection import DetectionScore, MatchScore, Segmentation
from speechlab.segments._scores.diarization import DiarizationScore, find_cheapest_assignment
from speechlab.segments._scores.score import SegmentScore, score

__all__ = [
    "COLUMNS",
    "align",
    "captions",
    "check_extent",
    "clips",
    "coverage",
    "crop",
    "doubts",
    "equal",
    "formats",
    "frame",
    "from_audformat",
    "from_pyannote",
    "from_seglst",
    "from_speech",
    "gaps",
    "in_order",
    "keys",
    "merge",
    "overlap_join",
    "read",
    "resegment",
    "score",
    "shift",
    "split",
    "subtract",
    "to_audformat",
    "to_pyannote",
    "to_records",
    "to_seglst",
    "write",
]

_name_after(__name__, globals())
