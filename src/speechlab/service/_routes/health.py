"""``GET /readyz`` and ``GET /metrics``, for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from speechlab.service._accounts.counters import CONTENT_TYPE
from speechlab.service._state import service_of

if TYPE_CHECKING:
    from starlette.requests import Request

READY_PATH = "/readyz"
METRICS_PATH = "/metrics"


async def ready(request: Request) -> Response:
    """Answer that the service is ready, or 503."""
    return JSONResponse(await service_of(request).readiness.check())


async def metrics(request: Request) -> Response:
    """Answer with the counters."""
    service = service_of(request)
    gauges = await service.engines.threads.run(service.upkeep.gauges)
    return Response(service.counters.text(gauges), media_type=CONTENT_TYPE)
