"""Readings of Japanese text in katakana, through OpenJTalk (the extra ``ja``).

OpenJTalk writes particles as spoken (は ワ, へ エ), numbers with their counters (10分 ジュップン) and most long
vowels as ー. It reads words outside its dictionary letter by letter: せんせい is センセイ, but 先生 is センセー.
``to_reading_key`` removes this difference; reading error rates are computed on its result.
"""

from __future__ import annotations

import re
import threading
import warnings
from functools import cache, lru_cache
from typing import NamedTuple, cast

from speechlab._arguments import check_text
from speechlab.text._languages.japanese import JAPANESE_READING
from speechlab.text._languages.kanji_numbers import NUMBER_SEPARATOR, spell_japanese_numbers
from speechlab.text._third_party import load_optional_module

# The front end has buffers of fixed size and fails on longer texts. So it gets a text in pieces, which end at the end
# of a sentence if possible.
_LONGEST_PIECE = 300
_PIECE = re.compile(rf"[^。!?\n]{{1,{_LONGEST_PIECE}}}[。!?\n]*|[。!?\n]+")
# Symbols that OpenJTalk would keep or read as a pause. Symbols that it reads aloud (%, +, &) stay.
_UNREADABLE = re.compile(r"[^\w\s.,、。!?%+\-:/&]+")
# Numbers are written by value in a normalized text. The digits that are adjacent there, of 1/2, 3-5 or a telephone
# number, are spoken one by one.
_BETWEEN_DIGITS = re.compile(r"(?<=[零一二三四五六七八九])(?=[零一二三四五六七八九])")
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
_REPEAT_MARK = re.compile("([㐀-\u9fff])々")
_LATIN_WORD = re.compile("[A-Za-z]{2,}")
# Names of the letters A to Z, as OpenJTalk spells an unknown word.
_LETTERS = (
    *("エー", "ビー", "シー", "ディー", "イー", "エフ", "ジー", "エイチ", "アイ"),
    *("ジェー", "ケー", "エル", "エム", "エヌ", "オー", "ピー", "キュー", "アール"),
    *("エス", "ティー", "ユー", "ブイ", "ダブリュー", "エックス", "ワイ", "ゼット"),
)
# Spoken signs, as the normalizer writes them.
_SIGNS = {".": "点", "%": "パーセント"}
_lock = threading.Lock()
_threads = threading.local()
# A text with kanji for which OpenJTalk needs its second dictionary.
_WARM_UP = "風の方は何"


class SpokenWord(NamedTuple):
    """One spoken word of a Japanese text."""

    start: int
    end: int
    kana: str


def reading(text: str) -> str:
    """Return the reading of a Japanese text in katakana, as spoken.

    Args:
        text: Any text, of any length. Punctuation, emoji and other symbols that are not spoken are left out. A Latin
            word gets its Japanese reading if the dictionary has it in any case (zoom, Zoom or ZOOM). Otherwise it is
            spelled letter by letter, or stays unchanged if that is impossible, so that no error is hidden. 二三人 is
            read as two or three people, ニサンニン.

    Raises:
        InvalidRequestError: ``text`` is not a str.
        MissingDependencyError: The extra ``ja`` is not installed.

    Example:
        >>> reading("東京へ行く。")
        'トーキョーエイク'
    """
    check_text(text)
    return _to_kana_reading(_prepare_openjtalk_input(text))


def to_reading_key(text: str) -> str:
    """Return the reading with long vowels in one form, for comparison only.

    エイ and オウ are written エー and オー, and doubled vowels with ー, because this is the difference between
    readings of kana and readings from the dictionary.
    """
    return to_kana_key(reading(text))


def to_kana_key(kana: str) -> str:
    """Return a reading with long vowels in the form of ``to_reading_key``."""
    check_text(kana, "kana")
    return re.sub("ー{2,}", "ー", _LONG_VOWEL.sub("ー", kana))


def split_spoken_words(text: str, written: str | None = None) -> tuple[SpokenWord, ...]:
    """Return the words of a normalized Japanese text with their places and readings."""
    check_text(text)
    if written is not None:
        check_text(written, "written")
    return _split_spoken_words(text, written)


@lru_cache(maxsize=4_096)
def _split_spoken_words(text: str, written: str | None) -> tuple[SpokenWord, ...]:
    placed = (
        None
        if written is None
        else _locate_spoken_words(_pronounce_words(_prepare_openjtalk_input(written)), text)
    )
    return (
        _locate_spoken_words(_pronounce_words(_BETWEEN_DIGITS.sub("、", text)), text) or ()
        if placed is None
        else placed
    )


def _locate_spoken_words(words: tuple[tuple[str, str], ...], text: str) -> tuple[SpokenWord, ...] | None:
    """Spoken words with their places in a text; None if the text does not consist of these words."""
    lower = to_usual_kanji(text.lower())
    if len(lower) != len(text):
        return None
    placed = []
    cursor = 0
    for written, pronounced in words:
        kana = _to_kana(pronounced)
        cursor += lower.startswith(NUMBER_SEPARATOR, cursor)
        form = next(
            (form for form in _list_normalized_forms(written) if lower.startswith(form, cursor)), None
        )
        if form is not None:
            placed.append(SpokenWord(cursor, cursor + len(form), kana))
            cursor += len(form)
        elif kana:
            return None
    return tuple(placed) if cursor == len(text) else None


def to_usual_kanji(text: str) -> str:
    """Write old and rare forms of kanji in their usual form, character by character: 髙橋 as 高橋, 櫻 as 桜.

    The table comes from pyopenjtalk-plus (jōyō kanji, and the CJKVI database of variants). The first level of JIS X
    0208 has the kanji in common use. Only kanji outside this level change, and only to kanji of this level: 斉 and 斎
    stay different.
    """
    check_text(text)
    rare = [character for character in text if character >= "㐀" and not _is_common_character(character)]
    return text.translate({ord(character): _to_usual_form(character) for character in rare}) if rare else text


def to_standard_kanji(text: str) -> str:
    """Write every variant of a kanji in its standard form, common ones too, and 々 as the kanji it repeats.

    More than :func:`to_usual_kanji`: 龍 and 竜 are one, 冨 and 富. 斉 and 斎 stay different. For comparing words, not
    for counting characters.
    """
    check_text(text)
    return _REPEAT_MARK.sub(r"\1\1", load_optional_module("pyopenjtalk.utils").normalize_itaiji(text))


def find_on_reading(character: str) -> str:
    """Return the reading of a kanji in compounds, by the Unihan database; empty if it has none."""
    table = getattr(load_optional_module("pyopenjtalk._unihan_readings_map"), "UNIHAN_READINGS", {})
    return cast("str", table.get(character, ""))


@cache
def _to_usual_form(character: str) -> str:
    form = cast("str", load_optional_module("pyopenjtalk.utils").normalize_itaiji(character))
    return form if _is_common_character(form) else character


@cache
def _is_common_character(character: str) -> bool:
    """Return whether a character is in the first level of JIS X 0208, which ends at 腕, or is kana."""
    try:
        code = character.encode("shift_jis")
    except UnicodeEncodeError:
        return False
    return code <= "腕".encode("shift_jis")


def count_morae(text: str) -> int:
    """The number of morae of a Japanese text: the kana of its reading, except small kana that join the kana before.

    ッ, ン and ー count as one mora each. Letters without a reading do not count.
    """
    return sum(1 for kana in _KANA_LETTER.findall(reading(text)) if kana not in _SMALL)


@lru_cache(maxsize=16_384)
def _prepare_openjtalk_input(text: str) -> str:
    """The input of OpenJTalk for a text; cached because a scored pair needs it for the reading and for the places."""
    return JAPANESE_READING(text)


@lru_cache(maxsize=16_384)
def _to_kana_reading(text: str) -> str:
    return "".join(_to_kana(kana) for _, kana in _pronounce_words(text))


@lru_cache(maxsize=16_384)
def _list_normalized_forms(written: str) -> tuple[str, ...]:
    """The forms that the normalizer ``ja`` may give a word of OpenJTalk: 十 of 25日 stays, １２月 becomes kanji."""
    form = to_usual_kanji(_fold_width_and_case(written))
    return (form, _SIGNS.get(form) or spell_japanese_numbers(form))


@lru_cache(maxsize=16_384)
def _to_kana(pronounced: str) -> str:
    # The front end makes Latin letters that it cannot read full width. \w keeps them, and NFKC reverses the width.
    kana = (
        _NOT_SPOKEN.sub("", _fold_width_and_case(pronounced)).translate(_TO_KATAKANA).translate(_SAME_SOUND)
    )
    # It spells unknown words, but does not name a letter that stands alone.
    return _LETTERS[ord(kana) - ord("a")] if len(kana) == 1 and "a" <= kana <= "z" else kana


@lru_cache(maxsize=16_384)
def _pronounce_words(text: str) -> tuple[tuple[str, str], ...]:
    """Return the words that OpenJTalk finds, each with its spelling and its pronunciation."""
    text = _LATIN_WORD.sub(lambda word: _restore_known_case(word[0]), text)
    pieces = _PIECE.findall(_UNREADABLE.sub(" ", text))
    return tuple(word for piece in pieces if piece.strip() for word in _pronounce_piece(piece))


@lru_cache(maxsize=16_384)
def _restore_known_case(word: str) -> str:
    """Return a Latin word in the case that the dictionary has; unchanged if OpenJTalk would spell it in any case."""
    for form in (word, word.capitalize(), word.upper()):
        letters = "".join(_LETTERS[ord(letter) - ord("A")] for letter in form.upper())
        if _to_kana("".join(kana for _, kana in _pronounce_piece(form))) not in {letters, form.lower()}:
            return form
    return word


def _fold_width_and_case(text: str) -> str:
    import unicodedata

    return unicodedata.normalize("NFKC", text).lower()


def _pronounce_piece(piece: str) -> list[tuple[str, str]]:
    with _lock:  # OpenJTalk keeps its state in one process-wide object
        openjtalk = load_optional_module("pyopenjtalk")
        if not getattr(_threads, "warm", False):
            # A deprecated call opens its second dictionary once in each thread. Its warning is not for users.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                openjtalk.g2p(_WARM_UP, kana=True)
            _threads.warm = True
        try:
            words = openjtalk.run_frontend(piece)
            # Symbols stay as written. The mark of devoicing (’) is not a sound.
            return [
                (
                    cast("str", word["string"]),
                    cast("str", word["string" if word["pos"] == "記号" else "pron"]).replace("’", ""),
                )
                for word in words
            ]
        except RuntimeError:
            pass
    if len(piece) == 1:
        return [(piece, piece)]
    middle = len(piece) // 2
    return _pronounce_piece(piece[:middle]) + _pronounce_piece(piece[middle:])
