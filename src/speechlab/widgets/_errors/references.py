"""Suspected references as a widget: heard, compared, and corrected, accepted or dismissed by a person."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from speechlab._arguments import require_columns
from speechlab.errors import InvalidRequestError
from speechlab.widgets._table.table import AudioTable

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    import pandas as pd

_HINT = "Give report.suspects(), or what speechlab.metrics.suspects returned with a column row"


class ReferenceBrowser(AudioTable):
    """An :class:`AudioTable` of references that are likely wrong, to decide on each.

    ::

        browser = report.review()
        browser  # hear a row; y accepts the suggestion, x dismisses it, n writes another text, u undoes
        browser.corrections(by="Ada").to_csv("fixes.csv", index=False)
        sl.evaluate.corrected(report, "fixes.csv")

    The note of a row is its right text. A row without a note is undecided. Notes stay in the saved notebook, and in
    the file that a page of :meth:`AudioTable.save` gives its reader (``marks=``).

    Args:
        suspects: Suspected rows, as of :meth:`speechlab.evaluate.Report.suspects`.
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
        from speechlab.widgets._table.shown import ShownTable

        require_columns(suspects, "row", reference, "suggestion", argument="suspects", hint=_HINT)
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
        table = ShownTable(
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
        right = self._cell(label, "suggestion") if text is None else text
        if not isinstance(right, str) or not right.strip():
            raise InvalidRequestError("the text is empty; give the words that were said", parameter="text")
        self.note(label, right)

    def dismiss(self, label: Any) -> None:
        """Say that the reference of a row is right; as the key x.

        Raises:
            InvalidRequestError: The row does not exist.
        """
        self.note(label, self._cell(label, self._reference))

    def corrections(self, by: str = "") -> pd.DataFrame:
        """Return the decisions, as a table for a file of corrections (:func:`speechlab.datasets.corrected`).

        Args:
            by: Who decided.

        Returns:
            ``row``, ``old``, ``new`` (equal to ``old`` where the reference was found right), ``by``, ``when`` (UTC)
            and ``why``, one row for each decision.
        """
        import pandas as pd

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

    def _cell(self, label: Any, name: str) -> Any:
        return self._rows.frame[name].iloc[self._position(label)]

    def _note(self, row: int, name: str, value: Any) -> None:
        super()._note(row, name, value)
        self._decided[row] = f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}"
