"""The voice catalogue: the voices of all engines, in the form of the contract (sections 2.1 and 4.2)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from speechlab.contract import Voice, VoiceRules, parse_uuid
from speechlab.service._engines.threads import to_failure
from speechlab.service._logs import build_error_fields, log

if TYPE_CHECKING:
    from speechlab.engines import EngineVoice
    from speechlab.service._engines.lanes import EngineLane
    from speechlab.service._providers import Provider

_NAMESPACE = uuid.UUID("6f0d1c1e-7c56-5b0e-9a53-3d0f1e6f2a01")


def voice_uuid(provider: str, voice: str) -> str:
    """Return the id of a voice: the same on every machine and in every version.

    Example:
        >>> voice_uuid("kokoro", "af_heart")
        'affeb987-99ef-5328-be70-ac46e243d4d6'
    """
    return str(uuid.uuid5(_NAMESPACE, f"{provider}/{voice}"))


@dataclass(frozen=True, slots=True)
class CatalogueVoice:
    """A voice, its provider, and the lane of its engine."""

    id: str
    voice: EngineVoice
    provider: Provider
    rules: VoiceRules
    lane: EngineLane

    def to_voice(self) -> Voice:
        """Return the voice in the form of the catalogue."""
        return Voice(
            id=self.id,
            description=f"{self.voice.description} ({self.provider.name}: {self.voice.name})",
            language=", ".join(self.voice.languages),
            gender=self.voice.gender,
            formats=tuple(str(item) for item in self.provider.formats),
            sample_rates=self.provider.sample_rates,
            streaming=self.rules.streaming,
        )


class Catalogue:
    """The available voices.

    Engines may gain voices while the service runs (``speechlab engines add``). The list is therefore made again for
    each request of it, and for a voice that it does not contain.
    """

    def __init__(self, lanes: Sequence[EngineLane], *, single_rate_override: bool = False) -> None:
        self._lanes = lanes
        self._single_rate_override = single_rate_override
        self._voices: dict[str, CatalogueVoice] = {}
        self._broken: dict[str, Exception] = {}
        self._read_at = float("-inf")

    def refresh_voices(self, *, again: bool = False) -> list[CatalogueVoice]:
        """Get the voices of all engines; an engine that cannot be made has none. Blocks; for worker threads."""
        voices_by_id: dict[str, CatalogueVoice] = {}
        broken: dict[str, Exception] = {}
        for lane in self._lanes:
            provider = lane.entry.promises
            former = {known.id: known for known in self._voices.values() if known.lane is lane}
            if former and not (lane.has_engine or again):
                # Unloaded when idle: its voices are known, and it is not made again for them.
                voices_by_id.update(former)
                continue
            rules = provider.rules(single_rate_override=self._single_rate_override)
            try:
                voices = lane.get_or_create_engine().voices
            except BaseException as raised:  # noqa: BLE001 - an engine may raise anything, and must not hide the others
                error = broken[provider.name] = to_failure(raised)
                if provider.name not in self._broken:
                    fields = {"provider": provider.name, **build_error_fields(error)}
                    log("an engine has no voices", level="error", **fields)
                continue
            for voice in voices:
                identity = voice_uuid(provider.name, voice.name)
                voices_by_id[identity] = CatalogueVoice(identity, voice, provider, rules, lane)
        self._voices, self._broken, self._read_at = voices_by_id, broken, time.monotonic()
        if broken and not voices_by_id:
            raise next(iter(broken.values()))
        return list(voices_by_id.values())

    def find_voice(self, voice_id: str) -> CatalogueVoice | None:
        """Find a voice by its id in any case. Blocks; for worker threads."""
        identity = parse_uuid(voice_id)
        if identity is None:
            return None
        voice = self._voices.get(identity)
        if voice is None and time.monotonic() - self._read_at > 1.0:
            self.refresh_voices(again=True)
            voice = self._voices.get(identity)
        return voice

    def build_listing(self) -> dict[str, Any]:
        """Return the reply of ``GET /tts/voices``. Blocks; for worker threads."""
        return {"voices": [voice.to_voice().model_dump(mode="json") for voice in self.refresh_voices()]}
