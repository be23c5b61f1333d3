"""From nothing to a client: arguments, then environment, then the embedded service."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from speechlab._platform import is_loopback
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.client import Client
from speechlab.client._events import logger
from speechlab.client._settings.keys import API_KEY_VARIABLE, asked_for
from speechlab.client._settings.modes import with_mode
from speechlab.client._settings.options import check_names
from speechlab.client._settings.settings import as_secret, plain_url, resolve
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from typing import Unpack

    from speechlab.client._secret import Secret
    from speechlab.client._settings.options import Options
    from speechlab.client._settings.settings import Settings


def connect(
    base_url: str | None = None,
    ws_base_url: str | None = None,
    api_key: str | Secret | None = None,
    **options: Unpack[Options],
) -> Client:
    """Make a client of the configured service, or else of the embedded one, which is started if need be.

    Args:
        base_url: HTTP base URL; by default that of ``SPEECHLAB_BASE_URL``; else the embedded service.
        ws_base_url: WebSocket base URL; by default that of ``SPEECHLAB_WS_BASE_URL``, or made from ``base_url``.
        api_key: The key; by default that of ``SPEECHLAB_API_KEY``.
        **options: See ``Client``.

    Raises:
        ConfigurationError: An argument is not usable.
        ServiceStartError: The embedded service could not be started.
    """
    key, api_key = as_secret(api_key), None
    return Client.connect(base_url, ws_base_url, key, **options)


async def aconnect(
    base_url: str | None = None,
    ws_base_url: str | None = None,
    api_key: str | Secret | None = None,
    **options: Unpack[Options],
) -> AsyncClient:
    """Make a client for ``await``, as :func:`connect` does.

    Args:
        base_url: HTTP base URL; by default that of ``SPEECHLAB_BASE_URL``; else the embedded service.
        ws_base_url: WebSocket base URL; by default that of ``SPEECHLAB_WS_BASE_URL``, or made from ``base_url``.
        api_key: The key; by default that of ``SPEECHLAB_API_KEY``.
        **options: See ``Client``.

    Raises:
        ConfigurationError: An argument is not usable.
        ServiceStartError: The embedded service could not be started.
    """
    key, api_key = as_secret(api_key), None
    return await AsyncClient.connect(base_url, ws_base_url, key, **options)


def _with_key(settings: Settings) -> Settings:
    """Ask for the key of a service elsewhere, where none was found and somebody is there to ask."""
    elsewhere = not is_loopback(urlsplit(settings.base_url).hostname or "")
    if settings.api_key is not None or not elsewhere or settings.mode == "replay":
        return settings
    key = asked_for(plain_url(settings.base_url))
    return settings if key is None else replace(settings, api_key=key)


def settings_for(
    base_url: str | None, ws_base_url: str | None, api_key: Secret | None, options: dict[str, Any]
) -> Settings:
    """Find or start the service.

    Raises:
        ConfigurationError: An argument is not usable.
        ServiceStartError: The embedded service could not be started.
    """
    check_names(options)
    options = with_mode(options)
    settings = resolve(base_url, ws_base_url, api_key, options)
    if settings is not None:
        return _with_key(settings)
    if api_key or ws_base_url:
        given = "an api_key" if api_key else "a ws_base_url"
        raise ConfigurationError(
            f"{given} was given but no base_url; give base_url= or set SPEECHLAB_BASE_URL, or leave both out to "
            "use the embedded service"
        )
    if os.environ.get(API_KEY_VARIABLE):
        logger.warning(
            "%s is set but SPEECHLAB_BASE_URL is not: using the embedded service", API_KEY_VARIABLE
        )
    from speechlab.client._embedded.lease import embedded_settings

    return embedded_settings(options)
