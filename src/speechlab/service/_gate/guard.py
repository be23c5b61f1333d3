"""The middleware around all routes: it checks host and key, and turns every failure into a reply with an error body.

All paths but liveness and readiness need a key, which is checked before the body is read. Handshakes have checks of
their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders

from speechlab.contract import (
    AUTHENTICATION_MESSAGE,
    CONCURRENCY_HEADER,
    INTERIM_HEADER,
    REALTIME_PATH,
    RECOGNITION_PATH,
    SPEECH_PATH,
    TRANSLATION_PATH,
    VOICES_PATH,
)
from speechlab.service._accounts.limits import NotAdmitted
from speechlab.service._faults import ClientGone, Fault
from speechlab.service._gate.handshake import HandshakeGuard
from speechlab.service._held_bytes import READER_BYTES_S, Pace
from speechlab.service._keys import has_key_form
from speechlab.service._logs import build_error_fields, log
from speechlab.service._state import (
    INTERIM_EXTENSION,
    METRICS_PATH,
    READY_PATH,
    ServiceState,
    get_abort_function,
    get_or_create_record,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Paths open without a key, for schedulers; the reply without a key is yes or no.
_OPEN_PATHS = frozenset({"/healthz", READY_PATH})
_OPERATOR_PATHS = frozenset({METRICS_PATH, READY_PATH})
# Polled by machines every few seconds, and so logged at the debug level only.
_QUIET_PATHS = _OPEN_PATHS | _OPERATOR_PATHS
# Paths named in logs and metrics; other paths are not, since they may contain a key typed into the wrong
# place.
_ROUTE_PATHS = _QUIET_PATHS | {
    VOICES_PATH,
    SPEECH_PATH,
    RECOGNITION_PATH,
    TRANSLATION_PATH,
    TRANSLATION_PATH.rstrip("/"),
    REALTIME_PATH,
}
_SEND_BYTES = 64 * 1024
_PULSE_S = 10.0
# Seconds without a step of an engine after which a waiting client hears nothing more.
_ALIVE_S = 60.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def resolve_service_name(path: str) -> str:
    """Name of the service of a path, for the ``context`` of errors."""
    for prefix, name in ((SPEECH_PATH, "tts"), (RECOGNITION_PATH, "asr"), ("/translate", "translate")):
        if path == prefix or path.startswith(prefix.rstrip("/") + "/"):
            return name
    return "ws" if path == REALTIME_PATH else "router"


class _InterimReplies:
    """Interim replies to a client that reads them, while its request waits and the engines make steps for others."""

    def __init__(self, scope: Scope, service: ServiceState) -> None:
        self._send = scope.get("extensions", {}).get(INTERIM_EXTENSION, {}).get("call")
        self._service = service
        self._timer: asyncio.TimerHandle | None = None
        if self._send is not None and INTERIM_HEADER in Headers(scope=scope):
            self._schedule_interim_reply()

    def _schedule_interim_reply(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_PULSE_S, self._send_if_engine_alive)

    def _send_if_engine_alive(self) -> None:
        if any(time.monotonic() - lane.moved_at < _ALIVE_S for lane in self._service.engines.lanes):
            self._send()
        self._schedule_interim_reply()

    def stop(self) -> None:
        """Send no more: the reply begins, or there is none."""
        if self._timer is not None:
            self._timer.cancel()


class Guard:
    """ASGI middleware around all routes."""

    def __init__(self, app: ASGIApp, service: ServiceState, allowed_hosts: Sequence[str]) -> None:
        self._app = app
        self._service = service
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self._handshakes = HandshakeGuard(app, service, self._is_host_allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket" or scope["path"] == REALTIME_PATH:
            await self._handshakes(scope, receive, send)
        else:
            await self._handle_http_request(scope, receive, send)

    async def _handle_http_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._service.upkeep.start_once()
        started = time.monotonic()
        record = get_or_create_record(scope)
        status, incoming = 0, _BodyReceiver(scope, receive)
        pace = Pace(self._service.config.send_timeout_s, READER_BYTES_S)
        pulse = _InterimReplies(scope, self._service)

        async def send_and_record_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = record.id
                headers[CONCURRENCY_HEADER] = self._service.engines.concurrency
                pulse.stop()
                if not incoming.is_whole:
                    headers["Connection"] = "close"  # the rest of the body would be taken for a request
            await send_in_pieces(send, message, pace)

        try:
            self._check_host_and_coding(scope)
            self._authenticate_request(scope)
            await self._run_app_unless_draining(scope, incoming, send_and_record_status)
        except Fault as fault:
            if status:
                raise
            await fault.build_response()(scope, receive, send_and_record_status)
        except NotAdmitted as refusal:
            await refusal.to_fault(resolve_service_name(scope["path"])).build_response()(
                scope, receive, send_and_record_status
            )
        except ClientGone:
            log("client left", request_id=record.id)
        except TimeoutError:
            if not status:
                raise
            record.ended = (499, "the reader was too slow")
            get_abort_function(scope)()
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - an internal error must not reach the client
            fields = {"request_id": record.id, "path": _mask_unknown_path(scope), **build_error_fields(error)}
            log("internal error", level="error", **fields)
            if not status:
                internal = Fault("ErrInternal", "internal server error", resolve_service_name(scope["path"]))
                await internal.build_response()(scope, receive, send_and_record_status)
        finally:
            pulse.stop()
            self._finish_request(scope, status, time.monotonic() - started)

    def _finish_request(self, scope: Scope, sent: int, seconds: float) -> None:
        """Close the operation's meter, count the request and log it."""
        record = get_or_create_record(scope)
        for held in record.held:
            held.close()
        if record.meter is not None:
            record.meter.close()
        status, ended = record.ended or (sent or 499, None)
        more: dict[str, Any] = {"sent": sent, "ended": ended} if ended else {}
        self._service.counters.count_request(
            _mask_unknown_path(scope), _mask_unknown_method(scope), status, seconds
        )
        path, key = _mask_unknown_path(scope), record.principal.key_id if record.principal else None
        # Any number of requests can be sent that are refused: without a key, and with one beyond its limits.
        refused = f"{status} {path} {key}" if 400 <= status < 499 else False
        log(
            "request",
            level="debug" if scope["path"] in _QUIET_PATHS else "info",
            once_a_minute=key is None or refused,
            request_id=record.id,
            method=_mask_unknown_method(scope),
            path=path,
            status=status,
            key=key,
            seconds=round(seconds, 4),
            **more,
        )

    async def _run_app_unless_draining(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in _QUIET_PATHS:
            await self._app(scope, receive, send)
            return
        if self._service.in_flight.draining:
            raise _build_stopping_fault(scope)
        with self._service.in_flight.register_request():
            try:
                await self._app(scope, receive, send)
            except asyncio.CancelledError:
                # The server cancels requests after the drain; the client gets a 503 if no part of the reply was sent.
                get_or_create_record(scope).ended = (503, "the service stopped")
                raise _build_stopping_fault(scope) from None

    def _authenticate_request(self, scope: Scope) -> None:
        """Find the owner of the key, and check the key's rights."""
        path = scope["path"]
        headers = Headers(scope=scope).getlist("authorization")
        token = ""
        if len(headers) == 1:
            scheme, _, credentials = headers[0].partition(" ")
            token = credentials.strip(" ") if scheme.lower() == "bearer" else ""
        # A malformed token is looked up as well, so that the duration does not depend on the form.
        principal = self._service.keyring.find_owner(token)
        if not has_key_form(token):
            principal = None
        get_or_create_record(scope).principal = principal
        if path in _OPEN_PATHS:
            return
        if principal is None:
            service, demand = resolve_service_name(path), {"WWW-Authenticate": "Bearer"}
            raise Fault(
                "ErrAuthenticationFailed", AUTHENTICATION_MESSAGE, service, "authentication", headers=demand
            )
        if path in _OPERATOR_PATHS and not principal.operator:
            message = "metrics are for operators; see the setting operator_keys"
            raise Fault("ErrPermissionDenied", message, "router", "operator")
        if path not in _OPERATOR_PATHS and not principal.user:
            message = "this key is an operator's, and reads metrics only"
            raise Fault("ErrPermissionDenied", message, resolve_service_name(path), "operator")

    def _check_host_and_coding(self, scope: Scope) -> None:
        if not self._is_host_allowed(scope):
            message = "the Host header is missing or names a host that is not served here; see allowed_hosts"
            raise Fault("ErrInvalidRequest", message, "router", "host")

        codings = ",".join(Headers(scope=scope).getlist("transfer-encoding")).lower()
        if codings not in {"", "chunked"}:
            message = f"the transfer coding {codings[:40]!r} is not supported; send chunked alone"
            raise Fault("ErrNotImplemented", message, "router", "body", headers={"Connection": "close"})

    def _is_host_allowed(self, scope: Scope) -> bool:
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1 and scope.get("http_version") == "1.1":
            return False  # RFC 9112 requires exactly one
        return not self._hosts or all(_strip_port(host.lower()) in self._hosts for host in hosts)


async def send_in_pieces(send: Send, message: Message, pace: Pace) -> None:
    """Send a message of the reply in pieces, so that at most one piece waits in memory for its reader."""
    body = message.get("body", b"")
    while len(body) > _SEND_BYTES:
        await pace.wait_within_pace(send({**message, "body": body[:_SEND_BYTES], "more_body": True}))
        pace.count_bytes(_SEND_BYTES)
        body = body[_SEND_BYTES:]
    await pace.wait_within_pace(send({**message, "body": body} if body else message))
    pace.count_bytes(len(body))


def _build_stopping_fault(scope: Scope) -> Fault:
    message = "the service is stopping; try again later"
    headers = {"Retry-After": "10", "Connection": "close"}
    return Fault("ErrOverloaded", message, resolve_service_name(scope["path"]), "draining", headers=headers)


class _BodyReceiver:
    """The messages of a request, and whether its body has been read to its end."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers = Headers(scope=scope)
        self.is_whole = "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"
        self._receive = receive

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.is_whole = True
        return message


def _strip_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0][1:]
    return host.partition(":")[0]


def _mask_unknown_path(scope: Scope) -> str:
    path: str = scope["path"]
    return path if path in _ROUTE_PATHS else "(other)"


def _mask_unknown_method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else "(other)"
