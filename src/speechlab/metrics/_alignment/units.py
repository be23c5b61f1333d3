"""Units of counting: the conversion of a text into words, characters, kana or syllables.

A :class:`Preparation` is the complete conversion from a text to its tokens, with its description for a signature.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias, get_args

from speechlab._arguments import is_bool, refused
from speechlab._platform import installed_version
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.merging import with_variants
from speechlab.metrics._arguments import check_choice
from speechlab.text import (
    Normalizer,
    function_hash,
    language_code,
    language_name,
    looks_unspaced,
    normalizer,
    pinyin,
    reading_key,
    writes_without_spaces,
)

Unit: TypeAlias = Literal["word", "char", "reading", "pinyin", "toneless"]
Counts: TypeAlias = Literal["levenshtein", "sclite"]
Normalize: TypeAlias = str | Normalizer | Callable[[str], str] | None
Variants: TypeAlias = Iterable[Iterable[str]]
"""Groups of words or phrases that count as one."""
# Characters stay one str, which rapidfuzz compares many times faster than a list.
Tokens: TypeAlias = str | Sequence[str]

_UNITS: tuple[str, ...] = get_args(Unit)
# Units of sound, and the language of each.
_SPOKEN = {"reading": "ja", "pinyin": "zh", "toneless": "zh"}
_LOOKED_AT = 100


@dataclass(frozen=True)
class Preparation:
    """The conversion from a text to its tokens."""

    unit: Unit  # the unit of counting
    language: str | None  # ISO 639-1 code, or None if it was not given
    normalize: Callable[[str], str] = field(repr=False)  # function from text to comparable text
    normalizer: str  # name of this function in the signature
    variants: str = ""  # hash of the words that count as one; empty for none
    merge_compounds: bool = False  # words written together or apart are alike

    @property
    def separator(self) -> str:
        """Text between two tokens for display."""
        return "" if self.unit in {"char", "reading"} else " "

    def normalized(self, texts: list[str]) -> list[str]:
        """Normalise texts; a ``Normalizer`` normalises each distinct text once."""
        if isinstance(self.normalize, Normalizer):
            if not self.normalize.steps:
                return texts
            return self.normalize.many(texts)
        return [self.normalize(text) for text in texts]

    def canonical(self, texts: list[str]) -> list[str]:
        """Normalise texts into the input of :meth:`cut`.

        An error rate keeps only these canonical texts: lists of words for many texts would take more time and memory
        than the comparison.
        """
        return self.canonical_of(self.normalized(texts))

    def canonical_of(self, normalized: list[str]) -> list[str]:
        """The canonical texts of normalised texts."""
        if self.unit == "char":
            return list(map(str.strip, normalized))
        return normalized if self.unit == "word" else [_spoken(text, self.unit) for text in normalized]

    def signature(self, counts: Counts, *, also: Iterable[str] = ()) -> str:
        """The computation of the figures of this unit, in one line."""
        fields = {
            "unit": self.unit,
            "lang": self.language or "any",
            "norm": self.normalizer,
            "counts": counts,
            **({"variants": self.variants} if self.variants else {}),
            **({"compounds": "merged"} if self.merge_compounds else {}),
            "rapidfuzz": installed_version("rapidfuzz"),
            "unicode": unicodedata.unidata_version,
            "speechlab": installed_version("speechlab"),
        }
        units = {self.unit, *also}
        if "reading" in units:
            fields["openjtalk"] = installed_version("pyopenjtalk-plus")
            fields["sudachi"] = installed_version("sudachidict-core")
        if units & {"pinyin", "toneless"}:
            fields["pypinyin"] = installed_version("pypinyin")
        return "|".join(f"{key}:{value or 'none'}" for key, value in fields.items())

    def cut(self, canonical: str) -> Tokens:
        """Cut a canonical text into tokens."""
        return canonical if self.unit in {"char", "reading"} else canonical.split()

    def tokens(self, text: str) -> Tokens:
        """Normalise a text and cut it into tokens."""
        return self.split(self.normalize(text))

    def split(self, normalized: str) -> Tokens:
        """Cut a normalised text into tokens."""
        if self.unit == "word":
            return normalized.split()
        return normalized.strip() if self.unit == "char" else self.cut(_spoken(normalized, self.unit))


def _spoken(normalized: str, unit: Unit) -> str:
    if unit == "reading":
        return reading_key(normalized)
    return " ".join(pinyin(normalized, tone=unit == "pinyin"))


def prepare(
    unit: str,
    language: str | None,
    normalize: Normalize,
    variants: Variants = (),
    *,
    merge_compounds: bool = False,
) -> Preparation:
    """The preparation for a unit, a language and a normaliser."""
    check_choice(unit, _UNITS, "unit", "there is no unit")
    code = None if language is None else language_code(language)
    spoken_language = _SPOKEN.get(unit)
    if spoken_language and code not in {None, spoken_language}:
        message = (
            f"unit={unit!r} is for {language_name(spoken_language)}, not for {language!r}; use unit='char' or "
            "unit='word'"
        )
        raise InvalidRequestError(message, parameter="unit")
    if unit == "word" and code is not None and writes_without_spaces(code) and _is_auto(normalize):
        message = (
            f"{language!r} does not put spaces between words, so a word error rate would count sentences; use "
            "unit='char' (or 'reading' for Japanese), or split both texts into words first and pass normalize=None"
        )
        raise InvalidRequestError(message, parameter="unit")
    function, name = _resolve(unit, code, normalize)
    function, marked = with_variants(function, variants)
    merged = merge_compounds and unit == "word"
    return Preparation(unit, code, function, name, marked, merged)  # type: ignore[arg-type]  # the unit is checked above


def check_counts(counts: str, *, merge_compounds: bool = False) -> None:
    """Refuse unknown rules of counting, and sclite's with merged compounds."""
    check_choice(counts, get_args(Counts), "counts", "there are no counts")
    if not is_bool(merge_compounds):
        raise refused("merge_compounds", merge_compounds, "True or False")
    if merge_compounds and counts != "levenshtein":
        message = "merge_compounds=True needs counts='levenshtein': sclite has no such rule"
        raise InvalidRequestError(message, parameter="merge_compounds")


def warn_if_unspaced(texts: Sequence[str], remedy: str, stacklevel: int = 3) -> None:
    """Warn of texts without spaces between words if they are to be split at white space."""
    some = [text for text in texts[: 10 * _LOOKED_AT] if text][:_LOOKED_AT]
    if 2 * sum(map(looks_unspaced, some)) > len(some):
        message = f"these texts have no spaces between words, and a sentence is taken for one word; {remedy}"
        warnings.warn(message, UserWarning, stacklevel=stacklevel)


def auto_unit(language: str) -> Unit:
    """Characters for languages without spaces between words, words for all others."""
    return "char" if writes_without_spaces(language_code(language)) else "word"


def _resolve(unit: str, code: str | None, normalize: Normalize) -> tuple[Callable[[str], str], str]:
    if _is_auto(normalize):
        # Without a language, texts are compared as they are, as in jiwer.
        normalize = {"reading": "ja-reading", "pinyin": "zh", "toneless": "zh"}.get(unit, code)
    if normalize is None:
        normalize = "none"
    if isinstance(normalize, str):
        normalize = normalizer(normalize)
    if isinstance(normalize, Normalizer):
        return normalize, normalize.signature
    function: object = normalize  # type hints are not enforced at run time
    if not callable(function):
        message = (
            f"normalize={normalize!r:.60} cannot normalise texts; give 'auto', None, a name, a Normalizer, or a "
            "function from str to str"
        )
        raise InvalidRequestError(message, parameter="normalize")
    return _checked(normalize), f"custom:{_name(normalize)}"


def _name(function: Callable[[str], str]) -> str:
    """Name of a function, with a hash of its code and values, because all lambdas have the same name."""
    inner = function.func if isinstance(function, partial) else function
    name = str(getattr(inner, "__qualname__", type(inner).__qualname__)).replace("|", "/")
    return f"{name}#{function_hash(function)}"


def _checked(function: Callable[[str], str]) -> Callable[[str], str]:
    def call(text: str) -> str:
        after: object = function(text)
        if not isinstance(after, str):
            message = (
                f"normalize returned {after!r:.60} ({type(after).__name__}) for {text!r:.60}; it must return a "
                "str"
            )
            raise InvalidRequestError(message, parameter="normalize")
        return after

    return call


def _is_auto(normalize: object) -> bool:
    return isinstance(normalize, str) and normalize == "auto"
