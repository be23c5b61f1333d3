"""Checks of ``session.update`` (sections 3, 4.3 and 7.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from speechlab.conform._model import Step, build_decorators
from speechlab.conform._probe.findings import CheckSkipped, ExpectationUnmet
from speechlab.conform._probe.socket import Talk
from speechlab.conform._probe.target import (
    Target,
    choose_unlisted_rate,
    find_other_rate,
    has_one_rate,
    list_formats,
    list_rates,
)
from speechlab.contract import CORRELATION_ID_MAX_CHARS, DEFAULT_SAMPLE_RATE, AudioFormat

check, advice = build_decorators(__name__)
_ODD_RATE = 12_345


def _build_setting_refusal_step(code: str, **wrong: Iterable[Any]) -> Step:
    """Each of these values of a setting is refused, on one connection, which stays unconfigured."""

    def require_refusals(t: Target) -> None:
        with Talk(t) as talk:
            _require_update_errors(talk, *(({name: value}, code) for name in wrong for value in wrong[name]))

    return require_refusals


def _require_update_errors(talk: Talk, *rows: tuple[dict[str, Any], str]) -> None:
    for number, (session, code) in enumerate(rows):
        answer = talk.ask_update(f"wrong-{number}", **session)
        if talk.require_error(answer, code):
            talk.target.require_that(
                answer.get("id") == f"wrong-{number}", "the id is echoed on the error", talk
            )


@check("114-open", "the path accepts a valid handshake without an Origin", also=(121,))
def _check_connection_opens(t: Target) -> None:
    with Talk(t) as talk:
        t.require_that(talk.socket.protocol.state.name == "OPEN", "the connection is open", talk)


@check("125-silent", "the service sends nothing before the client's first message")
def _check_nothing_sent_first(t: Target) -> None:
    with Talk(t) as talk:
        try:
            talk.receive_event(1.0)
        except ExpectationUnmet:
            return
        t.require_that(condition=False, expected="nothing comes", evidence=talk)


@check("126-created", "session.created has id, service, voice_id, format, sample_rate and model")
def _check_session_created(t: Target) -> None:
    for rate in (..., 0):
        with Talk(t) as talk:
            session = talk.configure_session(sample_rate=rate).get("session")
            t.insist_that(isinstance(session, dict), "session is an object", talk)
            assert isinstance(session, dict)
            for name in ("id", "model"):
                t.require_that(
                    isinstance(session.get(name), str) and session[name], f"{name} is a string", talk
                )
            service = session.get("service")
            right = isinstance(service, str) and service.endswith("/tts") and len(service) > len("/tts")
            t.require_that(right, "service is <vendor>/tts", talk)
            echoed = str(session.get("voice_id")).lower() == t.voice["id"].lower()
            t.require_that(echoed, "voice_id is the voice", talk)
            t.require_that(session.get("format") == t.stream_format, "format is the requested one", talk)
            rate_now = session.get("sample_rate")
            right = rate_now == DEFAULT_SAMPLE_RATE and type(rate_now) is int
            t.require_that(right, "sample_rate is 24000, for 0 and without one", talk)


@check(
    "132-override", "a listed rate is accepted and reported", also=(126,), needs="a voice with several rates"
)
def _check_rate_override(t: Target) -> None:
    rate_hz = find_other_rate(t.voice)
    if rate_hz is None or len(list_rates(t.voice)) < 2:
        raise CheckSkipped("the voice has one rate")
    name = t.stream_format if t.stream_format != "ogg" else list_formats(t.voice)[0]
    with Talk(t) as talk:
        session = talk.configure_session(format=name, sample_rate=rate_hz).get("session") or {}
        t.require_that(session.get("sample_rate") == rate_hz, f"sample_rate is {rate_hz}", talk)


@check("127-id-on-errors", "a failed update changes nothing; its id is on the error", also=(129,))
def _check_id_on_errors(t: Target) -> None:
    with Talk(t) as talk:
        _require_update_errors(talk, ({"voice_id": ...}, "missing_voice_id"))
        talk.require_error(
            talk.ask_message(type="tts.speak", id="s-1", text=t.text), "session_not_configured"
        )
        talk.configure_session()


@check("128-again", "a second update, valid or not: session_already_configured")
def _check_second_update(t: Target) -> None:
    with Talk(t) as talk:
        talk.configure_session()
        talk.require_error(talk.ask_update(), "session_already_configured")
        talk.require_error(talk.ask_update(voice_id=t.build_unknown_id()), "session_already_configured")


@check("130-voice", "missing_voice_id and unknown_voice_id")
def _check_voice_refusals(t: Target) -> None:
    _build_setting_refusal_step("missing_voice_id", voice_id=(...,))(t)
    _build_setting_refusal_step("unknown_voice_id", voice_id=(t.build_unknown_id(),))(t)


advice("130-voice-form", "a malformed voice_id is unknown, a null one missing")(
    _build_setting_refusal_step("unknown_voice_id", voice_id=("no-uuid",)),
    _build_setting_refusal_step("missing_voice_id", voice_id=(None,)),
)


@check("131-format", "unsupported_audio_format: missing, unknown, or not a format of the voice")
def _check_format_refusals(t: Target) -> None:
    lacking = sorted({str(each) for each in AudioFormat} - set(list_formats(t.voice)))
    _build_setting_refusal_step("unsupported_audio_format", format=(..., "aac", "", *lacking))(t)


@check(
    "131-streaming-format", "unsupported_streaming_format if HTTP refuses to stream", also=(33,), metered=5
)
def _check_streaming_format_refusal(t: Target) -> None:
    _build_setting_refusal_step(
        "unsupported_streaming_format", format=t.probe_unstreamable_formats(lambda status: status == 400)
    )(t)


check("132-rate", "unsupported_sample_rate: not listed, or negative")(
    _build_setting_refusal_step("unsupported_sample_rate", sample_rate=(_ODD_RATE, -1))
)


@check("132-q-ogg", "unsupported_sample_rate: a rate and ogg on provider Q", needs="--q-voice")
def _check_provider_q_ogg_rate(t: Target) -> None:
    voice = t.q_voice
    rate = find_other_rate(voice)
    if rate is None or "ogg" not in list_formats(voice):
        raise CheckSkipped("needs a voice of provider Q with ogg and several rates")
    session = {"voice_id": voice["id"], "format": "ogg", "sample_rate": rate}
    with Talk(t) as talk:
        _require_update_errors(talk, (session, "unsupported_sample_rate"))
        talk.configure_session(**session | {"sample_rate": 0})


@check(
    "132-single-rate",
    "unsupported_sample_rate: another rate on a voice with one",
    also=(35,),
    needs="such a voice",
)
def _check_single_rate_override(t: Target) -> None:
    voice = t.choose_voice_or_skip(has_one_rate, "with one sample rate")
    session = {
        "voice_id": voice["id"],
        "format": list_formats(voice)[0],
        "sample_rate": choose_unlisted_rate(voice),
    }
    with Talk(t) as talk:
        _require_update_errors(talk, (session, "unsupported_sample_rate"))


check("133-transport", "unsupported_audio_transport: neither binary nor base64_json")(
    _build_setting_refusal_step("unsupported_audio_transport", audio_transport=("smoke", "BINARY", 5))
)
advice("134-temperature", "a temperature that is not a number: invalid_message")(
    _build_setting_refusal_step("invalid_message", temperature=("hot", True))
)


@check("134-q-temperature", "provider Q accepts temperature 0.0", needs="--q-voice")
def _check_provider_q_accepts_temperature(t: Target) -> None:
    with Talk(t) as talk:
        talk.configure_session(voice_id=t.q_voice["id"], temperature=0.0)


@check("135-denied", "a key without access to the voice: service_access_denied", needs="--restricted-key")
def _check_access_denied(t: Target) -> None:
    with Talk(t, key=t.get_key_or_skip()) as talk:
        talk.require_error(talk.ask_update(), "service_access_denied")


@advice("136-no-session", "no session object: invalid_message")
def _check_session_not_object(t: Target) -> None:
    values: tuple[Any, ...] = (..., None, [], "a")
    with Talk(t) as talk:
        for value in values:
            talk.require_error(talk.ask_message(type="session.update", session=value), "invalid_message")


@check("137-id", "an id that is not a string: invalid_id, in an error without an id")
def _check_id_type(t: Target) -> None:
    with Talk(t) as talk:
        for value in (5, ["a"], {"a": 1}):
            answer = talk.ask_update(value)
            talk.require_error(answer, "invalid_id")
            t.require_that(answer.get("id") is None, "the error has no id", talk)


@advice("137-id-length", "an empty id: invalid_id; 129 characters: id_too_long; 128 are accepted")
def _check_id_length(t: Target) -> None:
    with Talk(t) as talk:
        talk.require_error(talk.ask_update(""), "invalid_id")
        talk.require_error(talk.ask_update("x" * (CORRELATION_ID_MAX_CHARS + 1)), "id_too_long")
        talk.require_error(talk.ask_update("x" * CORRELATION_ID_MAX_CHARS, voice_id=...), "missing_voice_id")


@advice("138-order", "id, state, session, voice, format, rate, transport: in this order")
def _check_error_order(t: Target) -> None:
    with Talk(t) as talk:
        talk.require_error(talk.ask_message(type="tts.speak", id=5, text=t.text), "invalid_id")
        _require_update_errors(
            talk,
            ({"voice_id": t.build_unknown_id(), "format": "aac"}, "unknown_voice_id"),
            ({"format": "aac", "sample_rate": _ODD_RATE}, "unsupported_audio_format"),
            ({"sample_rate": _ODD_RATE, "audio_transport": "smoke"}, "unsupported_sample_rate"),
        )
