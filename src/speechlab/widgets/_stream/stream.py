"""The player of a stream: it reads the pieces, sends them to the browser, and keeps them as a clip."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from speechlab._arguments import check_text
from speechlab.audio import AudioClip, render_clip_figure
from speechlab.batch import Arrivals, TimedCall
from speechlab.display import Html, audio_figure, format_count
from speechlab.widgets._shared.browser import bundle_module, read_colors_and_style_sheets
from speechlab.widgets._shared.live import RefreshableWidget

if TYPE_CHECKING:
    from speechlab.client import AsyncSpeechEvents, AsyncSpeechStream, SpeechEvents, SpeechStream

_BROWSER = Path(__file__).parent / "browser"
# Time in which the browser may still be loading the view. Until then the state has all sound, not a message.
_OPENING_S = 3.0
_numbers = itertools.count(1)


class StreamPlayer(RefreshableWidget):
    """A player of streamed speech: it plays from the first piece on.

    ``play()`` of a stream, of a session and of a session's events makes one and shows it in the cell::

        lab.stream_speech("Good morning.", voice=voice).play()
        player = session.play("How can I help you?")
        player.wait()  # the clip
        clip = await alab.stream_speech("Good morning.", voice=voice).play()

    Reading continues in the background. Players made one after the other play one after the other, without a
    gap. *Stop* closes the stream, which stops the service's work. The saved notebook has the sound that came.

    Args:
        stream: A stream of speech in WAV or PCM, or the events of a text of a realtime session.
        title: Title above the player; empty for none.

    Attributes:
        state: ``waiting``, ``speaking``, ``ended``, ``stopped`` or ``failed``.
        clip: The sound: None before the end, and if none came.
        error: The error that ended the stream, or None.
        rate: Sample rate in Hz; 0 before the first piece.
        frames: Number of frames at the end; 0 before.
    """

    _esm = bundle_module(_BROWSER / "stream.js")
    _css = read_colors_and_style_sheets(_BROWSER / "stream.css")

    title = traitlets.Unicode().tag(sync=True)
    state = traitlets.Unicode("waiting").tag(sync=True)
    facts = traitlets.Unicode().tag(sync=True)
    rate = traitlets.Int(0).tag(sync=True)
    frames = traitlets.Int(0).tag(sync=True)
    _sound = traitlets.Bytes().tag(sync=True)
    _heard = traitlets.Bool(default_value=False).tag(sync=True)
    _after = traitlets.Unicode().tag(sync=True)
    _last: Callable[[], str] | None = None
    """Gives the place of the player that was made last, if it still sounds."""

    def __init__(
        self,
        stream: SpeechStream | AsyncSpeechStream | SpeechEvents | AsyncSpeechEvents,
        *,
        title: str = "",
    ) -> None:
        check_text(title, "title")
        self._stream: Any = stream
        self._pieces: list[bytes] = []
        self._frames = 0
        self._arrivals = Arrivals()
        self._opened: float | None = None
        self._over = threading.Event()
        self._stopping = False
        self._times: dict[str, Any] = {}
        self.clip: AudioClip | None = None
        self.error: Exception | None = None
        super().__init__(title=title, _after=StreamPlayer._last() if StreamPlayer._last else "")
        StreamPlayer._last = self._get_place_if_sounding
        if hasattr(stream, "__aiter__"):
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._read_async_stream())
        else:
            name = f"speechlab-stream-{next(_numbers)}"
            threading.Thread(target=self._read_stream, name=name, daemon=True).start()

    def __repr__(self) -> str:
        return f"StreamPlayer({self.state}{', ' if self.facts else ''}{self.facts})"

    def static_html(self) -> Html:
        """Return the sound that came, or what is waited for."""
        if self.clip is not None:
            return render_clip_figure(
                self.clip, title=self.title or self.clip.title, text=self._describe_state() or None
            )
        return audio_figure(None, title=self.title or "Speech", facts=[self._describe_state()])

    # -- for the user

    @property
    def times(self) -> dict[str, Any]:
        """Times of a stream that ended, in seconds since ``play()``.

        ``total_s``; ``first_byte_s``, the first samples; ``first_audible_s``, when a player that starts with them
        reaches the first sound above the silence; ``duration_s``; ``rtf``; ``stalls`` and ``stalled_s``, how often
        and how long that player waits for samples.
        """
        return dict(self._times)

    def wait(self) -> AudioClip:
        """Wait for the end of the stream, and return the sound; of a stopped stream that which came.

        Raises:
            SpeechLabError: The error that ended the stream.
        """
        while not self._over.wait(1.0):  # a wait without end may not hear an interrupt
            pass
        if self.error is not None:
            raise self.error
        return self.clip if self.clip is not None else AudioClip(np.zeros(0, np.float32), self.rate or 24_000)

    def __await__(self) -> Generator[Any, None, AudioClip]:
        return asyncio.to_thread(self.wait).__await__()

    def stop(self) -> None:
        """Close the stream, which stops the service's work, and end the sound."""
        if not self._over.is_set():
            self._stopping = True
            if hasattr(self._stream, "__aiter__"):
                self._loop.call_soon_threadsafe(self._task.cancel)
            else:
                self._stream.close()
        self.send({"type": "stop"})

    def disarm_autoplay(self) -> bool:
        """Return whether a browser has begun to play the sound. If not, none does so by itself any more."""
        began, self._heard = self._heard, True
        return began

    def show(self) -> StreamPlayer:
        """Show the player in the cell that runs. As the last line of that cell it is not shown again."""
        shell = _find_kernel_shell()
        if shell is not None:
            self._ipython_display_()
            self._echoed = shell.execution_count
        return self

    _echoed = -1

    def _ipython_display_(self) -> None:
        shell = _find_kernel_shell()
        echo, self._echoed = shell is not None and self._echoed == shell.execution_count, -1
        if not echo:
            super()._ipython_display_()

    # -- reading

    def _read_stream(self) -> None:
        try:
            for piece in self._stream.clips():
                self._add_piece(piece)
            clip = self._stream.collect()
        except Exception as error:  # noqa: BLE001 - the reader of the notebook gets it, and so does wait()
            self._end_stream(None, error)
        else:
            self._end_stream(clip)
        finally:
            self._stream.close()

    async def _read_async_stream(self) -> None:
        try:
            async for piece in self._stream.clips():
                self._add_piece(piece)
            clip = await self._stream.collect()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - as above; a cancelled task is stopped
            self._stopping |= isinstance(error, asyncio.CancelledError)
            await self._stream.aclose()
            self._end_stream(None, error if isinstance(error, Exception) else None)
        else:
            await self._stream.aclose()
            self._end_stream(clip)

    def _add_piece(self, piece: AudioClip) -> None:
        self._arrivals.add_sound(piece.frames)
        data = np.rint(piece.to_mono().samples.reshape(-1) * 32_767).astype("<i2").tobytes()
        start, self._frames = self._frames, self._frames + len(data) // 2
        self._pieces.append(data)
        if self._opened is None:
            self._opened = time.monotonic()
            with self.hold_sync():
                self.rate, self.state = piece.sample_rate, "speaking"
                self.facts = f"first byte after {self._arrivals.pieces[0][0]:.2f} s"
        if time.monotonic() - self._opened < _OPENING_S:
            self._sound = b"".join(self._pieces)
        else:
            self.send({"type": "sound", "start": start}, [data])

    def _end_stream(self, clip: AudioClip | None, error: Exception | None = None) -> None:
        if clip is None and self._pieces:
            clip = AudioClip.from_pcm(b"".join(self._pieces), self.rate)
        self.clip, self.error = clip, None if self._stopping else error
        self._times = TimedCall(self._arrivals.elapsed_s, self._arrivals, result=clip).to_columns()
        facts = [] if self.error is None else [str(self.error)]
        for name, words in (("first_byte_s", "first byte"), ("first_audible_s", "first sound")):
            if self._times.get(name) is not None:
                facts.append(f"{words} after {self._times[name]:.2f} s")
        stalls = self._times.get("stalls")
        if stalls:
            facts.append(f"{format_count(stalls, 'stall')}, {self._times['stalled_s']:.2f} s")
        elif stalls == 0:
            facts.append("no stall")
        with self.hold_sync():
            self.facts, self.frames = " · ".join(facts), self._frames
            self.state = "stopped" if self._stopping else "failed" if error is not None else "ended"
        self._over.set()
        self._refresh_output()

    def _describe_state(self) -> str:
        return " · ".join(filter(None, ("" if self.state == "ended" else self.state, self.facts)))

    def _get_place_if_sounding(self) -> str:
        """Return the place of this player if its sound still comes, or came less than its length ago."""
        rest_s = self._frames / (self.rate or 1) - (time.monotonic() - (self._opened or 0.0))
        sounds = not self._over.is_set() or (
            self._opened is not None and not self._stopping and rest_s > -1.0
        )
        return self._place if sounds else ""

    def _on_stop(self, _asked: dict[str, Any]) -> None:
        self.stop()

    def _on_missing(self, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        start = min(max(int(asked["start"]), 0), self._frames)
        return {"start": start}, b"".join(self._pieces)[2 * start :]


def _find_kernel_shell() -> Any:
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None
