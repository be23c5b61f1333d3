"""One call to a voice: the clip, its times and its loudness, or the error."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from speechlab.audio import AudioClip
from speechlab.batch import Arrivals, timed
from speechlab.errors import APIConnectionError, APIError, BadRequestError
from speechlab.widgets._shared.loudness import LEVEL_LUFS, PEAK, loudness_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.client import Client, SpeechClip
    from speechlab.contract import Voice

_IN_PIECES = ("wav", "pcm")
_WHOLE = ("wav", "flac", "pcm", "ogg", "mp3")
_TIMEOUT_S = 60.0
_MAX_WORDS = 300


@dataclass(frozen=True, slots=True)
class Spoken:
    """The result of a call to a voice.

    Attributes:
        text: The sentence.
        clip: The clip as received from the service; None after an error.
        first_audible_s: Seconds from the call until a player that starts with the first samples reaches the first
            sound above the silence; NaN without any sound.
        total_s: Seconds from the call to the end.
        loudness_lufs: Integrated loudness in LUFS (ITU-R BS.1770-4); NaN for silence and for less than 0.4 s.
        gain_db: Gain of the clip to ``LEVEL_LUFS`` without clipping, in dB; 0 if the loudness is unknown.
        error: Reason for a missing clip; empty if there is one.
        words: The reason in the words of the service alone.
        gone: Whether the service could not be reached, so that its other voices would fail too.
    """

    text: str
    clip: SpeechClip | None = None
    first_audible_s: float = math.nan
    total_s: float = math.nan
    loudness_lufs: float = math.nan
    gain_db: float = math.nan
    error: str = ""
    words: str = ""
    gone: bool = False

    @property
    def characters(self) -> int | None:
        """Number of spoken characters, as services count them; None if nothing was spoken."""
        return None if self.clip is None else len(self.text)

    def sound(self, *, level: bool) -> AudioClip | None:
        """Return the clip, at the common loudness on request."""
        if self.clip is None or not level:
            return self.clip
        gain = np.float32(10 ** (self.gain_db / 20))
        return AudioClip(self.clip.samples * gain, self.clip.sample_rate, self.clip.voice or self.clip.title)


class StoppedError(Exception):
    """The call was stopped, because the sentence is no longer needed."""


def speak(lab: Client, voice: Voice, text: str, stopped: Callable[[], bool]) -> Spoken:
    """Have a sentence spoken. Errors of the service become texts of the result.

    Args:
        lab: The service.
        voice: The voice.
        text: The sentence.
        stopped: Whether to stop; called between the pieces of the sound.

    Raises:
        StoppedError: The call was stopped.
    """
    call = timed(lambda arrivals: _spoken(lab, voice, text, arrivals, stopped), patience_s=0)
    clip, error = call.result, call.error
    if clip is None:
        alone = str(error.args[0]) if isinstance(error, APIError) and error.args else str(error)
        gone = type(error) is APIConnectionError and not error.possibly_metered
        return Spoken(text, error=_short(str(error)), words=_short(alone), gone=gone)
    loudness, first_s = loudness_of(clip), call.times().get("first_audible_s")
    return Spoken(
        text, clip, math.nan if first_s is None else first_s, call.total_s, loudness, _gain_db(clip, loudness)
    )


def _short(words: str) -> str:
    return words if len(words) <= _MAX_WORDS else words[: _MAX_WORDS - 1] + "…"


def _spoken(
    lab: Client, voice: Voice, text: str, arrivals: Arrivals, stopped: Callable[[], bool]
) -> SpeechClip:
    def after_each() -> None:
        if stopped():
            raise StoppedError

    formats = set(map(str, voice.formats))
    streamed = next((one for one in _IN_PIECES if one in formats), None) if voice.streaming else None
    if streamed is not None:
        # A provider may stream other formats only. A refused request costs nothing.
        with (
            contextlib.suppress(BadRequestError),
            lab.stream_speech(text, voice=voice, format=streamed, timeout=_TIMEOUT_S) as stream,
        ):
            return arrivals.listen(stream, after_each)
    whole = next((one for one in _WHOLE if one in formats), "wav")
    return lab.synthesize(text, voice=voice, format=whole, timeout=_TIMEOUT_S)


def _gain_db(clip: AudioClip, loudness: float) -> float:
    if math.isnan(loudness) or not clip.peak:
        return 0.0
    return min(LEVEL_LUFS - loudness, 20 * math.log10(PEAK / clip.peak))
