"""The table widget: its traits, and the replies to requests of the browser."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import orjson
import traitlets
from ipywidgets import Widget, widget_serialization

from speechlab._arguments import build_argument_error, is_missing, require_columns
from speechlab._files import expand_user_path, write_atomically
from speechlab.errors import InvalidRequestError
from speechlab.widgets._shared.live import RefreshableWidget
from speechlab.widgets._table.marks import load_marks
from speechlab.widgets._table.rows import ANNOTATIONS, Rows
from speechlab.widgets._table.shown import MODULE, STYLE, TableOptions, TableView, expose_options

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.display import Html

_FIRST_ROWS = 200
_MAX_REQUEST_ROWS = 400
_MAX_BINS = 2_000


class AudioTable(RefreshableWidget):
    """A table of recordings that can be played, searched, sorted, compared, marked and rated in the notebook.

    The table is any DataFrame with a column of clips, paths or bytes::

        table = sl.show(frame)
        table  # shows it
        table.selected  # index label of the selected row
        table.marked  # index labels of the marked rows
        table.frame  # the frame with marks, ratings and notes

    Sound, waveforms and differences are loaded for the visible rows only, so a table of thousands of rows opens at
    once. The saved notebook has the first rows as plain HTML with their sound, in the order and with the filters of
    the browser, and all marks, ratings and notes. An attribute set in Python takes effect in the browser at once.

    Columns with names of hypotheses (``hypothesis``, ``transcript…``, ``asr…``) are shown as differences from the
    reference: by words, in Japanese and Chinese by characters, with the class of the difference if the extra of the
    language is installed.

    Keys, while a row has the focus: arrows or j and k select a row, Space plays and pauses, a plays again, b plays
    the marked rows in turn, left and right seek, m marks, digits rate, n writes a note, u takes the last
    of these back, / searches.

    Args:
        frame: The table. Values in its columns ``mark``, ``rating`` and ``note`` are kept.
        audio: Name of the column of recordings; None to detect it.
        columns: Names of the columns that are visible at first, in order; None for a default choice. A menu shows the
            others.
        reference: Name of the column of references; None to detect it.
        hypotheses: Name or names of the columns of hypotheses; None to detect them by name.
        language: Name of the column of languages, or the language of all rows; None for the column ``language``.
        max_rating: The best rating, 2 to 10; 0 for no ratings.
        static_rows: Number of rows in the saved notebook, 0 to 50.
        marks: File of marks, ratings and notes that a page of :meth:`save` gave its reader, for the rows with the
            same index labels.

    Attributes:
        edits: Number of marks, ratings and notes received from the browser. Observe it to save them.

    Raises:
        InvalidRequestError: An argument is not allowed, the table has no recordings, or the file of marks belongs to
            another table.
        OSError: The file of marks cannot be read.

    Example:
        >>> clip = sl.AudioClip(np.zeros(800), 8_000)
        >>> table = AudioTable(pd.DataFrame({"text": ["silence"], "audio": [clip]}))
        >>> table.marked
        []
    """

    _esm = MODULE
    _css = STYLE

    columns = traitlets.List(traitlets.Dict()).tag(sync=True)
    count = traitlets.Int(0).tag(sync=True)
    revision = traitlets.Int(0).tag(sync=True)
    reference = traitlets.Unicode("").tag(sync=True)
    max_rating = traitlets.Int(5).tag(sync=True)
    editable = traitlets.Bool(default_value=True).tag(sync=True)
    chosen = traitlets.Int(-1).tag(sync=True)
    sound = traitlets.Bool(default_value=True).tag(sync=True)
    title = traitlets.Unicode("Sounds").tag(sync=True)
    answers = traitlets.List(traitlets.Unicode()).tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    edits = traitlets.Int(0)
    _controls = traitlets.List(traitlets.Instance(Widget)).tag(sync=True, **widget_serialization)

    @expose_options(TableView.__init__, "audio columns reference hypotheses language max_rating static_rows")
    def __init__(
        self,
        frame: pd.DataFrame | TableView,
        *,
        marks: str | os.PathLike[str] | None = None,
        **options: Unpack[TableOptions],
    ) -> None:
        if not isinstance(frame, TableView):
            frame = TableView(frame, title="Sounds", silent=False, **options)
        if marks is not None:
            load_marks(frame.rows, marks)
        self._table = frame
        self._lock = threading.RLock()
        title, failed = frame.title, len(self._rows.failed)
        if failed:
            title += f": {failed:,} of {len(self._rows):,} rows failed, sl.batch.failures(table) lists why"
        super().__init__(max_rating=self._rows.max_rating, title=title, **frame.to_browser_state())
        self.observe(lambda _: self._schedule_refresh(), "view")

    @property
    def _rows(self) -> Rows:
        return self._table.rows

    def __repr__(self) -> str:
        marked = sum(self._rows.noted["mark"])
        return f"{type(self).__name__}({len(self._rows):,} rows, {marked:,} marked)"

    def static_html(self) -> Html:
        """Return the first rows as plain HTML."""
        return self._table.render_static(self._table.static_rows, title=self.title, view=self.view)

    # -- selection, marks, ratings and notes

    @property
    def selected(self) -> Any:
        """Index label of the selected row, or None. Setting it selects and shows a row. See :attr:`frame`."""
        return self._row_to_label(self.chosen) if 0 <= self.chosen < len(self._rows) else None

    @selected.setter
    def selected(self, label: Any) -> None:
        self.chosen = -1 if label is None else self._label_to_row(label)

    @property
    def marked(self) -> list[Any]:
        """Index labels of the marked rows, in the order of the table; setting it shows the marks."""
        return [self._row_to_label(row) for row, mark in enumerate(self._rows.noted["mark"]) if mark]

    @marked.setter
    def marked(self, labels: Iterable[Any]) -> None:
        given: object = labels
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise build_argument_error("marked", labels, "a list of index labels, empty for none")
        positions = {self._label_to_row(label) for label in labels}
        with self._lock:
            for row, mark in enumerate(self._rows.noted["mark"]):
                if mark != (row in positions):
                    self._set_and_show_annotation(row, "mark", not mark)

    @property
    def frame(self) -> pd.DataFrame:
        """A copy of the table with the columns ``mark``, ``rating`` and ``note``. Setting it shows another table.

        If an index label occurs twice, positions identify the rows instead of labels.
        """
        with self._lock:
            return self._rows.to_frame()

    @frame.setter
    def frame(self, frame: pd.DataFrame) -> None:
        with self._lock:
            self._table.rows = self._table.build_rows(frame, self.max_rating)
        with self.hold_sync():
            for name, value in self._table.to_browser_state().items():
                setattr(self, name, value)
            self.chosen, self.view = -1, {}
            self.revision += 1
        self._schedule_refresh()

    def rate(self, label: Any, rating: int | None) -> None:
        """Rate a row, as a click does; None removes the rating.

        Raises:
            InvalidRequestError: The row does not exist, or the rating is not allowed.
        """
        with self._lock:
            self._set_and_show_annotation(self._label_to_row(label), "rating", rating)

    def note(self, label: Any, text: str) -> None:
        """Write the note of a row.

        Raises:
            InvalidRequestError: The row does not exist, or the note begins with none of the decisions for which the
                table asks.
        """
        decision = "" if is_missing(text) else str(text).strip().lower()
        if decision and self.answers and not decision.startswith(tuple(self.answers)):
            allowed = " or ".join(map(repr, self.answers))
            raise build_argument_error("text", text, f"a note that begins with {allowed}, or an empty one")
        with self._lock:
            self._set_and_show_annotation(self._label_to_row(label), "note", text)

    def update(
        self, label: Any, cells: Mapping[Any, Any], *, sound: Any = None, played: bool = False
    ) -> None:
        """Replace some cells of a row, its sound too, and show them at once.

        Args:
            label: Index label of the row.
            cells: New values by the names of their columns.
            sound: The sound to play, if it is another than that in the cells.
            played: The sound was played elsewhere, so that a row whose sound is awaited does not play it again.

        Raises:
            InvalidRequestError: The row or a column does not exist.
        """
        with self._lock:
            row, rows = self._label_to_row(label), self._rows
            require_columns(rows.frame, *cells)
            changed = rows.replace_cells(row, cells, sound)
        self.send(
            {"type": "changed", "row": row, "cells": changed, "played": played, "revision": self.revision}
        )
        self._schedule_refresh()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one page with the table and its sounds, which needs no kernel and no network.

        The sounds are previews (Opus, 1.6 kB a second). The content security policy of the page forbids all requests.
        The reader can mark, rate and note rows. The page keeps that in the browser, and saves it as a file for
        ``sl.show(frame, marks=file)``. Your own marks are not in the page.

        Args:
            path: The file; an existing one is replaced.

        Raises:
            InvalidRequestError: The table is too large for a page.
            OSError: The file cannot be written.
        """
        file = expand_user_path(path)
        page = self._table.render_page(self.title, editable=True)
        with write_atomically(file) as draft:
            draft.write_text(page, encoding="utf-8")
        return file

    # -- from and to the browser

    def _row_to_label(self, row: int) -> Any:
        index = self._rows.frame.index
        if not index.is_unique:
            return row
        label = index[row]
        return label.item() if isinstance(label, np.generic) else label

    def _label_to_row(self, label: Any) -> int:
        index = self._rows.frame.index
        try:
            position: Any = index.get_loc(label) if index.is_unique else range(len(index))[label]
        except (KeyError, IndexError, TypeError):
            message = f"there is no row {label!r}; give a label of the table's index"
            raise InvalidRequestError(message, parameter="label") from None
        return int(position)

    def _set_and_show_annotation(self, row: int, name: str, value: Any) -> None:
        """Keep marks, ratings and notes set in Python, and show them in the browser."""
        checked = self._rows.check_annotation(name, value)
        self._rows.noted[name][row] = checked
        self.send({"type": "noted", "row": row, "name": name, "value": checked})
        self._schedule_refresh()

    def _answer_message(self, widget: object, content: Any, buffers: Any) -> None:
        if isinstance(content, dict) and content.get("revision") == self.revision:
            super()._answer_message(widget, content, buffers)

    def _on_rows(self, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        start = int(asked["start"])
        end = min(start + (_FIRST_ROWS if start == 0 else 5_000), len(self._rows))
        return {"start": start, "end": end}, orjson.dumps(self._rows.slice_cells(start, end))

    def _on_sound(self, asked: dict[str, Any]) -> dict[str, Any] | tuple[dict[str, Any], bytes]:
        row = int(asked["row"])
        silence = self._rows.sounds.find_missing_reason(row)
        if silence is not None:
            return {"error": silence.words, "makeable": silence.makeable, "coming": silence.coming}
        sound = self._rows.sounds.read_sound(row, preview=bool(asked.get("preview")))
        return {"content_type": sound.content_type, "note": sound.note}, sound.data

    def _on_outlines(self, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        bins = min(max(int(asked["bins"]), 1), _MAX_BINS)
        outlines = [
            self._rows.sounds.compute_outline(int(row), bins) for row in asked["rows"][:_MAX_REQUEST_ROWS]
        ]
        facts = [[outline.seconds, outline.error, len(outline.peaks)] for outline in outlines]
        return {"facts": facts}, b"".join(outline.peaks for outline in outlines)

    def _on_differences(self, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        rows = [int(row) for row in asked["rows"][:_MAX_REQUEST_ROWS]]
        compared = [
            {"row": row, "column": title, "pieces": pieces}
            for title in asked["columns"]
            for row, pieces in zip(
                rows, self._rows.compare_column(rows, asked["reference"], title), strict=True
            )
        ]
        return {}, orjson.dumps(compared)

    def _on_noted(self, noted: dict[str, Any]) -> dict[str, Any]:
        name, row = noted["name"], int(noted["row"])
        if name in ANNOTATIONS and 0 <= row < len(self._rows):
            with self._lock:  # also sent to the browser, which may show the table twice
                self._set_and_show_annotation(row, name, noted["value"])
            self.edits += 1
        return {}


class ShowOptions(TableOptions, total=False):
    """Options of :func:`show`."""

    marks: str | os.PathLike[str] | None


@expose_options(AudioTable.__init__)
def show(frame: pd.DataFrame, **options: Unpack[ShowOptions]) -> AudioTable:
    """Show any DataFrame with a column of recordings as an :class:`AudioTable`, which has the same arguments.

    Args:
        frame: The table; or what :func:`speechlab.datasets.read` takes, such as a folder of recordings.
        audio: Name of the column of recordings; None to detect it.
        columns: Names of the columns that are visible at first, in order; None for a default choice.
        reference: Name of the column of references; None to detect it.
        hypotheses: Name or names of the columns of hypotheses; None to detect them by name.
        language: Name of the column of languages, or the language of all rows; None for the column ``language``.
        max_rating: The best rating, 2 to 10; 0 for no ratings.
        static_rows: Number of rows in the saved notebook, 0 to 50.
        marks: File of marks, ratings and notes that a saved page gave its reader.

    Example:
        >>> clip = sl.AudioClip(np.zeros(800), 8_000)
        >>> type(show(pd.DataFrame({"audio": [clip]}))).__name__
        'AudioTable'
    """
    return AudioTable(frame, **options)
