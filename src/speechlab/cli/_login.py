"""``speechlab login``: a key in the system's keyring instead of in a file."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from typing import Annotated

import typer

from speechlab.cli._console import errors
from speechlab.client import BASE_URL_VARIABLE, Client, Secret, plain_url, remember_key
from speechlab.errors import ConfigurationError

__all__ = ["login"]


def login(
    base_url: Annotated[
        str | None, typer.Option("--base-url", help=f"The service. [default: {BASE_URL_VARIABLE}]")
    ] = None,
    check: Annotated[
        bool, typer.Option(help="Ask the service whether the key is good, before it is kept.")
    ] = True,
    forget: Annotated[bool, typer.Option("--forget", help="Take the key out of the keyring again.")] = False,
) -> None:
    """Keep the API key of a service in the system's keyring. The key is asked for, or read from stdin."""
    where = base_url or os.environ.get(BASE_URL_VARIABLE)
    if not where:
        raise ConfigurationError(f"name the service with --base-url, or set {BASE_URL_VARIABLE}")
    place = plain_url(where)
    if forget:
        remember_key(place, None)
        errors.print(f"[green]✓[/] the key for {place} is forgotten")
        return
    key = Secret(getpass("API key: ") if sys.stdin.isatty() else sys.stdin.readline())
    key.check()
    if check:
        with Client(where, api_key=key, mode="live") as lab:
            voices = len(lab.voices())
        errors.print(f"the service takes the key; it offers {voices} voices")
    remember_key(place, key)
    errors.print(f"[green]✓[/] kept in the keyring; speechlab uses it for {place}")
