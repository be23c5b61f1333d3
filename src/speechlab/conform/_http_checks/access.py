"""Checks of access and of the form of errors (sections 2.8, 5 and 7.1)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from speechlab.conform._model import checks_of
from speechlab.conform._probe.findings import Unmet
from speechlab.conform._probe.sounds import silence
from speechlab.conform._probe.target import Target, full_body
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

check, advice = checks_of(__name__)


def _refused_401(t: Target, reply: Exchange) -> None:
    """Record findings about the refusal of a key."""
    if not t.answers(reply, 401):
        return
    body = full_body(reply)
    if t.require(body is not None, "application/json with context, code, name and error", reply):
        assert body is not None
        t.require(body["code"] == 104, "code 104", reply)
        t.require(body["name"] == "ErrAuthenticationFailed", "name ErrAuthenticationFailed", reply)
        t.require(body["error"] == AUTHENTICATION_MESSAGE, f"error {AUTHENTICATION_MESSAGE!r}", reply)
        t.require(body["context"], "a context that names the origin of the error", reply)


@check("1-key-needed", "every operation requires Authorization: Bearer")
def _key_needed(t: Target) -> None:
    for method, path in _ROUTES:
        t.answers(t.request(method, path, auth=None), 401, "401 without the header")
        t.answers(t.request(method, path, auth="Basic Y29uZm9ybTpjb25mb3Jt"), 401, "401 for another scheme")


@check("1-one-way-in", "keys in other headers or in cookies are ignored")
def _one_way_in(t: Target) -> None:
    for name in ("X-API-Key", "Cookie", "Sec-WebSocket-Protocol"):
        value = f"api_key={t.unknown_key()}" if name == "Cookie" else t.unknown_key()
        reply = t.request("GET", VOICES_PATH, auth=None, headers=((name, value),))
        t.answers(reply, 401, f"401 for a key in {name}")


@check("2-malformed", "a token without prefix, colon or body is refused with 401")
def _malformed(t: Target) -> None:
    for token in ("nocolon-0123456789abcdef", ":0123456789abcdef", "sl:", "other:0123456789abcdef", ""):
        t.answers(t.request("GET", VOICES_PATH, auth=f"Bearer {token}".rstrip()), 401)


@check("3-401-body", "the refusal of a key has the body of the contract", also=(9,))
def _body_401(t: Target) -> None:
    for method, path in _ROUTES:
        _refused_401(t, t.request(method, path, auth=f"Bearer {t.unknown_key()}"))
    for auth in (None, "Bearer nocolon"):
        _refused_401(t, t.request("GET", VOICES_PATH, auth=auth))


@advice("3-challenge", "401 carries WWW-Authenticate: Bearer; one body for all causes")
def _challenge(t: Target) -> None:
    replies = [
        t.request("GET", VOICES_PATH, auth=auth) for auth in (None, "Bearer x", f"Bearer {t.unknown_key()}")
    ]
    for reply in replies:
        challenge = reply.header("www-authenticate") or ""
        t.require(challenge.lower().startswith("bearer"), "WWW-Authenticate: Bearer", reply)
    t.require(len({reply.body for reply in replies}) == 1, "the same body for each cause", replies[0])


@check("3-expired", "an expired key is refused like any other", needs="--expired-key")
def _expired(t: Target) -> None:
    _refused_401(t, t.request("GET", VOICES_PATH, auth=f"Bearer {t.restricted('expired_key')}"))


@advice("4-context", "the context of a 401 identifies the service")
def _context(t: Target) -> None:
    contexts = []
    for path in _OPERATIONS:
        reply = t.request("POST", path, auth=None)
        body = full_body(reply) or {}
        t.require(body.get("context"), "a context", reply)
        contexts.append(tuple(body.get("context", ())))
    t.require(len(set(contexts)) == len(contexts), f"a different context for each service, not {contexts}")


@advice("5-scheme", "the scheme ignores case, the token does not; one header only")
def _scheme(t: Target) -> None:
    key = t.options.api_key
    reply = t.request("GET", VOICES_PATH, auth=f"bearer {key}")
    t.answers(reply, 200, "the scheme is accepted in any case")
    if key.swapcase() != key:
        reply = t.request("GET", VOICES_PATH, auth=f"Bearer {key.swapcase()}")
        t.answers(reply, 401, "401 for a token in the other case")
    reply = t.request("GET", VOICES_PATH, auth=(f"Bearer {key}", f"Bearer {key}"))
    t.require(reply.status in {400, 401}, "two headers are refused", reply)


@check("6-before-the-body", "the key is checked before the body is read or validated")
def _before_the_body(t: Target) -> None:
    auth, expected = f"Bearer {t.unknown_key()}", "401, whatever the body"
    for path in _OPERATIONS:
        t.answers(t.request("POST", path, b"{", auth=auth, headers=_JSON), 401, expected)
        large, shown = b"x" * 2_000_000, "2,000,000 bytes"
        try:
            reply = t.request("POST", path, large, auth=auth, headers=_JSON, shown=shown)
        except (Unmet, ConnectionError):
            continue  # refused so early that the reset of the connection arrived before the reply
        t.answers(reply, 401, expected)


@advice("7-order", "a bad key is reported before an unknown path, voice or body")
def _order(t: Target) -> None:
    auth = f"Bearer {t.unknown_key()}"
    t.answers(t.request("GET", "/no/such/path", auth=auth), 401, "401 before 404")
    reply = t.post(SPEECH_PATH, {"voice_id": t.unknown_id(), "text": "", "format": "?"}, auth=auth)
    t.answers(reply, 401, "401 before 400")


@check("8-restricted", "403 for a key without the voice", metered=2, needs="--restricted-key")
def _restricted(t: Target) -> None:
    auth = f"Bearer {t.restricted()}"
    for stream in (False, True):
        _denied(t, t.speak(auth=auth, stream=stream))


@check("8-no-asr", "403 for a key without recognition", metered=1, needs="--no-asr-key")
def _no_asr(t: Target) -> None:
    auth = f"Bearer {t.restricted('no_asr_key')}"
    t.need_recognition()
    _denied(t, t.post(RECOGNITION_PATH, {"audio": base64.b64encode(silence()).decode()}, auth=auth))


def _denied(t: Target, reply: Exchange) -> None:
    if t.answers(reply, 403):
        _is_not_104(t, reply, "another code than 104")


def _is_not_104(t: Target, reply: Exchange, expected: str) -> None:
    body = reply.json()
    t.require(isinstance(body, dict) and body.get("code") != 104, expected, reply)


@check("9-body", "errors are application/json with context, code, name and error")
def _body(t: Target) -> None:
    for fields in ({}, {"voice_id": 5}, {"voice_id": t.unknown_id(), "text": "a", "format": "wav"}):
        reply = t.post(SPEECH_PATH, fields)
        t.insist(reply.status >= 400, "an error", reply)
        t.require(full_body(reply), "application/json with context, code, name and error", reply)


@check("10-asr-body", "errors of recognition have the long form, or the status as code, and error")
def _asr_body(t: Target) -> None:
    t.need_recognition()
    for fields in ({}, {"audio": "@@@@"}, b"{"):
        reply = t.post(RECOGNITION_PATH, fields)
        t.require(reply.media_type == "application/json", "application/json", reply)
        body = reply.json()
        t.insist(isinstance(body, dict), "an object", reply)
        right = type(body.get("code")) is int and isinstance(body.get("error"), str)
        if t.require(right, "an integer code and a string error", reply) and "name" not in body:
            t.require(body["code"] == reply.status, "in the short form the code is the status", reply)


@advice("12-code-104", "the code 104 is for authentication only")
def _code_104(t: Target) -> None:
    for reply in (t.post(SPEECH_PATH, {}), t.post(SPEECH_PATH, b"{"), t.form([("text", "a")])):
        _is_not_104(t, reply, "a code other than 104")


@advice("13-no-such-thing", "unknown paths are 404, wrong methods 405 with Allow")
def _no_such_thing(t: Target) -> None:
    reply = t.request("GET", "/conform/no/such/path")
    t.require(reply.status == 404 and full_body(reply), "404 with an error body", reply)
    reply = t.request("DELETE", SPEECH_PATH)
    t.require(reply.status == 405 and full_body(reply), "405 with an error body", reply)
    t.require("POST" in (reply.header("allow") or ""), "Allow names POST", reply)


@check("19-paths", "the four paths exist below the base URL, without a version")
def _paths(t: Target) -> None:
    for method, path in _ROUTES:
        reply = t.request(method, path, auth=None)
        t.require(reply.status not in {301, 302, 307, 308, 404, 405}, f"{method} {path} exists", reply)
