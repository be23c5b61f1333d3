"""What a user sees of a failure: the name of what was called, and no frames of this package.

An error of the tree says by itself what was wrong. The frames between a cell and the socket would only hide it, so
they are taken off where a call comes back to the user. Other exceptions are faults, and keep all of theirs.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import os
import sysconfig
from functools import wraps
from pathlib import Path
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from speechlab.errors import SpeechLabError

if TYPE_CHECKING:
    from collections.abc import Callable

E = TypeVar("E", bound=BaseException)
F = TypeVar("F")

_OURS = (
    *(
        f"{Path(file).parent}{os.sep}"
        for file in (__file__, str(asyncio.__file__), str(concurrent.futures.__file__))
    ),
    str(contextlib.__file__),
)
"""Where the code of this package lies, and of what carries its calls from thread to thread and through blocks."""
_STANDARD = f"{sysconfig.get_path('stdlib')}{os.sep}"
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def briefly(function: F) -> F:
    """The same function or coroutine function, whose errors come without the frames of this package.

    So do complaints about the arguments that it was called with; they name it, also where a function raised them that
    it wraps. What was given is in none of its own frames by then: tracebacks with locals would show keys, and tables.
    """
    behind: Any = function
    call: Any
    if inspect.iscoroutinefunction(function):

        @wraps(behind)
        async def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return await behind(*args, **kwargs)
            except (SpeechLabError, TypeError) as error:
                if not _is_told(error, call):
                    raise
                raise _brief(error)  # noqa: B904 - it is the same error
            finally:
                args, kwargs = (), {}

    else:

        @wraps(behind)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return behind(*args, **kwargs)
            except (SpeechLabError, TypeError) as error:
                if not _is_told(error, call):
                    raise
                raise _brief(error)  # noqa: B904 - it is the same error
            finally:
                args, kwargs = (), {}

    carry_name(call, behind.__qualname__)
    return cast("F", call)


def carry_name(function: FunctionType, name: str) -> None:
    """Let a function say, in tracebacks and in complaints about its arguments, what it is called.

    Args:
        function: The function.
        name: Its name, after that of its class if it is a method.
    """
    function.__qualname__ = name
    function.__name__ = name.rpartition(".")[2]
    function.__code__ = function.__code__.replace(co_name=function.__name__, co_qualname=name)


def rename_call(error: TypeError, called: str, name: str) -> bool:
    """Let a complaint about the arguments of a call speak of what the user called.

    Args:
        error: What the call raised; anything but such a complaint stays as it is.
        called: Qualified name of the function behind.
        name: The name that the user knows.

    Returns:
        Whether it is such a complaint.
    """
    text = str(error)
    if not text.startswith(f"{called}()"):
        return False
    error.args = (f"{name}{text.removeprefix(called)}",)
    return True


def _is_told(error: SpeechLabError | TypeError, call: Any) -> bool:
    """Whether an error says by itself what was wrong with a call; a complaint about its arguments then names it."""
    if isinstance(error, SpeechLabError):
        return True
    name, behind = call.__qualname__, call
    while behind is not None:
        if rename_call(error, behind.__qualname__, name):
            return True
        behind = getattr(behind, "__wrapped__", None)
    return False


def _brief(error: E) -> E:
    """The error without the frames of this package; those of the user's own functions stay.

    What is behind it is in its text, and so in a line here, without what was behind that and without libraries.
    """
    error.__traceback__ = _without(_is_ours, error.__traceback__)
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if behind is not None:
        behind.__traceback__ = _without(_is_of_libraries, behind.__traceback__)
        behind.__suppress_context__ = True
    return error


def _is_ours(file: str) -> bool:
    return file.startswith(_OURS)


def _is_of_libraries(file: str) -> bool:
    if file.startswith((*_OURS, _STANDARD)) or any(folder in file for folder in _INSTALLED):
        return True
    # A compiled module tells the relative path that it was made from.
    return not file.startswith("<") and not Path(file).is_absolute()


def _without(leaves: Callable[[str], bool], trace: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while trace is not None:
        if not leaves(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    shown: TracebackType | None = None
    for one in reversed(kept):
        shown = TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return shown
