"""Checks of a realtime handshake, made before the upgrade (section 5, item 6).

A refusal is an HTTP reply with a structured body, whose ``name`` is the string code. The checks run in the contract's
order of the codes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from speechlab.contract import AUTHENTICATION_MESSAGE, REALTIME_PATH, HandshakeCode
from speechlab.errors import StoreError
from speechlab.service._faults import HandshakeRefused
from speechlab.service._keys import KEY_PREFIX, Principal
from speechlab.service._logs import build_error_fields, log
from speechlab.service._state import ServiceState, get_or_create_record

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

# Keys of the old form, without the colon; their own code asks their owners to get a new key.
_LEGACY_KEY = re.compile(rf"{KEY_PREFIX}[-_][A-Za-z0-9._~+/=-]{{8,256}}")


class HandshakeGuard:
    """ASGI middleware that admits or refuses handshakes."""

    def __init__(self, app: ASGIApp, service: ServiceState, host_allowed: Callable[[Scope], bool]) -> None:
        self._app = app
        self._service = service
        self._host_allowed = host_allowed
        self._origins = frozenset(service.config.ws_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a handshake, or refuse a request that should have been one."""
        if scope["type"] == "websocket":
            await self._check_handshake_and_run(scope, receive, send)
        else:
            refused, request_id = HandshakeRefused.build_upgrade_refusal(), get_or_create_record(scope).id
            _log_refusal(refused, request_id, scope)
            refused.headers |= {"X-Request-Id": request_id, "Connection": "close"}
            await refused.build_response()(scope, receive, send)

    async def _check_handshake_and_run(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, record, status = time.monotonic(), get_or_create_record(scope), 101
        try:
            record.principal = self._authorize_handshake(scope)
            leave = self._service.in_flight.admit_connection(record.principal)
        except HandshakeRefused as refused:
            status = refused.status
            _log_refusal(refused, record.id, scope)
            refused.headers["X-Request-Id"] = record.id
            await refused.send(send)
            return
        finally:
            self._service.counters.count_request(
                _mask_unknown_path(scope), "GET", status, time.monotonic() - started
            )
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - an internal error must not reach the client
            fields = {"request_id": record.id, "path": REALTIME_PATH, **build_error_fields(error)}
            log("internal error", level="error", **fields)
        finally:
            leave()

    def _authorize_handshake(self, scope: Scope) -> Principal:
        headers = Headers(scope=scope)
        if not self._host_allowed(scope):
            message = "the Host header names a host that is not served here; see the setting allowed_hosts"
            raise HandshakeRefused.build_upgrade_refusal(message)
        principal = self._authenticate_headers(headers.getlist("authorization"))
        origins = headers.getlist("origin")
        if origins and (len(origins) > 1 or origins[0].lower() not in self._origins):
            message = "pages of this origin are not let in; see the setting ws_origins"
            raise HandshakeRefused(HandshakeCode.WS_ORIGIN_DENIED, message)
        if scope["path"] != REALTIME_PATH:
            message = f"there is no WebSocket service at this path; there is one at {REALTIME_PATH}"
            raise HandshakeRefused(HandshakeCode.UNKNOWN_SERVICE, message)
        return principal

    def _authenticate_headers(self, given: list[str]) -> Principal:
        code = HandshakeCode.INVALID_TOKEN
        token = ""
        if not given:
            code = HandshakeCode.AUTH_TOKEN_REQUIRED
        else:
            scheme, _, credentials = given[0].partition(" ")
            token = credentials.strip(" ")
            prefix, colon, body = token.partition(":")
            if len(given) > 1 or scheme.lower() != "bearer":
                code = HandshakeCode.INVALID_TOKEN_FORMAT
            elif _LEGACY_KEY.fullmatch(token):
                code = HandshakeCode.LEGACY_API_KEY_REJECTED
            elif not (prefix and colon and body):
                code = HandshakeCode.INVALID_TOKEN_FORMAT
        # A malformed token is looked up as well, so that the duration does not depend on the form.
        try:
            principal = self._service.keyring.find_owner(token)
        except StoreError as error:
            log("keys cannot be read", level="error", **build_error_fields(error))
            message = "keys and connections cannot be checked now; try again later"
            raise HandshakeRefused(HandshakeCode.WS_CONNECTION_QUOTA_UNAVAILABLE, message) from error
        if principal is None or not principal.user or code is not HandshakeCode.INVALID_TOKEN:
            raise HandshakeRefused(code, AUTHENTICATION_MESSAGE)
        return principal


def _mask_unknown_path(scope: Scope) -> str:
    # An unknown path is not logged: it may contain a key typed into the wrong place.
    return REALTIME_PATH if scope["path"] == REALTIME_PATH else "(other)"


def _log_refusal(refused: HandshakeRefused, request_id: str, scope: Scope) -> None:
    path, code = _mask_unknown_path(scope), refused.code.value
    log(
        "handshake refused",
        once_a_minute=True,
        request_id=request_id,
        path=path,
        status=refused.status,
        code=code,
    )
