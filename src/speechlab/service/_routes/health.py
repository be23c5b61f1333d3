"""``GET /readyz`` and ``GET /metrics``, for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from starlette.responses import JSONResponse, Response

from speechlab.service._accounts.counters import CONTENT_TYPE, gauge
from speechlab.service._faults import Fault
from speechlab.service._state import PRINCIPAL, service_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from speechlab.service._keys import Principal


async def ready(request: Request) -> Response:
    """Reply 200 if the service is ready, or 503; operators get the details."""
    principal = cast("Principal | None", request.scope.get(PRINCIPAL))
    try:
        status = await service_of(request).readiness.check()
    except Fault as fault:
        if principal is not None and principal.operator:
            raise
        raise Fault(
            "ErrOverloaded", "the service is not ready", "router", "ready", headers=fault.headers
        ) from None
    if principal is None or not principal.operator:
        status = {"status": status["status"]}
    return JSONResponse(status)


async def metrics(request: Request) -> Response:
    """Reply with the counters."""
    service = service_of(request)
    gauges = await service.engines.threads.run(service.upkeep.gauges)
    gauges += [
        gauge("speechlab_websockets_open", "Realtime connections.", service.in_flight.talking),
        gauge("speechlab_requests_running", "HTTP requests under way.", service.in_flight.running),
    ]
    return Response(service.counters.text(gauges), headers={"Content-Type": CONTENT_TYPE})
