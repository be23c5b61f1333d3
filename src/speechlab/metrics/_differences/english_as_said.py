"""English texts as they are said: one form for numbers, times, dates, money, contractions and spellings.

Each rule replaces a pattern of the text, in the order of the table. What can be read in several ways (units,
abbreviations, ranges) stays as a word of its own; :mod:`speechlab.metrics._differences.english_classes` has its
readings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

from speechlab.metrics._differences.english_number_words import NUMBER_WORDS, RUN, to_figures
from speechlab.text import normalizer, words

MONTHS = words("january february march april may june july august september october november december")
_MONTH_OF = {name[:3]: name for name in MONTHS} | {name: name for name in MONTHS} | {"sept": "september"}
_MONTH = rf"({'|'.join(sorted(_MONTH_OF, key=len)[::-1])})\b\.?"
_DAY = r"([12]\d|3[01]|0?[1-9])(?:th)?"
_YEAR = r"(?:,?\s(\d{4}|(?:1\d|20)\s\d\d|(?:1\d|20)\s0\s\d))?(?!\d)"
# In july 17 76, the first figure is no day.
_NO_YEAR = r"(?!(?:1[1-9]|20) (?:\d\d|0 \d)\b(?! \d))"
_SIGNS = {"$": "dollars", "£": "pounds", "€": "euros", "¥": "yen", "₹": "rupees", "₩": "won", "₽": "rubles"}
_CODES = {
    "eur": "euros",
    "gbp": "pounds",
    "jpy": "yen",
    "inr": "rupees",
    "us$": "usd",
    "a$": "aud",
    "c$": "cad",
}
_UNIT = "dollars?|pounds?|euros?|yen|rupees?|usd|us dollars?|aud|cad"
_SUFFIX = {"k": 3, "m": 6, "mn": 6, "bn": 9, "b": 9, "tn": 12, "thousand": 3, "million": 6, "billion": 9}
_AMOUNT = r"(?<![\d.])(\d{1,15}(?:\.\d{1,15})?)(?!\.?\d)"
_CHARACTERS = {
    **dict.fromkeys("\u2018\u2019\u201b\u02bc\u02b9\u2032`\u00b4", "'"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u00ad", "-"),
    **{
        sign: f" {unicodedata.normalize('NFKC', sign).replace(chr(0x2044), '/')} "
        for sign in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
    },
    "″": '"',
    "²": " squared ",
    "³": " cubed ",
    "…": " ",
    "ß": "ss",
    "×": " times ",
}


@lru_cache(maxsize=4_096)
def _normalize_character(character: str) -> str:
    if character in _CHARACTERS:
        return _CHARACTERS[character]
    decomposed = unicodedata.normalize("NFKD", character).lower()
    return "".join(
        code_point
        for code_point in decomposed
        if unicodedata.category(code_point) not in {"Mn", "Cf", "Cc"} or code_point in "\t\n"
    )


def _to_clock_time(match: re.Match[str]) -> str:
    hour = int(match[2])
    if match[1] == "half past":
        return f"{hour}:30"
    return f"{hour}:15" if match[1].endswith("past") else f"{(hour - 2) % 12 + 1}:45"


def _format_mixed_number(match: re.Match[str]) -> str:
    integer, numerator, denominator = map(int, match.groups())
    if denominator not in {2, 4, 5, 8}:
        return f"{integer * denominator + numerator}/{denominator}" if denominator else match[0]
    return f"{integer + numerator / denominator:g}"


def _build_date_formatter(day: int, month: int, year: int) -> Callable[[re.Match[str]], str]:
    def format_date(match: re.Match[str]) -> str:
        name = match[month]
        name = MONTHS[int(name) - 1] if name.isdigit() else _MONTH_OF[name]
        years = match[year]
        return f"{int(match[day])} {name}{' ' + years.replace(' ', '') if years else ''}"

    return format_date


def _move_currency_behind(match: re.Match[str]) -> str:
    """Return a sum with its unit behind it; less than a whole in cents or pence."""
    sign, amount, large = match[1], match[2], match[3]
    value = float(amount) * 10 ** _SUFFIX.get(large or "", 0)
    name = _SIGNS.get(sign) or _CODES.get(sign, sign)
    if name in {"dollars", "euros", "pounds"} and 0 < value < 1:
        return f" {round(value * 100)} {'pence' if name == 'pounds' else 'cents'} "
    return f" {_format_figure(value)} {name} "


def _format_amount(match: re.Match[str]) -> str:
    amount, unit, cents = match[1], match[2], match[3]
    unit = unit if unit.endswith("s") or unit in {"yen", "usd", "aud", "cad"} else f"{unit}s"
    value = float(amount) + (int(cents) / 100 if cents and "." not in amount else 0)
    unit = _CODES.get(unit, unit).replace("us dollars", "usd")
    return f"{_format_figure(value)} {unit}"


def _format_figure(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


_CUT = {"bout": "about", "nother": "another", "nuff": "enough"}
_NOT = "do|does|did|is|are|was|were|has|have|had|would|could|should|must|need|might|ai"
_RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # what is not said
    (r"[<\[][^>\]]*[>\]]", " "),
    (r"\([^)]*\)", lambda match: " " if re.search("[a-z]", match[0]) else match[0]),
    # abbreviations with full stops, addresses
    (r"(?<![\w.])(?:[a-z]\.)+[a-z]?(?!\w)", lambda match: match[0].replace(".", "")),
    (r"(?<=[a-z0-9])\.(?=[a-z]{2,}\b)", " dot "),
    (r"(?<=\w)@(?=\w)", " at "),
    # contractions
    (r"\bo'\s?clock\b|(?<=\d) o clock\b", "oclock"),
    (r"\bma'am\b", "madam"),
    (r"(?<=[a-z])\s?'n'\s?(?=[a-z])|(?<=[a-z])\s?'n (?=[a-z])|(?<=[a-z]) n' ?(?=[a-z])", " and "),
    (r"\b(rock|fish|mac|drum|surf|pick|park|guns|salt|mix) n (?=[a-z])", r"\1 and "),
    (r"(?<!\w)'?t(is|was)\b", r"it \1"),
    (r"\bd'(?:you|ya)\b", "do you"),
    (r"\by'know\b", "you know"),
    (r"\bol'(?!\w)", "old"),
    (r"(?<!\w)'(bout|nother|nuff)\b", lambda match: _CUT[match[1]]),
    (r"\bg'day\b", "good day"),
    (r"\bs'pose\b", "suppose"),
    (r"\bne'er\b", "never"),
    (r"\bo'er\b", "over"),
    (r"\btryna\b", "trying to"),
    (r"\bhafta\b", "have to"),
    (r"\boughta\b", "ought to"),
    (r"\bgotcha\b", "got you"),
    (r"\bbetcha\b", "bet you"),
    (r"\bi'ma\b|\bimma\b", "i am going to"),
    (r"\bcan(?:no|'?)t\b", "can not"),
    (r"\bwon'?t\b", "will not"),
    (r"\bshan'?t\b", "shall not"),
    (rf"\b({_NOT})n'?t\b", r"\1 not"),
    (r"\blet's\b", "let us"),
    (r"(?<!\w)'?(?:cause|cuz|cos|coz)\b", "because"),
    (r"(?<!\w)'em\b", "them"),
    (r"(?<!\w)'til\b", "until"),
    (r"\by'?all\b", "you all"),
    (r"\bgonna\b|\bgon' ?na\b", "going to"),
    (r"\bwanna\b", "want to"),
    (r"\bgotta\b", "got to"),
    (r"\bgimme\b", "give me"),
    (r"\blemme\b", "let me"),
    (r"\bdunno\b", "do not know"),
    (r"\bc'mon\b", "come on"),
    (r"\b(kind|sort|out|lot|cup)(?:a|s of)\b", r"\1 of"),
    (r"\b(would|could|should|must|might)(?:a|'ve| ve)\b", r"\1 have"),
    (r"\b(\w+in)'(?!\w)", r"\1g"),
    (
        r"(?<=\w)'(re|ve|ll|m)\b",
        lambda match: {"re": " are", "ve": " have", "ll": " will", "m": " am"}[match[1]],
    ),
    (r"(?<=[a-z])'([sd])\b", r" '\1"),
    # times of day
    (r"(?<=[\d ])([ap])\.?\s?m\b\.?", r" \1m "),
    (r"(?<=\d)[:.]00(?= +[ap]m\b)", ""),
    (r"(?<=\d)\.(?=\d\d +[ap]m\b)", ":"),
    # numbers
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"(\d)(?:st|nd|rd|th)\b", r"\1th"),
    (r"(?<!\d)(\d)/(\d)ths?\b", r"\1/\2"),
    (r"(?<![\d.])\.(?=\d)", "0."),
    (RUN.pattern, lambda match: to_figures(match[0])),
    (r"(?<![\d./])(\d+)[ -](?:and )?(\d)/(\d)(?![\d/])", _format_mixed_number),
    (rf"(?<=\d)-(?=(?:{_UNIT})\b)", " "),  # a 10-dollar coupon
    # a third of a cup, ⅓ cup
    (r"((?<=\d/\d)|\ba [3-9]th|\b(?:half|quarter)) of an? (?=[a-z])", r"\1 "),
    (r"\b0 ?(\d00)(?= hours?\b)", r"\1"),
    (r"(?<=\d) ?(km|cm|mm|m|ft|in) squared\b", r" square \1"),
    (r"(?<=\d) ?(km|cm|mm|m|ft|in) cubed\b", r" cubic \1"),
    (r"\b(half past|(?:a )?quarter (?:past|to)) (\d{1,2})\b", _to_clock_time),
    # dates
    (r"(?<!\d)(\d{4})[-/](1[0-2]|0?[1-9])[-/](3[01]|[12]\d|0?[1-9])(?!\d)", _build_date_formatter(3, 2, 1)),
    (
        r"(?<![\d./])(1[3-9]|2\d|3[01])[/.](0?[1-9]|1[0-2])[/.](\d{4}|\d\d)(?![\d./]\d)",
        _build_date_formatter(1, 2, 3),
    ),
    (
        r"(?<![\d./])(0?[1-9]|1[0-2])[/.](1[3-9]|2\d|3[01])[/.](\d{4}|\d\d)(?![\d./]\d)",
        _build_date_formatter(2, 1, 3),
    ),
    (rf"(?:\bthe )?(?<![\d.]){_DAY} (?:of )?{_MONTH}{_YEAR}", _build_date_formatter(1, 2, 3)),
    (rf"(?<!\d )\b{_MONTH} (?:the )?{_NO_YEAR}{_DAY}(?![\d/:]|\.\d){_YEAR}", _build_date_formatter(2, 1, 3)),
    (r"(?:(?<=\bthe )|^)([12]?\d|3[01])(?=\W*$)", r"\1th"),
    # money
    (
        rf"(us\$|a\$|c\$|[$£€¥₹₩₽]) ?{_AMOUNT} ?(k|mn|m|bn|b|tn|thousand|million|billion)?\b",
        _move_currency_behind,
    ),
    (rf"\b(usd|eur|gbp|jpy|aud|cad|inr) ?{_AMOUNT}()\b", _move_currency_behind),
    (rf"{_AMOUNT} ?([$£€¥])", lambda match: f"{match[1]} {_SIGNS[match[2]]}"),
    (rf"{_AMOUNT} (eur|gbp|jpy|inr)\b", lambda match: f"{match[1]} {_CODES[match[2]]}"),
    (rf"{_AMOUNT} ?(?:¢|cents?\b)", r"\1 cents"),
    (rf"{_AMOUNT} ?(?:p|pence|penny|pennies)\b", r"\1 pence"),
    (
        rf"{_AMOUNT} ({_UNIT})(?: (?:and )?(\d\d?)(?: (?:cents|pence))?\b(?! [a-z]*(?:day|hour|minute|year|per)))?",
        _format_amount,
    ),
    # signs
    (r"(?<=\d)'\s?(\d\d?)(?:\"|'')", r" ft \1 ″ "),
    (r"(?<=\d)\s?km/h\b", " kmh"),
    (r"(?<=\d)\s?m/s\b", " mps"),
    (r"\bper cent\b|\bpct\b|%", " percent "),
    (r"°", " degrees "),
    (r"#(?=\s?\d)|\bno\b\.? ?(?=\d)", " number "),
    (r"&", " and "),
    (r"\+", " plus "),
    (r"=", " equals "),
    (r"(?<![\w.,)$£€%-])-(?=[$£€]?\d)", " minus "),
    (r"(?<![\d-])(\d{1,4})\s?-\s?(\d{1,4})(?![\d-])", r"\1 ~ \2"),
    (r"(?<=[a-z])/(?=[a-z])", " / "),
    (r"(?<=\d)(?=(?!th\b|s\b)[a-z])|(?<=[a-z])(?=\d)", " "),
    # what is left of punctuation
    (
        r"[^\w\s'./:~″]|_|(?<!\d):|:(?!\d)|(?<!\d)\.|\.(?!\d)|(?<![\d ])/|/(?![\d ])|(?<!\w)'(?!s\b|d\b)|'(?!\w)",
        " ",
    ),
    (r"(?<![\d./:])\d+(?: \d+)+(?![./:]?\d)", lambda match: match[0].replace(" ", "")),
)


@cache
def _compile_rules() -> list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str], str]]:
    """Return the rules with their patterns compiled, and the signs with which their matches end."""
    return [(re.compile(pattern), new, _CLOSING.get(pattern[:2], "")) for pattern, new in _RULES]


@lru_cache(maxsize=8_192)
def _to_american_spelling(word: str) -> str:
    """Return the American spelling of a word, by the table of Whisper's normalizer."""
    if word == "ok":
        return "okay"
    return next(step for step in normalizer("en").steps if step.name == "spellings").apply(word)


# Rules for brackets, by their beginning, and the signs with which their matches end.
_CLOSING = {"[<": ">]", r"\(": ")"}


class TextWithOrigins:
    """A text and, for each of its characters, the range of the original that it stands for."""

    def __init__(self, original: str, character: Callable[[str], str]) -> None:
        """Begin with a text in which each character of the original has been replaced by some or none."""
        pieces = list(map(character, original))
        self.text = "".join(pieces)
        self._starts = [place for place, piece in enumerate(pieces) for _ in piece]
        self._ends = [place + 1 for place in self._starts]

    def substitute(
        self, pattern: re.Pattern[str], replacement: str | Callable[[re.Match[str]], str], closing: str
    ) -> None:
        """Replace all matches; each new character stands for the match without the blanks at its ends."""
        # Behind the last closing bracket none is searched: each opening one would be read to the end of the text.
        end = max(map(self.text.rfind, closing)) + 1 if closing else len(self.text)
        if pattern.search(self.text, 0, end) is None:
            return
        pieces: list[str] = []
        starts: list[int] = []
        stops: list[int] = []
        copied = 0
        for match in pattern.finditer(self.text, 0, end):
            new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
            first, last = match.span()
            if new == match[0]:
                continue
            inside = [place for place in range(first, last) if not self.text[place].isspace()]
            if inside:
                low = self._starts[inside[0]]
            else:
                low = self._starts[first] if first < len(self._starts) else max(self._ends, default=0)
            high = self._ends[inside[-1]] if inside else low
            pieces += self.text[copied:first], new
            starts += [*self._starts[copied:first], *[low] * len(new)]
            stops += [*self._ends[copied:first], *[high] * len(new)]
            copied = last
        if copied or pieces:
            pieces.append(self.text[copied:])
            self._starts, self._ends = starts + self._starts[copied:], stops + self._ends[copied:]
            self.text = "".join(pieces)

    def list_words(self) -> list[tuple[str, tuple[int, int]]]:
        """Return the words between blanks, each with its range in the original."""
        return [
            (word[0], (self._starts[word.start()], max(self._ends[word.start() : word.end()])))
            for word in re.finditer(r"\S+", self.text)
        ]


_PLAIN = re.compile("[A-Za-z,;!? ]*")
_WORD = re.compile("[A-Za-z]+")
# Words of letters alone that a rule can change, if there is no figure in the text.
_RULE_WORDS = NUMBER_WORDS | frozenset(
    words(
        """cannot cant wont shant cause cuz cos coz yall gonna wanna gotta gimme lemme dunno kinda kinds sorta
        sorts outta lotta lots cuppa cups woulda coulda shoulda musta mighta would could should must might
        per pct clock dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wouldnt couldnt shouldnt
        mustnt neednt mightnt aint na n tis twas tryna hafta oughta gotcha betcha imma"""
    )
)


class SpokenText:
    """A text as the words in which it is compared."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[int, int]] | None = None
        self.plain = True  # whether its words are those that are written, but for spellings
        if _PLAIN.fullmatch(text):
            letters = _WORD.findall(text.lower())
            if _RULE_WORDS.isdisjoint(letters):
                self.words = list(map(_to_american_spelling, letters))
                return
        self.plain = False
        traced = TextWithOrigins(text, _normalize_character)
        for rule in _compile_rules():
            traced.substitute(*rule)
        tokens = traced.list_words()
        self.words = [_to_american_spelling(word) for word, _ in tokens]
        self._tokens = [place for _, place in tokens]

    def locate_words(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of some of the words in the text as written."""
        if self._tokens is None:
            self._tokens = [word.span() for word in _WORD.finditer(self._text)]
        if start < end:
            return self._tokens[start][0], self._tokens[end - 1][1]
        place = self._tokens[start][0] if start < len(self._tokens) else len(self._text)
        return place, place

    def get_written_word(self, index: int) -> str:
        """Return a word as written."""
        start, end = self.locate_words(index, index + 1)
        return self._text[start:end]
