"""Formatting: punctuation, capitals and digits of a transcript, each with its own rate.

The texts are aligned as for an error rate, after the normalizer of their language, which removes the formatting. The
places of the aligned tokens in the texts as written then say which marks, capitals and digits belong together:

- *punctuation*: the marks between two tokens that both texts share are compared as a sequence. ``，`` and ``,``
  are one mark, and so are ``。`` and the full stop, and in Japanese ``、`` and the comma. Signs inside a word or
  number (``10:35``, ``e-mail``, ``U.S.``) and full stops behind titles (``Dr.``) are no marks.
- *capitals*: words with capital letters. A word is right if the word at its place has capitals in the same way: at
  its beginning, in all letters, or otherwise.
- *digits*: numbers in digits (``1,204``, ``10:35``). A number is right if there are digits at its place. ``three``
  for ``3`` is a deletion, and ``3`` for ``three`` an insertion.

With c right ones, s, d and i substituted, missing and added ones: error rate (s + d + i) / (c + s + d), precision
c / (c + s + i), recall c / (c + s + d), F1 2c / (2c + 2s + d + i).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from rapidfuzz.distance import Levenshtein

from speechlab.metrics._alignment.alignment import Alignment
from speechlab.metrics._alignment.pairs import locate_tokens
from speechlab.metrics._alignment.units import Preparation, build_preparation, choose_unit
from speechlab.metrics._columns import (
    COUNTS,
    PRECISION_RECALL,
    RATE,
    build_table,
    compute_precision_recall_f1,
)
from speechlab.metrics._rates.score import group_by_language
from speechlab.metrics._statistics.bootstrap import Bootstrap

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.metrics._inputs import Groups

_Span: TypeAlias = tuple[int, int]
_Tally: TypeAlias = tuple[int, int, int, int]  # hits, substitutions, deletions and insertions
_TYPES = {
    "language": "string",
    "kind": "string",
    **dict.fromkeys(("utterances", "in_reference", "in_hypothesis"), "Int64"),
    **dict.fromkeys(COUNTS, "Int64"),
    **RATE,
    **PRECISION_RECALL,
    "signature": "string",
}
KINDS = ("punctuation", "capitals", "digits")
_MARK = re.compile(r"\.{3}|[.,;:?!…–—\"“”„«»()\[\]、。，．！？；：「」『』《》（）]")
_FOLDED = {**dict(zip("，．！？；：（）“”„。", ',.!?;:()""".', strict=True)), "...": "…"}
# Full stops of abbreviations: U.S., p.m., Dr.
_ABBREVIATION = re.compile(r"\b(?:(?:[^\W\d_]\.){2,}|(?:mrs?|ms|dr|st|prof|jr|sr|vs)\.(?=\s))", re.IGNORECASE)
# Of scripts with capitals.
_LETTERS = r"[A-Za-z\u00aa-\u024f\u0370-\u052f\u1e00-\u1fff\uff21-\uff3a\uff41-\uff5a]+"
_WORD = re.compile(rf"{_LETTERS}(?:['’-]{_LETTERS})*")
_NUMBER = re.compile(r"\d+(?:[.,:/’'-]?\d+)*")


def formatting_rates(
    references: pd.DataFrame | Iterable[str | None],
    hypotheses: Iterable[str | None] | None = None,
    *,
    reference: str = "text",
    hypothesis: str = "hypothesis",
    language: str = "language",
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
    groups: Groups = None,
) -> pd.DataFrame:
    """Rates of punctuation, capitals and digits, on the alignment of the words or characters.

    The texts are compared as they are written, so references need the formatting that the hypotheses should have. A
    missing word takes its capitals, digits and marks with it.

    Args:
        references: A table with one row for each utterance; or a list or Series of references.
        hypotheses: Hypotheses, one for each reference; None for a table.
        reference: Column of references.
        hypothesis: Column of hypotheses.
        language: Column of languages; or, if there is no such column, the language of all rows.
        level: Confidence level of the intervals.
        draws: Bootstrap draws of each interval.
        seed: The same seed gives the same table.
        groups: Column of blocks, such as ``"speaker"``, that are drawn as wholes, or a name for each row.

    Returns:
        For each language three rows, of ``kind`` ``"punctuation"``, ``"capitals"`` and ``"digits"``: ``language``,
        ``utterances`` (rows with both texts), ``in_reference`` and ``in_hypothesis`` (marks, words with capitals,
        numbers in digits), ``hits``, ``substitutions``, ``deletions``, ``insertions``, ``error_rate`` (all errors
        over ``in_reference``) with ``error_rate_low`` and ``error_rate_high``, ``precision``, ``recall``, ``f1`` (all
        fractions) and ``signature``. Fractions whose divisor is 0 are missing.

    Raises:
        InvalidRequestError: A column is missing, or a language does not exist.

    Example:
        >>> table = formatting_rates(
        ...     ["Well, Anna left at 9:15."], ["well Anna left at nine fifteen."], language="en"
        ... )
        >>> table[["kind", "hits", "deletions", "f1"]].round(2).values.tolist()
        [['punctuation', 1, 1, 0.67], ['capitals', 1, 1, 0.67], ['digits', 0, 1, 0.0]]
    """
    frame, texts = group_by_language(references, hypotheses, reference, hypothesis, language)
    table, bootstrap = Bootstrap(level, draws, seed, groups).add_blocks(frame, "the table")
    rows: list[dict[str, Any]] = []
    for code, found_in in texts.items():
        preparation = build_preparation(choose_unit(code), code, "auto")
        tallies_of = [
            _tally_formatting(reference, hypothesis, preparation) for _, reference, hypothesis in found_in
        ]
        within = bootstrap.restrict_to(table.iloc[[number for number, *_ in found_in]])
        how = {"utterances": len(tallies_of), "signature": preparation.build_signature()}
        for kind in KINDS:
            counts = np.array([tallies[kind] for tallies in tallies_of], dtype=np.int64).reshape(-1, 4)
            figures = within.compute_figures_of_counts(counts)
            in_hypothesis = figures["reference_length"] - figures["deletions"] + figures["insertions"]
            sizes = {"in_reference": figures["reference_length"], "in_hypothesis": in_hypothesis}
            shares = compute_precision_recall_f1(figures["hits"], *sizes.values())
            rows.append({"language": code, "kind": kind, **how, **figures, **sizes, **shares})
    return build_table(rows, _TYPES)


def _tally_formatting(reference: str, hypothesis: str, way: Preparation) -> dict[str, _Tally]:
    alignment = Alignment(way.tokenize(reference), way.tokenize(hypothesis), way.separator)
    reference_places, hypothesis_places = locate_tokens(reference, way), locate_tokens(hypothesis, way)
    pairs: list[tuple[_Span, _Span]] = []
    shared: list[tuple[int, int]] = []
    for edit in alignment:
        if edit.reference is not None and edit.hypothesis is not None:
            reference_place = reference_places[edit.reference_index]
            hypothesis_place = hypothesis_places[edit.hypothesis_index]
            pairs.append((reference_place, hypothesis_place))
            if edit.operation == "equal":
                shared.append((reference_place[0], hypothesis_place[0]))
    tallies = {"punctuation": _tally_punctuation((reference, hypothesis), shared, way.language)}
    for kind, find in (("capitals", _find_capitals), ("digits", _find_digits)):
        reference_marks, hypothesis_marks = (
            {
                span: form
                for span, form in find(text).items()
                if any(_has_overlap(span, token) for token in tokens)
            }
            for text, tokens in ((reference, reference_places), (hypothesis, hypothesis_places))
        )
        tallies[kind] = _tally_word_forms(reference_marks, hypothesis_marks, pairs)
    return tallies


def _tally_punctuation(texts: tuple[str, str], shared: list[tuple[int, int]], language: str | None) -> _Tally:
    """Return the marks of both texts, compared between each two of the shared tokens, whose starts are given."""
    gaps: list[dict[int, str]] = [{}, {}]
    for side, text in enumerate(texts):
        starts = [pair[side] for pair in shared]
        for place, mark in _find_punctuation(text, language):
            gap = bisect_right(starts, place)
            gaps[side][gap] = gaps[side].get(gap, "") + mark
    sums = (0, 0, 0, 0)
    for gap in gaps[0].keys() | gaps[1].keys():
        reference_mark, hypothesis_mark = (side.get(gap, "") for side in gaps)
        tags = [step.tag for step in Levenshtein.editops(reference_mark, hypothesis_mark)]
        changed, dropped, added = (tags.count(tag) for tag in ("replace", "delete", "insert"))
        hits = len(reference_mark) - changed - dropped
        sums = (sums[0] + hits, sums[1] + changed, sums[2] + dropped, sums[3] + added)
    return sums


def _find_punctuation(text: str, language: str | None) -> list[tuple[int, str]]:
    inside = {place for match in _ABBREVIATION.finditer(text) for place in range(*match.span())}
    marks = []
    for match in _MARK.finditer(text):
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        joins = _is_joinable_character(before) and _is_joinable_character(after) and match[0] in ".,:;–，．："
        if not joins and match.start() not in inside:
            mark = _FOLDED.get(match[0], match[0])
            marks.append((match.start(), "," if mark == "、" and language == "ja" else mark))
    return marks


def _is_joinable_character(character: str) -> bool:
    """Return whether a sign between two such characters is part of a word or number."""
    return character.isdecimal() or (character.isalpha() and character < "\u2e80")


def _find_capitals(text: str) -> dict[_Span, str]:
    forms = {}
    for match in _WORD.finditer(text):
        word = match[0]
        if word != word.lower():
            all_capitals = word == word.upper() and sum(map(str.isalpha, word)) > 1
            first = word[0] != word[0].lower() and word[1:] == word[1:].lower()
            forms[match.span()] = "all" if all_capitals else "first" if first else "mixed"
    return forms


def _find_digits(text: str) -> dict[_Span, str]:
    return {match.span(): "digits" for match in _NUMBER.finditer(text)}


def _tally_word_forms(
    said: dict[_Span, str], recognized: dict[_Span, str], pairs: list[tuple[_Span, _Span]]
) -> _Tally:
    """Words of both texts at the same places, which a pair of aligned tokens shares, by their way of writing."""
    reference_left, hypothesis_left = dict(said), dict(recognized)
    hits = substitutions = 0
    for our_span, their_span in pairs:
        reference_span = next((span for span in reference_left if _has_overlap(span, our_span)), None)
        hypothesis_span = next((span for span in hypothesis_left if _has_overlap(span, their_span)), None)
        if reference_span is not None and hypothesis_span is not None:
            equal_values = reference_left.pop(reference_span) == hypothesis_left.pop(hypothesis_span)
            hits, substitutions = hits + equal_values, substitutions + (not equal_values)
    return hits, substitutions, len(reference_left), len(hypothesis_left)


def _has_overlap(one: _Span, other: _Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
