"""The table of errors as a widget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.errors import InvalidRequestError
from speechlab.widgets._errors.systems import errors_of_one, errors_of_two
from speechlab.widgets._table.shown import ShownTable
from speechlab.widgets._table.table import AudioTable

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    import pandas as pd

    from speechlab.widgets._errors.systems import ErrorTable


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

    def __init__(
        self,
        scored: pd.DataFrame,
        other: pd.DataFrame | None = None,
        *,
        names: Iterable[str] | None = None,
        reference: Any = "text",
        hypothesis: Any = "hypothesis",
        language: Any = "language",
        audio: Any = None,
        columns: Iterable[Any] | None = None,
        max_rating: int = 5,
        static_rows: int = 8,
        marks: str | os.PathLike[str] | None = None,
    ) -> None:
        options: dict[str, Any] = {"names": names, "reference": reference, "hypothesis": hypothesis}
        options |= {"language": language, "audio": audio, "columns": columns}
        table = shown_errors(scored, other, **options, max_rating=max_rating, static_rows=static_rows)
        super().__init__(table, marks=marks)


def shown_errors(
    scored: pd.DataFrame,
    other: pd.DataFrame | None = None,
    *,
    names: Iterable[str] | None = None,
    reference: Any = "text",
    hypothesis: Any = "hypothesis",
    language: Any = "language",
    audio: Any = None,
    columns: Iterable[Any] | None = None,
    **options: Any,
) -> ShownTable:
    """Return the table of an :class:`ErrorBrowser`, which has the same arguments, without the widget."""
    table = _table_of(scored, other, names, reference, hypothesis, language)
    if audio is not None and audio not in table.frame.columns and table.names:
        audio = f"{audio}_{table.names[0]}"  # two systems that have other sounds
    return ShownTable(
        table.frame,
        audio=audio,
        columns=table.shown if columns is None else columns,
        reference=table.reference,
        hypotheses=table.hypotheses,
        language=language if language in table.frame.columns or language != "language" else None,
        title="Errors",
        categories=table.categories,
        **options,
    )


def _table_of(
    scored: Any, other: Any, names: Iterable[str] | None, reference: Any, hypothesis: Any, language: Any
) -> ErrorTable:
    columns = list(hypothesis) if isinstance(hypothesis, list | tuple) else [hypothesis]
    if len(columns) > 2 or not columns:
        message = f"hypothesis names {len(columns)} columns; give one, or two for two systems"
        raise InvalidRequestError(message, parameter="hypothesis")
    if other is None and len(columns) == 1:
        if names is not None:
            raise InvalidRequestError("names are for two systems; leave them out for one", parameter="names")
        return errors_of_one(scored, reference, columns[0], language)
    usual: list[Any] = columns if other is None else ["a", "b"]
    called: tuple[Any, ...] = tuple(map(str, usual)) if names is None else tuple(names)
    if len(called) != 2 or not all(isinstance(name, str) and name for name in called) or len(set(called)) < 2:
        message = f"names={called!r:.60} are not names of two systems; give two different texts"
        raise InvalidRequestError(message, parameter="names")
    first, second = called
    tables = (scored, scored if other is None else other)
    if other is None and hasattr(scored, "columns") and "signature" in scored.columns:
        # existing scores belong to one hypothesis
        message = (
            "two columns of one table are scored here; give a table without scores, or two scored tables"
        )
        raise InvalidRequestError(message, parameter="hypothesis")
    return errors_of_two(tables, (first, second), reference, (columns[0], columns[-1]), language)
