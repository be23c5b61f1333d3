"""Japanese text as it is spoken, in katakana, through OpenJTalk (the extra ``ja``).

OpenJTalk writes particles as spoken (は ワ, へ エ), numbers with their counters (10分 ジュップン) and most
long vowels as ー; words that its dictionary lacks come out letter by letter: せんせい センセイ, but 先生 センセー.
:func:`reading_key` removes that difference; it is what reading error rates are counted on.
"""

from __future__ import annotations

import re
import threading
import warnings
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from speechlab._arguments import check_text
from speechlab.text._languages.japanese import JAPANESE_READING
from speechlab.text._languages.numbers import APART, digits_apart, japanese_numbers
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
_LATIN_WORD = re.compile("[A-Za-z]{2,}")
# Names of the letters, A to Z, as OpenJTalk spells a word that it does not know.
_LETTERS = (
    *("エー", "ビー", "シー", "ディー", "イー", "エフ", "ジー", "エイチ", "アイ"),
    *("ジェー", "ケー", "エル", "エム", "エヌ", "オー", "ピー", "キュー", "アール"),
    *("エス", "ティー", "ユー", "ブイ", "ダブリュー", "エックス", "ワイ", "ゼット"),
)
# Signs that are spoken, as the normaliser writes them.
_SIGNS = {".": "点", "%": "パーセント"}
_lock = threading.Lock()
_threads = threading.local()
# Has kanji of the kind that OpenJTalk asks a second dictionary about.
_WARM_UP = "風の方は何"


class SpokenWord(NamedTuple):
    """One word of a Japanese text as it is spoken.

    Attributes:
        start: Where it begins in the text, in characters.
        end: Where it ends.
        kana: Its reading in katakana, in its context.

    Example:
        >>> [(word.start, word.kana) for word in spoken_words("三時")]
        [(0, 'サン'), (1, 'ジ')]
    """

    start: int
    end: int
    kana: str


def reading(text: str) -> str:
    """The reading of a Japanese text in katakana, as spoken.

    Args:
        text: Any text, of any length. Punctuation, emoji and other symbols that are not spoken are left out. Latin
            words come out as they are read in Japanese if the dictionary knows them in any case (zoom, Zoom or
            ZOOM), else letter by letter or, where even that fails, unchanged, so that no error can hide. 二三人 is
            read as two or three people, ニサンニン.

    Raises:
        MissingDependencyError: The extra ``ja`` is not installed.

    Example:
        >>> reading("東京へ行く。")
        'トーキョーエイク'
    """
    check_text(text)
    return _read(_readable(text))


def reading_key(text: str) -> str:
    """The reading with long vowels in one form, for comparison only.

    エイ and オウ are written エー and オー, and doubled vowels with ー, because readings that come from kana and
    readings that come from a dictionary differ in exactly that.

    Example:
        >>> reading_key("先生") == reading_key("せんせー")
        True
    """
    return kana_key(reading(text))


def kana_key(kana: str) -> str:
    """The form of a reading under which :func:`reading_key` compares it.

    Example:
        >>> kana_key("センセイ") == kana_key("センセエ")
        True
    """
    check_text(kana, "kana")
    return re.sub("ー{2,}", "ー", _LONG_VOWEL.sub("ー", kana))


def spoken_words(text: str, written: str | None = None) -> tuple[SpokenWord, ...]:
    """The words of a normalised Japanese text with their places and readings.

    Args:
        text: A text as the normaliser ``ja`` leaves it, in any case. Digits in a row are read one by one, since the
            normaliser writes numbers by value.
        written: The text before normalisation, if that is at hand: it is then read as :func:`reading` reads it, and
            not a second time.

    Returns:
        The words that are spoken, in order; none where their places cannot be told, which is rare.

    Raises:
        InvalidRequestError: A text is not a str.
        MissingDependencyError: The extra ``ja`` is not installed.

    Example:
        >>> [(word.start, word.end, word.kana) for word in spoken_words("今日は雨")]
        [(0, 2, 'キョー'), (2, 3, 'ワ'), (3, 4, 'アメ')]
    """
    check_text(text)
    if written is not None:
        check_text(written, "written")
    return _spoken_words(text, written)


@lru_cache(maxsize=4_096)
def _spoken_words(text: str, written: str | None) -> tuple[SpokenWord, ...]:
    found = None if written is None else _placed(_frontend(_readable(written)), text)
    return _placed(_frontend(digits_apart(text)), text) or () if found is None else found


def _placed(words: tuple[tuple[str, str], ...], text: str) -> tuple[SpokenWord, ...] | None:
    """Words as they are spoken with their places in a text; None where it is not made of them."""
    lower = usual_kanji(text.lower())
    if len(lower) != len(text):
        return None
    placed = []
    cursor = 0
    for written, pronounced in words:
        kana = _kana(pronounced)
        cursor += lower.startswith(APART, cursor)
        form = next((form for form in _forms(written) if lower.startswith(form, cursor)), None)
        if form is not None:
            placed.append(SpokenWord(cursor, cursor + len(form), kana))
            cursor += len(form)
        elif kana:
            return None
    return tuple(placed) if cursor == len(text) else None


def usual_kanji(text: str) -> str:
    """Write old and rare forms of kanji in their usual form, character by character: 髙橋 is 高橋, 櫻 is 桜.

    The table is that of pyopenjtalk-plus (jōyō kanji, and the CJKVI database of variants). Only kanji beyond the
    first level of JIS X 0208, which holds those in common use, are changed, and only to one of that level: 斉 and 斎
    are two characters.

    Raises:
        InvalidRequestError: ``text`` is not a str.
        MissingDependencyError: The extra ``ja`` is not installed.

    Example:
        >>> usual_kanji("髙橋さんと櫻井さん")
        '高橋さんと桜井さん'
    """
    check_text(text)
    rare = [character for character in text if character >= "㐀" and not _is_common(character)]
    return text.translate({ord(character): _usual_form(character) for character in rare}) if rare else text


@cache
def _usual_form(character: str) -> str:
    form = cast(str, load("pyopenjtalk.utils").normalize_itaiji(character))
    return form if _is_common(form) else character


@cache
def _is_common(character: str) -> bool:
    """Whether a character is in the first level of JIS X 0208, which ends at 腕, or is kana."""
    try:
        code = character.encode("shift_jis")
    except UnicodeEncodeError:
        return False
    return code <= "腕".encode("shift_jis")


def mora_count(text: str) -> int:
    """The number of morae of a Japanese text: kana of its reading, without small kana that join another.

    ッ, ン and ー count as one each; letters that have no reading count not at all.

    Example:
        >>> mora_count("東京"), mora_count("きゃっと")
        (4, 3)
    """
    return sum(1 for kana in _KANA_LETTER.findall(reading(text)) if kana not in _SMALL)


@lru_cache(maxsize=16_384)
def _readable(text: str) -> str:
    """A text as OpenJTalk reads it: of a pair that is scored, reading and places both ask for it."""
    return JAPANESE_READING(text)


@lru_cache(maxsize=16_384)
def _read(text: str) -> str:
    return _kana("".join(kana for _, kana in _frontend(text)))


@lru_cache(maxsize=16_384)
def _forms(written: str) -> tuple[str, ...]:
    """A word of OpenJTalk as the normaliser ``ja`` may have left it: 十 of 25日 as it is, １２月 in kanji."""
    form = usual_kanji(_narrow(written))
    return (form, _SIGNS.get(form) or japanese_numbers(form))


@lru_cache(maxsize=16_384)
def _kana(pronounced: str) -> str:
    # The front end widens Latin letters that it cannot read; \w keeps them, and NFKC narrows them again.
    return _NOT_SPOKEN.sub("", _narrow(pronounced)).translate(_TO_KATAKANA).translate(_SAME_SOUND)


@lru_cache(maxsize=16_384)
def _frontend(text: str) -> tuple[tuple[str, str], ...]:
    """Words as OpenJTalk finds them, each as it is written and as it is pronounced."""
    text = _LATIN_WORD.sub(lambda word: _known_form(word[0]), text)
    pieces = _PIECE.findall(_UNREADABLE.sub(" ", text))
    return tuple(word for piece in pieces if piece.strip() for word in _pronounce(piece))


@lru_cache(maxsize=16_384)
def _known_form(word: str) -> str:
    """A Latin word in the case in which the dictionary knows it; as it is, where it would be spelled anyway."""
    for form in (word, word.capitalize(), word.upper()):
        letters = "".join(_LETTERS[ord(letter) - ord("A")] for letter in form.upper())
        if _kana("".join(kana for _, kana in _pronounce(form))) not in {letters, form.lower()}:
            return form
    return word


def _narrow(text: str) -> str:
    import unicodedata

    return unicodedata.normalize("NFKC", text).lower()


def _pronounce(piece: str) -> list[tuple[str, str]]:
    with _lock:  # OpenJTalk keeps its state in one process-wide object
        openjtalk = _openjtalk()
        try:
            words = openjtalk.run_frontend(piece)
            # Symbols are kept, and a mark of devoicing is not a sound.
            return [
                (
                    cast(str, word["string"]),
                    cast(str, word["string" if word["pos"] == "記号" else "pron"]).replace("’", ""),
                )
                for word in words
            ]
        except RuntimeError:
            pass
    if len(piece) == 1:
        return [(piece, piece)]
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
