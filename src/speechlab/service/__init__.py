"""The embedded service: the speech services' API on this machine, answered by local engines.

It uses the data of ``contract`` and the engines of ``engines``, and can be reached over HTTP and WebSockets only. It
contains no client. ``speechlab serve`` runs it, ``sl.connect()`` starts it in the background, and tests use
:func:`run_service`. Modules are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from speechlab._door import set_module_to_room as _name_after
from speechlab._require import require

if TYPE_CHECKING:
    from speechlab.service._accounts.database import Database, resolve_default_data_dir
    from speechlab.service._accounts.keys import KeyStore, StoredKey
    from speechlab.service._accounts.ledger import Ledger, UsageRow, UsageTotal
    from speechlab.service._accounts.limits import KeyLimits, NotAdmitted, RateLimiter, StoredLimits
    from speechlab.service._app import create_app
    from speechlab.service._config import ServiceConfig, load_config, parse_settings
    from speechlab.service._engines.sharing import EngineUse, FairTurns, Places
    from speechlab.service._engines.voices import voice_uuid
    from speechlab.service._faults import ClientGone, Fault
    from speechlab.service._held_bytes import Pace, Shares
    from speechlab.service._keys import make_key
    from speechlab.service._logs import OnceAMinuteFilter
    from speechlab.service._providers import Provider, ServedEngine
    from speechlab.service._server.running import RunningService, run_service
    from speechlab.service._server.server import Ready, count_users_and_remove_stale, run_until_stopped

__all__ = ["Provider", "ServedEngine", "ServiceConfig", "run_service", "voice_uuid"]

_NAMES = {
    "_accounts.database": "Database resolve_default_data_dir",
    "_accounts.ledger": "Ledger UsageRow UsageTotal",
    "_accounts.keys": "KeyStore StoredKey",
    "_accounts.limits": "KeyLimits NotAdmitted RateLimiter StoredLimits",
    "_app": "create_app",
    "_config": "ServiceConfig parse_settings load_config",
    "_engines.sharing": "EngineUse FairTurns Places",
    "_engines.voices": "voice_uuid",
    "_faults": "ClientGone Fault",
    "_held_bytes": "Pace Shares",
    "_keys": "make_key",
    "_logs": "OnceAMinuteFilter",
    "_providers": "Provider ServedEngine",
    "_server.running": "RunningService run_service",
    "_server.server": "Ready count_users_and_remove_stale run_until_stopped",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}

# Names that need a web server, which the extra ``local`` installs.
_SERVER_NAMES = frozenset({"create_app", "run_service", "run_until_stopped"})


def __getattr__(name: str) -> Any:
    """Load a public name at its first use (PEP 562)."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _SERVER_NAMES:
        for module in ("starlette", "uvicorn"):
            require(module)
    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    _name_after(__name__, globals(), [name])
    return value


def __dir__() -> list[str]:
    """Public names."""
    return list(__all__)
