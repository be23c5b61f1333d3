"""Normalizers by name or by language."""

from __future__ import annotations

import copyreg
from collections.abc import Callable

from speechlab.errors import InvalidRequestError
from speechlab.text._language_codes import language_code
from speechlab.text._languages.amounts import BASIC_MONEY
from speechlab.text._languages.chinese import build_chinese_normalizer
from speechlab.text._languages.english import ENGLISH, OPEN_ASR
from speechlab.text._languages.japanese import JAPANESE, JAPANESE_READING
from speechlab.text._normalizer import Normalizer
from speechlab.text._steps import (
    COLLAPSE,
    COMPOSE,
    INVISIBLE,
    LOWER,
    LOWER_TURKIC,
    MINUS,
    PUNCTUATION_TO_SPACE,
    WIDTH,
)

# Names for :func:`normalizer`.
NORMALIZERS = ("basic", "en", "ja", "ja-reading", "none", "open-asr", "tr", "zh")

_NONE = Normalizer("none", 1)
_AFTER_CASE = (BASIC_MONEY, MINUS, PUNCTUATION_TO_SPACE, COMPOSE, COLLAPSE)
_BASIC = Normalizer("basic", 5, (INVISIBLE, WIDTH, LOWER, *_AFTER_CASE))
_TURKIC = Normalizer("tr", 1, (INVISIBLE, WIDTH, LOWER_TURKIC, *_AFTER_CASE))
# Cantonese is written in the characters of Chinese.
_CHINESE = ("zh", "yue")
_BY_NAME = {"none": _NONE, "basic": _BASIC, "en": ENGLISH, "ja": JAPANESE, "ja-reading": JAPANESE_READING}
_BY_NAME |= {"open-asr": OPEN_ASR, "tr": _TURKIC, "az": _TURKIC}


def normalizer(name: str) -> Normalizer:
    """Return the normalizer of a name or of a language.

    Args:
        name: ``"none"`` (changes nothing), ``"basic"`` (case, punctuation and width, for any language), ``"en"``,
            ``"ja"``, ``"ja-reading"`` (the normalizer before a reading), ``"open-asr"`` (English, as the Open ASR
            Leaderboard), ``"tr"`` (``basic`` with the small letters of Turkish and Azerbaijani, İ/i and I/ı) or
            ``"zh"``; an id such as ``"ja-v7"``; or any language tag: a language without rules of its own gets
            ``basic``.

    Raises:
        InvalidRequestError: There is no such normalizer, language or version.

    Example:
        >>> normalizer("en")("It’s £20, Mr. Brown!")
        'it is £20 mister brown'
    """
    named: object = name
    if not isinstance(named, str):
        message = f"a normalizer is named by a str, not {named!r}; use one of {', '.join(NORMALIZERS)}"
        raise InvalidRequestError(message, parameter="normalize")
    lower = name.strip().lower()
    key, mark, number = lower.rpartition("-v")
    version = int(number) if mark and number.isdecimal() else None
    key = lower if version is None else key
    if key == "zh-unconverted":
        key = "zh"
    match = _BY_NAME.get(key) or (build_chinese_normalizer() if key == "zh" else None)
    if match is None:
        try:
            code = language_code(key)
        except InvalidRequestError:
            names = ", ".join(NORMALIZERS)
            message = f"there is no normalizer {name!r}; use one of {names}, or a language code such as 'de'"
            raise InvalidRequestError(message, parameter="normalize") from None
        match = build_chinese_normalizer() if code in _CHINESE else _BY_NAME.get(code, _BASIC)
    if version is not None and version != match.version:
        message = f"there is no normalizer {name!r} in this release of speechlab; it has {match.id!r}"
        raise InvalidRequestError(message, parameter="normalize")
    return match


def _reduce_normalizer_for_pickle(rules: Normalizer) -> tuple[Callable[..., Normalizer], tuple[object, ...]]:
    # Compiled rules cannot be pickled, so the id is sent instead. A process with another version refuses it.
    try:
        is_named = normalizer(rules.id) is rules
    except InvalidRequestError:
        is_named = False
    return (normalizer, (rules.id,)) if is_named else (Normalizer, (rules.name, rules.version, rules.steps))


# Registered here because the class does not know the names of the normalizers.
copyreg.pickle(Normalizer, _reduce_normalizer_for_pickle)
