"""A report with corrected references, scored anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from speechlab import datasets
from speechlab._brief import briefly
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._proof.anew import recomputed
from speechlab.evaluate._proof.references import CORRECTIONS, uncorrected, with_references
from speechlab.evaluate._report import Report

if TYPE_CHECKING:
    import os


@briefly
def corrected(report: Report, corrections: str | os.PathLike[str] | pd.DataFrame) -> Report:
    """Return a report with corrected references, scored, ranked and tested anew; nothing is asked again.

    Args:
        report: The report, of one system or of several.
        corrections: A table or a CSV file, as of :func:`speechlab.datasets.corrected`.

    Returns:
        The report. Its first finding says how much of the error was the references', and what became of the order of
        systems; ``tables["references"]`` has the same for each system, voice and language, and
        ``tables["corrections"]`` the corrections.

    Raises:
        InvalidRequestError: A correction fits no row, or the report is of a study that cannot be computed from its
            rows.

    Example:
        >>> fixes = pd.DataFrame({"row": ["a"], "old": ["ten cats"], "new": ["ten hats"]})
        >>> rows = pd.DataFrame({"id": ["a"], "text": ["ten cats"], "language": "en", "heard": ["ten hats"]})
        >>> report = recognition(None, rows, hypotheses="heard")
        >>> str(corrected(report, fixes).findings[0])
        "1 reference was corrected; 1 of 1 errors (100.0%) were the references'."
    """
    text = report.columns.get("text", "text")
    fixes = datasets.read_corrections(corrections)
    sides = [name for name in (*SIDES, "voice", "take") if name in report.table.columns]
    each = [rows for _, rows in report.table.groupby(sides, dropna=False, observed=True, sort=False)]
    fixed = [datasets.corrected(rows, fixes, text=text) for rows in (each if sides else [report.table])]
    table = pd.concat(fixed).reindex(report.table.index)
    if CORRECTIONS in report.tables:
        fixes = pd.concat([report.tables[CORRECTIONS], fixes], ignore_index=True)
    before = recomputed(report, uncorrected(report))
    return Report.of(with_references(before, recomputed(report, table), fixes))
