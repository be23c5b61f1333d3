"""The recorder widget: chunks in, clips out."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from speechlab._arguments import build_argument_error, check_text, is_bool, is_number, is_whole_number
from speechlab.audio import AudioClip, build_sound_preview, render_clip_figure
from speechlab.display import Html, element, format_count
from speechlab.widgets._shared.browser import bundle_module, read_colors_and_style_sheets
from speechlab.widgets._shared.live import RefreshableWidget

_BROWSER = Path(__file__).parent / "browser"
_LONGEST_S = 3_600.0
_MAX_UNDER_WAY = 4
_MAX_SENT_BYTES = 8_000_000
_MAX_STATIC = 10
_OUTLINE_BINS = 240
_FULL_SCALE = 32_767 / 32_768
_MAX_CHUNK_BYTES = 2_000_000
_RATES = (8_000, 384_000)


class Recorder(RefreshableWidget):
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
            and recognizers.
        title: Title above the widget, and beginning of the names of takes.

    Attributes:
        takes: Facts of each take: ``name``, ``seconds``, ``rate``, ``device``, ``clipped`` (number of samples at full
            scale), ``level_dbfs`` and ``peak_dbfs`` (None for silence).
        recording: Whether the microphone is open.

    Raises:
        InvalidRequestError: An argument has a wrong type or is out of its range.
    """

    _esm = bundle_module(_BROWSER / "recorder.js")
    _css = read_colors_and_style_sheets(_BROWSER / "recorder.css")

    title = traitlets.Unicode().tag(sync=True)
    max_s = traitlets.Float(60.0).tag(sync=True)
    processing = traitlets.Bool(default_value=False).tag(sync=True)
    takes = traitlets.List(traitlets.Dict()).tag(sync=True)
    _outlines = traitlets.Dict().tag(sync=True)
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
            raise build_argument_error("processing", processing, "True or False")
        if sample_rate is not None and not is_microphone_rate(sample_rate):
            raise build_argument_error("sample_rate", sample_rate, "8000 to 384000 Hz, or None")
        check_text(title, "title")
        self._lock = threading.RLock()
        self._sample_rate = None if sample_rate is None else int(sample_rate)
        self._clips: dict[str, AudioClip] = {}
        self._figures: dict[str, Html] = {}
        self._under_way: dict[str, IncomingTake] = {}
        self._count = 0
        super().__init__(title=title, max_s=_check_length_s(max_s), processing=processing)

    def __repr__(self) -> str:
        seconds = sum(clip.duration_s for clip in self._clips.values())
        return f"Recorder({self.title!r}, {format_count(len(self._clips), 'take')}, {seconds:.2f} s)"

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
            self._outlines = {}
        self._refresh_output()

    def static_html(self) -> Html:
        """Return the figures of the last takes."""
        with self._lock:
            last = list(self._clips.items())[-_MAX_STATIC:]
            for name, clip in last:
                if name not in self._figures:
                    self._figures[name] = render_clip_figure(clip, title=clip.title)
            more = len(self._clips) - len(last)
            figures = [self._figures[name] for name, _ in last]
        head = element("p", element("strong", self.title, dir="auto"), "" if last else " · no take yet")
        return element("div", head, f"Earlier takes that are not shown: {more}" if more else None, *figures)

    @traitlets.validate("max_s")
    def _check_max_s(self, proposal: Any) -> float:
        return _check_length_s(proposal["value"])

    # -- from the browser

    def _on_chunk(self, chunk: dict[str, Any]) -> dict[str, Any]:
        take, number = _check_take_id(chunk), chunk["number"]
        with self._lock:
            if take not in self._clips:
                if take not in self._under_way:
                    for old in list(self._under_way)[: 1 - _MAX_UNDER_WAY]:
                        del self._under_way[old]
                    self._under_way[take] = IncomingTake(self.max_s)
                self._under_way[take].add_chunk(number, chunk["rate"], bytes(chunk["buffers"][0]))
        return {}

    def _on_end(self, ended: dict[str, Any]) -> dict[str, Any]:
        take, count, rate = _check_take_id(ended), int(ended["count"]), ended["rate"]
        if not is_microphone_rate(rate):
            raise ValueError(f"{rate!r} is not a sample rate of a microphone")
        with self._lock:
            if take in self._clips:
                return {"missing": False}
            incoming = self._under_way.get(take)
            data = None if incoming is None else incoming.join_chunks(count)
            if data is None:
                return {"missing": True}
            facts = self._add_take(take, data, int(rate), str(ended.get("device", ""))[:200])
            del self._under_way[take]
            self.takes = [*self.takes, facts]
        self._refresh_output()
        return {"missing": False}

    def _add_take(self, take: str, data: bytes, rate: int, device: str) -> dict[str, Any]:
        """Make a clip of a take, and return its facts for ``takes``."""
        self._count += 1
        name = f"{self.title} {self._count}".strip()
        recorded = AudioClip.from_pcm(data, rate)
        clip = recorded.resample(self._sample_rate or rate).with_title(name)
        self._clips[take] = clip
        outline = np.rint(recorded.peaks(min(_OUTLINE_BINS, recorded.frames)) * 100).astype(int)
        self._outlines = {**self._outlines, take: outline.tolist()}  # no fact that a user reads in ``takes``
        return {
            "take": take,
            "name": name,
            "seconds": recorded.duration_s,
            "rate": clip.sample_rate,
            "device": device,
            "clipped": int(np.count_nonzero(np.abs(recorded.samples) >= _FULL_SCALE)),
            "level_dbfs": recorded.rms_dbfs if recorded.peak else None,
            "peak_dbfs": 20 * math.log10(recorded.peak) if recorded.peak else None,
        }

    def _on_drop(self, dropped: dict[str, Any]) -> None:
        with self._lock:
            self._clips.pop(dropped["take"], None)
            self._figures.pop(dropped["take"], None)
            self._outlines = {
                take: peaks for take, peaks in self._outlines.items() if take != dropped["take"]
            }
            self.takes = [take for take in self.takes if take["take"] != dropped["take"]]
        self._refresh_output()

    def _on_sound(self, asked: dict[str, Any]) -> dict[str, Any] | tuple[dict[str, Any], bytes]:
        clip = self._clips.get(asked["take"])
        if clip is None:
            return {"error": "this take is no longer in Python"}
        data = clip.encode("flac")
        if len(data) <= _MAX_SENT_BYTES:
            return {}, data
        data, seconds = build_sound_preview(clip)
        return {"note": f"A lossy preview, which plays the first {seconds:.0f} s only"}, data


class IncomingTake:
    """The received part of a take of at most ``max_s`` seconds."""

    def __init__(self, max_s: float) -> None:
        self._max_s = max_s
        self._chunks: dict[int, bytes] = {}
        self._bytes = 0

    def add_chunk(self, number: Any, rate: Any, data: bytes) -> None:
        """Keep a chunk of 16-bit samples, unless it was received before. ValueError: it is not valid."""
        if not is_whole_number(number) or not 0 <= number < 1_000_000:
            raise ValueError(f"{number!r} is not the number of a chunk")
        if not data or len(data) % 2 or len(data) > _MAX_CHUNK_BYTES:
            raise ValueError(f"a chunk has {len(data)} bytes")
        if int(number) in self._chunks:
            return
        if not is_microphone_rate(rate) or self._bytes + len(data) > 2 * (self._max_s + 1) * rate:
            raise ValueError("the take is longer than allowed, or has another sample rate")
        self._chunks[int(number)] = data
        self._bytes += len(data)

    def join_chunks(self, count: int) -> bytes | None:
        """Return the first ``count`` chunks as one; None if there are none, or not all have arrived."""
        if count < 1 or not all(number in self._chunks for number in range(count)):
            return None
        return b"".join(self._chunks[number] for number in range(count))


def is_microphone_rate(rate: Any) -> bool:
    """Return whether a sample rate in Hz is one of microphones."""
    return is_whole_number(rate) and _RATES[0] <= rate <= _RATES[1]


def _check_take_id(message: dict[str, Any]) -> str:
    if not isinstance(message["take"], str):
        raise TypeError("the id of a take is a text")
    return message["take"]


def _check_length_s(given: object) -> float:
    """Return the maximum length of a take in seconds, or refuse it."""
    if not is_number(given) or not 0 < given <= _LONGEST_S:
        raise build_argument_error("max_s", given, f"more than 0 and at most {_LONGEST_S:.0f} seconds")
    return float(given)
