"""The material of a listening test, from the arguments of its author."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import build_argument_error, is_missing, is_whole_number, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.listening._questions import ANCHORS_HZ, Material

if TYPE_CHECKING:
    import pandas as pd

_WORDS = Path(__file__).parent / "words.json"
_MAX_WORDS = 2_000
_MAX_NAMES = 10


def check_text(name: str, value: object) -> str:
    """Return a text for listeners; refuse any other value."""
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_WORDS:
        raise build_argument_error(name, value, f"a text of 1 to {_MAX_WORDS:,} characters")
    return check_surrogates(value, name)


def check_surrogates(text: str, parameter: str) -> str:
    """Return a text; refuse one with half a surrogate pair, which cannot be written to a page or a key."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise build_argument_error(parameter, text, "a text without half surrogate pairs") from None
    return text


def load_page_words(language: object) -> dict[str, Any]:
    """Return the words of a test's page in a language: for the browser, and ``methods``, the default questions."""
    words: dict[str, dict[str, Any]] = orjson.loads(_WORDS.read_bytes())
    if language not in words:
        raise build_argument_error("page_language", language, f"one of {', '.join(map(repr, words))}")
    return words[str(language)]


def build_instructions(
    instructions: object, method: str, level: float, words: Mapping[str, Any]
) -> list[str]:
    """Return the paragraphs of the first page; the last one is about the loudness."""
    if instructions is None:
        paragraphs = [words["methods"][method][1], words["headphones"]]
    elif isinstance(instructions, Iterable) and not isinstance(instructions, str):
        paragraphs = [check_text("instructions", paragraph) for paragraph in instructions]
    else:
        paragraphs = [check_text("instructions", instructions)]
    return [*paragraphs, words["own_level" if math.isnan(level) else "equal_level"]]


def build_listener_questions(name: str, given: object) -> list[dict[str, Any]]:
    """Return questions about the listener: names to texts, or to a text and its choices."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise build_argument_error(
            name, given, "a mapping of names to questions, or to a question and its choices"
        )
    inquiries = []
    for key, question in given.items():
        text, choices = (question, ()) if isinstance(question, str) else (*question, ())[:2]
        inquiry = {"name": check_text(name, key), "text": check_text(name, text)}
        inquiries.append({**inquiry, "choices": [check_text(name, choice) for choice in choices]})
    return inquiries


def choose_training_items(training: object, items: Iterable[str]) -> list[str]:
    """Return the practice items: the first ones, or the given ones."""
    names = list(items)
    if is_whole_number(training) and training >= 0:
        return names[: int(training)]
    if isinstance(training, str) or not isinstance(training, Iterable):
        raise build_argument_error("training", training, "a number of items, or a list of them")
    chosen = list(dict.fromkeys(_to_checked_name(item) for item in training))
    if unknown := [item for item in chosen if item not in names]:
        raise build_argument_error("training", unknown[0], "an item of the table")
    return chosen


def check_system_pairs(pairs: object, systems: Iterable[str], method: str) -> list[tuple[str, str]]:
    """Return the pairs to compare; none for all pairs."""
    if pairs is None or method not in {"ab", "abx"}:
        return []
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise build_argument_error("pairs", pairs, "a list of pairs of systems, or None for all")
    names = set(systems)
    chosen: list[tuple[str, str]] = []
    for pair in pairs:
        sides = [_to_checked_name(side) for side in pair] if isinstance(pair, Iterable) else []
        if len(sides) != 2 or set(sides) - names or sides[0] == sides[1]:
            raise build_argument_error(
                "pairs", pair, f"two of the systems {', '.join(map(repr, sorted(names)))}"
            )
        if set(sides) in map(set, chosen):
            raise build_argument_error(
                "pairs", pair, "a pair that occurs once in the list; the order of its systems does not count"
            )
        chosen.append((sides[0], sides[1]))
    return chosen


def build_material(
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
    frame = require_columns(frame, audio, system, item, *([] if text is None else [text]), hint=hint)
    rows: dict[tuple[str, str], int] = {}
    texts: dict[str, tuple[str, str]] = {}
    tags = frame[language].tolist() if language in list(frame.columns) else [language] * len(frame)
    sentences = [""] * len(frame) if text is None else frame[text].tolist()
    for row, (name, owner) in enumerate(zip(frame[item].tolist(), frame[system].tolist(), strict=True)):
        if is_missing(name) or is_missing(owner) or not str(name) or not str(owner):
            message = f"row {row} has no item or no system; fill the columns {item!r} and {system!r}"
            raise InvalidRequestError(message, parameter="frame")
        place = _to_checked_name(name), _to_checked_name(owner)
        if place in rows:
            message = f"item {place[0]!r} occurs twice for {place[1]!r}; keep one recording for each item and system"
            raise InvalidRequestError(message, parameter="frame")
        rows[place] = row
        if not is_missing(sentences[row]) and sentences[row]:
            tag = "" if is_missing(tags[row]) else str(tags[row])
            texts.setdefault(
                place[0], (check_surrogates(str(sentences[row]), "text"), check_surrogates(tag, "language"))
            )
    items, systems = (list(dict.fromkeys(place[side] for place in rows)) for side in (0, 1))
    reserved = sorted(set(systems) & set(ANCHORS_HZ))
    if reserved:
        raise InvalidRequestError(
            f"{reserved[0]!r} is the name of an anchor; rename the system", parameter="system"
        )
    refers_to = None if is_missing(reference) or not refers else _to_checked_name(reference)
    if refers and refers_to not in systems:
        what = f"the reference system of MUSHRA, one of {', '.join(map(repr, systems[:_MAX_NAMES]))}"
        raise build_argument_error("reference", reference, what + (" …" if len(systems) > _MAX_NAMES else ""))
    return Material(rows, items, systems, texts, refers_to)


def _to_checked_name(value: object) -> str:
    """Return the full name of an item or a system, because sentences can have the same beginning."""
    return check_surrogates(str(value), "frame")


def build_design(
    items: set[str], each: object, before: object, after: object, code: str | None
) -> dict[str, Any]:
    """Return what is asked of a listener: the number of items, questions before and after, and a code at the end."""
    count = len(items) if each is None else each
    if not is_whole_number(count) or not 1 <= count <= max(len(items), 1):
        raise build_argument_error(
            "items_per_listener", count, f"1 to {len(items)}, the items that count, or None"
        )
    return {
        "groups": len(items),
        "each": count,
        "listener": "",
        "part": None,
        "before": build_listener_questions("before", before),
        "after": build_listener_questions("after", after),
        "code": "" if code is None else check_text("completion_code", code),
    }
