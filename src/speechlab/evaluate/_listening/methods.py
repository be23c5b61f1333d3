"""The ways in which listeners are asked, and what follows from each."""

from __future__ import annotations

from typing import NamedTuple


class Method(NamedTuple):
    """A way of asking.

    Attributes:
        measure: What the mean of a system is called.
        difference: What the difference of a pair is called.
        scale: Scale of the answers, for the agreement.
        digits: Decimals that are shown.
        smallest: The smallest difference that matters, unless the author says otherwise.
        largest: The largest difference that there can be.
        ratings: The lowest and the highest rating; None where listeners choose.
    """

    measure: str
    difference: str
    scale: str
    digits: int
    smallest: float
    largest: float
    ratings: tuple[int, int] | None = None


METHODS = {
    "mos": Method("mean opinion score", "difference of means", "ordinal", 2, 0.2, 4.0, (1, 5)),
    "mushra": Method("MUSHRA score", "difference of means", "interval", 1, 5.0, 100.0, (0, 100)),
    "ab": Method(
        "share preferred",
        "share preferring the first less share preferring the second",
        "nominal",
        2,
        0.2,
        1.0,
    ),
    "abx": Method("share right", "share right less 0.5", "nominal", 2, 0.15, 0.5),
}
