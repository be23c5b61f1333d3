"""The settings of a client of either face."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self, Unpack

from speechlab.client._secret import Secret, to_secret
from speechlab.client._settings.resolve import dump_settings, find_settings, load_settings
from speechlab.client._settings.settings import ClientOptions, Settings, change_settings, check_option_names
from speechlab.errors import ConfigurationError


class ClientBase(ABC):
    """What both clients do with their settings: read them, change them in a copy, take them along in a pickle."""

    _settings: Settings

    def __init__(
        self,
        base_url: str | None = None,
        *,
        ws_base_url: str | None = None,
        api_key: str | Secret | Callable[[], str] | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        # From here on no local variable contains the key: tracebacks in notebooks show locals.
        key, api_key = to_secret(api_key), None
        check_option_names(options)
        settings = find_settings(base_url, ws_base_url, key, dict(options))
        if settings is None:
            raise ConfigurationError(
                "no service is configured; give base_url=, set SPEECHLAB_BASE_URL, or use connect(), which starts "
                "the embedded service"
            )
        self._set_up_client(settings)

    @abstractmethod
    def _set_up_client(self, settings: Settings, parent: Self | None = None) -> None:
        """Begin with these settings, with the connections of another client if there is one."""

    @classmethod
    def from_settings(cls, settings: Settings, parent: Self | None = None) -> Self:
        """Make a client from resolved settings, with the connections of another client if there is one."""
        client = cls.__new__(cls)
        client._set_up_client(settings, parent)  # noqa: SLF001 - of the same class
        return client

    @property
    def base_url(self) -> str:
        """HTTP base URL; empty for a system of functions."""
        return self._settings.base_url

    @property
    def ws_base_url(self) -> str:
        """WebSocket base URL; empty for a system of functions."""
        return self._settings.ws_base_url

    def with_options(self, **changes: Unpack[ClientOptions]) -> Self:
        """Return a client of the same service with the same connections and other options.

        The connections belong to the original client: closing the copy leaves them open.

        Args:
            **changes: See the class. ``transport`` cannot be changed. ``store=None`` keeps no results.

        Raises:
            ConfigurationError: An option does not exist, or its value is not usable.
        """
        check_option_names(changes, change=True)
        return self.from_settings(
            change_settings(self._settings, changes) if changes else self._settings, self
        )

    def __copy__(self) -> Self:
        return self.with_options()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.with_options()

    def __reduce__(self) -> tuple[Any, ...]:
        return self._build_from_description, (dump_settings(self._settings),)

    @classmethod
    def _build_from_description(cls, description: Mapping[str, Any]) -> Self:
        return cls.from_settings(load_settings(description))

    def __repr__(self) -> str:
        if not hasattr(self, "_settings"):  # repr in a traceback through the constructor
            return f"{type(self).__name__}(not configured)"
        if self._settings.functions is not None:
            return f"{type(self).__name__}(system={self._settings.functions.name!r})"
        key = "***" if self._settings.api_key else None
        return f"{type(self).__name__}(base_url={self.base_url!r}, api_key={key!r})"
