"""Finding a normaliser by name or by language."""

from __future__ import annotations

from speechlab.errors import InvalidRequestError
from speechlab.text._languages.chinese import chinese
from speechlab.text._languages.english import ENGLISH
from speechlab.text._languages.japanese import JAPANESE, JAPANESE_READING
from speechlab.text._normalizer import Normalizer
from speechlab.text._steps import COLLAPSE, COMPOSE, INVISIBLE, LOWER, PUNCTUATION_TO_SPACE, WIDTH

NORMALIZERS = ("basic", "en", "ja", "ja-reading", "none", "zh")
"""Names that :func:`normalizer` knows."""

_NONE = Normalizer("none", 1)
_BASIC = Normalizer("basic", 1, (INVISIBLE, WIDTH, LOWER, PUNCTUATION_TO_SPACE, COMPOSE, COLLAPSE))
_FIXED = {"none": _NONE, "basic": _BASIC, "en": ENGLISH, "ja": JAPANESE, "ja-reading": JAPANESE_READING}

# Names that recognisers and people write instead of codes, and the three-letter codes of these languages.
_ALIASES = {
    "english": "en",
    "eng": "en",
    "japanese": "ja",
    "jpn": "ja",
    "chinese": "zh",
    "mandarin": "zh",
    "cmn": "zh",
    "zho": "zh",
}
# ISO 639-1. Not every pair of letters is taken for a language: "jp" and "cn" are countries, and a Japanese text
# that was silently normalised as "other" would get a wrong score.
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
        language: Such as ``"ja"``, ``"ja-JP"``, ``"en_GB"``, ``"zh-Hant"`` or ``"Japanese"``.

    Raises:
        InvalidRequestError: It is not a language code.
    """
    primary = str(language).strip().lower().replace("_", "-").partition("-")[0]
    code = _ALIASES.get(primary, primary)
    if code not in _ISO_639_1:
        message = (
            f"{language!r} is not a language; use an ISO 639-1 code, such as 'en', 'ja' or 'zh', with or without a "
            "region ('ja-JP')"
        )
        raise InvalidRequestError(message, parameter="language")
    return code


def normalizer(name: str) -> Normalizer:
    """The normaliser of a name or of a language.

    Args:
        name: ``"none"`` (changes nothing), ``"basic"`` (case, punctuation and width, for any language), ``"en"``,
            ``"ja"``, ``"ja-reading"`` (what comes before a reading) or ``"zh"``; an id such as ``"ja-v1"``; or any
            language tag: a language without rules of its own gets ``basic``.

    Raises:
        InvalidRequestError: There is no such normaliser, language or version.

    Example:
        >>> normalizer("en")("It’s £20, Mr. Brown!")
        'it is £20 mister brown'
    """
    key, version = _split_version(name)
    if key == "zh-unconverted":
        key = "zh"
    found = _FIXED.get(key) or (chinese() if key == "zh" else None)
    if found is None:
        try:
            code = language_code(key)
        except InvalidRequestError:
            known = ", ".join(NORMALIZERS)
            message = f"there is no normaliser {name!r}; use one of {known}, or a language code such as 'de'"
            raise InvalidRequestError(message, parameter="normalize") from None
        found = chinese() if code == "zh" else _FIXED.get(code, _BASIC)
    if version is not None and version != found.version:
        message = f"there is no normaliser {name!r} in this release of speechlab; it has {found.id!r}"
        raise InvalidRequestError(message, parameter="normalize")
    return found


def _split_version(name: object) -> tuple[str, int | None]:
    if not isinstance(name, str):
        message = f"a normaliser is named by a str, not {name!r}; use one of {', '.join(NORMALIZERS)}"
        raise InvalidRequestError(message, parameter="normalize")
    key, mark, number = name.strip().lower().rpartition("-v")
    if mark and number.isdecimal():
        return key, int(number)
    return name.strip().lower(), None
