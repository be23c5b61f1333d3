"""Clients that travel to other processes, and leave the key behind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol, Self

from speechlab.client._settings.keys import API_KEY_VARIABLE
from speechlab.client._settings.options import Options
from speechlab.client._settings.settings import Settings
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

_STAY_BEHIND = frozenset({"on_event", "transport", "clock", "rng", "store"})


class _Buildable(Protocol):
    @classmethod
    def of(cls, settings: Settings) -> Self: ...


def described(settings: Settings) -> dict[str, Any]:
    """What may be pickled: everything but the key and the things that live in this process."""
    return {
        "base_url": settings.base_url,
        "ws_base_url": settings.ws_base_url,
        "has_key": settings.api_key is not None,
        "embedded": settings.lease is not None,
        "store": None if settings.store is None else str(settings.store.path),
        "options": {
            name: getattr(settings, name) for name in Options.__annotations__ if name not in _STAY_BEHIND
        },
    }


def rebuilt(kind: type[_Buildable], facts: Mapping[str, Any]) -> _Buildable:
    """A client of the same service in another process; the key comes from the environment there.

    Raises:
        ConfigurationError: There is no key in the environment.
        ServiceStartError: It was the embedded service, and it can neither be found nor started.
    """
    options = dict(facts["options"])
    if facts["store"] is not None:
        from speechlab.client._settings.modes import opened

        options["store"] = opened(facts["store"])
    if facts["embedded"]:
        from speechlab.client._embedded.lease import embedded_settings

        return kind.of(embedded_settings(options))
    from speechlab.client._settings.settings import as_secret

    key = as_secret(os.environ.get(API_KEY_VARIABLE)) if facts["has_key"] else None
    if facts["has_key"] and key is None:
        raise ConfigurationError(
            f"a client does not take its API key along; set {API_KEY_VARIABLE} in the process that unpickles it"
        )
    return kind.of(
        Settings(base_url=facts["base_url"], ws_base_url=facts["ws_base_url"], api_key=key, **options)
    )
