"""Checks of ``session.update`` (sections 3, 4.3 and 7.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from speechlab.conform._model import Step, checks_of
from speechlab.conform._probe.findings import Unmet, Untried
from speechlab.conform._probe.socket import Talk
from speechlab.conform._probe.target import (
    Target,
    another_rate,
    formats_of,
    has_one_rate,
    rates_of,
    unlisted_rate,
)
from speechlab.contract import CORRELATION_ID_MAX_CHARS, DEFAULT_SAMPLE_RATE, AudioFormat

check, advice = checks_of(__name__)
_ODD_RATE = 12_345


def _refuses(code: str, **wrong: Iterable[Any]) -> Step:
    """Each of these values of a setting is refused, on one connection, which stays unconfigured."""

    def step(t: Target) -> None:
        with Talk(t) as talk:
            _all_refused(talk, *(({name: value}, code) for name in wrong for value in wrong[name]))

    return step


def _all_refused(talk: Talk, *rows: tuple[dict[str, Any], str]) -> None:
    for number, (session, code) in enumerate(rows):
        answer = talk.update(f"wrong-{number}", **session)
        if talk.refused(answer, code):
            talk.target.require(answer.get("id") == f"wrong-{number}", "the id is echoed on the error", talk)


@check("114-open", "the path accepts a valid handshake without an Origin", also=(121,))
def _open(t: Target) -> None:
    with Talk(t) as talk:
        t.require(talk.socket.protocol.state.name == "OPEN", "the connection is open", talk)


@check("125-silent", "the service sends nothing before the client's first message")
def _silent(t: Target) -> None:
    with Talk(t) as talk:
        try:
            talk.event(1.0)
        except Unmet:
            return
        t.require(condition=False, expected="nothing comes", evidence=talk)


@check("126-created", "session.created has id, service, voice_id, format, sample_rate and model")
def _created(t: Target) -> None:
    for rate in (..., 0):
        with Talk(t) as talk:
            session = talk.configured(sample_rate=rate).get("session")
            t.insist(isinstance(session, dict), "session is an object", talk)
            assert isinstance(session, dict)
            for name in ("id", "model"):
                t.require(isinstance(session.get(name), str) and session[name], f"{name} is a string", talk)
            service = session.get("service")
            right = isinstance(service, str) and service.endswith("/tts") and len(service) > len("/tts")
            t.require(right, "service is <vendor>/tts", talk)
            echoed = str(session.get("voice_id")).lower() == t.voice["id"].lower()
            t.require(echoed, "voice_id is the voice", talk)
            t.require(session.get("format") == t.stream_format, "format is the requested one", talk)
            rate_now = session.get("sample_rate")
            right = rate_now == DEFAULT_SAMPLE_RATE and type(rate_now) is int
            t.require(right, "sample_rate is 24000, for 0 and without one", talk)


@check(
    "132-override", "a listed rate is accepted and reported", also=(126,), needs="a voice with several rates"
)
def _override(t: Target) -> None:
    rate_hz = another_rate(t.voice)
    if rate_hz is None or len(rates_of(t.voice)) < 2:
        raise Untried("the voice has one rate")
    name = t.stream_format if t.stream_format != "ogg" else formats_of(t.voice)[0]
    with Talk(t) as talk:
        session = talk.configured(format=name, sample_rate=rate_hz).get("session") or {}
        t.require(session.get("sample_rate") == rate_hz, f"sample_rate is {rate_hz}", talk)


@check("127-id-on-errors", "a failed update changes nothing; its id is on the error", also=(129,))
def _id_on_errors(t: Target) -> None:
    with Talk(t) as talk:
        _all_refused(talk, ({"voice_id": ...}, "missing_voice_id"))
        talk.refused(talk.ask(type="tts.speak", id="s-1", text=t.text), "session_not_configured")
        talk.configured()


@check("128-again", "a second update, valid or not: session_already_configured")
def _again(t: Target) -> None:
    with Talk(t) as talk:
        talk.configured()
        talk.refused(talk.update(), "session_already_configured")
        talk.refused(talk.update(voice_id=t.unknown_id()), "session_already_configured")


@check("130-voice", "missing_voice_id and unknown_voice_id")
def _voice(t: Target) -> None:
    _refuses("missing_voice_id", voice_id=(...,))(t)
    _refuses("unknown_voice_id", voice_id=(t.unknown_id(),))(t)


advice("130-voice-form", "a malformed voice_id is unknown, a null one missing")(
    _refuses("unknown_voice_id", voice_id=("no-uuid",)), _refuses("missing_voice_id", voice_id=(None,))
)


@check("131-format", "unsupported_audio_format: missing, unknown, or not a format of the voice")
def _format(t: Target) -> None:
    lacking = sorted({str(each) for each in AudioFormat} - set(formats_of(t.voice)))
    _refuses("unsupported_audio_format", format=(..., "aac", "", *lacking))(t)


@check(
    "131-streaming-format", "unsupported_streaming_format if HTTP refuses to stream", also=(33,), metered=5
)
def _streaming_format(t: Target) -> None:
    _refuses("unsupported_streaming_format", format=t.unstreamable(lambda status: status == 400))(t)


check("132-rate", "unsupported_sample_rate: not listed, or negative")(
    _refuses("unsupported_sample_rate", sample_rate=(_ODD_RATE, -1))
)


@check("132-q-ogg", "unsupported_sample_rate: a rate and ogg on provider Q", needs="--q-voice")
def _q_ogg(t: Target) -> None:
    voice = t.q_voice
    rate = another_rate(voice)
    if rate is None or "ogg" not in formats_of(voice):
        raise Untried("needs a voice of provider Q with ogg and several rates")
    session = {"voice_id": voice["id"], "format": "ogg", "sample_rate": rate}
    with Talk(t) as talk:
        _all_refused(talk, (session, "unsupported_sample_rate"))
        talk.configured(**session | {"sample_rate": 0})


@check(
    "132-single-rate",
    "unsupported_sample_rate: another rate on a voice with one",
    also=(35,),
    needs="such a voice",
)
def _single_rate(t: Target) -> None:
    voice = t.voice_where(has_one_rate, "with one sample rate")
    session = {"voice_id": voice["id"], "format": formats_of(voice)[0], "sample_rate": unlisted_rate(voice)}
    with Talk(t) as talk:
        _all_refused(talk, (session, "unsupported_sample_rate"))


check("133-transport", "unsupported_audio_transport: neither binary nor base64_json")(
    _refuses("unsupported_audio_transport", audio_transport=("smoke", "BINARY", 5))
)
advice("134-temperature", "a temperature that is not a number: invalid_message")(
    _refuses("invalid_message", temperature=("hot", True))
)


@check("134-q-temperature", "provider Q accepts temperature 0.0", needs="--q-voice")
def _q_temperature(t: Target) -> None:
    with Talk(t) as talk:
        talk.configured(voice_id=t.q_voice["id"], temperature=0.0)


@check("135-denied", "a key without access to the voice: service_access_denied", needs="--restricted-key")
def _denied(t: Target) -> None:
    with Talk(t, key=t.restricted()) as talk:
        talk.refused(talk.update(), "service_access_denied")


@advice("136-no-session", "no session object: invalid_message")
def _no_session(t: Target) -> None:
    values: tuple[Any, ...] = (..., None, [], "a")
    with Talk(t) as talk:
        for value in values:
            talk.refused(talk.ask(type="session.update", session=value), "invalid_message")


@check("137-id", "an id that is not a string: invalid_id, in an error without an id")
def _id(t: Target) -> None:
    with Talk(t) as talk:
        for value in (5, ["a"], {"a": 1}):
            answer = talk.update(value)
            talk.refused(answer, "invalid_id")
            t.require(answer.get("id") is None, "the error has no id", talk)


@advice("137-id-length", "an empty id: invalid_id; 129 characters: id_too_long; 128 are accepted")
def _id_length(t: Target) -> None:
    with Talk(t) as talk:
        talk.refused(talk.update(""), "invalid_id")
        talk.refused(talk.update("x" * (CORRELATION_ID_MAX_CHARS + 1)), "id_too_long")
        talk.refused(talk.update("x" * CORRELATION_ID_MAX_CHARS, voice_id=...), "missing_voice_id")


@advice("138-order", "id, state, session, voice, format, rate, transport: in this order")
def _order(t: Target) -> None:
    with Talk(t) as talk:
        talk.refused(talk.ask(type="tts.speak", id=5, text=t.text), "invalid_id")
        _all_refused(
            talk,
            ({"voice_id": t.unknown_id(), "format": "aac"}, "unknown_voice_id"),
            ({"format": "aac", "sample_rate": _ODD_RATE}, "unsupported_audio_format"),
            ({"sample_rate": _ODD_RATE, "audio_transport": "smoke"}, "unsupported_sample_rate"),
        )
