"""Checks of access and of the form of errors (sections 2.8, 5 and 7.1)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from speechlab.conform._model import build_decorators
from speechlab.conform._probe.findings import ExpectationUnmet
from speechlab.conform._probe.sounds import build_silence
from speechlab.conform._probe.target import Target, parse_error_body
from speechlab.contract import (
    AUTHENTICATION_MESSAGE,
    RECOGNITION_PATH,
    SPEECH_PATH,
    TRANSLATION_PATH,
    VOICES_PATH,
)

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

_OPERATIONS = (SPEECH_PATH, RECOGNITION_PATH, TRANSLATION_PATH)
_ROUTES = (("GET", VOICES_PATH), *(("POST", path) for path in _OPERATIONS))
_JSON = (("Content-Type", "application/json"),)

check, advice = build_decorators(__name__)


def _require_401(t: Target, reply: Exchange) -> None:
    """Record findings about the refusal of a key."""
    if not t.require_status(reply, 401):
        return
    body = parse_error_body(reply)
    if t.require_that(body is not None, "application/json with context, code, name and error", reply):
        assert body is not None
        t.require_that(body["code"] == 104, "code 104", reply)
        t.require_that(body["name"] == "ErrAuthenticationFailed", "name ErrAuthenticationFailed", reply)
        t.require_that(body["error"] == AUTHENTICATION_MESSAGE, f"error {AUTHENTICATION_MESSAGE!r}", reply)
        t.require_that(body["context"], "a context that names the origin of the error", reply)


@check("1-key-needed", "every operation requires Authorization: Bearer")
def _check_key_needed(t: Target) -> None:
    for method, path in _ROUTES:
        t.require_status(t.send_request(method, path, auth=None), 401, "401 without the header")
        t.require_status(
            t.send_request(method, path, auth="Basic Y29uZm9ybTpjb25mb3Jt"), 401, "401 for another scheme"
        )


@check("1-one-way-in", "keys in other headers or in cookies are ignored")
def _check_misplaced_keys(t: Target) -> None:
    for name in ("X-API-Key", "Cookie", "Sec-WebSocket-Protocol"):
        value = f"api_key={t.build_unknown_key()}" if name == "Cookie" else t.build_unknown_key()
        reply = t.send_request("GET", VOICES_PATH, auth=None, headers=((name, value),))
        t.require_status(reply, 401, f"401 for a key in {name}")


@check("2-malformed", "a token without prefix, colon or body is refused with 401")
def _check_malformed_tokens(t: Target) -> None:
    for token in ("nocolon-0123456789abcdef", ":0123456789abcdef", "sl:", "other:0123456789abcdef", ""):
        t.require_status(t.send_request("GET", VOICES_PATH, auth=f"Bearer {token}".rstrip()), 401)


@check("3-401-body", "the refusal of a key has the body of the contract", also=(9,))
def _check_401_body(t: Target) -> None:
    for method, path in _ROUTES:
        _require_401(t, t.send_request(method, path, auth=f"Bearer {t.build_unknown_key()}"))
    for auth in (None, "Bearer nocolon"):
        _require_401(t, t.send_request("GET", VOICES_PATH, auth=auth))


@advice("3-challenge", "401 carries WWW-Authenticate: Bearer; one body for all causes")
def _check_bearer_challenge(t: Target) -> None:
    replies = [
        t.send_request("GET", VOICES_PATH, auth=auth)
        for auth in (None, "Bearer x", f"Bearer {t.build_unknown_key()}")
    ]
    for reply in replies:
        challenge = reply.find_header("www-authenticate") or ""
        t.require_that(challenge.lower().startswith("bearer"), "WWW-Authenticate: Bearer", reply)
    t.require_that(len({reply.body for reply in replies}) == 1, "the same body for each cause", replies[0])


@check("3-expired", "an expired key is refused like any other", needs="--expired-key")
def _check_expired_key(t: Target) -> None:
    _require_401(t, t.send_request("GET", VOICES_PATH, auth=f"Bearer {t.get_key_or_skip('expired_key')}"))


@advice("4-context", "the context of a 401 identifies the service")
def _check_401_contexts_differ(t: Target) -> None:
    contexts = []
    for path in _OPERATIONS:
        reply = t.send_request("POST", path, auth=None)
        body = parse_error_body(reply) or {}
        t.require_that(body.get("context"), "a context", reply)
        contexts.append(tuple(body.get("context", ())))
    t.require_that(
        len(set(contexts)) == len(contexts), f"a different context for each service, not {contexts}"
    )


@advice("5-scheme", "the scheme ignores case, the token does not; one header only")
def _check_scheme_case(t: Target) -> None:
    key = t.options.api_key
    reply = t.send_request("GET", VOICES_PATH, auth=f"bearer {key}")
    t.require_status(reply, 200, "the scheme is accepted in any case")
    if key.swapcase() != key:
        reply = t.send_request("GET", VOICES_PATH, auth=f"Bearer {key.swapcase()}")
        t.require_status(reply, 401, "401 for a token in the other case")
    reply = t.send_request("GET", VOICES_PATH, auth=(f"Bearer {key}", f"Bearer {key}"))
    t.require_that(reply.status in {400, 401}, "two headers are refused", reply)


@check("6-before-the-body", "the key is checked before the body is read or validated")
def _check_key_before_body(t: Target) -> None:
    auth, expected = f"Bearer {t.build_unknown_key()}", "401, whatever the body"
    for path in _OPERATIONS:
        t.require_status(t.send_request("POST", path, b"{", auth=auth, headers=_JSON), 401, expected)
        large, shown = b"x" * 2_000_000, "2,000,000 bytes"
        try:
            reply = t.send_request("POST", path, large, auth=auth, headers=_JSON, shown=shown)
        except (ExpectationUnmet, ConnectionError):
            continue  # refused so early that the reset of the connection arrived before the reply
        t.require_status(reply, 401, expected)


@advice("7-order", "a bad key is reported before an unknown path, voice or body")
def _check_401_precedence(t: Target) -> None:
    auth = f"Bearer {t.build_unknown_key()}"
    t.require_status(t.send_request("GET", "/no/such/path", auth=auth), 401, "401 before 404")
    reply = t.post_json(SPEECH_PATH, {"voice_id": t.build_unknown_id(), "text": "", "format": "?"}, auth=auth)
    t.require_status(reply, 401, "401 before 400")


@check("8-restricted", "403 for a key without the voice", metered=2, needs="--restricted-key")
def _check_restricted_voice(t: Target) -> None:
    auth = f"Bearer {t.get_key_or_skip()}"
    for stream in (False, True):
        _require_403(t, t.speak(auth=auth, stream=stream))


@check("8-no-asr", "403 for a key without recognition", metered=1, needs="--no-asr-key")
def _check_recognition_denied(t: Target) -> None:
    auth = f"Bearer {t.get_key_or_skip('no_asr_key')}"
    t.skip_without_recognition()
    _require_403(
        t, t.post_json(RECOGNITION_PATH, {"audio": base64.b64encode(build_silence()).decode()}, auth=auth)
    )


def _require_403(t: Target, reply: Exchange) -> None:
    if t.require_status(reply, 403):
        _require_code_not_104(t, reply, "another code than 104")


def _require_code_not_104(t: Target, reply: Exchange, expected: str) -> None:
    body = reply.parse_json()
    t.require_that(isinstance(body, dict) and body.get("code") != 104, expected, reply)


@check("9-body", "errors are application/json with context, code, name and error")
def _check_error_body(t: Target) -> None:
    for fields in ({}, {"voice_id": 5}, {"voice_id": t.build_unknown_id(), "text": "a", "format": "wav"}):
        reply = t.post_json(SPEECH_PATH, fields)
        t.insist_that(reply.status >= 400, "an error", reply)
        t.require_that(parse_error_body(reply), "application/json with context, code, name and error", reply)


@check("10-asr-body", "errors of recognition have the long form, or the status as code, and error")
def _check_asr_error_body(t: Target) -> None:
    t.skip_without_recognition()
    for fields in ({}, {"audio": "@@@@"}, b"{"):
        reply = t.post_json(RECOGNITION_PATH, fields)
        t.require_that(reply.media_type == "application/json", "application/json", reply)
        body = reply.parse_json()
        t.insist_that(isinstance(body, dict), "an object", reply)
        right = type(body.get("code")) is int and isinstance(body.get("error"), str)
        if t.require_that(right, "an integer code and a string error", reply) and "name" not in body:
            t.require_that(body["code"] == reply.status, "in the short form the code is the status", reply)


@advice("12-code-104", "the code 104 is for authentication only")
def _check_code_not_104(t: Target) -> None:
    for reply in (t.post_json(SPEECH_PATH, {}), t.post_json(SPEECH_PATH, b"{"), t.post_form([("text", "a")])):
        _require_code_not_104(t, reply, "a code other than 104")


@advice("13-no-such-thing", "unknown paths are 404, wrong methods 405 with Allow")
def _check_unknown_paths(t: Target) -> None:
    reply = t.send_request("GET", "/conform/no/such/path")
    t.require_that(reply.status == 404 and parse_error_body(reply), "404 with an error body", reply)
    reply = t.send_request("DELETE", SPEECH_PATH)
    t.require_that(reply.status == 405 and parse_error_body(reply), "405 with an error body", reply)
    t.require_that("POST" in (reply.find_header("allow") or ""), "Allow names POST", reply)


@check("19-paths", "the four paths exist below the base URL, without a version")
def _check_paths_exist(t: Target) -> None:
    for method, path in _ROUTES:
        reply = t.send_request(method, path, auth=None)
        t.require_that(reply.status not in {301, 302, 307, 308, 404, 405}, f"{method} {path} exists", reply)
