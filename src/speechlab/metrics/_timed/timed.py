"""Error rates of segment frames: with a limit in time, and for speakers with other names in the hypothesis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from speechlab._arguments import build_argument_error, is_bool, is_number
from speechlab._pandas import pd
from speechlab.display import table as html_table
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import build_preparation, refuse_unspaced
from speechlab.metrics._timed.distance import (
    TimedCounts,
    TimedTokens,
    align_timed_tokens,
    count_timed_errors,
)
from speechlab.segments import find_cheapest_assignment
from speechlab.segments import frame as segment_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.metrics._alignment.units import Normalize, Preparation, Unit


# A token: code, start and end of the time in which it may be aligned, middle (all in seconds), and segment.
_Token = tuple[int, float, float, float, int]
# A speaker, the assigned one, the tokens of both, and their errors.
_StreamMatch = tuple[str, str, tuple[TimedTokens, TimedTokens], TimedCounts]
_MAX_ROWS = 20  # maximum number of streams in HTML
_COLUMNS = ["file", "speaker", "assigned", "substitutions", "deletions", "insertions", "reference_length"]


@dataclass(frozen=True, repr=False)
class TimedErrorRate:
    """An error rate of timed texts, with its counts.

    Attributes:
        unit: The unit of counting, such as ``"word"``.
        collar_s: Maximum distance in time of two aligned tokens, in seconds; infinite for no limit.
        substitutions: Substituted tokens.
        deletions: Tokens of the reference without a counterpart at their time.
        insertions: Tokens of the hypothesis without a counterpart at their time.
        reference_length: Tokens of the reference.
        streams: A row for each stream of tokens: ``file``, ``speaker`` of the reference, ``assigned`` (the speaker of
            the hypothesis that it was compared with; empty for none), the counts, and ``reference_length``.
        segments: With ``by_segment=True``, the rows of the reference with the counts of each segment,
            ``reference_length`` and ``rate`` (NaN without tokens); else None. An insertion counts for the segment of
            its stream that is nearest in time. In a stream of the hypothesis only, it counts for no segment.

    Example:
        >>> said = sl.segments.frame([(0.0, 2.0, "good morning")], file="a.wav")
        >>> timed_error_rate(said, said).rate
        0.0
    """

    unit: Unit
    collar_s: float
    substitutions: int
    deletions: int
    insertions: int
    reference_length: int
    streams: pd.DataFrame = field(compare=False)
    segments: pd.DataFrame | None = field(default=None, compare=False)

    @property
    def errors(self) -> int:
        """Substitutions, deletions and insertions together."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """All errors over all reference tokens (or over 1 if there are none); NaN if there is no recording."""
        return self.errors / max(self.reference_length, 1) if len(self.streams) else math.nan

    def __repr__(self) -> str:
        return (
            f"<TimedErrorRate {self.rate:.4f} by {self.unit}: {self.errors} errors in {self.reference_length}, "
            f"{len(self.streams)} streams, collar {self.collar_s:g} s>"
        )

    def _repr_html_(self) -> str:
        def format_percent(rate: float) -> str:
            return "–" if math.isnan(rate) else f"{100 * rate:.2f}%"

        columns = [self.streams[name].tolist() for name in _COLUMNS]
        rows = [
            (file, speaker, assigned, format_percent(sum(errors) / max(length, 1)), *errors, length)
            for file, speaker, assigned, *errors, length in zip(*columns, strict=True)
        ]
        if len(rows) != 1:
            total = [getattr(self, name) for name in _COLUMNS[3:]]
            rows = [("all", "", "", format_percent(self.rate), *total), *rows[:_MAX_ROWS]]
        caption = f"Error rate by {self.unit}, of words within {self.collar_s:g} s of each other"
        if len(self.streams) > _MAX_ROWS:
            caption += f"; the first {_MAX_ROWS} of {len(self.streams)} streams"
        counts = [name.replace("_", " ") for name in _COLUMNS[3:]]
        heads = ["recording", "speaker", "compared with", "error rate", *counts]
        return str(html_table(heads, rows, caption=caption, right=range(3, 8)))


def timed_error_rate(
    reference: pd.DataFrame,
    hypothesis: pd.DataFrame,
    *,
    collar: float = 5.0,
    by_speaker: bool = False,
    by_segment: bool = False,
    unit: Unit = "word",
    language: str | None = None,
    normalize: Normalize = "auto",
) -> TimedErrorRate:
    """Compute the error rate of timed texts, independent of their division into segments.

    In each recording all segments, by start, are one stream of tokens, so that text is aligned across the edges of
    segments. A token can be a hit or a substitution only of a token at its time. The time of a reference's segment is
    divided among its tokens by their length. A token of a hypothesis has the middle of its share, extended by the
    collar on both sides. A token at another time counts as a deletion and an insertion. These are meeteval's
    definitions of tcpWER and cpWER; it has further rates, such as ORC-WER.

    The time is proportional to the pairs of tokens that are near enough in time: to the tokens times the collar, and
    for ``math.inf`` to the square of a recording's tokens.

    >>> from speechlab.metrics import timed_error_rate
    >>> from speechlab.segments import frame
    >>> said = frame([(0.0, 2.0, "good morning"), (10.0, 12.0, "how are you")], file="a.wav")
    >>> recognized = frame([(0.1, 12.5, "good morning how are you")], file="a.wav")
    >>> (
    ...     timed_error_rate(said, recognized, collar=5.0).rate,
    ...     timed_error_rate(said, recognized, collar=1.0).rate,
    ... )
    (0.0, 0.8)

    Args:
        reference: A segment frame with texts.
        hypothesis: A segment frame with texts. A recording in only one of the two frames counts in full.
        collar: Collar in seconds. The service pads segments by 1.5 s at the start of a recording, so do not choose
            less. ``math.inf`` ignores time except for the order.
        by_speaker: Compare each speaker (column ``speaker``) of the reference with a speaker of the hypothesis. The
            assignment of each recording is the one with the fewest errors: tcpWER, and cpWER with an infinite collar.
        by_segment: Also count the errors of each reference segment, which keeps the alignments in memory.
        unit: The unit of counting, as for :func:`error_rate`.
        language: ISO 639-1 code of the texts.
        normalize: As for :func:`error_rate`.

    Raises:
        SegmentError: A table is not a segment frame.
        InvalidRequestError: The texts have no spaces between words, and no language is given; the collar is not a
            number of at least 0; ``by_speaker`` is set and a table has no
            speakers; unit, language and normalizer do not match; or with ``by_segment``
            so many tokens are near in time that the alignment would not fit into memory.
    """
    check_collar(collar)
    for name, value in (("by_speaker", by_speaker), ("by_segment", by_segment)):
        if not is_bool(value):
            raise build_argument_error(name, value, "True or False")
    preparation = build_preparation(unit, language, normalize)
    codes: dict[str, int] = {}
    sides = []
    for name, table in (("reference", reference), ("hypothesis", hypothesis)):
        checked = segment_frame(table)
        refuse_unspaced(checked["text"].tolist(), unit, language, normalize)
        if by_speaker and "speaker" not in checked.columns:
            message = f"{name} has no column 'speaker'; add it, or leave by_speaker out"
            raise InvalidRequestError(message, parameter=name)
        point = collar if name == "hypothesis" else None
        sides.append(
            build_token_streams(checked, preparation, codes, point, by="speaker" if by_speaker else None)
        )
    reference_side, hypothesis_side = sides
    rows, pairs = [], []
    for file in dict.fromkeys([*reference_side, *hypothesis_side]):
        matched = _assign_speakers(reference_side.get(file, {}), hypothesis_side.get(file, {}))
        for speaker, assigned, pair, counts in matched:
            rows.append((file, speaker, assigned, *counts, len(pair[0].codes)))
            pairs.append(pair)
    streams = pd.DataFrame(rows, columns=_COLUMNS)
    totals = {name: int(streams[name].sum()) for name in _COLUMNS[3:]}
    segments = _count_errors_by_segment(segment_frame(reference), pairs) if by_segment else None
    return TimedErrorRate(unit, float(collar), **totals, streams=streams, segments=segments)


def align_recordings(
    reference: pd.DataFrame, hypothesis: pd.DataFrame, preparation: Preparation, collar: float
) -> Iterator[tuple[TimedTokens, TimedTokens, NDArray[np.int64]]]:
    """The tokens of the recordings that both tables have, whoever spoke them, with their counterparts or -1."""
    codes: dict[str, int] = {}
    ours = build_token_streams(reference, preparation, codes, None)
    theirs = build_token_streams(hypothesis, preparation, codes, collar)
    for file in ours.keys() & theirs.keys():
        yield ours[file][""], theirs[file][""], align_timed_tokens(ours[file][""], theirs[file][""])[0]


def check_collar(collar: object) -> None:
    """Refuse a collar that is not a number of at least 0."""
    if not (is_number(collar) and float(collar) >= 0):
        message = f"collar={collar!r:.60} is not a number of at least 0 seconds; give one, such as 5.0"
        raise InvalidRequestError(message, parameter="collar")


def build_token_streams(
    table: pd.DataFrame,
    preparation: Preparation,
    codes: dict[str, int],
    collar: float | None,
    *,
    by: str | None = None,
) -> dict[str, dict[str, TimedTokens]]:
    """The tokens of each recording and group (by a column); with a collar, their times are their middles ± collar."""
    ordered = table.iloc[np.argsort(table["start"].to_numpy(), kind="stable")]
    groups = ordered[by].tolist() if by else [""] * len(ordered)
    streams_by_file: dict[str, dict[str, list[_Token]]] = {}
    for file, group, start, end, text, row in zip(
        ordered["file"].tolist(),
        groups,
        ordered["start"].tolist(),
        ordered["end"].tolist(),
        ordered["text"].tolist(),
        ordered.index.tolist(),
        strict=True,
    ):
        stream = streams_by_file.setdefault(file, {}).setdefault(group, [])
        tokens = preparation.tokenize(text)
        if not tokens:
            continue
        share = (end - start) / sum(map(len, tokens))
        at = 0
        for token in tokens:
            first, at = at, at + len(token)
            begin, stop = start + share * first, start + share * at
            if len(tokens) == 1:
                begin, stop = start, end
            middle = (begin + stop) / 2
            if collar is not None:
                begin, stop = middle - collar, middle + collar
            stream.append((codes.setdefault(token, len(codes)), begin, stop, middle, row))
    return {
        file: {name: _build_timed_tokens(stream) for name, stream in streams.items()}
        for file, streams in streams_by_file.items()
    }


def _build_timed_tokens(stream: list[_Token]) -> TimedTokens:
    codes, starts, ends, middles, rows = zip(*stream, strict=True) if stream else ((), (), (), (), ())
    # Rounded to the nanosecond, so that rounding errors do not decide whether times touch or overlap.
    begin, stop = (np.rint(np.array(times, dtype=np.float64) * 1e9) / 1e9 for times in (starts, ends))
    integers = (np.array(values, dtype=np.int64) for values in (codes, rows))
    return TimedTokens(next(integers), begin, stop, np.array(middles, dtype=np.float64), next(integers))


def _assign_speakers(said: dict[str, TimedTokens], recognized: dict[str, TimedTokens]) -> list[_StreamMatch]:
    """Return the speakers of a recording, each with the assigned speaker, the tokens of both, and the errors."""
    nobody = _build_timed_tokens([])
    size = max(len(said), len(recognized))
    ours = [*said.items(), *[("", nobody)] * (size - len(said))]
    theirs = [*recognized.items(), *[("", nobody)] * (size - len(recognized))]
    counts = [
        [count_timed_errors(our_tokens, their_tokens) for _, their_tokens in theirs] for _, our_tokens in ours
    ]
    columns = find_cheapest_assignment([[cell.errors for cell in row] for row in counts])
    return [
        (name, theirs[column][0], (tokens, theirs[column][1]), counts[row][column])
        for row, ((name, tokens), column) in enumerate(zip(ours, columns, strict=True))
    ]


def _count_errors_by_segment(
    reference: pd.DataFrame, pairs: list[tuple[TimedTokens, TimedTokens]]
) -> pd.DataFrame:
    """Return the reference with the counts of each of its segments."""
    start, end = (reference[name].to_numpy() for name in ("start", "end"))
    counts = {name: np.zeros(len(reference), dtype=np.int64) for name in _COLUMNS[3:]}
    for reference_tokens, hypothesis in pairs:
        ours, theirs = align_timed_tokens(reference_tokens, hypothesis)
        substituted = ours >= 0
        substituted[substituted] = reference_tokens.codes[substituted] != hypothesis.codes[ours[substituted]]
        np.add.at(counts["substitutions"], reference_tokens.rows[substituted], 1)
        np.add.at(counts["deletions"], reference_tokens.rows[ours < 0], 1)
        np.add.at(counts["reference_length"], reference_tokens.rows, 1)
        near = np.unique(reference_tokens.rows)
        for at in hypothesis.middles[theirs < 0] if len(near) else ():
            away = np.maximum(np.maximum(start[near] - at, at - end[near]), 0)
            counts["insertions"][near[away.argmin()]] += 1
    errors = counts["substitutions"] + counts["deletions"] + counts["insertions"]
    length = counts["reference_length"]
    rate = np.divide(errors, length, out=np.full(len(errors), np.nan), where=length > 0)
    return reference.assign(**counts, rate=rate)
