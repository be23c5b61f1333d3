"""The Chinese normalizer (width, punctuation, traditional to simplified, numbers), and syllables by pypinyin.

OpenCC converts traditional to simplified characters, if a package with the module ``opencc`` is installed (the extras
``zh`` and ``local`` include one). Without OpenCC the normalizer has another id, ``zh-unconverted-v6``.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import Any, cast

from speechlab._arguments import check_text
from speechlab.text._languages.amounts import CHINESE_AMOUNTS, CHINESE_MIXED, CHINESE_MONEY, CHINESE_PART
from speechlab.text._languages.kanji_numbers import (
    FORMAL,
    RULES,
    build_minus_pattern,
    replace_chinese_formal_numerals,
    spell_chinese_numbers,
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

_SIGNS = (
    Step("formal numerals", replace_chinese_formal_numerals, f"zh {FORMAL}"),
    CHINESE_MONEY,
    build_substitution_step("degrees", "°c", "摄氏度", "°"),
    *CHINESE_AMOUNTS,
    build_substitution_step(
        "one on the telephone",
        "(?<=[0-9零一二三四五六七八九幺])幺|幺(?=[0-9零一二三四五六七八九幺])",
        "一",
        "幺",
    ),
    build_substitution_step("permille", r"(?<![0-9])(?<![0-9][,.])([0-9][0-9,.]*)\s?‰", r"千分之\1", "‰"),
    build_substitution_step("plus or minus", r"±(?=[0-9])", "正负", "±"),
    build_substitution_step("minus", build_minus_pattern("(?<=[为是至到达])(?<![0-9].)"), "负", "-−"),
    build_substitution_step("plus", r"\+", "加", "+"),
)
_POWERS = build_powers_step("的", "负", "次方")
_FRACTIONS = build_fraction_signs_step(CHINESE_MIXED, CHINESE_PART)
_NUMBERS = Step("numbers", spell_chinese_numbers, f"zh {RULES}")


@cache
def _load_converter() -> Any:
    return load_optional_module("opencc").OpenCC("t2s")


# 乾 stays where it is read qián, as in the names of places, reigns and people; read gān, it is 干 in simplified text.
# OpenCC knows few of these names. In a text without other traditional characters only words with gān change; in
# others, all but these names.
_QIAN = re.compile(
    "乾(?=[坤隆安县縣陵州元清德符道宁寧嘉卦象健惕封始亨祐佑统統罡光])|(?<=[康雍朝尾连連])乾|於(?=[潜潛菟陵])"
)
_QIAN_UNLESS_DRY = re.compile(
    "(?<![饼餅萄肉笋筍菜鱼魚晒曬烘烤擦吹风風口舌弄拧擰喝榨阴陰晾腐果薯杏梅虾蝦抹沥瀝不未很太又])"
    "乾(?![燥净淨杯脆旱涸涩澀枯瘪癟瘦巴果粮糧菜草粉洗瞪妈媽爹爸娘亲親兒儿女货貨酪酵冰柴渴坐等笑咳嚎呕嘔热熱冷裂烧燒煸锅鍋鲜鮮制製])"
    f"|{_QIAN.pattern}"
)


def _simplify_characters(text: str) -> str:
    text = replace_lone_surrogates(text)
    convert = _load_converter().convert
    converted = cast("str", convert(text))
    if "乾" not in text and "於" not in text:
        return converted
    kept = _QIAN_UNLESS_DRY if converted == text.replace("乾", "干") else _QIAN
    pieces: list[str] = []
    last = 0
    for found in kept.finditer(text):
        pieces += convert(text[last : found.start()]), found[0]
        last = found.end()
    return "".join([*pieces, convert(text[last:])]) if pieces else converted


# t2s keeps 著, which is 着 in simplified text but for words of fame and writing: 著名 stays, and 吃著 becomes 吃着.
_ASPECT = build_substitution_step(
    "著", "(?<![名显原编论巨专译合卓昭拙遗撰土])著(?![名作者述称录])", "着", "著"
)
_OTHER_FORMS = (
    build_substitution_step("妳", "妳", "你", "妳"),
    build_substitution_step("甚么", "甚么", "什么", "甚"),
)


# Distributions with a module ``opencc``, whose dictionaries differ.
_CONVERTER_PACKAGES = ("opencc", "opencc-python-reimplemented")


def _describe_converter_packages() -> str:
    """Return the installed packages with the module ``opencc``."""
    from importlib.metadata import PackageNotFoundError, distribution, packages_distributions

    found = []
    for name in _CONVERTER_PACKAGES:
        with suppress(PackageNotFoundError):
            found.append(distribution(name))
    if not found:  # another one; the metadata of all packages are read, which takes a second
        found = [distribution(name) for name in packages_distributions().get("opencc", [])]
    named = sorted(f"{package.metadata['Name']} {package.version}" for package in found)
    return "t2s by " + ", ".join(named) + _QIAN_UNLESS_DRY.pattern


@cache
def build_chinese_normalizer() -> Normalizer:
    """Return the Chinese normalizer for this installation."""
    before = (INVISIBLE, _POWERS, _FRACTIONS, WIDTH, LOWER)
    after = (*_SIGNS, _NUMBERS, *UNSPACED)
    if find_spec("opencc") is None:
        return Normalizer("zh-unconverted", 7, before + after)
    return Normalizer(
        "zh",
        7,
        (
            *before,
            Step("simplified", _simplify_characters, _describe_converter_packages),
            _ASPECT,
            *_OTHER_FORMS,
            *after,
        ),
    )


# 地 and 得 may be particles (de), which the dictionary reads di4 and de2 where it knows no word: between other
# characters that do not make them a noun or a verb, and 地 also at the end behind an adverb.
_PARTICLE = re.compile(
    r"(?<=[\u4e00-\u9fff]{2})(?<![这那块片本此各两每整全某该这在])地(?=[\u4e00-\u9fff])"
    r"|(?<=[\u4e00-\u9fff]{2})地(?![\u4e00-\u9fff])"
    r"|(?<=[\u4e00-\u9fff])(?<![我你他她它们咱您就都也还总不没必非只可要能])得(?=[\u4e00-\u9fff])(?![了到])"
)
_LONGEST_PHRASE = 4
# Words whose last character only seems to make a word with the particle: 开心|得, not 心得; 高高|地, not 高地.
_BEFORE_PARTICLE = re.compile(
    r"(?:[开小细耐粗用放担伤关专热精决安真诚忧灰狠倾痛无有全]心|[诚老切忠真确结]实|[严慎郑隆沉稳尊]重|[明坦清直]白|崇高|陌生"
    r"|[奇独]特|[巨宏伟强盛重]大|[火炽狂]热|[公和太水]平|[完优精甜壮]美|[完工]整|凭空|[诧惊怪]异|[永遥]远|[适恰正妥]当"
    r"|[独中对]立|[唐冲]突|[顺胜便]利|[快欢]乐|干净|[困艰]难|明显|([\u4e00-\u9fff])\1)$"
)


def pinyin(text: str, *, tone: bool = True, by_character: bool = False) -> list[str]:
    """Return the syllables of a Chinese text.

    Args:
        text: Any text. A run of other characters than Chinese stays as it is, as one item; white space separates
            items.
        tone: Whether to write the tone after each syllable: 1 to 4, or 5 for the neutral tone.
        by_character: Whether to return one item for each character, including white space and other characters.

    Raises:
        InvalidRequestError: ``text`` is not a str.
        MissingDependencyError: The package pypinyin is not installed.

    Example:
        >>> pinyin("银行行长")
        ['yin2', 'hang2', 'hang2', 'zhang3']
        >>> pinyin("银行", tone=False)
        ['yin', 'hang']
    """
    check_text(text)
    package = load_optional_module("pypinyin")
    text = _PARTICLE.sub(lambda found: "的" if _is_particle(text, found.start()) else found[0], text)
    style = package.Style.TONE3 if tone else package.Style.NORMAL
    if by_character:
        return cast(
            "list[str]", package.lazy_pinyin(text, style=style, neutral_tone_with_five=tone, errors=list)
        )
    syllables = package.lazy_pinyin(text, style=style, neutral_tone_with_five=tone)
    # A run of other characters may contain white space. Items must not, because they are counted like words.
    return [item for syllable in cast("list[str]", syllables) for item in syllable.split()]


def _is_particle(text: str, place: int) -> bool:
    """Whether 地 or 得 belongs to no phrase of the dictionary, or only seems to, and is no place at the end."""
    adverb = _BEFORE_PARTICLE.search(text[max(0, place - 2) : place]) is not None
    if not (adverb or "\u4e00" <= text[place + 1 : place + 2] <= "\u9fff"):
        return False
    return not any(
        text[start : start + length] in _load_phrases()
        for length in range(2, _LONGEST_PHRASE + 1)
        for start in range(max(0, place - length + 1), place + 1)
        if not (adverb and length == 2 and start == place - 1)
    )


@cache
def _load_phrases() -> frozenset[str]:
    # Geoscience is rarer than a particle before 学.
    return frozenset(load_optional_module("pypinyin.phrases_dict").phrases_dict) - {"地学"}
