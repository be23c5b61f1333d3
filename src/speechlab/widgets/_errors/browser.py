"""The table of errors as a widget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.widgets._errors.systems import shown_errors
from speechlab.widgets._table.shown import naming
from speechlab.widgets._table.table import AudioTable

if TYPE_CHECKING:
    import os

    import pandas as pd


class ErrorBrowser(AudioTable):
    """An :class:`AudioTable` of the errors in a scored table, of one system or of two systems.

    ::

        scored = sl.metrics.score(frame)
        sl.widgets.ErrorBrowser(scored)  # the worst rows first
        sl.widgets.ErrorBrowser(scored, other)  # the rows first in which two systems differ most
        sl.widgets.ErrorBrowser(frame, hypothesis=["small", "large"])  # the same, of two columns

    *Filter* has the classes of errors (``substitution``, ``deletion``, ``insertion``; in Japanese and Chinese also
    ``notation``, ``homophone``, ``tone``, ``recognition``), the confusions (``精 → 制``, with ``∅`` for an empty
    side), languages, voices and error rates. Rows without a score are last, with the reason. A table without sound
    has no player.

    ``frame`` has the columns ``error_classes`` and ``confusions`` (lists of texts). For two systems, the columns in
    which they differ end with the name of the system. ``fewer_errors`` is the name of the system with fewer errors in
    the row, or ``neither``. ``error_difference`` is the errors of the second system minus those of the first. The
    sound is that of the first system.

    Args:
        scored: A table of :func:`speechlab.metrics.score` or of a study; a table without scores is scored first.
        other: The same rows of another system, matched by index.
        names: Names of the two systems; None for ``a`` and ``b``, or for the names of two columns.
        reference: Column of references.
        hypothesis: Column of hypotheses; or two columns of one table, which are scored.
        language: Column of languages; or, if there is no such column, the language of all rows.
        audio: Name of the column of recordings; None to detect it.
        columns: Names of the columns that are visible at first, in order; None for a default choice.
        max_rating: The best rating, 2 to 10; 0 for no ratings.
        static_rows: Number of rows in the saved notebook, 0 to 50.
        marks: As for :class:`AudioTable`.

    Raises:
        InvalidRequestError: An argument is not allowed, or the two tables have different rows or were scored in
            different ways.

    Example:
        >>> scored = sl.metrics.score(["good morning"], ["good mourning"], language="en")
        >>> browser = ErrorBrowser(scored)
        >>> browser.marked
        []
    """

    @naming(shown_errors)
    def __init__(
        self,
        scored: pd.DataFrame,
        other: pd.DataFrame | None = None,
        *,
        marks: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(shown_errors(scored, other, **options), marks=marks)
