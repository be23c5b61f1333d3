"""One call to a voice: the clip, its times and its loudness, or the error."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.audio import AudioClip
from speechlab.batch import Arrivals, timed
from speechlab.errors import APIConnectionError, APIError, BadRequestError
from speechlab.metrics import loudness
from speechlab.widgets._shared.sounds import LEVEL_LUFS, PEAK

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.client import Client, SpeechClip, SpeechStream
    from speechlab.contract import Voice
    from speechlab.widgets._stream.stream import StreamPlayer

_IN_PIECES = ("wav", "pcm")
_WHOLE = ("wav", "flac", "pcm", "ogg", "mp3")
_TIMEOUT_S = 60.0
_MAX_WORDS = 300


@dataclass(frozen=True, slots=True)
class Spoken:
    """The result of a call to a voice."""

    text: str
    clip: AudioClip | None = None  # as received; None after an error
    first_audible_s: float = math.nan  # from the call until a player reaches the first sound
    total_s: float = math.nan
    loudness_lufs: float = math.nan  # ITU-R BS.1770-4; NaN for silence and for less than 0.4 s
    gain_db: float = math.nan  # to ``LEVEL_LUFS`` without clipping; 0 if the loudness is unknown
    error: str = ""
    words: str = ""  # the error in the words of the service alone
    gone: bool = False  # the service could not be reached, so that its other voices would fail too
    heard: bool = False  # a player of the stream played it while it was made

    @property
    def characters(self) -> int | None:
        """Number of spoken characters, as services count them; None if nothing was spoken."""
        return None if self.clip is None else len(self.text)

    def sound(self, *, level: bool) -> AudioClip | None:
        """Return the clip, at the common loudness on request."""
        if self.clip is None or not level:
            return self.clip
        gain = np.float32(10 ** (self.gain_db / 20))
        title = getattr(self.clip, "voice", None) or self.clip.title
        return AudioClip(self.clip.samples * gain, self.clip.sample_rate, title)


class StoppedError(Exception):
    """The call was stopped, because the sentence is no longer needed."""


def speak(
    lab: Client,
    voice: Voice,
    text: str,
    stopped: Callable[[], bool],
    play: Callable[[SpeechStream], StreamPlayer] | None = None,
) -> Spoken:
    """Have a sentence spoken, with a player if ``play`` makes one. Errors of the service are texts of the result."""
    formats = set(map(str, voice.formats))
    streamed = next((name for name in _IN_PIECES if name in formats), None) if voice.streaming else None
    options: dict[str, Any] = {"voice": voice, "timeout": _TIMEOUT_S}

    def after_each() -> None:
        if stopped():
            raise StoppedError

    def whole(arrivals: Arrivals) -> SpeechClip:
        if streamed is not None:
            # A provider may stream other formats only. A refused request costs nothing.
            with (
                contextlib.suppress(BadRequestError),
                lab.stream_speech(text, format=streamed, **options) as stream,
            ):
                return arrivals.listen(stream, after_each)
        return lab.synthesize(
            text, format=next((name for name in _WHOLE if name in formats), "wav"), **options
        )

    if play is not None and streamed is not None:
        player = play(lab.stream_speech(text, format=streamed, **options))
        try:
            clip: AudioClip = player.wait()
        except BadRequestError:
            pass  # as above
        except Exception as error:  # noqa: BLE001 - the row gets the error
            return _failed(text, error)
        else:
            if player.state == "stopped":
                raise StoppedError
            return _spoken(text, clip, player.times, heard=True)
    call = timed(whole, patience_s=0)
    if call.result is None:
        return _failed(text, call.error)
    return _spoken(text, call.result, call.times())


def _spoken(text: str, clip: AudioClip, times: dict[str, Any], *, heard: bool = False) -> Spoken:
    level_lufs, first_s = loudness(clip.to_mono()), times.get("first_audible_s")
    gain_db = 0.0
    if not math.isnan(level_lufs) and clip.peak:
        gain_db = min(LEVEL_LUFS - level_lufs, 20 * math.log10(PEAK / clip.peak))
    first_s = math.nan if first_s is None else first_s
    return Spoken(text, clip, first_s, times["total_s"], level_lufs, gain_db, heard=heard)


def _failed(text: str, error: Exception | None) -> Spoken:
    alone = str(error.args[0]) if isinstance(error, APIError) and error.args else str(error)
    unreachable = type(error) is APIConnectionError and not error.possibly_metered
    return Spoken(text, error=_short(str(error)), words=_short(alone), gone=unreachable)


def _short(words: str) -> str:
    return words if len(words) <= _MAX_WORDS else words[: _MAX_WORDS - 1] + "…"
