"""Money and other signs that are spoken: a sum is written with the name of its currency behind it.

A sign that vanished would make $100 and €100 one text. So each sign of a currency becomes its name in the language,
before the number or behind it, and a sign that has no name here stays as it is.
"""

from __future__ import annotations

import re

from speechlab.text._normalizer import Step

_NUMBER = r"[0-9][0-9,]*(?:\.[0-9]+)?"
_JA = {
    "US$": "米ドル",
    "$": "ドル",
    "€": "ユーロ",
    "£": "ポンド",
    "¥": "円",
    "\\": "円",
    "₩": "ウォン",
    "₹": "ルピー",
    "₽": "ルーブル",
    "฿": "バーツ",
    "₫": "ドン",
    "₱": "ペソ",
    "₺": "リラ",
    "¢": "セント",
}
_ZH = {
    "HK$": "港元",
    "US$": "美元",
    "$": "美元",
    "€": "欧元",
    "£": "英镑",
    "¥": "元",
    "₩": "韩元",
    "₹": "卢比",
    "₽": "卢布",
    "฿": "泰铢",
    "₫": "越南盾",
    "₱": "比索",
    "₺": "里拉",
    "¢": "美分",
}


def _money(names: dict[str, str], large: str) -> Step:
    """A step that writes the name of a currency behind its number, and in place of a sign without one."""
    sign = "|".join(map(re.escape, names))
    before = re.compile(rf"({sign})\s?({_NUMBER}[{large}]*)", re.IGNORECASE)
    # A backslash is a yen sign only before a number: the two share a code in old Japanese character sets.
    alone = re.compile(
        rf"\s?({'|'.join(re.escape(name) for name in names if name != chr(92))})", re.IGNORECASE
    )

    def apply(text: str) -> str:
        text = before.sub(lambda found: found[2] + names[found[1].upper()], text)
        return alone.sub(lambda found: names[found[1].upper()], text)

    return Step("money", apply, f"{before.pattern}|{alone.pattern}|{sorted(names.items())}")


JAPANESE_MONEY = _money(_JA, "百千万億兆")
"""$1.5億 becomes 1.5億ドル."""

CHINESE_MONEY = _money(_ZH, "百千万亿萬億")
"""$1.5亿 becomes 1.5亿美元."""


def _basic_money(text: str) -> str:
    return _SIGN_BEHIND.sub(r"\1 \2 ", _SIGN_BEFORE.sub(r"\2 \1 ", text))


_SIGN_BEFORE = re.compile(rf"([$€£¥₩₹₽฿₫₱₺¢])\s?({_NUMBER})")
_SIGN_BEHIND = re.compile(rf"({_NUMBER})\s?([$€£¥₩₹₽฿₫₱₺¢%])")
BASIC_MONEY = Step("money", _basic_money, f"{_SIGN_BEFORE.pattern}|{_SIGN_BEHIND.pattern}")
"""The sign of a currency becomes a word of its own behind the number, as does a percent sign."""
