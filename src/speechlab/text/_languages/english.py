"""The English normaliser: the one of Whisper, which the Open ASR Leaderboard builds on, as inspectable steps.

The rules (fillers, contractions, numbers, spellings) come from the package ``whisper-normalizer``; on plain ASCII
text the outcome equals that package's, save for the last two of these four additions, each made because its lack
counts errors that nobody made: compatibility forms (NFKC), curly apostrophes (don’t is don't), no words that are
nothing but signs (``wait...`` would become ``wait .``), and no white space at the ends. Words in brackets are
removed, as there.

Source: A. Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, appendix C (2022).
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, cast

from speechlab.text._normalizer import Normalizer, Step
from speechlab.text._steps import COLLAPSE, INVISIBLE, LOWER, WIDTH, substitution
from speechlab.text._third_party import load

_KEPT = ".%$¢€£"


@cache
def _whisper() -> Any:
    return load("whisper_normalizer.english").EnglishTextNormalizer()


@cache
def _contractions() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern), new) for pattern, new in _whisper().replacers.items()]


def _fillers(text: str) -> str:
    return re.sub(_whisper().ignore_patterns, "", text)


def _expand(text: str) -> str:
    for pattern, new in _contractions():
        text = pattern.sub(new, text)
    return text


def _symbols(text: str) -> str:
    return cast(str, load("whisper_normalizer.basic").remove_symbols_and_diacritics(text, keep=_KEPT))


def _numbers(text: str) -> str:
    try:
        return cast(str, _whisper().standardize_numbers(text))
    except (AssertionError, ArithmeticError, IndexError, TypeError, ValueError):
        # The package's state machine has a few dead ends on nonsense such as "$ . double ten"; a text that
        # it cannot read keeps its numbers as they are, on whichever side it stands.
        return text


def _spellings(text: str) -> str:
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
    1,
    (
        INVISIBLE,
        WIDTH,
        LOWER,
        substitution("apostrophes", "[\u2018\u2019\u201b\u02bc\u02b9\u2032`´]", "'"),
        substitution("brackets", r"[<\[][^>\]]*[>\]]", ""),
        substitution("parentheses", r"\(([^)]+?)\)", ""),
        Step("fillers", _fillers, _rules_of("fillers")),
        substitution("space before apostrophe", r"\s+'", "'"),
        Step("contractions", _expand, _rules_of("contractions")),
        substitution("grouping commas", r"(\d),(\d)", r"\1\2"),
        substitution("full stops", r"\.([^0-9]|$)", r" \1"),
        Step("symbols", _symbols, f"NFKD, categories M, S and P, except {_KEPT}"),
        Step("numbers", _numbers, _rules_of("numbers")),
        Step("spellings", _spellings, _rules_of("spellings")),
        substitution("lone signs", r"[.$¢€£]([^0-9])", r" \1"),
        substitution("lone percent", r"([^0-9])%", r"\1 "),
        substitution("words of signs", r"(?<!\S)[.$¢€£%]+(?!\S)", ""),
        COLLAPSE,
    ),
)
