"""Errors as people see them: without frames of this package, in notebooks, consoles and scripts alike.

The message of an error explains the failure, and our frames between it and the user's line would hide it. The
traceback of the error itself keeps the frame through which it left, so nothing is lost to a debugger.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
import warnings
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

_STDLIB = f"{sysconfig.get_path('stdlib')}{Path('/').anchor}"
# Paths of the package itself, and of the libraries that carry its calls between threads and through ``with``.
_OWN_PATHS = (
    f"{Path(__file__).parent}{Path('/').anchor}",
    *(f"{_STDLIB}{name}" for name in ("asyncio", "concurrent", "contextlib.py", "functools.py")),
)
_SITE_FOLDERS = tuple(
    f"{Path('/').anchor}{name}{Path('/').anchor}" for name in ("site-packages", "dist-packages")
)
# Errors of a group that are shown, and characters of each.
_SHOWN, _LONGEST = 3, 200
# Method by which IPython asks an error for its lines.
_RENDER_METHOD = "_render_traceback_"

# Control characters but tabs and line breaks, changes of the writing direction, and halves of surrogate pairs.
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)")


def to_printable(text: str) -> str:
    """Return a text from elsewhere without the characters by which it would steer a terminal."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def warn_user(message: str, *, stacklevel: int) -> None:
    """Warn, with texts of files and services in the message that do not steer the terminal."""
    warnings.warn(to_printable(message), stacklevel=stacklevel + 1)


def _is_library_file(file: str) -> bool:
    """Return whether a file is not the user's."""
    if file.startswith((*_OWN_PATHS, _STDLIB)) or any(folder in file for folder in _SITE_FOLDERS):
        return True
    # Frames of a compiled module have the relative path of its source.
    return not file.startswith("<") and not Path(file).is_absolute()


def strip_own_frames(trace: TracebackType | None, *, inside: bool = False) -> TracebackType | None:
    """Return a traceback without the frames of this package, and of the libraries that it calls; the user's stay.

    With ``inside``, the traceback begins in the package.
    """
    frames: list[TracebackType] = []
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        inside = file.startswith(_OWN_PATHS) or (inside and _is_library_file(file))
        if not inside:
            frames.append(trace)
        trace = trace.tb_next
    shortened: TracebackType | None = None
    for entry in reversed(frames):
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shortened


def _find_ipython_shell() -> Any:
    """Return the shell of IPython that runs this code, of which a process may have several."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the callers of this function
    while frame is not None and not hasattr(frame.f_locals.get("self"), "InteractiveTB"):
        frame = frame.f_back
    return None if frame is None else frame.f_locals["self"]


def format_traceback(error: BaseException) -> list[str]:
    """Return the lines that IPython shows of an error. Its causes are in its message."""
    shortened = strip_own_frames(error.__traceback__)
    shell = _find_ipython_shell()
    if shell is None:
        return traceback.format_exception(type(error), error, shortened, chain=False)
    causes = error.__cause__, error.__context__, error.__suppress_context__
    error.__cause__ = error.__context__ = None
    try:
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, shortened)
    finally:
        error.__cause__, error.__context__, error.__suppress_context__ = causes
    return lines


def _format_last_traceback() -> list[str]:
    return format_traceback(sys.last_value or KeyboardInterrupt())


def enable_short_display(error: BaseException) -> None:
    """Let an error that is not of this package be shown as briefly as ours are."""
    setattr(error, _RENDER_METHOD, _format_last_traceback)
    if isinstance(error, ExceptionGroup) and (ipython := sys.modules.get("IPython")) is not None:
        shell = _find_ipython_shell() or ipython.get_ipython()
        if shell is not None and not shell.custom_exceptions:  # a hook of the user stays
            shell.set_custom_exc((ExceptionGroup,), _show_error_group)  # IPython asks no group for its lines
    install_excepthook()


def _show_error_group(
    shell: Any, kind: type[ExceptionGroup[Any]], error: ExceptionGroup[Any], trace: TracebackType, **_: Any
) -> None:
    """Show a group of ours with its first errors, and any other group as IPython does."""
    if not hasattr(error, _RENDER_METHOD):
        shell.showtraceback((kind, error, trace), running_compiled_code=True)
        return
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    first = [f"  {type(one).__name__}: {one}"[:_LONGEST] for one in error.exceptions[:_SHOWN]]
    more = len(error.exceptions) - len(first)
    lines = [*first, *([f"  and {more:,} more in its .exceptions"] if more else [])]
    shell._showtraceback(kind, error, [*format_traceback(error), *lines])  # noqa: SLF001 - what IPython itself calls


def install_excepthook() -> None:
    """Show errors briefly where Python prints them; an existing hook gets the shorter traceback."""
    global _usual
    if sys.excepthook is not _print_uncaught_error:
        _usual, sys.excepthook = sys.excepthook, _print_uncaught_error


_usual: Any = sys.excepthook


def _print_uncaught_error(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if hasattr(error, _RENDER_METHOD):
        trace = error.__traceback__ = strip_own_frames(trace)
        error.__suppress_context__, error.__cause__ = True, None
    _usual(kind, error, trace)
