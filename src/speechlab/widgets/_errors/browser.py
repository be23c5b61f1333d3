"""Tables of errors and of suspected references as widgets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from speechlab._arguments import require_columns
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.widgets._errors.systems import to_error_table
from speechlab.widgets._table.shown import TableView, expose_options
from speechlab.widgets._table.table import AudioTable

_HINT = "Give report.suspects(), or what speechlab.metrics.suspects returned with a column row"


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

    @expose_options(to_error_table)
    def __init__(
        self,
        scored: pd.DataFrame,
        other: pd.DataFrame | None = None,
        *,
        marks: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(to_error_table(scored, other, **options), marks=marks)


class ReferenceBrowser(AudioTable):
    """An :class:`AudioTable` of references that are likely wrong, to decide on each.

    ::

        browser = report.review()
        browser  # hear a row; y accepts the suggestion, x dismisses it, n writes another text, u undoes
        browser.corrections(by="Ada").to_csv("fixes.csv", index=False)
        sl.evaluate.correct_references(report, "fixes.csv")

    The note of a row is its right text. A row without a note is undecided. Notes stay in the saved notebook, and in
    the file that a page of :meth:`AudioTable.save` gives its reader (``marks=``).

    Args:
        suspects: Suspected rows, as from :meth:`speechlab.evaluate.Report.suspects`.
        reference: Column of references.
        language: Column of languages.
        columns: Names of the columns that are visible at first; None for a default choice.
        marks: As for :class:`AudioTable`.
        **options: As for :class:`AudioTable`.

    Raises:
        InvalidRequestError: A column is missing, or an argument is not allowed.

    Example:
        >>> rows = {
        ...     "row": ["a"],
        ...     "text": ["ten cats"],
        ...     "suggestion": ["ten hats"],
        ...     "why": ["Both have “hats”."],
        ... }
        >>> browser = ReferenceBrowser(pd.DataFrame(rows))
        >>> browser.accept(0)
        >>> browser.corrections(by="Ada")[["row", "old", "new", "by"]].values.tolist()
        [['a', 'ten cats', 'ten hats', 'Ada']]
    """

    def __init__(
        self,
        suspects: pd.DataFrame,
        *,
        reference: str = "text",
        language: str = "language",
        columns: Iterable[Any] | None = None,
        marks: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        suspects = require_columns(suspects, "row", reference, "suggestion", argument="suspects", hint=_HINT)
        hypotheses = [name for name in suspects.columns if str(name).startswith("hypothesis_")]
        visible = [
            reference,
            "suggestion",
            *hypotheses,
            *(name for name in ("why", "certainty") if name in suspects),
        ]
        roles: dict[str, Any] = {"reference": reference, "hypotheses": ["suggestion", *hypotheses]}
        roles |= {"language": language if language in suspects.columns else None, "max_rating": 0}
        frame = suspects.drop(columns=[name for name in ("mark", "rating", "note") if name in suspects])
        table = TableView(
            frame,
            title="Suspected references",
            columns=visible if columns is None else columns,
            **(roles | options),
        )
        self._reference = reference
        self._decided: dict[int, str] = {}
        super().__init__(table, marks=marks)

    def accept(self, label: Any, text: str | None = None) -> None:
        """Accept the suggestion for a row, or give it another text; as the keys y and n.

        Raises:
            InvalidRequestError: The row does not exist, or the text is empty.
        """
        right = self._get_cell(label, "suggestion") if text is None else text
        if not isinstance(right, str) or not right.strip():
            raise InvalidRequestError("the text is empty; give the words that were said", parameter="text")
        self.note(label, right)

    def dismiss(self, label: Any) -> None:
        """Say that the reference of a row is right; as the key x.

        Raises:
            InvalidRequestError: The row does not exist.
        """
        self.note(label, self._get_cell(label, self._reference))

    def corrections(self, by: str = "") -> pd.DataFrame:
        """Return the decisions, as a table for a file of corrections (:func:`speechlab.datasets.apply_corrections`).

        Args:
            by: Who decided.

        Returns:
            ``row``, ``old``, ``new`` (equal to ``old`` where the reference was found right), ``by``, ``when`` (UTC)
            and ``why``, one row for each decision.
        """
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}"
        rows: list[dict[Any, Any]] = self._rows.frame.to_dict("records")
        decided = [
            {
                "row": row["row"],
                "old": row[self._reference],
                "new": new.strip(),
                "by": by,
                "when": self._decided.get(place, now),
                "why": row.get("why", ""),
            }
            for place, (row, new) in enumerate(zip(rows, self._rows.noted["note"], strict=True))
            if new and new.strip()
        ]
        return pd.DataFrame(decided, columns=["row", "old", "new", "by", "when", "why"], dtype="string")

    def _get_cell(self, label: Any, name: str) -> Any:
        return self._rows.frame[name].iloc[self._label_to_row(label)]

    def _set_and_show_annotation(self, row: int, name: str, value: Any) -> None:
        super()._set_and_show_annotation(row, name, value)
        self._decided[row] = f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}"
