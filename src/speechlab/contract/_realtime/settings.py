"""Validation of a ``session.update``, field by field in a fixed order (section 4.3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from speechlab.contract._errors import RealtimeCode
from speechlab.contract._formats import AudioFormat, AudioTransport
from speechlab.contract._limits import CORRELATION_ID_MAX_CHARS
from speechlab.contract._realtime.actions import SessionConfig
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.contract._realtime.actions import SessionVoice


def checked_settings(session: dict[str, Any], voice: SessionVoice | None) -> SessionConfig:
    """Check settings in the order voice, access, format, streaming, rate, transport, temperature."""
    if voice is None:
        message = f"there is no voice {quoted(session['voice_id'])}; take one from GET /tts/voices"
        raise invalid(RealtimeCode.UNKNOWN_VOICE_ID, message)
    if not voice.allowed:
        raise invalid(
            RealtimeCode.SERVICE_ACCESS_DENIED, "this key may not use the provider behind this voice"
        )
    name = session.get("format")
    if not isinstance(name, str) or name not in set(AudioFormat):
        message = f"session.format is {quoted(name)}; the formats are {', '.join(AudioFormat)}"
        raise invalid(RealtimeCode.UNSUPPORTED_AUDIO_FORMAT, message)
    voice.rules.check(format=name, stream=True)
    rate = session.get("sample_rate")
    if rate is not None and type(rate) is not int:
        message = f"session.sample_rate is {quoted(rate)}, and must be an integer, in Hz"
        raise invalid(RealtimeCode.UNSUPPORTED_SAMPLE_RATE, message)
    effective = voice.rules.check(format=name, sample_rate=rate or 0, stream=True)
    if not voice.streams(name, effective):
        message = f"format {name!r} cannot stream at {effective:,} Hz"
        raise invalid(RealtimeCode.UNSUPPORTED_STREAMING_FORMAT, message)
    transport = session.get("audio_transport")
    if transport is not None and (not isinstance(transport, str) or transport not in set(AudioTransport)):
        message = f"session.audio_transport is {quoted(transport)}; there are {', '.join(AudioTransport)}"
        raise invalid(RealtimeCode.UNSUPPORTED_AUDIO_TRANSPORT, message)
    temperature = _temperature(session.get("temperature"))
    return SessionConfig(
        voice_id=voice.id,
        model=voice.model,
        format=name,
        sample_rate=effective,
        temperature=None
        if voice.temperature is None
        else voice.temperature
        if temperature is None
        else temperature,
        audio_transport=AudioTransport(transport or AudioTransport.BINARY),
    )


def _temperature(value: object) -> float | None:
    if value is None:
        return None
    if (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value >= 0
    ):
        return float(value)
    message = f"session.temperature is {quoted(value)}, and must be a number of at least 0"
    raise invalid(RealtimeCode.INVALID_MESSAGE, message)


def correlation_id(value: object) -> str | None:
    """Return a client's id; null counts as absent."""
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise invalid(
            RealtimeCode.INVALID_ID, f"id is {quoted(value)}, and must be a string that is not empty"
        )
    if len(value) > CORRELATION_ID_MAX_CHARS:
        message = f"id has {len(value):,} characters, and may have {CORRELATION_ID_MAX_CHARS}"
        raise invalid(RealtimeCode.ID_TOO_LONG, message)
    return value


def quoted(value: object) -> str:
    """A value, shortened for an error message."""
    return "missing" if value is None else repr(value)[:60]


def invalid(code: RealtimeCode, message: str) -> InvalidRequestError:
    """An error with a code of section 7.2."""
    return InvalidRequestError(message, code=code.value)
