"""What a user sees of a failure: the name of the method that was called, and no frames of this package.

An error of the tree says by itself what was wrong. The twenty frames between a cell and the socket would only hide
it, so they are taken off where a call comes back to the user. Other exceptions are faults, and keep all of theirs.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
from functools import wraps
from pathlib import Path
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from speechlab.errors import SpeechLabError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=BaseException)
_ROOM = f"{__package__}."

_OURS = tuple(
    str(Path(file).parent)
    for file in (str(Path(__file__).parent), str(asyncio.__file__), str(concurrent.futures.__file__))
)
"""Folders of this package, and of what carries calls from thread to thread."""


def brief(error: E) -> E:
    """The error without the frames of this package; those of the user's own functions stay."""
    kept: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OURS):
            kept.append(trace)
        trace = trace.tb_next
    shown: TracebackType | None = None
    for one in reversed(kept):
        shown = TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return error.with_traceback(shown)


def briefly(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same coroutine function, whose errors come without the frames of this package."""

    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except SpeechLabError as error:
            raise brief(error)  # noqa: B904 - it is the same error

    return call


def carry_name(function: Any, owner: str, name: str) -> None:
    """Let a function say, in tracebacks and in complaints about its arguments, whose method it is."""
    function.__name__, function.__qualname__ = name, f"{owner}.{name}"
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=function.__qualname__)


def _copied(function: FunctionType) -> Any:
    """A function that is the same, and can have another name."""
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__, copy.__dict__ = function.__kwdefaults__, dict(function.__dict__)
    copy.__doc__, copy.__annotations__ = function.__doc__, function.__annotations__
    copy.__module__ = function.__module__
    return copy


def own_methods(cls: type[T]) -> type[T]:
    """Give a class methods of its own, also in place of those that it takes over from its parts.

    They say its name in complaints about arguments, and the errors of coroutines come without our frames.
    """
    for name in dir(cls):
        value = next((vars(part)[name] for part in cls.__mro__ if name in vars(part)), None)
        function = value.__func__ if isinstance(value, classmethod) else value
        if not isinstance(function, FunctionType) or not function.__module__.startswith(_ROOM):
            continue
        mine = function if name in vars(cls) else _copied(function)
        carry_name(mine, cls.__qualname__, name)
        if inspect.iscoroutinefunction(mine) and (name.startswith("__") or not name.startswith("_")):
            mine = briefly(mine)
            carry_name(mine, cls.__qualname__, name)
        setattr(cls, name, classmethod(mine) if isinstance(value, classmethod) else mine)
    return cls
