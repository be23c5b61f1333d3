"""What all endpoints of one service share, and how they reach it."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

import orjson

from speechlab.service._engines import Engines
from speechlab.service._keys import Keyring, Principal

if TYPE_CHECKING:
    from starlette.requests import Request

    from speechlab.service._config import ServiceConfig

__all__ = ["PRINCIPAL", "Service", "principal_of", "service_of"]

PRINCIPAL = "speechlab.principal"
"""Key of the ASGI scope under which the guard leaves who makes the request."""


class Service:
    """The parts of a running service.

    Attributes:
        config: Its settings.
        keyring: Who is let in.
        engines: What does the work.
        identity: Version and a digest of what decides results: the engines and their settings. Clients keep
            results under it, so that those of other models are never taken for theirs.
    """

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self.keyring = Keyring(config.api_keys)
        self.engines = Engines(config)
        deciding = config.model_dump(mode="json", include={"engines", "recogniser", "translator"})
        digest = hashlib.sha256(orjson.dumps(deciding, option=orjson.OPT_SORT_KEYS)).hexdigest()
        self.identity = f"speechlab/{version('speechlab')} {digest[:16]}"


def service_of(request: Request) -> Service:
    """Return the service that a request came to."""
    return cast(Service, request.app.state.service)


def principal_of(request: Request) -> Principal:
    """Return who makes a request; the guard has let them in."""
    return cast(Principal, request.scope[PRINCIPAL])
