"""Lexicons: how words are written for voices that misread them, in a small CSV file to be kept with the texts."""

from __future__ import annotations

import csv
import io
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from speechlab._arguments import build_argument_error, check_text
from speechlab._files import expand_user_path, read_regular_file, report_write_errors, write_atomically
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.text._language_codes import language_code, writes_without_spaces
from speechlab.text._languages.japanese import split_morphemes
from speechlab.text._third_party import load_optional_module

_MAX_CHARS = 200
# Hyphens, apostrophes and dots join what they stand between (but for the possessive), and C++ is not C: half of such
# a word is no word.
_WORD = re.compile(r"\w+(?:(?!['’]s\b)[-‐‑'’.@&]\w+)*[+#]*")
_UNSEEN = re.compile("[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_OPEN_QUOTE = 'a quote (") is never closed; close it, or write it twice within quotes'
_FORMULA = ("=", "+", "-", "@")  # of spreadsheets


class LexiconEntry(NamedTuple):
    """How a word is written for a voice.

    Attributes:
        language: Code of the language of the texts.
        word: The word, or several, as texts have it. Without a capital, it is matched in capitals, too.
        spoken: What is sent in its place, such as kana; empty if its reading is not decided.
        voice: Id or name of the voice; empty for all.
        note: A remark for people.

    Example:
        >>> Lexicon([LexiconEntry("ja", "鬼滅", "キメツ", voice="mei")]).respell("鬼滅だ", "ja", "mei")
        'キメツだ'
    """

    language: str
    word: str
    spoken: str
    voice: str = ""
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
        """Read a CSV file in UTF-8: ``language``, ``word``, ``spoken``, and perhaps ``voice``, ``note``.

        Raises:
            InvalidRequestError: The file cannot be read, or a line is not usable.
        """
        where = expand_user_path(path)
        try:
            data = read_regular_file(where)
        except OSError as error:
            message = f"{where} cannot be read: {error.strerror or error}"
            raise InvalidRequestError(message, parameter="path") from error
        return cls(_parse_lines(where.name, data))

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the entries as a CSV file, in order of language and word.

        Raises:
            InvalidRequestError: The name does not end in ``.csv``.
            StoreError: The file cannot be written.
        """
        lines, where = io.StringIO(), expand_user_path(path)
        if where.suffix.lower() != ".csv":
            message = f"{where.name!r:.60} does not end in .csv, and a lexicon is a CSV file; name it so"
            raise InvalidRequestError(message, parameter="path")
        csv.writer(lines, lineterminator="\n").writerows([LexiconEntry._fields, *sorted(self)])
        with report_write_errors(where, StoreError), write_atomically(where) as draft:
            draft.write_text(lines.getvalue(), encoding="utf-8")
        return where

    def respell(self, text: str, language: str | Collection[str], voice: str | Collection[str] = "") -> str:
        """Return a text as it is sent to a voice.

        The longest word is replaced at each place, whole words alone (in Japanese and Chinese by their dictionaries),
        and nothing within what was replaced. An entry in the case of the text has precedence, then one of the voice.

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
        folded, inside = whole.casefold(), dict[str, set[int]]()
        places = defaultdict[tuple[int, int], list[LexiconEntry]](list)
        for entry in self:
            code, word = entry.language, entry.word
            if code in codes and entry.voice.casefold() in names and word.casefold() in folded:
                inside[code] = inside.get(code) or _find_places_inside_words(whole, code)
                flags = 0 if any(map(str.isupper, word)) else re.IGNORECASE
                for match in re.finditer(re.escape(word), whole, flags):
                    if inside[code].isdisjoint(match.span()):
                        places[match.span()].append(entry)
        pieces, copied = list[str](), 0
        for start, end in sorted(places, key=lambda place: (place[0], -place[1])):
            if start >= copied:
                pieces += whole[copied:start], _choose_spelling(whole[start:end], places[start, end])
                copied = end
        return "".join([*pieces, whole[copied:]]) if pieces else text


def _choose_spelling(word: str, entries: list[LexiconEntry]) -> str:
    """Return the spelling of a word."""
    ranks = [(entry.word == word, bool(entry.voice)) for entry in entries]
    best = [entry.spoken for entry, rank in zip(entries, ranks, strict=True) if rank == max(ranks)]
    choices = list(dict.fromkeys(best))
    if len(choices) == 1 and choices[0]:
        return choices[0]
    several = f"several readings in the lexicon ({', '.join(filter(None, choices))})"
    readings = several if len(choices) > 1 else "a reading that the lexicon leaves open"
    advice = (
        "decide on one, or write entries of longer parts of the text, such as the word with the one beside it"
    )
    raise InvalidRequestError(f"{word!r} has {readings}; {advice}", parameter="respell")


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
            inside |= set(range(match.start() + 1, match.end()))
    return inside


def _parse_lines(name: str, data: bytes) -> Iterator[LexiconEntry]:
    """Yield the entries of a file; an error names the line."""
    line, known, problem = 1, LexiconEntry._fields, ""
    try:
        rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        columns = rows.fieldnames = [column.strip() for column in rows.fieldnames or ()]
        if not {*known[:3]} <= {*columns} <= {*known} or len({*columns}) < len(columns):
            problem = f"the columns are {', '.join(columns)!r:.80}; they must be some of {', '.join(known)}"
        for cells in () if problem else rows:
            line = rows.line_num
            if None in cells or None in cells.values():
                problem = f"not {len(columns)} cells, as in the first line; quote those with commas"
                break
            if any(map(str.strip, cells.values())):
                yield _check_entry(LexiconEntry(**cells))
    except UnicodeDecodeError as error:
        line, problem = data.count(b"\n", 0, error.start) + 1, "it is not in UTF-8; save it as UTF-8"
    except (csv.Error, ValueError) as error:
        problem = str(error)
        if isinstance(error, csv.Error):  # in the entry after the last one that was read
            whole = [*io.StringIO(data.decode("utf-8-sig"), newline="")]
            line = next((at for at in range(rows.line_num, len(whole)) if whole[at].strip()), 0) + 1
            problem = _OPEN_QUOTE if "unexpected end" in problem else problem
    if problem:
        raise InvalidRequestError(f"{name}, line {line}: {problem}", parameter="path")


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
