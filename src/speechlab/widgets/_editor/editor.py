"""The editor widget: a player whose first tier can be edited."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import traitlets

from speechlab._arguments import is_frame, is_number, refused
from speechlab.errors import InvalidRequestError
from speechlab.segments import frame as segment_frame
from speechlab.widgets._editor.rows import EditedRows
from speechlab.widgets._player.player import Player
from speechlab.widgets._shared.live import RefreshedWidget
from speechlab.widgets._shared.module import module_source, style_sheet

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.contract import AudioFormat
    from speechlab.widgets._player.tiers import Tier

_BROWSER = Path(__file__).parent / "browser"
_PLAYER_SHEET = Path(__file__).parents[1] / "_player" / "browser" / "player.css"
_NAME = "segments"
_SETTLED_S = 1.5
"""How long after an edit the HTML in the notebook is made anew."""


class SegmentEditor(RefreshedWidget, Player):
    """Segments over their recording, to be moved, cut, joined and named, with the segment frame in Python.

    A :class:`Player` of one recording whose first tier can be edited; the tiers of a reference stand below it and
    cannot. Drag an edge or a segment, drag over an empty place of the tier to add one, or choose a segment and use
    the fields, buttons and keys. Edges hold on to those of neighbours and of the reference::

        editor = sl.widgets.SegmentEditor("talk.wav", heard.segments, reference=marked)
        editor  # shows it
        editor.frame  # a segment frame, as it is edited
        editor.changes  # what is other than in the frame that was given
        editor.frame = sl.segments.merge(editor.frame, gap=0.2)  # shows at once
        editor.observe(lambda change: sl.segments.write(editor.frame, "talk.srt"), "edits")

    **Who wins.** What Python sets wins: a drag or a text that is under way in the browser is dropped, so are edits
    that Python did not have by then, and the browser says so. There is nothing to undo before it.

    Keys beyond those of the player: ``[`` and ``]`` set the start and the end of the chosen segment to the position;
    Shift with the arrows moves it by a hundredth of a second; C splits it at the position, M merges it with the next,
    A adds one, Delete deletes it, E edits its text, 1 and 2 play around its start and its end, Z shows it large;
    Ctrl+Z undoes, Ctrl+Shift+Z does again.

    Args:
        audio: The recording: a clip, the path or the bytes of a file, or a transcript that carries its ``audio``.
        segments: What is edited: whatever :func:`speechlab.segments.frame` takes, or a transcript, by its
            ``segments``. None for none. Segments of one recording only.
        reference: Tiers that are seen and heard beside it: what ``Player`` takes as segments.
        snap_s: Times that are edited become multiples of it, such as 0.02 for a VAD with frames of 20 ms; 0 for none.
        lang: BCP 47 tag of the texts.
        title: Name shown above; by default that of the clip.
        format: Format in which the sound travels to the browser, as for ``Player``.
        spectrogram: Whether the spectrogram is seen at first.

    Attributes:
        edits: How many edits of the browser were taken over since the frame was given. Observe it to keep them.
        selected: Row of ``frame`` that is chosen, or -1.

    Raises:
        AudioError: No usable sound, or a reference without times.
        FileNotFoundError: There is no such file.
        InvalidRequestError: Several recordings, or an argument of another kind.
        SegmentError: The segments are no segment frame.

    Example:
        >>> clip = sl.AudioClip(np.zeros(8_000), 8_000)
        >>> editor = SegmentEditor(clip, sl.segments.frame([(0.2, 0.8, "hello")]))
        >>> editor.segments[0]["text"]
        'hello'
    """

    _esm = module_source(_BROWSER / "editor.js")
    _css = style_sheet(_PLAYER_SHEET, _BROWSER / "editor.css")

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
        format: AudioFormat | str = "flac",  # noqa: A002
        spectrogram: bool = False,
    ) -> None:
        if isinstance(audio, Mapping):
            message = "an editor has one recording; give a clip, a path or bytes instead of a mapping"
            raise InvalidRequestError(message, parameter="audio")
        if not is_number(snap_s) or not 0 <= snap_s <= 10:
            raise refused("snap_s", snap_s, "0 to 10 seconds")
        if segments is None:
            segments = getattr(audio, "segments", None)
        self._lock = threading.RLock()
        self._revision = 0
        self._later: threading.Timer | None = None
        lang = lang or getattr(segments, "language", None)
        given = _frame_of(segments)
        # none at all where there is none: a player would take the transcript's own
        tiers = {} if reference is None else reference
        super().__init__(audio, tiers, lang=lang, title=title, format=format, spectrogram=spectrogram)
        self.snap_s, self.lang = float(snap_s), self._lang
        self._file = str(audio) if isinstance(audio, str | os.PathLike) else self.title
        self._rows = EditedRows(given, self._file, self.duration)

    # -- segments

    def _all_tiers(self) -> list[Tier]:
        segments = [
            {"start": row.start, "end": row.end, "text": row.text, "speaker": row.speaker}
            for _, row in self._rows.in_order()
        ]
        return [{"name": _NAME, "lang": self._lang, "segments": segments}, *self.layers]

    @property
    def frame(self) -> pd.DataFrame:
        """The segments as a segment frame, by start and end; setting one shows it.

        Rows keep the columns that the editor does not show. The second part of a split has those of the first, a
        merged segment those of its first; one that was added has none but its recording.

        Raises:
            SegmentError: What is set is no segment frame.
            InvalidRequestError: It has several recordings, or too many rows.
        """
        with self._lock:
            return self._rows.frame()

    @frame.setter
    def frame(self, frame: Any) -> None:
        rows = EditedRows(_frame_of(frame), self._file, self.duration)
        with self._lock:
            self._rows = rows
            self._revision += 1
            self.selected, self.edits = -1, 0
            self._send_rows()
            self._show_later()

    @property
    def changes(self) -> pd.DataFrame:
        """What was edited since the frame was given: a row for each segment that is another one, by time.

        ``change`` is ``added``, ``changed`` or ``deleted``; ``row`` is its position in the given frame (none where
        added); ``start_before``, ``end_before``, ``text_before``, ``speaker_before`` are what it was, ``start``,
        ``end``, ``text``, ``speaker`` what it is. The first part of a split and a merged segment are changed ones.
        """
        with self._lock:
            return self._rows.changes()

    @property
    def segments(self) -> list[dict[str, Any]]:
        """The segments of the tier that is listed; setting them is setting :attr:`frame`."""
        tiers = self._all_tiers()
        return list(tiers[self.tier]["segments"])

    @segments.setter
    def segments(self, segments: Any) -> None:
        self.frame = segments

    # -- from and to the browser

    def _asked(self, widget: object, content: Any, buffers: object) -> None:
        kind = content.get("type") if isinstance(content, dict) else None
        if kind == "rows":
            with self._lock:
                self._send_rows()
        elif kind == "edit":
            with self._lock:
                self._take(content)
        else:
            super()._asked(widget, content, buffers)

    def _take(self, edit: dict[str, Any]) -> None:
        """Take over an edit, unless it was made of segments that are others by now; send all where it cannot be."""
        if edit.get("revision") != self._revision:
            return
        try:
            put, removed = list(edit["put"]), list(edit["removed"])
            self._rows.edit(put, removed)
        except (KeyError, TypeError, ValueError) as error:
            self._revision += 1
            self._send_rows(f"The edit was not taken over: {error}")
            return
        told = {
            "type": "kept",
            "revision": self._revision,
            "by": edit.get("by"),
            "number": edit.get("number"),
        }
        self.send({**told, "put": put, "removed": removed})
        self.edits += 1
        self._show_later()

    def _send_rows(self, error: str = "") -> None:
        rows = [[number, *row] for number, row in self._rows.in_order()]
        told = {"type": "rows", "revision": self._revision, "error": error}
        self.send(told, [orjson.dumps(rows)])

    # -- what stands in the saved notebook

    def _show_later(self) -> None:
        """Put the segments as they are now into the notebook, once no edit has come for a while."""
        if self._later is not None:
            self._later.cancel()
        if self._shown is not None:
            self._later = threading.Timer(_SETTLED_S, self._show_again)
            self._later.daemon = True
            self._later.start()


def _frame_of(segments: Any) -> pd.DataFrame:
    inner = segments if is_frame(segments) else getattr(segments, "segments", segments)
    return segment_frame([] if inner is None else inner)
