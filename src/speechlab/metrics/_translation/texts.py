"""Translations of one system or several, with their references and sources, from a table or from lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from speechlab._arguments import convert_table, has_column, is_missing, is_pandas_frame, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._inputs import get_shared_index, refuse_hypotheses_with_table, to_texts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Translations:
    """Translations with an entry for each segment."""

    references: list[list[str]]  # all references of each segment
    systems: dict[str, list[str]]  # the translations of each system
    sources: list[str] | None  # source texts, if they are known
    rows: (
        pd.DataFrame | pd.Index[Any] | None
    )  # the rows of the table with all texts, or the index of a Series

    @property
    def first_references(self) -> list[str]:
        """The first reference of each segment."""
        return [texts[0] for texts in self.references]


def collect_system_translations(
    references: Any, hypotheses: object, sources: object, reference: str, hypothesis: str, source: str
) -> Translations:
    """Return the translations of one system, from a table or from lists."""
    references = convert_table(references)
    if is_pandas_frame(references):
        refuse_hypotheses_with_table(hypotheses)
        hypotheses = hypothesis
    elif hypotheses is None:
        hypotheses = ()
    return collect_translations(references, {"hypotheses": hypotheses}, sources, reference, source)


def collect_translations(
    references: Any, systems: Mapping[str, Any], sources: Any, reference: str, source: str
) -> Translations:
    """The translations of the systems, by arguments or columns; rows of a table that lack one are left out."""
    references = convert_table(references)
    rows: Any = None
    if is_pandas_frame(references):
        columns = list(systems.values())
        hint = "Name the right one, as in reference='text'"
        references = require_columns(references, reference, *columns, argument="references", hint=hint)
        rows = references.dropna(subset=[reference, *columns])
        if sources is None and has_column(rows, source, "source"):
            # A missing source has no terms.
            sources = ["" if is_missing(text) else text for text in rows[source]]
        references = rows[reference].tolist()
        systems = {name: rows[column].tolist() for name, column in zip(systems, columns, strict=True)}
    else:
        rows = get_shared_index(references, **systems, sources=sources)
    texts = {argument: to_texts(values, argument) for argument, values in systems.items()}
    if isinstance(references, str | Mapping) or not isinstance(references, Iterable):
        references = to_texts(references, "references")
    reference_texts = []
    for position, entry in enumerate(references):
        alternatives = to_texts(entry, f"references[{position}]")
        if not alternatives:
            message = f"references[{position}] is empty; give at least one reference for each translation"
            raise InvalidRequestError(message, parameter="references")
        reference_texts.append(alternatives)
    if sources is not None:
        sources = to_texts(sources, "sources", "give a source for each segment, '' for a missing one")
    for argument, values in (texts if sources is None else {**texts, "sources": sources}).items():
        if len(values) != len(reference_texts):
            message = (
                f"{len(reference_texts)} references do not fit {len(values)} texts of {argument}; give one "
                "text for each reference"
            )
            raise InvalidRequestError(message, parameter=argument.partition("[")[0])
    return Translations(reference_texts, texts, sources, rows)


def check_not_empty(texts: Translations) -> None:
    """Refuse texts without a segment."""
    if not texts.references:
        message = "there are no references, which do not fit a score; give one for each translation"
        raise InvalidRequestError(message, parameter="references")
