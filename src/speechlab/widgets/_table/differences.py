"""Differences between the texts of two columns, in their original spelling."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from speechlab.errors import MissingDependencyError
from speechlab.text import writes_without_spaces
from speechlab.widgets._table.columns import normalize_language

if TYPE_CHECKING:
    import pandas as pd

_CJK_CHARACTER = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_WORD_AT_END = re.compile(r"[^\W\u3040-\u30ff\u4e00-\u9fff][^\w\s]*$")
_WORD_AT_START = re.compile(r"[^\w\s]*[^\W\u3040-\u30ff\u4e00-\u9fff]")

# Classes of differences; one that covers several is shown as the worst.
_WORST_FIRST = ("recognition", "homophone", "tone", "notation", "filler")

# Kind, text, and the class of the difference if known: one of ``_WORST_FIRST``.
Piece: TypeAlias = tuple[Literal["equal", "delete", "insert"], str, str]


def compare_texts_in_pieces(texts: Iterable[tuple[str | None, str | None, str]]) -> list[list[Piece] | None]:
    """Return each hypothesis in pieces, each at its place; ``texts`` are references, hypotheses and language codes.

    The result is None where a text is missing.
    """
    results: list[list[Piece] | None] = []
    # pairs with the same settings are compared together, because each comparison makes a table
    groups: dict[tuple[bool, str | None], list[tuple[int, str, str]]] = defaultdict(list)
    for number, (reference, hypothesis, lang) in enumerate(texts):
        results.append(None)
        if reference is not None and hypothesis is not None:
            language = normalize_language(lang) or None
            by_characters = (
                writes_without_spaces(language)
                if language
                else bool(_CJK_CHARACTER.search(reference + hypothesis))
            )
            groups[by_characters, language].append((number, reference, hypothesis))
    for (by_characters, language), pairs in groups.items():
        pieces = _compare_pairs(pairs, "char" if by_characters else "word", language)
        for (number, _, _), result in zip(pairs, pieces, strict=True):
            results[number] = result
    return results


def _compare_pairs(
    pairs: list[tuple[int, str, str]], unit: Any, language: str | None
) -> Iterator[list[Piece]]:
    _, references, hypotheses = zip(*pairs, strict=True)
    from speechlab.metrics import error_rate  # slow to import, and most tables have no references

    compared = error_rate(references, hypotheses, unit=unit, language=language)
    steps = compared.edits(equal=True)
    edges = ("reference_start", "reference_end", "hypothesis_start", "hypothesis_end")
    places = zip(steps["operation"], *(_to_optional_ints(steps[name]) for name in edges), strict=True)
    for reference, hypothesis, alignment in zip(references, hypotheses, compared.alignments, strict=True):
        # each step of an alignment has its row, pair after pair
        placed = [(*next(places), edit.reference_index) for edit in alignment]
        if alignment.reference == alignment.hypothesis:
            yield [("equal", hypothesis, "")] if hypothesis else []
        else:
            spans = _find_class_spans(reference, hypothesis, language)
            yield _add_missing_spaces(list(_build_pieces(reference, hypothesis, placed, spans, language)))


def _add_missing_spaces(pieces: list[Piece]) -> list[Piece]:
    """Add a space to a missing word that would touch its neighbors, because its own spaces are missing too."""
    spaced: list[Piece] = []
    for number, (kind, text, name) in enumerate(pieces):
        before = pieces[number - 1][1] if number else ""
        after = pieces[number + 1] if number + 1 < len(pieces) else ("equal", "", "")
        if kind == "delete" and after[0] != "insert":
            lead = " " if _WORD_AT_END.search(before) and _WORD_AT_START.match(text) else ""
            trail = " " if _WORD_AT_END.search(text) and _WORD_AT_START.match(after[1]) else ""
            text = lead + text + trail  # noqa: PLW2901 - the same word, with its spaces
        spaced.append((kind, text, name))
    return spaced


def _build_pieces(
    reference: str,
    hypothesis: str,
    steps: Sequence[tuple[Any, ...]],
    spans: list[tuple[int, int, str]],
    language: str | None,
) -> Iterator[Piece]:
    placed = 0  # length of the hypothesis in pieces
    for changed, group in itertools.groupby(enumerate(steps), lambda step: step[1][0] != "equal"):
        if not changed:
            continue
        numbers, run = zip(*group, strict=True)
        # equal text up to here; missing text comes before the next token of the hypothesis
        starts = (start for *_, start, _, _ in steps[numbers[0] :] if start is not None)
        until = next(starts, len(hypothesis))
        if until > placed:
            yield "equal", hypothesis[placed:until], ""
        begin, end = _find_changed_range(run, language)
        kinds = {name for first, last, name in spans if first <= end and begin <= last}
        kind = next((name for name in _WORST_FIRST if name in kinds), "")
        deleted = [(start, end) for _, start, end, *_ in run if start is not None]
        inserted = [(start, end) for *_, start, end, _ in run if start is not None]
        if deleted:
            yield "delete", reference[deleted[0][0] : deleted[-1][1]], kind
        if inserted:
            yield "insert", hypothesis[inserted[0][0] : inserted[-1][1]], kind
        placed = inserted[-1][1] if inserted else max(placed, until)
    if placed < len(hypothesis):
        yield "equal", hypothesis[placed:], ""


def _find_changed_range(changed: Sequence[tuple[Any, ...]], language: str | None) -> tuple[int, int]:
    """First and last character of a difference in the compared reference: English as written, others normalized."""
    if language != "en":
        return changed[0][-1], changed[-1][-1]
    written = [(start, end) for _, start, end, *_ in changed if start is not None]
    return (written[0][0], written[-1][1] - 1) if written else (-1, -1)


def _to_optional_ints(column: pd.Series[Any]) -> list[int | None]:
    return [int(value) if exists else None for value, exists in zip(column, column.notna(), strict=True)]


def _find_class_spans(reference: str, hypothesis: str, language: str | None) -> list[tuple[int, int, str]]:
    """First and last character of the compared reference that a difference covers, and its class."""
    if language not in {"en", "ja", "zh"}:
        return []
    try:
        from speechlab.metrics import classify_differences

        classified = classify_differences(reference, hypothesis, language).differences
    except MissingDependencyError:
        return []
    return [
        (difference.start, difference.start + max(len(difference.reference) - 1, 0), difference.kind)
        for difference in classified
    ]
