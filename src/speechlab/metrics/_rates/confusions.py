"""Confusions: tokens taken for others, left out or made up, and how often."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from speechlab._arguments import require_columns
from speechlab.metrics._alignment.alignment import Alignment
from speechlab.metrics._alignment.units import prepare
from speechlab.metrics._rates.error_rate import ErrorRate

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

_TYPES = {
    "unit": "string",
    "operation": "category",
    "reference": "string",
    "hypothesis": "string",
    "count": "Int64",
    "utterances": "Int64",
    "share": "Float64",
}


def confusions(scored: ErrorRate | pd.DataFrame) -> pd.DataFrame:
    """Count which token was taken for which.

    Args:
        scored: What :func:`speechlab.metrics.error_rate` or :func:`speechlab.metrics.score` returned.

    Returns:
        One row for each kind of error, the most frequent first: ``unit``, ``operation`` (``"substitute"``,
        ``"delete"``, ``"insert"``), the tokens ``reference`` and ``hypothesis`` (missing on the side that has none),
        ``count``, ``utterances`` (in how many it occurs) and ``share`` (fraction of all errors of that unit).

    Raises:
        InvalidRequestError: The table was not scored.

    Example:
        >>> from speechlab.metrics import error_rate
        >>> table = confusions(error_rate(["a b c", "a b"], ["a x c", "a x"]))
        >>> table["operation"][0], table["reference"][0], table["hypothesis"][0], int(table["count"][0])
        ('substitute', 'b', 'x', 2)
    """
    import pandas as pd

    counts: Counter[tuple[str, str, str | None, str | None]] = Counter()
    utterances: Counter[tuple[str, str, str | None, str | None]] = Counter()
    for unit, alignment in _alignments(scored):
        found = Counter(
            (unit, edit.operation, edit.reference, edit.hypothesis)
            for edit in alignment
            if edit.operation != "equal"
        )
        counts.update(found)
        utterances.update(found.keys())
    totals: Counter[str] = Counter()
    for key, count in counts.items():
        totals[key[0]] += count
    rows = [(*key, count, utterances[key], count / totals[key[0]]) for key, count in counts.items()]
    # Ties in the order of the tokens, so that the same errors give the same table.
    rows.sort(key=lambda row: (-row[4], row[0], row[1], row[2] or "", row[3] or ""))
    return pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES)


def _alignments(scored: ErrorRate | pd.DataFrame) -> Iterable[tuple[str, Alignment]]:
    if isinstance(scored, ErrorRate):
        for alignment in scored.alignments:
            yield scored.unit, alignment
        return
    wanted = ["unit", "reference_normalized", "hypothesis_normalized"]
    hint = "Pass what speechlab.metrics.score or error_rate returned"
    require_columns(scored, *wanted, argument="scored", hint=hint)
    counted = scored[wanted].assign(counts=scored.get("counts", "levenshtein"))
    for unit, said, heard, counts in counted.dropna().itertuples(index=False):
        way = prepare(unit, None, None)
        yield unit, Alignment(way.split(said), way.split(heard), way.separator, counts=counts)
