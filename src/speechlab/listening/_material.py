"""The material of a listening test, from the arguments of its author."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import is_missing, is_whole_number, refused, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.listening._questions import ANCHORS_HZ, Material

if TYPE_CHECKING:
    import pandas as pd

_WORDS = Path(__file__).parent / "words.json"
_MAX_WORDS = 2_000
_TOLD = 10


def checked_words(name: str, value: object) -> str:
    """Return a text for listeners; refuse any other value."""
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_WORDS:
        raise refused(name, value, f"a text of 1 to {_MAX_WORDS:,} characters")
    return well_formed(value, name)


def well_formed(text: str, parameter: str) -> str:
    """Return a text; refuse one with half a surrogate pair, which cannot be written to a page or a key."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refused(parameter, text, "a text without half surrogate pairs") from None
    return text


def page_words(language: object) -> dict[str, Any]:
    """Return the words of a test's page in a language: for the browser, and ``methods``, the default questions."""
    words: dict[str, dict[str, Any]] = orjson.loads(_WORDS.read_bytes())
    if language not in words:
        raise refused("page_language", language, f"one of {', '.join(map(repr, words))}")
    return words[str(language)]


def instructions_of(instructions: object, method: str, level: float, words: Mapping[str, Any]) -> list[str]:
    """Return the paragraphs of the first page; the last one is about the loudness."""
    if instructions is None:
        paragraphs = [words["methods"][method][1], words["headphones"]]
    elif isinstance(instructions, Iterable) and not isinstance(instructions, str):
        paragraphs = [checked_words("instructions", paragraph) for paragraph in instructions]
    else:
        paragraphs = [checked_words("instructions", instructions)]
    return [*paragraphs, words["own_level" if math.isnan(level) else "equal_level"]]


def inquiries_of(name: str, given: object) -> list[dict[str, Any]]:
    """Return questions about the listener: names to texts, or to a text and its choices."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise refused(name, given, "a mapping of names to questions, or to a question and its choices")
    inquiries = []
    for key, question in given.items():
        text, choices = (question, ()) if isinstance(question, str) else (*question, ())[:2]
        inquiry = {"name": checked_words(name, key), "text": checked_words(name, text)}
        inquiries.append({**inquiry, "choices": [checked_words(name, choice) for choice in choices]})
    return inquiries


def training_of(training: object, items: Iterable[str]) -> list[str]:
    """Return the practice items: the first ones, or the given ones."""
    names = list(items)
    if is_whole_number(training) and training >= 0:
        return names[: int(training)]
    if isinstance(training, str) or not isinstance(training, Iterable):
        raise refused("training", training, "a number of items, or a list of them")
    chosen = list(dict.fromkeys(_name(item) for item in training))
    if unknown := [item for item in chosen if item not in names]:
        raise refused("training", unknown[0], "an item of the table")
    return chosen


def chosen_pairs(pairs: object, systems: Iterable[str], method: str) -> list[tuple[str, str]]:
    """Return the pairs to compare; none for all pairs."""
    if pairs is None or method not in {"ab", "abx"}:
        return []
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise refused("pairs", pairs, "a list of pairs of systems, or None for all")
    names = set(systems)
    chosen: list[tuple[str, str]] = []
    for pair in pairs:
        sides = [_name(side) for side in pair] if isinstance(pair, Iterable) else []
        if len(sides) != 2 or set(sides) - names or sides[0] == sides[1]:
            raise refused("pairs", pair, f"two of the systems {', '.join(map(repr, sorted(names)))}")
        if set(sides) in map(set, chosen):
            raise refused(
                "pairs", pair, "a pair that occurs once in the list; the order of its systems does not count"
            )
        chosen.append((sides[0], sides[1]))
    return chosen


def material_of(
    frame: pd.DataFrame,
    audio: Any,
    system: Any,
    item: Any,
    text: Any,
    language: Any,
    reference: Any,
    *,
    refers: bool,
) -> Material:
    """Read the material from the columns of a table; ``refers`` for a method with a reference."""
    hint = "Name the columns with audio=, system= and item="
    require_columns(frame, audio, system, item, *([] if text is None else [text]), hint=hint)
    rows: dict[tuple[str, str], int] = {}
    texts: dict[str, tuple[str, str]] = {}
    tags = frame[language].tolist() if language in list(frame.columns) else [language] * len(frame)
    sentences = [""] * len(frame) if text is None else frame[text].tolist()
    for row, (name, owner) in enumerate(zip(frame[item].tolist(), frame[system].tolist(), strict=True)):
        if is_missing(name) or is_missing(owner) or not str(name) or not str(owner):
            message = f"row {row} has no item or no system; fill the columns {item!r} and {system!r}"
            raise InvalidRequestError(message, parameter="frame")
        place = _name(name), _name(owner)
        if place in rows:
            message = f"item {place[0]!r} occurs twice for {place[1]!r}; keep one recording for each item and system"
            raise InvalidRequestError(message, parameter="frame")
        rows[place] = row
        if not is_missing(sentences[row]) and sentences[row]:
            tag = "" if is_missing(tags[row]) else str(tags[row])
            texts.setdefault(
                place[0], (well_formed(str(sentences[row]), "text"), well_formed(tag, "language"))
            )
    items, systems = (list(dict.fromkeys(place[side] for place in rows)) for side in (0, 1))
    reserved = sorted(set(systems) & set(ANCHORS_HZ))
    if reserved:
        raise InvalidRequestError(
            f"{reserved[0]!r} is the name of an anchor; rename the system", parameter="system"
        )
    refers_to = None if is_missing(reference) or not refers else _name(reference)
    if refers and refers_to not in systems:
        what = f"the reference system of MUSHRA, one of {', '.join(map(repr, systems[:_TOLD]))}"
        raise refused("reference", reference, what + (" …" if len(systems) > _TOLD else ""))
    return Material(rows, items, systems, texts, refers_to)


def _name(value: object) -> str:
    """Return the full name of an item or a system, because sentences can have the same beginning."""
    return well_formed(str(value), "frame")


def design_of(
    items: set[str], each: object, before: object, after: object, code: str | None
) -> dict[str, Any]:
    """Return what is asked of a listener: the number of items, questions before and after, and a code at the end."""
    count = len(items) if each is None else each
    if not is_whole_number(count) or not 1 <= count <= max(len(items), 1):
        raise refused("items_per_listener", count, f"1 to {len(items)}, the items that count, or None")
    return {
        "groups": len(items),
        "each": count,
        "listener": "",
        "part": None,
        "before": inquiries_of("before", before),
        "after": inquiries_of("after", after),
        "code": "" if code is None else checked_words("completion_code", code),
    }
