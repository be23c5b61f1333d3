"""English numbers in words: their values, digit by digit where they are read so."""

from __future__ import annotations

import re
from fractions import Fraction

from speechlab.text import words


def _map_names_to_values(names: str, values: range) -> dict[str, int]:
    return dict(zip(words(names), values, strict=True))


_UNITS = _map_names_to_values("zero one two three four five six seven eight nine", range(10))
_TEENS = _map_names_to_values(
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen", range(10, 20)
)
_TENS = _map_names_to_values("twenty thirty forty fifty sixty seventy eighty ninety", range(20, 100, 10))
_TENS["fourty"] = 40
_LARGE = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_REPEATS = {"double": 2, "triple": 3}
_IRREGULAR = {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}
_ORDINALS = (
    {f"{name}th": value for name, value in (_UNITS | _TEENS | _LARGE).items()}
    | {f"{name[:-1]}ieth": value for name, value in _TENS.items()}
    | _IRREGULAR
)
_PARTS = {
    "half": 2,
    "halves": 2,
    "quarter": 4,
    "quarters": 4,
    **{f"{name}s": value for name, value in _ORDINALS.items() if 3 <= value <= 20},
    **{
        name: value
        for name, value in _ORDINALS.items()
        if name in {"third", "fifth", "sixth", "eighth", "tenth"}
    },
}
_DECADES = {f"{name[:-1]}ies": value for name, value in _TENS.items()}
VALUES = _UNITS | _TEENS | _TENS
# Words of figures and ordinals that are one word.
IN_WORDS = {str(value): word for word, value in VALUES.items() if word != "fourty"} | {
    f"{value}th": word for word, value in _ORDINALS.items()
}
_DIGITS = frozenset({*_UNITS, "oh", "o"})
NUMBER_WORDS = frozenset({*VALUES, *_LARGE, *_ORDINALS, *_PARTS, *_DECADES, *_REPEATS, "oh", "o", "point"})
_FIGURE = r"\d+(?:\.\d+)?"
_START = "|".join(
    sorted({*VALUES, *_ORDINALS, *_DECADES, *_REPEATS, "point"} - {"hundredth", "thousandth"}, key=len)[::-1]
)
_INSIDE = "|".join(sorted(NUMBER_WORDS, key=len)[::-1])
_AND = r"(?:[\s-]+and)?(?:[\s-]+an?(?=[\s-]+(?:half|quarter|third|fifth|sixth|eighth|tenth|hundred|thousand)\b))?"
# A run of words and figures that may be one number or several.
RUN = re.compile(
    rf"(?<![\w.,'])(?:(?:an?|half[\s-]an?)[\s-]+(?=(?:{'|'.join(_LARGE)})\b)|(?={_START}|oh\b|{_FIGURE}[\s-](?:and\b|{_INSIDE})))"
    rf"(?:{_FIGURE}(?=[\s-])|(?:{_INSIDE})\b(?!'))"
    rf"(?:{_AND}(?:[\s-]+(?:{_INSIDE})|\s+{_FIGURE}(?![\w/:,]|-\d|\.\d))\b(?!'))*"
)


def to_figures(run: str) -> str:
    """The numbers of a run in figures, with ``th`` behind ordinals; adjacent numbers are separated by blanks."""
    reader = _NumberReader(re.split(r"[\s-]+", run))
    return " ".join(iter(reader.parse_number, ""))


class _NumberReader:
    """A reader of number words, one number after the other."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0

    def _peek_word(self, ahead: int = 0) -> str:
        return self._words[self._at + ahead] if self._at + ahead < len(self._words) else ""

    def _take_word(self) -> str:
        self._at += 1
        return self._words[self._at - 1]

    def parse_number(self) -> str:
        """Return the next number, or the next word if it begins none; empty at the end."""
        word = self._peek_word()
        if not word:
            return ""
        if word in {"oh", "o", "zero"} and self._peek_word(1) != "point":
            self._take_word()
            return "0"
        if word in _REPEATS:
            self._take_word()
            following = self._peek_word()
            if following in _UNITS or following in {"oh", "o"}:
                return str(_UNITS.get(self._take_word(), 0)) * _REPEATS[word]
            return word
        if word in _DECADES:
            self._take_word()
            return f"{_DECADES[word]}s"
        if word in {"and", "a", "an"} and self._peek_word(1) not in _LARGE:
            return self._take_word()
        if word == "half" and self._peek_word(2) in _LARGE:  # half a million
            self._at += 2
            return _format_as_decimal(Fraction(_LARGE[self._take_word()], 2))
        return self._parse_large_number()

    def _parse_large_number(self) -> str:
        """Return a number with its large parts in descending order, an ordinal, or a fraction."""
        total, limit = Fraction(0), 10**15
        begun = False
        while True:
            start = self._at
            if begun and self._peek_word() == "and":
                self._at += 1
            value, kind = self._parse_number_part()
            if value is None or (begun and value >= limit):
                self._at = start
                break
            if kind == "fraction" and not begun:
                return f"{value.numerator}/{value.denominator}"
            total, begun = total + value, True
            if kind == "ordinal":
                return f"{_format_as_decimal(total)}th"
            if kind != "large":
                break
            # The power of ten that the rest of the number must stay below.
            limit = 1
            while value % (limit * 10) == 0 and limit < value:
                limit *= 10
        if not begun:
            return self._take_word()
        return _format_as_decimal(total)

    def _parse_number_part(self) -> tuple[Fraction | None, str]:
        """Return the next number with at most one hundred and one larger multiplier."""
        small = self._parse_small_number()
        if small is None:
            return None, ""
        value, kind = small
        if kind:
            return value, kind
        if self._peek_word() == "hundred":
            self._take_word()
            value *= 100
            remainder, kind = self._parse_after_hundred()
            value += remainder
            if kind == "ordinal":
                return value, kind
        elif self._peek_word() in {"hundredth", "thousandth", "millionth"}:
            return value * _ORDINALS[self._take_word()], "ordinal"
        while self._peek_word() in _LARGE and self._peek_word() != "hundred":
            value, kind = value * _LARGE[self._take_word()], "large"
        start = self._at
        if self._peek_word() == "and" and self._peek_word(1) in {"a", "an", "one", "three", "1", "3"}:
            numerator, denominator = self._peek_word(1), self._peek_word(2)
            if denominator in _PARTS and (kind != "large" or denominator in {"half", "quarter"}):
                self._at = start + 3
                value += Fraction({"three": 3, "3": 3}.get(numerator, 1), _PARTS[denominator])
                while self._peek_word() in _LARGE:
                    value, kind = value * _LARGE[self._take_word()], "large"
        return value, kind

    def _parse_after_hundred(self) -> tuple[Fraction, str]:
        """Tens and ones behind a hundred; none where figures are read one by one (eight hundred five five five)."""
        start = self._at
        if self._peek_word() == "and":
            self._at += 1
        elif self._peek_word() in _DIGITS and self._peek_word(1) in _DIGITS:
            return Fraction(0), ""
        remainder = self._parse_small_number()
        if remainder is not None and remainder[0] < 100 and remainder[1] != "fraction":
            return remainder
        self._at = start
        return Fraction(0), "large"

    def _parse_small_number(self) -> tuple[Fraction, str] | None:
        """Return a number below a hundred in words, or a figure, with its decimals."""
        word = self._peek_word()
        if word in {"a", "an"}:
            self._take_word()
            return Fraction(1), ""
        if word and word[0].isdigit():
            self._take_word()
            return self._parse_fraction(Fraction(word)) or (Fraction(word), "")
        if word in _ORDINALS and word not in {"hundredth", "thousandth"}:
            self._take_word()
            return Fraction(_ORDINALS[word]), "ordinal"
        value = None
        if word in _TENS:
            self._take_word()
            value = _TENS[word]
            unit = self._peek_word()
            if unit in _UNITS and unit != "zero":
                value += _UNITS[self._take_word()]
            elif _ORDINALS.get(unit, 99) < 10:
                return Fraction(value + _ORDINALS[self._take_word()]), "ordinal"
        elif word in VALUES:
            self._take_word()
            value = VALUES[word]
            if fraction := self._parse_fraction(Fraction(value)):
                return fraction
        if self._peek_word() == "point":
            decimals = self._parse_decimals()
            if decimals:
                return Fraction(f"{value or 0}.{decimals}"), ""
        return None if value is None else (Fraction(value), "")

    def _parse_fraction(self, count: Fraction) -> tuple[Fraction, str] | None:
        """Return one third, three quarters, 3 quarters."""
        if (
            count.denominator == 1
            and self._peek_word() in _PARTS
            and (count == 1) != self._peek_word().endswith("s")
        ):
            return count / _PARTS[self._take_word()], "fraction"
        return None

    def _parse_decimals(self) -> str:
        start = self._at
        self._take_word()
        digits = ""
        while self._peek_word() in VALUES or self._peek_word() in {"oh", "o"} or self._peek_word().isdigit():
            word = self._take_word()
            digits += word if word.isdigit() else str(VALUES.get(word, 0))
        if not digits:
            self._at = start
        return digits


def _format_as_decimal(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    for digits in range(1, 13):
        if (value * 10**digits).denominator == 1:
            integer, decimals = divmod((value * 10**digits).numerator, 10**digits)
            return f"{integer}.{decimals:0{digits}d}"
    return f"{value.numerator}/{value.denominator}"
