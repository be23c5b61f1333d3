"""Counts of the glossary terms that translations kept and missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from speechlab._arguments import convert_table, has_column, is_pandas_frame
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import choose_unit
from speechlab.metrics._columns import build_table
from speechlab.metrics._rates.hotwords import build_hotword_finder, resolve_term_texts
from speechlab.metrics._translation.texts import Translations, collect_system_translations
from speechlab.text import language_code, normalizer

if TYPE_CHECKING:
    import pandas as pd

# Terms that must occur in the translation; or for each source term, its accepted translations.
Glossary: TypeAlias = Sequence[str] | Mapping[str, str | Sequence[str]]

_TYPES = {
    **dict.fromkeys(("term", "target"), "string"),
    **dict.fromkeys(("expected", "found", "missed"), "Int64"),
    "preserved": "Float64",
    "missed_in": "object",
}
_EAST_ASIAN = 0x2E80


def glossary_terms(
    references: Sequence[str] | pd.DataFrame | None,
    hypotheses: Sequence[str] | None = None,
    glossary: Glossary = (),
    *,
    sources: Sequence[str] | None = None,
    language: str | None = None,
    source_language: str | None = None,
    reference: str = "reference",
    hypothesis: str = "translation",
    source: str = "text",
) -> pd.DataFrame:
    """Count how often translations kept each term of a glossary.

    If the glossary has source terms and there are sources, a term is expected as often as it occurs in the source;
    otherwise, as often as it occurs in the reference. It is found as often as it occurs in the translation of the
    same segment, but not more often than expected. Terms are compared after normalization (case and width; for
    Japanese and Chinese also numbers), as whole words in languages that separate words. Inflected forms must be
    listed.

    Args:
        references: Reference translations; or a table, whose rows with a missing text are skipped. If the glossary
            has source terms and there are sources, references may be None, and a table needs no column ``reference``.
        hypotheses: Translations, one for each reference; None for a table.
        glossary: A list of terms of the target language; or for each source term, one or more accepted target terms,
            such as ``{"会議室": ["meeting room", "conference room"]}``.
        sources: Source texts, one for each translation.
        language: Code of the target language.
        source_language: Code of the source language.
        reference: Column of the references of a table.
        hypothesis: Column of the translations of a table.
        source: Column of the sources of a table; used if it exists.

    Returns:
        One row for each term, in the order given: ``term``, ``target`` (all accepted terms, separated by `` | ``),
        ``expected``, ``found``, ``missed`` (numbers of occurrences), ``preserved`` (found over expected, a fraction;
        missing if the term was never expected) and ``missed_in`` (numbers of the segments, from 0; labels of the
        index for a table).

    Raises:
        InvalidRequestError: Lists differ in length, a term is empty, or there are neither references nor sources.

    Example:
        >>> table = glossary_terms(
        ...     ["ask Ada", "the API is up"], ["ask Aida", "the API is up"], ["Ada", "API"]
        ... )
        >>> table["missed"].tolist()
        [1, 0]
    """
    by_source, references = isinstance(glossary, Mapping), convert_table(references)
    if is_pandas_frame(references):
        from_sources = by_source and (sources is not None or has_column(references, source, "source"))
        if from_sources and not has_column(references, reference, "reference") and reference == "reference":
            reference = hypothesis  # the expected terms come from the sources
    elif references is None:
        if sources is None or not by_source:
            message = (
                "there are no references; give them, or sources=[…] and a glossary from source terms to "
                "translations, as in {'会議室': ['meeting room']}"
            )
            raise InvalidRequestError(message, parameter="references")
        references = hypotheses
    texts = collect_system_translations(references, hypotheses, sources, reference, hypothesis, source)
    table = build_glossary_table(texts, glossary, language, source_language)
    if is_pandas_frame(texts.rows):
        labels = texts.rows.index.tolist()
        table["missed_in"] = [[labels[number] for number in numbers] for numbers in table["missed_in"]]
    return table


def build_glossary_table(
    texts: Translations, glossary: Glossary, language: str | None, source_language: str | None
) -> pd.DataFrame:
    """Return the table of :func:`glossary_terms`, of checked texts."""
    remedy = "give a list of terms, or source terms with their translations"
    targets = resolve_term_texts(glossary, "glossary", "translations", remedy)
    if source_language is not None:
        language_code(source_language)
    by_source = isinstance(glossary, Mapping) and texts.sources is not None
    originals = texts.sources if by_source and texts.sources is not None else texts.first_references
    (hypotheses,) = texts.systems.values()
    heard_terms = _build_term_finder(targets, language)
    said_terms = (
        _build_term_finder({term: [term] for term in targets}, source_language) if by_source else heard_terms
    )
    expected, hits = Counter[str](), Counter[str]()
    missed: dict[str, list[int]] = {term: [] for term in targets}
    for number, (original, hypothesis) in enumerate(zip(originals, hypotheses, strict=True)):
        in_source = Counter(said_terms(original))
        preserved = in_source & Counter(heard_terms(hypothesis))
        expected.update(in_source)
        hits.update(preserved)
        for term in in_source - preserved:
            missed[term].append(number)
    rows = [
        (
            term,
            " | ".join(spellings),
            expected[term],
            hits[term],
            expected[term] - hits[term],
            hits[term] / expected[term] if expected[term] else None,
            missed[term],
        )
        for term, spellings in targets.items()
    ]
    return build_table(rows, _TYPES)


def _build_term_finder(terms: dict[str, list[str]], language: str | None) -> Callable[[str], list[str]]:
    """Return a function from a text to the terms in it, each as often as it occurs."""
    code = None if language is None else language_code(language)
    # Not the English normalizer, which removes words in parentheses.
    rules = normalizer(code if code in {"ja", "zh"} else "basic")
    if code is None:
        characters = "".join(spelling for spellings in terms.values() for spelling in spellings)
        unit = "char" if any(ord(character) >= _EAST_ASIAN for character in characters) else "word"
    else:
        unit = choose_unit(code)
    find = build_hotword_finder(terms, unit, rules.id, what="glossary term")
    return lambda text: find(rules(text))
