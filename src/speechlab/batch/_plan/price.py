"""What a service charges, in the units of contracts: hours of audio, millions of characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isfinite

from speechlab._arguments import build_argument_error, is_number
from speechlab.errors import InvalidRequestError

# The price of one unit of an amount, from the price in a contract.
_UNITS = {
    "per_call": ("calls", 1),
    "per_million_characters": ("characters", 1_000_000),
    "per_hour": ("audio_s", 3600),
    "per_million_tokens": ("tokens", 1_000_000),
}

# A currency stands in every cost of a page: it is a short name, never a text.
_MAX_CURRENCY = 20


@dataclass(frozen=True)
class Price(Mapping[str, float]):
    """What a service charges. As a mapping, it has the price of one unit, as ``prices`` of a ``Budget``.

    Attributes:
        per_hour: Price of an hour of audio, recognized or spoken.
        per_million_characters: Price of a million characters sent.
        per_million_tokens: Price of a million tokens read and written.
        per_call: Price of a call.
        currency: The currency, as reports write it: printable, of at most 20 characters.

    Example:
        >>> dict(Price(per_hour=3600))
        {'audio_s': 1.0}
    """

    per_hour: float | None = None
    per_million_characters: float | None = None
    per_million_tokens: float | None = None
    per_call: float | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        values = {name: getattr(self, name) for name in _UNITS}
        for name, value in values.items():
            if value is not None and not (is_number(value) and isfinite(value) and value >= 0):
                raise build_argument_error(name, value, "a price of at least 0, or None")
        if all(value is None for value in values.values()):
            message = f"the price has no number; give {', '.join(f'{name}=' for name in _UNITS)} or several"
            raise InvalidRequestError(message, parameter="prices")
        currency: object = self.currency
        short = isinstance(currency, str) and currency.strip() and len(currency) <= _MAX_CURRENCY
        if not (short and self.currency.isprintable()):
            allowed = f"the name of a currency, such as 'USD', of at most {_MAX_CURRENCY} characters"
            raise build_argument_error("currency", self.currency, allowed)

    def __getitem__(self, unit: str) -> float:
        for name, (amount, count) in _UNITS.items():
            if amount == unit and (value := getattr(self, name)) is not None:
                return float(value) / count
        raise KeyError(unit)

    def __iter__(self) -> Iterator[str]:
        return (unit for name, (unit, _) in _UNITS.items() if getattr(self, name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def to_dict(self) -> dict[str, float | str]:
        """Return the arguments that make this price, as JSON has them."""
        return {name: value for name, value in asdict(self).items() if value is not None}
