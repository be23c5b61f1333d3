"""``connect``, which makes a synchronous client, and the arguments of one."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Unpack

from speechlab._brief import shorten_tracebacks
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.sync_client import Client
from speechlab.client._secret import Secret, to_secret
from speechlab.client._settings.resolve import find_settings_or_start_service
from speechlab.client._settings.settings import ClientOptions, check_option_names

if Client.__doc__ and AsyncClient.__doc__:  # python -OO keeps no descriptions
    _arguments = cleandoc(AsyncClient.__doc__).partition("\nArgs:\n")[2]
    Client.__doc__ = f"{cleandoc(Client.__doc__)}\n\nArgs:\n{_arguments}"


@shorten_tracebacks
def connect(
    base_url: str | None = None,
    *,
    ws_base_url: str | None = None,
    api_key: str | Secret | Callable[[], str] | None = None,
    **options: Unpack[ClientOptions],
) -> Client:
    key, api_key = to_secret(api_key), None
    check_option_names(options)
    return Client.from_settings(find_settings_or_start_service(base_url, ws_base_url, key, dict(options)))


connect.__doc__ = AsyncClient.connect.__doc__
