"""Times of words, compared with those of a reference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from speechlab._arguments import (
    build_argument_error,
    convert_table,
    is_number,
    is_pandas_frame,
    require_columns,
)
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import build_preparation
from speechlab.metrics._timed.timed import align_recordings, check_collar
from speechlab.segments import MatchScore
from speechlab.segments import frame as segment_frame

if TYPE_CHECKING:
    from speechlab.metrics._alignment.units import Normalize, Preparation, Unit


_TOLERANCES = (0.05, 0.1, 0.2)


@dataclass(frozen=True, repr=False)
class WordTimes:
    """Errors of the times of words, over the words that were recognized.

    Attributes:
        reference_words: Words of the reference.
        words: The words of the hypothesis, in its order, with ``correct`` (whether the word has a counterpart in
            the reference with the same tokens), ``reference`` (position of that row in the reference), and
            ``start_error_s`` and ``end_error_s`` (positive if the hypothesis is later). The last three are missing
            for other words.

    Example:
        >>> import pandas as pd
        >>> said = pd.DataFrame({"start": [0.0, 0.5], "end": [0.4, 0.9], "word": ["good", "morning"]})
        >>> recognized = said.assign(start=[0.02, 0.62], word=["good", "Morning."])
        >>> found = word_times(said, recognized, language="en")
        >>> found.within(0.05).f1, found.edges()["mean_abs_s"].round(3).tolist()
        (0.5, [0.07, 0.0])
    """

    reference_words: int
    words: pd.DataFrame = field(compare=False)

    def within(self, seconds: float) -> MatchScore:
        """Count the correct words whose start and end are both within a tolerance of the reference's.

        Returns:
            The counts, with precision (over the words of the hypothesis), recall (over those of the reference) and
            F1. A word that was not recognized counts as one without a match.

        Raises:
            InvalidRequestError: The tolerance is not a number of at least 0, or the reference has no times.
        """
        if not is_number(seconds) or not float(seconds) >= 0:
            raise build_argument_error("seconds", seconds, "a number of at least 0 seconds")
        if self._unknown:
            raise InvalidRequestError(
                "the reference is of texts, and has no times of words", parameter="reference"
            )
        worst = self.words[["start_error_s", "end_error_s"]].abs().max(axis=1, skipna=False)
        matched = int((worst <= float(seconds) + 5e-7).sum())
        return MatchScore(matched, self.reference_words, len(self.words))

    def frame(self, tolerances: Iterable[float] = _TOLERANCES) -> pd.DataFrame:
        """Return a row for each tolerance: ``tolerance_s``, ``matched``, ``precision``, ``recall`` and ``f1``."""
        rows = [(seconds, self.within(seconds)) for seconds in tolerances]
        names = ("matched", "precision", "recall", "f1")
        return pd.DataFrame(
            [{"tolerance_s": at} | {name: getattr(score, name) for name in names} for at, score in rows]
        )

    def edges(self) -> pd.DataFrame:
        """Return the errors of correct words in seconds, with a row for ``start`` and one for ``end``.

        Columns: ``words`` (their number), ``mean_s`` and ``median_s`` (signed), ``mean_abs_s``, ``median_abs_s`` and
        ``p95_abs_s``. Words that were not recognized have no error of time, so read it together with recall.
        """
        rows = {}
        for edge in ("start", "end"):
            errors = self.words[f"{edge}_error_s"].dropna()
            sizes = errors.abs()
            rows[edge] = {
                "words": len(errors),
                "mean_s": errors.mean(),
                "median_s": errors.median(),
                "mean_abs_s": sizes.mean(),
                "median_abs_s": sizes.median(),
                "p95_abs_s": sizes.quantile(0.95),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("edge")

    @property
    def _unknown(self) -> bool:
        return bool(self.words["correct"].any() and self.words["start_error_s"].isna().all())

    def __repr__(self) -> str:
        counts = f"<WordTimes {int(self.words['correct'].sum())} of {self.reference_words} words recognized; "
        if self._unknown:
            return f"{counts}their times are unknown>"
        start, end = self.edges()["median_abs_s"]
        score = self.within(_TOLERANCES[1])
        return (
            f"{counts}median error {start:.3f} s of starts, {end:.3f} s of ends; "
            f"F1 within {_TOLERANCES[1]:g} s {score.f1:.4f}>"
        )


def word_times(
    reference: pd.DataFrame,
    hypothesis: pd.DataFrame,
    *,
    collar: float = 5.0,
    unit: Unit = "word",
    language: str | None = None,
    normalize: Normalize = "auto",
) -> WordTimes:
    """Compare the times of words with those of a reference.

    The words of each recording are aligned as by :func:`timed_error_rate`: with the fewest errors, then the most
    hits, then the least distance in time. A word is correct if its tokens after normalization are hits of all the
    tokens of one word. F1 within a tolerance is that of L. Wagner et al., CrisperWhisper (Interspeech 2024): both
    edges count.

    Args:
        reference: A table of words with ``start`` and ``end`` in seconds and ``word``; ``file`` if there are several
            recordings. Or a table of texts with ``text`` in place of these three, where nobody knows the times: the
            words are then aligned by their order alone, and only ``correct`` is known of them.
        hypothesis: A table of words with the same columns; others, such as ``confidence``, are kept.
        collar: Words with more than this number of seconds between them are not aligned; ``math.inf`` for no limit.
        unit: The unit of the tokens, as for :func:`error_rate`.
        language: ISO 639-1 code of the words.
        normalize: As for :func:`error_rate`.

    Raises:
        SegmentError: A time is missing or invalid.
        InvalidRequestError: A table has no column ``word``; the collar is not a number of at least 0; unit, language
            and normalizer do not match; or too many words are near in time.

    Example:
        >>> import pandas as pd
        >>> said = pd.DataFrame({"start": [0.0, 0.5], "end": [0.4, 0.9], "word": ["good", "morning"]})
        >>> word_times(said, said.assign(end=[0.5, 0.9])).edges()["mean_abs_s"].round(3).tolist()
        [0.0, 0.05]
    """
    check_collar(collar)
    preparation = build_preparation(unit, language, normalize)
    reference = convert_table(reference)
    of_texts = is_pandas_frame(reference) and "word" not in reference.columns and "text" in reference.columns
    if of_texts:
        reference, collar = _split_into_one_second_words(reference, "reference", preparation), math.inf
    tables = [_to_segment_frame(reference, "reference"), _to_segment_frame(hypothesis, "hypothesis")]
    partner = np.full(len(tables[1]), -1)
    for ours, theirs, place in align_recordings(tables[0], tables[1], preparation, float(collar)):
        hits = np.flatnonzero(place >= 0)
        hits = hits[ours.codes[hits] == theirs.codes[place[hits]]]
        rows = np.stack([ours.rows[hits], theirs.rows[place[hits]]])
        pairs, counts = np.unique(rows, axis=1, return_counts=True)
        tokens = [np.bincount(side.rows, minlength=1) for side in (ours, theirs)]
        if of_texts:  # a text of characters has no words
            counts = np.bincount(rows[1], minlength=len(tokens[1]))[pairs[1]]
        complete = (counts == tokens[1][pairs[1]]) & (of_texts | (counts == tokens[0][pairs[0]]))
        partner[pairs[1][complete]] = pairs[0][complete]
    correct = partner >= 0
    words = tables[1].rename(columns={"text": "word"}).assign(correct=correct)
    words["reference"] = np.where(correct, partner, 0)
    words["reference"] = words["reference"].astype("Int64").mask(~correct)
    for edge in ("start", "end"):
        errors = words[edge].to_numpy() - tables[0][edge].to_numpy()[partner] if len(tables[0]) else math.nan
        words[f"{edge}_error_s"] = np.where(correct & (not of_texts), errors, math.nan)
    return WordTimes(len(tables[0]), words)


def _split_into_one_second_words(
    table: pd.DataFrame, argument: str, preparation: Preparation
) -> pd.DataFrame:
    """Return the words of texts, one second each, because their times are unknown."""
    table = require_columns(table, "text", argument=argument)
    recordings = table["file"] if "file" in table.columns else [""] * len(table)
    counts: Counter[str] = Counter()
    rows = []
    for recording, text in zip(recordings, table["text"], strict=True):
        written = text if isinstance(text, str) else ""
        for word in written.split() if preparation.separator else written:
            rows.append((recording, counts[recording], counts[recording] + 1, word))
            counts[recording] += 1
    return pd.DataFrame(rows, columns=["file", "start", "end", "word"])


def _to_segment_frame(table: pd.DataFrame, argument: str) -> pd.DataFrame:
    """Return a table of words as a segment frame."""
    table = convert_table(table)
    if not is_pandas_frame(table):
        raise build_argument_error(argument, table, "a table with the columns start, end and word")
    hint = "A table of words has the columns start, end and word"
    table = require_columns(table, "word", argument=argument, hint=hint)
    return segment_frame(table.drop(columns="text", errors="ignore"))
