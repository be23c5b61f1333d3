"""The sound of a take: silence, clipping, ends, length, and whether the voice still sounds like itself."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.errors import AudioError, InvalidRequestError, ModelError
from speechlab.metrics import speaker_embedding, speech_measures

# Share of samples at full scale, in runs of three or more, and seconds of silence within a line.
_MAX_CLIPPING, _MAX_PAUSE_S = 0.005, 2.5
# Lines of a voice that make its center; fewer say nothing of what is usual.
_MIN_LINES = 8
# A line lies outside if it is this many standard deviations (by the median absolute one) from the median of its
# voice, and as far as a trait says at least. A short line may differ by a few tenths of a second.
_MAX_Z, _MAD, _LEAST_S = 6.0, 1.4826, 0.4
# Traits of a take: how far it lies outside at least, and what is said then.
_TRAITS = {
    "length": (math.log(1.4), "{ratio:.1f} times as long as usual for this voice"),
    "pitch": (3.0, "{difference:+.0f} semitones from the pitch of this voice"),
    "level": (6.0, "{difference:+.0f} dB from the level of this voice"),
    "likeness": (0.12, "it does not sound like this voice"),
}
# Units that each line seems to be longer, as its first and last sounds are drawn out.
_ENDS = 3
_MIN_EMBEDDED_S = 2.0  # as the network asks for


class TakeSound(NamedTuple):
    """What was measured of one take; NaN for what it does not have."""

    group: tuple[str, str | None]  # voice and language
    faults: tuple[str, ...]  # those that need no other line
    speech_s: float  # without the silence at its ends
    length: float  # natural logarithm of seconds per unit
    pitch: float  # semitones
    level: float  # LUFS
    embedding: Any  # direction of the speaker, or None

    def get_trait(self, name: str, speaker: Any) -> float:
        """Return a trait, of which the likeness is that to a speaker."""
        if name != "likeness":
            return float(getattr(self, name))
        if speaker is None or self.embedding is None:
            return math.nan
        return float(self.embedding @ speaker / np.linalg.norm(speaker))


def measure_sound(recording: str, text: str, language: str | None, voice: str) -> TakeSound:
    """Measure one take."""
    frame = pd.DataFrame({"audio": [recording], "text": [text], "language": [language]})
    (row,) = speech_measures(frame).to_dict("records")
    have = defaultdict(lambda: math.nan, {name: x for name, x in row.items() if not is_missing(x)})
    speech_s, pause_s, clipped = have["speech_s"], have["longest_pause_s"], have["clipping_ratio"]
    faults = {
        "silent": not speech_s > 0,
        f"{pause_s:.1f} s of silence within it": pause_s > _MAX_PAUSE_S,
        f"{clipped:.1%} of it is clipped": clipped > _MAX_CLIPPING,
        "its end is cut off": have["truncated_ending"] is True,
        "its end is repeated": have["repeated_ending"] is True,
    }
    units = have["morae"]
    if not units > 0:  # a number is longer in words than in digits
        units = math.nan if any(map(str.isdigit, text)) else have["characters"]
    embedding = None
    if speech_s >= _MIN_EMBEDDED_S:
        with suppress(AudioError, InvalidRequestError, ModelError):  # its weights are no part of an extra
            embedding = speaker_embedding(recording)
    return TakeSound(
        (voice, language),
        tuple(fault for fault, is_there in faults.items() if is_there),
        speech_s,
        math.log(speech_s / (units + _ENDS)) if speech_s > 0 and units > 0 else math.nan,
        12 * math.log2(have["f0_median_hz"]),
        have["loudness_lufs"],
        embedding,
    )


class Centers:
    """What is usual for each voice in each language, by the first takes of its lines."""

    def __init__(self, sounds: Sequence[TakeSound]) -> None:
        # Of each trait the middle, and how far from it a take may lie.
        self._usual = defaultdict[Any, dict[str, tuple[float, float]]](dict)
        self._speakers: dict[Any, Any] = {}
        for group in dict.fromkeys(sound.group for sound in sounds):
            members = [sound for sound in sounds if sound.group == group]
            embeddings = [sound.embedding for sound in members if sound.embedding is not None]
            if len(embeddings) >= _MIN_LINES:
                self._speakers[group] = np.median(np.stack(embeddings).astype(np.float64), axis=0)
            for name, (least, _) in _TRAITS.items():
                values = np.array([sound.get_trait(name, self._speakers.get(group)) for sound in members])
                values = values[np.isfinite(values)]
                if len(values) >= _MIN_LINES:
                    middle = float(np.median(values))
                    spread = _MAD * float(np.median(np.abs(values - middle)))
                    self._usual[group][name] = middle, max(_MAX_Z * spread, least)

    def find_faults(self, sound: TakeSound) -> tuple[str, ...]:
        """Return what is wrong with a take in words."""
        faults = list(sound.faults)
        for name, (middle, far) in self._usual[sound.group].items():
            difference = sound.get_trait(name, self._speakers.get(sound.group)) - middle
            is_short = name == "length" and sound.speech_s * abs(1 - math.exp(-difference)) < _LEAST_S
            is_more_alike = name == "likeness" and difference > 0
            if abs(difference) > far and not is_short and not is_more_alike:
                faults.append(_TRAITS[name][1].format(difference=difference, ratio=math.exp(difference)))
        return tuple(faults)
