"""The Chinese normaliser: width, punctuation, traditional to simplified, numbers.

OpenCC converts traditional to simplified characters, if a package with the module ``opencc`` is installed (the extras
``zh`` and ``local`` include one). Without OpenCC the normaliser has another id, ``zh-unconverted-v5``.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, cast

from speechlab.text._languages.money import CHINESE_MONEY
from speechlab.text._languages.numbers import RULES, chinese_numbers, minus
from speechlab.text._languages.units import (
    CHINESE_BELOW_ZERO,
    CHINESE_CLOCK,
    CHINESE_FRACTIONS,
    CHINESE_RATIOS,
    CHINESE_UNITS,
    DATES,
    MONTH_DAYS,
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
from speechlab.text._third_party import encodable, load

_SIGNS = (
    CHINESE_MONEY,
    substitution("degrees", "°c", "摄氏度", "°"),
    DATES,
    MONTH_DAYS,
    CHINESE_FRACTIONS,
    CHINESE_CLOCK,
    CHINESE_RATIOS,
    CHINESE_BELOW_ZERO,
    CHINESE_UNITS,
    substitution(
        "one on the telephone",
        "(?<=[0-9零一二三四五六七八九幺])幺|幺(?=[0-9零一二三四五六七八九幺])",
        "一",
        "幺",
    ),
    substitution("permille", r"(?<![0-9])(?<![0-9][,.])([0-9][0-9,.]*)\s?‰", r"千分之\1", "‰"),
    substitution("plus or minus", r"±(?=[0-9])", "正负", "±"),
    substitution("minus", minus("(?<=[为是至到达])(?<![0-9].)"), "负", "-−"),
    substitution("plus", r"\+", "加", "+"),
)
_POWERS = powers("的", "负", "次方")
_NUMBERS = Step("numbers", chinese_numbers, f"zh {RULES}")


@cache
def _converter() -> Any:
    return load("opencc").OpenCC("t2s")


def _simplify(text: str) -> str:
    return cast("str", _converter().convert(encodable(text)))


# t2s keeps 著, which is 着 in simplified text but for words of fame and writing: 著名 stays, and 吃著 becomes 吃着.
_ASPECT = substitution("著", "(?<![名显原编论巨专译合卓昭拙遗撰土])著(?![名作者述称录])", "着", "著")
_OTHER_FORMS = substitution("妳", "妳", "你", "妳"), substitution("甚么", "甚么", "什么", "甚")


def _simplify_rules() -> str:
    """The installed package with the module ``opencc``; two have it, with different dictionaries."""
    from importlib.metadata import packages_distributions, version

    names = sorted(packages_distributions().get("opencc", []))
    return "t2s by " + ", ".join(f"{name} {version(name)}" for name in names)


@cache
def chinese() -> Normalizer:
    """The Chinese normaliser for this installation."""
    before = (INVISIBLE, _POWERS, WIDTH, LOWER)
    after = (*_SIGNS, _NUMBERS, PUNCTUATION_BUT_DOTS_TO_NOTHING, JOIN, COMPOSE)
    if find_spec("opencc") is None:
        return Normalizer("zh-unconverted", 5, before + after)
    return Normalizer(
        "zh", 5, (*before, Step("simplified", _simplify, _simplify_rules), _ASPECT, *_OTHER_FORMS, *after)
    )
