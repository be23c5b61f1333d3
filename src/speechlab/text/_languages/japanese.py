"""The Japanese normalisers: ``ja`` for spelling, and ``ja-reading`` for the input of a reading.

Japanese text is never converted to simplified Chinese characters (図書館 would become 図书館), and dakuten are never
removed.
"""

from __future__ import annotations

from speechlab.text._languages.money import JAPANESE_MONEY
from speechlab.text._languages.numbers import RULES, counted, japanese_numbers, minus, several
from speechlab.text._languages.units import (
    DATES,
    DECIMALS,
    JAPANESE_BELOW_ZERO,
    JAPANESE_FRACTIONS,
    JAPANESE_RATIOS,
    JAPANESE_SHORT_UNITS,
    JAPANESE_UNITS,
    LEADING_ZEROS,
    MONTH_DAYS,
    NUMERAL,
    WEEKDAYS,
)
from speechlab.text._normalizer import Normalizer, Step
from speechlab.text._steps import (
    COMPOSE,
    INVISIBLE,
    JOIN,
    LOWER,
    PUNCTUATION_BUT_DOTS_TO_NOTHING,
    WIDTH,
    powers,
    substitution,
)

_KANA = "ぁ-ゖァ-ヺー"
# Hyphens, dashes, tildes and box-drawing lines stand for a long vowel between kana, or after kana at a word's end.
_LONG_MARKS = substitution(
    "long vowels", f"(?<=[{_KANA}])[‐‑‒–—―─━~〜∼-]+(?=[{_KANA}]|[\\s、。!?」』]|$)", "ー", "‐‑‒–—―─━~〜∼-"
)
# すごーーい and すごーい are the same word. サーバ and サーバー stay different: metrics compares them with a
# dictionary.
_REPEATED_MARKS = substitution("repeated long vowels", "ー{2,}", "ー", "ー")
_EDGE = r"(?:^|(?<=[\s、。,.!?…・「『(]))"
_END = r"(?=$|[\s、。,.!?…・」』)])"
# Only sounds that are always fillers. あの, その, まあ and なんか are also words, and stay.
_FILLERS = substitution(
    "fillers",
    f"{_EDGE}(?:(?:えーっ?とー?|えっとー?|ええっ?とー?|うーんと|あのー|そのー)|(?:えー|あー|うー|んー|うーん|ええー){_END})[、,]?",
    "",
)
_DEGREES = substitution("degrees", "°[Cc]", "度", "°")
_PLUS = substitution("plus", r"\+", "プラス", "+")
_AND = substitution("and", r"(?<=\w)\s?&\s?(?=\w)", "アンド", "&")
_PERMILLE = substitution("permille", r"(?<=[0-9])\s?‰", "パーミル", "‰")
_PLUS_OR_MINUS = substitution("plus or minus", r"±(?=[0-9])", "プラスマイナス", "±")
_MINUS = substitution("minus", minus("(?<=[ぁ-ん])"), "マイナス", "-−")
_FULL_HOURS = substitution("full hours", r"(?<![0-9:])([01]?[0-9]|2[0-4]):00(?![0-9:])", r"\1時", ":")
_CLOCK = substitution(
    "clock", r"(?<![0-9:])([01]?[0-9]|2[0-4]):(?:0([1-9])|([1-5][0-9]))(?![0-9:])", r"\1時\2\3分", ":"
)
_HALF_HOURS = substitution("half hours", rf"(?<=[{NUMERAL}])時半(?![分日額数月])", "時30分", "半")
_POWERS = powers("の", "マイナス", "乗")
_SPOKEN_SIGNS = (
    _DEGREES,
    JAPANESE_MONEY,
    _PERMILLE,
    _PLUS_OR_MINUS,
    _MINUS,
    JAPANESE_BELOW_ZERO,
    DATES,
    MONTH_DAYS,
    WEEKDAYS,
    LEADING_ZEROS,
    JAPANESE_FRACTIONS,
    DECIMALS,
    JAPANESE_UNITS,
    _PLUS,
    _AND,
    _FULL_HOURS,
    _CLOCK,
    _HALF_HOURS,
    JAPANESE_RATIOS,
)
_NUMBERS = Step("numbers", japanese_numbers, f"ja {RULES}")

_WRITING = (INVISIBLE, _POWERS, WIDTH, _LONG_MARKS, _REPEATED_MARKS, _FILLERS, *_SPOKEN_SIGNS)

JAPANESE = Normalizer("ja", 5, (*_WRITING, _NUMBERS, LOWER, PUNCTUATION_BUT_DOTS_TO_NOTHING, JOIN, COMPOSE))
JAPANESE_READING = Normalizer(
    "ja-reading",
    5,
    (
        *_WRITING,
        JAPANESE_SHORT_UNITS,
        Step("counted", counted, f"counted {RULES}"),
        Step("several", several, f"several {RULES}"),
    ),
)
