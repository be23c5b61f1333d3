"""Synchronous wrappers ("faces") of asynchronous objects, derived so that no signature or docstring is repeated."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from speechlab.client._api import portal as _portal
from speechlab.client._closable import is_from_here, own_methods

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from types import TracebackType


A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
B = TypeVar("B")
F = TypeVar("F", bound="Callable[..., Any]")
P = ParamSpec("P")
T = TypeVar("T")


class Face(Generic[A_co]):
    """Base of the synchronous classes: calls run on the private loop while the caller waits."""

    def __init__(self, behind: A_co) -> None:
        self._async = behind

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if is_from_here(cls):
            own_methods(cls)

    def __enter__(self) -> Self:
        behind: Any = self._async
        _portal.run(behind.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        behind: Any = self._async
        _portal.run(behind.__aexit__, kind, error, trace)

    def __repr__(self) -> str:
        return repr(self._async).replace("Async", "")


class StreamFace(Face[A_co]):
    """A face with iteration; its class defines ``__next__`` by :func:`following`."""

    def __iter__(self) -> Self:
        return self


def waited(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Face[A], P], T]:
    """The same method without ``await``."""

    @wraps(method)
    def call(self: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _portal.run(method, self._async, *args, **kwargs)

    return call


def following(method: Callable[[A], Coroutine[Any, Any, T]]) -> Callable[[Face[A]], T]:
    """``__next__``, from ``__anext__``."""

    @wraps(method)
    def call(self: Face[A], /) -> T:
        try:
            return _portal.run(method, self._async)
        except StopAsyncIteration:
            raise StopIteration from None

    return call


def each_of(items: AsyncIterator[T]) -> Iterator[T]:
    """Iterate without ``await``."""

    async def following_item() -> tuple[T] | None:
        async for item in items:
            return (item,)
        return None

    while (item := _portal.run(following_item)) is not None:
        yield item[0]


def faced(
    method: Callable[Concatenate[A, P], B], face: Callable[[B], T]
) -> Callable[Concatenate[Face[A], P], T]:
    """The same method, returning a face of its result without waiting."""

    @wraps(method)
    def call(self: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return face(method(self._async, *args, **kwargs))

    shown: Any = call
    gives = face.__name__ if isinstance(face, type) else inspect.signature(face).return_annotation
    shown.__signature__ = inspect.signature(method).replace(return_annotation=gives)
    return call


class mirrored(property, Generic[T]):  # noqa: N801 - used as ``property`` is
    """The same property of the object behind the face."""

    def __init__(self, original: Callable[[Any], T]) -> None:
        of_class: Any = original
        super().__init__(lambda face: of_class.fget(face._async))  # noqa: SLF001 - a face's own
        self.__doc__ = of_class.__doc__

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...
        def __get__(self, instance: object, owner: type | None = None) -> Any: ...


def taking_arguments_of(original: type) -> Callable[[type[T]], type[T]]:
    """Take over the description of another class's arguments, and of the errors that they lead to."""

    def describe(cls: type[T]) -> type[T]:
        _before, found, args = (original.__doc__ or "").partition("    Args:\n")
        if found and cls.__doc__:  # python -OO keeps no descriptions
            cls.__doc__ = f"{cls.__doc__.rstrip()}\n\n{found}{args}"
        return cls

    return describe


def described_as(original: Callable[..., Any] | property) -> Callable[[F], F]:
    """Take over the description of another function."""

    def describe(function: F) -> F:
        function.__doc__ = original.__doc__
        return function

    return describe
