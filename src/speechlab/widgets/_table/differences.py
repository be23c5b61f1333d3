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
    clusters = _join_overlapping_steps(steps)
    for changed, group in itertools.groupby(enumerate(clusters), lambda item: _is_changed(item[1])):
        if not changed:
            continue
        numbers, joined = zip(*group, strict=True)
        run = [step for cluster in joined for step in cluster]
        # equal text up to here; missing text comes before the next token of the hypothesis
        following = (_find_bounds(cluster, hypothesis=True) for cluster in clusters[numbers[0] :])
        until = next((bounds[0] for bounds in following if bounds), len(hypothesis))
        if until > placed:
            yield "equal", hypothesis[placed:until], ""
        begin, end = _find_changed_range(run, language)
        kinds = {name for first, last, name in spans if first <= end and begin <= last}
        kind = next((name for name in _WORST_FIRST if name in kinds), "")
        deleted = _find_bounds(run, hypothesis=False)
        if deleted and deleted[0] < deleted[1]:
            yield "delete", reference[slice(*deleted)], kind
        inserted = _find_bounds(run, hypothesis=True)
        if inserted and inserted[0] < inserted[1]:
            yield "insert", hypothesis[slice(*inserted)], kind
        placed = inserted[1] if inserted else max(placed, until)
    if placed < len(hypothesis):
        yield "equal", hypothesis[placed:], ""


def _join_overlapping_steps(steps: Sequence[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """Join steps whose tokens share written characters, such as 三, 十 and 四 those of 34."""
    clusters: list[list[tuple[Any, ...]]] = []
    ends = (0, 0)
    for step in steps:
        _, *reference, start, end, _ = step
        sides = ((reference[0], reference[1], ends[0]), (start, end, ends[1]))
        # A token without a written character of its own belongs to the one before it.
        if clusters and any(here is not None and (here < last or here == to) for here, to, last in sides):
            clusters[-1].append(step)
        else:
            clusters.append([step])
        ends = (max(ends[0], reference[1] or 0), max(ends[1], end or 0))
    return clusters


def _is_changed(steps: Sequence[tuple[Any, ...]]) -> bool:
    return any(step[0] != "equal" for step in steps)


def _find_bounds(steps: Sequence[tuple[Any, ...]], *, hypothesis: bool) -> tuple[int, int] | None:
    """Return where the tokens of some steps begin and end in one of the texts; None if it has none of them."""
    first = 3 if hypothesis else 1
    places = [(step[first], step[first + 1]) for step in steps if step[first] is not None]
    return (min(start for start, _ in places), max(end for _, end in places)) if places else None


def _find_changed_range(changed: Sequence[tuple[Any, ...]], language: str | None) -> tuple[int, int]:
    """First and last character of a difference in the compared reference: English as written, others normalized."""
    if language != "en":
        return changed[0][-1], changed[-1][-1]
    written = _find_bounds(changed, hypothesis=False)
    return (written[0], written[1] - 1) if written else (-1, -1)


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
