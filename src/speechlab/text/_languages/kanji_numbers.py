"""Numbers in Japanese and Chinese text, brought to one form: numerals written as characters, by value.

Digits become characters, and not the reverse: the characters of numbers are also parts of words (一緒, 千葉, 万一;
一起, 千万), and digits in their place would split these words and change their length.

``1,234`` becomes 千二百三十四, ``2024`` and ``二〇二四`` become 二千二十四, and ``1.5`` becomes 一点五. A number with
a leading zero or more than 16 digits is a name and is spelled (``090`` 零九零). So is a telephone number, with its
parts joined (``090-1234-5678``, ``090(1234)5678``). ``1.2.3`` does not change. ``5〜10`` becomes 五・十, because 五十
is 50. In Chinese the digit 2 before a measure word becomes 两 (``2个`` 两个), but not in an ordinal (``第2个``
第二个).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

_DIGITS = "零一二三四五六七八九"
_TO_KANJI = str.maketrans("0123456789〇", _DIGITS + "零")
_TO_FIGURES = str.maketrans("〇零一二三四五六七八九", "00123456789")
_LONGEST = 16
_NUMBER = re.compile(r"(?<![0-9.])((?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+))(?:\.([0-9]+))?(?!\.?[0-9])")
# Three kanji digits in a row, or two with a zero, are a number written digit by digit (二〇二四年, 三〇分). 二三人
# means "two or three people". Digits after 点 are a decimal fraction, and digits before 十百千 are part of a larger
# number.
# Nor are the digits of words: 统一零售, 星期一三五, 七零八落.
_PLACES = re.compile(
    r"(?<![〇零一二三四五六七八九十百千点點])"
    r"(?!(?<=[统統专專单單唯惟同划劃归歸如第逐不周週期拜毎每])[一二三四五六七八九]零(?![〇零一二三四五六七八九])"
    r"|[一二三四五六七八九]零[售件食星钱錢用碎部头頭散下度和花嘴落距容担擔细細点點时時]"
    r"|(?<=[周週期拜])[一二三四五六]+|七零八[落碎]|七七八八|三六九等|零零(?:[星碎散总總]|后来))"
    r"((?=[一二三四五六七八九]*[〇零])[〇零一二三四五六七八九]{2,}|[〇零一二三四五六七八九]{3,})"
    r"(?![〇零一二三四五六七八九十百千])"
)
_LONE_ZERO = re.compile("〇")
_DIGIT = "[0-9〇零一二三四五六七八九]"
_HYPHEN = "[-‐–−ー]"
_AREA = f"([0〇零]{_DIGIT}{{1,4}})"
_LAST = f"({_DIGIT}{{3,4}})"
# 090-1234-5678, (090)1234-5678, 090(1234)5678 and 010-12345678.
_TELEPHONE = re.compile(
    rf"(?<!{_DIGIT})(?<!{_HYPHEN})(?:"
    rf"(?:\({_AREA}\)\s?|{_AREA}{_HYPHEN})({_DIGIT}{{1,4}}){_HYPHEN}{_LAST}"
    rf"|{_AREA}\s?\(({_DIGIT}{{1,4}})\)\s?{_LAST}"
    rf"|{_AREA}{_HYPHEN}({_DIGIT}{{7,8}})"
    rf")(?!{_HYPHEN}?{_DIGIT})"
)
# 二三人 means "two or three people", not 23: two consecutive digits that are not part of a longer number.
_ADJACENT_DIGITS = re.compile(
    r"(?<![〇零一二三四五六七八九十百千万億兆点0-9])(一二|二三|三四|四五|五六|六七|七八|八九)"
    r"(?![〇零一二三四五六七八九十百千点0-9])"
)
_UNIT_VALUES = {"十": 10, "百": 100, "千": 1_000}
_GROUP_VALUES = {"万": 10_000, "億": 10**8, "亿": 10**8}
_NUMERALS = "〇零一二三四五六七八九十百千"
_ENOUGH = r"十分(?=[になだとすであ、。!?]|$|可能|注意|満足|理解)"
_COUNTER_NUMERAL = re.compile(
    rf"(?<![{_NUMERALS}万億兆数何幾腹第点])(?!{_ENOUGH}|百足|千歳|千代|九段|十勝|八戸|一行(?!目)|四面楚歌|八面六臂|五分五分|九分九厘|[一二三四五六七八九]{{2}}[^{_NUMERALS}万])"
    rf"[{_NUMERALS}万]+(?=分(?!の[{_NUMERALS}0-9]|咲|目|[野類業割担析解布])|時間|[歳才名頭軒社巻段戸位膳票章組](?![前置])|拍子|文字|節(?!句)|行(?![くきっけかこ為動事員])|足(?!す|り|ら)|部(?!分|屋|下|長)|号|勝|面(?![白倒接会])|人前|対(?=[{_NUMERALS}0-9])|代(?!わ|表|金))"
)
_KANJI_OF_FIGURES = {"20": "二十", "0": "零", "4": "四"}
_AS_KANJI = re.compile("(?<![0-9.,])(?:20(?=歳)|0(?=[時度点本])|4(?=畳))")
_JA_ONE = re.compile(r"(?<![零一二三四五六七八九十百千点])一(?=[百千])")
_ZH_TWO = re.compile(r"[两兩](?=[百千万亿萬億])")
# In an ordinal the digit 2 is 二 before any word: 第2个, 第1、2个.
# 三万五 is 35,000: the unit below the last one is not said.
_ZH_SHORT = re.compile(
    r"(?<=[一二三四五六七八九])([万千百])([一二三四五六七八九])(?![十百千万亿零点分])(?![一二三四五六七八九][十百千万亿零点一二三四五六七八九])"
)
_ZH_BELOW = {"万": "千", "千": "百", "百": "十"}
# 3万2000 is one number, and so is 3万5, 35,000.
_ZH_MIXED = re.compile(r"(?<![0-9.,])(?:[0-9]{1,4}[亿万]零?)+[0-9]{1,4}[亿万]?(?![0-9.,十百千万亿])")
_ZH_PIECE = re.compile("([0-9]+)([亿万]?)(零?)")
# The numerals of checks. Some are also parts of words (大陆, 队伍, 放肆, 人参), which stay.
_FORMAL_DIGITS = "壹壱弌贰貳弍弐叁叄參参肆伍陆陸柒捌玖"
_FORMAL_PLAIN = str.maketrans(
    f"{_FORMAL_DIGITS}拾佰仟萬億亿", "一一一二二二二三三三三四五六六七八九十百千万億億"
)
_FORMAL_ALONE = frozenset("壹壱弌贰貳弍弐叁叄柒捌玖")
_FORMAL = re.compile(rf"([{_FORMAL_DIGITS}拾佰仟十百千万萬亿億零〇]+)([元円角分圆圓]?)")
FORMAL = f"{_FORMAL.pattern}|{sorted(_FORMAL_ALONE)}|v1"
_ZH_ORDINAL = re.compile(r"第\s?[0-9][0-9.,]*(?:[、~和与到至-][0-9][0-9.,]*)*")
# It is also 二 at the end of a number in characters (三分之2天), in names (A2座) and in terms (2次方程, 2年级).
_ZH_TWO_OF = re.compile(
    r"(?<![0-9/零十百千万亿之a-z-])(?<![0-9][.,:])2(?=\s?(?:[个個位名只隻条條张張本天块塊点點家岁歲倍句段杯瓶碗辆輛架座间間套双雙对對份篇首支把颗顆棵种種周]"
    r"|[件匹朵粒片根盒盘盤袋包箱桶顿頓场場遍趟部封幅台斤米]|次(?![方元函曲])|年(?!级|\s?[0-9一二三四五六七八九十]+[班月])"
    r"|分钟|分鐘|小时|小時|公里|公斤|星期))"
)
_JA_PERCENT = re.compile(r"(?<=[零一二三四五六七八九十百千万億兆京])%")
_ZH_NUMERAL = "零一二三四五六七八九十百千万亿点"
# Separator of two numbers that would otherwise read as one: 5〜10 is 五・十, and 50 is 五十.
NUMBER_SEPARATOR = "・"
_NUMERAL = "零一二三四五六七八九十百千万億亿兆京点"
# The 百 of 百分之五 does not begin a number.
_NEIGHBORS = re.compile(rf"(?<![{_NUMERAL}])([{_NUMERAL}]+)[\W_]+(?=([{_NUMERAL}]+)(?![{_NUMERAL}]|分之))")
_GROUP = "".join(f"(?:[一二三四五六七八九]?{unit})?零?" for unit in "千百十") + "[一二三四五六七八九]?"
_ONE_NUMBER = re.compile(
    "".join(f"(?:{_GROUP}{unit})?" for unit in ("京", "兆", "[億亿]", "万"))
    + f"{_GROUP}(?:点[零一二三四五六七八九]+)?"
)
_ZH_PERCENT = re.compile(f"(?<![{_ZH_NUMERAL}])([{_ZH_NUMERAL}]+)%")

_PATTERNS = (
    *(_NUMBER, _PLACES, _LONE_ZERO, _TELEPHONE, _JA_ONE, _ZH_TWO, _ZH_ORDINAL, _ZH_SHORT),
    *(_ZH_MIXED, _ZH_TWO_OF, _JA_PERCENT, _ZH_PERCENT, _NEIGHBORS, _ONE_NUMBER, _COUNTER_NUMERAL, _AS_KANJI),
)
# All rules of this module as text, for the hash.
RULES = "|".join(pattern.pattern for pattern in _PATTERNS) + f"|{_LONGEST}|by value v2"


def spell_japanese_numbers(text: str) -> str:
    """Write the numbers of a Japanese text (after NFKC) in kanji, by value, and ``%`` after them as パーセント."""
    text = _TELEPHONE.sub(_join_as_figures, text)
    text = _spell_numbers(text, _ja_value)
    text = _PLACES.sub(lambda m: _spell_number(m[1].translate(_TO_FIGURES), None, _ja_value), text)
    text = _LONE_ZERO.sub("零", text)
    return _separate_numbers(_JA_PERCENT.sub("パーセント", _JA_ONE.sub("", text)))


def spell_chinese_numbers(text: str) -> str:
    """Write the numbers of a simplified Chinese text (after NFKC) in characters, by value; ``%`` as 百分之."""
    text = _ZH_SHORT.sub(lambda m: m[1] + m[2] + _ZH_BELOW[m[1]], _ZH_TWO.sub("二", text))
    text = _ZH_MIXED.sub(_join_number_groups, text)
    text = _ZH_ORDINAL.sub(lambda m: _spell_numbers(m[0], _zh_value), text)
    text = _ZH_TWO_OF.sub("两", text)
    text = _TELEPHONE.sub(_join_as_figures, text)
    text = _spell_numbers(text, _zh_value)
    text = _PLACES.sub(lambda m: _spell_number(m[1].translate(_TO_FIGURES), None, _zh_value), text)
    text = _LONE_ZERO.sub("零", text)
    return _separate_numbers(_ZH_PERCENT.sub(r"百分之\1", text))


def replace_japanese_formal_numerals(text: str) -> str:
    """Write the numerals of checks in the usual characters, by value: 壱萬円 as 一万円."""
    return _FORMAL.sub(lambda found: _replace_formal_numeral(found, _ja_value) + found[2], text)


def replace_chinese_formal_numerals(text: str) -> str:
    """Write the numerals of checks in the usual characters, by value: 伍仟圆 as 五千元."""

    def replace_numeral_and_money(found: re.Match[str]) -> str:
        plain = _replace_formal_numeral(found, _zh_value)
        return plain + (found[2] if plain == found[1] else found[2].replace("圆", "元").replace("圓", "元"))

    return _FORMAL.sub(replace_numeral_and_money, text)


def _replace_formal_numeral(found: re.Match[str], write: Callable[[int], str]) -> str:
    numeral, money = found.groups()
    characters = set(numeral)
    digits, units = characters & set(_FORMAL_DIGITS), characters & set("拾佰仟")
    groups = characters & set("十百千万萬亿億")
    if not digits and not (units and (money or found.string[max(0, found.start() - 1)] == "第")):
        return numeral
    own = characters & _FORMAL_ALONE
    before, behind = (
        found.string[found.start() - 1 : found.start()],
        found.string[found.end() : found.end() + 1],
    )
    if digits and money and (before in set("元円圆圓角") or behind in {"整", "正"}):
        own = digits  # 叁佰元伍角, 伍元整
    if not (units or (groups and (own or money)) or (own and money) or (len(numeral) > 2 and own)):
        return numeral
    if len(numeral) > 1 and not units and not groups:
        return numeral.translate(_FORMAL_PLAIN)  # digits one by one
    return write(_parse_numeral(numeral.translate(_FORMAL_PLAIN)))


def _join_number_groups(found: re.Match[str]) -> str:
    """Return the value of figures with 亿 and 万 between them in figures; unchanged if they are not one number."""
    total, limit = 0, 10**12
    for figures, unit, _ in _ZH_PIECE.findall(found[0]):
        size = _GROUP_VALUES.get(unit, 1)
        if size >= limit:
            return found[0]
        short = not unit and len(figures) == 1 and not found[0].endswith(f"零{figures}")
        total, limit = total + int(figures) * (limit // 10 if short else size), size
    return str(total)


def build_minus_pattern(after: str) -> str:
    """Return a pattern for spoken hyphens and minus signs before digits.

    A sign is spoken at the start of a word and after the characters of ``after``. After a character of a word, it is
    spoken if degrees or percent follow the number: 気温-5度, but not 長征-5号, 3-5, 10度-15度 or 10%-20%.
    """
    unit = r"(?=[0-9][0-9,.]*\s?(?:[度%‰]|摄氏度))"
    # 10摄氏度-15摄氏度 is also a range.
    word = r"(?<=[㐀-\u9fff])(?<![〇零一二三四五六七八九十百千万億兆亿])(?<![0-9].)(?<!氏度)"
    return rf"(?<![\w.,)%‰-])[-−](?=[0-9])|{after}[-−](?=[0-9])|{word}[-−]{unit}"


def separate_kanji_digits(text: str) -> str:
    """Separate the digits of 二三人 (二、三人), which a dictionary would read as 23 people."""
    return _ADJACENT_DIGITS.sub(lambda found: "、".join(found[0]), text)


def convert_counter_numerals(text: str) -> str:
    """Write kanji numerals before some counters in figures, which a dictionary reads as numbers: 五分 as 5分.

    Only before counters with which it reads the kanji as another word (ゴブ). 十分 stays where it means "enough".
    The reverse where figures are read in another way: 二十歳 (ハタチ), 零時 (レージ).
    """
    figures = _COUNTER_NUMERAL.sub(lambda found: str(_parse_numeral(found[0])), text)
    return _AS_KANJI.sub(lambda found: _KANJI_OF_FIGURES[found[0]], figures)


def _parse_numeral(numeral: str) -> int:
    """Return the value of a kanji numeral."""
    if not set(numeral) & set("十百千万億亿"):
        return int(numeral.translate(_TO_FIGURES))
    total = group = digits = 0
    for character in numeral:
        if character in _GROUP_VALUES:
            total += (group + digits or (0 if total else 1)) * _GROUP_VALUES[character]
            group = digits = 0
        elif character in _UNIT_VALUES:
            group, digits = group + (digits or 1) * _UNIT_VALUES[character], 0
        else:
            digits = digits * 10 + int(character.translate(_TO_FIGURES))
    return total + group + digits


def _separate_numbers(text: str) -> str:
    def add_separator(found: re.Match[str]) -> str:
        return found[1] + NUMBER_SEPARATOR if _ONE_NUMBER.fullmatch(found[1] + found[2]) else found[0]

    return _NEIGHBORS.sub(add_separator, text.replace(NUMBER_SEPARATOR, " "))


def _spell_numbers(text: str, value: Callable[[int], str]) -> str:
    return _NUMBER.sub(lambda found: _spell_number(found[1], found[2], value), text)


def _join_as_figures(found: re.Match[str]) -> str:
    return "".join(digits for digits in found.groups() if digits).translate(_TO_FIGURES)


def _spell_number(whole: str, fraction: str | None, value: Callable[[int], str]) -> str:
    figures = whole.replace(",", "")
    spelled = (figures[0] == "0" and len(figures) > 1) or len(figures) > _LONGEST
    written = figures.translate(_TO_KANJI) if spelled else value(int(figures))
    return f"{written}点{fraction.translate(_TO_KANJI)}" if fraction else written


def _to_numeral(number: int, *, chinese: bool) -> str:
    """A numeral: 110 is 百十 in Japanese and 一百一十 in Chinese, 10000000 千万 and 一千万, 105 百五 and 一百零五."""
    if number == 0:
        return "零"
    written = ""
    for power, unit in ((16, "京"), (12, "兆"), (8, "亿" if chinese else "億"), (4, "万"), (0, "")):
        group = number // 10**power % 10_000
        if group:
            zero = "零" if chinese and written and group < 1_000 else ""
            written += zero + _spell_group(group, chinese=chinese) + unit
    return written.removeprefix("一") if chinese and written.startswith("一十") else written


def _spell_group(group: int, *, chinese: bool) -> str:
    written = gap = ""
    for power, unit in ((3, "千"), (2, "百"), (1, "十"), (0, "")):
        digit = group // 10**power % 10
        if digit:
            silent = digit == 1 and unit and not chinese
            written += (gap if written else "") + ("" if silent else _DIGITS[digit]) + unit
            gap = ""
        elif chinese:
            gap = "零"
    return written


_ja_value, _zh_value = partial(_to_numeral, chinese=False), partial(_to_numeral, chinese=True)
