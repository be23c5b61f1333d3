"""Shared steps of the synthesizers: finding the voice, trimming silence, fading edges of pieces, adding pauses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from speechlab.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.engines._chunks import Piece
    from speechlab.engines._protocols import EngineVoice

_THRESHOLD = 0.008
_MARGIN_S = 0.03


def resolve_voice(voice: str, voices: Sequence[EngineVoice], engine: str) -> EngineVoice:
    for candidate in voices:
        if candidate.name == voice:
            return candidate
    names = ", ".join(candidate.name for candidate in voices)
    raise EngineError(f"the engine {engine!r} has no voice {voice!r}; it has: {names}")


def build_silence(seconds: float, sample_rate: int) -> NDArray[np.float32]:
    return np.zeros(round(seconds * sample_rate), dtype=np.float32)


def trim_silence_and_fade(samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float32]:
    """Cut leading and trailing silence except for 30 ms, and fade both edges to avoid clicks.

    Args:
        samples: Mono, float32, shape (frames,).
        sample_rate: Sample rate in Hz.

    Returns:
        A new array, clipped to [-1, 1]; empty if all samples are silence.
    """
    loud = np.flatnonzero(np.abs(samples) > _THRESHOLD)
    if not loud.size:
        return np.zeros(0, dtype=np.float32)
    margin = round(_MARGIN_S * sample_rate)
    audible = np.clip(samples[max(0, int(loud[0]) - margin) : int(loud[-1]) + 1 + margin], -1.0, 1.0)
    audible = np.array(audible, dtype=np.float32)
    fade = min(round(0.005 * sample_rate), audible.size // 2)
    if fade:
        ramp = np.linspace(0.0, 1.0, fade, dtype=np.float32)
        audible[:fade] *= ramp
        audible[-fade:] *= ramp[::-1]
    return audible


def speak_pieces(
    pieces: Sequence[Piece], speak: Callable[[str], NDArray[np.float32]], sample_rate: int
) -> Iterator[NDArray[np.float32]]:
    """Speak pieces one by one, with pauses between them."""
    pause = 0.0
    is_audible = False
    for piece in pieces:
        samples = trim_silence_and_fade(speak(piece.text), sample_rate)
        if samples.size:
            yield np.concatenate([build_silence(pause, sample_rate), samples]) if is_audible else samples
            is_audible = True
            pause = 0.0
        pause = max(pause, piece.pause_s)
    if not is_audible:
        yield build_silence(0.3, sample_rate)
