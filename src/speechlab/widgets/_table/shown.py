"""A table as it is shown: its rows and the roles of its columns. It is no widget, and makes pages and plain HTML."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab._arguments import column_names, is_frame, is_whole_number, refused
from speechlab.errors import InvalidRequestError
from speechlab.widgets._shared.browser import module_source, style_sheet
from speechlab.widgets._table.columns import ColumnRoles, layout_of
from speechlab.widgets._table.page import table_page
from speechlab.widgets._table.rows import NOTED, Rows
from speechlab.widgets._table.static import static_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Unpack

    import pandas as pd

    from speechlab.display import Html

_BROWSER = Path(__file__).parent / "browser"
MODULE = module_source(_BROWSER / "table.js")
STYLE = style_sheet(_BROWSER / "table.css")
_MAX_ROWS = 200_000
_MAX_STATIC_ROWS = 50
_MAX_RATING = 10


class TableOptions(ColumnRoles, total=False):
    """Options of a table, as :class:`AudioTable` explains them."""

    max_rating: int
    static_rows: int


F = TypeVar("F", bound="Callable[..., Any]")


def naming(source: Callable[..., Any], names: str = "") -> Callable[[F], F]:
    """Show keyword arguments of another function behind ``**options``, in ``help`` and in tab completion."""

    def show(function: F) -> F:
        signature, options = inspect.signature(function), inspect.signature(source).parameters
        fixed = [item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD]
        keywords = [item for item in fixed if item.kind is item.KEYWORD_ONLY]
        added = [
            item
            for name, item in options.items()
            if item.kind is item.KEYWORD_ONLY and name in (names.split() or options)
        ]
        parameters = [*(item for item in fixed if item not in keywords), *added, *keywords]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # help() reads it
        return function

    return show


class ShownTable:
    """A table as :class:`AudioTable` shows it, which takes one in place of a frame.

    Args:
        frame: As for :class:`AudioTable`, like the arguments that are not named here.
        title: Title of the table.
        silent: Whether a table without sound is allowed.
        categories: Names of columns that are always categories.

    Attributes:
        rows: The rows.
        title: Title of the table.
        static_rows: Number of rows in a saved notebook.
    """

    @naming(layout_of, "audio columns reference hypotheses language")
    def __init__(
        self,
        frame: pd.DataFrame,
        *,
        max_rating: int = 5,
        static_rows: int = 8,
        title: str = "Rows",
        silent: bool = True,
        categories: Iterable[Any] = (),
        **roles: Unpack[ColumnRoles],
    ) -> None:
        for name, value, allowed in (
            ("max_rating", max_rating, {0, *range(2, _MAX_RATING + 1)}),
            ("static_rows", static_rows, range(_MAX_STATIC_ROWS + 1)),
        ):
            if not is_whole_number(value) or value not in allowed:
                raise refused(name, value, f"a whole number from {min(allowed)} to {max(allowed)}")
        if roles.get("columns") is not None:
            roles["columns"] = column_names(
                roles["columns"], "columns"
            )  # they are read once more for another frame
        self._roles: dict[str, Any] = {**roles, "silent": silent, "categories": tuple(categories)}
        self.title = title
        self.static_rows = static_rows
        self.rows = self.read(frame, max_rating)

    def read(self, frame: pd.DataFrame, max_rating: int) -> Rows:
        """Return the rows of a frame, whose columns have the roles of this table."""
        if not is_frame(frame):
            kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
            remedy = "frame.to_pandas()" if hasattr(frame, "to_pandas") else "one"
            message = f"a {kind} is not a pandas DataFrame; give {remedy}"
            raise InvalidRequestError(message, parameter="frame")
        if len(frame) > _MAX_ROWS:
            message = f"{len(frame):,} rows are more than the {_MAX_ROWS:,} that a page can hold; give a part of them"
            raise InvalidRequestError(message, parameter="frame")
        return Rows(frame.copy(deep=False), layout_of(frame, aside=NOTED, **self._roles), max_rating)

    @property
    def sound(self) -> bool:
        """Whether the table has a column of recordings."""
        return self.rows.layout.audio is not None

    def described(self) -> dict[str, Any]:
        """Return what the browser needs before the rows."""
        layout = self.rows.layout
        columns = [column.described() for column in layout.columns]
        return {
            "columns": columns,
            "count": len(self.rows),
            "reference": layout.reference,
            "sound": self.sound,
        }

    def static(
        self,
        count: int | None = None,
        *,
        title: str | None = None,
        first: Sequence[int] = (),
        view: Mapping[str, Any] | None = None,
    ) -> Html:
        """Return the first rows as plain HTML with their sound; all rows, with all sounds, without a number.

        Args:
            count: Number of rows.
            title: Title above the rows; None for that of the table.
            first: Positions of rows that come before the others.
            view: The order and the filters of the browser.
        """
        room = {"max_bytes": sys.maxsize} if count is None else {}
        rows = len(self.rows) if count is None else count
        return static_table(self.rows, rows, title or self.title, first, view, **room)

    def page(
        self,
        title: str,
        above: Html | None = None,
        below: Html | None = None,
        max_bytes: int | None = None,
        *,
        editable: bool = False,
    ) -> str:
        """Return a page with the table and its sounds, which needs no kernel and no network.

        Args:
            title: Title of the page.
            above: Markup before the table.
            below: Markup after the table.
            max_bytes: Maximum size of the page in bytes; sounds that do not fit are left out, with a note. None for
                the largest possible page, into which all sounds must fit.
            editable: Whether the reader can mark, rate and note rows, and save that as a file.

        Raises:
            InvalidRequestError: The sounds do not fit into the largest possible page.
        """
        described = {**self.described(), "title": title}
        return table_page(self.rows, described, MODULE, STYLE, above, below, max_bytes, editable=editable)
