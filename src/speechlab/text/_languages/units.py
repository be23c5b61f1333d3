"""Units, dates, fractions and clock times in figures: written as they are read in Japanese and Chinese."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speechlab.text._normalizer import Step
from speechlab.text._steps import substitution

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMERAL = "0-9〇零一二三四五六七八九十百千万億亿两"
_JA = {
    "km": "キロメートル",
    "m": "メートル",
    "cm": "センチメートル",
    "mm": "ミリメートル",
    "kg": "キログラム",
    "g": "グラム",
    "mg": "ミリグラム",
    "t": "トン",
    "ha": "ヘクタール",
    "l": "リットル",
    "L": "リットル",
    "ml": "ミリリットル",
    "mL": "ミリリットル",
    "dl": "デシリットル",
    "dL": "デシリットル",
    "kcal": "キロカロリー",
    "dB": "デシベル",
    "V": "ボルト",
    "W": "ワット",
    "kW": "キロワット",
    "kWh": "キロワット時",
    "Hz": "ヘルツ",
    "kHz": "キロヘルツ",
    "MHz": "メガヘルツ",
    "GHz": "ギガヘルツ",
    "KB": "キロバイト",
    "MB": "メガバイト",
    "GB": "ギガバイト",
    "TB": "テラバイト",
    "m2": "平方メートル",
    "km2": "平方キロメートル",
    "cm2": "平方センチメートル",
    "m3": "立方メートル",
    "cm3": "立方センチメートル",
    "km/h": "キロメートル毎時",
    "m/s": "メートル毎秒",
}
_JA_SHORT = {
    "キロメートル": "キロ",
    "キログラム": "キロ",
    "センチメートル": "センチ",
    "ミリメートル": "ミリ",
    "ミリグラム": "ミリ",
}
_ZH = {
    "km": "公里",
    "m": "米",
    "cm": "厘米",
    "mm": "毫米",
    "kg": "千克",
    "g": "克",
    "mg": "毫克",
    "t": "吨",
    "l": "升",
    "ml": "毫升",
    "ha": "公顷",
    "db": "分贝",
    "v": "伏",
    "w": "瓦",
    "kw": "千瓦",
    "kwh": "千瓦时",
    "hz": "赫兹",
    "khz": "千赫",
    "mhz": "兆赫",
    "ghz": "吉赫",
    "m2": "平方米",
    "km2": "平方公里",
    "cm2": "平方厘米",
    "m3": "立方米",
    "km/h": "公里每小时",
}


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
JAPANESE_UNITS = _units("units", _JA)
"""5km becomes 5キロメートル."""
JAPANESE_SHORT_UNITS = _units("short units", _JA_SHORT)
"""5キロメートル becomes 5キロ, for a reading: it is how 5km is mostly said."""
CHINESE_UNITS = _units("units", _ZH)
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
