"""Classes of differences in English: another form of the same words, a word that sounds alike, or another sound.

Both texts are first written as they are said (``english_as_said``): numbers by value, times, dates, money,
contractions and spellings in one form. Where these words still differ, the first rule that applies decides:

1. Only sounds of hesitation differ (uh, um): *filler*, also where the normalizer drops them.
2. Both sides have a reading in common, without regard to blanks (5 km/five kilometres, e-mail/email, 4719/4 7 1 9):
   *notation*.
3. Both sides sound alike in the pronouncing dictionary (their/there): *homophone*.
4. All else: *recognition*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import islice, pairwise, product
from typing import TypeAlias

from rapidfuzz.distance import Levenshtein

from speechlab.metrics._differences.differences import (
    HARMLESS_CLASSES,
    Difference,
    DifferenceClass,
    Span,
    TextComparison,
    build_differences_and_tolerant_text,
    find_differing_span,
)
from speechlab.metrics._differences.english_as_said import MONTHS, SpokenText
from speechlab.metrics._differences.english_pronunciations import list_pronunciations
from speechlab.metrics._differences.english_spellings import to_american_by_rules
from speechlab.text import find_differing_runs, normalizer, words

_MOST_READINGS = 96  # combinations of the readings of several words
# Sounds of hesitation. Words that are also used so (like, well) are words.
FILLERS = frozenset(words("uh um er erm uhm umm uhh hm hmm hmmm mm mmm mhm ehm"))


def _read_readings_section(section: str) -> dict[str, tuple[str, ...]]:
    """Return a section of the table with lines such as ``vs: versus; against``; blanks in a reading do not count."""
    text = (files(__package__) / "english_readings.txt").read_text(encoding="utf-8")
    lines = text.split(f"# {section}\n")[1].split("#")[0].replace(" ", "").splitlines()
    return {name: tuple(readings.split(";")) for name, _, readings in (line.partition(":") for line in lines)}


_UNITS = _read_readings_section("behind a figure")
_TENS = ("", "x", "xx", "xxx", "xl", "l")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_ROMAN = {
    tens + digits: (str(value), f"{value}th", f"the{value}th")
    for value, (tens, digits) in enumerate(product(_TENS, _ONES))
    if len(tens + digits) > 1 and tens + digits != "xl"  # a size
}
_WORDS = _read_readings_section("anywhere") | _ROMAN
# Signs that need not be read.
SILENT = frozenset({"~", "/", "″"})
_BETWEEN = frozenset({"~", "/", "degrees", "square", "cubic", "sq", "squared"})
_DATE = re.compile(r"(\d{1,2})/(\d{1,2})(?:/(\d\d(?:\d\d)?))?")
_FRACTION = re.compile(r"(\d+)/(\d+)")


def has_figure_at_end(words: Sequence[str]) -> bool:
    """Return whether a word behind these may be a unit."""
    for word in reversed(words):
        if word not in _BETWEEN:
            return word[:1].isdigit()
    return False


def list_readings(words: Sequence[str], *, figure: bool) -> frozenset[str]:
    """Return the ways to read words, without blanks."""
    if len(words) == 1 and words[0].isalpha() and words[0] not in _WORDS and words[0] not in _UNITS:
        return frozenset((words[0], to_american_by_rules(words[0])))
    each = []
    for word in words:
        each.append((word, *_list_other_readings(word, figure=figure)))
        figure = word[:1].isdigit() or (figure and word in _BETWEEN)
    return frozenset(
        _normalize_fraction_key("".join(combination))
        for combination in islice(product(*each), _MOST_READINGS)
    )


def _list_other_readings(word: str, *, figure: bool) -> tuple[str, ...]:
    if ":" in word:
        full = (f"{word[:-3]}oclock", word[:-3]) if word.endswith(":00") else ()
        ratio = (word.replace(":", "to"),) if word[-2:-1] == ":" else ()
        figures = word.replace(":", "")
        return (figures, figures.removeprefix("0"), word.replace(":", "."), *ratio, *full)
    if "/" in word and word != "/":
        above, _, below = word.partition("/")
        is_fraction = _FRACTION.fullmatch(word) is not None
        shares: tuple[str, ...] = ()
        if is_fraction:
            shares = (f"{above}outof{below}", f"{above}over{below}", above + below)
        shares += {"1/2": ("1/2a", "1/2an", "a1/2"), "1/4": ("quarter",)}.get(word, ())
        return (*_list_date_readings(word), *shares)
    units = _UNITS.get(word, ()) if figure else ()
    if word[:1].isdigit() and word.endswith("s"):
        units += (f"{word[:-1]}seconds",)
    spelled = to_american_by_rules(word)
    return (*units, *_WORDS.get(word, ()), *((spelled,) if spelled != word else ()))


def _list_date_readings(word: str) -> list[str]:
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


def _normalize_fraction_key(key: str) -> str:
    key = re.sub(r"^a(?=1/[2-9])", "", key)
    key = re.sub(r"^(?:a|an|1)quarter", "1/4", key)
    return re.sub(r"^a([3-9]|10)th$", r"1/\1", key)


_Span: TypeAlias = tuple[int, int]
_Words: TypeAlias = tuple[str, ...]
_Classified: TypeAlias = "tuple[DifferenceClass, Span]"
_Part: TypeAlias = "tuple[DifferenceClass, _Span, _Span]"
_CONTRACTED = re.compile(r"[a-z]+(?:['\u2019][a-z]+)*")
_HESITATION = re.compile(rf"\b(?:{'|'.join(FILLERS)})\b", re.IGNORECASE)
_SEVERITY: tuple[DifferenceClass, ...] = ("filler", "notation", "homophone", "recognition")
_APOSTROPHES = {"'", "\u2019"}
_PIECE = 4  # words of a part that is looked for at the ends of a difference
_LONG = 12  # words of a difference that is not cut further


def compare_english(reference: str, hypothesis: str, one: str, other: str) -> TextComparison:
    """Class each difference between two texts with known normalized forms."""
    if one == other and not (_HESITATION.search(reference) or _HESITATION.search(hypothesis)):
        return TextComparison(reference, hypothesis, hypothesis, (), 0)
    # In a fixed order, because classes must not depend on which side is the reference.
    swapped = hypothesis < reference
    reference_words, recognized = SpokenText(reference), SpokenText(hypothesis)
    sides = (recognized, reference_words) if swapped else (reference_words, recognized)
    pieces = _classify_differing_runs(sides[0].words, sides[1].words)
    if not (reference_words.plain and recognized.plain):
        pieces = _add_notation_differences(pieces, *sides)
    contracted = bool(_APOSTROPHES & set(reference + hypothesis))
    classified: list[_Classified] = []
    for kind, reference_span, hypothesis_span in pieces:
        if one == other and kind != "filler":
            continue
        at, to = (hypothesis_span, reference_span) if swapped else (reference_span, hypothesis_span)
        span = *reference_words.locate_words(*at), *recognized.locate_words(*to)
        sounds_alike = (
            kind == "recognition" and contracted and _is_contraction_homophone(reference, hypothesis, span)
        )
        forms = (
            _normalize_english(reference[span[0] : span[1]]),
            _normalize_english(hypothesis[span[2] : span[3]]),
        )
        if kind == "recognition" and forms[0] == forms[1] != "":
            continue
        classified.append(("homophone" if sounds_alike else kind, span))
    if not classified and one != other:  # written in other words of the normalizer, such as OK and okay
        classified.append(("notation", find_differing_span(reference, hypothesis)))
    parts = _join_overlapping_parts(classified)
    differences, tolerant = build_differences_and_tolerant_text(reference, hypothesis, parts, " ")
    errors = _count_unforgiven_errors(differences, one, other, tolerant)
    if sum(difference.kind not in HARMLESS_CLASSES for difference in differences) > errors:
        # The normalizer makes parts of them alike (sam@mail.com is sam mail com).
        differences, _ = build_differences_and_tolerant_text(
            reference, hypothesis, _join_nearest_parts(parts, max(errors, 1)), " "
        )
    return TextComparison(reference, hypothesis, tolerant, differences, errors)


def _join_overlapping_parts(parts: Iterable[_Classified]) -> list[_Classified]:
    """Join the differences that overlap, for example in a date that is written in another order."""
    joined: list[_Classified] = []
    for kind, (i0, i1, j0, j1) in parts:
        last_kind, last = joined[-1] if joined else (kind, (0, 0, 0, 0))
        if joined and (i0 < last[1] or j0 < last[3]):
            joined[-1] = _join_parts((last_kind, last), (kind, (i0, i1, j0, j1)))
        else:
            joined.append((kind, (i0, i1, j0, j1)))
    return joined


def _join_nearest_parts(parts: list[_Classified], most: int) -> list[_Classified]:
    """Join counted differences, the nearest first, with what is between them, until no more than some are left."""
    counted = [place for place, (kind, _) in enumerate(parts) if kind not in HARMLESS_CLASSES]
    pairs = sorted(pairwise(counted), key=lambda pair: parts[pair[1]][1][0] - parts[pair[0]][1][1])
    continued = {
        place for first, last in pairs[: len(counted) - most] for place in range(first + 1, last + 1)
    }
    joined: list[_Classified] = []
    for place, part in enumerate(parts):
        if place in continued:
            joined[-1] = _join_parts(joined[-1], part)
        else:
            joined.append(part)
    return joined


def _join_parts(one: _Classified, other: _Classified) -> _Classified:
    (kind, (i0, i1, j0, j1)), (other_kind, (a, b, c, d)) = one, other
    span = min(i0, a), max(i1, b), min(j0, c), max(j1, d)
    return max(kind, other_kind, key=_SEVERITY.index), span


def _is_contraction_homophone(reference: str, hypothesis: str, span: Span) -> bool:
    """Return whether contractions sound alike, whose words are two (they're/there)."""
    i0, i1, j0, j1 = span
    olds = reference[i0:i1], _prepend_previous_word(reference, i0, i1)
    news = hypothesis[j0:j1], _prepend_previous_word(hypothesis, j0, j1)
    for pair in product(olds, news):
        text = "".join(pair)
        if _APOSTROPHES & set(text) and not any(map(str.isdecimal, text)):
            old, new = (list_pronunciations(tuple(_CONTRACTED.findall(side.lower()))) for side in pair)
            if not old.isdisjoint(new):
                return True
    return False


def _prepend_previous_word(text: str, start: int, end: int) -> str:
    """Return a part of a text, and the word before it, of which a contraction may be the end (could've/could of)."""
    before = text[:start].rstrip()
    return before[before.rfind(" ") + 1 :] + text[len(before) : end]


def _add_notation_differences(
    differences: Iterable[_Part], one: SpokenText, other: SpokenText
) -> Iterator[_Part]:
    """Yield the differences, and the parts that are alike as they are said, and not as they are written."""
    i = j = 0
    ends = len(one.words), len(other.words)
    last: _Part = ("notation", (ends[0], ends[0]), (ends[1], ends[1]))
    for difference in [*differences, last]:
        _, (i0, i1), (j0, j1) = difference
        begun: int | None = None
        for step in range(i0 - i + 1):
            other_form = step < i0 - i and (
                _normalize_english(one.get_written_word(i + step))
                != _normalize_english(other.get_written_word(j + step))
            )
            if other_form and begun is None:
                begun = step
            elif begun is not None and not other_form:
                yield "notation", (i + begun, i + step), (j + begun, j + step)
                begun = None
        if i1 > i0 or j1 > j0:
            yield difference
        i, j = i1, j1


@lru_cache(maxsize=4_096)
def _normalize_english(text: str) -> str:
    return normalizer("en")(text)


def _count_unforgiven_errors(differences: Sequence[Difference], one: str, other: str, tolerant: str) -> int:
    """Word errors of the hypothesis without those that are forgiven."""
    counted = sum(difference.kind not in HARMLESS_CLASSES for difference in differences)
    if not counted:
        return 0
    words = one.split()
    errors = Levenshtein.distance(words, other.split())
    if counted < len(differences):
        forgiven = Levenshtein.distance(words, normalizer("en")(tolerant).split())
        errors = min(errors, max(forgiven, counted))
    return errors


def _classify_differing_runs(here: list[str], there: list[str]) -> Iterator[_Part]:
    for i0, i1, j0, j1 in find_differing_runs(here, there):
        digit = any(has_figure_at_end(words[max(0, at - 3) : at]) for words, at in ((here, i0), (there, j0)))
        for kind, (a, b), (c, d) in _classify_run_parts(tuple(here[i0:i1]), tuple(there[j0:j1]), digit):
            yield kind, (i0 + a, i0 + b), (j0 + c, j0 + d)


@lru_cache(maxsize=16_384)
def _classify_run_parts(one: _Words, other: _Words, digit: bool) -> list[_Part]:
    """Return the classes of the parts of a run, with their ranges in both sides."""
    kind_of_all = _classify_part(one, other, digit)
    if kind_of_all != "recognition" or len(one) + len(other) <= 2 or max(len(one), len(other)) > _LONG:
        return [(kind_of_all, (0, len(one)), (0, len(other)))]
    front, (i, j) = _peel_harmless_parts(one, other, digit)
    back, (m, n) = _peel_harmless_parts(one[i:][::-1], other[j:][::-1], False, backwards=True)
    middle: list[_Part] = []
    (i1, j1) = (len(one) - m, len(other) - n)
    if i1 > i or j1 > j:
        middle = _classify_word_by_word(one, other, (i, i1), (j, j1))
    turned = [
        (kind, (len(one) - b, len(one) - a), (len(other) - d, len(other) - c))
        for kind, (a, b), (c, d) in reversed(back)
    ]
    return [*front, *middle, *turned]


def _classify_word_by_word(one: _Words, other: _Words, here: _Span, there: _Span) -> list[_Part]:
    """Word by word, if both sides have as many words; neighboring errors are one."""
    (i, i1), (j, j1) = here, there
    if i1 - i != j1 - j:
        return [("recognition", here, there)]
    judged: list[_Part] = []
    for step in range(i1 - i):
        a, c = i + step, j + step
        kind = _classify_part(one[a : a + 1], other[c : c + 1], False)
        if judged and kind == judged[-1][0] == "recognition":
            (b, _), (d, _) = judged.pop()[1:]
            judged.append((kind, (b, a + 1), (d, c + 1)))
        else:
            judged.append((kind, (a, a + 1), (c, c + 1)))
    return judged


def _peel_harmless_parts(
    one: _Words, other: _Words, digit: bool, *, backwards: bool = False
) -> tuple[list[_Part], tuple[int, int]]:
    """Parts at the start of a run that are no errors of recognition, and where they end."""
    judged: list[_Part] = []
    i = j = 0
    while i < len(one) or j < len(other):
        for a, b in _SIZES:
            if i + a > len(one) or j + b > len(other):
                continue
            old, new = one[i : i + a], other[j : j + b]
            kind = (
                _classify_part(old[::-1], new[::-1], False)
                if backwards
                else _classify_part(old, new, digit and not i)
            )
            if kind != "recognition":
                judged.append((kind, (i, i + a), (j, j + b)))
                i, j = i + a, j + b
                break
        else:
            break
    return judged, (i, j)


def _classify_part(one: _Words, other: _Words, digit: bool) -> DifferenceClass:
    fillers = FILLERS - {"mm"} if digit else FILLERS  # 30 mm are millimeters
    if not fillers.isdisjoint(one) or not fillers.isdisjoint(other):
        one = tuple(word for word in one if word not in fillers)
        other = tuple(word for word in other if word not in fillers)
        if one == other:
            return "filler"
    if not one or not other:
        # A range sign or a full hour may be silent.
        return "notation" if (one or other)[0] in SILENT and len(one or other) == 1 else "recognition"
    figures = [words[0].split("/") for words in (one, other) if len(words) == 1]
    if len(figures) == 2 and len(figures[0]) > 1 and figures[0][1::-1] == figures[1][:2] != figures[0][:2]:
        return "recognition"  # 2/3 and 3/2 are no two forms of one date
    if not list_readings(one, figure=digit).isdisjoint(list_readings(other, figure=digit)):
        return "notation"
    return (
        "homophone" if not list_pronunciations(one).isdisjoint(list_pronunciations(other)) else "recognition"
    )


_SIZES = sorted(
    ((a, b) for a in range(_PIECE + 1) for b in range(_PIECE + 1) if a + b),
    key=lambda size: (sum(size), size),
)
