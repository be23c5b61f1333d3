"""The sound of a take: silence, clipping, ends, length, and whether the voice still sounds like itself."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.errors import AudioError, InvalidRequestError, ModelError
from speechlab.metrics import speaker_embedding, speech_measures

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Share of samples at full scale, in runs of three or more, and seconds of silence within a line.
_MAX_CLIPPING, _MAX_PAUSE_S = 0.005, 2.5
# Lines of a voice that make its center; fewer say nothing of what is usual.
_MIN_LINES = 8
# A line lies outside if it is this many robust standard deviations from the median, and this far at least.
_MAX_Z = 6.0
_LEAST = {"length": math.log(1.4), "pitch": 3.0, "level": 6.0, "likeness": 0.12}
# Seconds that a line is longer or shorter at least: of two syllables, the length says little.
_LEAST_S = 0.4
# Units that each line seems to be longer, as its first and last sounds are drawn out.
_ENDS = 3
_MAD = 1.4826  # standard deviation over median absolute deviation, of a normal distribution
_MIN_EMBEDDED_S = 2.0  # as the network asks for


class TakeSound(NamedTuple):
    """What was measured of one take; NaN for what it does not have."""

    group: tuple[str, str]  # voice and language
    faults: tuple[str, ...]  # those that need no other line
    speech_s: float  # without the silence at its ends
    length: float  # natural logarithm of seconds per unit
    pitch: float  # semitones
    level: float  # LUFS
    embedding: Any  # direction of the speaker, or None


def measure_sound(recording: str, text: str, language: str | None, voice: str) -> TakeSound:
    """Measure one take."""
    clip = pd.DataFrame({"audio": [recording], "text": [text], "language": [language]})
    (row,) = speech_measures(clip).to_dict("records")
    return _build_sound(row, voice)


def _build_sound(row: Mapping[Any, Any], voice: str) -> TakeSound:
    have = {name: math.nan if is_missing(value) else value for name, value in row.items()}
    speech_s, faults = float(have["speech_s"]), []
    if not speech_s > 0:
        faults.append("silent")
    if have["longest_pause_s"] > _MAX_PAUSE_S:
        faults.append(f"{have['longest_pause_s']:.1f} s of silence within it")
    if have["clipping_ratio"] > _MAX_CLIPPING:
        faults.append(f"{have['clipping_ratio']:.1%} of it is clipped")
    faults += ["its end is cut off"] if have["truncated_ending"] is True else []
    faults += ["its end is repeated"] if have["repeated_ending"] is True else []
    morae = have.get("morae", math.nan)
    units = morae if morae > 0 else have.get("characters", math.nan)
    if not morae > 0 and any(map(str.isdigit, str(row["text"]))):
        units = math.nan  # a number is longer in words than in digits
    embedding = None
    if speech_s >= _MIN_EMBEDDED_S:
        with suppress(AudioError, InvalidRequestError, ModelError):  # its weights are no part of an extra
            embedding = speaker_embedding(row["audio"])
    pitch = have.get("f0_median_hz", math.nan)
    return TakeSound(
        (voice, str(row["language"])),
        tuple(faults),
        speech_s,
        math.log(speech_s / (units + _ENDS)) if speech_s > 0 and units > 0 else math.nan,
        12 * math.log2(pitch) if pitch > 0 else math.nan,
        float(have.get("loudness_lufs", math.nan)),
        embedding,
    )


class Centers:
    """What is usual for each voice in each language, by the first takes of its lines."""

    def __init__(self, sounds: Sequence[TakeSound]) -> None:
        self._usual: dict[tuple[tuple[str, str], str], tuple[float, float]] = {}
        self._speakers: dict[tuple[str, str], NDArray[np.float64]] = {}
        groups: defaultdict[tuple[str, str], list[TakeSound]] = defaultdict(list)
        for sound in sounds:
            groups[sound.group].append(sound)
        for group, members in groups.items():
            embeddings = [each.embedding for each in members if each.embedding is not None]
            if len(embeddings) >= _MIN_LINES:
                self._speakers[group] = np.median(np.stack(embeddings).astype(np.float64), axis=0)
            for name, least in _LEAST.items():
                values = np.array([self._get_value(each, name) for each in members])
                values = values[np.isfinite(values)]
                if len(values) >= _MIN_LINES:
                    middle = float(np.median(values))
                    spread = _MAD * float(np.median(np.abs(values - middle)))
                    self._usual[group, name] = middle, max(_MAX_Z * spread, least)

    def _get_value(self, sound: TakeSound, name: str) -> float:
        if name != "likeness":
            return float(getattr(sound, name))
        center = self._speakers.get(sound.group)
        if center is None or sound.embedding is None:
            return math.nan
        return float(sound.embedding @ center / np.linalg.norm(center))

    def find_faults(self, sound: TakeSound) -> tuple[str, ...]:
        """Return what is wrong with a take in words."""
        faults = list(sound.faults)
        for name, describe in _DESCRIPTIONS.items():
            middle, most = self._usual.get((sound.group, name), (math.nan, math.nan))
            difference = self._get_value(sound, name) - middle
            if name == "likeness":
                difference = min(difference, 0.0)  # no line is too much like its voice
            if name == "length" and sound.speech_s * abs(1 - math.exp(-difference)) < _LEAST_S:
                continue
            if abs(difference) > most:
                faults.append(describe(difference))
        return tuple(faults)


def _describe_shift(difference: float, unit: str, more: str, less: str) -> str:
    return f"{abs(difference):.0f} {unit} {more if difference > 0 else less} than this voice"


_DESCRIPTIONS: dict[str, Callable[[float], str]] = {
    "length": lambda difference: f"{math.exp(difference):.1f} times as long as usual for this voice",
    "pitch": lambda difference: _describe_shift(difference, "semitones", "higher", "lower"),
    "level": lambda difference: _describe_shift(difference, "dB", "louder", "quieter"),
    "likeness": lambda _: "it does not sound like this voice",
}
