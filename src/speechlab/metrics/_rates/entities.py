"""Entities: whether the names, numbers and dates of the references were recognized, by class."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import is_missing, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.alignment import Alignment
from speechlab.metrics._alignment.units import Preparation, build_preparation, choose_unit
from speechlab.metrics._columns import PRECISION_RECALL, RATE, build_table, compute_precision_recall_f1
from speechlab.metrics._differences.compare import classify_differences, has_difference_classes
from speechlab.metrics._rates.score import group_by_language
from speechlab.metrics._rates.tables import join_signatures
from speechlab.metrics._statistics.bootstrap import Bootstrap

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from speechlab.metrics._inputs import Groups

_COUNTS = ("entities", "not_found", "hits", "misses", "insertions", "errors", "reference_length")
_TYPES = {
    "class": "string",
    **dict.fromkeys(_COUNTS, "Int64"),
    **RATE,
    **PRECISION_RECALL,
    "signature": "string",
}
_ALL = "all"


def entity_scores(
    references: pd.DataFrame | Iterable[str | None],
    hypotheses: Iterable[str | None] | None = None,
    *,
    entities: str | Sequence[Any] = "entities",
    reference: str = "text",
    hypothesis: str = "hypothesis",
    language: str = "language",
    tolerant: bool = True,
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
    groups: Groups = None,
) -> pd.DataFrame:
    """Error rate, recall and F1 of the entities of the references, by class.

    An entity is a hit if all its words (characters of Japanese and Chinese) are right in the alignment and none is
    added between them. In English, Japanese and Chinese another notation is right (``10.35 pm`` for ``10:35 p.m.``).

    Args:
        references: A table with one row for each utterance; or a list or Series of references.
        hypotheses: Hypotheses, one for each reference; None for a table.
        entities: Column of the entities; or a list with those of each row. The entities of a row are a list of dicts
            such as ``{"text": "Dr. Nguyen", "class": "name"}``, or such a list as JSON text; missing for none. The
            text is a part of the reference. Any class is allowed, such as name, number, date, address or product. Of
            two equal texts, the second is the second occurrence.
        reference: Column of references.
        hypothesis: Column of hypotheses.
        language: Column of languages; or, if there is no such column, the language of all rows.
        tolerant: False to count another notation as an error.
        level: Confidence level of the intervals.
        draws: Bootstrap draws of each interval.
        seed: The same seed gives the same table.
        groups: Column of blocks, such as ``"speaker"``, that are drawn as wholes, or a name for each row.

    Returns:
        One row for each ``class`` by its name, and one for ``"all"``: ``entities``, ``not_found`` (texts that are no
        part of their reference, and count in nothing else), ``hits``, ``misses``, ``insertions`` (entities of the
        table, of this class, that a hypothesis has more often than its reference), ``errors`` and
        ``reference_length`` (of the tokens of entities), ``error_rate`` (their ratio) with ``error_rate_low`` and
        ``error_rate_high``, ``recall`` (hits / (hits + misses)), ``precision`` (hits / (hits + insertions)), ``f1``
        (their harmonic mean) and ``signature``. Fractions whose divisor is 0 are missing. Rows without hypothesis or
        language are left out.

    Raises:
        InvalidRequestError: A column is missing, a language does not exist, or the entities have another form.

    Example:
        >>> table = entity_scores(
        ...     ["Dr. Nguyen comes at 10:35."],
        ...     ["Dr. Ryan comes at 10.35."],
        ...     entities=[[{"text": "Dr. Nguyen", "class": "name"}, {"text": "10:35", "class": "time"}]],
        ...     language="en",
        ... )
        >>> table[["class", "entities", "hits", "error_rate"]].values.tolist()
        [['name', 1, 0, 0.5], ['time', 1, 1, 0.0], ['all', 2, 1, 0.25]]
    """
    frame, texts = group_by_language(references, hypotheses, reference, hypothesis, language)
    if isinstance(entities, str):
        hint = "Name the column of entities, as in entities='entities'"
        frame = require_columns(frame, entities, argument="references", hint=hint)
    cells: Any = frame[entities].tolist() if isinstance(entities, str) else entities
    if not isinstance(cells, Sequence) or len(cells) != len(frame):
        message = (
            f"entities={entities!r:.60} is no list with an entry for each of {len(frame)} rows; give one"
        )
        raise InvalidRequestError(message, parameter="entities")
    entities_of = [_parse_entities(cell, row) for row, cell in enumerate(cells)]
    table, bootstrap = Bootstrap(level, draws, seed, groups).add_blocks(frame, "the table")
    counts: list[dict[str, NDArray[np.int64]]] = []
    signatures = []
    for code, rows in texts.items():
        preparation = build_preparation(choose_unit(code), code, "auto")
        forms: dict[str, set[tuple[str, ...]]] = {}
        for text, kind in (entity for number, *_ in rows for entity in entities_of[number]):
            forms.setdefault(kind, set()).add(tuple(preparation.tokenize(text)))
        counts += [
            _count_entities(entities_of[number], reference, hypothesis, preparation, forms, tolerant)
            for number, reference, hypothesis in rows
        ]
        signatures.append(preparation.build_signature())
    within = bootstrap.restrict_to(table.iloc[[number for rows in texts.values() for number, *_ in rows]])
    signature = join_signatures(signatures)
    class_rows = []
    for kind in [*sorted({kind for of_row in counts for kind in of_row if kind != _ALL}), _ALL]:
        of_kind = np.array([of_row.get(kind, [0] * 7) for of_row in counts], dtype=np.int64).reshape(-1, 7)
        sums = dict(zip(_COUNTS, map(int, of_kind.sum(axis=0)), strict=True))
        hits, misses, added = sums["hits"], sums["misses"], sums["insertions"]
        figures = within.compute_rate_figures(of_kind[:, 5], of_kind[:, 6]) | compute_precision_recall_f1(
            hits, hits + misses, hits + added
        )
        class_rows.append({"class": kind, **sums, **figures, "signature": signature})
    return build_table(class_rows, _TYPES)


def _parse_entities(cell: Any, row: int) -> list[tuple[str, str]]:
    """Return the texts and classes of the entities of a row."""
    form = 'give a list such as [{"text": "Anna", "class": "name"}], or None'
    if not isinstance(cell, list | tuple | np.ndarray):
        if is_missing(cell):
            return []
        try:
            cell = json.loads(cell)
        except (TypeError, ValueError):
            message = f"the entities of row {row} are {cell!r:.60}; {form}"
            raise InvalidRequestError(message, parameter="entities") from None
    entities_read = []
    for entity in cell if isinstance(cell, list | tuple | np.ndarray) else [cell]:
        text, kind = (
            (entity.get("text"), entity.get("class")) if isinstance(entity, Mapping) else (None, None)
        )
        if not (isinstance(text, str) and text and isinstance(kind, str) and kind not in {"", _ALL}):
            message = f"row {row} has the entity {entity!r:.60}; {form}"
            raise InvalidRequestError(message, parameter="entities")
        entities_read.append((text, kind))
    return entities_read


def _count_entities(
    entities: list[tuple[str, str]],
    said: str,
    recognized: str,
    way: Preparation,
    known: dict[str, set[tuple[str, ...]]],
    tolerant: bool,
) -> dict[str, NDArray[np.int64]]:
    """Return the counts of each class in one pair of texts, in the order of ``_COUNTS``."""
    if tolerant and has_difference_classes(way.language):
        recognized = classify_differences(said, recognized, str(way.language)).tolerant
    alignment = Alignment(way.tokenize(said), way.tokenize(recognized), way.separator)
    misplaced, before = Counter[int](), Counter[int]()
    at = 0
    for edit in alignment:
        if edit.operation == "insert":
            before[at] += 1  # inserted before this token
        else:
            misplaced[edit.reference_index] += edit.operation != "equal"
            at = edit.reference_index + 1
    tokens, found = tuple(alignment.reference), tuple(alignment.hypothesis)
    counts = {kind: np.zeros(len(_COUNTS), dtype=np.int64) for kind in (*known, _ALL)}
    counted_forms = Counter[tuple[str, ...]]()
    for text, kind in entities:
        form = tuple(way.tokenize(text))
        starts = _find_occurrences(form, tokens)
        row = (1, 1, 0, 0, 0, 0, 0)
        if counted_forms[form] < len(starts):
            start = starts[counted_forms[form]]
            inside = range(start, start + len(form))
            errors = sum(misplaced[place] for place in inside) + sum(before[place] for place in inside[1:])
            row = (1, 0, int(not errors), int(bool(errors)), 0, errors, len(form))
        counted_forms[form] += 1
        counts[kind] += row
    for kind, forms in known.items():
        for form in forms:
            more = len(_find_occurrences(form, found)) - len(_find_occurrences(form, tokens))
            counts[kind][4] += max(0, more)
    counts[_ALL] = sum(counts.values(), start=counts[_ALL])
    return counts


def _find_occurrences(form: tuple[str, ...], tokens: tuple[str, ...]) -> list[int]:
    size = len(form)
    return [start for start in range(len(tokens) - size + 1) if size and tokens[start : start + size] == form]
