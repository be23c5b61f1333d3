"""The English normalizers: Whisper's, which is also the base of the Open ASR Leaderboard's, as inspectable steps.

The rules (fillers, contractions, numbers, spellings) come from the package ``whisper-normalizer``. There are seven
additions. Without them, the error rate would count false errors or miss real ones:

- compatibility forms become one form (NFKC);
- curly apostrophes become straight ones (don’t is don't);
- words of signs alone are removed (``wait...`` would become ``wait .``);
- white space at both ends is removed;
- sums of money may have the sign after the number, or letters before the sign;
- minus signs are kept (``-5`` would become ``5``, but ``minus five`` would not);
- zeros that begin a code of three figures or more are kept (``007123`` would become ``7123``, but ``zero zero seven``
  would not). Times and dates lose theirs (``08:30``).

On plain ASCII text, only the last five change the package's result. Words in brackets are removed, as by the package.

Source: A. Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, appendix C (2022).

The normalizer of the Open ASR Leaderboard is as it stood in August 2026 (commit d1e99b2 of
huggingface/open_asr_leaderboard, folder ``normalizer``): Whisper's with more fillers, fewer contractions, American
spellings, names and compounds of its own, and spelled letters joined (b b c is bbc). Nothing is added, so that its
texts are those of the leaderboard.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, cast

from speechlab.text._languages.amounts import ENGLISH_MONEY, ENGLISH_US_DOLLARS
from speechlab.text._normalizer import Normalizer, Step
from speechlab.text._steps import COLLAPSE, INVISIBLE, LOWER, WIDTH, build_substitution_step
from speechlab.text._third_party import load_optional_module

_QUOTES = "\u2018\u2019\u201b\u02bc\u02b9\u2032`´"
_KEPT = ".%$¢€£"
_ONE_WORD = re.compile(r"\\b(\w+)\\b")
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"0\d\d+")


@cache
def load_whisper_normalizer() -> Any:
    """Return the package's normalizer, which has the tables."""
    return load_optional_module("whisper_normalizer.english").EnglishTextNormalizer()


def load_whisper_spellings() -> dict[str, str]:
    """British spellings and their American ones."""
    return cast("dict[str, str]", load_whisper_normalizer().standardize_spellings.mapping)


# The package's functions are slow even for texts that they do not change. So each step first checks the words of a
# text, and applies the package's rules only if one of them could match.


def build_fillers_step(pattern: Callable[[], str]) -> Step:
    """Return a step that removes the words of a pattern of fillers."""

    @cache
    def compile_pattern_and_fillers() -> tuple[re.Pattern[str], list[str]]:
        # Shortest parts that every filler has one of.
        names = re.findall("[a-z]+", pattern().replace("\\b", ""))
        return re.compile(pattern()), [
            name for name in names if not any(shorter in name for shorter in names if shorter != name)
        ]

    def apply(text: str) -> str:
        pattern, fillers = compile_pattern_and_fillers()
        for filler in fillers:
            if filler in text:
                return pattern.sub("", text)
        return text

    return Step("fillers", apply, pattern)


def build_contractions_step(replacers: Callable[[], dict[str, str]]) -> Step:
    """Return a step that replaces patterns one after the other."""

    @cache
    def compile_rules() -> tuple[list[tuple[re.Pattern[str], str, str | None]], frozenset[str]]:
        # Pattern, replacement, and the word to match if the pattern is a single word, else None.
        rules = []
        for pattern, new in replacers().items():
            match = _ONE_WORD.fullmatch(pattern)
            rules.append((re.compile(pattern), new, match[1] if match else None))
        return rules, frozenset(word for _, _, word in rules if word)

    def apply(text: str) -> str:
        rules, words = compile_rules()
        present = words.intersection(_WORD.findall(text))
        if not present and "'" not in text:
            return text
        for pattern, new, word in rules:
            if word is None or word in present:
                text = pattern.sub(new, text)
        return text

    return Step("contractions", apply, lambda: json.dumps(replacers()))


def build_spellings_step(name: str, table: Callable[[], dict[str, str]]) -> Step:
    """Return a step that writes each word as a table has it."""

    def apply(text: str) -> str:
        words, spelling_of = text.split(), table()
        return " ".join(
            words if spelling_of.keys().isdisjoint(words) else [spelling_of.get(word, word) for word in words]
        )

    return Step(name, apply, lambda: json.dumps(table(), sort_keys=True))


class _Symbols(dict[int, str]):
    """The package's results for decomposed characters, for ``str.translate``; filled on first use."""

    def __missing__(self, code: int) -> str:
        remove = load_optional_module("whisper_normalizer.basic").remove_symbols_and_diacritics
        value = self[code] = cast("str", remove(chr(code), keep=_KEPT))
        return value


_symbol = _Symbols()


def _replace_symbols(text: str) -> str:
    if text.isascii() and text.replace(" ", "").isalnum():
        return text
    return (text if text.isascii() else unicodedata.normalize("NFKD", text)).translate(_symbol)


# A study normalizes the same texts for its scores, its ranking and its page; so many are kept, if they are short.
_TEXTS_KEPT, _LONG_TEXT = 32_768, 500


@cache
def _list_number_words() -> frozenset[str]:
    """Words that can be part of a number, with "half" and without "and", which alone is not part of a number."""
    return frozenset({*load_whisper_normalizer().standardize_numbers.words, "half"} - {"and"})


def _normalize_numbers(text: str, write: Callable[[Any, str], str]) -> str:
    words = text.split()
    if _list_number_words().isdisjoint(words) and not _DIGIT.search(text):
        return " ".join(words)
    if len(text) > _LONG_TEXT:
        return _write_numbers.__wrapped__(text, write)
    return _write_numbers(text, write)


@lru_cache(_TEXTS_KEPT)
def _write_numbers(text: str, write: Callable[[Any, str], str]) -> str:
    try:
        return write(load_whisper_normalizer().standardize_numbers, text)
    except (AssertionError, ArithmeticError, IndexError, TypeError, ValueError):
        # The package's state machine fails on some nonsense, such as "$ . double ten". The numbers of such a text
        # stay as they are, in references and in hypotheses.
        return text


def _write_all_numbers(rules: Any, text: str) -> str:
    return cast("str", rules(text))


def _write_numbers_except_codes(rules: Any, text: str) -> str:
    """Write numbers by the package's rules, but for codes with a leading zero, which it would take for values."""
    if not _CODE.search(text):
        return cast("str", rules(text))
    written: list[str | None] = []
    between: list[str] = []
    for word in [*rules.preprocess(text).split(), None]:
        if word is not None and not _CODE.fullmatch(word):
            between.append(word)
            continue
        written += rules.process_words(between)
        if word is not None:
            written.append(word)
        between = []
    return cast("str", rules.postprocess(" ".join(word for word in written if word is not None)))


def _dump_number_rules() -> str:
    tables = sorted(vars(load_whisper_normalizer().standardize_numbers).items())
    return json.dumps({key: sorted(value) for key, value in tables})


BRACKETS = (
    build_substitution_step("brackets", r"[<\[][^>\]]*[>\]]", "", "<[", ">]"),
    build_substitution_step("parentheses", r"\(([^)]+?)\)", "", "(", ")"),
)


def _remove_spaces_before_apostrophes(text: str) -> str:
    """Remove white space before apostrophes, in linear time."""
    *parts, last = text.split("'")
    return "'".join([*map(str.rstrip, parts), last])


APOSTROPHES = Step("space before apostrophe", _remove_spaces_before_apostrophes, "\\s+'\x00'")
COMMAS = build_substitution_step("grouping commas", r"(\d),(\d)", r"\1\2", ",")
FULL_STOPS = build_substitution_step("full stops", r"\.([^0-9]|$)", r" \1", ".")
SYMBOLS = Step("symbols", _replace_symbols, f"NFKD, categories M, S and P, except {_KEPT}")
NUMBERS = Step("numbers", lambda text: _normalize_numbers(text, _write_all_numbers), _dump_number_rules)
NUMBERS_AND_CODES = Step(
    "numbers",
    lambda text: _normalize_numbers(text, _write_numbers_except_codes),
    lambda: f"{_dump_number_rules()}|{_CODE.pattern}",
)
LONE_SIGNS = (
    build_substitution_step("lone signs", r"[.$¢€£]([^0-9])", r" \1", ".$¢€£"),
    build_substitution_step("lone percent", r"([^0-9])%", r"\1 ", "%"),
)

ENGLISH = Normalizer(
    "en",
    4,
    (
        INVISIBLE,
        WIDTH,
        LOWER,
        build_substitution_step("apostrophes", f"[{_QUOTES}]", "'", _QUOTES),
        *BRACKETS,
        build_fillers_step(lambda: str(load_whisper_normalizer().ignore_patterns)),
        APOSTROPHES,
        build_contractions_step(lambda: dict(load_whisper_normalizer().replacers)),
        COMMAS,
        ENGLISH_MONEY,
        build_substitution_step("minus", r"(?<![\w.,)$€£¢%-])[-−](?=[$€£¢]?[0-9])", "minus ", "-−"),
        FULL_STOPS,
        SYMBOLS,
        NUMBERS_AND_CODES,
        ENGLISH_US_DOLLARS,
        build_spellings_step("spellings", load_whisper_spellings),
        *LONE_SIGNS,
        build_substitution_step("words of signs", r"(?<!\S)[.$¢€£%]+(?!\S)", "", ".$¢€£%"),
        COLLAPSE,
    ),
)


_FILLERS = r"\b(hmm|mm|mhm|mmm|uh|um|ah|aha|ahh|ahm|eh|ehehe|em|hm|huh|hum|mhum|uhm|umm|uhuh)\b"
_POSSESSIVE = "'s\\b"
_IS = r"\b(it|he|she|what|that|who|here|there|how|when|where|why|this)'s\b"
_NOT_EXPANDED = (r"\bkinda\b", r"\bsorta\b", r"\bdunno\b", r"\bcause\b")
_COMMON = {"a", "i"}


@cache
def _load_open_asr_tables() -> dict[str, dict[str, str]]:
    """Return the leaderboard's own spellings, names and compounds: another form and the one that counts."""
    lines = (files(__package__) / "open_asr.tsv").read_text(encoding="utf-8").splitlines()[1:]
    tables: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(lines, delimiter="\t"):
        forms = dict.fromkeys(row["others"].split(", "), row["one"])
        tables[row["kind"]] = tables.get(row["kind"], {}) | forms
    return tables


def _build_contractions() -> dict[str, str]:
    rules = {old: new for old, new in load_whisper_normalizer().replacers.items() if old not in _NOT_EXPANDED}
    return dict((_IS, r"\1 is") if old == _POSSESSIVE else (old, new) for old, new in rules.items())


@cache
def _build_spellings() -> dict[str, str]:
    return load_whisper_spellings() | _load_open_asr_tables()["spelling"]


@cache
def _compile_compounds() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(_load_open_asr_tables()['compound'])})\b".replace(" ", r"\s+"))


def _join_compounds(text: str) -> str:
    return _compile_compounds().sub(
        lambda found: _load_open_asr_tables()["compound"][" ".join(found[0].split())], text
    )


def _join_acronyms(text: str) -> str:
    """Letters and figures that stand alone, side by side, as one word; of "a" and "i" only in three or more."""
    joined: list[str] = []
    run: list[str] = []
    for word in [*text.split(), ""]:
        if len(word) == 1 and word.isalnum():
            run.append(word)
            continue
        together = len(run) >= (2 if _COMMON.isdisjoint(run) else 3)
        joined += ["".join(run)] if together else run
        run = []
        joined.append(word)
    return " ".join(joined[:-1])


OPEN_ASR = Normalizer(
    "open-asr",
    1,
    (
        Step("lower case", str.lower, "str.lower"),
        *BRACKETS,
        build_fillers_step(lambda: _FILLERS),
        APOSTROPHES,
        build_contractions_step(_build_contractions),
        COMMAS,
        FULL_STOPS,
        SYMBOLS,
        Step("compounds", _join_compounds, lambda: json.dumps(_load_open_asr_tables()["compound"])),
        NUMBERS,
        build_spellings_step("spellings", _build_spellings),
        build_spellings_step("names", lambda: _load_open_asr_tables()["name"]),
        Step("acronyms", _join_acronyms, "single letters and figures in a row, two; three with a or i"),
        *LONE_SIGNS,
        COLLAPSE,
    ),
)
