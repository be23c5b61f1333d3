"""The errors of tables, one row each, with their places in the texts as written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import has_column, is_frame
from speechlab.metrics._alignment.edits import PLACES, edit_table
from speechlab.metrics._alignment.pairs import Pairs
from speechlab.metrics._alignment.units import prepare
from speechlab.metrics._rates.error_rate import ErrorRate
from speechlab.metrics._rates.tables import as_scored
from speechlab.metrics._signatures import parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from speechlab.metrics._rates.tables import Scorable


def edits(
    scored: Scorable,
    hypotheses: Iterable[str | None] | None = None,
    *,
    equal: bool = False,
    reference: str = "text",
    hypothesis: str = "hypothesis",
    **how: Any,
) -> pd.DataFrame:
    """The errors, one row each, with their places in the texts as written.

    Args:
        scored: Result of :func:`score` or :func:`error_rate`; or a table or references without scores.
        hypotheses: Hypotheses, if the first argument has references.
        equal: Also give the tokens that agree.
        reference: Column of references in a table.
        hypothesis: Column of hypotheses in a table.
        **how: Arguments of :func:`score` for texts without scores, such as ``language="en"``.

    Returns:
        A table with ``utterance`` (the label of the row in the index), ``operation`` (``"substitute"``, ``"delete"``,
        ``"insert"``, ``"equal"``), the tokens ``reference`` and ``hypothesis``, ``reference_start``,
        ``reference_end``, ``hypothesis_start`` and ``hypothesis_end`` (characters of the texts before normalisation,
        half open), and ``unit``. The token and the place of a side without a token are missing. All places are
        missing for readings and syllables, for a table without the texts as written, and for a table that was scored
        with a custom function as its normaliser or with variants; merged compounds have none either.

    Raises:
        InvalidRequestError: The table has no scores and cannot be scored.

    Example:
        >>> table = edits(["Well, good MORNING!"], ["good evening"], language="de")
        >>> table[["operation", "reference", "reference_start"]].values.tolist()
        [['delete', 'well', 0], ['substitute', 'morning', 11]]
    """
    import pandas as pd

    if isinstance(scored, ErrorRate):
        return scored.edits(equal=equal).assign(unit=scored.unit).astype({"unit": "string"})
    scored_already = is_frame(scored) and hypotheses is None and not how
    if not scored_already:
        how |= {"reference": reference, "hypothesis": hypothesis}
    table = as_scored(scored, hypotheses, how)
    done = table[table["errors"].notna()]
    written = has_column(done, reference, "reference") and has_column(done, hypothesis, "hypothesis")
    found = []
    for signature, part in done.groupby("signature", observed=True, sort=False):
        way = parts(str(signature))
        known = written and not way["norm"].startswith("custom:") and "variants" not in way
        language = None if way["lang"] == "any" else way["lang"]
        rules = way["norm"].partition("#")[0] if known else None
        columns = (reference, hypothesis) if known else ("reference_normalized", "hypothesis_normalized")
        said, heard = (list(map(str, part[column])) for column in columns)
        counts: Any = way["counts"]
        how_cut = prepare(way["unit"], language, rules, merge_compounds=known and "compounds" in way)
        pairs = Pairs(said, heard, how_cut, counts)
        rows = edit_table(pairs, part.index.tolist(), equal=equal).assign(unit=way["unit"])
        if not known:
            rows[list(PLACES)] = pd.NA
        found.append(rows)
    if not found:
        empty = prepare("word", None, None)
        found = [edit_table(Pairs([], [], empty, "levenshtein"), [], equal=equal).assign(unit="")]
    joined = pd.concat(found, ignore_index=True)
    order = {label: place for place, label in enumerate(done.index.tolist())}
    joined = joined.sort_values("utterance", key=lambda labels: labels.map(order), kind="stable")
    return joined.astype({"unit": "string", "operation": "category"}).reset_index(drop=True)
