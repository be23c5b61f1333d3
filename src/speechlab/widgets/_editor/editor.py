"""The editor widget: a player whose first tier can be edited; and the edited segments, as rows with ids."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import traitlets

from speechlab._arguments import build_argument_error, is_number, is_pandas_frame, is_whole_number
from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab._traces import warn_user
from speechlab.errors import InvalidRequestError
from speechlab.remote import hide_secrets
from speechlab.segments import frame as segment_frame
from speechlab.widgets._player.player import Player
from speechlab.widgets._shared.browser import bundle_module, read_colors_and_style_sheets
from speechlab.widgets._shared.live import RefreshableWidget

if TYPE_CHECKING:
    from speechlab.contract import AudioFormat
    from speechlab.widgets._player.tiers import Tier

_BROWSER = Path(__file__).parent / "browser"
_PLAYER_SHEET = Path(__file__).parents[1] / "_player" / "browser" / "player.css"
_TIER_NAME = "segments"
_MAX_SEGMENTS = 20_000
_MAX_CHARACTERS = 20_000
_TOLERANCE_S = 1e-6
# Seconds after the end that rounding explains.
_ROUNDING_S = 0.01
_EDITOR_COLUMNS = ("start", "end", "text", "speaker")


class SegmentEditor(RefreshableWidget, Player):
    """An editor of the segments of a recording, with the segment frame in Python.

    The editor is a :class:`Player` of one recording whose first tier can be edited. The tiers of a reference are
    shown below it and cannot be edited. Drag an edge or a segment, drag over an empty place of the tier to add a
    segment, or select a segment and use the fields, buttons and keys. Edges snap to those of neighbors and of the
    reference::

        editor = sl.widgets.SegmentEditor("talk.wav", recognized.segments, reference=marked)
        editor  # shows it
        editor.frame  # the segment frame with all edits
        editor.changes  # the differences from the given frame
        editor.frame = sl.segments.merge(editor.frame, gap=0.2)  # shows at once
        editor.observe(lambda change: sl.segments.write(editor.frame, "talk.srt"), "edits")

    **Concurrent edits.** A frame set in Python replaces the edits in the browser. A drag or a text in progress is
    dropped, and so are edits that Python had not yet received; the browser shows a message. Earlier edits can then
    not be undone.

    Keys in addition to those of the player: ``[`` and ``]`` set the start and the end of the selected segment to the
    position; Shift with the arrows moves it by a hundredth of a second; C splits it at the position, M merges it with
    the next, A adds a segment, Delete deletes it, E edits its text, 1 and 2 play around its start and its end, Z
    zooms to it; Ctrl+Z undoes, Ctrl+Shift+Z redoes.

    Args:
        audio: The recording: a clip, the path or the bytes of a file, or a transcript with its ``audio``.
        segments: The segments to edit, of one recording: anything that :func:`speechlab.segments.frame` accepts, or a
            transcript with ``segments``. None for no segments.
        reference: Tiers for comparison, as the argument ``segments`` of ``Player``.
        snap_s: Edited times are rounded to multiples of this many seconds, such as 0.02 for a VAD with frames of
            20 ms; 0 for no rounding.
        lang: BCP 47 tag of the texts.
        title: Title above the editor; by default that of the clip.
        format: Format of the sound sent to the browser, as for ``Player``.
        spectrogram: Whether the spectrogram is visible at first.

    Attributes:
        edits: Number of edits received from the browser since the frame was set. Observe it to save the edits.
        selected: Position in ``frame`` of the selected row, or -1.

    Raises:
        AudioError: The audio cannot be used, or a reference has no times.
        FileNotFoundError: The file does not exist.
        InvalidRequestError: The segments are of several recordings, or an argument has a wrong type.
        SegmentError: The segments are not a segment frame.

    Example:
        >>> clip = sl.AudioClip(np.zeros(8_000), 8_000)
        >>> editor = SegmentEditor(clip, sl.segments.frame([(0.2, 0.8, "hello")]))
        >>> editor.segments[0]["text"]
        'hello'
    """

    _esm = bundle_module(_BROWSER / "editor.js")
    _css = read_colors_and_style_sheets(_PLAYER_SHEET, _BROWSER / "editor.css")

    edits = traitlets.Int(0)
    snap_s = traitlets.Float(0.0).tag(sync=True)
    lang = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        audio: Any,
        segments: Any = None,
        *,
        reference: Any = None,
        snap_s: float = 0.0,
        lang: str | None = None,
        title: str | None = None,
        format: AudioFormat | str = "flac",  # noqa: A002 - the contract's name
        spectrogram: bool = False,
    ) -> None:
        if isinstance(audio, Mapping):
            message = "an editor has one recording; give a clip, a path or bytes instead of a mapping"
            raise InvalidRequestError(message, parameter="audio")
        if not is_number(snap_s) or not 0 <= snap_s <= 10:
            raise build_argument_error("snap_s", snap_s, "0 to 10 seconds")
        if segments is None:
            segments = getattr(audio, "segments", None)
        self._lock = threading.RLock()
        self._revision = 0
        lang = lang or getattr(segments, "language", None)
        edited = _to_segment_frame(segments)
        # an empty mapping, because a player would use the segments of the transcript for None
        tiers = {} if reference is None else reference
        super().__init__(audio, tiers, lang=lang, title=title, format=format, spectrogram=spectrogram)
        self.snap_s, self.lang = float(snap_s), self._lang
        self._file = str(hide_secrets(audio)) if isinstance(audio, str | os.PathLike) else self.title
        self._rows = EditedRows(edited, self._file, self.duration)

    # -- segments

    def _list_tiers(self) -> list[Tier]:
        segments = [
            {"start": row.start, "end": row.end, "text": row.text, "speaker": row.speaker}
            for _, row in self._rows.list_sorted_rows()
        ]
        return [{"name": _TIER_NAME, "lang": self._lang, "segments": segments}, *self.layers]

    @property
    def frame(self) -> pd.DataFrame:
        """The segments as a segment frame, sorted by start and end. A frame that is set replaces the segments.

        Rows keep the columns that the editor does not show. The second part of a split copies those of the first
        part, and a merged segment has those of its first. An added segment only has the recording.

        Raises:
            SegmentError: The value that is set is not a segment frame.
            InvalidRequestError: The frame has several recordings or too many rows.
        """
        with self._lock:
            return self._rows.to_frame()

    @frame.setter
    def frame(self, frame: Any) -> None:
        rows = EditedRows(_to_segment_frame(frame), self._file, self.duration)
        with self._lock:
            self._rows = rows
            self._revision += 1
            self.selected, self.edits = -1, 0
            self._send_rows()
            self._schedule_refresh()

    @property
    def changes(self) -> pd.DataFrame:
        """The edits since the frame was set: one row for each edited segment, by time.

        ``change`` is ``added``, ``changed`` or ``deleted``. ``row`` is the position in the given frame, missing for
        an added segment. ``start_before``, ``end_before``, ``text_before`` and ``speaker_before`` are the given
        values, ``start``, ``end``, ``text`` and ``speaker`` the present ones. The first part of a split and a merged
        segment count as changed.
        """
        with self._lock:
            return self._rows.list_changes()

    @property
    def segments(self) -> list[dict[str, Any]]:
        """The segments of the listed tier. Setting them sets :attr:`frame`."""
        tiers = self._list_tiers()
        return list(tiers[self.tier]["segments"])

    @segments.setter
    def segments(self, segments: Any) -> None:
        self.frame = segments

    # -- from and to the browser

    def _on_rows(self, _asked: dict[str, Any]) -> None:
        with self._lock:
            self._send_rows()

    def _on_edit(self, edit: dict[str, Any]) -> None:
        """Apply an edit, unless the segments have been replaced since; if it fails, send all segments again."""
        with self._lock:
            if edit.get("revision") != self._revision:
                return
            try:
                put, removed = list(edit["put"]), list(edit["removed"])
                self._rows.apply_edit(put, removed)
            except (KeyError, TypeError, ValueError) as error:
                self._revision += 1
                self._send_rows(f"The edit was not applied: {error}")
                return
            facts = {"revision": self._revision, "by": edit.get("by"), "number": edit.get("number")}
            self.send({"type": "kept", **facts, "put": put, "removed": removed})
            self.edits += 1
            self._schedule_refresh()

    def _send_rows(self, error: str = "") -> None:
        rows = [[number, *row] for number, row in self._rows.list_sorted_rows()]
        self.send({"type": "rows", "revision": self._revision, "error": error}, [orjson.dumps(rows)])


def _to_segment_frame(segments: Any) -> pd.DataFrame:
    inner = segments if is_pandas_frame(segments) else getattr(segments, "segments", segments)
    return segment_frame([] if inner is None else inner)


class EditedRow(NamedTuple):
    """One segment in the form of the browser, in seconds."""

    start: float
    end: float
    text: str
    speaker: str
    like: int  # position in the given frame of the row whose other columns it has; -1 for none


class EditedRows:
    """The segments of one recording, with ids that they keep when moved; of given ones, the positions."""

    def __init__(self, given: pd.DataFrame, file: str, duration_s: float) -> None:
        files = [name for name in given["file"].unique() if name]
        if len(files) > 1:
            message = (
                f"the segments are of {len(files)} recordings ({files[0]!r}, {files[1]!r} …); give those of one: "
                'frame[frame["file"] == name]'
            )
            raise InvalidRequestError(message, parameter="segments")
        if len(given) > _MAX_SEGMENTS:
            message = f"{len(given):,} segments are more than the {_MAX_SEGMENTS:,} that a page can hold; give a part"
            raise InvalidRequestError(message, parameter="segments")
        late = given["end"] > duration_s + _ROUNDING_S
        if late.any():
            first = given["end"][late].iloc[0]
            message = (
                f"{int(late.sum()):,} of {len(given):,} segments end after the recording of {duration_s:.2f} s, the "
                f"first at {first:.2f} s; sl.segments.crop(frame, {duration_s:.2f}) cuts them"
            )
            warn_user(message, stacklevel=3)
        self.given = given
        self._file = files[0] if files else file
        self._duration_s = duration_s
        speakers = given["speaker"] if "speaker" in given else [""] * len(given)
        cells = zip(given["start"], given["end"], given["text"], speakers, strict=True)
        self._rows = {
            number: EditedRow(float(start), float(end), str(text), str(speaker), number)
            for number, (start, end, text, speaker) in enumerate(cells)
        }
        self._first = dict(self._rows)

    def list_sorted_rows(self) -> list[tuple[int, EditedRow]]:
        """Return ids and rows by start and end."""
        return sorted(self._rows.items(), key=lambda item: (item[1].start, item[1].end))

    def apply_edit(self, put: Iterable[Any], removed: Iterable[Any]) -> None:
        """Apply rows ``[id, start, end, text, speaker, like]`` and removals by id: all, or none (ValueError)."""
        rows = dict(self._rows)
        for number in removed:
            rows.pop(number, None)
        for number, *values in put:
            if not is_whole_number(number):
                raise ValueError(f"{number!r} is not an id")
            rows[int(number)] = self._build_edited_row(rows.get(number), self._first.get(number), *values)
        if len(rows) > _MAX_SEGMENTS:
            raise ValueError(f"there are too many segments; the maximum is {_MAX_SEGMENTS:,}")
        self._rows = rows

    def _build_edited_row(
        self,
        before: EditedRow | None,
        first: EditedRow | None,
        start: Any,
        end: Any,
        text: Any,
        speaker: Any,
        like: Any,
    ) -> EditedRow:
        for value in (start, end):
            if not is_number(value) or not math.isfinite(value):
                raise ValueError(f"{value!r} is not a time")
        ends = [row.end for row in (before, self._first.get(like)) if row]
        latest = max([self._duration_s, *ends]) + _TOLERANCE_S
        if not 0 <= start <= end <= latest:
            raise ValueError(f"a segment cannot go from {start} to {end} s")
        for value in (text, speaker):
            if not isinstance(value, str) or len(value) > _MAX_CHARACTERS:
                raise ValueError(f"texts have at most {_MAX_CHARACTERS:,} characters")
        copied = is_whole_number(like) and 0 <= like < len(self.given)
        # Edited times are whole microseconds, because sums and multiples in the browser end in …0001.
        begin, stop = (
            float(value) if first and value in (first.start, first.end) else round(float(value), 6)
            for value in (start, end)
        )
        return EditedRow(begin, stop, text, speaker, int(like) if copied else -1)

    def to_frame(self) -> pd.DataFrame:
        """Return the segments as a segment frame, by start and end."""
        rows = [row for _, row in self.list_sorted_rows()]
        likes = [row.like for row in rows]
        table = self.given
        if -1 in likes:  # nullable integers and booleans, because added rows have no values in them
            kinds = {name: column.dtype for name, column in table.items()}
            table = table.astype(
                {
                    name: "boolean" if kind.kind == "b" else kind.name.replace("i", "I").replace("u", "U")
                    for name, kind in kinds.items()
                    if isinstance(kind, np.dtype) and kind.kind in "biu"
                }
            )
        table = table.reindex(likes).reset_index(drop=True)
        table["file"] = table["file"].fillna(self._file)
        for name in ("start", "end"):
            table[name] = np.array([getattr(row, name) for row in rows], dtype=np.float64)
        table["text"] = pd.Series([row.text for row in rows], dtype=get_text_dtype())
        if "speaker" in table or any(row.speaker for row in rows):
            table["speaker"] = pd.Series([row.speaker for row in rows], dtype=get_text_dtype())
        return segment_frame(table, file=self._file or None)

    def list_changes(self) -> pd.DataFrame:
        """Return the differences from the given frame, see :attr:`SegmentEditor.changes`."""
        edits: list[tuple[str, int | None, EditedRow | None, EditedRow | None]] = []
        for number, before in self._first.items():
            now = self._rows.get(number)
            if now is None:
                edits.append(("deleted", number, before, None))
            elif now[:-1] != before[:-1]:
                edits.append(("changed", number, before, now))
        edits += [
            ("added", None, None, row) for number, row in self._rows.items() if number not in self._first
        ]
        edits.sort(key=lambda edit: (edit[3] or edit[2] or ())[:2])
        table: dict[str, Any] = {
            "change": pd.Series([edit[0] for edit in edits], dtype=get_text_dtype()),
            "row": pd.array([edit[1] for edit in edits], dtype="Int64"),
        }
        for suffix, place in (("_before", 2), ("", 3)):
            for name in _EDITOR_COLUMNS:
                values = [getattr(edit[place], name) if edit[place] else None for edit in edits]
                kind = "float64" if name in {"start", "end"} else "str"
                table[f"{name}{suffix}"] = pd.Series(values, dtype=kind)
        return pd.DataFrame(table)
