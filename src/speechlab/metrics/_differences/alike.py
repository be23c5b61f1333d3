"""What a run of errors is about: another sound, or only another way to write what sounds alike.

The kinds, of which the first that holds is taken:

1. *number*: both sides have the same digits, whatever stands between them (10:35/1035), or they sound alike and one
   of them has digits.
2. *spelling*: without spaces both sides are the same (good bye/goodbye); or, in Japanese, *notation* of
   :func:`speechlab.metrics.compare_japanese`.
3. *homophone*: they sound alike: by the phonemes of hibari for English, where the extra ``local`` is installed; by
   the readings of Japanese and the syllables and tones of Chinese.
4. *sound*: all else.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from speechlab.errors import EngineError
from speechlab.metrics._differences.chinese import compare_chinese
from speechlab.metrics._differences.japanese import compare_japanese

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ErrorKind: TypeAlias = Literal["sound", "homophone", "number", "spelling"]
_STRESS = re.compile(r"[ˈˌ\s]")
_JAPANESE: dict[str, ErrorKind] = {"notation": "spelling", "homophone": "homophone", "recognition": "sound"}
_CHINESE: dict[str, ErrorKind] = {"homophone": "homophone"}


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
        if reference == hypothesis or language not in {"ja", "zh"}:
            return
        if language == "ja" and find_spec("pyopenjtalk") is None:
            return
        found: Sequence[Any] = (compare_japanese if language == "ja" else compare_chinese)(
            reference, hypothesis
        ).differences
        kinds = _JAPANESE if language == "ja" else _CHINESE
        self.homophones = sum(1 for one in found if one.kind == "homophone")
        if unit == "char":  # the tokens are the characters that the differences are counted in
            self._spans = [
                (one.start, one.start + len(one.reference), kinds.get(one.kind, "sound")) for one in found
            ]

    def of(self, start: int, said: str, heard: str) -> ErrorKind:
        """The kind of a run of errors.

        Args:
            start: Index of its first token in the reference.
            said: Its tokens in the reference, with spaces between words.
            heard: Its tokens in the hypothesis.
        """
        plain = written_alike(said, heard)
        if plain is not None:
            return plain
        for first, last, kind in self._spans:
            if first <= start <= last and kind != "sound":
                return kind
        if self._language == "en" and _sound_alike(said, heard):
            return "number" if _digits(said) or _digits(heard) else "homophone"
        return "sound"


def written_alike(said: str, heard: str) -> ErrorKind | None:
    """Whether two texts have the same digits, or are the same without spaces; None where neither holds."""
    one, other = _digits(said), _digits(heard)
    if one and one == other:
        return "number"
    bare = "".join(said.split())
    return "spelling" if bare and bare == "".join(heard.split()) else None


def _digits(text: str) -> str:
    return "".join(str(unicodedata.digit(one)) for one in text if one.isdigit())


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
