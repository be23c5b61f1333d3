"""Scored tables, made from a table, two lists or an error rate; and their signatures.

A signature is the computation of a figure in one line, as ``key:value`` pairs separated by bars. Figures of different
computations are never added up or compared; the error names the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from speechlab._arguments import convert_table, is_dask_frame, is_pandas_frame, require_columns
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.alignment import Alignment
from speechlab.metrics._alignment.units import build_preparation
from speechlab.metrics._columns import COUNTS
from speechlab.metrics._rates.error_rate import ErrorRate
from speechlab.metrics._rates.score import score

# A result of :func:`score` or :func:`error_rate`, a table without scores, or references.
Scorable: TypeAlias = "pd.DataFrame | ErrorRate | Iterable[str | None]"

_SCORE_COLUMNS = (
    "unit",
    "signature",
    "errors",
    "reference_length",
    "reference_normalized",
    "hypothesis_normalized",
)
# Arguments of :func:`score` except the texts.
_SCORE_ARGUMENTS = ("reference", "hypothesis", "language", "unit", "normalize", "variants", "merge_compounds")


def to_scored_table(
    scored: Scorable, hypotheses: Iterable[str | None] | None, how: dict[str, Any], argument: str = "scored"
) -> pd.DataFrame:
    """Return a scored table."""
    unknown = [name for name in how if name not in _SCORE_ARGUMENTS]
    if unknown:
        message = (
            f"there is no argument {unknown[0]!r} here or in score, which takes {', '.join(_SCORE_ARGUMENTS)}; check "
            "its spelling, such as groups for blocks, or by for columns to group by"
        )
        raise TypeError(message)
    if isinstance(scored, ErrorRate):
        return _build_utterance_table(scored)
    given: Any = convert_table(scored)
    table: Any = getattr(given, "_meta", None) if is_dask_frame(given) else given
    if is_pandas_frame(table) and hypotheses is None and not how:
        hint = "Pass what speechlab.metrics.score returned, or say how to score, as in language='en'"
        require_columns(table, *_SCORE_COLUMNS, *COUNTS, argument=argument, hint=hint)
        return given  # type: ignore[no-any-return]  # a table, also of Dask
    if hypotheses is None and not is_pandas_frame(table):
        message = (
            f"{argument} is a {type(scored).__name__}, not a table or error rate; give score(references, hypotheses, "
            "language=...), or a table with both columns"
        )
        raise InvalidRequestError(message, parameter=argument)
    return score(given, hypotheses, **how)


def _build_utterance_table(rate: ErrorRate) -> pd.DataFrame:
    counts = rate.counts_by_utterance
    columns = {
        "unit": pd.Categorical([rate.unit] * rate.utterances),
        "signature": pd.Categorical([rate.signature] * rate.utterances),
        "reference_normalized": pd.array(
            [_join_tokens(tokens) for tokens in rate.references], dtype="string"
        ),
        "hypothesis_normalized": pd.array(
            [_join_tokens(tokens) for tokens in rate.hypotheses], dtype="string"
        ),
        "error_rate": rate.rates_by_utterance,
        "errors": rate.errors_by_utterance,
        "reference_length": rate.lengths_by_utterance,
    } | {name: counts[:, place] for place, name in enumerate(COUNTS)}
    rows: Any = rate.rows
    if not is_pandas_frame(rows):
        return pd.DataFrame(columns, index=rows)
    own_columns = rows[[name for name in rows.columns if name not in columns]]
    return pd.concat([own_columns, pd.DataFrame(columns, index=rows.index)], axis=1)


def _join_tokens(tokens: object) -> str:
    return tokens if isinstance(tokens, str) else " ".join(tokens)  # type: ignore[arg-type]  # not a text: a list of tokens


class ScoredRow(NamedTuple):
    """A row with scores."""

    unit: str  # the unit of counting
    signature: str  # signature of the scores
    reference: str  # the compared reference
    hypothesis: str  # the compared hypothesis


def list_scored_rows(scored: pd.DataFrame) -> Iterator[ScoredRow]:
    """Return the rows of a scored table that have scores."""
    scored_rows = scored[scored["errors"].notna()]
    columns = scored_rows[["unit", "signature", "reference_normalized", "hypothesis_normalized"]]
    return (ScoredRow(*map(str, row)) for row in columns.itertuples(index=False))


def align_row(row: ScoredRow) -> Alignment:
    """Return the alignment of a row, from its compared texts."""
    preparation = build_preparation(row.unit, None, None)
    parse_signature(row.signature)
    return Alignment(
        preparation.tokenize_normalized(row.reference),
        preparation.tokenize_normalized(row.hypothesis),
        preparation.separator,
    )


_REQUIRED_KEYS = ("unit", "lang", "norm")
_WORDS = {"norm": "normalizer", "lang": "language"}


def parse_signature(signature: str) -> dict[str, str]:
    """Return the parts of a signature by their keys."""
    fields = dict(field.split(":", 1) for field in signature.split("|") if ":" in field)
    absent = [key for key in _REQUIRED_KEYS if not fields.get(key)]
    if absent:
        message = (
            f"the signature {signature!r:.80} does not say {', '.join(map(repr, absent))}, as in "
            "'unit:word|lang:en|norm:none'; score the texts again"
        )
        raise InvalidRequestError(message, parameter="signature")
    return fields


def join_signatures(signatures: Iterable[str], what: str = "these rows") -> str:
    """Return one signature for the sum of several figures, with all their languages and the values of each."""
    unique = sorted(set(signatures))
    if len(unique) < 2:
        return unique[0] if unique else ""
    by_language: dict[str, str] = {}
    for signature in unique:
        language = parse_signature(signature).get("lang", "")
        first = by_language.setdefault(language, signature)
        if first != signature:
            message = (
                f"{what} were scored in different ways: {describe_signature_difference(first, signature)}; score "
                "them alike, or keep them apart, as in by=['signature']"
            )
            raise InvalidRequestError(message, parameter="signature")
    each = [parse_signature(signature) for signature in unique]
    keys = dict.fromkeys(key for fields in each for key in fields)
    values = {key: dict.fromkeys(fields[key] for fields in each if key in fields) for key in keys}
    return "|".join(f"{key}:{'+'.join(texts)}" for key, texts in values.items())


def join_table_signatures(frame: pd.DataFrame, what: str = "these rows") -> str:
    """Return one signature for the rows of a table that have one."""
    return join_signatures(frame["signature"].dropna().unique().tolist(), what)


def describe_signature_difference(one: str, other: str) -> str:
    """Return the differences between two signatures."""
    first_parts, second_parts = parse_signature(one), parse_signature(other)
    return ", ".join(
        f"{_WORDS.get(key, key)} {first_parts.get(key, 'none')} and {second_parts.get(key, 'none')}"
        for key in dict.fromkeys([*first_parts, *second_parts])
        if first_parts.get(key) != second_parts.get(key)
    )
