"""Confusions: substituted, deleted and inserted tokens with their counts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from speechlab.metrics._rates.error_rate import ErrorRate
from speechlab.metrics._rates.tables import aligned, as_scored, rows_of
from speechlab.metrics._signatures import joined_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from speechlab.metrics._rates.tables import Scorable

_TYPES = {
    "unit": "string",
    "operation": "category",
    "reference": "string",
    "hypothesis": "string",
    "count": "Int64",
    "utterances": "Int64",
    "share": "Float64",
    "signature": "string",
}


def confusions(scored: Scorable, hypotheses: Iterable[str | None] | None = None, **how: Any) -> pd.DataFrame:
    """Count substitutions, deletions and insertions by their tokens.

    Args:
        scored: Result of :func:`speechlab.metrics.error_rate` or :func:`speechlab.metrics.score`; or a table or
            references without scores.
        hypotheses: Hypotheses, if the first argument has references.
        **how: Arguments of :func:`score` for texts without scores, such as ``language="en"``.

    Returns:
        One row for each kind of error, the most frequent first: ``unit``, ``operation`` (``"substitute"``,
        ``"delete"``, ``"insert"``), the tokens ``reference`` and ``hypothesis`` (missing on the side without a
        token), ``count``, ``utterances`` (number of utterances with it), ``share`` (fraction of all errors of that
        unit) and ``signature``.

    Raises:
        InvalidRequestError: The table has no scores, or its rows were scored in different ways.

    Example:
        >>> from speechlab.metrics import error_rate
        >>> table = confusions(error_rate(["a b c", "a b"], ["a x c", "a x"]))
        >>> table["operation"][0], table["reference"][0], table["hypothesis"][0], int(table["count"][0])
        ('substitute', 'b', 'x', 2)
    """
    import pandas as pd

    table = as_scored(scored, hypotheses, how)
    scored_rows = table[table["errors"].notna()]
    signatures = {
        unit: joined_of(rows_of_unit, f"rows by {unit}")
        for unit, rows_of_unit in scored_rows.groupby("unit", observed=True)
    }
    counts: Counter[tuple[str, str, str | None, str | None]] = Counter()
    utterances: Counter[tuple[str, str, str | None, str | None]] = Counter()
    alignments = scored.alignments if isinstance(scored, ErrorRate) else map(aligned, rows_of(scored_rows))
    for unit, alignment in zip(scored_rows["unit"], alignments, strict=True):
        pair_counts = Counter(
            (unit, edit.operation, edit.reference, edit.hypothesis)
            for edit in alignment
            if edit.operation != "equal"
        )
        counts.update(pair_counts)
        utterances.update(pair_counts.keys())
    totals: Counter[str] = Counter()
    for key, count in counts.items():
        totals[key[0]] += count
    rows = [
        (*key, count, utterances[key], count / totals[key[0]], signatures[key[0]])
        for key, count in counts.items()
    ]
    # Ties in the order of the tokens, so that the same errors give the same table.
    rows.sort(key=lambda row: (-row[4], row[0], row[1], row[2] or "", row[3] or ""))
    return pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES)
