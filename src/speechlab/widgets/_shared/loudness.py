"""The loudness at which sounds are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.metrics import loudness

if TYPE_CHECKING:
    from speechlab.audio import AudioClip

LEVEL_LUFS = -23.0
"""Loudness at which sounds are compared; source: EBU R128, section 1."""
PEAK = 0.99
"""Maximum of a sample after a gain."""


def loudness_of(clip: AudioClip) -> float:
    """Return the integrated loudness of a clip in LUFS (ITU-R BS.1770-4); NaN for silence and for less than 0.4 s."""
    return loudness(clip.to_mono())
