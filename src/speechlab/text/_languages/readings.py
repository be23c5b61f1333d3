"""Japanese text as it is spoken, in katakana, through OpenJTalk (the extra ``ja``).

OpenJTalk writes particles as spoken (は ワ, へ エ), numbers with their counters (10分 ジュップン) and most
long vowels as ー; words that its dictionary lacks come out letter by letter: せんせい センセイ, but 先生 センセー.
:func:`reading_key` removes that difference; it is what reading error rates are counted on.
"""

from __future__ import annotations

import re
import threading
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from speechlab.text._languages.japanese import JAPANESE_READING
from speechlab.text._third_party import load

if TYPE_CHECKING:
    from types import ModuleType

# The front end has buffers of fixed size and fails on a text that overflows them, so it is fed in pieces, which
# end where a sentence or a phrase ends if they can.
_LONGEST_PIECE = 300
_PIECE = re.compile(rf"[^。!?\n]{{1,{_LONGEST_PIECE}}}[。!?\n]*|[。!?\n]+")
# Symbols that OpenJTalk would take for a pause or keep; those that it reads (%, +, &) stay.
_UNREADABLE = re.compile(r"[^\w\s.,、。!?%+\-:/&]+")
_NOT_SPOKEN = re.compile(r"[^\w]+|_+")
_SAME_SOUND = str.maketrans("ヲヂヅヮ", "オジズワ")
_SMALL = frozenset("ァィゥェォャュョヮぁぃぅぇぉゃゅょゎ")
_KANA_LETTER = re.compile("[ぁ-ゖァ-ヺー]")
_VOWELS = {
    "ア": "アァカガサザタダナハバパマヤャラワ",
    "イ": "イィキギシジチニヒビピミリ",
    "ウ": "ウゥクグスズツヌフブプムユュルヴ",
    "エ": "エェケゲセゼテデネヘベペメレ",
    "オ": "オォコゴソゾトドノホボポモヨョロ",
}
_LONG_VOWEL = re.compile(
    "|".join(
        [f"(?<=[{row}]){vowel}" for vowel, row in _VOWELS.items()]
        + [f"(?<=[{_VOWELS['エ']}])イ", f"(?<=[{_VOWELS['オ']}])ウ"]
    )
)
_TO_KATAKANA = {code: code + 0x60 for code in range(ord("ぁ"), ord("ゖ") + 1)}
_lock = threading.Lock()
_threads = threading.local()
# Has kanji of the kind that OpenJTalk asks a second dictionary about.
_WARM_UP = "風の方は何"


def reading(text: str) -> str:
    """The reading of a Japanese text in katakana, as spoken.

    Args:
        text: Any text, of any length. Punctuation, emoji and other symbols that are not spoken are left out. Latin
            words come out as they are read in Japanese if the dictionary knows them, else letter by letter or,
            where even that fails, unchanged, so that no error can hide.

    Raises:
        MissingDependencyError: The extra ``ja`` is not installed.

    Example:
        >>> reading("東京へ行く。")
        'トーキョーエイク'
    """
    return _read(JAPANESE_READING(text))


def reading_key(text: str) -> str:
    """The reading with long vowels in one form, for comparison only.

    エイ and オウ are written エー and オー, and doubled vowels with ー, because readings that come from kana and
    readings that come from a dictionary differ in exactly that.
    """
    key = _LONG_VOWEL.sub("ー", reading(text))
    return re.sub("ー{2,}", "ー", key)


def mora_count(text: str) -> int:
    """How many morae a Japanese text has: kana of its reading, without the small ones that join another.

    ッ, ン and ー count as one each; letters that have no reading count not at all.
    """
    return sum(1 for kana in _KANA_LETTER.findall(reading(text)) if kana not in _SMALL)


@lru_cache(maxsize=16_384)
def _read(text: str) -> str:
    pieces = _PIECE.findall(_UNREADABLE.sub(" ", text))
    spoken = "".join(_pronounce(piece) for piece in pieces if piece.strip())
    # The front end widens Latin letters that it cannot read; \w keeps them, and NFKC narrows them again.
    spoken = _NOT_SPOKEN.sub("", _narrow(spoken))
    return spoken.translate(_TO_KATAKANA).translate(_SAME_SOUND)


def _narrow(text: str) -> str:
    import unicodedata

    return unicodedata.normalize("NFKC", text).lower()


def _pronounce(piece: str) -> str:
    with _lock:  # OpenJTalk keeps its state in one process-wide object
        openjtalk = _openjtalk()
        try:
            return cast(str, openjtalk.g2p(piece, kana=True))
        except RuntimeError:
            pass
    if len(piece) == 1:
        return piece
    middle = len(piece) // 2
    return _pronounce(piece[:middle]) + _pronounce(piece[middle:])


def _openjtalk() -> ModuleType:
    openjtalk = load("pyopenjtalk")
    if not getattr(_threads, "warm", False):
        # It opens its second dictionary once in each thread, by a call that is deprecated: not our user's affair.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            openjtalk.g2p(_WARM_UP, kana=True)
        _threads.warm = True
    return openjtalk
