"""Diarization: seconds of speech given to the right speaker, to another one, to nobody, or made up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.errors import SegmentError
from speechlab.segments._frame.extent import count_depths_between_edges, merge_stretches
from speechlab.segments._frame.ticks import Stretches, refuse_rows
from speechlab.segments._joins.overlap import find_intersections
from speechlab.segments._scores.detection import compute_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Steps of a Jaccard error rate, which decides only between assignments that share equally much time.
_COST_SCALE = 1 << 20


@dataclass(frozen=True, repr=False)
class DiarizationScore:
    """Seconds of speakers' time that are right, missed, made up, or of the wrong speaker, and the rates that follow.

    Where several speakers speak at once, their time counts once for each. In each recording, speakers of the
    hypothesis stand for those of the reference one to one, so that they share as much scored time as possible.

    Attributes:
        collar_s: Seconds on either side of each edge of a speaker of the reference that do not count.
        overlap: Whether time counts in which several speakers of the reference speak at once.
        correct_s: Speakers' time of the reference with the right speaker.
        miss_s: Speakers' time of the reference beyond the number of speakers in the hypothesis.
        false_alarm_s: Speakers' time of the hypothesis beyond the number of speakers in the reference.
        confusion_s: Speakers' time of the reference with a wrong speaker.
        speakers: A row for each speaker of the reference with scored time: ``file``, ``speaker``, ``assigned`` (the
            speaker of the hypothesis; empty for none), ``reference_s``, ``hypothesis_s`` (of the assigned speaker),
            ``shared_s`` and ``jaccard_error_rate``.
        files: A row for each recording, with the seconds.

    Example:
        >>> said = frame([(0.0, 2.0), (2.0, 4.0)], file="a.wav").assign(speaker=["ann", "bob"])
        >>> found = frame([(0.0, 2.5), (2.5, 4.0)], file="a.wav").assign(speaker=["1", "2"])
        >>> result = score(said, found, by_speaker=True).diarization
        >>> result.confusion_s, result.diarization_error_rate
        (0.5, 0.125)
    """

    collar_s: float
    overlap: bool
    correct_s: float
    miss_s: float
    false_alarm_s: float
    confusion_s: float
    speakers: pd.DataFrame = field(compare=False)
    files: pd.DataFrame = field(compare=False)

    @property
    def reference_s(self) -> float:
        """Scored speakers' time of the reference in seconds."""
        return self.correct_s + self.miss_s + self.confusion_s

    @property
    def diarization_error_rate(self) -> float:
        """DER: misses, false alarms and confusion over the speakers' time of the reference; can exceed 1.

        NaN if the reference has no scored time.
        """
        return compute_ratio(self.miss_s + self.false_alarm_s + self.confusion_s, self.reference_s)

    @property
    def jaccard_error_rate(self) -> float:
        """JER: mean over the speakers of the reference of 1 minus shared time over the time of either; from 0 to 1.

        Speakers without an assigned one count 1. NaN if there is no speaker. Source: N. Ryant et al., The second
        DIHARD diarization challenge (Interspeech 2019).
        """
        return float(self.speakers["jaccard_error_rate"].mean()) if len(self.speakers) else math.nan

    def __repr__(self) -> str:
        return (
            f"<DiarizationScore DER {self.diarization_error_rate:.4f}, JER {self.jaccard_error_rate:.4f}: "
            f"{self.miss_s:.2f} s missed, {self.false_alarm_s:.2f} s false alarms and {self.confusion_s:.2f} s of "
            f"the wrong speaker in {self.reference_s:.2f} s, collar {self.collar_s:g} s"
            f"{'' if self.overlap else ', without overlaps'}>"
        )


class Turns(NamedTuple):
    """Stretches of speakers, merged for each speaker."""

    spans: Stretches  # their codes are of the files
    who: NDArray[np.int64]  # position of the speaker of each stretch in the next two
    names: NDArray[np.str_]  # of the speakers, once for each file
    files: NDArray[np.int64]  # code of the file of each speaker

    def crop_to(self, scored: Stretches, count: int) -> Turns:
        """Return the parts within stretches that do not overlap each other."""
        rows, _, spans = find_intersections(self.spans, scored, count)
        return self._replace(spans=spans, who=self.who[rows])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Time of each speaker in microseconds."""
        return _sum_ticks_by_code(self.who, self.spans.lengths, len(self.names))


def collect_turns(table: pd.DataFrame, spans: Stretches, which: str) -> Turns:
    """Return the stretches of each speaker of a segment frame, in which every row must have one."""
    if "speaker" not in table.columns:
        message = f"the {which} has no column 'speaker'; add it, or leave by_speaker out"
        raise SegmentError(message, column="speaker")
    codes, labels = pd.factorize(table["speaker"])
    hint = "name one, or leave such rows out"
    refuse_rows(
        table["speaker"] == "", "speaker", lambda row: f"row {row} of the {which} has no speaker; {hint}"
    )
    keys, who = np.unique(spans.codes * max(len(labels), 1) + codes, return_inverse=True)
    merged = merge_stretches(Stretches(who.astype(np.int64), spans.starts, spans.ends), len(keys))
    files, names = np.divmod(keys, max(len(labels), 1))
    of_files = Stretches(files[merged.codes], merged.starts, merged.ends)
    return Turns(of_files, merged.codes, np.asarray(labels, dtype=np.str_)[names], files)


def score_diarization(
    reference: Turns,
    hypothesis: Turns,
    extent: Stretches | None,
    files: list[str],
    collar: int,
    *,
    overlap: bool,
) -> DiarizationScore:
    """Compare the speakers of two tables within stretches (None for all time), with a collar in ticks."""
    count, spans = len(files), reference.spans
    edges = np.concatenate([spans.starts, spans.ends])
    zones = Stretches(np.concatenate([spans.codes, spans.codes]), edges - collar, edges + collar)
    layers = count_depths_between_edges([spans, zones, hypothesis.spans if extent is None else extent], count)
    together, near, counted = layers.depths
    scored = (near == 0) & ((extent is None) | (counted > 0)) & (overlap | (together < 2))
    counted_time = merge_stretches(layers.spans[scored], count)
    ours, theirs = reference.crop_to(counted_time, count), hypothesis.crop_to(counted_time, count)

    layers = count_depths_between_edges([ours.spans, theirs.spans], count)
    many, many_found = layers.depths
    pieces = layers.spans
    miss, false_alarm, matched = (
        _sum_ticks_by_code(pieces.codes, pieces.lengths * number, count)
        for number in (
            np.maximum(many - many_found, 0),
            np.maximum(many_found - many, 0),
            np.minimum(many, many_found),
        )
    )
    speakers, correct = _assign_speakers(ours, theirs, count)
    seconds = {
        "correct_s": correct / 1e6,
        "miss_s": miss / 1e6,
        "false_alarm_s": false_alarm / 1e6,
        "confusion_s": (matched - correct) / 1e6,
    }
    speakers["file"] = pd.Series(np.array(files, dtype=object)[speakers["file"]], dtype=get_text_dtype())
    right, missed, made_up, confused = (float(values.sum()) for values in seconds.values())
    by_file = pd.DataFrame({"file": pd.Series(files, dtype=get_text_dtype()), **seconds})
    return DiarizationScore(collar / 1e6, overlap, right, missed, made_up, confused, speakers, by_file)


def _assign_speakers(said: Turns, found: Turns, count: int) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return the speakers of the reference with their partners, and the time they share, by file."""
    left, right, parts = find_intersections(said.spans, found.spans, count)
    ours, theirs = said.lengths, found.lengths
    by_file = (said.files, found.files, said.files[said.who[left]])  # all in order of the files
    bounds = [np.searchsorted(codes, np.arange(count + 1)).tolist() for codes in by_file]
    rows, correct = [], np.zeros(count, dtype=np.int64)
    for file in range(count):
        (first, last), (begin, end), pairs = (side[file : file + 2] for side in bounds)
        mine, yours = first + np.flatnonzero(ours[first:last]), np.arange(begin, end)
        size = max(len(mine), len(yours))
        times, either = np.zeros((size, size), dtype=np.int64), np.ones((size, size))
        of_file = slice(*pairs)
        at = np.searchsorted(mine, said.who[left[of_file]]), found.who[right[of_file]] - begin
        np.add.at(times, at, parts.lengths[of_file])
        either[: len(mine), : len(yours)] = np.add.outer(ours[mine], theirs[yours])
        errors = 1 - times / np.maximum(either - times, 1)
        fine = np.rint(_COST_SCALE * errors).astype(np.int64).tolist()
        coarse = times.tolist()  # as Python's integers, which do not overflow
        columns = find_cheapest_assignment(
            [
                [fine[row][column] - 2 * size * _COST_SCALE * coarse[row][column] for column in range(size)]
                for row in range(size)
            ]
        )
        for row, who in enumerate(mine.tolist()):
            time, error = coarse[row][columns[row]], float(errors[row, columns[row]])
            name, hypothesis_s = "", 0.0
            if time:
                their_speaker = yours[columns[row]]
                name, hypothesis_s = str(found.names[their_speaker]), theirs[their_speaker] / 1e6
            rows.append((file, str(said.names[who]), name, ours[who] / 1e6, hypothesis_s, time / 1e6, error))
            correct[file] += time
    seconds = ["reference_s", "hypothesis_s", "shared_s", "jaccard_error_rate"]
    table = pd.DataFrame(rows, columns=["file", "speaker", "assigned", *seconds])
    kinds = {"file": "int64", "speaker": "str", "assigned": "str"} | dict.fromkeys(seconds, "float64")
    return table.astype(kinds), correct


def _sum_ticks_by_code(codes: NDArray[np.int64], ticks: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Sums of whole microseconds by code, exact up to 285 years."""
    return np.bincount(codes, weights=ticks, minlength=count).astype(np.int64)


def find_cheapest_assignment(costs: Sequence[Sequence[int]]) -> list[int]:
    """Assign a different column to each row, at the lowest total cost.

    The Hungarian method: rows are added one by one, each along the cheapest augmenting path. Prices of rows and
    columns keep all reduced costs at 0 or more.
    """
    size = len(costs)
    row_price: list[float] = [0] * (size + 1)
    column_price: list[float] = [0] * (size + 1)
    owner = [0] * (size + 1)  # row of each column, counted from 1; 0 for none
    for row in range(1, size + 1):
        owner[0] = row
        column = 0
        distance: list[float] = [math.inf] * (size + 1)
        before = [0] * (size + 1)
        settled = [False] * (size + 1)
        while owner[column]:
            settled[column] = True
            row_here, step, nearest = owner[column], math.inf, 0  # of whole costs, all prices are whole
            for candidate in range(1, size + 1):
                if settled[candidate]:
                    continue
                through = costs[row_here - 1][candidate - 1] - row_price[row_here] - column_price[candidate]
                if through < distance[candidate]:
                    distance[candidate], before[candidate] = through, column
                if distance[candidate] < step:
                    step, nearest = distance[candidate], candidate
            for candidate in range(size + 1):
                if settled[candidate]:
                    row_price[owner[candidate]] += step
                    column_price[candidate] -= step
                else:
                    distance[candidate] -= step
            column = nearest
        while column:
            owner[column] = owner[before[column]]
            column = before[column]
    columns = [0] * size
    for column in range(1, size + 1):
        columns[owner[column] - 1] = column - 1
    return columns
