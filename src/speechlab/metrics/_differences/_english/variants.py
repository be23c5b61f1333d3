"""Readings of what can be read in several ways: units, abbreviations, ranges, contractions, dates in figures."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import islice, product
from typing import TYPE_CHECKING

from speechlab.metrics._differences._english.rules import MONTHS
from speechlab.text import words

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 96  # combinations of the readings of several words
FILLERS = frozenset(words("uh um er erm uhm umm uhh hm hmm hmmm mm mmm mhm ehm"))
"""Sounds of hesitation. Words that are also used so (like, well) are words."""


def _read(section: str) -> dict[str, tuple[str, ...]]:
    """A section of the table with lines such as ``vs: versus; against``; blanks in a reading do not count."""
    text = (files(__package__) / "readings.txt").read_text(encoding="utf-8")
    lines = text.split(f"# {section}\n")[1].split("#")[0].replace(" ", "").splitlines()
    return {name: tuple(readings.split(";")) for name, _, readings in (line.partition(":") for line in lines)}


_UNITS = _read("behind a figure")
_TENS = ("", "x", "xx", "xxx", "xl", "l")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_ROMAN = {
    tens + ones: (str(value), f"{value}th", f"the{value}th")
    for value, (tens, ones) in enumerate(product(_TENS, _ONES))
    if len(tens + ones) > 1 and tens + ones != "xl"  # a size
}
_WORDS = _read("anywhere") | _ROMAN
SILENT = frozenset({"~", "/", "″"})
"""Signs that need not be read."""
_BETWEEN = frozenset({"~", "/", "degrees", "square", "cubic", "sq", "squared"})
_DATE = re.compile(r"(\d{1,2})/(\d{1,2})(?:/(\d\d(?:\d\d)?))?")
_FRACTION = re.compile(r"(\d+)/(\d+)")


def behind_figure(words: Sequence[str]) -> bool:
    """Whether a word behind these may be a unit."""
    for word in reversed(words):
        if word not in _BETWEEN:
            return word[:1].isdigit()
    return False


def readings(words: Sequence[str], *, figure: bool) -> frozenset[str]:
    """The ways to read words, without blanks."""
    if len(words) == 1 and words[0].isalpha() and words[0] not in _WORDS and words[0] not in _UNITS:
        return frozenset(words)
    each = []
    for word in words:
        each.append((word, *_other(word, figure=figure)))
        figure = word[:1].isdigit() or (figure and word in _BETWEEN)
    return frozenset(_plain("".join(combination)) for combination in islice(product(*each), _MOST))


def _other(word: str, *, figure: bool) -> tuple[str, ...]:
    if ":" in word:
        full = (f"{word[:-3]}oclock", word[:-3]) if word.endswith(":00") else ()
        ratio = (word.replace(":", "to"),) if word[-2:-1] == ":" else ()
        figures = word.replace(":", "")
        return (figures, figures.removeprefix("0"), word.replace(":", "."), *ratio, *full)
    if "/" in word and word != "/":
        return (*_dates(word), *_out_of(word))
    units = _UNITS.get(word, ()) if figure else ()
    return units + _WORDS.get(word, ())


def _dates(word: str) -> list[str]:
    match = _DATE.fullmatch(word)
    if match is None:
        return []
    first, second, year = int(match[1]), int(match[2]), match[3] or ""
    years = (year, f"20{year}", f"19{year}") if len(year) == 2 else (year,)
    orders = [(first, second)] if second <= 12 else []
    orders += [(second, first)] if first <= 12 else []
    return [
        f"{day}{MONTHS[month - 1]}{each}" for day, month in orders if month and day <= 31 for each in years
    ]


def is_order_of_figures(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether only the order of two figures differs (2/3 and 3/2), which are no two forms of one date."""
    figures = [words[0].split("/") for words in (one, other) if len(words) == 1]
    return len(figures) == 2 and len(figures[0]) > 1 and figures[0][1::-1] == figures[1][:2] != figures[0][:2]


def _out_of(word: str) -> list[str]:
    match = _FRACTION.fullmatch(word)
    return (
        []
        if match is None
        else [f"{match[1]}outof{match[2]}", f"{match[1]}over{match[2]}", match[1] + match[2]]
    )


def _plain(key: str) -> str:
    key = re.sub(r"^a(?=1/[2-9])", "", key)
    key = re.sub(r"^(?:a|an|1)quarter", "1/4", key)
    return re.sub(r"^a([3-9]|10)th$", r"1/\1", key)
