"""Fields of voices of the catalogue, whose form is not trusted."""

from __future__ import annotations

from typing import Any

from speechlab.contract import DEFAULT_SAMPLE_RATE


def formats_of(voice: dict[str, Any]) -> list[str]:
    """Return a voice's formats that are strings."""
    formats = voice.get("formats")
    return [each for each in formats if isinstance(each, str)] if isinstance(formats, list) else []


def rates_of(voice: dict[str, Any]) -> list[int]:
    """Return a voice's sample rates; none if the field is absent."""
    rates = voice.get("sample_rates")
    return [each for each in rates if type(each) is int] if isinstance(rates, list) else []


def another_rate(voice: dict[str, Any]) -> int | None:
    """Return a rate of a voice other than the default, or None."""
    return next((rate for rate in rates_of(voice) if rate != DEFAULT_SAMPLE_RATE), None)


def unlisted_rate(voice: dict[str, Any]) -> int:
    """Return a usual rate that a voice with one rate does not list."""
    return 16_000 if rates_of(voice) != [16_000] else 8_000


def has_one_rate(voice: dict[str, Any]) -> bool:
    """Whether a voice has one sample rate only."""
    return len(rates_of(voice)) == 1
