"""The English normaliser: Whisper's, which is also the base of the Open ASR Leaderboard's, as inspectable steps.

The rules (fillers, contractions, numbers, spellings) come from the package ``whisper-normalizer``. There are six
additions. Without them, the error rate would count false errors or miss real ones:

- compatibility forms become one form (NFKC);
- curly apostrophes become straight ones (don’t is don't);
- words of signs alone are removed (``wait...`` would become ``wait .``);
- white space at both ends is removed;
- sums of money may have the sign after the number, or letters before the sign;
- minus signs are kept (``-5`` would become ``5``, but ``minus five`` would not).

On plain ASCII text, only the last four change the package's result. Words in brackets are removed, as by the package.

Source: A. Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, appendix C (2022).
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple, cast

from speechlab.text._languages.money import ENGLISH_MONEY, ENGLISH_US_DOLLARS
from speechlab.text._normalizer import Normalizer, Step
from speechlab.text._steps import COLLAPSE, INVISIBLE, LOWER, WIDTH, substitution
from speechlab.text._third_party import load

_QUOTES = "\u2018\u2019\u201b\u02bc\u02b9\u2032`´"
_KEPT = ".%$¢€£"
_ONE_WORD = re.compile(r"\\b(\w+)\\b")
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


@cache
def _whisper() -> Any:
    return load("whisper_normalizer.english").EnglishTextNormalizer()


# The package's functions are slow even for texts that they do not change. So each step first checks the words of a
# text, and applies the package's rules only if one of them could match.


class _Contractions(NamedTuple):
    rules: list[tuple[re.Pattern[str], str, str | None]]
    """Pattern, replacement, and the word to match if the pattern is a single word, else None."""
    words: frozenset[str]


@cache
def _contractions() -> _Contractions:
    rules = []
    for pattern, new in _whisper().replacers.items():
        word = _ONE_WORD.fullmatch(pattern)
        rules.append((re.compile(pattern), new, word[1] if word else None))
    return _Contractions(rules, frozenset(word for _, _, word in rules if word))


@cache
def _filler() -> re.Pattern[str]:
    return re.compile(_whisper().ignore_patterns)


@cache
def _filler_words() -> list[str]:
    """Shortest parts that every filler has one of."""
    names = re.findall("[a-z]+", _filler().pattern.replace("\\b", ""))
    return [name for name in names if not any(other in name for other in names if other != name)]


def _fillers(text: str) -> str:
    for name in _filler_words():
        if name in text:
            return _filler().sub("", text)
    return text


def _expand(text: str) -> str:
    rules, words = _contractions()
    there = words.intersection(_WORD.findall(text))
    if not there and "'" not in text:
        return text
    for pattern, new, word in rules:
        if word is None or word in there:
            text = pattern.sub(new, text)
    return text


class _Symbols(dict[int, str]):
    """The package's results for decomposed characters, for ``str.translate``; filled on first use."""

    def __missing__(self, code: int) -> str:
        remove = load("whisper_normalizer.basic").remove_symbols_and_diacritics
        value = self[code] = cast(str, remove(chr(code), keep=_KEPT))
        return value


_symbol = _Symbols()


def _symbols(text: str) -> str:
    if text.isascii() and text.replace(" ", "").isalnum():
        return text
    return (text if text.isascii() else unicodedata.normalize("NFKD", text)).translate(_symbol)


@cache
def _numeric() -> frozenset[str]:
    """Words that can be part of a number, with "half" and without "and", which alone is not part of a number."""
    return frozenset({*_whisper().standardize_numbers.words, "half"} - {"and"})


def _numbers(text: str) -> str:
    words = text.split()
    if _numeric().isdisjoint(words) and not _DIGIT.search(text):
        return " ".join(words)
    try:
        return cast(str, _whisper().standardize_numbers(text))
    except (AssertionError, ArithmeticError, IndexError, TypeError, ValueError):
        # The package's state machine fails on some nonsense, such as "$ . double ten". The numbers of such a text
        # stay as they are, in references and in hypotheses.
        return text


def _spellings(text: str) -> str:
    words = text.split()
    if _whisper().standardize_spellings.mapping.keys().isdisjoint(words):
        return " ".join(words)
    return cast(str, _whisper().standardize_spellings(text))


def _rules_of(part: str) -> Any:
    def content() -> str:
        whisper = _whisper()
        if part == "fillers":
            return str(whisper.ignore_patterns)
        if part == "contractions":
            return json.dumps(whisper.replacers)
        if part == "spellings":
            return json.dumps(whisper.standardize_spellings.mapping, sort_keys=True)
        tables = sorted(vars(whisper.standardize_numbers).items())
        return json.dumps({key: sorted(value) for key, value in tables})

    return content


ENGLISH = Normalizer(
    "en",
    3,
    (
        INVISIBLE,
        WIDTH,
        LOWER,
        substitution("apostrophes", f"[{_QUOTES}]", "'", _QUOTES),
        substitution("brackets", r"[<\[][^>\]]*[>\]]", "", "<["),
        substitution("parentheses", r"\(([^)]+?)\)", "", "("),
        Step("fillers", _fillers, _rules_of("fillers")),
        substitution("space before apostrophe", r"\s+'", "'", "'"),
        Step("contractions", _expand, _rules_of("contractions")),
        substitution("grouping commas", r"(\d),(\d)", r"\1\2", ","),
        ENGLISH_MONEY,
        substitution("minus", r"(?<![\w.,)$€£¢%-])[-−](?=[$€£¢]?[0-9])", "minus ", "-−"),
        substitution("full stops", r"\.([^0-9]|$)", r" \1", "."),
        Step("symbols", _symbols, f"NFKD, categories M, S and P, except {_KEPT}"),
        Step("numbers", _numbers, _rules_of("numbers")),
        ENGLISH_US_DOLLARS,
        Step("spellings", _spellings, _rules_of("spellings")),
        substitution("lone signs", r"[.$¢€£]([^0-9])", r" \1", ".$¢€£"),
        substitution("lone percent", r"([^0-9])%", r"\1 ", "%"),
        substitution("words of signs", r"(?<!\S)[.$¢€£%]+(?!\S)", "", ".$¢€£%"),
        COLLAPSE,
    ),
)
