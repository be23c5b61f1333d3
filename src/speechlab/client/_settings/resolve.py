"""Lookup of settings: arguments, then environment, then the embedded service; and of keys, also after pickling."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from speechlab._platform import is_loopback
from speechlab._require import require
from speechlab.client._embedded.lease import take_lease
from speechlab.client._events import logger
from speechlab.client._secret import Secret, to_secret
from speechlab.client._settings.settings import (
    REPLAY_URL,
    ClientOptions,
    Settings,
    check_url,
    fill_mode_and_store,
    is_credential_header,
    normalize_url,
    open_store,
    to_engines_json,
)
from speechlab.contract import to_realtime_url
from speechlab.errors import ConfigurationError

API_KEY_VARIABLE = "SPEECHLAB_API_KEY"
_KEYRING_SERVICE = "speechlab"
_DOTENV_BYTES = 1 << 16


def find_key(place: str) -> Secret | None:
    """The key for a service: from the environment, from ``.env`` in the working folder, or from the keyring."""
    value = os.environ.get(API_KEY_VARIABLE) or _read_dotenv_key()
    return Secret(value) if value else load_key(place)


def _read_dotenv_key() -> str | None:
    """The key in the ``NAME=value`` lines of ``.env``. No address is read: a foreign one would receive the key."""
    path = Path(".env")
    try:
        if path.stat().st_size > _DOTENV_BYTES:
            return None
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        name, _, value = line.strip().removeprefix("export ").partition("=")
        if name.strip() == API_KEY_VARIABLE:
            value = value.strip()
            if value[:1] in {'"', "'"}:
                return value[1:].partition(value[0])[0] or None
            return value.partition(" #")[0].strip() or None
    return None


def _get_logins_path() -> Path:
    import platformdirs

    folder = os.environ.get("SPEECHLAB_STATE_DIR") or platformdirs.user_state_path("speechlab")
    return Path(folder) / "logins.json"


def list_logins() -> list[str]:
    """The services whose key ``speechlab login`` has put into the keyring. The list itself contains no key."""
    try:
        places = orjson.loads(_get_logins_path().read_bytes())
    except (OSError, RuntimeError, orjson.JSONDecodeError):  # RuntimeError: a user without a home
        return []
    return [place for place in places if isinstance(place, str)] if isinstance(places, list) else []


def load_key(place: str) -> Secret | None:
    """Return the key in the keyring for a service."""
    # A lookup may open a window, or wait for a desktop that does not exist; so it is done for listed services only.
    if place not in list_logins():
        return None
    try:
        password = require("keyring").get_password(_KEYRING_SERVICE, place)
    except Exception as error:  # noqa: BLE001 - each keyring raises its own errors
        logger.warning("the keyring cannot be read (%s); set %s", type(error).__name__, API_KEY_VARIABLE)
        return None
    return Secret(str(password)) if password else None


def save_key(place: str, key: Secret | None) -> None:
    """Put the key for a service into the system's keyring, or remove it."""
    keyring = require("keyring")
    problem = ""
    try:
        if key is not None:
            keyring.set_password(_KEYRING_SERVICE, place, key.reveal())
        elif place in list_logins():
            keyring.delete_password(_KEYRING_SERVICE, place)
    except Exception as error:  # noqa: BLE001 - each keyring raises its own errors, which may contain the key
        problem = type(error).__name__
    if problem:
        message = f"the keyring of this machine cannot be used ({problem}); set {API_KEY_VARIABLE} instead"
        raise ConfigurationError(message)
    places = sorted({*list_logins(), place} if key is not None else set(list_logins()) - {place})
    path = _get_logins_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(places))


def prompt_for_key(place: str) -> Secret | None:
    """Ask the user for a key without echo, in an interactive session; an empty input is no key."""
    if not hasattr(sys, "ps1"):
        try:
            interactive = sys.stdin.isatty() and sys.stderr.isatty()
        except (AttributeError, ValueError):
            interactive = False
        if not interactive:
            return None
    from getpass import getpass

    text: Any = None
    with suppress(Exception):  # front ends without input raise errors of their own
        text = getpass(f"API key for {place} (empty: none): ")
    key = Secret(text) if text and text.strip() else None
    text = None
    return key


# Environment variable with the HTTP base URL of the service.
BASE_URL_VARIABLE = "SPEECHLAB_BASE_URL"
_WS_BASE_URL_VARIABLE = "SPEECHLAB_WS_BASE_URL"
# Options that are valid in this process only; a store is described by its path.
_PROCESS_OPTIONS = frozenset({"on_event", "transport", "clock", "rng", "store", "default_headers"})


def find_settings(
    base_url: str | None, ws_base_url: str | None, api_key: Secret | None, options: dict[str, Any]
) -> Settings | None:
    """Find the settings: arguments, then environment; for the key, also ``.env`` and the keyring."""
    options = fill_mode_and_store(options)
    urls: tuple[tuple[str, object], ...] = (("base_url", base_url), ("ws_base_url", ws_base_url))
    for name, url in urls:
        if url is not None and not isinstance(url, str):  # pandas.NA is neither true nor false
            check_url(name, url)
    separate = options.get("engines") is not None
    if separate:
        elsewhere = {**dict(urls), "api_key": api_key, "adapter": options.get("adapter")}
        other = next((name for name, value in elsewhere.items() if value is not None), None)
        if other is not None:
            raise ConfigurationError(
                f"engines= is for the embedded service, and {other}= for a service elsewhere; leave one of them out"
            )
        to_engines_json(options["engines"])
    base = None if separate else base_url or os.environ.get(BASE_URL_VARIABLE) or None
    replaying = options.get("mode") == "replay"
    if base is None and replaying:
        base = REPLAY_URL
    if base is None and options.get("adapter") is not None:
        raise ConfigurationError(
            "an adapter was given but no base_url; give that of the service, with its /v1"
        )
    if base is None:
        return None
    # The WebSocket address of the environment belongs to the base URL of the environment, not to another one.
    from_environment = None if base_url else os.environ.get(_WS_BASE_URL_VARIABLE) or None
    realtime = ws_base_url or from_environment or to_realtime_url(str(base))
    check_url("base_url", base)
    key = api_key or (None if replaying else find_key(normalize_url(str(base))))
    return Settings(base_url=base, ws_base_url=realtime, api_key=key, **options)


def find_settings_or_start_service(
    base_url: str | None, ws_base_url: str | None, api_key: Secret | None, options: dict[str, Any]
) -> Settings:
    """Find or start the service, and ask for the key of a remote one if none was found."""
    options = fill_mode_and_store(options)
    settings = find_settings(base_url, ws_base_url, api_key, options)
    if settings is not None:
        elsewhere = not is_loopback(urlsplit(settings.base_url).hostname or "")
        if settings.api_key is not None or not elsewhere or settings.mode == "replay":
            return settings
        key = prompt_for_key(normalize_url(settings.base_url))
        return settings if key is None else replace(settings, api_key=key)
    if api_key or ws_base_url:
        what = "an api_key" if api_key else "a ws_base_url"
        raise ConfigurationError(
            f"{what} was given but no base_url; give base_url= or set SPEECHLAB_BASE_URL, or leave both out to "
            "use the embedded service"
        )
    if os.environ.get(API_KEY_VARIABLE) and options.get("engines") is None:
        logger.warning(
            "%s is set but SPEECHLAB_BASE_URL is not: using the embedded service", API_KEY_VARIABLE
        )
    return take_lease_and_build_settings(options)


def take_lease_and_build_settings(options: dict[str, Any]) -> Settings:
    """Settings for a client of the embedded service."""
    engines = options.get("engines")
    lease = take_lease("" if engines is None else to_engines_json(engines))
    try:
        service = lease.service
        return Settings(
            base_url=service.base_url,
            ws_base_url=service.ws_base_url,
            api_key=service.api_key,
            lease=lease,
            **options,
        )
    except BaseException:
        lease.release()
        raise


def dump_settings(settings: Settings) -> dict[str, Any]:
    """Settings as plain values, without the key and without objects of this process."""
    credentials = [name for name in settings.default_headers if is_credential_header(name)]
    if credentials:
        text = f"a client whose default_headers hold a credential ({credentials[0]}) cannot be pickled"
        raise TypeError(f"{text}; make one where it is needed")
    return {
        "headers": {name: value.reveal() for name, value in settings.default_headers.items()},
        "base_url": settings.base_url,
        "ws_base_url": settings.ws_base_url,
        "functions": settings.functions,
        "has_key": settings.api_key is not None,
        "embedded": settings.lease is not None,
        "store": None if settings.store is None else str(settings.store.path),
        "options": {
            name: getattr(settings, name)
            for name in ClientOptions.__annotations__
            if name not in _PROCESS_OPTIONS
        },
    }


def load_settings(description: Mapping[str, Any]) -> Settings:
    """Settings for the same service in another process, with the key from that process's environment."""
    options = {**description["options"], "default_headers": description["headers"]}
    if description["store"] is not None:
        options["store"] = open_store(description["store"])
    if description["embedded"]:
        return take_lease_and_build_settings(options)
    key = to_secret(os.environ.get(API_KEY_VARIABLE)) if description["has_key"] else None
    if description["has_key"] and key is None:
        raise ConfigurationError(
            f"a client does not take its API key along; set {API_KEY_VARIABLE} in the process that unpickles it"
        )
    urls = {name: description[name] for name in ("base_url", "ws_base_url", "functions")}
    return Settings(**urls, api_key=key, **options)
