"""A table as it is shown: its rows and the roles of its columns. It is no widget, and makes pages and plain HTML."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from speechlab._arguments import build_argument_error, is_whole_number, to_column_names
from speechlab.batch import show_progress
from speechlab.datasets import to_table
from speechlab.display import Html, element
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.widgets._shared.browser import (
    bundle_module,
    read_colors_and_style_sheets,
    render_widget_page,
    to_base64,
    to_json_text,
)
from speechlab.widgets._shared.sounds import describe_error
from speechlab.widgets._table.columns import ColumnRoles, build_layout
from speechlab.widgets._table.rows import ANNOTATIONS, NO_ANNOTATION, Rows
from speechlab.widgets._table.static import render_static_table

if TYPE_CHECKING:
    import pandas as pd

_BROWSER = Path(__file__).parent / "browser"
MODULE = bundle_module(_BROWSER / "table.js")
STYLE = read_colors_and_style_sheets(_BROWSER / "table.css")
_MAX_ROWS = 200_000
_MAX_STATIC_ROWS = 50
_MAX_RATING = 10
# Maximum size of a page: browsers do not support texts above about half a gigabyte.
_MAX_BYTES = 270_000_000
_BINS = 100
# Number of sounds that are encoded between two checks of the remaining space.
_SOUNDS_AT_ONCE = 64
# Rows from which the size of a page is estimated first: of fewer, all sounds are encoded soon enough.
_MIN_ROWS_TO_ESTIMATE = 1_000
# Number of sounds from which the size of a page is estimated. A page a quarter above the limit is refused by
# it.
_SAMPLE_SOUNDS = 16
_ESTIMATE_MARGIN = 1.25
# Seconds after which the making of a page shows its progress.
_PROGRESS_AFTER_S = 1.0
# Bytes for the sentence about sounds that are left out.
_MARGIN = 1_000
_NO_ROOM = "not in this page, which is full"


class TableOptions(ColumnRoles, total=False):
    """Options of a table, as :class:`AudioTable` explains them."""

    max_rating: int
    static_rows: int


F = TypeVar("F", bound="Callable[..., Any]")
Made = TypeVar("Made")


def expose_options(source: Callable[..., Any], names: str = "") -> Callable[[F], F]:
    """Show keyword arguments of another function behind ``**options``, in ``help`` and in tab completion."""

    def decorate(function: F) -> F:
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

    return decorate


class TableView:
    """A table as :class:`AudioTable` shows it, which takes one in place of a frame; ``silent`` needs no sound."""

    @expose_options(build_layout, "audio columns reference hypotheses language")
    def __init__(
        self,
        frame: pd.DataFrame,
        *,
        max_rating: int = 5,
        static_rows: int = 8,
        title: str = "Rows",
        silent: bool = True,
        categories: Iterable[Any] = (),
        answers: tuple[str, ...] = (),
        **roles: Unpack[ColumnRoles],
    ) -> None:
        for name, value, allowed in (
            ("max_rating", max_rating, {0, *range(2, _MAX_RATING + 1)}),
            ("static_rows", static_rows, range(_MAX_STATIC_ROWS + 1)),
        ):
            if not is_whole_number(value) or value not in allowed:
                raise build_argument_error(
                    name, value, f"a whole number from {min(allowed)} to {max(allowed)}"
                )
        if roles.get("columns") is not None:
            roles["columns"] = to_column_names(
                roles["columns"], "columns"
            )  # they are read once more for another frame
        self._roles: dict[str, Any] = {**roles, "silent": silent, "categories": tuple(categories)}
        self.title = title
        self.answers = answers  # notes that the keys y and x write; empty for none
        self.static_rows = static_rows
        self.rows = self.build_rows(frame, max_rating)

    def build_rows(self, frame: pd.DataFrame, max_rating: int) -> Rows:
        """Return the rows of a frame, whose columns have the roles of this table."""
        frame = to_table(frame)
        if len(frame) > _MAX_ROWS:
            message = f"{len(frame):,} rows are more than the {_MAX_ROWS:,} that a page can hold; give a part of them"
            raise InvalidRequestError(message, parameter="frame")
        return Rows(frame.copy(deep=False), build_layout(frame, aside=ANNOTATIONS, **self._roles), max_rating)

    @property
    def has_sound(self) -> bool:
        """Whether the table has a column of recordings."""
        return self.rows.layout.audio is not None

    def to_browser_state(self) -> dict[str, Any]:
        """Return what the browser needs before the rows."""
        layout = self.rows.layout
        columns = [column.to_browser_state() for column in layout.columns]
        return {
            "columns": columns,
            "count": len(self.rows),
            "reference": layout.reference,
            "sound": self.has_sound,
            **({"answers": [*self.answers]} if self.answers else {}),
        }

    def render_static(
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
        return render_static_table(self.rows, rows, title or self.title, first, view, **room)

    def render_page(
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
        described = {**self.to_browser_state(), "title": title}
        return _render_page(self.rows, described, above, below, max_bytes, editable=editable)

    def render_shell(self, title: str, above: Html | None = None, below: Html | None = None) -> str:
        """Return the page without its data: what :meth:`render_page` writes around rows and sounds."""
        return _render_shell(title, above, below, "", "")

    def collect_page_data(self, title: str) -> dict[str, Any]:
        """Return the data of the page that follow from the rows: all but the outlines of sounds."""
        state = {**self.to_browser_state(), "title": title, "max_rating": self.rows.max_rating}
        return {"state": {**state, "editable": False}, **_collect_rows_and_differences(self.rows)}


def _render_page(
    rows: Rows,
    described: dict[str, Any],  # the traits of the widget
    above: Html | None,
    below: Html | None,
    max_bytes: int | None,
    *,
    editable: bool,
) -> str:
    if max_bytes is None and len(rows) >= _MIN_ROWS_TO_ESTIMATE:
        _check_page_size(rows)
    state = {**described, "max_rating": rows.max_rating, "editable": editable}
    data: dict[str, Any] = {"state": state, **_collect_page_content(rows)}
    if editable:
        data["keys"] = [[key, rows.get_first_text(row)] for row, key in enumerate(rows.list_keys())]
    # The page's name in the browser's storage: the same table has the same marks.
    data["name"] = hashlib.sha256(to_json_text(data["rows"]).encode("utf-8")).hexdigest()[:24]
    held = to_json_text(data)

    def render_with_sounds(above: Html | None, sounds: object) -> str:
        return _render_shell(described["title"], above, below, held, to_json_text(sounds))

    most = _MAX_BYTES if max_bytes is None else max_bytes
    sounds = _encode_fitting_sounds(rows, most - len(render_with_sounds(above, ()).encode("utf-8")) - _MARGIN)
    silent = range(len(sounds), len(rows))
    if silent and max_bytes is None:
        message = (
            f"the sounds up to row {len(sounds):,} are all that a page can hold; save a part of the table"
        )
        raise InvalidRequestError(message, parameter="frame")
    if silent:
        left_out = sum(not rows.sounds.compute_outline(row, _BINS).error for row in silent)
        warning = (
            f"The sound of {left_out:,} of {len(rows):,} rows is not in this page: it would be larger than "
            f"{most / 1e6:,.0f} MB."
        )
        above = (above or Html()) + element("p", element("strong", warning))
    return render_with_sounds(above, [*sounds, *[("", _NO_ROOM)] * len(silent)])


def _render_shell(title: str, above: Html | None, below: Html | None, held: str, sounds: str) -> str:
    """Return a page around its data and its sounds, both as JSON."""
    return render_widget_page(
        title,
        MODULE,
        _BROWSER / "page.js",
        STYLE,
        {"data": held},
        later={"sounds": sounds},
        noscript="The rows need JavaScript, which this page holds itself.",
        above=above,
        below=below,
        with_heading=True,
    )


def _check_page_size(rows: Rows) -> None:
    """Refuse a table that is clearly larger than a page, before all of its sounds are read."""
    tried = range(0, len(rows), max(len(rows) // _SAMPLE_SOUNDS, 1))
    expected = sum(len(data) for data, _ in _encode_sounds(rows, tried)) / max(len(tried), 1) * len(rows)
    if expected > _ESTIMATE_MARGIN * _MAX_BYTES:
        message = (
            f"the sounds of {len(rows):,} rows take about {expected / 1e6:,.0f} MB, and a page holds "
            f"{_MAX_BYTES / 1e6:.0f} MB; save a part of the table"
        )
        raise InvalidRequestError(message, parameter="frame")


def _collect_page_content(rows: Rows) -> dict[str, Any]:
    """Return the rows, outlines and differences of a page."""

    def encode_outline(row: int) -> list[Any]:
        outline = rows.sounds.compute_outline(row, _BINS)
        return [to_base64(outline.peaks), round(outline.seconds, 3), outline.error]

    with ThreadPoolExecutor() as pool:  # files are read and samples compared without the interpreter's lock
        outlines = list(
            _count_rows(pool.map(encode_outline, range(len(rows))), rows, "waveforms of the page")
        )
    return {**_collect_rows_and_differences(rows), "outlines": outlines}


def _count_rows(made: Iterable[Made], rows: Rows, label: str) -> Iterator[Made]:
    """Count the rows of a page whose parts are made, once that takes long."""
    with show_progress(True, len(rows), label, unit="row", delay_s=_PROGRESS_AFTER_S) as advance:
        for part in made:
            advance()
            yield part


def _collect_rows_and_differences(rows: Rows) -> dict[str, Any]:
    """Return the rows and differences of a page."""
    nothing = {f"n:{name}": [NO_ANNOTATION[name]] * len(rows) for name in ANNOTATIONS}
    reference, places = rows.layout.reference, range(len(rows))
    compared = [column.title for column in rows.layout.columns if reference and column.compared]
    return {
        "rows": {**rows.slice_cells(0, len(rows)), **nothing},
        "differences": {title: rows.compare_column(places, reference, title) for title in compared},
    }


def _encode_fitting_sounds(rows: Rows, room: int) -> list[tuple[str, str]]:
    """Return the sound and the note of each row. Rows whose sound does not fit have a note only."""
    sounds: list[tuple[str, str]] = []
    room -= (len(_NO_ROOM) + 8) * len(rows)
    for data, note in _count_rows(_encode_sounds(rows, range(len(rows))), rows, "sounds of the page"):
        room -= len(data) + 3 * len(note)
        if data and room < 0:
            break
        sounds.append((data, note))
    return sounds


def _encode_sounds(rows: Rows, places: range) -> Iterator[tuple[str, str]]:
    def encode_sound(row: int) -> tuple[str, str]:
        try:
            sound = rows.sounds.read_sound(row, preview=True)
        except (AudioError, OSError) as error:
            return "", describe_error(error)
        return to_base64(sound.data), sound.note

    with ThreadPoolExecutor() as pool:  # encoders do not hold the interpreter's lock
        for first in range(0, len(places), _SOUNDS_AT_ONCE):
            yield from pool.map(encode_sound, places[first : first + _SOUNDS_AT_ONCE])
