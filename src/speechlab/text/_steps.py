"""Rules for several languages."""

from __future__ import annotations

import re
import unicodedata

from speechlab.text._normalizer import Step


class _ByCategory(dict[int, str]):
    """A table for ``str.translate`` by Unicode category, filled as characters occur."""

    def __init__(self, categories: frozenset[str], replacement: str, keep: str = "", also: str = "") -> None:
        super().__init__()
        self._categories = categories
        self._replacement = replacement
        self._keep = keep
        self._also = also

    def __missing__(self, code: int) -> str:
        character = chr(code)
        hit = unicodedata.category(character) in self._categories or character in self._also
        value = self._replacement if hit and character not in self._keep else character
        self[code] = value
        return value


# Without the signs of currencies (Sc): $100 and €100 are different sums.
_SYMBOLS = frozenset({"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sk", "So"})
_VARIATION_SELECTORS = "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
_LONE_STOP = re.compile(r"(?<![0-9])[.,]|[.,](?![0-9])")
# U+309B and U+309C are spacing voicing marks. NFKC turns each into a space and a combining mark, which separates the
# mark from its kana (か゛ would become か and a space). With the combining mark put in first, NFKC composes が.
_SPACING_MARKS = str.maketrans(
    {"\u309b": "\u3099", "\u309c": "\u309a", "\uff9e": "\u3099", "\uff9f": "\u309a"}
)


def build_substitution_step(
    name: str, pattern: str, replacement: str, needs: str = "", ends: str = ""
) -> Step:
    """Return a step that replaces a regular expression, whose matches have one of ``needs`` and end with ``ends``.

    Behind the last of ``ends`` nothing is searched: each opening bracket without its end would be read to the end of
    the text, and the time grow with the square of the length.
    """
    compiled = re.compile(pattern)

    def apply(text: str) -> str:
        for character in needs:
            if character in text:
                break
        else:
            if needs:
                return text
        last = max(map(text.rfind, ends)) + 1 if ends else len(text)
        return compiled.sub(replacement, text[:last]) + text[last:]

    return Step(name, apply, f"{pattern}\x00{replacement}")


# NFKC turns these into plain digits: 3² would become 32, and 1½ would become 11/2. Superscript or subscript digits in
# a row are one number.
_SUPERSCRIPTS = "²³¹⁰⁴-⁹"
_SUBSCRIPTS = "₀-₉"
_OTHER_FORMS = "¼½¾⅐-⅟↉①-⓿❶-➓㈠-㉃㉈-㉟㊀-㊉㊱-㊿"
_FORMS = _SUPERSCRIPTS + _SUBSCRIPTS + _OTHER_FORMS
_DIGIT_FORMS = re.compile(
    rf"(?<=\d)(?=[⁺⁻]?[{_SUPERSCRIPTS}]|[₊₋]?[{_SUBSCRIPTS}]|[{_OTHER_FORMS}])|(?<=[{_FORMS}])(?=[\d{_OTHER_FORMS}])"
    rf"|(?<=[{_SUBSCRIPTS}{_OTHER_FORMS}])(?=[{_SUPERSCRIPTS}])|(?<=[{_SUPERSCRIPTS}{_OTHER_FORMS}])(?=[{_SUBSCRIPTS}])"
)


def _normalize_to_nfkc(text: str) -> str:
    if unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", _DIGIT_FORMS.sub(" ", text.translate(_SPACING_MARKS)))


def build_powers_step(of: str, minus: str, power: str) -> Step:
    """Return a step that writes a power in words, such as 10²³ as 10の²³乗. It must run before ``WIDTH``."""
    pattern = re.compile(rf"(?<=\d)([⁺⁻]?)([{_SUPERSCRIPTS}]+)")
    needed = re.compile(f"[{_SUPERSCRIPTS}]")

    def apply(text: str) -> str:
        if not needed.search(text):
            return text
        return pattern.sub(lambda found: f"{of}{minus if found[1] == '⁻' else ''}{found[2]}{power}", text)

    return Step("powers", apply, f"{pattern.pattern}\x00{of}{minus}{power}")


_FRACTION_SIGN = re.compile(r"((?<!\d)\d+)?\s?([¼½¾⅐-⅞])")


def build_fraction_signs_step(between: str, part: str) -> Step:
    """Return a step that writes ½ as a fraction, 2分の1, and 1½ as 1と2分の1. It must run before ``WIDTH``."""

    def write_fraction(found: re.Match[str]) -> str:
        above, _, below = unicodedata.normalize("NFKC", found[2]).partition("\u2044")
        return f"{found[1]}{between}{below}{part}{above}" if found[1] else f"{below}{part}{above}"

    def apply(text: str) -> str:
        return text if text.isascii() else _FRACTION_SIGN.sub(write_fraction, text)

    return Step("fraction signs", apply, f"{_FRACTION_SIGN.pattern}|{between}|{part}")


def _build_punctuation_step(replacement: str, keep: str = ".,") -> Step:
    table = _ByCategory(_SYMBOLS, replacement, keep)

    def apply(text: str) -> str:
        return _LONE_STOP.sub(replacement, text.translate(table))

    return Step(
        "punctuation", apply, f"{sorted(_SYMBOLS)}->{replacement!r} except {keep}, {_LONE_STOP.pattern}"
    )


_INVISIBLE_TABLE = _ByCategory(
    frozenset({"Cf", "Cc", "Me"}), "", keep="\t\n\r\v\f\x1c\x1d\x1e\x1f\x85", also=_VARIATION_SELECTORS
)

# Half width, full width, ligatures and other compatibility forms become one form (NFKC). Dakuten stay on
# their kana.
WIDTH = Step(
    "width",
    _normalize_to_nfkc,
    f"NFKC after U+309B/U+FF9E->U+3099, U+309C/U+FF9F->U+309A, blank at {_DIGIT_FORMS.pattern}",
)

LOWER = Step("lower case", lambda text: text.replace("İ", "i").lower(), "İ->i, str.lower")
# In Turkish and Azerbaijani, the small form of I is ı.
LOWER_TURKIC = Step(
    "lower case", lambda text: text.replace("İ", "i").replace("I", "ı").lower(), "İ->i, I->ı, str.lower"
)


def _remove_invisible_characters(text: str) -> str:
    return text if text.isascii() and text.isprintable() else text.translate(_INVISIBLE_TABLE)


# Removes zero-width characters, soft hyphens, bidirectional marks, control characters and emoji selectors.
INVISIBLE = Step("invisible", _remove_invisible_characters, "Cf, Cc, Me, variation selectors -> nothing")

# Replaces punctuation and symbols by spaces, except ``.`` and ``,`` between digits, and the signs %, ‰, ± and
# −.
PUNCTUATION_TO_SPACE = _build_punctuation_step(" ", ".,%‰±\u2212")

# Turns a hyphen or dash before a number at the start of a word into a minus sign: -5 must not become 5.
MINUS = build_substitution_step("minus", r"(?<![\w.,)-])[-\u2212\u2013](?=[0-9])", "\u2212")

COMPOSE = Step("compose", lambda text: unicodedata.normalize("NFC", text), "NFC")

# Replaces runs of white space by one space, and removes white space at both ends.
COLLAPSE = Step("white space", lambda text: " ".join(text.split()), "str.split, one space")

# Last steps for Japanese and Chinese, which do not separate words by spaces: without white space, and without
# punctuation and symbols, except ``.`` and ``,`` between digits (1.5 must not be 15), and a middle dot.
UNSPACED = (
    _build_punctuation_step("", ".,・"),
    Step("white space", lambda text: "".join(text.split()), "str.split, no space"),
    COMPOSE,
)
