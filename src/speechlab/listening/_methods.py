"""The methods of listening tests, and their properties."""

from __future__ import annotations

from typing import NamedTuple

ANCHORS_HZ = {"anchor 3.5 kHz": 3_500.0, "anchor 7 kHz": 7_000.0}
"""Low and mid-range anchor; source: ITU-R BS.1534-3, 5.1."""


class Method(NamedTuple):
    """A method of a listening test."""

    measure: str  # name of a system's mean
    difference: str  # name of a pair's difference
    scale: str  # of the answers, for their agreement
    digits: int
    smallest: float  # difference that matters, by default
    largest: float  # possible difference
    ratings: tuple[int, int] | None = None  # lowest and highest; None for a choice


METHODS = {
    "mos": Method("mean opinion score", "difference of means", "ordinal", 2, 0.2, 4.0, (1, 5)),
    "ab": Method(
        "share preferred",
        "share preferring the first less share preferring the second",
        "nominal",
        2,
        0.2,
        1.0,
    ),
    "abx": Method("share right", "share right less 0.5", "nominal", 2, 0.15, 0.5),
    "mushra": Method("MUSHRA score", "difference of means", "interval", 1, 5.0, 100.0, (0, 100)),
}
