"""The errors that rank: by which counts of a scored row voices and systems are put in order, compared and watched.

A voice does not determine how a word is written, so Japanese goes by readings, English and Chinese without notation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speechlab._pandas import pd
from speechlab.evaluate._study_arguments import parse_language_code
from speechlab.metrics import classify_differences, score


@dataclass(frozen=True, slots=True)
class Measure:
    """A rate of scored rows, and the columns with the counts that it is made of."""

    rate: str
    errors: str
    length: str


WRITTEN = Measure("error_rate", "errors", "reference_length")
READINGS = Measure("reading_cer", "reading_errors", "reading_length")
# The measures that rank, the first that a row has; otherwise what was written counts.
RANKED = (
    READINGS,
    Measure("tolerant_wer", "tolerant_errors", "word_length"),
    Measure("tolerant_cer", "tolerant_errors", "char_length"),
)


def choose_ranking_counts_by_row(rows: pd.DataFrame, measures: Sequence[Measure] = RANKED) -> pd.DataFrame:
    """Return the ``errors`` and ``reference_length`` by which scored rows rank, and the name of their rate.

    Comparisons over time go by ``(READINGS,)`` alone, whose texts both sides have.
    """
    errors, length = rows[WRITTEN.errors].astype("Float64"), rows[WRITTEN.length].astype("Float64")
    ranked_by = pd.Series(WRITTEN.rate, index=rows.index, dtype=object)
    for measure in reversed(measures):
        if measure.rate in rows.columns:
            has_measure = rows[measure.rate].notna()
            errors = rows[measure.errors].astype("Float64").where(has_measure, errors)
            length = rows[measure.length].astype("Float64").where(has_measure, length)
            ranked_by = ranked_by.mask(has_measure, measure.rate)
    return pd.DataFrame({"errors": errors, "reference_length": length, "ranked_by": ranked_by})


def has_error_counts(rows: pd.DataFrame, measure: Measure, *suffixes: str) -> bool:
    """Return whether all rows have the errors of a measure, under each suffix of a comparison."""
    names = [f"{measure.errors}{suffix}" for suffix in suffixes or ("",)]
    return set(names) <= set(rows.columns) and bool(rows[names].notna().all(axis=None))


def score_for_ranking(part: pd.DataFrame, text: str, language: str, keep: list[str]) -> pd.DataFrame:
    """Return rows of one language with the scores of the ranking."""
    code = parse_language_code(part[language].iloc[0])
    texts = part[[*keep, text, "hypothesis"]]
    if code == "ja" and READINGS.errors in part.columns:
        return score(texts, reference=text, hypothesis="hypothesis", language="ja", unit="reading")
    if code is None or code == "ja" or "tolerant_errors" not in part.columns:
        return part
    # The same texts with the notation of the reference, so that tests by place see what the rate counts.
    has_tolerant = part["tolerant_errors"].notna()
    forgiven = [
        classify_differences(reference, hypothesis, code).tolerant if is_scored else hypothesis
        for reference, hypothesis, is_scored in zip(part[text], part["hypothesis"], has_tolerant, strict=True)
    ]
    scored = score(texts.assign(hypothesis=forgiven), reference=text, hypothesis="hypothesis", language=code)
    return scored.assign(errors=part["tolerant_errors"].where(has_tolerant, scored["errors"]))
