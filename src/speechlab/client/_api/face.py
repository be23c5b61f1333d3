"""Synchronous faces of asynchronous objects, derived from them: no signature or description is typed twice."""

from __future__ import annotations

import inspect
from functools import update_wrapper, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from speechlab._arguments import rename_call
from speechlab.client._api import portal as _portal
from speechlab.client._frames import brief, carry_name
from speechlab.errors import SpeechLabError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType


A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
B = TypeVar("B")
F = TypeVar("F", bound="Callable[..., Any]")
P = ParamSpec("P")
T = TypeVar("T")


class Face(Generic[A_co]):
    """Base of everything that works without ``await``: calls run on the private loop while the caller waits."""

    def __init__(self, behind: A_co) -> None:
        self._async = behind

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for method in (cls.__enter__, cls.__exit__):  # each class has its own, which say its name
            if _is_from_here(method):
                own = update_wrapper(FunctionType(method.__code__, globals()), method)
                carry_name(own, cls.__qualname__, method.__name__)
                setattr(cls, method.__name__, own)
        for name, value in vars(cls).items():
            if _is_from_here(value) and value.__code__.co_name == "call":  # no other class has named it
                carry_name(value, cls.__qualname__, name)
                value.__module__ = cls.__module__

    def __enter__(self) -> Self:
        behind: Any = self._async
        try:
            _portal.run(behind.__aenter__)
        except SpeechLabError as error:
            raise brief(error)  # noqa: B904
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        behind: Any = self._async
        _portal.run(behind.__aexit__, kind, error, trace)

    def __repr__(self) -> str:
        return repr(self._async).replace("Async", "")


def _is_from_here(value: object) -> bool:
    return isinstance(value, FunctionType) and value.__globals__ is globals()


class StreamFace(Face[A_co]):
    """A face that can be iterated; its class defines ``__next__`` by :func:`following`."""

    def __iter__(self) -> Self:
        return self


def waited(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Face[A], P], T]:
    """The same method for code that does not await.

    Args:
        method: A coroutine function of the class behind the face.
    """

    @wraps(method)
    def call(self: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return _portal.run(method, self._async, *args, **kwargs)
        except TypeError as error:
            if rename_call(error, method.__qualname__, call.__qualname__):
                raise brief(error)  # noqa: B904 - it is the same error
            raise
        except SpeechLabError as error:
            raise brief(error)  # noqa: B904 - it is the same error

    return call


def following(method: Callable[[A], Coroutine[Any, Any, T]]) -> Callable[[Face[A]], T]:
    """``__next__``, from ``__anext__``."""

    @wraps(method)
    def call(self: Face[A], /) -> T:
        try:
            return _portal.run(method, self._async)
        except StopAsyncIteration:
            raise StopIteration from None
        except SpeechLabError as error:
            raise brief(error)  # noqa: B904

    return call


def faced(
    method: Callable[Concatenate[A, P], B], face: Callable[[B], T]
) -> Callable[Concatenate[Face[A], P], T]:
    """The same method, returning a face of its result at once.

    Args:
        method: A method of the class behind the face.
        face: The class of the face of its result.
    """

    @wraps(method)
    def call(self: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return face(method(self._async, *args, **kwargs))
        except TypeError as error:
            if rename_call(error, method.__qualname__, call.__qualname__):
                raise brief(error)  # noqa: B904 - it is the same error
            raise
        except SpeechLabError as error:
            raise brief(error)  # noqa: B904 - it is the same error

    shown: Any = call
    gives = face.__name__ if isinstance(face, type) else inspect.signature(face).return_annotation
    shown.__signature__ = inspect.signature(method).replace(return_annotation=gives)
    return call


class mirrored(property, Generic[T]):  # noqa: N801 - used as ``property`` is
    """The same property of the object behind the face.

    Args:
        original: The property.
    """

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
