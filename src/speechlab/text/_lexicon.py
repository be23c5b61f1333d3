"""Lexicons: how words are written for voices that misread them, in a small CSV file to be kept with the texts."""

from __future__ import annotations

import csv
import io
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from speechlab._arguments import build_argument_error, check_text
from speechlab._files import expand_user_path, read_regular_file, write_atomically
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.text._language_codes import language_code, writes_without_spaces
from speechlab.text._languages.japanese import split_morphemes
from speechlab.text._third_party import load_optional_module

_MAX_CHARS, _MAX_BYTES = 200, 20 << 20
# Hyphens, apostrophes and dots join what they stand between, and C++ is not C: half of such a word is no word.
_WORD = re.compile(r"\w+(?:[-‐‑'’.@&]\w+)*[+#]*")
_POSSESSIVE = re.compile(r"['’]s?\Z")
_UNSEEN = re.compile("[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = ("=", "+", "-", "@")  # of spreadsheets


class LexiconEntry(NamedTuple):
    """How a word is written for a voice.

    Attributes:
        language: Code of the language of the texts.
        word: The word, or several, as texts have it.
        spoken: What is sent in its place, such as kana; empty if its reading is not decided.
        voice: Id or name of the voice; empty for all.
        context: Another part of the text, without which the entry does not apply; empty for none.
        note: A remark for people.

    Example:
        >>> Lexicon([LexiconEntry("ja", "鬼滅", "キメツ", voice="mei")]).respell("鬼滅だ", "ja", "mei")
        'キメツだ'
    """

    language: str
    word: str
    spoken: str
    voice: str = ""
    context: str = ""
    note: str = ""


class Lexicon(tuple[LexiconEntry, ...]):
    """Words that a voice misreads, each with the spelling by which it reads them right.

    ``respell=lexicon`` of ``synthesize``, batches and studies changes the text that is sent, and no other.

    Args:
        entries: Entries, or tuples of their values.

    Raises:
        InvalidRequestError: An entry is not usable.

    Example:
        >>> lexicon = Lexicon([("en", "Nguyen", "win"), ("en", "Nguyen Street", "new yen street")])
        >>> lexicon.respell("Nguyen's house is in Nguyen Street.", "en")
        "win's house is in new yen street."
    """

    __slots__ = ()

    def __new__(cls, entries: Iterable[LexiconEntry | tuple[str, ...]] = ()) -> Self:
        given: Any = entries
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise build_argument_error("entries", entries, "a list of (language, word, spoken)")
        checked = (_check_entry(entry, f"entry {number}: ") for number, entry in enumerate(given, 1))
        return super().__new__(cls, dict.fromkeys(checked))

    def __repr__(self) -> str:
        words = ", ".join(f"{entry.word} → {entry.spoken or '?'}" for entry in self[:6])
        return f"Lexicon({len(self)} entries: {words}{', …' if len(self) > 6 else ''})"

    def frame(self) -> pd.DataFrame:
        """Return one row for each entry."""
        return pd.DataFrame(list(self), columns=list(LexiconEntry._fields)).astype("string")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a CSV file in UTF-8: ``language``, ``word``, ``spoken``, and perhaps ``voice``, ``context``, ``note``.

        Raises:
            InvalidRequestError: The file cannot be read, or a line is not usable.
        """
        where = expand_user_path(path)
        try:
            data = read_regular_file(where)
        except OSError as error:
            message = f"{where} cannot be read: {error.strerror or error}"
            raise InvalidRequestError(message, parameter="path") from error
        if len(data) > _MAX_BYTES:
            message = f"{where} has {len(data):,} bytes; a lexicon has at most {_MAX_BYTES:,}"
            raise InvalidRequestError(message, parameter="path")
        return cls(_parse_lines(where.name, data))

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the entries as a CSV file, in order of language and word."""
        lines, where = io.StringIO(), expand_user_path(path)
        csv.writer(lines, lineterminator="\n").writerows([LexiconEntry._fields, *sorted(self)])
        with write_atomically(where) as draft:
            draft.write_text(lines.getvalue(), encoding="utf-8")
        return where

    def respell(self, text: str, language: str | Collection[str], voice: str | Collection[str] = "") -> str:
        """Return a text as it is sent to a voice.

        The longest word is replaced at each place, whole words alone (in Japanese and Chinese by their dictionaries),
        and nothing within what was replaced. An entry with a context has precedence, then one of the voice.

        Args:
            text: The text.
            language: Its language; or several, where it may be in any of them.
            voice: Id or name of the voice, or several names of it; entries of other voices are left out.

        Raises:
            InvalidRequestError: A word of the text has several readings in the lexicon, or one that is not decided.
        """
        check_text(text)
        codes = {language_code(code) for code in ([language] if isinstance(language, str) else language)}
        names = {name.casefold() for name in ("", *([voice] if isinstance(voice, str) else voice))}
        whole = unicodedata.normalize("NFC", text)
        entries: dict[tuple[str, str], list[LexiconEntry]] = {}
        for entry in self:
            if entry.language in codes and entry.voice.casefold() in names:
                # as it is, and with a capital for the start of a sentence
                for form in {entry.word, entry.word[0].upper() + entry.word[1:]}:
                    if form in whole:
                        entries.setdefault((form, entry.language), []).append(entry)
        return _replace_words(whole, entries) if entries else text


def _replace_words(text: str, entries: dict[tuple[str, str], list[LexiconEntry]]) -> str:
    inside = {code: _find_places_inside_words(text, code) for _, code in entries}
    longest_first = sorted(entries, key=lambda key: (-len(key[0]), key))
    pieces: list[str] = []
    at = copied = 0
    while at < len(text):
        spoken = None
        for word, code in longest_first:
            if text.startswith(word, at) and inside[code].isdisjoint((at, at + len(word))):
                spoken = _choose_spelling(word, entries[word, code], text, at)
            if spoken is not None:
                pieces += text[copied:at], spoken
                at = copied = at + len(word)
                break
        else:
            at += 1
    return "".join([*pieces, text[copied:]])


def _choose_spelling(word: str, entries: list[LexiconEntry], text: str, at: int) -> str | None:
    """Return the spelling of a word; None if no entry applies here."""
    exact = [entry for entry in entries if entry.word == word]
    before = text[:at].rstrip(" \n\"'“”‘’([)]")
    if not exact and before[-1:] not in ".!?…:":  # nor at the start, where there is nothing before
        return None
    entries = exact or entries
    fitting = [entry for entry in entries if entry.context.casefold() in text.casefold()]
    ranks = [(bool(entry.context), bool(entry.voice)) for entry in fitting]
    best = [entry for entry, rank in zip(fitting, ranks, strict=True) if rank == max(ranks)]
    choices = list(dict.fromkeys(entry.spoken for entry in best or entries))
    if len(choices) == 1 and (choices[0] or not fitting):
        return choices[0] if fitting else None
    readings = f"several readings in the lexicon ({', '.join(filter(None, choices))})"
    readings = readings if len(choices) > 1 else "a reading that the lexicon leaves open"
    message = (
        f"{word!r} has {readings}; decide on one, or write an entry whose context is a part of this text"
    )
    raise InvalidRequestError(message, parameter="respell")


def _find_places_inside_words(text: str, code: str) -> set[int]:
    """Return the places of a text that are no border of a word."""
    if code == "ja":
        borders = {place for word in split_morphemes(text) for place in (word.start, word.end)}
        return set(range(1, len(text))) - borders
    inside, at = set[int](), 0
    if code == "zh":
        for word in load_optional_module("pypinyin.seg.mmseg").seg.cut(text):
            inside |= set(range(at + 1, at + len(word)))
            at += len(word)
    elif not writes_without_spaces(code):  # no dictionary says where the words of the others end
        for match in _WORD.finditer(text):
            stem = _POSSESSIVE.sub("", match[0])
            inside |= set(range(match.start() + 1, match.end())) - {match.start() + len(stem)}
    return inside


def _parse_lines(name: str, data: bytes) -> Iterator[LexiconEntry]:
    """Yield the entries of a file; an error names the line."""
    line, columns, problem = 1, list[str](), ""
    try:
        lines = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        for cells in lines:
            line = lines.line_num
            if not columns:
                columns = _check_columns([cell.strip() for cell in cells])
            elif len(cells) != len(columns) and cells:
                problem = f"{len(cells)} cells in place of {len(columns)}; quote those with commas"
                break
            elif any(map(str.strip, cells)):
                yield _check_entry(LexiconEntry(**dict(zip(columns, cells, strict=True))))
        columns = columns or _check_columns([])
    except UnicodeDecodeError as error:
        line, problem = data.count(b"\n", 0, error.start) + 1, "it is not in UTF-8"
    except (csv.Error, ValueError) as error:
        problem = str(error)
    if problem:
        raise InvalidRequestError(f"{name}, line {line}: {problem}", parameter="path")


def _check_columns(columns: list[str]) -> list[str]:
    known = LexiconEntry._fields
    if {*known[:3]} <= {*columns} <= {*known} and len({*columns}) == len(columns):
        return columns
    raise ValueError(f"the columns are {', '.join(columns)!r:.80}; they must be some of {', '.join(known)}")


def _check_entry(values: Any, where: str = "") -> LexiconEntry:
    """Return an entry with its values in one form."""
    if not isinstance(values, tuple | list) or not 3 <= len(values) <= len(LexiconEntry._fields):
        message = f"{where}{values!r:.60} is no entry; give (language, word, spoken), or a LexiconEntry"
        raise InvalidRequestError(message, parameter="entries")
    for name, value in zip(LexiconEntry._fields, values, strict=False):
        check_text(value, f"{where}{name}")
        problem = ""
        if unseen := _UNSEEN.search(value):
            problem = f"the sign {unseen[0]!a}, which nobody sees"
        elif len(value) > _MAX_CHARS:
            problem = f"{len(value):,} characters, more than {_MAX_CHARS}"
        elif value.startswith(_FORMULA):
            problem = f"{value[:40]!r}, which spreadsheets take for a formula"
        elif (name == "word" or (name == "spoken" and value.strip())) and not any(map(str.isalnum, value)):
            problem = f"{value[:40]!r}, without a letter"
        if problem:
            raise InvalidRequestError(f"{where}{name} has {problem}", parameter=name)
    entry = LexiconEntry(*(unicodedata.normalize("NFC", value).strip() for value in values))
    return entry._replace(language=language_code(entry.language))
