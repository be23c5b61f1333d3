"""Comparison of two texts by the rules of their language."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from importlib.util import find_spec

from rapidfuzz.distance import Levenshtein

from speechlab._arguments import check_text
from speechlab.errors import InvalidRequestError
from speechlab.metrics._differences.chinese import classify_chinese_differences
from speechlab.metrics._differences.differences import (
    CLASSES,
    DifferenceClass,
    TextComparison,
    build_differences_and_tolerant_text,
)
from speechlab.metrics._differences.english_classes import compare_english
from speechlab.metrics._differences.japanese import classify_japanese_differences
from speechlab.metrics._differences.japanese_readings import find_nearest_reading
from speechlab.text import language_code, normalizer

_CLASSIFIERS = {"ja": classify_japanese_differences, "zh": classify_chinese_differences}
# Scores, rankings, findings and pages of a study compare the same pairs of texts, of which so many are kept (about a
# kilobyte each) if they have at most so many characters.
_PAIRS_KEPT, _LONG_TEXTS = 32_768, 1_000
_PACKAGES = {"ja": "pyopenjtalk", "zh": "pypinyin"}


def has_difference_classes(language: str | None) -> bool:
    """Whether differences in a language have classes, and the package with its pronunciations is installed."""
    return language in CLASSES and (language not in _PACKAGES or find_spec(_PACKAGES[language]) is not None)


def classify_differences(reference: str, hypothesis: str, language: str) -> TextComparison:
    """Class each difference between two texts.

    Args:
        reference: Reference.
        hypothesis: Hypothesis.
        language: ``"en"``, ``"ja"`` or ``"zh"``, or a tag such as ``"ja-JP"``.

    Raises:
        InvalidRequestError: A text is not a str, or the language has no classes.
        MissingDependencyError: The package with the pronunciations of Japanese (the extra ``ja``) or Chinese (the
            extra ``zh``) is not installed.

    Example:
        >>> [
        ...     (d.kind, d.reference, d.hypothesis)
        ...     for d in classify_differences("10:35, they're", "10.35, there", "en").differences
        ... ]
        [('notation', '10:35', '10.35'), ('homophone', "they're", 'there')]
    """
    check_text(reference, "reference")
    check_text(hypothesis, "hypothesis")
    code = language_code(language)
    if code not in CLASSES:
        message = (
            f"differences in {language!r} have no classes; the languages that have are {', '.join(CLASSES)}"
        )
        raise InvalidRequestError(message, parameter="language")
    if len(reference) + len(hypothesis) > _LONG_TEXTS:
        return _classify_differences.__wrapped__(reference, hypothesis, code)
    return _classify_differences(reference, hypothesis, code)


@lru_cache(_PAIRS_KEPT)
def _classify_differences(reference: str, hypothesis: str, code: str) -> TextComparison:
    rules = normalizer(code)
    return compare_normalized(reference, hypothesis, rules(reference), rules(hypothesis), code)


def rewrite_as_reference(
    comparison: TextComparison, kinds: Collection[DifferenceClass], language: str
) -> str:
    """Return the hypothesis as the reference has it in differences of some classes, which can be read alike.

    Japanese words with several readings are written in kana, with the reading that is nearest to the reference.
    """

    def choose_reference_text(kind: DifferenceClass, old: str, new: str) -> str | None:
        if kind in kinds:
            return old
        return find_nearest_reading(old, new) or None if language == "ja" and old and new else None

    return comparison.rewrite(choose_reference_text)


def compare_normalized(
    reference: str, hypothesis: str, one: str, other: str, language: str
) -> TextComparison:
    """Class each difference between two texts with known normalized forms."""
    if len(reference) + len(hypothesis) > _LONG_TEXTS:
        return _compare_normalized.__wrapped__(reference, hypothesis, one, other, language)
    return _compare_normalized(reference, hypothesis, one, other, language)


@lru_cache(_PAIRS_KEPT)
def _compare_normalized(
    reference: str, hypothesis: str, one: str, other: str, language: str
) -> TextComparison:
    if language == "en":
        return compare_english(reference, hypothesis, one, other)
    if one == other:
        return TextComparison(one, other, other, (), 0)
    # In a fixed order, because classes must not depend on which side is the reference.
    if other < one:
        classified = [
            (kind, (*span[2:], *span[:2]))
            for kind, span in _CLASSIFIERS[language]((hypothesis, reference), other, one)
        ]
    else:
        classified = list(_CLASSIFIERS[language]((reference, hypothesis), one, other))
    differences, tolerant = build_differences_and_tolerant_text(one, other, classified)
    errors = Levenshtein.distance(one, tolerant)
    return TextComparison(one, other, tolerant, differences, errors, tuple(classified))
