"""Classes of errors: another sound, or another spelling of the same sound.

Runs of errors are judged as wholes, and those of Japanese and Chinese characters also by the difference that each
error is part of. The kinds, of which the first that holds is taken:

1. *number*: both sides are the same figures without spaces, full stops and signs between figures (10:35/1035), or
   they sound alike and one of them has digits. $10/€10, -5/5 and 1.5/15 are other sums and numbers.
2. *spelling*: without spaces and full stops both sides are the same (good bye/goodbye); or, in Japanese, *notation*
   of :func:`speechlab.metrics.compare_japanese`.
3. *homophone*: they sound alike: by the phonemes of hibari for English, where the extra ``local`` is installed; by
   the readings of Japanese and the syllables and tones of Chinese.
4. *sound*: all else.
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
_LOOSE = re.compile(r"\s|(?<=\d)[^\w\s.](?=\d)|(?<!\d)\.|\.(?!\d)")  # a point between digits is a decimal one
_DIGIT = re.compile(r"\d")
_KINDS: dict[str, ErrorKind] = {"notation": "spelling", "homophone": "homophone"}
"""Kinds of the classes of differences that only look wrong."""
_COMPARED: dict[str | None, tuple[str, Callable[[str, str], JapaneseComparison | ChineseComparison]]] = {
    "ja": ("pyopenjtalk", compare_japanese),
    "zh": ("pypinyin", compare_chinese),
}
"""The package that knows how a language sounds, and what finds differences with it."""


class Kinds:
    """The kinds of the errors of one pair of texts.

    Attributes:
        homophones: How many places sound alike and are another word, counted or not: errors of readings pass over
            them. None where the runs of errors say it.
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
        # Differences are found in normalised texts: their places are those of the tokens if the reference is such.
        if unit == "char" and comparison.reference == reference:
            self._spans = [
                (one.start, one.start + len(one.reference), _KINDS.get(one.kind, "sound"))
                for one in comparison.differences
            ]

    def of(self, places: Sequence[float], said: str, heard: str) -> list[ErrorKind]:
        """The kinds of the errors of one run.

        Args:
            places: Index of the reference token of each error; of an insertion, half a token before the next.
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
    """Phonemes of English, where its front end is installed."""
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
