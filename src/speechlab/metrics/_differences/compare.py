"""Comparison of two texts by the rules of their language."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from speechlab._arguments import check_text
from speechlab.errors import InvalidRequestError
from speechlab.metrics._differences.chinese import compare_chinese
from speechlab.metrics._differences.differences import CLASSES
from speechlab.metrics._differences.english_classes import compare_english
from speechlab.metrics._differences.japanese import compare_japanese
from speechlab.text import language_code, normalizer

if TYPE_CHECKING:
    from speechlab.metrics._differences.differences import TextComparison

_COMPARE = {"en": compare_english, "ja": compare_japanese, "zh": compare_chinese}
_NEEDS = {"ja": "pyopenjtalk", "zh": "pypinyin"}


def has_classes(language: str | None) -> bool:
    """Whether differences in a language have classes, and the package with its pronunciations is installed."""
    return language in CLASSES and (language not in _NEEDS or find_spec(_NEEDS[language]) is not None)


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
    rules = normalizer(code)
    return compared(reference, hypothesis, rules(reference), rules(hypothesis), code)


def compared(reference: str, hypothesis: str, one: str, other: str, language: str) -> TextComparison:
    """Class each difference between two texts with known normalised forms."""
    return _COMPARE[language](reference, hypothesis, one, other)
