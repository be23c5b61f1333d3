"""Alignments as HTML: reference above hypothesis, token by token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_whole_number
from speechlab.display import Html, element, join, percent
from speechlab.errors import InvalidRequestError
from speechlab.metrics._rates.tables import aligned, as_scored, rows_of
from speechlab.metrics._signatures import parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.metrics._alignment.alignment import Alignment
    from speechlab.metrics._rates.tables import Scorable

_MARKS = {"substitute": "S", "delete": "D", "insert": "I", "equal": ""}
_TINTS = {
    "substitute": "background:rgba(230,159,0,.25)",
    "delete": "background:rgba(213,94,0,.25)",
    "insert": "background:rgba(0,114,178,.25)",
    "equal": "",
}
_CELL = "display:inline-grid;grid-template-rows:repeat(3,1.5em);text-align:center;padding:0 {};border-radius:3px;{}"


def alignments_html(
    scored: Scorable,
    hypotheses: Iterable[str | None] | None = None,
    *,
    limit: int = 20,
    worst: bool = True,
    **how: Any,
) -> Html:
    """Alignments for the eye: reference above hypothesis, token by token, with the kind of each error below.

    Args:
        scored: Result of :func:`score` or :func:`error_rate`; or a table or references without scores.
        hypotheses: Hypotheses, if the first argument has references.
        limit: Greatest number of utterances to show.
        worst: Show the utterances with errors only, those with the most errors first; if False, show all in their
            order.
        **how: Arguments of :func:`score` for texts without scores, such as ``language="en"``.

    Returns:
        HTML that a notebook shows. All texts are escaped, and colour is never the only sign.

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
    table = as_scored(scored, hypotheses, how)
    scored_rows = table[table["errors"].notna()]
    if worst:
        scored_rows = scored_rows[scored_rows["errors"] > 0].sort_values(
            "errors", ascending=False, kind="stable"
        )
    first_rows = scored_rows.head(limit)
    blocks = []
    for label, rate, row in zip(first_rows.index, first_rows["error_rate"], rows_of(first_rows), strict=True):
        language = parts(row.signature).get("lang")
        head = element("small", element("strong", str(label)), f" {percent(rate)}")
        lang = None if language == "any" else language
        blocks.append(element("div", head, _grid(aligned(row), lang), style="margin:8px 0"))
    omitted = len(scored_rows) - len(first_rows)
    if omitted:
        blocks.append(element("small", f"and {omitted} more utterances"))
    if not blocks:
        blocks.append(element("small", "no errors" if worst else "no utterances"))
    return element("div", join("", blocks), class_="tex2jax_ignore mathjax_ignore", style="max-width:100%")


def _grid(alignment: Alignment, language: str | None) -> Html:
    gap = "3px" if alignment.separator else "1px"
    cells = []
    for edit in alignment:
        # A dot marks a missing token and keeps the width of its place.
        reference = "·" if edit.reference is None else edit.reference
        hypothesis = "·" if edit.hypothesis is None else edit.hypothesis
        lines = (
            element("span", reference or "·"),
            element("span", hypothesis or "·"),
            element("small", _MARKS[edit.operation]),
        )
        cells.append(element("span", *lines, style=_CELL.format(gap, _TINTS[edit.operation])))
    return element("div", join("", cells), lang=language, dir="auto", style="line-height:1.5em")
