"""Providers, which define the formats and rates of voices, and the engines that a service offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from speechlab.audio import STREAMABLE_FORMATS
from speechlab.contract import DEFAULT_SAMPLE_RATE, AudioFormat, VoiceRules


@dataclass(frozen=True, slots=True)
class Provider:
    """Formats, rates and defaults of all voices of a provider (sections 2.1 and 2.2).

    Attributes:
        name: Name of the provider; together with the voice's name it determines the voice's UUID.
        formats: Output formats.
        sample_rates: Output rates in Hz, made by resampling.
        streamable: Formats that stream.
        ogg_rate_override: False if a rate must not be set together with ogg.
        temperature: Default of ``temperature``, or None if the provider has no variation.
        heavy: Whether its engine occupies all cores for long, and so shares the slots of heavy engines.

    Example:
        >>> Provider("mine", sample_rates=(24_000,)).rules().sample_rates
        (24000,)
    """

    name: str
    formats: tuple[AudioFormat, ...] = tuple(AudioFormat)
    sample_rates: tuple[int, ...] = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)
    streamable: frozenset[AudioFormat] = STREAMABLE_FORMATS
    ogg_rate_override: bool = True
    temperature: float | None = None
    heavy: bool = True

    def rules(self, *, single_rate_override: bool = False) -> VoiceRules:
        """Return the rules for requests."""
        return VoiceRules(
            formats=frozenset(self.formats),
            sample_rates=self.sample_rates,
            streaming=bool(self.streamable & set(self.formats)),
            streamable=frozenset(self.streamable),
            ogg_rate_override=self.ogg_rate_override,
            single_rate_override=single_rate_override,
        )


# Providers by name, which is also the name of their engine. All other engines get the defaults.
PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("kokoro"),
        # Opus has five rates; this provider's ogg is Opus at 24 kHz only.
        Provider("q", ogg_rate_override=False, temperature=0.5),
        Provider("hibari", heavy=False),
        # The only provider with a single rate, so that clients can try the rule for such voices.
        Provider("openjtalk", sample_rates=(DEFAULT_SAMPLE_RATE,), heavy=False),
    )
}


@dataclass(frozen=True, slots=True)
class ServedEngine:
    """An engine that the service offers.

    Attributes:
        name: Name of the engine; for a synthesizer also that of its provider.
        kind: ``"synthesizer"``, ``"recognizer"`` or ``"translator"``.
        create: Makes the engine object; called in a worker thread.
        provider: Formats and rates of its voices, or None for the table's entry.
        heavy: Whether it shares the slots of heavy engines; None follows the provider.
    """

    name: str
    kind: Literal["synthesizer", "recognizer", "translator"]
    create: Callable[[], Any]
    provider: Provider | None = None
    heavy: bool | None = None

    @property
    def promises(self) -> Provider:
        """Formats and rates of this engine's voices."""
        return self.provider or PROVIDERS.get(self.name) or Provider(self.name)

    @property
    def is_heavy(self) -> bool:
        """Whether it shares the slots of heavy engines."""
        return self.promises.heavy if self.heavy is None else self.heavy
