"""The bar of a call that takes minutes: a recording that is transcribed whole."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

from speechlab.audio import AudioClip, measure_length_s
from speechlab.errors import SpeechLabError
from speechlab.notebook import open_bar

# Seconds of waiting before a bar is shown, and of sound from which on there is one.
_DELAY_S, _LONG_S = 3.0, 60.0
# Share of the expected time at which the bar waits for the end of the call.
_MAX_SHARE = 0.99
_HINT = "sl.batch.transcribe_long takes it in pieces"


class WaitBar:
    """The bar of one call: by the pace of the last call, in seconds for each second of sound, if that is known."""

    def __init__(self, recording: object, pace: float | None) -> None:
        self._recording, self._pace = recording, pace
        self._began = time.monotonic()
        self._bar: Any = None
        self._off = threading.current_thread() is not threading.main_thread()

    def show(self) -> None:
        """Show how long the call has taken, once it takes long; a display that fails costs no call."""
        try:
            self._show_elapsed()
        except Exception:  # noqa: BLE001 - of a display, which may be any
            self._off = True

    def _show_elapsed(self) -> None:
        elapsed_s = time.monotonic() - self._began
        if self._off or elapsed_s < _DELAY_S:
            return
        if self._bar is None and not self._open_bar():
            self._off = True
            return
        if self._bar.total is not None:
            elapsed_s = min(elapsed_s, _MAX_SHARE * self._bar.total)
        self._bar.update(round(elapsed_s, 1) - self._bar.n)

    def _open_bar(self) -> bool:
        """Open the bar; there is none of a short recording, or of one that cannot be measured beside the call."""
        length_s = self.measure_sound_s()
        if length_s is None or length_s < _LONG_S:
            return False
        expected_s = None if self._pace is None else max(self._pace * length_s, _DELAY_S)
        label = f"transcribe {length_s / 60:.0f} min ({_HINT})"
        known, unknown = "{l_bar}{bar}| {elapsed}<{remaining}", "{desc}: {elapsed}"
        self._bar = open_bar(expected_s, label, "s", bar_format=unknown if expected_s is None else known)
        return True

    def measure_sound_s(self) -> float | None:
        """Return the length of the recording; None of an open file, which the call reads."""
        if not isinstance(self._recording, str | os.PathLike | bytes | AudioClip):
            return None
        with suppress(SpeechLabError, OSError, ValueError):
            return measure_length_s(self._recording)
        return None

    def close(self, *, ended: bool) -> None:
        """End the bar, as whole if the call has ended well."""
        if self._bar is None:
            return
        if ended and self._bar.total is not None:
            self._bar.update(self._bar.total - self._bar.n)
        self._bar.close()

    def compute_pace(self) -> float | None:
        """Return the pace of this call, if it took long enough to be measured."""
        elapsed_s = time.monotonic() - self._began
        length_s = self.measure_sound_s() if elapsed_s >= _DELAY_S else None
        return elapsed_s / length_s if length_s else self._pace


# The pace of the last recording of each client that took long enough to be measured.
_paces: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


@contextmanager
def show_transcription(client: object, audio: object = None, **_: object) -> Iterator[Callable[[], object]]:
    """Show the wait for the transcript of a long recording."""
    bar, ended = WaitBar(audio, _paces.get(client)), False
    try:
        yield bar.show
        ended = True
        if (pace := bar.compute_pace()) is not None:
            _paces[client] = pace
    finally:
        with suppress(Exception):
            bar.close(ended=ended)
