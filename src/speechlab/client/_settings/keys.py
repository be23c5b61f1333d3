"""Lookup of the API key: environment, ``.env``, the system's keyring, and the user."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.client._events import logger
from speechlab.client._secret import Secret
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from types import ModuleType

API_KEY_VARIABLE = "SPEECHLAB_API_KEY"
_ENTRY = "speechlab"
_DOTENV_BYTES = 1 << 16


def found_key(place: str) -> Secret | None:
    """The key for a service: from the environment, from ``.env`` in the working folder, or from the keyring."""
    value = os.environ.get(API_KEY_VARIABLE) or _from_dotenv(Path(".env"))
    return Secret(value) if value else remembered_key(place)


def remembered_key(place: str) -> Secret | None:
    """The key in the keyring for a service."""
    value = _from_keyring(place)
    return Secret(value) if value else None


def _from_dotenv(path: Path) -> str | None:
    """The key in a file of ``NAME=value`` lines. No address is read from it: a foreign one would receive the key."""
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


def _places_file() -> Path:
    import platformdirs

    folder = os.environ.get("SPEECHLAB_STATE_DIR") or platformdirs.user_state_path("speechlab")
    return Path(folder) / "logins.json"


def logged_in() -> list[str]:
    """The services whose key ``speechlab login`` has put into the keyring. The list itself contains no key."""
    try:
        places = orjson.loads(_places_file().read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return []
    return [place for place in places if isinstance(place, str)] if isinstance(places, list) else []


def _from_keyring(place: str) -> str | None:
    # A lookup may open a window, or wait for a desktop that does not exist; so it is done for listed services only.
    if place not in logged_in():
        return None
    try:
        found = _keyring().get_password(_ENTRY, place)
    except Exception as error:  # noqa: BLE001 - each keyring raises its own errors
        logger.warning("the keyring cannot be read (%s); set %s", type(error).__name__, API_KEY_VARIABLE)
        return None
    return str(found) if found else None


def _keyring() -> ModuleType:
    from speechlab._require import require

    return require("keyring")


def remember_key(place: str, key: Secret | None) -> None:
    """Put the key for a service into the system's keyring, or remove it."""
    keyring = _keyring()
    problem = ""
    try:
        if key is not None:
            keyring.set_password(_ENTRY, place, key.reveal())
        elif place in logged_in():
            keyring.delete_password(_ENTRY, place)
    except Exception as error:  # noqa: BLE001 - each keyring raises its own errors, which may contain the key
        problem = type(error).__name__
    if problem:
        message = f"the keyring of this machine cannot be used ({problem}); set {API_KEY_VARIABLE} instead"
        raise ConfigurationError(message)
    places = sorted({*logged_in(), place} if key is not None else set(logged_in()) - {place})
    path = _places_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(places))


def ask_for_key(place: str) -> Secret | None:
    """Ask the user for a key without echo, in an interactive session; an empty input is no key."""
    if not _can_ask():
        return None
    from getpass import getpass

    text: Any = None
    with suppress(Exception):  # front ends without input raise errors of their own
        text = getpass(f"API key for {place} (empty: none): ")
    key = Secret(text) if text and text.strip() else None
    text = None
    return key


def _can_ask() -> bool:
    if hasattr(sys, "ps1"):
        return True
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
