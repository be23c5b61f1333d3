"""``speechlab login``: keep a key in the system's keyring instead of in a file."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from typing import Annotated

import typer
from rich.markup import escape

from speechlab._require import require
from speechlab.cli._console import errors
from speechlab.errors import ConfigurationError


def login(
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="The service. [default: SPEECHLAB_BASE_URL]")
    ] = None,
    check: Annotated[bool, typer.Option(help="Check the key with the service before keeping it.")] = True,
    forget: Annotated[bool, typer.Option("--forget", help="Remove the key from the keyring.")] = False,
) -> None:
    """Keep the API key of a service in the system's keyring. The key is typed at a prompt, or read from stdin."""
    from speechlab.client import BASE_URL_VARIABLE, Client, Secret, normalize_url, save_key

    where = base_url or os.environ.get(BASE_URL_VARIABLE)
    if not where:
        raise ConfigurationError(f"name the service with --base-url, or set {BASE_URL_VARIABLE}")
    # problems are reported before the key is typed
    Client(where, api_key="none-yet", mode="live").close()
    ring = _resolve_keyring_name()
    place = normalize_url(where)
    shown = escape(place)
    if forget:
        save_key(place, None)
        errors.print(f"[green]✓[/] the keyring holds no key for {shown} any more")
        return
    try:
        key = Secret(getpass("API key: ") if sys.stdin.isatty() else sys.stdin.readline())
    except (KeyboardInterrupt, EOFError):
        errors.print("\nno key was given; nothing is kept")
        raise typer.Exit(130) from None
    key.check()
    if check:
        with Client(where, api_key=key, mode="live") as lab:
            voices = len(lab.voices())
        errors.print(f"the service takes the key; it offers {voices} voices")
    save_key(place, key)
    errors.print(f"[green]✓[/] kept in the keyring ({ring}); speechlab uses it for {shown}")


def _resolve_keyring_name() -> str:
    """Return the name of the keyring in use."""
    keyring = require("keyring")
    try:
        ring = keyring.get_keyring()
        usable, name = ring.priority > 0, str(ring.name)
    except Exception as error:  # noqa: BLE001 - each keyring raises its own errors
        usable, name = False, type(error).__name__
    if usable:
        return name
    message = (
        f"this machine has no keyring that keeps keys ({name}); set SPEECHLAB_API_KEY, or put the line "
        "SPEECHLAB_API_KEY=... into the file .env of your working folder"
    )
    raise ConfigurationError(message)
