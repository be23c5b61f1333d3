"""The Japanese normalizers (``ja`` for spelling, ``ja-reading`` for the input of a reading), and words by Sudachi.

Japanese text is never converted to simplified Chinese characters (図書館 would become 図书館), and dakuten are never
removed.

Spellings of one word have the same normalized form in Sudachi: 打合せ and 打ち合わせ, サーバ and サーバー.

Source: K. Takaoka et al., Sudachi: a Japanese tokenizer for business (LREC 2018); it comes with the extra ``ja``.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Any, NamedTuple

from speechlab._arguments import check_text
from speechlab.text._languages.amounts import (
    HOUR,
    JAPANESE_AMOUNTS,
    JAPANESE_MIXED,
    JAPANESE_MONEY,
    JAPANESE_PART,
    JAPANESE_RATIOS,
    JAPANESE_SHORT_UNITS,
    NUMERAL,
)
from speechlab.text._languages.kanji_numbers import (
    FORMAL,
    RULES,
    build_minus_pattern,
    convert_counter_numerals,
    replace_japanese_formal_numerals,
    separate_kanji_digits,
    spell_japanese_numbers,
)
from speechlab.text._normalizer import Normalizer, Step
from speechlab.text._steps import (
    INVISIBLE,
    LOWER,
    UNSPACED,
    WIDTH,
    build_fraction_signs_step,
    build_powers_step,
    build_substitution_step,
)
from speechlab.text._third_party import load_optional_module, replace_lone_surrogates

_KANA = "ぁ-ゖァ-ヺー"
# Hyphens, dashes, tildes and box-drawing lines stand for a long vowel between kana, or after kana at a word's end.
_LONG_MARKS = build_substitution_step(
    "long vowels", f"(?<=[{_KANA}])[‐‑‒–—―─━~〜∼-]+(?=[{_KANA}]|[\\s、。!?」』]|$)", "ー", "‐‑‒–—―─━~〜∼-"
)
# すごーーい and すごーい are the same word. サーバ and サーバー stay different: metrics compares them with a
# dictionary.
_REPEATED_MARKS = build_substitution_step("repeated long vowels", "ー{2,}", "ー", "ー")
_EDGE = r"(?:^|(?<=[\s、。,.!?…・「『(]))"
_END = r"(?=$|[\s、。,.!?…・」』)])"
# Only sounds that are always fillers. あの, その, まあ and なんか are also words, and stay.
_FILLERS = build_substitution_step(
    "fillers",
    f"{_EDGE}(?:(?:えーっ?とー?|えっとー?|ええっ?とー?|うーんと|あのー|そのー)|(?:えー|あー|うー|んー|うーん|ええー){_END})[、,]?",
    "",
)
_SPOKEN_SIGNS = (
    # ㈱ is (株) by now.
    build_substitution_step("companies", r"\(株\)", "株式会社", "株"),
    build_substitution_step("limited companies", r"\(有\)", "有限会社", "有"),
    Step("formal numerals", replace_japanese_formal_numerals, f"ja {FORMAL}"),
    build_substitution_step("degrees", "°[Cc]", "度", "°"),
    JAPANESE_MONEY,
    build_substitution_step("permille", r"(?<=[0-9])\s?‰", "パーミル", "‰"),
    build_substitution_step("plus or minus", r"±(?=[0-9])", "プラスマイナス", "±"),
    build_substitution_step("minus", build_minus_pattern("(?<=[ぁ-ん])"), "マイナス", "-−"),
    *JAPANESE_AMOUNTS,
    build_substitution_step("plus", r"\+", "プラス", "+"),
    build_substitution_step("and", r"(?<=\w)\s?&\s?(?=\w)", "アンド", "&"),
    build_substitution_step("full hours", rf"{HOUR}:00(?![0-9:])", r"\1時", ":"),
    build_substitution_step("clock", rf"{HOUR}:(?:0([1-9])|([1-5][0-9]))(?![0-9:])", r"\1時\2\3分", ":"),
    build_substitution_step("half hours", rf"(?<=[{NUMERAL}])時半(?![分日額数月])", "時30分", "半"),
    JAPANESE_RATIOS,
)
_POWERS = build_powers_step("の", "マイナス", "乗")
_NUMBERS = Step("numbers", spell_japanese_numbers, f"ja {RULES}")

_FRACTIONS = build_fraction_signs_step(JAPANESE_MIXED, JAPANESE_PART)
_WRITING = (INVISIBLE, _POWERS, _FRACTIONS, WIDTH, _LONG_MARKS, _REPEATED_MARKS, _FILLERS, *_SPOKEN_SIGNS)

JAPANESE = Normalizer("ja", 7, (*_WRITING, _NUMBERS, LOWER, *UNSPACED))
JAPANESE_READING = Normalizer(
    "ja-reading",
    7,
    (
        *_WRITING,
        JAPANESE_SHORT_UNITS,
        Step("counted", convert_counter_numerals, f"counted {RULES}"),
        Step("several", separate_kanji_digits, f"several {RULES}"),
    ),
)


# Sudachi refuses texts of more than 49,149 bytes.
_LONGEST_PIECE = 10_000
_PIECE = re.compile(rf"[^。!?\n]{{1,{_LONGEST_PIECE}}}[。!?\n]?|[。!?\n]")
_INFLECTED = frozenset({"動詞", "形容詞", "助動詞"})
_threads = threading.local()


class Morpheme(NamedTuple):
    """One word of a Japanese text."""

    surface: str  # as written: 打合せ
    normal: str  # its normalized dictionary form: 打ち合わせ
    reading: str  # in katakana by the dictionary, not as spoken: は is ハ
    inflected: bool  # a verb, adjective or auxiliary, whose normalized form hides the inflection
    start: int  # in characters of the text
    end: int
    groups: tuple[
        int, ...
    ]  # numbers of its groups of synonyms in the dictionary; spellings of one word share one
    part: str  # of speech, in Japanese, such as 名詞


def split_morphemes(text: str) -> list[Morpheme]:
    """Split a Japanese text into words."""
    check_text(text)
    tokenizer = _load_tokenizer()
    analyzed: list[Morpheme] = []
    for piece in _PIECE.finditer(replace_lone_surrogates(text)):
        offset = piece.start()
        analyzed.extend(_build_morpheme(word, offset) for word in tokenizer.tokenize(piece.group()))
    return analyzed


def list_dictionary_entries(text: str) -> list[Morpheme]:
    """Return the entries of the dictionary that are written as a word, one for each reading and part of speech."""
    check_text(text)
    return list(_look_up_entries(text))


@lru_cache(maxsize=16_384)
def _look_up_entries(word: str) -> tuple[Morpheme, ...]:
    _load_tokenizer()
    return (
        tuple(
            _build_morpheme(entry, 0) for entry in _threads.dictionary.lookup(replace_lone_surrogates(word))
        )
        if word
        else ()
    )


def _build_morpheme(word: Any, offset: int) -> Morpheme:
    part = word.part_of_speech()[0]
    return Morpheme(
        word.surface(),
        word.normalized_form(),
        word.reading_form(),
        part in _INFLECTED,
        offset + word.begin(),
        offset + word.end(),
        tuple(word.synonym_group_ids()),
        part,
    )


def _load_tokenizer() -> Any:
    # Each thread needs its own tokenizer. Sudachi shares the dictionary between them.
    if not hasattr(_threads, "tokenizer"):
        dictionary = load_optional_module("sudachipy").Dictionary()
        # Sudachi 0.7 renamed create() to tokenizer(), and warns about the old name.
        make = dictionary.tokenizer if hasattr(dictionary, "tokenizer") else dictionary.create
        _threads.dictionary, _threads.tokenizer = dictionary, make()
    return _threads.tokenizer
