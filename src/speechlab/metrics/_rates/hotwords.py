"""Hotwords: recall and precision of given words and phrases, and the error rates on them and off them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import build_preparation
from speechlab.metrics._columns import COUNTS, RATE, build_table, compute_precision_recall_f1
from speechlab.metrics._inputs import Groups, to_texts
from speechlab.metrics._rates.tables import (
    Scorable,
    align_row,
    join_table_signatures,
    list_scored_rows,
    parse_signature,
    to_scored_table,
)
from speechlab.metrics._statistics.bootstrap import Bootstrap
from speechlab.text import normalizer

_TYPES = {
    "hotword": "string",
    **dict.fromkeys(("in_reference", "in_hypothesis", "hits"), "Int64"),
    **dict.fromkeys(("recall", "precision", "f1"), "Float64"),
    "signature": "string",
}
_RATE_TYPES = {
    "words": "string",
    "unit": "string",
    "utterances": "Int64",
    **RATE,
    **dict.fromkeys(("errors", *COUNTS, "reference_length"), "Int64"),
    "signature": "string",
}
# Columns that :func:`hotword_counts` returns.
HOTWORD_COLUMNS = ("hotwords_said", "hotwords_hit", "hotwords_added", "unbiased_errors", "unbiased_length")
_OPERATIONS = {"equal": 0, "substitute": 1, "delete": 2, "insert": 3}


def hotword_scores(
    scored: Scorable,
    hypotheses: Iterable[str | None] | None = None,
    *,
    hotwords: Iterable[str] | Mapping[str, Iterable[str]],
    together: bool = False,
    **how: Any,
) -> pd.DataFrame:
    """Recall, precision and F1 of given words and phrases: names, products, glossary terms.

    An occurrence in a hypothesis is a hit if the reference of the same row has a matching occurrence at any place. A
    word inside a longer phrase counts too: ``"New York"`` has a ``"York"``.

    Args:
        scored: Result of :func:`speechlab.metrics.score` or :func:`speechlab.metrics.error_rate`; or a table or
            references without scores.
        hypotheses: Hypotheses, if the first argument has references.
        hotwords: The words; or for each word its aliases, which count as the word itself, such as
            ``{"GitHub": ["Git Hub", "ギットハブ"]}``. They are normalized like the texts.
        together: One row for all words together, without ``hotword``, instead of one for each.
        **how: Arguments of :func:`score` for texts without scores, such as ``language="en"``.

    Returns:
        One row for each word, in the order given: ``hotword``, ``in_reference`` and ``in_hypothesis`` (numbers of
        occurrences), ``hits``, ``recall`` (hits over occurrences in references), ``precision`` (hits over occurrences
        in hypotheses), ``f1`` (their harmonic mean) and ``signature``. The three fractions are missing if their
        divisor is 0.

    Raises:
        InvalidRequestError: The table has no scores, its rows were scored in different ways, a word is empty before
            or after normalization, or two words are equal after normalization.

    Example:
        >>> table = hotword_scores(
        ...     ["ask Ada", "Ada is here"], ["ask Aida", "Ada is here"], hotwords=["Ada"], language="en"
        ... )
        >>> table[["recall", "precision"]].values.tolist()
        [[0.5, 1.0]]
    """
    table = to_scored_table(scored, hypotheses, how)
    aliases = _resolve_aliases(hotwords)
    signature = join_table_signatures(table[table["errors"].notna()])
    in_reference, in_hypothesis, hits = Counter[str](), Counter[str](), Counter[str]()
    for said_words, heard_words in _count_occurrences_by_row(table, aliases):
        in_reference.update(said_words)
        in_hypothesis.update(heard_words)
        hits.update(said_words & heard_words)
    counts = [(word, hits[word], in_reference[word], in_hypothesis[word]) for word in aliases]
    if together:
        counts = [("", hits.total(), in_reference.total(), in_hypothesis.total())]
    rows = [
        {"hotword": word, "in_reference": n, "in_hypothesis": m, "hits": matched, "signature": signature}
        | compute_precision_recall_f1(matched, n, m)
        for word, matched, n, m in counts
    ]
    return build_table(
        rows, {name: kind for name, kind in _TYPES.items() if not together or name != "hotword"}
    )


def _count_occurrences_by_row(
    table: pd.DataFrame, aliases: dict[str, list[str]]
) -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Yield how often each word occurs in the reference and in the hypothesis of each scored row."""
    find_by = cache(partial(build_hotword_finder, aliases))
    for row in list_scored_rows(table):
        find = find_by(row.unit, parse_signature(row.signature)["norm"])
        yield Counter(find(row.reference)), Counter(find(row.hypothesis))


def hotword_error_rates(
    scored: Scorable,
    hypotheses: Iterable[str | None] | None = None,
    *,
    hotwords: Iterable[str] | Mapping[str, Iterable[str]],
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
    groups: Groups = None,
    **how: Any,
) -> pd.DataFrame:
    """Biased and unbiased error rates: of the tokens that belong to hotwords, and of all others.

    A reference token belongs to a hotword if an occurrence of the hotword covers it. An insertion belongs to a
    hotword if an occurrence in the hypothesis covers it (Le et al., Contextualized streaming end-to-end speech
    recognition, 2021).

    Args:
        scored: As for :func:`hotword_scores`.
        hypotheses: As for :func:`hotword_scores`.
        hotwords: As for :func:`hotword_scores`.
        level: Confidence level of the intervals.
        draws: Bootstrap draws of each interval.
        seed: The same seed gives the same table.
        groups: Column of blocks, such as ``"speaker"``, that are drawn as wholes, or a name for each row.
        **how: Arguments of :func:`score` for texts without scores, such as ``language="en"``.

    Returns:
        For each unit two rows, with ``words`` ``"biased"`` and ``"unbiased"``, ``unit``, ``utterances``,
        ``error_rate`` with ``error_rate_low`` and ``error_rate_high``, ``errors``, ``hits``, ``substitutions``,
        ``deletions``, ``insertions``, ``reference_length`` and ``signature``.

    Raises:
        InvalidRequestError: As for :func:`hotword_scores`; or a unit is neither words nor characters.

    Example:
        >>> table = hotword_error_rates(["ask Ada now"], ["ask Aida now"], hotwords=["Ada"], language="en")
        >>> table[["words", "error_rate"]].values.tolist()
        [['biased', 1.0], ['unbiased', 0.0]]
    """
    bootstrap = Bootstrap(level, draws, seed, groups)
    table, bootstrap = bootstrap.add_blocks(to_scored_table(scored, hypotheses, how), "scored")
    aliases = _resolve_aliases(hotwords)
    rows = []
    scored_rows = table[table["errors"].notna()]
    for unit, rows_of_unit in scored_rows.groupby("unit", observed=True):
        signature = join_table_signatures(rows_of_unit, f"rows by {unit}")
        if unit not in {"word", "char"}:
            message = (
                f"hotwords are found in words or characters, not in the unit {unit!r}; score with unit='char'"
            )
            raise InvalidRequestError(message, parameter="hotwords")
        counts = _count_errors_by_row(rows_of_unit, aliases)
        how_counted = {"unit": unit, "utterances": len(rows_of_unit), "signature": signature}
        for place, words in enumerate(("biased", "unbiased")):
            figures = bootstrap.restrict_to(rows_of_unit).compute_figures_of_counts(counts[:, place])
            rows.append({"words": words, **how_counted, **figures})
    return build_table(rows, _RATE_TYPES)


def hotword_counts(
    scored: Scorable,
    hypotheses: Iterable[str | None] | None = None,
    *,
    hotwords: Iterable[str] | Mapping[str, Iterable[str]],
    **how: Any,
) -> pd.DataFrame:
    """Count hotwords row by row: in the reference, hit and inserted, and the errors outside of hotwords.

    Args:
        scored: As for :func:`hotword_scores`.
        hypotheses: As for :func:`hotword_scores`.
        hotwords: As for :func:`hotword_scores`.
        **how: Arguments of :func:`score` for texts without scores, such as ``language="en"``.

    Returns:
        One row for each given row, with its index: ``hotwords_said`` (occurrences in the reference), ``hotwords_hit``
        (the number of these with a match in the hypothesis), ``hotwords_added`` (occurrences in the hypothesis
        without a match in the reference), ``unbiased_errors`` and ``unbiased_length`` (errors and reference tokens
        outside of hotwords). These are missing for rows without scores and for units other than words and characters.

    Raises:
        InvalidRequestError: The table has no scores, a word is empty before or after normalization, or two words are
            equal after normalization.

    Example:
        >>> hotword_counts(["ask Ada now"], ["ask Ada Ada"], hotwords=["Ada"], language="en").values.tolist()
        [[1, 1, 1, 1, 2]]
    """
    table = to_scored_table(scored, hypotheses, how)
    aliases = _resolve_aliases(hotwords)
    countable = (table["errors"].notna() & table["unit"].isin(["word", "char"])).to_numpy(dtype=bool)
    countable_rows = table[countable]
    rows = []
    outside = _count_errors_by_row(countable_rows, aliases)[:, 1]
    for (said_words, heard_words), counts in zip(
        _count_occurrences_by_row(countable_rows, aliases), outside, strict=True
    ):
        hit = (said_words & heard_words).total()
        sums = counts[1:].sum(), counts[:3].sum()
        rows.append((said_words.total(), hit, heard_words.total() - hit, *sums))
    counted = pd.DataFrame(rows, np.flatnonzero(countable), HOTWORD_COLUMNS, dtype="Int64")
    return counted.reindex(range(len(table))).set_axis(table.index)


def _count_errors_by_row(part: pd.DataFrame, aliases: dict[str, list[str]]) -> Any:
    """Hits, substitutions, deletions and insertions of each row, in hotwords and out of them."""
    counts = np.zeros((len(part), 2, 4), dtype=np.int64)

    @cache
    def list_forms(unit: str, rules: str) -> list[Sequence[str]]:
        return [form.split() if unit == "word" else form for form in _map_forms_to_words(aliases, rules)]

    for number, row in enumerate(list_scored_rows(part)):
        words = list_forms(row.unit, parse_signature(row.signature)["norm"])
        alignment = align_row(row)
        in_reference, in_hypothesis = (
            _find_covered_positions(tokens, words) for tokens in (alignment.reference, alignment.hypothesis)
        )
        for edit in alignment:
            inside = (
                edit.hypothesis_index in in_hypothesis
                if edit.operation == "insert"
                else edit.reference_index in in_reference
            )
            counts[number, 0 if inside else 1, _OPERATIONS[edit.operation]] += 1
    return counts


def _find_covered_positions(tokens: Sequence[str], forms: list[Sequence[str]]) -> set[int]:
    covered: set[int] = set()
    text = tokens if isinstance(tokens, str) else list(tokens)
    for form in forms:
        for start in range(len(text) - len(form) + 1):
            if text[start] == form[0] and text[start : start + len(form)] == form:
                covered.update(range(start, start + len(form)))
    return covered


def _resolve_aliases(hotwords: Iterable[str] | Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    words = resolve_term_texts(hotwords, "hotwords", "aliases", "give a list of words")
    if isinstance(hotwords, Mapping):
        return {word: [word, *variants] for word, variants in words.items()}
    return words


def resolve_term_texts(terms: object, argument: str, of: str, remedy: str) -> dict[str, list[str]]:
    """Return the texts that count as each term: those of a mapping, or the term itself."""
    if isinstance(terms, str):
        message = f"{argument} is one text, {terms!r}; {remedy}"
        raise InvalidRequestError(message, parameter=argument)
    if not isinstance(terms, Mapping):
        return {term: [term] for term in to_texts(terms, argument, "give texts only")}
    names = to_texts(list(terms), argument, "give texts only")
    return {
        name: to_texts(texts, f"{of} of {name!r}", "give texts only")
        for name, texts in zip(names, terms.values(), strict=True)
    }


def _map_forms_to_words(
    aliases: dict[str, list[str]], rules: str, what: str = "hotword"
) -> dict[str, list[str]]:
    """Return the spellings of all words after normalization, each with the words that it belongs to."""
    # A custom function is not available here, so the words are used as they are.
    normalize: Any = str if rules.startswith("custom:") else normalizer(rules.partition("#")[0])
    words: dict[str, list[str]] = {}
    for word, spellings in aliases.items():
        for spelling in spellings:
            form = " ".join(normalize(spelling).split())
            if not form:
                message = (
                    f"nothing is left of the {what} {spelling!r} after normalization ({rules}); leave it out"
                )
                raise InvalidRequestError(message, parameter="hotwords")
            owners = words.setdefault(form, [])
            if word not in owners:
                owners.append(word)
            if len(owners) > 1 and what == "hotword":
                message = (
                    f"the hotwords {owners[0]!r} and {word!r} are both {form!r} after normalization ({rules}); leave "
                    "one of them out"
                )
                raise InvalidRequestError(message, parameter="hotwords")
    return words


def build_hotword_finder(
    aliases: dict[str, list[str]], unit: str, rules: str, *, what: str = "hotword"
) -> Callable[[str], list[str]]:
    """Return a function from a normalized text to the hotwords in it, each as often as it occurs."""
    spellings: dict[str, list[str]] = {}
    for form, owners in _map_forms_to_words(aliases, rules, what).items():
        for word in owners:
            spellings.setdefault(word, []).append(form)
    spaced = build_preparation(unit, None, None).unit == "word"
    patterns = {}
    for word, forms in spellings.items():
        longest_first = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
        patterns[word] = re.compile(rf"(?<!\S)(?:{longest_first})(?!\S)" if spaced else longest_first)
    # Most texts have none of the words: one search for all of them is enough for these texts.
    every = re.compile("|".join(re.escape(form) for forms in spellings.values() for form in forms) or "(?!)")

    def find_hotwords(text: str) -> list[str]:
        text = " ".join(text.split())
        if not every.search(text):
            return []
        return [word for word, pattern in patterns.items() for _ in pattern.finditer(text)]

    return find_hotwords
