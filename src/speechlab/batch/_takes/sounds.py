"""The sound of a take: silence, clipping, ends, length, and whether the voice still sounds like itself."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.errors import AudioError, InvalidRequestError, ModelError
from speechlab.metrics import speaker_embedding, speech_measures

# Share of samples at full scale, in runs of three or more, and seconds of silence within a line.
_MAX_CLIPPING, _MAX_PAUSE_S = 0.005, 2.5
# So many lines of a voice say what is usual. One is not that lies so many standard deviations (by the median absolute
# one) from the median, and as far as its trait says at least; a short one may differ by a few tenths of a second.
_MIN_LINES, _MAX_Z, _MAD, _LEAST_S = 8, 6.0, 1.4826, 0.4
_TRAITS = {
    "length": (math.log(1.4), "{ratio:.1f} times as long as usual for this voice"),
    "pitch": (3.0, "{difference:+.0f} semitones from the pitch of this voice"),
    "level": (6.0, "{difference:+.0f} dB from the level of this voice"),
    "likeness": (0.12, "it does not sound like this voice"),
}
# Units that each line seems to be longer, as its first and last sounds are drawn out; seconds that the network needs.
_ENDS, _MIN_EMBEDDED_S = 3, 2.0


class TakeSound(NamedTuple):
    """What was measured of one take."""

    group: tuple[str, str | None]  # voice and language
    faults: tuple[str, ...]  # those that need no other line
    speech_s: float  # without the silence at its ends
    traits: dict[str, float]  # in logarithms, semitones and LUFS; not a number where it has none
    embedding: Any  # direction of the speaker, or None


def measure_sound(recording: str, text: str, language: str | None, voice: str) -> TakeSound:
    """Measure one take."""
    clip = pd.DataFrame({"audio": [recording], "text": [text], "language": [language]})
    (row,) = speech_measures(clip).to_dict("records")
    have = defaultdict(
        lambda: math.nan, {name: value for name, value in row.items() if not is_missing(value)}
    )
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
    traits = {
        "length": math.log(speech_s / (units + _ENDS)) if speech_s > 0 and units > 0 else math.nan,
        "pitch": 12 * math.log2(have["f0_median_hz"]),
        "level": have["loudness_lufs"],
    }
    embedding = None
    if speech_s >= _MIN_EMBEDDED_S:
        with suppress(AudioError, InvalidRequestError, ModelError):  # its weights are no part of an extra
            embedding = speaker_embedding(recording)
    there = tuple(fault for fault, is_there in faults.items() if is_there)
    return TakeSound((voice, language), there, speech_s, traits, embedding)


class Centers:
    """What is usual for each voice in each language, by the first takes of its lines."""

    def __init__(self, sounds: Sequence[TakeSound]) -> None:
        self._speakers: dict[Any, Any] = {}
        self._usual: dict[Any, tuple[float, float]] = {}  # the middle of a trait, and how far from it is far
        embeddings, values = defaultdict[Any, list[Any]](list), defaultdict[Any, list[float]](list)
        for sound in sounds:
            if sound.embedding is not None:
                embeddings[sound.group].append(sound.embedding)
        for group, vectors in embeddings.items():
            self._speakers[group] = np.median(np.stack(vectors).astype(np.float64), axis=0)
        for sound in sounds:
            for name, value in self._iter_traits(sound):
                values[sound.group, name].append(value)
        for key, of in values.items():
            if len(of) >= _MIN_LINES:
                middle = float(np.median(of))
                spread = _MAX_Z * _MAD * float(np.median(np.abs(np.array(of) - middle)))
                self._usual[key] = middle, max(spread, _TRAITS[key[1]][0])

    def _iter_traits(self, sound: TakeSound) -> Iterator[tuple[str, float]]:
        yield from ((name, value) for name, value in sound.traits.items() if math.isfinite(value))
        if sound.embedding is not None and (speaker := self._speakers.get(sound.group)) is not None:
            yield "likeness", float(sound.embedding @ speaker / np.linalg.norm(speaker))

    def find_faults(self, sound: TakeSound) -> tuple[str, ...]:
        """Return what is wrong with a take in words."""
        faults = list(sound.faults)
        for name, value in self._iter_traits(sound):
            middle, far = self._usual.get((sound.group, name), (value, 0.0))
            difference = min(value - middle, 0.0) if name == "likeness" else value - middle
            is_short = name == "length" and sound.speech_s * abs(1 - math.exp(-difference)) < _LEAST_S
            if abs(difference) > far and not is_short:
                faults.append(_TRAITS[name][1].format(difference=difference, ratio=math.exp(difference)))
        return tuple(faults)
