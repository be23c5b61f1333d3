"""Amounts as they are spoken: units, dates, fractions, clock times and money.

Without signs, $100 and €100 would be the same text. So the sign of a currency, before or after the number,
becomes the name of the currency in the language of the text. A sign without a name here stays. Letters before a sign
name a country and belong to the sign (A$100 becomes 100豪ドル). Each sign has one name. Names in a text are spoken,
so they are never changed: US$100 becomes 100米ドル, and 100ドル is another text.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Mapping
from importlib.resources import files

from speechlab.text._normalizer import Step
from speechlab.text._steps import build_substitution_step

NUMERAL = "0-9〇零一二三四五六七八九十百千万億亿两"
_JA_SHORT = {
    "キロメートル": "キロ",
    "キログラム": "キロ",
    "センチメートル": "センチ",
    "ミリメートル": "ミリ",
    "ミリグラム": "ミリ",
}


def read_sign_names(kind: str, language: str) -> dict[str, str]:
    """Return the names of units (``"unit"``) or currencies (``"money"``) in a language, by their signs."""
    lines = (files(__package__) / "signs.tsv").read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return {row["sign"]: row[language] for row in rows if row["kind"] == kind and row[language]}


def _build_units_step(name: str, names: Mapping[str, str]) -> Step:
    """Return a step that replaces the units behind a number."""
    signs = "|".join(sorted(map(re.escape, names), key=len)[::-1])
    # In 2h30min, another amount follows without a blank.
    pattern = re.compile(rf"(?<=[{NUMERAL}])\s?({signs})(?![A-Za-z/])(?![0-9]+(?![0-9.]*\s?[a-z]))")
    first = {unit[0] for unit in names}
    return Step(
        name,
        lambda text: text if first.isdisjoint(text) else pattern.sub(lambda found: names[found[1]], text),
        f"{pattern.pattern}|{sorted(names.items())}",
    )


def _build_seconds_step(name: str) -> Step:
    """Return a step that replaces s behind a number, but not behind that of a model (iPhone 5s)."""
    return build_substitution_step(
        "seconds", r"(?<![A-Za-z0-9.,])(?<![A-Za-z]\s)([0-9][0-9.]*)\s?s(?![A-Za-z0-9/])", rf"\1{name}", "s"
    )


_FRACTION = re.compile(r"(?:(?<![0-9/.])([0-9]+)\s+)?(?<![0-9/.])([1-9])/([2-9]|10)(?![0-9/.月日号])")


def _build_fractions_step(between: str, part: str) -> Step:
    """Return a step that writes a fraction with a figure up to ten below the line in words, as 2 1/2 and 1/2."""

    def spell_fraction(found: re.Match[str]) -> str:
        whole, above, below = found.groups()
        if int(above) >= int(below):
            return found[0]
        return f"{whole}{between}{below}{part}{above}" if whole else f"{below}{part}{above}"

    return Step(
        "fractions",
        lambda text: _FRACTION.sub(spell_fraction, text) if "/" in text else text,
        f"{_FRACTION.pattern}|{between}|{part}",
    )


# Between a number and its fraction, and inside of a fraction.
JAPANESE_MIXED, JAPANESE_PART = "と", "分の"
CHINESE_MIXED, CHINESE_PART = "又", "分之"
_DATES = (
    # 2024/5/29 and 2024-05-29 become 2024年5月29日.
    build_substitution_step(
        "dates",
        r"(?<![0-9/-])([0-9]{4})[/-]0?(1[0-2]|[1-9])[/-]0?(3[01]|[12][0-9]|[1-9])(?![0-9/-])",
        r"\1年\2月\3日",
        "-/",
    ),
    # 5/29 becomes 5月29日; a second figure up to ten is no clear day.
    build_substitution_step(
        "days", r"(?<![0-9/.-])(1[0-2]|[1-9])/(1[1-9]|2[0-9]|3[01])(?![0-9/.月日号])", r"\1月\2日", "/"
    ),
)
_SMALL_DIGIT = "[〇零一二三四五六七八九]"
_COUNTERS = "倍|度|割|秒|点|ポイント|パーセント|%|キロ|メートル|センチ|ミリ|グラム|トン|リットル"
_RATIO = r"(?<![0-9:.])([0-9]{1,3}):([0-9])(?![0-9:.])"  # minutes have two figures
JAPANESE_AMOUNTS = (
    build_substitution_step("below zero", rf"零下(?=[{NUMERAL}])", "マイナス", "零"),
    *_DATES,
    # 29日(水) becomes 29日水曜日.
    build_substitution_step(
        "weekdays", r"(?<=[0-9〇一二三四五六七八九十]日)\s?\(([月火水木金土日])\)", r"\1曜日", "("
    ),
    # 8時05分 becomes 8時5分.
    build_substitution_step("leading zeros", r"(?<![0-9.,:])0([1-9])(?=[月日時分秒])", r"\1", "0"),
    _build_fractions_step(JAPANESE_MIXED, JAPANESE_PART),  # 1/2 becomes 2分の1
    # 三・一四 becomes 三点一四, and 九十八・五% 九十八点五%.
    build_substitution_step(
        "middle dots",
        rf"(?<![・]{_SMALL_DIGIT})(?<=[〇零一二三四五六七八九十百千])・(?={_SMALL_DIGIT}+(?:{_COUNTERS}))"
        rf"|(?<=(?<![{NUMERAL}・]){_SMALL_DIGIT})・(?={_SMALL_DIGIT}{{2,}}(?![{NUMERAL}・]))",
        "点",
        "・",
    ),
    _build_units_step("units", read_sign_names("unit", "ja")),  # 5km becomes 5キロメートル
    _build_seconds_step("秒"),
)
JAPANESE_RATIOS = build_substitution_step("ratios", _RATIO, r"\1対\2", ":")
# 5キロメートル becomes 5キロ, for a reading: it is how 5km is mostly said.
JAPANESE_SHORT_UNITS = _build_units_step("short units", _JA_SHORT)
HOUR = r"(?<![0-9:])0?(2[0-4]|1[0-9]|[0-9])"
CHINESE_AMOUNTS = (
    *_DATES,
    _build_fractions_step(CHINESE_MIXED, CHINESE_PART),  # 1/2 becomes 2分之1
    # 15:00 becomes 15点, 03:20 3点20分, and 3:05 3点05分.
    build_substitution_step("full hours", rf"{HOUR}:00(?![0-9:])", r"\1点", ":"),
    build_substitution_step("clock", rf"{HOUR}:([0-5][0-9])(?![0-9:])", r"\1点\2分", ":"),
    build_substitution_step("ratios", _RATIO, r"\1比\2", ":"),
    build_substitution_step("below zero", rf"零下(?=[{NUMERAL}])", "负", "零"),
    _build_units_step("units", read_sign_names("unit", "zh")),  # 5km becomes 5公里
    _build_seconds_step("秒"),
)


_NUMBER = r"[0-9]+(?:,[0-9]+)*(?:\.[0-9]+)?"
# In 100US$-200US$ the first sign belongs to the number before it; it is not the $ of $-200.
_NOT_BEHIND = "(?<![0-9])(?<![0-9][A-Za-z])(?<![0-9][A-Za-z]{2})"


def _build_sign_pattern(sign: str) -> str:
    """Pattern of a sign. A sign that begins with letters must not be the end of a longer word."""
    return f"(?<![A-Za-z]){re.escape(sign)}" if sign[0].isalpha() else re.escape(sign)


def _build_money_step(names: dict[str, str], large: str, minus: str) -> Step:
    """Return a step that writes the name of a currency after its number, and in place of a sign without a number."""
    sign = "|".join(_build_sign_pattern(name) for name in names)
    before = re.compile(
        rf"(?:(?<![0-9A-Za-z.,)])([-−]))?{_NOT_BEHIND}({sign})\s?([-−]?)({_NUMBER}[{large}]*)", re.IGNORECASE
    )
    # A backslash is a yen sign only before a number: the two share a code in old Japanese character sets.
    alone = re.compile(
        rf"\s?({'|'.join(_build_sign_pattern(name) for name in names if name != chr(92))})", re.IGNORECASE
    )

    signs = {name[-1] for name in names}

    def apply(text: str) -> str:
        if signs.isdisjoint(text):
            return text
        text = before.sub(
            lambda found: (minus if found[1] or found[3] else "") + found[4] + names[found[2].upper()], text
        )
        return alone.sub(lambda found: names[found[1].upper()], text)

    return Step("money", apply, f"{before.pattern}|{alone.pattern}|{minus}|{sorted(names.items())}")


# $1.5億 becomes 1.5億ドル.
JAPANESE_MONEY = _build_money_step(read_sign_names("money", "ja"), "百千万億兆", "マイナス")

# $1.5亿 becomes 1.5亿美元.
CHINESE_MONEY = _build_money_step(read_sign_names("money", "zh"), "百千万亿萬億", "负")


def _move_money_signs_behind(text: str) -> str:
    return _SIGN_BEHIND.sub(r"\1 \2 ", _SIGN_BEFORE.sub(_move_sign_behind, text))


def _move_sign_behind(found: re.Match[str]) -> str:
    return f"{'−' if found[1] or found[3] else ''}{found[4]} {found[2]} "


_SIGN = r"(?:(?<![^\W\d_])[A-Za-z]{1,2})?[$€£¥₩₹₽฿₫₱₺¢]"
_TO = rf"(?:[-−–](?={_SIGN}?[0-9]))?"  # hyphen of a range, not a minus sign: $5-$10
_SIGN_BEFORE = re.compile(rf"(?:(?<!\w)([-−]))?{_NOT_BEHIND}({_SIGN})\s?([-−]?)({_NUMBER}){_TO}")
# A match begins only at the first digit of a number. Otherwise, the time would grow with the square of its length.
_SIGN_BEHIND = re.compile(rf"(?<![0-9])(?<![0-9],)({_NUMBER})\s?({_SIGN}|[%‰]){_TO}")
# The sign of a currency, or a percent sign, becomes a separate word after the number.
BASIC_MONEY = Step("money", _move_money_signs_behind, f"{_SIGN_BEFORE.pattern}|{_SIGN_BEHIND.pattern}")

_EN = read_sign_names("money", "en")
_EN_LARGE = r"(?:\s(?:hundred|thousand|million|billion|trillion)\b)?"
_EN_COUNTRY = re.compile(r"(?<![^\W_])(us|aud?|a|cad?|c|hk|nt|nz|sgd?|s|mx|r)\$(?=\s?[0-9])")
_EN_COUNTRY_BEHIND = re.compile(
    rf"(?:(?<![\w.,)$€£¢%-])([-−]))?(?<![\w.,$€£¢])({_NUMBER})\s?(us|aud?|a|cad?|c|hk|nt|nz|sgd?|s|mx|r)\$(?![\w$€£¢])"
    r"(?:[-−–](?=[0-9]))?"
)
# All signs of currencies except those in Whisper's rules.
_EN_SIGN = "[¤¥฿\u20a0-\u20ab\u20ad-\u20c0]"
_EN_TO = rf"(?:[-−–](?={_EN_SIGN}?[0-9]))?"
_EN_BEFORE = re.compile(rf"(?<![0-9])({_EN_SIGN})\s?([-−]?)({_NUMBER}{_EN_LARGE}){_EN_TO}")
_EN_NAMED = re.compile(rf"(?<=[0-9])\s?({_EN_SIGN}){_EN_TO}")
_EN_APART = re.compile(r"(?:(?<![0-9])(?<![0-9]\s)([$€£¢])\s?([-−])|([$€£¢]))\s?(?=[0-9])")
_EN_BEHIND = re.compile(rf"(?<![\w.$€£¢])(?<![0-9],)({_NUMBER})\s?([$€£¢])(?![\w$€£¢])")


def _spell_english_currencies(text: str) -> str:
    if text.isascii() and "$" not in text:
        return text
    text = _EN_COUNTRY.sub(r"\1 $", _EN_COUNTRY_BEHIND.sub(r" \3 $\1\2 ", text))
    text = _EN_BEHIND.sub(r"\2\1", _EN_APART.sub(r"\2\1\3", text))
    if text.isascii():
        return text
    text = _EN_BEFORE.sub(lambda found: f"{found[2]}{found[3]} {_name_currency(found[1])} ", text)
    return _EN_NAMED.sub(lambda found: f" {_name_currency(found[1])} ", text)


def _name_currency(sign: str) -> str:
    return _EN.get(sign) or unicodedata.name(sign, "currency").lower().replace(" sign", "")


# Sums of money in the form that Whisper's rules expect: dollars, euros, pounds and cents with the sign
# before the number. 100 € becomes €100, ¥100 becomes 100 yen, and the country in US$100 becomes a separate
# word.
ENGLISH_MONEY = Step(
    "money",
    _spell_english_currencies,
    "|".join(
        rule.pattern
        for rule in (_EN_COUNTRY, _EN_COUNTRY_BEHIND, _EN_BEHIND, _EN_APART, _EN_BEFORE, _EN_NAMED)
    )
    + f"|{sorted(_EN.items())}",
)

_US_DOLLARS = re.compile(r"(?<![\w.$€£¢])([0-9][0-9.]*) us dollars?\b")
# 100 us dollars becomes us $100. This step needs numbers in figures.
ENGLISH_US_DOLLARS = Step(
    "us dollars",
    lambda text: _US_DOLLARS.sub(r"us $\1", text) if " us dollar" in text else text,
    _US_DOLLARS.pattern,
)
