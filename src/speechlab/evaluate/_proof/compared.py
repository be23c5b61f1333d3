"""Two forms of a report compared, number by number."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from difflib import SequenceMatcher
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import is_missing, is_number
from speechlab.evaluate._writing.folder import to_json_value
from speechlab.evaluate._writing.recordings import SOUNDS

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.evaluate._writing.contents import Contents

_JSON_ELEMENT = re.compile(r'<script type="application/json" id="(\w+)">([^<]*)</script>')
_HIDDEN = {"script", "style", "noscript", "title"}
# Attributes that are no words; figures have hashes.
_VISUAL_ATTRIBUTES = {"src", "srcset", "style", "class", "id", "type", "dir"}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# Relative; other processors sum in another order.
_TOLERANCE = 1e-9
_FRAMES = ("summary", "differences")
_TEXTS = ("conclusion", "findings", "views", "said", "facts", "drawings", "shown")


class NumberCheck:
    """What was compared: ``numbers``; and what is ``unequal``: the place, its value, and the value recomputed."""

    def __init__(self) -> None:
        self.numbers = 0
        self.unequal: list[tuple[str, str, str]] = []

    def compare_contents(self, reported: Contents, recomputed: Contents) -> None:
        """Compare the values of two reports: rows, tables, and every text."""
        self.compare_frames("rows", reported.table, recomputed.table)
        for name in _FRAMES:
            self.compare_frames(name, getattr(reported, name), getattr(recomputed, name))
        for name in sorted(set(recomputed.tables) & set(reported.tables)):
            self.compare_frames(name, reported.tables[name], recomputed.tables[name])
        for name in _TEXTS:
            values = (
                orjson.dumps(getattr(one, name), to_json_value, orjson.OPT_SERIALIZE_NUMPY)
                for one in (reported, recomputed)
            )
            self.compare_values(name, *map(orjson.loads, values))

    def compare_frames(self, name: str, reported: pd.DataFrame, recomputed: pd.DataFrame) -> None:
        """Compare the columns that follow from the rows; columns of the user's own are in both."""
        if not len(reported) and not len(recomputed):
            return
        if len(reported) != len(recomputed):
            self._add_difference(f"{name}, number of rows", len(reported), len(recomputed))
            return
        for column in recomputed.columns:
            if column in SOUNDS:  # whose places differ
                continue
            if column not in reported.columns:
                self._add_difference(f"{name}, column {column}", "none", f"{len(recomputed)} rows")
                continue
            cells = zip(reported[column].tolist(), recomputed[column].tolist(), strict=True)
            for row, (cell, expected) in enumerate(cells):
                self.compare_values(f"{name}, row {row}, {column}", cell, expected)

    def compare_values(self, place: str, reported: Any, recomputed: Any) -> None:
        """Compare two values: numbers within rounding, texts exactly, lists and dicts item by item."""
        if isinstance(reported, dict) and isinstance(recomputed, dict):
            for key in dict.fromkeys([*recomputed, *reported]):
                self.compare_values(f"{place}, {key}", reported.get(key), recomputed.get(key))
        elif isinstance(reported, list | tuple) and isinstance(recomputed, list | tuple):
            if len(reported) != len(recomputed):
                self._add_difference(f"{place}, number of items", len(reported), len(recomputed))
            for at, (item, expected) in enumerate(zip(reported, recomputed, strict=False)):
                self.compare_values(f"{place}, {at}", item, expected)
        elif is_missing(reported) or is_missing(recomputed):
            if not (is_missing(reported) and is_missing(recomputed)):
                self._add_difference(place, reported, recomputed)
        elif is_number(reported) and is_number(recomputed):
            self.numbers += 1
            if not math.isclose(reported, recomputed, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                self._add_difference(place, reported, recomputed)
        else:
            self.numbers += len(_NUMBER.findall(str(recomputed)))
            if str(reported) != str(recomputed):
                self._add_difference(place, reported, recomputed)

    def compare_digests(self, place: str, reported: str, recomputed: str) -> None:
        """Compare two hashes, which are no numbers of the report."""
        if reported != recomputed:
            self._add_difference(place, reported, recomputed)

    def compare_markup(self, place: str, reported: str, recomputed: str) -> None:
        """Compare the visible words of two pieces of HTML."""
        words, expected = _list_visible_words(reported), _list_visible_words(recomputed)
        self.numbers += sum(map(len, map(_NUMBER.findall, expected)))
        for i, j, k, end in _find_changed_slices(words, expected):
            before = " ".join(words[max(i - 3, 0) : i])
            self._add_difference(
                f"{place}, after “{before}”", " ".join(words[i:j]), " ".join(expected[k:end])
            )

    def _add_difference(self, place: str, reported: object, recomputed: object) -> None:
        self.unequal.append((place, f"{reported}", f"{recomputed}"))


class _VisibleWordParser(HTMLParser):
    """The words of a page that people see or hear: its texts, and the texts of attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden = tag if tag in _HIDDEN else self._hidden
        for name, text in attrs:
            if name not in _VISUAL_ATTRIBUTES and text:
                self.words += text.split()

    def handle_endtag(self, tag: str) -> None:
        self._hidden = "" if tag == self._hidden else self._hidden

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words += data.split()


def _list_visible_words(markup: str) -> list[str]:
    parser = _VisibleWordParser()
    parser.feed(markup)
    parser.close()
    return parser.words


def _find_changed_slices(words: list[str], expected: list[str]) -> list[tuple[int, int, int, int]]:
    """Return the slices of both that differ: word by word, or as a diff where words came or went."""
    if len(words) == len(expected):
        pairs = enumerate(zip(words, expected, strict=True))
        return [(at, at + 1, at, at + 1) for at, (word, expected_word) in pairs if word != expected_word]
    matcher = SequenceMatcher(None, words, expected, autojunk=False)
    return [(i, j, k, end) for kind, i, j, k, end in matcher.get_opcodes() if kind != "equal"]


def parse_page_json(page: str, *names: str) -> dict[str, Any]:
    """Return the JSON that a page holds, by the id of its element; what is missing or no JSON is left out."""
    values = {}
    for name, text in _JSON_ELEMENT.findall(page):
        if name in names:
            with suppress(orjson.JSONDecodeError):
                values[name] = orjson.loads(text)
    return values
