"""The recorder widget: chunks in, clips out."""

from __future__ import annotations

import contextlib
import math
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from speechlab._arguments import check_text, is_bool, is_number, refused
from speechlab.audio import AudioClip, clip_figure, sound_preview
from speechlab.display import Html, element
from speechlab.errors import AudioError
from speechlab.widgets._recorder.incoming import IncomingTake, checked_rate
from speechlab.widgets._shared.live import RefreshedWidget
from speechlab.widgets._shared.module import module_source, style_sheet

if TYPE_CHECKING:
    from collections.abc import Callable

_BROWSER = Path(__file__).parent / "browser"
_LONGEST_S = 3_600.0
_MAX_UNDER_WAY = 4
_MAX_SENT_BYTES = 8_000_000
_MAX_STATIC = 10
_OUTLINE = 240
_FULL_SCALE = 32_767 / 32_768


class Recorder(RefreshedWidget):
    """A microphone in the notebook, which records takes as clips.

    Press *Record*, speak, press *Stop*. Each take becomes an :class:`~speechlab.AudioClip` without loss::

        recorder = sl.widgets.Recorder(sample_rate=16_000)
        recorder  # shows it
        recorder.clip  # the last take
        recorder.clips  # all takes
        lab.transcribe(recorder.clip)
        recorder.observe(lambda change: print(recorder.clip), "takes")  # at each take

    The browser asks for permission to use the microphone. It gives access only to pages from this machine (localhost,
    127.0.0.1) and over https. If it refuses, the widget shows the reason and a remedy. The microphone is open only
    during a take. The sound arrives in acknowledged chunks, so a busy kernel loses none. The saved notebook has
    previews of the takes.

    Args:
        max_s: Maximum length of a take in seconds, at most an hour. A longer take is stopped.
        sample_rate: Sample rate of the clips in Hz; None for that of the microphone, usually 48,000.
        processing: Whether the browser removes echo and noise and controls the gain. Leave it off for measurements
            and recognisers.
        title: Title above the widget, and beginning of the names of takes.

    Attributes:
        takes: Facts of each take: ``name``, ``seconds``, ``rate``, ``device``, ``clipped`` (number of samples at full
            scale), ``level_dbfs`` and ``peak_dbfs`` (None for silence).
        recording: Whether the microphone is open.

    Raises:
        InvalidRequestError: An argument has a wrong type or is out of its range.
    """

    _esm = module_source(_BROWSER / "recorder.js")
    _css = style_sheet(_BROWSER / "recorder.css")

    title = traitlets.Unicode().tag(sync=True)
    max_s = traitlets.Float(60.0).tag(sync=True)
    processing = traitlets.Bool(default_value=False).tag(sync=True)
    takes = traitlets.List(traitlets.Dict()).tag(sync=True)
    recording = traitlets.Bool(default_value=False).tag(sync=True)

    def __init__(
        self,
        *,
        max_s: float = 60.0,
        sample_rate: int | None = None,
        processing: bool = False,
        title: str = "Recording",
    ) -> None:
        if not is_bool(processing):
            raise refused("processing", processing, "True or False")
        if sample_rate is not None:
            try:
                sample_rate = checked_rate(sample_rate)
            except ValueError:
                raise refused("sample_rate", sample_rate, "8000 to 384000 Hz, or None") from None
        check_text(title, "title")
        self._lock = threading.RLock()
        self._sample_rate = sample_rate
        self._clips: dict[str, AudioClip] = {}
        self._figures: dict[str, Html] = {}
        self._under_way: dict[str, IncomingTake] = {}
        self._count = 0
        super().__init__(title=title, max_s=_take_s(max_s), processing=processing)
        self.on_msg(self._asked)

    def __repr__(self) -> str:
        seconds = sum(clip.duration_s for clip in self._clips.values())
        count = len(self._clips)
        return f"Recorder({self.title!r}, {count} take{'' if count == 1 else 's'}, {seconds:.2f} s)"

    @property
    def clips(self) -> list[AudioClip]:
        """All takes, in the order in which they were recorded."""
        with self._lock:
            return list(self._clips.values())

    @property
    def clip(self) -> AudioClip | None:
        """The last take; None before the first."""
        clips = self.clips
        return clips[-1] if clips else None

    def clear(self) -> None:
        """Remove all takes."""
        with self._lock:
            self._clips.clear()
            self._figures.clear()
            self.takes = []
        self._show_again()

    def static_html(self) -> Html:
        """Return the figures of the last takes."""
        with self._lock:
            shown = list(self._clips.items())[-_MAX_STATIC:]
            for name, clip in shown:
                if name not in self._figures:
                    self._figures[name] = clip_figure(clip, title=clip.title)
            more = len(self._clips) - len(shown)
            figures = [self._figures[name] for name, _ in shown]
        head = element("p", element("strong", self.title, dir="auto"), "" if shown else " · no take yet")
        return element("div", head, f"Earlier takes that are not shown: {more}" if more else None, *figures)

    @traitlets.validate("max_s")
    def _bounded(self, proposal: Any) -> float:
        return _take_s(proposal["value"])

    # -- from the browser

    def _asked(self, _widget: object, content: Any, buffers: Any) -> None:
        """Reply to the browser; invalid messages are ignored."""
        answers: dict[Any, Callable[[dict[str, Any], Any], None]] = {
            "chunk": self._keep_chunk,
            "end": self._finish,
            "drop": self._drop,
            "sound": self._send_sound,
        }
        answer = answers.get(content.get("type")) if isinstance(content, dict) else None
        if answer is not None and isinstance(content.get("take"), str):
            answer(content, buffers)

    def _keep_chunk(self, told: dict[str, Any], buffers: Any) -> None:
        take = told["take"]
        with self._lock, contextlib.suppress(KeyError, IndexError, TypeError, ValueError):
            if take not in self._clips:
                if take not in self._under_way:
                    for old in list(self._under_way)[: 1 - _MAX_UNDER_WAY]:
                        del self._under_way[old]
                    self._under_way[take] = IncomingTake(self.max_s)
                self._under_way[take].add(told["number"], told["rate"], bytes(buffers[0]))
            self.send({"type": "got", "take": take, "number": told["number"]})

    def _finish(self, told: dict[str, Any], _buffers: Any) -> None:
        take = told["take"]
        try:
            count, rate = int(told["count"]), checked_rate(told["rate"])
        except (KeyError, TypeError, ValueError):
            return
        with self._lock:
            new = take not in self._clips
            if new:
                incoming = self._under_way.get(take)
                if incoming is None or not incoming.has(count):
                    self.send({"type": "missing", "take": take})
                    return
                facts = self._keep(take, incoming.samples(count), rate, str(told.get("device", ""))[:200])
                del self._under_way[take]
            self.send({"type": "taken", "take": take})
            if new:
                self.takes = [*self.takes, facts]
        if new:
            self._show_again()

    def _keep(self, take: str, data: bytes, rate: int, device: str) -> dict[str, Any]:
        """Make a clip of a take, and return its facts for ``takes``."""
        self._count += 1
        name = f"{self.title} {self._count}".strip()
        heard = AudioClip.from_pcm(data, rate)
        clip = heard.resample(self._sample_rate or rate).named(name)
        self._clips[take] = clip
        return {
            "take": take,
            "name": name,
            "seconds": heard.duration_s,
            "rate": clip.sample_rate,
            "device": device,
            "clipped": int(np.count_nonzero(np.abs(heard.samples) >= _FULL_SCALE)),
            "level_dbfs": heard.rms_dbfs if heard.peak else None,
            "peak_dbfs": 20 * math.log10(heard.peak) if heard.peak else None,
            "outline": np.rint(heard.peaks(min(_OUTLINE, heard.frames)) * 100).astype(int).tolist(),
        }

    def _drop(self, told: dict[str, Any], _buffers: Any) -> None:
        with self._lock:
            self._clips.pop(told["take"], None)
            self._figures.pop(told["take"], None)
            self.takes = [one for one in self.takes if one["take"] != told["take"]]
        self._show_again()

    def _send_sound(self, told: dict[str, Any], _buffers: Any) -> None:
        answer = {"type": "sound", "take": told["take"]}
        clip = self._clips.get(told["take"])
        if clip is None:
            self._answer(told, {**answer, "error": "this take is no longer in Python"})
            return
        try:
            data = clip.encode("flac")
        except AudioError as error:
            self._answer(told, {**answer, "error": str(error)})
            return
        if len(data) > _MAX_SENT_BYTES:
            data, seconds = sound_preview(clip)
            answer["note"] = f"A lossy preview, which plays the first {seconds:.0f} s only"
        self._answer(told, answer, data)


def _take_s(given: object) -> float:
    """Check the maximum length of a take in seconds, and return it.

    Raises:
        InvalidRequestError: The value is not a number of seconds within the limits.
    """
    if not is_number(given) or not 0 < given <= _LONGEST_S:
        raise refused("max_s", given, f"more than 0 and at most {_LONGEST_S:.0f} seconds")
    return float(given)
