"""A table as it is shown: its rows and the roles of its columns. It is no widget, and makes pages and plain HTML."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from speechlab._arguments import column_names, is_frame, is_whole_number, refused
from speechlab.display import Html, element
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.widgets._shared.browser import base64_text, json_text, module_source, page_of, style_sheet
from speechlab.widgets._shared.sounds import reason
from speechlab.widgets._table.columns import ColumnRoles, layout_of
from speechlab.widgets._table.rows import NOTED, NOTHING, Rows
from speechlab.widgets._table.static import static_table

if TYPE_CHECKING:
    import pandas as pd

_BROWSER = Path(__file__).parent / "browser"
MODULE = module_source(_BROWSER / "table.js")
STYLE = style_sheet(_BROWSER / "table.css")
_MAX_ROWS = 200_000
_MAX_STATIC_ROWS = 50
_MAX_RATING = 10
_MAX_BYTES = 270_000_000
"""Maximum size of a page: browsers do not support texts above about half a gigabyte."""
_BINS = 100
_AT_ONCE = 64
"""Number of sounds that are encoded between two checks of the remaining space."""
_MANY = 1_000
"""Rows from which the size of a page is estimated first: of fewer, all sounds are encoded soon enough."""
_TRIED = 16
"""Number of sounds from which the size of a page is estimated. A page a quarter above the limit is refused by it."""
_DOUBT = 1.25
_MARGIN = 1_000
"""Bytes for the sentence about sounds that are left out."""
_NO_ROOM = "not in this page, which is full"


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
    """A table as :class:`AudioTable` shows it, which takes one in place of a frame; ``silent`` needs no sound."""

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

        The rows ``first`` come before the others, which have the order and the filters of ``view``.
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

        Sounds that do not fit into ``max_bytes`` are left out, with a note. Without a limit all have to fit into the
        largest possible page, or an InvalidRequestError is raised.
        """
        described = {**self.described(), "title": title}
        return _page(self.rows, described, above, below, max_bytes, editable=editable)


def _page(
    rows: Rows,
    described: dict[str, Any],  # the traits of the widget
    above: Html | None,
    below: Html | None,
    max_bytes: int | None,
    *,
    editable: bool,
) -> str:
    if max_bytes is None and len(rows) >= _MANY:
        _refuse_too_large(rows)
    state = {**described, "max_rating": rows.max_rating, "editable": editable}
    data: dict[str, Any] = {"state": state, **_content(rows)}
    if editable:
        data["keys"] = [[key, rows.named(row)] for row, key in enumerate(rows.keys())]
    # The page's name in the browser's storage: the same table has the same marks.
    data["name"] = hashlib.sha256(json_text(data["rows"]).encode("utf-8")).hexdigest()[:24]
    held = json_text(data)

    def page(above: Html | None, sounds: object) -> str:
        return page_of(
            described["title"],
            MODULE,
            _BROWSER / "page.js",
            STYLE,
            {"data": held},
            later={"sounds": json_text(sounds)},
            noscript="The rows need JavaScript, which this page holds itself.",
            above=above,
            below=below,
        )

    most = _MAX_BYTES if max_bytes is None else max_bytes
    sounds = _sounds(rows, most - len(page(above, ()).encode("utf-8")) - _MARGIN)
    silent = range(len(sounds), len(rows))
    if silent and max_bytes is None:
        message = (
            f"the sounds up to row {len(sounds):,} are all that a page can hold; save a part of the table"
        )
        raise InvalidRequestError(message, parameter="frame")
    if silent:
        left_out = sum(not rows.sounds.outline(row, _BINS).error for row in silent)
        warning = (
            f"The sound of {left_out:,} of {len(rows):,} rows is not in this page: it would be larger than "
            f"{most / 1e6:,.0f} MB."
        )
        above = (above or Html()) + element("p", element("strong", warning))
    return page(above, [*sounds, *[("", _NO_ROOM)] * len(silent)])


def _refuse_too_large(rows: Rows) -> None:
    """Refuse a table that is clearly larger than a page, before all of its sounds are read."""
    tried = range(0, len(rows), max(len(rows) // _TRIED, 1))
    expected = sum(len(data) for data, _ in _encoded(rows, tried)) / max(len(tried), 1) * len(rows)
    if expected > _DOUBT * _MAX_BYTES:
        message = (
            f"the sounds of {len(rows):,} rows take about {expected / 1e6:,.0f} MB, and a page holds "
            f"{_MAX_BYTES / 1e6:.0f} MB; save a part of the table"
        )
        raise InvalidRequestError(message, parameter="frame")


def _content(rows: Rows) -> dict[str, Any]:
    """The rows, outlines and differences of a page."""

    def drawn(row: int) -> list[Any]:
        outline = rows.sounds.outline(row, _BINS)
        return [base64_text(outline.peaks), round(outline.seconds, 3), outline.error]

    with ThreadPoolExecutor() as pool:  # files are read and samples compared without the interpreter's lock
        outlines = list(pool.map(drawn, range(len(rows))))
    nothing = {f"n:{name}": [NOTHING[name]] * len(rows) for name in NOTED}
    reference, places = rows.layout.reference, range(len(rows))
    compared = [column.title for column in rows.layout.columns if reference and column.compared]
    return {
        "rows": {**rows.piece(0, len(rows)), **nothing},
        "outlines": outlines,
        "differences": {title: rows.differences(places, reference, title) for title in compared},
    }


def _sounds(rows: Rows, room: int) -> list[tuple[str, str]]:
    """Return the sound and the note of each row. Rows whose sound does not fit have a note only."""
    sounds: list[tuple[str, str]] = []
    room -= (len(_NO_ROOM) + 8) * len(rows)
    for data, note in _encoded(rows, range(len(rows))):
        room -= len(data) + 3 * len(note)
        if data and room < 0:
            break
        sounds.append((data, note))
    return sounds


def _encoded(rows: Rows, places: range) -> Iterator[tuple[str, str]]:
    def encoded(row: int) -> tuple[str, str]:
        try:
            sound = rows.sounds.sound(row, preview=True)
        except (AudioError, OSError) as error:
            return "", reason(error)
        return base64_text(sound.data), sound.note

    with ThreadPoolExecutor() as pool:  # encoders do not hold the interpreter's lock
        for first in range(0, len(places), _AT_ONCE):
            yield from pool.map(encoded, places[first : first + _AT_ONCE])
