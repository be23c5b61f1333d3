"""Prices of a service, and the cost of calls."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from speechlab._arguments import is_number
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.batch._plan.rows import PlannedCall

S_PER_CHARACTER = 0.15
"""Seconds of speech per character (slow Japanese), an estimate until the run has synthesised speech."""
TOKENS_PER_CHARACTER = 2.0
"""Tokens read and written per character, an estimate until the run has translations."""

Prices = Mapping[str, float]
"""The price of one unit of ``calls``, ``characters``, ``audio_s`` (seconds) and ``tokens``, in any currency."""


class Amounts(NamedTuple):
    """Amounts that a service may charge for."""

    calls: float = 0
    characters: float = 0
    audio_s: float = 0.0
    tokens: float = 0

    def plus(self, other: Amounts, times: int = 1) -> Amounts:
        """Add other amounts ``times`` times; -1 subtracts them."""
        return Amounts(*(one + times * another for one, another in zip(self, other, strict=True)))

    def cost(self, prices: Prices | None) -> float:
        """Return the cost of the amounts; 0 without prices."""
        return float(sum(price * getattr(self, name) for name, price in (prices or {}).items()))


def check_prices(prices: object, parameter: str = "prices") -> None:
    """Refuse invalid prices."""
    known = ", ".join(Amounts._fields)
    allowed = f"prices of one unit, such as {{'characters': 15 / 1_000_000}}; the units are {known}"
    if not isinstance(prices, Mapping) or not prices:
        raise InvalidRequestError(f"prices are {prices!r:.60}; give {allowed}", parameter=parameter)
    for name, price in prices.items():
        if name not in Amounts._fields or not is_number(price) or not isfinite(price) or price < 0:
            message = f"{name!r:.40}: {price!r:.40} is not a price; give {allowed}"
            raise InvalidRequestError(message, parameter=parameter)


def estimated(
    call: PlannedCall,
    s_per_character: float = S_PER_CHARACTER,
    tokens_per_character: float = TOKENS_PER_CHARACTER,
) -> Amounts:
    """Estimate the amounts of a call. Duration of speech and number of tokens are unknown before the reply."""
    what = call.operation.name
    seconds = call.characters * s_per_character if what == "synthesize" else call.audio_s
    tokens = call.characters * tokens_per_character if what == "translate" else 0
    return Amounts(1, call.characters, seconds, tokens)
