"""Prices that a user gives, and what calls cost by them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from speechlab._arguments import is_number
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.batch._plan.rows import PlannedCall

S_PER_CHARACTER = 0.15
"""Seconds of speech per character (slow Japanese), until a run has speech of its own to estimate from."""
TOKENS_PER_CHARACTER = 2.0
"""Tokens read and written per character, until a run has translations of its own to estimate from."""

Prices = Mapping[str, float]
"""The price of one of each, in any currency: ``calls``, ``characters``, ``audio_s`` (seconds) and ``tokens``."""


class Amounts(NamedTuple):
    """Amounts that a service may charge for.

    Attributes:
        calls: Calls.
        characters: Code points of text sent.
        audio_s: Seconds of audio heard or made.
        tokens: Tokens read and written.
    """

    calls: float = 0
    characters: float = 0
    audio_s: float = 0.0
    tokens: float = 0

    def plus(self, other: Amounts, times: int = 1) -> Amounts:
        """Add other amounts, or with -1 take them away."""
        return Amounts(*(one + times * another for one, another in zip(self, other, strict=True)))

    def cost(self, prices: Prices | None) -> float:
        """Return what they cost."""
        return float(sum(price * getattr(self, name) for name, price in (prices or {}).items()))


def check_prices(prices: object, parameter: str = "prices") -> None:
    """Refuse what are no prices.

    Raises:
        InvalidRequestError: A name is unknown, or a price is no number of at least 0.
    """
    known = ", ".join(Amounts._fields)
    allowed = f"a price of one of each, such as {{'characters': 15 / 1_000_000}}; there are {known}"
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
    """Return what a call is likely to take; how long speech becomes, and how many tokens, is not known before."""
    what = call.operation.name
    seconds = call.characters * s_per_character if what == "synthesize" else call.audio_s
    tokens = call.characters * tokens_per_character if what == "translate" else 0
    return Amounts(1, call.characters, seconds, tokens)
