"""Kinds of errors: another sound, or another spelling of the same sound.

The rules for a run of errors come first. If none applies, an error in Japanese or Chinese characters gets the kind of
the difference that contains it. The kinds, of which the first that applies is taken:

1. *number*: both sides are equal without spaces, full stops and signs between digits, and have digits (10:35/1035);
   or they sound alike and one of them has digits. $10/€10, -5/5 and 1.5/15 are different sums and numbers.
2. *spelling*: both sides are equal without spaces and full stops (good bye/goodbye); or, in Japanese, the difference
   is *notation* in :func:`speechlab.metrics.compare_japanese`.
3. *homophone*: both sides sound alike, by hibari's phonemes for English (if the extra ``local`` is installed), by the
   readings of Japanese, or by the syllables and tones of Chinese.
4. *sound*: all other errors.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from speechlab.errors import EngineError
from speechlab.metrics._differences.chinese import ChineseComparison, compare_chinese
from speechlab.metrics._differences.japanese import JapaneseComparison, compare_japanese

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ErrorKind: TypeAlias = Literal["sound", "homophone", "number", "spelling"]
_STRESS = re.compile(r"[ˈˌ\s]")
# Ignored: white space, signs between digits, and full stops that are no decimal points.
_LOOSE = re.compile(r"\s|(?<=\d)[^\w\s.](?=\d)|(?<!\d)\.|\.(?!\d)")
_DIGIT = re.compile(r"\d")
_KINDS: dict[str, ErrorKind] = {"notation": "spelling", "homophone": "homophone"}
"""Kinds of the classes of differences that cannot be heard."""
_COMPARED: dict[str | None, tuple[str, Callable[[str, str], JapaneseComparison | ChineseComparison]]] = {
    "ja": ("pyopenjtalk", compare_japanese),
    "zh": ("pypinyin", compare_chinese),
}
"""For each language, the package with its pronunciation and the comparison that uses it."""


class Kinds:
    """The kinds of the errors of one pair of texts.

    Attributes:
        homophones: Number of places with another word that sounds alike, also if they are no errors in the unit
            (readings ignore homophones). None if the runs of errors give this number.
    """

    def __init__(self, reference: str, hypothesis: str, unit: str, language: str | None) -> None:
        self._spans: list[tuple[int, int, ErrorKind]] = []
        self._language = language
        self.homophones: int | None = None
        package, compare = _COMPARED.get(language, ("", None))
        if reference == hypothesis or compare is None or find_spec(package) is None:
            return
        comparison: Any = compare(reference, hypothesis)
        self.homophones = comparison.count("homophone")
        # Differences have places in the normalised reference. These are places of tokens only if the reference is
        # normalised.
        if unit == "char" and comparison.reference == reference:
            self._spans = [
                (one.start, one.start + len(one.reference), _KINDS.get(one.kind, "sound"))
                for one in comparison.differences
            ]

    def of(self, places: Sequence[float], said: str, heard: str) -> list[ErrorKind]:
        """The kinds of the errors of one run.

        Args:
            places: Index of the reference token of each error; for an insertion, half a token before the next one.
            said: The tokens of the run in the reference, with spaces between words.
            heard: Its tokens in the hypothesis.
        """
        kind = self._of_run(said, heard)
        return [self._at(place) if kind is None else kind for place in places]

    def _of_run(self, said: str, heard: str) -> ErrorKind | None:
        one, other = (_LOOSE.sub("", text) for text in (said, heard))
        if one and one == other:
            return "number" if _DIGIT.search(one) else "spelling"
        if self._language == "en" and _sound_alike(said, heard):
            return "number" if _DIGIT.search(said + heard) else "homophone"
        return None

    def _at(self, place: float) -> ErrorKind:
        return next((kind for first, last, kind in self._spans if first - 1 < place < last), "sound")


def _sound_alike(said: str, heard: str) -> bool:
    reader = _english()
    if reader is None or not said.strip() or not heard.strip():
        return False
    one, other = reader(said), reader(heard)
    return bool(one) and one == other


@cache
def _english() -> Callable[[str], str] | None:
    """A function from English text to its phonemes; None if the front end is not installed."""
    if find_spec("hibari") is None:
        return None
    from speechlab.engines import ReadHere

    reader = ReadHere()

    @lru_cache(maxsize=4_096)
    def phonemes(text: str) -> str:
        try:
            return _STRESS.sub("", reader.english(text))
        except EngineError:
            return ""

    return phonemes
