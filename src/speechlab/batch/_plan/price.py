"""What a service charges, in the units of contracts: hours of audio, millions of characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isfinite

from speechlab._arguments import build_argument_error, is_number

# A currency stands in every cost of a page: it is a short name, never a text.
_MAX_CURRENCY = 20


@dataclass(frozen=True)
class Price(Mapping[str, float]):
    """What a service charges. As a mapping, it has the price of one unit, as ``prices`` of a ``Budget``.

    Attributes:
        per_hour: Price of an hour of audio, by which studies charge recognition.
        per_million_characters: Price of a million characters sent, by which studies charge speech and translation.
        currency: The currency, as reports write it: printable, of at most 20 characters.

    Example:
        >>> dict(Price(per_hour=3600))
        {'audio_s': 1.0}
    """

    per_hour: float | None = None
    per_million_characters: float | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        for name in ("per_hour", "per_million_characters"):
            value: object = getattr(self, name)
            is_free = value is None and len(self) > 0
            if not is_free and not (is_number(value) and isfinite(value) and value >= 0):
                allowed = "a number of at least 0"
                if len(self) == 0:
                    allowed = f"{allowed}; give per_hour=, per_million_characters= or both"
                raise build_argument_error(name, value, allowed)
        currency: object = self.currency
        short = isinstance(currency, str) and currency.strip() and len(currency) <= _MAX_CURRENCY
        if not (short and self.currency.isprintable()):
            allowed = f"the name of a currency, such as 'USD', of at most {_MAX_CURRENCY} characters"
            raise build_argument_error("currency", self.currency, allowed)

    def _list_units(self) -> dict[str, float]:
        units = {"audio_s": (self.per_hour, 3600), "characters": (self.per_million_characters, 1_000_000)}
        return {name: price / count for name, (price, count) in units.items() if price is not None}

    def __getitem__(self, unit: str) -> float:
        return self._list_units()[unit]

    def __iter__(self) -> Iterator[str]:
        return iter(self._list_units())

    def __len__(self) -> int:
        return 2 - (self.per_hour, self.per_million_characters).count(None)

    def to_dict(self) -> dict[str, float | str]:
        """Return the arguments that make this price, as JSON has them."""
        return {name: value for name, value in asdict(self).items() if value is not None}
