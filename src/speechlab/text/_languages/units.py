"""Units, dates, fractions and clock times in figures: written as they are read in Japanese and Chinese."""

from __future__ import annotations

import csv
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from speechlab.text._normalizer import Step
from speechlab.text._steps import substitution

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMERAL = "0-9〇零一二三四五六七八九十百千万億亿两"
_JA_SHORT = {
    "キロメートル": "キロ",
    "キログラム": "キロ",
    "センチメートル": "センチ",
    "ミリメートル": "ミリ",
    "ミリグラム": "ミリ",
}


def sign_names(kind: str, language: str) -> dict[str, str]:
    """The names of units (``"unit"``) or currencies (``"money"``) in a language, by their signs."""
    lines = (files(__package__) / "signs.tsv").read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return {row["sign"]: row[language] for row in rows if row["kind"] == kind and row[language]}


def _units(name: str, names: Mapping[str, str]) -> Step:
    """A step that replaces the units behind a number."""
    signs = "|".join(sorted(map(re.escape, names), key=len)[::-1])
    pattern = re.compile(rf"(?<=[{NUMERAL}])\s?({signs})(?![A-Za-z0-9/])")
    first = {unit[0] for unit in names}
    return Step(
        name,
        lambda text: text if first.isdisjoint(text) else pattern.sub(lambda found: names[found[1]], text),
        f"{pattern.pattern}|{sorted(names.items())}",
    )


def _fractions(pattern: str, between: str) -> Step:
    """A step that writes a fraction with a figure up to ten below the line in words."""
    compiled = re.compile(pattern)

    def write(found: re.Match[str]) -> str:
        above, below = found.groups()
        return f"{below}{between}{above}" if int(above) < int(below) else found[0]

    return Step(
        "fractions", lambda text: compiled.sub(write, text) if "/" in text else text, f"{pattern}|{between}"
    )


_FRACTION = r"(?<![0-9/.])([1-9])/([2-9]|10)(?![0-9/.月日号])"
JAPANESE_UNITS = _units("units", sign_names("unit", "ja"))
"""5km becomes 5キロメートル."""
JAPANESE_SHORT_UNITS = _units("short units", _JA_SHORT)
"""5キロメートル becomes 5キロ, for a reading: it is how 5km is mostly said."""
CHINESE_UNITS = _units("units", sign_names("unit", "zh"))
"""5km becomes 5公里."""
DATES = substitution(
    "dates",
    r"(?<![0-9/-])([0-9]{4})[/-]0?(1[0-2]|[1-9])[/-]0?(3[01]|[12][0-9]|[1-9])(?![0-9/-])",
    r"\1年\2月\3日",
    "-/",
)
"""2024/5/29 and 2024-05-29 become 2024年5月29日."""
MONTH_DAYS = substitution(
    "days", r"(?<![0-9/.-])(1[0-2]|[1-9])/(1[1-9]|2[0-9]|3[01])(?![0-9/.月日号])", r"\1月\2日", "/"
)
"""5/29 becomes 5月29日; a second figure up to ten is no clear day."""
JAPANESE_FRACTIONS = _fractions(_FRACTION, "分の")
"""1/2 becomes 2分の1."""
CHINESE_FRACTIONS = _fractions(_FRACTION, "分之")
"""1/2 becomes 2分之1."""
_SMALL_DIGIT = "[〇零一二三四五六七八九]"
_MEASURED = "倍|度|割|秒|点|ポイント|パーセント|%|キロ|メートル|センチ|ミリ|グラム|トン|リットル"
DECIMALS = substitution(
    "middle dots",
    rf"(?<![・]{_SMALL_DIGIT})(?<=[〇零一二三四五六七八九十百千])・(?={_SMALL_DIGIT}+(?:{_MEASURED}))"
    rf"|(?<=(?<![{NUMERAL}・]){_SMALL_DIGIT})・(?={_SMALL_DIGIT}{{2,}}(?![{NUMERAL}・]))",
    "点",
    "・",
)
"""三・一四 becomes 三点一四, and 九十八・五% 九十八点五%."""
JAPANESE_BELOW_ZERO = substitution("below zero", rf"零下(?=[{NUMERAL}])", "マイナス", "零")
CHINESE_BELOW_ZERO = substitution("below zero", rf"零下(?=[{NUMERAL}])", "负", "零")
CHINESE_CLOCK = substitution(
    "clock", r"(?<![0-9:])(2[0-4]|[01]?[0-9]):(?:00|([0-5][0-9]))(?![0-9:])", r"\1点\2分", ":"
)
"""3:20 becomes 3点20分, and 3:05 3点05分."""
_RATIO = r"(?<![0-9:.])([0-9]{1,3}):([0-9])(?![0-9:.])"
JAPANESE_RATIOS = substitution("ratios", _RATIO, r"\1対\2", ":")
CHINESE_RATIOS = substitution("ratios", _RATIO, r"\1比\2", ":")
"""3:2 becomes 3比2; minutes have two figures."""
WEEKDAYS = substitution(
    "weekdays", r"(?<=[0-9〇一二三四五六七八九十]日)\s?\(([月火水木金土日])\)", r"\1曜日", "("
)
"""29日(水) becomes 29日水曜日."""
LEADING_ZEROS = substitution("leading zeros", r"(?<![0-9.,:])0([1-9])(?=[月日時分秒])", r"\1", "0")
"""8時05分 becomes 8時5分."""
