"""Kinds of errors: another sound, or another spelling of the same sound.

The rules for a run of errors come first. If none applies, an error in Japanese or Chinese characters gets the kind of
the difference that contains it. The kinds, of which the first that applies is taken:

1. *number*: both sides are equal without spaces, full stops and signs between digits, and have digits (10:35/1035);
   or they sound alike and one of them has digits. $10/€10, -5/5 and 1.5/15 are different sums and numbers.
2. *spelling*: both sides are equal without spaces and full stops (good bye/goodbye), or the difference is *notation*
   in :func:`speechlab.metrics.compare_texts`.
3. *homophone*: both sides sound alike, by the pronouncing dictionary of English, the readings of Japanese, or the
   syllables and tones of Chinese.
4. *sound*: all other errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from speechlab.metrics._differences.compare import compare_texts, compared, has_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

ErrorKind: TypeAlias = Literal["sound", "homophone", "number", "spelling"]
# Ignored: white space, signs between digits, and full stops that are no decimal points.
_LOOSE = re.compile(r"\s|(?<=\d)[^\w\s.](?=\d)|(?<!\d)\.|\.(?!\d)")
_DIGIT = re.compile(r"\d")
_KINDS: dict[str, ErrorKind] = {"homophone": "homophone", "notation": "spelling"}
"""Kinds of the classes of differences that cannot be heard."""


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
        if reference == hypothesis or language not in {"ja", "zh"} or not has_classes(language):
            return
        comparison = compare_texts(reference, hypothesis, language)
        self.homophones = comparison.count("homophone")
        # Differences have places in the normalised reference. These are places of tokens only if the reference is
        # normalised.
        if unit == "char" and comparison.reference == reference:
            self._spans = [
                (one.start, one.start + len(one.reference), _KINDS.get(one.kind, "sound"))
                for one in comparison.differences
            ]

    def of(self, places: Sequence[float], said: str, heard: str) -> list[ErrorKind]:
        """The kinds of the errors of one run."""
        kind = self._of_run(said, heard)
        return [self._at(place) if kind is None else kind for place in places]

    def _of_run(self, said: str, heard: str) -> ErrorKind | None:
        one, other = (_LOOSE.sub("", text) for text in (said, heard))
        if one and one == other:
            return "number" if _DIGIT.search(one) else "spelling"
        if self._language == "en" and said and heard:
            kinds = {difference.kind for difference in compared(said, heard, said, heard, "en").differences}
            if kinds <= {"notation", "homophone"}:
                return "number" if _DIGIT.search(said + heard) else _KINDS[min(kinds)]
        return None

    def _at(self, place: float) -> ErrorKind:
        return next((kind for first, last, kind in self._spans if first - 1 < place < last), "sound")
