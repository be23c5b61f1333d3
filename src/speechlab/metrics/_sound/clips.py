"""Clips as the measures of sound take them (clips, paths of files, or bytes), and measures of the user."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from speechlab._arguments import is_number
from speechlab.audio import AudioClip
from speechlab.errors import AudioError, InvalidRequestError, SpeechLabError


def clips_in(clips: Any) -> list[Any]:
    """One clip or several as a list."""
    if isinstance(clips, AudioClip | str | bytes | os.PathLike):
        return [clips]
    if isinstance(clips, np.ndarray) and clips.dtype != object:
        message = (
            f"clips is an array of shape {clips.shape}, whose sample rate is not known; give "
            "AudioClip(samples, sample_rate), or a list of them"
        )
        raise InvalidRequestError(message, parameter="clips")
    if not isinstance(clips, Iterable) or isinstance(clips, Mapping):
        message = f"clips is {clips!r:.60} ({type(clips).__name__}); give clips, paths or bytes, or a table with them"
        raise InvalidRequestError(message, parameter="clips")
    return list(clips)


def read_clip(value: Any) -> AudioClip:
    """A clip from a clip, a path or bytes."""
    if isinstance(value, AudioClip):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return AudioClip.from_bytes(value)
    if isinstance(value, str | os.PathLike):
        try:
            return AudioClip.from_file(value)
        except (OSError, ValueError) as error:
            if isinstance(error, SpeechLabError):
                raise
            message = f"the file {value!r:.200} cannot be read: {error}"
            raise AudioError(message) from error
    message = f"{value!r:.80} is not a clip; give an AudioClip, the path of a file, or its bytes"
    raise InvalidRequestError(message, parameter="clips")


def measured_by(
    measures: Mapping[str, Callable[..., float]], *sounds: Any
) -> tuple[dict[str, float], str | None]:
    """The values of measures of the user, and what was wrong with the last of those that failed."""
    row, problem = {}, None
    for name, measure in measures.items():
        try:
            value = measure(*sounds)
        except Exception as error:  # noqa: BLE001 - a measure of the user; its error is reported in its row
            problem = f"{name}: {type(error).__name__}: {error}"
            continue
        if not is_number(value):
            problem = f"{name} gave {value!r:.60}, not a number"
        elif math.isfinite(value):
            row[name] = float(value)
    return row, problem
