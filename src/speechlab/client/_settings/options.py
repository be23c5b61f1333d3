"""The options that every client takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from speechlab.client._settings.modes import with_mode
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    import httpx2

    from speechlab.client._clock import Clock, Random
    from speechlab.client._events import CallEvent
    from speechlab.client._settings.settings import Settings
    from speechlab.store import Store


class Options(TypedDict, total=False):
    """Options of a client; see ``Client``."""

    timeout: float | None
    max_retries: int
    max_concurrency: int
    patience_s: float
    allow_insecure: bool
    on_event: Callable[[CallEvent], None] | None
    transport: httpx2.AsyncBaseTransport | Literal["aiohttp"] | None
    clock: Clock
    rng: Random
    store: Store | str | os.PathLike[str] | None
    mode: Literal["auto", "live", "replay"] | None
    pace: Literal["at once", "as recorded"]


def check_names(options: Mapping[str, Any]) -> None:
    """Refuse options that do not exist.

    Raises:
        ConfigurationError: There is one; the text lists those that exist.
    """
    unknown = [name for name in options if name not in Options.__annotations__]
    if unknown:
        known = ", ".join(Options.__annotations__)
        raise ConfigurationError(f"a client has no option {unknown[0]!r}; the options are: {known}")


def changed(settings: Settings, changes: Options) -> Settings:
    """The settings with some options changed.

    Raises:
        ConfigurationError: An option does not exist, or cannot be changed.
    """
    check_names(changes)
    if "transport" in changes:
        raise ConfigurationError("transport belongs to the connections; make a new client with it")
    if changes.keys() & {"mode", "store"}:
        kept: dict[str, Any] = {"mode": settings.mode, "store": settings.store}
        changes = {**changes, **with_mode({**kept, **changes})}  # type: ignore[typeddict-item]
    return replace(settings, **changes)  # type: ignore[arg-type]
