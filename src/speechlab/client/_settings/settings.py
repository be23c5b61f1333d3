"""The settings of a client, checked once; its store, and its mode: whether calls are looked up there or sent."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import iscoroutinefunction
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast
from urllib.parse import urlsplit

from speechlab._arguments import is_number, is_whole_number
from speechlab._platform import is_loopback, register_after_fork
from speechlab._require import require
from speechlab.client._clock import Clock, SystemClock
from speechlab.client._openai import OpenAIAdapter
from speechlab.client._secret import Secret, format_setting
from speechlab.errors import ConfigurationError, ReplayMiss

if TYPE_CHECKING:
    import httpx2

    from speechlab.client._embedded.lease import Lease
    from speechlab.client._events import CallEvent
    from speechlab.client._systems.functions import FunctionSystem
    from speechlab.store import Store

# Values of the option ``transport``: the libraries that make connections.
AIOHTTP, HTTPX2 = "aiohttp", "httpx2"
MODE_VARIABLE = "SPEECHLAB_MODE"
MODES = ("auto", "live", "replay")
PACES = ("at once", "as recorded")
# Base URL of a client that only replays and has no other one.
REPLAY_URL = "https://replay.invalid"

# Prefix of the name of a separate embedded service; the options of its engines follow as JSON.
EMBEDDED_PREFIX = "embedded service, engines "

# Prefix of the name of a system of functions.
FUNCTIONS_PREFIX = "functions, "

# Advice for a call that cannot be replayed.
REPLAY_ADVICE = 'run it once with mode="auto" where the service can be reached'


class ClientOptions(TypedDict, total=False):
    """Options of a client; see ``Client``."""

    timeout: float | None
    connect_timeout_s: float
    read_timeout_s: float | None
    max_retries: int | None
    max_concurrency: int
    patience_s: float
    allow_insecure: bool
    default_headers: Mapping[str, str]
    on_event: Callable[[CallEvent], None] | None
    transport: httpx2.AsyncBaseTransport | Literal["aiohttp", "httpx2"] | None
    adapter: OpenAIAdapter | None
    engines: Mapping[str, Mapping[str, Any]] | None
    clock: Clock
    rng: Random
    store: Store | str | os.PathLike[str] | None
    mode: Literal["auto", "live", "replay"] | None
    pace: Literal["at once", "as recorded"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The complete configuration of a client, checked; :class:`AsyncClient` describes the options."""

    base_url: str = ""
    ws_base_url: str = ""
    functions: FunctionSystem | None = None
    """Functions in place of a service at an address."""
    api_key: Secret | None = None
    timeout: float | None = None
    connect_timeout_s: float = 5.0
    read_timeout_s: float | None = None
    max_retries: int | None = None
    max_concurrency: int = 16
    patience_s: float = 60.0
    allow_insecure: bool = False
    default_headers: Mapping[str, Secret] = field(default_factory=dict)
    on_event: Callable[[CallEvent], None] | None = None
    transport: httpx2.AsyncBaseTransport | str | None = field(default=None, repr=False)
    adapter: OpenAIAdapter | None = None
    engines: Mapping[str, Mapping[str, Any]] | None = None
    clock: Clock = field(default_factory=SystemClock, repr=False)
    rng: Random = field(default_factory=SystemRandom, repr=False)
    store: Store | None = field(default=None, repr=False)
    mode: str = "auto"
    pace: str = "at once"
    lease: Lease | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.api_key is not None:
            self.api_key.check()
        headers = _check_and_hide_headers(self.default_headers, beside_key=self.api_key is not None)
        object.__setattr__(self, "default_headers", headers)
        for name in ("base_url", "ws_base_url") if self.functions is None else ():
            url = getattr(self, name)
            check_url(name, url)
            self._check_url_hides_key(name, url)
        check_number("connect_timeout_s", self.connect_timeout_s, least=0, advice="give seconds above 0")
        if self.max_retries is not None:
            check_number("max_retries", self.max_retries, least=0, whole=True)
        check_number("max_concurrency", self.max_concurrency, least=1, whole=True)
        check_number("patience_s", self.patience_s, least=0)
        pace = cast("object", self.pace)
        if not isinstance(pace, str) or pace not in PACES:
            raise ConfigurationError(
                f"pace is {format_setting(self.pace)}; it is {' or '.join(map(repr, PACES))}"
            )
        for name in ("timeout", "read_timeout_s"):
            if (seconds := getattr(self, name)) is not None:
                check_number(name, seconds, least=0, advice="give seconds above 0, or None")
        if not isinstance(self.allow_insecure, bool):
            # Any other value would count as true, even "no".
            raise ConfigurationError(
                f"allow_insecure is {format_setting(self.allow_insecure)}; give True or False"
            )
        if self.on_event is not None and not callable(self.on_event):
            raise ConfigurationError(
                f"on_event is {format_setting(self.on_event)}; give a function of one CallEvent, or None"
            )
        if iscoroutinefunction(self.on_event):  # its coroutine would never be awaited
            raise ConfigurationError(
                "on_event is an async function; give one that returns at once, without async"
            )
        _check_methods("clock", self.clock, "monotonic", "time", "sleep")
        _check_methods("rng", self.rng, "uniform")
        self._check_transport_and_adapter()

    def _check_transport_and_adapter(self) -> None:
        """Refuse values that are not a transport or not an adapter."""
        if not isinstance(self.adapter, OpenAIAdapter | None):
            raise ConfigurationError(
                f"adapter is {format_setting(self.adapter)}; give an OpenAIAdapter, or None for a service of the "
                "contract"
            )
        if isinstance(self.transport, str):
            if self.transport not in {AIOHTTP, HTTPX2}:
                raise ConfigurationError(
                    f"transport is {format_setting(self.transport)}; give {AIOHTTP!r}, {HTTPX2!r}, a transport, or "
                    "None"
                )
            if self.transport == AIOHTTP:
                require(AIOHTTP)
        elif self.transport is not None:
            _check_methods("transport", self.transport, "handle_async_request", "aclose")

    def _check_url_hides_key(self, name: str, url: str) -> None:
        address = urlsplit(url)
        secret = self.api_key is not None or any(map(is_credential_header, self.default_headers))
        if not secret or self.allow_insecure or address.scheme in {"https", "wss"}:
            return
        if not is_loopback(address.hostname or ""):
            raise ConfigurationError(
                f"{name} {normalize_url(url)!r} would send the API key in the clear to another machine; use "
                f"{'https' if address.scheme == 'http' else 'wss'}://, or allow_insecure=True on a network you trust"
            )


def to_engines_json(engines: object) -> str:
    """Options by engine as JSON, independent of their order."""
    try:
        by_engine = {str(name): dict(options) for name, options in cast("Any", engines).items()}
        for options in by_engine.values():
            options.update(_find_model_here(options))
        if by_engine:
            return json.dumps(by_engine, sort_keys=True, allow_nan=False)
    except (AttributeError, TypeError, ValueError):
        pass
    example = "{'whisper': {'beam_size': 1}}"
    raise ConfigurationError(
        f"engines is {format_setting(engines)}; give options by engine, such as {example}"
    )


def _find_model_here(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the full path of a model that exists: the service, which loads it, has another working folder."""
    model = options.get("model")
    if not isinstance(model, (str, os.PathLike)):
        return {}
    path = Path(model).expanduser()
    return {"model": str(path.absolute() if path.exists() else model)}


def normalize_url(url: str) -> str:
    """Return the canonical form of an address: host in lower case, no slashes at the end, no default port."""
    address = urlsplit(url)
    host = address.hostname or ""
    unsaid = {"http": 80, "https": 443}.get(address.scheme)
    port = "" if address.port in {None, unsaid} else f":{address.port}"
    return f"{address.scheme}://{f'[{host}]' if ':' in host else host}{port}{address.path.rstrip('/')}"


def check_url(name: str, url: object) -> None:
    """Refuse a value that is not a base URL: of a WebSocket for ``ws_base_url``, of HTTP otherwise."""
    schemes = ("ws", "wss") if name == "ws_base_url" else ("http", "https")
    allowed = f"it must look like {schemes[1]}://host or {schemes[0]}://127.0.0.1:8100"
    if not isinstance(url, str):
        raise ConfigurationError(f"{name} is {format_setting(url)}; {allowed}")
    try:
        address = urlsplit(url)
        _ = address.port
    except ValueError:  # the message would contain the invalid port, which may be a password
        raise ConfigurationError(f"{name} is not a URL; {allowed}") from None
    if address.username is not None or address.password is not None:
        raise ConfigurationError(f"{name} contains a user name or password; leave it out, and give api_key")
    if address.scheme not in schemes or not address.hostname or url != url.strip() or not url.isprintable():
        raise ConfigurationError(f"{name} is {format_setting(url)}; {allowed}")
    if address.query or address.fragment:
        raise ConfigurationError(f"{name} {normalize_url(url)!r} has a query or a fragment; leave it out")


def check_number(
    name: str, value: object, *, least: float, whole: bool = False, advice: str | None = None
) -> None:
    """Refuse a value that is not a number, or is too small."""
    number = is_whole_number(value) if whole else is_number(value)
    if number and value >= least and (advice is None or 0 < value < float("inf")):  # type: ignore[operator]  # a number, as seen before
        return
    allowed = advice or f"it must be a {'whole ' if whole else ''}number of at least {least:g}"
    raise ConfigurationError(f"{name} is {format_setting(value)}; {allowed}")


def _check_methods(name: str, value: object, *methods: str) -> None:
    absent = [method for method in methods if not callable(getattr(value, method, None))]
    if absent:
        raise ConfigurationError(
            f"{name} is {format_setting(value)}, which has no {absent[0]}(); it needs {', '.join(methods)}"
        )


# Options of the connections of a client; another value needs a new client.
_CONNECTION_OPTIONS = ("base_url", "ws_base_url", "api_key", "transport", "adapter", "engines")
_TEST_OPTIONS = ("clock", "rng")


def check_option_names(options: Any, *, change: bool = False) -> None:
    """Refuse options that do not exist, before any other frame has them: one may be a key under a wrong name."""
    allowed = [name for name in ClientOptions.__annotations__ if not (change and name in _CONNECTION_OPTIONS)]
    unknown = next((name for name in options if name not in allowed), None)
    if unknown is None:
        return
    options.clear()
    if change and unknown in _CONNECTION_OPTIONS:
        raise ConfigurationError(
            f"{unknown} belongs to a client and its connections; make a new client for another value: "
            f"Client(base_url, {'...' if unknown == 'base_url' else f'{unknown}=...'})"
        )
    names = ", ".join(name for name in allowed if name not in _TEST_OPTIONS)
    hint = (
        f"; the key is api_key{', of a new client' if change else ''}"
        if is_credential_header(unknown)
        else ""
    )
    raise ConfigurationError(f"a client has no option {unknown!r}{hint}; the options are: {names}")


def change_settings(settings: Settings, changes: ClientOptions) -> Settings:
    """Return the settings with some options changed."""
    off = "store" in changes and changes["store"] is None and changes.get("mode") is None
    if off and settings.mode == "replay":
        raise ConfigurationError(
            "store is None, but this client only replays, and needs a store for that; give a store, "
            "or make another client to call the service"
        )
    if off:
        changes = {**changes, "mode": "auto"}
    elif changes.keys() & {"mode", "store"}:
        current: dict[str, Any] = {"mode": settings.mode, "store": settings.store}
        changes = {**changes, **fill_mode_and_store({**current, **changes})}  # type: ignore[typeddict-item]  # keys of Options
    return replace(settings, **changes)  # type: ignore[arg-type]  # checked by __post_init__


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[ -~]*")
_OWN_HEADERS = frozenset(
    {"connection", "content-length", "content-type", "expect", "host", "te", "transfer-encoding", "upgrade"}
)
_SENSITIVE = re.compile(r"auth|key|token|secret|cookie|password|credential", re.IGNORECASE)


def is_credential_header(name: str) -> bool:
    """Return whether a header with this name contains a credential."""
    return _SENSITIVE.search(name) is not None


def _check_and_hide_headers(headers: object, *, beside_key: bool) -> dict[str, Secret]:
    """Headers with hidden values; those that were checked before stay. A key has ``Authorization`` for itself."""
    if not isinstance(headers, Mapping):
        raise ConfigurationError(f"default_headers is {format_setting(headers)}; give a dict of texts")
    hidden: dict[str, Secret] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ConfigurationError(
                f"default_headers has the name {format_setting(name)}; give names such as 'X-Team'"
            )
        if name.lower() in _OWN_HEADERS or name.lower().startswith("sec-websocket"):
            raise ConfigurationError(
                f"default_headers has {name!r}, which the client sets itself; leave it out"
            )
        if beside_key and name.lower() == "authorization":
            raise ConfigurationError(
                f"default_headers has {name!r}, the header of the API key; leave it out, or leave out the key "
                "(api_key=, SPEECHLAB_API_KEY, .env or the keyring)"
            )
        if isinstance(value, str) and _HEADER_VALUE.fullmatch(value):
            hidden[name] = Secret(value, hidden=is_credential_header(name))
        elif isinstance(value, Secret):
            hidden[name] = value
        else:
            what = (
                f"a {type(value).__name__}" if not isinstance(value, str) else "not plain ASCII in one line"
            )
            raise ConfigurationError(f"the value of {name!r} in default_headers is {what}; give such a text")
    return hidden


_lock = threading.Lock()
# Stores that were opened by path, for each process: a database connection does not survive a fork.
_stores: dict[tuple[int, Path], Store] = {}


def fill_mode_and_store(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options, with the mode from the environment if none is given."""
    choice = options.get("mode")
    if choice is not None and not isinstance(choice, str):
        raise ConfigurationError(f"mode is {format_setting(choice)}; it is one of {', '.join(MODES)}")
    mode = choice or os.environ.get(MODE_VARIABLE) or None
    if mode is None and options.get("store") is None:
        return options
    mode = mode or "auto"
    if mode not in MODES:
        source = "mode" if choice else MODE_VARIABLE
        raise ConfigurationError(f"{source} is {format_setting(mode)}; it is one of {', '.join(MODES)}")
    return {**options, "mode": mode, "store": open_store(options.get("store"))}


def open_store(store: Store | str | os.PathLike[str] | None) -> Store:
    """Return a store, opened if it is a path; the user's default store if it is None."""
    from speechlab.store import Store

    if isinstance(store, Store):
        return store
    if store is not None and not isinstance(store, (str, os.PathLike)):
        raise ConfigurationError(
            f"store is {format_setting(store)}; give a Store, the path of its folder, or None"
        )
    path = Store.default_path() if store is None else Path(store).expanduser().absolute()
    with _lock:
        key = (os.getpid(), path)
        if key not in _stores:
            _stores[key] = Store(path)
        return _stores[key]


def build_not_replayable_error(operation: str) -> ReplayMiss:
    """Return the error for an operation that cannot be replayed."""
    text = f"{operation} would call the service, and this client only replays; {REPLAY_ADVICE}"
    return ReplayMiss(text, operation=operation)


@register_after_fork
def _renew_lock_after_fork() -> None:
    global _lock  # noqa: PLW0603 - a forked child needs its own
    _lock = threading.Lock()
