"""Units of counting: the conversion of a text into words, characters, kana or syllables.

A :class:`Preparation` is the complete conversion from a text to its tokens, with its description for a signature.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias, get_args

from speechlab._arguments import build_argument_error, is_bool
from speechlab._platform import find_installed_version
from speechlab._traces import warn_user
from speechlab.errors import InvalidRequestError
from speechlab.metrics._inputs import check_choice
from speechlab.text import (
    Normalizer,
    Step,
    find_differing_runs,
    get_language_name,
    hash_function,
    language_code,
    looks_unspaced,
    normalizer,
    pinyin,
    to_reading_key,
    writes_without_spaces,
)

# Cells of the table; in longer pairs, each difference between equal words has a table of its own.
_MAX_CELLS = 250_000


def to_normalizer(function: Callable[[str], str]) -> Normalizer:
    """Return a function as a normalizer of one step, unless it is a normalizer."""
    if isinstance(function, Normalizer):
        return function
    return Normalizer("custom", 0, (Step("custom", function),))


def build_variant_normalizer(
    normalize: Callable[[str], str], groups: Iterable[Iterable[str]]
) -> tuple[Callable[[str], str], str]:
    """Return a function that also writes the words of each group as the first of them, and a hash of the groups."""
    forms: dict[str, str] = {}
    for group in groups:
        names = [] if isinstance(group, str) else [normalize(name) for name in group]
        if len(names) < 2 or not all(names):
            message = f"variants={group!r:.60}: give at least two words or phrases that count as one"
            raise InvalidRequestError(message, parameter="variants")
        for name in names:
            if forms.setdefault(name, names[0]) != names[0]:
                message = f"{name!r:.60} is in two groups; put all that count as one into one group"
                raise InvalidRequestError(message, parameter="variants")
    if not forms:
        return normalize, ""
    # Japanese and Chinese have no blanks between words.
    longest = sorted(map(re.escape, forms), key=len)[::-1]
    pattern = re.compile("|".join(rf"(?<!\w){name}(?!\w)" if name.isascii() else name for name in longest))
    content = f"{sorted(forms.items())}"
    step = Step("variants", lambda text: pattern.sub(lambda found: forms[found[0]], text), content)
    rules = to_normalizer(normalize)
    marked = Normalizer(rules.name, rules.version, (*rules.steps, step))
    return marked, hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def adopt_compounds(said: list[str], recognized: list[str]) -> list[str]:
    """The hypotheses with the compounds of their references: "whitepaper" for "white paper", and the reverse."""
    return [
        second if first == second else " ".join(_adopt_word_compounds(first.split(), second.split()))
        for first, second in zip(said, recognized, strict=True)
    ]


def _adopt_word_compounds(one: list[str], other: list[str]) -> list[str]:
    if len(one) * len(other) <= _MAX_CELLS:
        return _adopt_cheapest_compounds(one, other)
    words: list[str] = []
    copied = 0
    for i0, i1, j0, j1 in find_differing_runs(one, other):
        words += other[copied:j0]
        small = (i1 - i0) * (j1 - j0) <= _MAX_CELLS
        words += _adopt_cheapest_compounds(one[i0:i1], other[j0:j1]) if small else other[j0:j1]
        copied = j1
    return words + other[copied:]


def _adopt_cheapest_compounds(one: list[str], other: list[str]) -> list[str]:
    """Return the words of the hypothesis, with those of the reference where the cheapest path merges them."""
    steps: dict[tuple[int, int], tuple[int, int]] = {}
    steps |= {(i, j): (count, 1) for i, j, count in _find_compounds(one, other)}
    steps |= {(i, j): (1, count) for j, i, count in _find_compounds(other, one)}
    if not steps:
        return other
    costs = [list(range(len(other) + 1))]
    for i, word in enumerate(one, 1):
        row = [i]
        above = costs[-1]
        for j, token in enumerate(other, 1):
            cost = min(above[j - 1] + (word != token), above[j] + 1, row[j - 1] + 1)
            step = steps.get((i, j))
            if step:
                cost = min(cost, costs[i - step[0]][j - step[1]] if step[0] > 1 else above[j - step[1]])
            row.append(cost)
        costs.append(row)
    words: list[str] = []
    i, j = len(one), len(other)
    while j:
        step = steps.get((i, j))
        if step and costs[i - step[0]][j - step[1]] == costs[i][j]:
            words += reversed(one[i - step[0] : i])
            i, j = i - step[0], j - step[1]
        elif i and costs[i - 1][j - 1] + (one[i - 1] != other[j - 1]) == costs[i][j]:
            words.append(other[j - 1])
            i, j = i - 1, j - 1
        elif i and costs[i - 1][j] + 1 == costs[i][j]:
            i -= 1
        else:
            words.append(other[j - 1])
            j -= 1
    return words[::-1]


def _find_compounds(parts: list[str], wholes: list[str]) -> Iterator[tuple[int, int, int]]:
    """Ends of adjacent words and of the one word that they are together, and how many they are."""
    places: dict[str, list[int]] = {}
    for place, compound in enumerate(wholes, 1):
        places.setdefault(compound, []).append(place)
    longest = max(map(len, wholes), default=0)
    for start, word in enumerate(parts):
        joined = word
        for end in range(start + 1, len(parts)):
            joined += parts[end]
            if len(joined) > longest:
                break
            for place in places.get(joined, ()):
                yield end + 1, place, end + 1 - start


Unit: TypeAlias = Literal["word", "char", "reading", "pinyin", "toneless"]
Normalize: TypeAlias = str | Normalizer | Callable[[str], str] | None
# Groups of words or phrases that count as one.
Variants: TypeAlias = Iterable[Iterable[str]]
# Characters stay one str, which rapidfuzz compares many times faster than a list.
Tokens: TypeAlias = str | Sequence[str]

_UNITS: tuple[str, ...] = get_args(Unit)
# Units of sound, and the language of each.
SPOKEN_LANGUAGES = {"reading": "ja", "pinyin": "zh", "toneless": "zh"}
# The normalizers before them, for whose texts differences have classes.
_SPOKEN_NORMALIZERS = {"reading": "ja-reading", "pinyin": "zh", "toneless": "zh"}
_SAMPLE_SIZE = 100


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

    @property
    def has_alternative_readings(self) -> bool:
        """Whether tokens are readings of texts after the normalizer for which differences have classes."""
        name = _SPOKEN_NORMALIZERS.get(self.unit)
        return name is not None and self.normalize is normalizer(name)

    def normalize_texts(self, texts: list[str]) -> list[str]:
        """Normalize texts; a ``Normalizer`` normalizes each distinct text once."""
        if isinstance(self.normalize, Normalizer):
            if not self.normalize.steps:
                return texts
            return self.normalize.many(texts)
        return [self.normalize(text) for text in texts]

    def to_canonical(self, normalized: list[str]) -> list[str]:
        """Normalized texts as the input of :meth:`cut`."""
        if self.unit == "word":
            return normalized
        if self.unit == "char":
            return list(map(str.strip, normalized))
        if self.unit == "reading":
            return list(map(to_reading_key, normalized))
        return [" ".join(pinyin(text, tone=self.unit == "pinyin")) for text in normalized]

    def build_signature(self, *, also: Iterable[str] = ()) -> str:
        """Return the computation of the figures of this unit, in one line."""
        fields = {
            "unit": self.unit,
            "lang": self.language or "any",
            "norm": self.normalizer,
            **({"variants": self.variants} if self.variants else {}),
            **({"compounds": "merged"} if self.merge_compounds else {}),
            "rapidfuzz": find_installed_version("rapidfuzz"),
            "unicode": unicodedata.unidata_version,
            "speechlab": find_installed_version("speechlab"),
        }
        units = {self.unit, *also}
        if "reading" in units:
            fields["openjtalk"] = find_installed_version("pyopenjtalk-plus")
            fields["sudachi"] = find_installed_version("sudachidict-core")
        if units & {"pinyin", "toneless"}:
            fields["pypinyin"] = find_installed_version("pypinyin")
        return "|".join(f"{key}:{value or 'none'}" for key, value in fields.items())

    def tokenize_canonical(self, canonical: str) -> Tokens:
        """Cut a canonical text into tokens."""
        return canonical if self.unit in {"char", "reading"} else canonical.split()

    def tokenize(self, text: str) -> Tokens:
        """Normalize a text and cut it into tokens."""
        return self.tokenize_normalized(self.normalize(text))

    def tokenize_normalized(self, normalized: str) -> Tokens:
        """Cut a normalized text into tokens."""
        return self.tokenize_canonical(*self.to_canonical([normalized]))


def build_preparation(
    unit: str,
    language: str | None,
    normalize: Normalize,
    variants: Variants = (),
    *,
    merge_compounds: bool = False,
) -> Preparation:
    """Return the preparation for a unit, a language and a normalizer."""
    check_choice(unit, _UNITS, "unit", "there is no unit")
    if not is_bool(merge_compounds):
        raise build_argument_error("merge_compounds", merge_compounds, "True or False")
    code = None if language is None else language_code(language)
    spoken_language = SPOKEN_LANGUAGES.get(unit)
    if spoken_language and code not in {None, spoken_language}:
        message = (
            f"unit={unit!r} is for {get_language_name(spoken_language)}, not for {language!r}; use unit='char' or "
            "unit='word'"
        )
        raise InvalidRequestError(message, parameter="unit")
    if unit == "word" and code is not None and writes_without_spaces(code) and _is_auto(normalize):
        message = (
            f"{language!r} does not put spaces between words, so a word error rate would count sentences; use "
            "unit='char' (or 'reading' for Japanese), or split both texts into words first and pass normalize=None"
        )
        raise InvalidRequestError(message, parameter="unit")
    function, name = _resolve_normalizer(unit, code, normalize)
    function, marked = build_variant_normalizer(function, variants)
    merged = merge_compounds and unit == "word"
    return Preparation(unit, code, function, name, marked, merged)  # type: ignore[arg-type]  # the unit is checked above


def warn_if_unspaced(texts: Sequence[str], remedy: str) -> None:
    """Warn of texts without spaces between words if they are to be split at white space."""
    if _are_unspaced(texts):
        message = f"these texts have no spaces between words, and a sentence is taken for one word; {remedy}"
        warn_user(message, stacklevel=3)


def refuse_unspaced(texts: Sequence[str], unit: str, language: str | None, normalize: Normalize) -> None:
    """Refuse texts without spaces between words where their sentences would count as words."""
    if unit == "word" and language is None and _is_auto(normalize) and _are_unspaced(texts):
        message = (
            "these texts have no spaces between words, so that sentences would count as words; name the language and "
            "count characters: language='ja', unit='char'"
        )
        raise InvalidRequestError(message, parameter="language")


def _are_unspaced(texts: Sequence[str]) -> bool:
    some = [text for text in texts[: 10 * _SAMPLE_SIZE] if text][:_SAMPLE_SIZE]
    return 2 * sum(map(looks_unspaced, some)) > len(some)


def choose_unit(language: str) -> Unit:
    """Characters for languages without spaces between words, words for all others."""
    return "char" if writes_without_spaces(language_code(language)) else "word"


def _resolve_normalizer(
    unit: str, code: str | None, normalize: Normalize
) -> tuple[Callable[[str], str], str]:
    if _is_auto(normalize):
        # Without a language, texts are compared as they are, as in jiwer.
        normalize = _SPOKEN_NORMALIZERS.get(unit, code)
    if normalize is None:
        normalize = "none"
    if isinstance(normalize, str):
        normalize = normalizer(normalize)
    if isinstance(normalize, Normalizer):
        return normalize, normalize.signature
    function: object = normalize  # type hints are not enforced at run time
    if not callable(function):
        message = (
            f"normalize={normalize!r:.60} cannot normalize texts; give 'auto', None, a name, a Normalizer, or a "
            "function from str to str"
        )
        raise InvalidRequestError(message, parameter="normalize")
    # With a hash of its code and values, because all lambdas have the same name.
    inner = normalize.func if isinstance(normalize, partial) else normalize
    name = str(getattr(inner, "__qualname__", type(inner).__qualname__)).replace("|", "/")
    return _wrap_normalizer_with_check(normalize), f"custom:{name}#{hash_function(normalize)}"


def _wrap_normalizer_with_check(function: Callable[[str], str]) -> Callable[[str], str]:
    def normalize_and_check_text(text: str) -> str:
        after: object = function(text)
        if not isinstance(after, str):
            message = (
                f"normalize returned {after!r:.60} ({type(after).__name__}) for {text!r:.60}; it must return a "
                "str"
            )
            raise InvalidRequestError(message, parameter="normalize")
        return after

    return normalize_and_check_text


def _is_auto(normalize: object) -> bool:
    return isinstance(normalize, str) and normalize == "auto"
