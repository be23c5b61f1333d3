"""What makes a method of the synchronous face look like the asynchronous one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def like(original: Callable[..., Any] | property) -> Callable[[F], F]:
    """Take over the description of the asynchronous method."""

    def describe(method: F) -> F:
        method.__doc__ = original.__doc__
        return method

    return describe
