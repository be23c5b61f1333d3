"""Checks of refusals before the upgrade (section 5, items 3 to 6)."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING

from speechlab.conform._model import check
from speechlab.conform._probe.http import Exchange, exchange
from speechlab.contract import HANDSHAKE_STATUS, REALTIME_PATH, HandshakeCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.conform._probe.target import Target

_CODES = {code.value for code in HandshakeCode}


def _handshake(
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
        "Host": t.ws.name,
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
    return exchange(t.ws, raw, summary, t.options.timeout_s)


def _named(reply: Exchange) -> str | None:
    """Return the code of a refusal, from any of its places in the body."""
    if reply.media_type != "application/json":
        return None
    body = reply.json()
    values = [value for value in body.values() if isinstance(value, str)] if isinstance(body, dict) else []
    return next((value for value in values if value in _CODES), None)


def _refused(t: Target, reply: Exchange, *codes: HandshakeCode) -> None:
    t.require(_named(reply) in codes, f"an HTTP error with the code {' or '.join(codes)}", reply)


@check(
    "structured",
    115,
    1,
    3,
    title="a handshake without a valid key gets 401 and a structured body, no upgrade",
)
def _structured(t: Target) -> None:
    for auth in (None, "Basic Y29uZm9ybTpjb25mb3Jt", "Bearer nocolon", f"Bearer {t.unknown_key()}"):
        reply = _handshake(t, auth=auth)
        t.insist(reply.status != 101, "no upgrade", reply)
        t.require(reply.status == 401, "401", reply)
        t.require(_named(reply), "application/json with one of the ten codes", reply)


@check(
    "name", 116, title="the string code is the name; the code is an integer, 104 for tokens", advisory=True
)
def _name(t: Target) -> None:
    for auth, code in (
        (None, HandshakeCode.AUTH_TOKEN_REQUIRED),
        ("Bearer x", HandshakeCode.INVALID_TOKEN_FORMAT),
    ):
        reply = _handshake(t, auth=auth)
        body = reply.json()
        t.insist(isinstance(body, dict), "an object", reply)
        t.require(body.get("name") == code, f"name {code}", reply)
        t.require(type(body.get("code")) is int and body["code"] == 104, "code 104", reply)


@check(
    "statuses", 117, title="each refusal has its status; an unknown path is unknown_service", advisory=True
)
def _statuses(t: Target) -> None:
    reply = _handshake(t, path="/ws/conform/no-such-service")
    _refused(t, reply, HandshakeCode.UNKNOWN_SERVICE)
    t.require(reply.status == HANDSHAKE_STATUS[HandshakeCode.UNKNOWN_SERVICE], "404", reply)
    reply = _handshake(t, change=[("Upgrade", None)])
    t.require(reply.status == 400, "400 for a request that is not a handshake", reply)
    reply = _handshake(t, change=[("Origin", "https://conform.invalid")])
    t.require(reply.status == 403, "403 for an origin that is not listed", reply)


@check("listed-order", 118, title="codes are decided in the order in which they are listed", advisory=True)
def _listed_order(t: Target) -> None:
    origin = ("Origin", "https://conform.invalid")
    _refused(t, _handshake(t, auth=None, change=[origin]), HandshakeCode.AUTH_TOKEN_REQUIRED)
    reply = _handshake(t, auth=None, change=[("Sec-WebSocket-Version", "12")])
    _refused(t, reply, HandshakeCode.INVALID_WEBSOCKET_UPGRADE)
    reply = _handshake(t, path="/ws/conform/no-such-service", change=[origin])
    _refused(t, reply, HandshakeCode.WS_ORIGIN_DENIED)


@check("no-upgrade", 119, title="a request that is not a handshake: invalid_websocket_upgrade")
def _no_upgrade(t: Target) -> None:
    changes: tuple[tuple[str, str | None], ...] = (
        ("Upgrade", None),
        ("Sec-WebSocket-Key", None),
        ("Sec-WebSocket-Key", "short"),
        ("Sec-WebSocket-Version", "12"),
    )
    for change in changes:
        _refused(t, _handshake(t, change=[change]), HandshakeCode.INVALID_WEBSOCKET_UPGRADE)
    reply = _handshake(t, method="POST", change=[("Content-Length", "0")])
    _refused(t, reply, HandshakeCode.INVALID_WEBSOCKET_UPGRADE)


@check("http-1.0", 119, title="a handshake over HTTP/1.0 is invalid", advisory=True)
def _old_http(t: Target) -> None:
    _refused(t, _handshake(t, version="1.0"), HandshakeCode.INVALID_WEBSOCKET_UPGRADE)


@check("tokens", 120, title="each fault of a token has its code", advisory=True)
def _tokens(t: Target) -> None:
    _refused(t, _handshake(t, auth=None), HandshakeCode.AUTH_TOKEN_REQUIRED)
    _refused(t, _handshake(t, auth="Basic Y29uZm9ybTpj"), HandshakeCode.INVALID_TOKEN_FORMAT)
    _refused(t, _handshake(t, auth="Bearer nocolon"), HandshakeCode.INVALID_TOKEN_FORMAT)
    _refused(t, _handshake(t, auth=f"Bearer {t.unknown_key()}"), HandshakeCode.INVALID_TOKEN)


@check("expired-token", 120, title="an expired key: invalid_token", advisory=True, needs="--expired-key")
def _expired_token(t: Target) -> None:
    reply = _handshake(t, auth=f"Bearer {t.restricted('expired_key')}")
    _refused(t, reply, HandshakeCode.INVALID_TOKEN)


@check("legacy-token", 120, title="a key of an old form: legacy_api_key_rejected", needs="--legacy-key")
def _legacy_token(t: Target) -> None:
    reply = _handshake(t, auth=f"Bearer {t.restricted('legacy_key')}")
    _refused(t, reply, HandshakeCode.LEGACY_API_KEY_REJECTED)


@check("origin", 121, title="an Origin that is not listed, null included: ws_origin_denied")
def _origin(t: Target) -> None:
    for origin in ("https://conform.invalid", "null"):
        _refused(t, _handshake(t, change=[("Origin", origin)]), HandshakeCode.WS_ORIGIN_DENIED)


@check("no-deflate", 160, title="compression is not negotiated", advisory=True)
def _no_deflate(t: Target) -> None:
    reply = _handshake(t, change=[("Sec-WebSocket-Extensions", "permessage-deflate")])
    t.insist(reply.status == 101, "101", reply)
    t.require(reply.header("sec-websocket-extensions") is None, "no extension in the reply", reply)
