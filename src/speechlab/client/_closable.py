"""Base classes of objects that are closed at the end, whose methods name the class that the user sees."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import FunctionType, TracebackType
from typing import Any, Self

from speechlab._brief import shorten_tracebacks
from speechlab.errors import ConfigurationError

_PACKAGE_PREFIX = f"{__package__}."


def shorten_method_tracebacks(cls: type) -> None:
    """Wrap the public methods of a class, inherited ones included, so that errors name this class."""
    if not cls.__module__.startswith(_PACKAGE_PREFIX):  # derived by a user
        return
    for name in dir(cls):
        value = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
        function = value.__func__ if isinstance(value, classmethod) else value
        if not isinstance(function, FunctionType) or not function.__module__.startswith(_PACKAGE_PREFIX):
            continue
        if name.startswith("__") or not name.startswith("_"):
            method = shorten_tracebacks(function)
            method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
            method.__module__ = cls.__module__
            setattr(cls, name, classmethod(method) if isinstance(value, classmethod) else method)


class AsyncClosable(ABC):
    """An object for ``async with``, closed at the end of the block."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__name__.startswith("Async") and cls.__module__ != __name__:
            shorten_method_tracebacks(cls)

    @abstractmethod
    async def aclose(self) -> None:
        """Close the object."""

    async def close(self) -> None:
        """The same as :meth:`aclose`."""
        await self.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def build_forked_error(pid: int, what: str) -> ConfigurationError:
    """Return the error of an object that was carried over a fork."""
    return ConfigurationError(
        f"this {what} was made in process {pid}, from which this one was forked; a connection belongs to one "
        f"process, so make the {what} in the process that uses it"
    )


class AsyncOpenable(AsyncClosable):
    """An object for ``async with`` that is also opened at the beginning of the block."""

    @abstractmethod
    async def open(self) -> None:
        """Open the object."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self


_closing: set[asyncio.Future[Any]] = set()


def close_soon(loop: asyncio.AbstractEventLoop, pid: int, close: Callable[[], Awaitable[Any]]) -> None:
    """Close what was dropped without being closed, on its event loop, unless this is a fork of its process."""
    if pid != os.getpid():
        return

    def start_closing() -> None:
        task: Any = asyncio.ensure_future(close())
        task._log_destroy_pending = False  # noqa: SLF001 - the loop may end first, and with it the connections
        _closing.add(task)
        task.add_done_callback(_closing.discard)

    with suppress(RuntimeError):  # the loop is closed, and so are its connections
        loop.call_soon_threadsafe(start_closing)
