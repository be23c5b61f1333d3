"""The base of what is closed in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class AsyncClosable:
    """Something to be used as ``async with``, and closed at the end of the block."""

    async def aclose(self) -> None:
        """Close it."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class AsyncOpenable(AsyncClosable):
    """Something that is also opened at the beginning of the block."""

    async def open(self) -> None:
        """Open it."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await self.open()
        return self
