"""The one place that reads sounds: of a cell, its bytes, its clip, its outline, or the reason why there is none."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing
from speechlab._files import read_regular_file
from speechlab.audio import (
    RECORDINGS_ALLOWED,
    AudioClip,
    DecodeLimits,
    build_sound_preview,
    detect_format,
    unify_recording,
)
from speechlab.contract import CONTENT_TYPES, AudioFormat
from speechlab.errors import AudioError, SpeechLabError
from speechlab.remote import locate_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Loudness at which sounds are compared; source: EBU R128, section 1.
LEVEL_LUFS = -23.0
# Maximum of a sample after a gain.
PEAK = 0.99
# Maximum size in bytes of sound that is sent unchanged; larger sound is sent as a preview.
_MAX_EXACT_BYTES = 8_000_000
# Limit above which recordings are played but not drawn, because drawing needs all samples.
_OUTLINE_LIMITS = DecodeLimits(max_seconds=1_200.0, max_decoded_bytes=2**28)
_MAX_OUTLINES = 20_000
_MAX_PREVIEWS = 50


class Sound(NamedTuple):
    """Sound for a browser: the bytes of a file, their media type, and a note such as that on a preview."""

    data: bytes
    content_type: str
    note: str = ""


class NoSound(NamedTuple):
    """A cell without sound: the reason, whether a press of play makes the sound, and whether it is being made."""

    words: str
    makeable: bool = False
    coming: bool = False


class Outline(NamedTuple):
    """A waveform: its peaks (see :func:`to_int8_peaks`), its length (0 if unknown), and why there is no sound."""

    peaks: bytes
    seconds: float
    error: str = ""


def resolve_recording(cell: Any) -> AudioClip | bytes | Path:
    """Return the clip, the bytes or the path in a cell, of a transcript its audio. AudioError: it has none."""
    inner = getattr(cell, "audio", cell)
    if isinstance(inner, NoSound):
        raise AudioError(inner.words)
    if is_missing(inner):
        raise AudioError("no sound")
    found = unify_recording(inner)
    if found is None:
        message = f"is not a recording; give {RECORDINGS_ALLOWED}; or a transcript with its audio"
        raise AudioError(f"a {type(cell).__name__} {message}")
    if isinstance(found, AudioClip | bytes):
        return found
    try:
        return locate_file(found)
    except SpeechLabError as error:
        raise AudioError(str(error)) from error


def describe_error(error: Exception) -> str:
    """Return a short description of an error, for a cell of a table."""
    if isinstance(error, FileNotFoundError):
        return "the file is gone"
    if isinstance(error, OSError):
        return f"the file cannot be read: {error.strerror or error}"
    return str(error)


def to_int8_peaks(peaks: NDArray[np.float32]) -> bytes:
    """Return an outline as int8: minimum and maximum of each section in turn."""
    return np.rint(peaks * 127).astype(np.int8).tobytes()


class Sounds:
    """The sounds of a column, read on request."""

    def __init__(self, cells: Sequence[Any]) -> None:
        self._cells = list(cells)
        self._outlines: OrderedDict[tuple[int, int], Outline] = OrderedDict()
        self._previews: OrderedDict[tuple[int, int], str] = OrderedDict()

    def find_missing_reason(self, row: int) -> NoSound | None:
        """Return the reason why a row has no sound, if its cell has one."""
        cell = self._cells[row]
        return cell if isinstance(cell, NoSound) else None

    def replace_sound(self, row: int, cell: Any) -> None:
        """Put another sound into a row."""
        self._cells[row] = cell
        cache: Any
        for cache in (self._outlines, self._previews):
            for key in list(cache):  # other threads may draw at the same time
                if key[0] == row:
                    cache.pop(key, None)

    def read_sound(self, row: int, *, preview: bool = False) -> Sound:
        """Return the sound of a row, or its preview. AudioError, OSError: it has none, or it cannot be read."""
        exact = None if preview else _get_playable_original(resolve_recording(self._cells[row]))
        if exact is not None and len(exact.data) <= _MAX_EXACT_BYTES:
            return exact
        clip = self.read_clip(row)
        data, seconds = build_sound_preview(clip, max_bytes=_MAX_EXACT_BYTES)
        note = "preview"
        if seconds < clip.duration_s:
            note = f"preview of the first {seconds:.0f} s of {clip.duration_s:.0f} s"
        return Sound(data, CONTENT_TYPES[AudioFormat.OGG], note)

    def build_preview_url(self, row: int, max_bytes: int) -> str:
        """Return the preview of a row as a data URL, which is kept for the next HTML of a notebook."""
        key = row, max_bytes
        url = self._previews.get(key)
        if url is None:
            url = self._previews[key] = build_sound_preview(self.read_clip(row), max_bytes=max_bytes).url
            if len(self._previews) > _MAX_PREVIEWS:
                self._previews.popitem(last=False)
        return url

    def read_clip(self, row: int, limits: DecodeLimits | None = None) -> AudioClip:
        """Return the sound of a row as a clip. AudioError, OSError: it has none, or it cannot be read."""
        recording = resolve_recording(self._cells[row])
        if isinstance(recording, bytes):
            clip = AudioClip.from_bytes(recording, limits)
        elif isinstance(recording, AudioClip):
            clip = recording
        else:
            clip = AudioClip.from_file(recording, limits=limits)
        if not clip.frames:
            raise AudioError("the clip is empty")
        return clip

    def compute_outline(self, row: int, bins: int) -> Outline:
        """Return the waveform of a row, or the reason for its absence."""
        key = row, bins
        outline = self._outlines.get(key)
        if outline is not None:
            return outline
        try:
            clip = self.read_clip(row, _OUTLINE_LIMITS)
        except (AudioError, OSError) as error:
            outline = Outline(b"", 0.0, describe_error(error))
        else:
            peaks = np.zeros((bins, 2), np.float32)
            count = min(bins, clip.frames)
            peaks[:count] = clip.peaks(count)
            outline = Outline(to_int8_peaks(peaks), clip.duration_s)
        self._outlines[key] = outline
        if len(self._outlines) > _MAX_OUTLINES:
            self._outlines.popitem(last=False)
        return outline


def _get_playable_original(recording: AudioClip | bytes | Path) -> Sound | None:
    """Return the original sound if a browser can play it, else None."""
    if isinstance(recording, AudioClip):
        if not recording.frames or recording.samples.size > _MAX_EXACT_BYTES:
            return None
        sound = recording if recording.channels <= 2 else recording.to_mono()
        return Sound(sound.encode(AudioFormat.WAV), CONTENT_TYPES[AudioFormat.WAV])
    if not isinstance(recording, bytes):
        if recording.stat().st_size > _MAX_EXACT_BYTES:
            return None
        recording = read_regular_file(recording)
    return Sound(recording, CONTENT_TYPES[AudioFormat(detect_format(recording))])
