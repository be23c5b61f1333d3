"""Short tracebacks: an error shows no frames of this package.

The message of a :class:`~speechlab.errors.SpeechLabError` explains the failure. The frames between a notebook cell
and the socket would hide it, so public functions remove them. Other exceptions are faults and keep all their frames.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any, TypeVar, cast

from speechlab._traces import enable_short_display, strip_own_frames
from speechlab.errors import SpeechLabError

E = TypeVar("E", bound=BaseException)
F = TypeVar("F")
# Errors besides our own whose message may say all.
_PLAIN_ERRORS = (TypeError, OSError, KeyboardInterrupt, ExceptionGroup)


def shorten_tracebacks(function: F) -> F:
    """Wrap a function or coroutine function so that its errors have no frames of this package.

    This covers each ``SpeechLabError``, a file that cannot be used, an interrupt, errors of several rows, and each
    ``TypeError`` about the arguments of the call. The ``TypeError`` names this function, also if a function that it
    wraps raised it. The arguments are removed from the wrapper's
    frame, because a traceback with locals would show API keys and tables.
    """
    behind: Any = function
    call: Any
    if inspect.iscoroutinefunction(function):

        @wraps(behind)
        async def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return await behind(*args, **kwargs)
            except (SpeechLabError, *_PLAIN_ERRORS) as error:
                if not _fix_name_and_is_explanatory(error, call):
                    raise
                raise _strip_own_traceback_frames(error)  # noqa: B904 - it is the same error
            finally:
                args, kwargs = (), {}

    else:

        @wraps(behind)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return behind(*args, **kwargs)
            except (SpeechLabError, *_PLAIN_ERRORS) as error:
                if not _fix_name_and_is_explanatory(error, call):
                    raise
                raise _strip_own_traceback_frames(error)  # noqa: B904 - it is the same error
            finally:
                args, kwargs = (), {}

    return cast("F", call)


def rename_in_error(error: TypeError, called: str, name: str) -> bool:
    """Replace the function's name in a ``TypeError`` about the arguments of a call."""
    text = str(error)
    if not text.startswith(f"{called}()"):
        return False
    error.args = (f"{name}{text.removeprefix(called)}",)
    return True


def _fix_name_and_is_explanatory(error: BaseException, call: Any) -> bool:
    """Return whether an error's message explains the failure. An error about the arguments gets the public name."""
    if not isinstance(error, TypeError) or isinstance(error, SpeechLabError):
        return True
    name, behind = call.__qualname__, call
    while behind is not None:
        if rename_in_error(error, behind.__qualname__, name):
            return True
        behind = getattr(behind, "__wrapped__", None)
    return False


def _strip_own_traceback_frames(error: E) -> E:
    """Remove the frames of this package from an error, and keep those of the user's functions.

    The cause is already in the message. It is therefore shown without its own cause and without frames of libraries.
    """
    for raised in (error, *(error.exceptions if isinstance(error, ExceptionGroup) else ())):
        raised.__traceback__ = strip_own_frames(raised.__traceback__)
        behind = raised.__cause__ or (None if raised.__suppress_context__ else raised.__context__)
        if behind is not None:
            behind.__traceback__ = strip_own_frames(behind.__traceback__, inside=True)
            behind.__suppress_context__ = True
    if not isinstance(error, SpeechLabError):
        enable_short_display(error)
    return error
