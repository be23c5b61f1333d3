"""The sound of a cell: bytes for playback, outlines for drawing, or the reason why there is none."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing
from speechlab._files import user_path
from speechlab.audio import AudioClip, DecodeLimits, sniff, sound_preview
from speechlab.contract import CONTENT_TYPES, AudioFormat
from speechlab.errors import AudioError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MAX_EXACT_BYTES = 8_000_000
"""Maximum size in bytes of sound that is sent unchanged; larger sound is sent as a preview."""
_DRAWN = DecodeLimits(max_seconds=1_200.0, max_decoded_bytes=2**28)
"""Limit above which recordings are played but not drawn, because drawing needs all samples."""
_MAX_FILE_BYTES = 200_000_000
_MAX_KEPT = 20_000
_MAX_PREVIEWS = 50


class Sound(NamedTuple):
    """Sound for a browser.

    Attributes:
        data: The bytes of a file.
        content_type: Their media type.
        note: Note for the listener, for example on a preview; empty for the original sound.
    """

    data: bytes
    content_type: str
    note: str = ""


class NoSound(NamedTuple):
    """A cell without sound, with the reason.

    Attributes:
        words: The reason, as text.
        makeable: Whether a press of play makes the sound.
        coming: Whether the sound is being made.
    """

    words: str
    makeable: bool = False
    coming: bool = False


class Outline(NamedTuple):
    """The outline of a waveform.

    Attributes:
        peaks: int8, minimum and maximum of each section in turn.
        seconds: Duration in seconds; 0 if it is unknown.
        error: Reason for the missing sound; empty if there is sound.
    """

    peaks: bytes
    seconds: float
    error: str = ""


class Sounds:
    """The sounds of a column, read on request."""

    def __init__(self, cells: Sequence[Any]) -> None:
        self._cells = list(cells)
        self._outlines: OrderedDict[tuple[int, int], Outline] = OrderedDict()
        self._previews: OrderedDict[tuple[int, int], str] = OrderedDict()

    def missing(self, row: int) -> NoSound | None:
        """Return the reason why a row has no sound, if its cell has one."""
        cell = self._cells[row]
        return cell if isinstance(cell, NoSound) else None

    def replace(self, row: int, cell: Any) -> None:
        """Put another sound into a row."""
        self._cells[row] = cell
        kept: Any
        for kept in (self._outlines, self._previews):
            for key in list(kept):  # other threads may draw at the same time
                if key[0] == row:
                    kept.pop(key, None)

    def sound(self, row: int, *, preview: bool = False) -> Sound:
        """Return the sound of a row.

        Args:
            row: Position of the row.
            preview: Return the preview also for a small sound.

        Raises:
            AudioError: The row has no sound, or the value is not a recording.
            OSError: The file cannot be read.
        """
        cell = self._cells[row]
        if not preview:
            exact = _exact(cell)
            if exact is not None and len(exact.data) <= _MAX_EXACT_BYTES:
                return exact
        clip = self.clip(row)
        made = sound_preview(clip, max_bytes=_MAX_EXACT_BYTES)
        note = "preview"
        if made.seconds < clip.duration_s:
            note = f"preview of the first {made.seconds:.0f} s of {clip.duration_s:.0f} s"
        return Sound(made.data, CONTENT_TYPES[AudioFormat.OGG], note)

    def preview_url(self, row: int, max_bytes: int) -> str:
        """Return the preview of a row as a data URL, which is kept for the next HTML of a notebook.

        Raises:
            AudioError: The row has no sound, or the value is not a recording.
            OSError: The file cannot be read.
        """
        key = row, max_bytes
        url = self._previews.get(key)
        if url is None:
            url = self._previews[key] = sound_preview(self.clip(row), max_bytes=max_bytes).url
            if len(self._previews) > _MAX_PREVIEWS:
                self._previews.popitem(last=False)
        return url

    def clip(self, row: int, limits: DecodeLimits | None = None) -> AudioClip:
        """Return the sound of a row as a clip.

        Raises:
            AudioError: The row has no sound, or the value is not a recording.
            OSError: The file cannot be read.
        """
        cell = self._cells[row]
        if isinstance(cell, NoSound):
            raise AudioError(cell.words)
        if isinstance(cell, AudioClip):
            clip = cell
        elif isinstance(cell, bytes | bytearray | memoryview):
            clip = AudioClip.from_bytes(cell, limits)
        elif is_missing(cell):
            raise AudioError("no sound")
        else:
            clip = AudioClip.from_file(_path(cell), limits=limits)
        if not clip.frames:
            raise AudioError("the clip is empty")
        return clip

    def outline(self, row: int, bins: int) -> Outline:
        """Return the waveform of a row, or the reason for its absence."""
        key = row, bins
        outline = self._outlines.get(key)
        if outline is None:
            outline = self._outlines[key] = self._draw(row, bins)
            if len(self._outlines) > _MAX_KEPT:
                self._outlines.popitem(last=False)
        return outline

    def _draw(self, row: int, bins: int) -> Outline:
        try:
            clip = self.clip(row, _DRAWN)
        except (AudioError, OSError) as error:
            return Outline(b"", 0.0, reason(error))
        peaks = np.zeros((bins, 2), np.float32)
        found = clip.peaks(min(bins, clip.frames))
        peaks[: len(found)] = found
        return Outline(np.rint(peaks * 127).astype(np.int8).tobytes(), clip.duration_s)


def reason(error: Exception) -> str:
    """Return a short description of an error, for a cell of a table."""
    if isinstance(error, FileNotFoundError):
        return "the file is gone"
    if isinstance(error, OSError):
        return f"the file cannot be read: {error.strerror or error}"
    return str(error)


def _path(cell: Any) -> Path:
    if not isinstance(cell, str | os.PathLike):
        raise AudioError(f"a {type(cell).__name__} is not a recording; give a clip, a path or bytes")
    return user_path(cell)


def _exact(cell: Any) -> Sound | None:
    """Return the original sound if a browser can play it, else None."""
    if isinstance(cell, AudioClip):
        if not cell.frames or 4 * cell.samples.size > 4 * _MAX_EXACT_BYTES:
            return None
        sound = cell if cell.channels <= 2 else cell.to_mono()
        return Sound(sound.encode(AudioFormat.WAV), CONTENT_TYPES[AudioFormat.WAV])
    if isinstance(cell, NoSound):
        raise AudioError(cell.words)
    if is_missing(cell):
        raise AudioError("no sound")
    if isinstance(cell, bytes | bytearray | memoryview):
        data = bytes(cell)
    else:
        path = _path(cell)
        if path.stat().st_size > _MAX_EXACT_BYTES:
            return None
        data = path.read_bytes()
    return Sound(data, CONTENT_TYPES[AudioFormat(sniff(data))])
