"""The application: routes, the guard around them, and the replies to those who operate the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute

from speechlab._platform import is_loopback
from speechlab.contract import REALTIME_PATH, RECOGNITION_PATH, SPEECH_PATH, TRANSLATION_PATH, VOICES_PATH
from speechlab.errors import ConfigurationError
from speechlab.service._accounts.ledger import CONTENT_TYPE, build_gauge
from speechlab.service._faults import Fault
from speechlab.service._gate.guard import Guard, resolve_service_name
from speechlab.service._routes.realtime import run_realtime
from speechlab.service._routes.recognition import recognize
from speechlab.service._routes.speech import list_voices, speak
from speechlab.service._routes.translation import translate
from speechlab.service._state import METRICS_PATH, READY_PATH, ServiceState, get_or_create_record, get_service

if TYPE_CHECKING:
    from starlette.requests import Request

    from speechlab.service._config import ServiceConfig


def create_app(config: ServiceConfig) -> Starlette:
    """Make the ASGI application; engines are loaded on first use."""
    if not config.api_keys:
        raise ConfigurationError("the service needs an API key: set api_keys, for example to (make_key(),)")
    service = ServiceState(config)
    hosts = config.allowed_hosts
    if not hosts and is_loopback(config.host):
        hosts = ("127.0.0.1", "localhost", "::1", config.host)
    middleware = [Middleware(Guard, service=service, allowed_hosts=hosts)]
    if config.cors_origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(config.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-Id"],
            expose_headers=["X-Request-Id", "Retry-After", "Server-Timing", "X-Speechlab-Audio-Seconds"],
            max_age=600,
        )
        middleware.insert(0, cors)
    app = Starlette(
        routes=[
            Route("/healthz", _reply_alive, methods=["GET"]),
            Route(READY_PATH, reply_ready, methods=["GET"]),
            Route(METRICS_PATH, reply_metrics, methods=["GET"]),
            Route(VOICES_PATH, list_voices, methods=["GET"]),
            Route(SPEECH_PATH, speak, methods=["POST"]),
            WebSocketRoute(REALTIME_PATH, run_realtime),
            Route(RECOGNITION_PATH, recognize, methods=["POST"]),
            Route(TRANSLATION_PATH, translate, methods=["POST"]),
            # The path without the slash works too; a redirect would lose the body of a POST.
            Route(TRANSLATION_PATH.rstrip("/"), translate, methods=["POST"]),
        ],
        middleware=middleware,
        exception_handlers={HTTPException: _reply_route_error},
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


async def _reply_alive(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _reply_route_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    where = resolve_service_name(request.url.path)
    if error.status_code == 405:
        headers = dict(error.headers or {})
        message = (
            f"the method {request.method[:20]} is not allowed here; allowed: {headers.get('Allow', 'none')}"
        )
        return Fault("ErrMethodNotAllowed", message, where, headers=headers).build_response()
    return Fault("ErrNotFound", "there is nothing at this path", where).build_response()


async def reply_ready(request: Request) -> Response:
    """Reply 200 if the service is ready, or 503; operators get the details."""
    principal = get_or_create_record(request.scope).principal
    try:
        status = await get_service(request).readiness.check_ready()
    except Fault as fault:
        if principal is not None and principal.operator:
            raise
        raise Fault(
            "ErrOverloaded", "the service is not ready", "router", "ready", headers=fault.headers
        ) from None
    if principal is None or not principal.operator:
        status = {"status": status["status"]}
    return JSONResponse(status)


async def reply_metrics(request: Request) -> Response:
    service = get_service(request)
    gauges = await service.engines.threads.run_task(service.upkeep.measure_gauges)
    gauges += [
        build_gauge(
            "speechlab_websockets_open", "Realtime connections.", service.in_flight.conversation_count
        ),
        build_gauge("speechlab_requests_running", "HTTP requests under way.", service.in_flight.running),
    ]
    return Response(service.counters.format_metrics(gauges), headers={"Content-Type": CONTENT_TYPE})
