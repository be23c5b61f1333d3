"""Languages: their codes, the names that people write instead of codes, and which are written without spaces."""

from __future__ import annotations

import re
from collections.abc import Iterable

from speechlab._arguments import build_argument_error, check_text, is_pandas_frame
from speechlab.errors import InvalidRequestError

# Languages whose code is read and written as a name; no other spelling of these is known here.
_OTHER_NAMES = """
ar=Arabic bg=Bulgarian bn=Bengali ca=Catalan cs=Czech da=Danish de=German el=Greek es=Spanish et=Estonian fa=Persian
fi=Finnish fr=French gu=Gujarati he=Hebrew hi=Hindi hr=Croatian hu=Hungarian id=Indonesian it=Italian kn=Kannada
ko=Korean lt=Lithuanian lv=Latvian ml=Malayalam mr=Marathi ms=Malay nl=Dutch no=Norwegian pa=Punjabi pl=Polish
pt=Portuguese ro=Romanian ru=Russian sk=Slovak sl=Slovenian sr=Serbian sv=Swedish sw=Swahili ta=Tamil te=Telugu
th=Thai tl=Tagalog tr=Turkish uk=Ukrainian ur=Urdu vi=Vietnamese yue=Cantonese
"""
# By code of ISO 639: the English name, then other names and three-letter codes.
_NAMES = {
    "en": ("English", "eng", "英語"),
    "ja": ("Japanese", "jpn", "日本語"),
    "zh": ("Chinese", "Mandarin", "cmn", "zho", "中文"),
    **{code: (name,) for code, _, name in (pair.partition("=") for pair in _OTHER_NAMES.split())},
}
# What a voice speaks whose languages nobody has named.
ANY_LANGUAGE = "any language"
_BY_NAME = {name.casefold(): code for code, names in _NAMES.items() for name in names}
# Tibetan, Japanese, Khmer, Lao, Burmese, Thai, Cantonese, Chinese.
_UNSPACED = frozenset({"bo", "ja", "km", "lo", "my", "th", "yue", "zh"})
# Five letters in a row of one of these scripts: Thai, Lao and Tibetan, Burmese, Khmer, kana and kanji.
_UNSPACED_RUN = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{5}"
)
# Only real codes are accepted: "jp" and "cn" are countries. A Japanese text that was normalized by the rules of an
# unknown language would get a wrong score without a warning.
_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv
dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig
ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh
mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru
rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug
uk ur uz ve vi vo wa wo xh yi yo yue za zh zu
"""
_ISO_639_1 = frozenset(_CODES.split())


def language_code(language: str) -> str:
    """Reduce a language tag or name to its ISO 639-1 code.

    Args:
        language: A tag or a name, such as ``"ja"``, ``"ja-JP"``, ``"en_GB"``, ``"zh-Hant"`` or ``"Japanese"``.

    Raises:
        InvalidRequestError: ``language`` is not a known language.

    Example:
        >>> language_code("zh-Hant"), language_code("Japanese")
        ('zh', 'ja')
    """
    code = parse_primary_language(language)
    if code not in _ISO_639_1:
        raise _build_language_error(language)
    return code


def parse_primary_language(language: str) -> str:
    """Return the code of a language tag or name, without a check that the language exists.

    An unknown tag or name gives its part before the first hyphen or underscore, in lower case.
    """
    if not isinstance(language, str):
        raise _build_language_error(language)
    primary = language.strip().casefold().replace("_", "-").partition("-")[0]
    return _BY_NAME.get(primary, primary)


def list_language_codes(text: str) -> set[str]:
    """The language codes in free text, such as the languages of a voice in a catalogue; of ``"any language"``, all.

    A word that names no language is included in lower case.
    """
    check_text(text)
    if text.strip().casefold() == ANY_LANGUAGE:
        return set(_ISO_639_1)
    words = re.split(r"[^\w-]+", text.casefold())
    codes = (_BY_NAME.get(piece) for word in words for piece in re.split("[-_]", word))
    return {parse_primary_language(word) for word in words if word} | {code for code in codes if code}


# Words that half of all English sentences have, and few of other languages.
_ENGLISH = frozenset(
    ("the", "and", "you", "that", "this", "with", "are", "have", "they", "what", "for", "my", "from", "not")
)
_KANA, _HAN = re.compile(r"[\u3041-\u30ff]"), re.compile(r"[\u4e00-\u9fff]")
_ENGLISH_SHARE = 0.06


def guess_language(texts: Iterable[str]) -> str | None:
    """Return the language of texts by their script and frequent words: ``ja``, ``zh`` or ``en``; None for others."""
    joined = " ".join(texts)
    if _KANA.search(joined):
        return "ja"
    if _HAN.search(joined):
        return "zh"
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", joined.casefold().replace("’", "'"))
    frequent = sum(word in _ENGLISH or word.endswith(("n't", "'m", "'re", "'ll")) for word in words)
    return "en" if words and frequent >= _ENGLISH_SHARE * len(words) else None


def get_language_name(code: str) -> str:
    """Return the English name of a language that is much spoken; for any other language, its code."""
    return _NAMES.get(parse_primary_language(code), (code,))[0]


def writes_without_spaces(language: str) -> bool:
    """Return whether a language puts no white space between words."""
    return parse_primary_language(language) in _UNSPACED


def looks_unspaced(text: str) -> bool:
    """Return whether a text has long runs without spaces, in a script that is written without them."""
    check_text(text)
    return (
        not text.isascii() and len(text) >= 5 * len(text.split()) and _UNSPACED_RUN.search(text) is not None
    )


def join_texts(texts: Iterable[str], language: str = "") -> str:
    """Join the texts of segments, with spaces between them unless the language is written without spaces."""
    unspaced = writes_without_spaces(language)
    if isinstance(texts, str | bytes) or is_pandas_frame(texts) or not isinstance(texts, Iterable):
        raise build_argument_error("texts", texts, "a list of texts")
    joined = ""
    for number, text in enumerate(texts):
        check_text(text, f"texts[{number}]")
        stripped = text.strip()
        if stripped:
            meeting = unspaced or (
                not language
                and joined
                and _is_chinese_or_japanese(joined[-1])
                and _is_chinese_or_japanese(stripped[0])
            )
            joined += stripped if not joined or meeting else f" {stripped}"
    return joined


def _is_chinese_or_japanese(character: str) -> bool:
    """Return whether a character is Chinese, Japanese (punctuation and full width too), but not Korean."""
    return "\u2e80" <= character < "\uac00" or "\uff00" <= character <= "\uffef"


def _build_language_error(value: object) -> InvalidRequestError:
    message = (
        f"{value!r:.60} is not a language; use an ISO 639-1 code, such as 'en', 'ja' or 'zh', with or without a "
        "region ('ja-JP')"
    )
    return InvalidRequestError(message, parameter="language")
