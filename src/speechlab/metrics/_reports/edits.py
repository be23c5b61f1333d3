"""The errors of tables: one row each with their places in the texts, confusions, and alignments as HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

from speechlab._arguments import convert_table, has_column, is_pandas_frame, is_whole_number
from speechlab._pandas import pd
from speechlab.display import Html, diff, element, format_percent, join, notebook_output
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.pairs import PLACES, Pairs, build_edit_table
from speechlab.metrics._alignment.units import build_preparation
from speechlab.metrics._columns import build_table
from speechlab.metrics._rates.error_rate import ErrorRate
from speechlab.metrics._rates.tables import (
    Scorable,
    align_row,
    join_table_signatures,
    list_scored_rows,
    parse_signature,
    to_scored_table,
)


def edits(
    scored: Scorable,
    hypotheses: Iterable[str | None] | None = None,
    *,
    equal: bool = False,
    reference: str = "text",
    hypothesis: str = "hypothesis",
    **how: Any,
) -> pd.DataFrame:
    """Return the errors, one row each, with their places in the texts as written.

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
        ``reference_end``, ``hypothesis_start`` and ``hypothesis_end`` (characters of the texts before normalization,
        half open), and ``unit``. The token and the place of a side without a token are missing. All places are
        missing for readings and syllables, for a table without the texts as written, and for a table that was scored
        with a custom function as its normalizer or with variants; merged compounds have none either.

    Raises:
        InvalidRequestError: The table has no scores and cannot be scored.

    Example:
        >>> table = edits(["Well, good MORNING!"], ["good evening"], language="de")
        >>> table[["operation", "reference", "reference_start"]].values.tolist()
        [['delete', 'well', 0], ['substitute', 'morning', 11]]
    """
    if isinstance(scored, ErrorRate):
        return scored.edits(equal=equal).assign(unit=scored.unit).astype({"unit": "string"})
    scored = convert_table(scored)
    scored_already = is_pandas_frame(scored) and hypotheses is None and not how
    if not scored_already:
        how |= {"reference": reference, "hypothesis": hypothesis}
    table = to_scored_table(scored, hypotheses, how)
    scored_rows = table[table["errors"].notna()]
    written = all(
        has_column(scored_rows, name, name_of)
        for name, name_of in ((reference, "reference"), (hypothesis, "hypothesis"))
    )
    tables = []
    for signature, rows_alike in scored_rows.groupby("signature", observed=True, sort=False):
        fields = parse_signature(str(signature))
        has_places = written and not fields["norm"].startswith("custom:") and "variants" not in fields
        language = None if fields["lang"] == "any" else fields["lang"]
        rules = fields["norm"].partition("#")[0] if has_places else None
        columns = (reference, hypothesis) if has_places else ("reference_normalized", "hypothesis_normalized")
        references, hypothesis_texts = (list(map(str, rows_alike[column])) for column in columns)
        how_cut = build_preparation(
            fields["unit"], language, rules, merge_compounds=has_places and "compounds" in fields
        )
        pairs = Pairs(references, hypothesis_texts, how_cut)
        rows = build_edit_table(pairs, rows_alike.index.tolist(), equal=equal).assign(unit=fields["unit"])
        if not has_places:
            rows[list(PLACES)] = pd.NA
        tables.append(rows)
    if not tables:
        empty = build_preparation("word", None, None)
        tables = [build_edit_table(Pairs([], [], empty), [], equal=equal).assign(unit="")]
    joined = pd.concat(tables, ignore_index=True)
    order = {label: place for place, label in enumerate(scored_rows.index.tolist())}
    joined = joined.sort_values("utterance", key=lambda labels: labels.map(order), kind="stable")
    return joined.astype({"unit": "string", "operation": "category"}).reset_index(drop=True)


_TYPES = {
    "unit": "string",
    "operation": "category",
    **dict.fromkeys(("reference", "hypothesis"), "string"),
    **dict.fromkeys(("count", "utterances"), "Int64"),
    "share": "Float64",
    "signature": "string",
}


# Unit, operation, and the tokens of the reference and the hypothesis.
_Key: TypeAlias = tuple[str, str, str | None, str | None]


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
    table = to_scored_table(scored, hypotheses, how)
    scored_rows = table[table["errors"].notna()]
    signatures = {
        unit: join_table_signatures(rows_of_unit, f"rows by {unit}")
        for unit, rows_of_unit in scored_rows.groupby("unit", observed=True)
    }
    counts, utterances = Counter[_Key](), Counter[_Key]()
    alignments = (
        scored.alignments if isinstance(scored, ErrorRate) else map(align_row, list_scored_rows(scored_rows))
    )
    for unit, alignment in zip(scored_rows["unit"], alignments, strict=True):
        pair_counts = Counter(
            (unit, edit.operation, edit.reference, edit.hypothesis)
            for edit in alignment
            if edit.operation != "equal"
        )
        counts.update(pair_counts)
        utterances.update(pair_counts.keys())
    totals = {unit: sum(count for key, count in counts.items() if key[0] == unit) for unit in signatures}
    rows = [
        (*key, count, utterances[key], count / totals[key[0]], signatures[key[0]])
        for key, count in counts.items()
    ]
    # Ties in the order of the tokens, so that the same errors give the same table.
    rows.sort(key=lambda row: (-row[4], row[0], row[1], row[2] or "", row[3] or ""))
    return build_table(rows, _TYPES)


_LETTERS = {"substitute": "S", "delete": "D", "insert": "I", "equal": ""}
_LEGEND = "S: another token, D: missing, I: inserted"
_CELL = "display:inline-grid;grid-template-rows:repeat(3,1.5em);text-align:center;padding:0 {}"


def alignments_html(
    scored: Scorable,
    hypotheses: Iterable[str | None] | None = None,
    *,
    limit: int = 20,
    **how: Any,
) -> Html:
    """Alignments as HTML: reference above hypothesis, token by token, with the kind of each error below.

    They are of the utterances with errors, those with the most errors first.

    Args:
        scored: Result of :func:`score` or :func:`error_rate`; or a table or references without scores.
        hypotheses: Hypotheses, if the first argument has references.
        limit: Greatest number of utterances to show.
        **how: Arguments of :func:`score` for texts without scores, such as ``language="en"``.

    Returns:
        HTML that a notebook shows. All texts are escaped, and color is never the only sign.

    Raises:
        InvalidRequestError: The table has no scores and cannot be scored, or the limit is not a whole number of at
            least 1.

    Example:
        >>> "mourning" in alignments_html(["good morning"], ["good mourning"], language="en")
        True
    """
    if not is_whole_number(limit) or limit < 1:
        message = f"limit={limit!r:.60} is not a number of utterances; give a whole number of at least 1"
        raise InvalidRequestError(message, parameter="limit")
    table = to_scored_table(scored, hypotheses, how)
    with_errors = table[(table["errors"] > 0).fillna(value=False)]
    scored_rows = with_errors.sort_values("errors", ascending=False, kind="stable")
    first_rows = scored_rows.head(limit)
    blocks = []
    for label, rate, row in zip(
        first_rows.index, first_rows["error_rate"], list_scored_rows(first_rows), strict=True
    ):
        language = parse_signature(row.signature).get("lang")
        head = element("small", element("strong", str(label)), f" {format_percent(rate)}")
        lang = None if language == "any" else language
        alignment = align_row(row)
        gap = "3px" if alignment.separator else "1px"
        cells = []
        for edit in alignment:
            tokens: list[Html] = [element("span", edit.reference), element("span", edit.hypothesis)]
            if edit.operation != "equal":
                # A dot marks a missing token and keeps the width of its place.
                missing = element("span", "·")
                tokens = [
                    diff([("delete", edit.reference, "")]) if edit.reference else missing,
                    diff([("insert", "", edit.hypothesis)]) if edit.hypothesis else missing,
                ]
            letter = element("small", _LETTERS[edit.operation])
            cells.append(element("span", *tokens, letter, style=_CELL.format(gap)))
        grid = element("div", join("", cells), lang=lang, dir="auto", style="line-height:1.5em")
        blocks.append(element("div", head, grid, style="margin:8px 0"))
    omitted = len(scored_rows) - len(first_rows)
    if omitted:
        blocks.append(element("small", f"and {omitted} more utterances"))
    blocks.append(element("small", _LEGEND if blocks else "no errors"))
    return notebook_output(*blocks)
