"""Checks of refusals before the upgrade (section 5, items 3 to 6)."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from speechlab.conform._model import Step, build_decorators
from speechlab.conform._probe.http import Exchange, send_request
from speechlab.contract import REALTIME_PATH, HandshakeCode

if TYPE_CHECKING:
    from speechlab.conform._probe.target import Target

check, advice = build_decorators(__name__)
_CODES = {code.value for code in HandshakeCode}
_ORIGIN = ("Origin", "https://conform.invalid")
_OLD_VERSION = ("Sec-WebSocket-Version", "12")
_NO_SERVICE = "/ws/conform/no-such-service"


def _send_handshake(
    t: Target,
    *,
    auth: str | None = "",
    path: str = REALTIME_PATH,
    method: str = "GET",
    version: str = "1.1",
    change: Iterable[tuple[str, str | None]] = (),
) -> Exchange:
    """Send a handshake; ``change`` replaces headers, and None leaves one out."""
    headers = {
        "Host": t.ws.host_header,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Authorization": f"Bearer {t.options.api_key}" if auth == "" else auth,
    } | dict(change)
    lines = [f"{name}: {value}\r\n" for name, value in headers.items() if value is not None]
    raw = f"{method} {t.ws.path}{path} HTTP/{version}\r\n{''.join(lines)}\r\n".encode("latin-1")
    headers_text = ", ".join(line.strip() for line in lines)
    summary = f"{method} {path} HTTP/{version} with {headers_text}"
    return send_request(t.ws, raw, summary, t.options.timeout_s)


def _find_refusal_code(reply: Exchange) -> str | None:
    """Return the code of a refusal, from any of its places in the body."""
    if reply.media_type != "application/json":
        return None
    body = reply.parse_json()
    values = [value for value in body.values() if isinstance(value, str)] if isinstance(body, dict) else []
    return next((value for value in values if value in _CODES), None)


def _require_handshake_refusal(t: Target, reply: Exchange, code: HandshakeCode) -> None:
    t.require_that(_find_refusal_code(reply) == code, f"an HTTP error with the code {code}", reply)


def _build_handshake_refusal_step(code: HandshakeCode, *wrong: dict[str, Any]) -> Step:
    """Each of these handshakes is refused with this code."""

    def require_refusals(t: Target) -> None:
        for parts in wrong:
            _require_handshake_refusal(t, _send_handshake(t, **parts), code)

    return require_refusals


@check(
    "115-structured",
    "a handshake without a valid key gets 401 and a structured body, no upgrade",
    also=(1, 3),
)
def _check_structured_refusal(t: Target) -> None:
    for auth in (None, "Basic Y29uZm9ybTpjb25mb3Jt", "Bearer nocolon", f"Bearer {t.build_unknown_key()}"):
        reply = _send_handshake(t, auth=auth)
        t.insist_that(reply.status != 101, "no upgrade", reply)
        t.require_status(reply, 401)
        t.require_that(_find_refusal_code(reply), "application/json with one of the ten codes", reply)


@advice("116-name", "the string code is the name; the code is an integer, 104 for tokens")
def _check_name_and_code(t: Target) -> None:
    for auth, code in (
        (None, HandshakeCode.AUTH_TOKEN_REQUIRED),
        ("Bearer x", HandshakeCode.INVALID_TOKEN_FORMAT),
    ):
        reply = _send_handshake(t, auth=auth)
        body = reply.parse_json()
        t.insist_that(isinstance(body, dict), "an object", reply)
        t.require_that(body.get("name") == code, f"name {code}", reply)
        t.require_that(type(body.get("code")) is int and body["code"] == 104, "code 104", reply)


@advice("117-statuses", "each refusal has its status; an unknown path is unknown_service")
def _check_refusal_statuses(t: Target) -> None:
    reply = _send_handshake(t, path=_NO_SERVICE)
    _require_handshake_refusal(t, reply, HandshakeCode.UNKNOWN_SERVICE)
    t.require_status(reply, 404)
    t.require_status(
        _send_handshake(t, change=[("Upgrade", None)]), 400, "400 for a request that is not a handshake"
    )
    t.require_status(_send_handshake(t, change=[_ORIGIN]), 403, "403 for an origin that is not listed")


advice("118-listed-order", "codes are decided in the order in which they are listed")(
    _build_handshake_refusal_step(HandshakeCode.AUTH_TOKEN_REQUIRED, {"auth": None, "change": [_ORIGIN]}),
    _build_handshake_refusal_step(
        HandshakeCode.INVALID_WEBSOCKET_UPGRADE, {"auth": None, "change": [_OLD_VERSION]}
    ),
    _build_handshake_refusal_step(HandshakeCode.WS_ORIGIN_DENIED, {"path": _NO_SERVICE, "change": [_ORIGIN]}),
)
check("119-no-upgrade", "a request that is not a handshake: invalid_websocket_upgrade")(
    _build_handshake_refusal_step(
        HandshakeCode.INVALID_WEBSOCKET_UPGRADE,
        {"change": [("Upgrade", None)]},
        {"change": [("Sec-WebSocket-Key", None)]},
        {"change": [("Sec-WebSocket-Key", "short")]},
        {"change": [_OLD_VERSION]},
        {"method": "POST", "change": [("Content-Length", "0")]},
    )
)
advice("119-http-1.0", "a handshake over HTTP/1.0 is invalid")(
    _build_handshake_refusal_step(HandshakeCode.INVALID_WEBSOCKET_UPGRADE, {"version": "1.0"})
)


@advice("120-tokens", "each fault of a token has its code")
def _check_token_refusals(t: Target) -> None:
    _require_handshake_refusal(t, _send_handshake(t, auth=None), HandshakeCode.AUTH_TOKEN_REQUIRED)
    for auth in ("Basic Y29uZm9ybTpj", "Bearer nocolon"):
        _require_handshake_refusal(t, _send_handshake(t, auth=auth), HandshakeCode.INVALID_TOKEN_FORMAT)
    _require_handshake_refusal(
        t, _send_handshake(t, auth=f"Bearer {t.build_unknown_key()}"), HandshakeCode.INVALID_TOKEN
    )


@advice("120-expired-token", "an expired key: invalid_token", needs="--expired-key")
def _check_expired_token(t: Target) -> None:
    reply = _send_handshake(t, auth=f"Bearer {t.get_key_or_skip('expired_key')}")
    _require_handshake_refusal(t, reply, HandshakeCode.INVALID_TOKEN)


@check("120-legacy-token", "a key of an old form: legacy_api_key_rejected", needs="--legacy-key")
def _check_legacy_token(t: Target) -> None:
    reply = _send_handshake(t, auth=f"Bearer {t.get_key_or_skip('legacy_key')}")
    _require_handshake_refusal(t, reply, HandshakeCode.LEGACY_API_KEY_REJECTED)


check("121-origin", "an Origin that is not listed, null included: ws_origin_denied")(
    _build_handshake_refusal_step(
        HandshakeCode.WS_ORIGIN_DENIED, {"change": [_ORIGIN]}, {"change": [("Origin", "null")]}
    )
)


@advice("160-no-deflate", "compression is not negotiated")
def _check_compression_declined(t: Target) -> None:
    reply = _send_handshake(t, change=[("Sec-WebSocket-Extensions", "permessage-deflate")])
    t.insist_that(reply.status == 101, "101", reply)
    t.require_that(reply.find_header("sec-websocket-extensions") is None, "no extension in the reply", reply)
