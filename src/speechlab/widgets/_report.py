"""The rows of a report as a widget, with or without sound."""

from __future__ import annotations

import traitlets

from speechlab.widgets._table.table import AudioTable


class ReportRows(AudioTable):
    """An :class:`AudioTable` of the rows of a report, which may have no sound.

    Args:
        frame: The table of the report.
        audio: Name of the column of recordings; None to detect it.
        columns: Names of the columns that are visible at first, in order; None for a default choice.
        reference: Name of the column of references; None to detect it.
        hypotheses: Name or names of the columns of hypotheses; None to detect them by name.
        language: Name of the column of languages, or the language of all rows; None for the column ``language``.
        max_rating: The best rating, 2 to 10; 0 for no ratings.
        static_rows: Number of rows in the saved notebook, 0 to 50.
    """

    _silent = True
    title = traitlets.Unicode("Rows").tag(sync=True)
