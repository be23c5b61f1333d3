"""Checks of malformed messages and frames (sections 3 and 7.2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from speechlab.conform._model import build_decorators
from speechlab.conform._probe.socket import Talk, TalkClosed

if TYPE_CHECKING:
    from speechlab.conform._probe.target import Target

check, advice = build_decorators(__name__)
_BINARY, _TOO_LARGE, _BAD_DATA, _BROKEN = 1003, 1009, 1007, 1006


def _send_raw_and_receive(talk: Talk, data: Any) -> dict[str, Any]:
    talk.send_raw(data)
    return talk.receive_message()


@check("157-router", "router.error: invalid_json, missing_message_type, unknown_message_type")
def _check_router_errors(t: Target) -> None:
    with Talk(t) as talk:
        for data, code in (
            ("{", "invalid_json"),
            ("", "invalid_json"),
            ("{}", "missing_message_type"),
            ('{"type": "conform.unknown"}', "unknown_message_type"),
        ):
            talk.require_error(_send_raw_and_receive(talk, data), code, "router.error")
        talk.configure_session()
        talk.require_error(_send_raw_and_receive(talk, "no json"), "invalid_json", "router.error")
        talk.require_error(talk.ask_update(), "session_already_configured")


@advice("157-router-types", "not an object, or a type that is not a string: missing_message_type")
def _check_missing_message_type(t: Target) -> None:
    with Talk(t) as talk:
        for data in ("[]", "5", "null", '{"type": 5}', '{"type": null}'):
            talk.require_error(_send_raw_and_receive(talk, data), "missing_message_type", "router.error")


@check("158-binary", "a binary frame, even an empty one, closes with 1003 in any state")
def _check_binary_frame(t: Target) -> None:
    for configured in (False, True):
        for data in (b"\x00\x01", b""):
            with Talk(t) as talk:
                if configured:
                    talk.configure_session()
                talk.send_raw(data)
                talk.insist_close(_BINARY)


@check("158-binary-busy", "a binary frame during a synthesis closes with 1003 too", metered=1)
def _check_binary_while_speaking(t: Target) -> None:
    with Talk(t) as talk:
        talk.configure_session()
        talk.send_message(type="tts.speak", text=t.several_sentences)
        t.metered += 1
        talk.send_raw(b"\x00")
        talk.insist_close(_BINARY)


@check("159-huge", "a message of 4 MB: tts_control_frame_too_large, or close code 1009")
def _check_huge_message(t: Target) -> None:
    for last in (False, False, False, False, True):
        with Talk(t) as talk:
            try:
                talk.send_message(type="tts.speak", text="a" * (4 * 1024 * 1024))
                answer = talk.receive_event()
            except TalkClosed:
                code = talk.socket.close_code
                if code == _BROKEN and not last:
                    continue  # a reset may have arrived before the close frame
                t.require_that(code == _TOO_LARGE, f"close code 1009, and not {code}", talk)
                return
            code = answer.get("code") if isinstance(answer, dict) else None
            t.require_that(code == "tts_control_frame_too_large", "tts_control_frame_too_large", talk)
            return


@check("159-legal-size", "a text of the maximum length is not too large, even escaped as surrogate pairs")
def _check_longest_text_fits_frame(t: Target) -> None:
    with Talk(t) as talk:
        text = json.dumps("\U0001f600" * t.options.text_limit)
        answer = _send_raw_and_receive(talk, f'{{"type": "tts.speak", "text": {text}}}')
        talk.require_error(answer, "session_not_configured")


@advice("159-large", "129 KiB: tts_control_frame_too_large, and the connection stays open")
def _check_oversized_message(t: Target) -> None:
    with Talk(t) as talk:
        answer = _send_raw_and_receive(talk, json.dumps({"type": "tts.speak", "text": "a" * 129 * 1024}))
        talk.require_error(answer, "tts_control_frame_too_large")
        talk.configure_session()


@check("160-fragments", "a message in fragments is one message")
def _check_fragmented_message(t: Target) -> None:
    with Talk(t) as talk:
        answer = _send_raw_and_receive(talk, ['{"type": "tts', ".speak", '", "text": "あ"}'])
        talk.require_error(answer, "session_not_configured")


@check("160-bad-utf8", "text that is not UTF-8 closes with 1007")
def _check_bad_utf8(t: Target) -> None:
    with Talk(t) as talk:
        talk.send_raw(b'{"type": "\xc3\x28"}', text=True)
        talk.insist_close(_BAD_DATA)


@check("160-pong", "pings are answered during a synthesis", metered=1, quick=False)
def _check_pong(t: Target) -> None:
    with Talk(t) as talk:
        talk.configure_session()
        talk.send_message(type="tts.speak", text=t.several_sentences)
        answered = talk.socket.ping()
        attempt = talk.receive_to_end(t.several_sentences, ...)
        t.require_that(answered.wait(5.0), "a pong arrives", attempt)
