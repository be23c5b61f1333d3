"""Prices of a service, the maximum that a run may spend, and the amounts that it has spent."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from speechlab._arguments import is_number
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.batch._outcome import Outcome
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


_LIMITS = {
    "calls": "calls",
    "characters": "characters",
    "audio_s": "seconds of audio",
    "tokens": "tokens",
    "cost": "(cost)",
}
"""The parts of a budget, and their names in messages."""
_NOTHING = Amounts()


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum that a run may spend. The run stops before a call that would exceed one of the limits.

    The duration of speech and the tokens of a translation are known only after the reply. Before it, they are
    estimated from the run's earlier replies (at first 0.15 seconds of speech or 2 tokens per character). Calls in
    progress may exceed the budget if they need more than their estimates.

    Attributes:
        calls: Number of calls; the client's retries of a failed call do not count.
        characters: Code points of text sent.
        audio_s: Seconds of audio synthesised or transcribed.
        tokens: Tokens read and written.
        cost: Cost, in the currency of ``prices``.
        prices: The price of one unit of ``calls``, ``characters``, ``audio_s`` and ``tokens`` in your contract with
            the service, such as ``{"characters": 15 / 1_000_000, "audio_s": 0.36 / 3600}``. With prices, the run's
            ``manifest["usage"]`` has its ``cost``.

    Example:
        >>> Budget(calls=1_000, cost=5.0, prices={"characters": 0.00002})
        Budget(calls=1000, characters=None, audio_s=None, tokens=None, cost=5.0, prices={'characters': 2e-05})
    """

    calls: int | None = None
    characters: int | None = None
    audio_s: float | None = None
    tokens: int | None = None
    cost: float | None = None
    prices: Prices | None = None

    def __post_init__(self) -> None:
        for name in _LIMITS:
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value >= 0):
                message = f"budget {name} is {value!r}; give a number of at least 0, or None for no limit"
                raise InvalidRequestError(message, parameter="budget")
        if self.prices is not None:
            check_prices(self.prices, "budget")
        elif self.cost is not None:
            message = (
                f"a budget with cost={self.cost:g} needs the prices of your contract with the service, as in "
                "prices={'characters': 0.000015}"
            )
            raise InvalidRequestError(message, parameter="budget")


class Spending:
    """Amounts that a run has spent, and amounts that its calls in progress have reserved."""

    def __init__(self, budget: Budget) -> None:
        limits = {name: getattr(budget, name) for name in _LIMITS}
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        self._prices = budget.prices
        self.reason = ""
        self._spent = Amounts()
        self._reserved = Amounts()
        self._known = Amounts()
        """Audio and tokens of replies so far, for estimates."""
        self._with_audio = 0
        self._with_tokens = 0

    def share(self, amounts: Amounts) -> Spending:
        """A budget of these amounts alone, with the estimates of this one."""
        part = copy(self)
        values = {**amounts._asdict(), "cost": amounts.cost(self._prices)}
        limits = {name: values[name] for name in self._limits}
        vars(part).update(_limits=limits, _spent=_NOTHING, _reserved=_NOTHING)
        return part

    def reserve(self, call: PlannedCall) -> Amounts | None:
        """Reserve the cost of a call."""
        if not self._limits:
            return _NOTHING
        known = self._known
        own = estimated(
            call,
            known.audio_s / self._with_audio if self._with_audio else S_PER_CHARACTER,
            known.tokens / self._with_tokens if self._with_tokens else TOKENS_PER_CHARACTER,
        )
        after = self._spent.plus(self._reserved).plus(own)
        values = {**after._asdict(), "cost": after.cost(self._prices)}
        for name, limit in self._limits.items():
            if values[name] > limit:
                why = "is used up"
                if after.calls == 1 and not self._spent.calls:
                    why = f"is less than the first call's estimate of {values[name]:.3g}; nothing was asked"
                self.reason = f"the budget of {limit:g} {_LIMITS[name]} {why}"
                return None
        self._reserved = self._reserved.plus(own)
        return own

    @property
    def under_way(self) -> bool:
        """Whether calls in progress have reserved amounts, which they may not need."""
        return self._reserved.calls > 0

    def settle(self, call: PlannedCall, outcome: Outcome | None, reserved: Amounts) -> None:
        """Release the reserved amounts of a call, and count what it spent. The outcome of an unmade call is None."""
        if not self._limits:
            return
        self._reserved = self._reserved.plus(reserved, -1)
        if outcome is None:
            return
        # the text of a failed call was sent and may be charged for
        spent = Amounts(1, call.characters, outcome.audio_s, outcome.tokens)
        self._spent, self._known = self._spent.plus(spent), self._known.plus(spent)
        self._with_audio += call.characters if outcome.audio_s else 0
        self._with_tokens += call.characters if outcome.tokens else 0
