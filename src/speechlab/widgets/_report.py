"""The rows of a report as a widget: with sound where they have some."""

from __future__ import annotations

import traitlets

from speechlab.widgets._table.table import AudioTable


class ReportRows(AudioTable):
    """An :class:`AudioTable` that may be without sound: the rows of any report.

    Args:
        frame: The table of the report.
        audio: Name of the column with the sound; None to find it.
        columns: Names of the columns that are seen at first, in order; None to choose.
        reference: Name of the text column that others are compared with; None to choose.
        hypotheses: Name or names of the columns that are compared with it; None to choose by name.
        language: Name of the column with the language of each row, or the language of all; None for ``language``.
        max_rating: The best rating, 2 to 10; 0 for no ratings.
        static_rows: How many rows stand in the saved notebook, 0 to 50.
    """

    _silent = True
    title = traitlets.Unicode("Rows").tag(sync=True)
