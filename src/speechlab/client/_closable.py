"""Base classes of objects that are closed at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from speechlab.client._methods import is_from_here, own_methods

if TYPE_CHECKING:
    from types import TracebackType


class AsyncClosable(ABC):
    """An object for ``async with``, closed at the end of the block."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        public = cls.__name__.startswith("Async") and cls.__module__ != __name__
        if public and is_from_here(cls):
            own_methods(cls)

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


class AsyncOpenable(AsyncClosable):
    """An object for ``async with`` that is also opened at the beginning of the block."""

    @abstractmethod
    async def open(self) -> None:
        """Open the object."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self
