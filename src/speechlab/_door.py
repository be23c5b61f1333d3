"""What a room's door does: objects have its name, completion its promised names, and old names lead to new ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any


def name_after(room: str, names: dict[str, Any], only: list[str] | None = None) -> None:
    """Set ``__module__`` of the classes and functions that come through a room's door to the room.

    ``dir()`` of the room, and so completion in a notebook, then lists its ``__all__``.

    Tracebacks and reprs then show ``speechlab.client.Client``, and a pickle stays valid if the file moves. The cost:
    ``inspect.getsource`` and ``typing.get_type_hints`` look for a class, and for the names in its annotations, in the
    room's ``__init__.py``.
    """
    for name in only or list(names):
        value = names.get(name)
        if isinstance(value, (type, FunctionType)) and value.__module__.startswith(f"{room}._"):
            value.__module__ = room
    if "__all__" in names:
        names["__dir__"] = lambda: sorted(names["__all__"])


def old_names(room: str, renamed: Mapping[str, tuple[str, Any]]) -> Callable[[str], Any]:
    """Make a room's ``__getattr__`` that serves names of 0.1 (old name: new name, value) with a warning."""

    def __getattr__(name: str) -> Any:  # noqa: N807 - a module's own hook, PEP 562
        if name not in renamed:
            raise AttributeError(f"module {room!r} has no attribute {name!r}", name=name)
        new, value = renamed[name]
        message = f"{room}.{name} is now {room}.{new}; the old name goes in version 0.3"
        warnings.warn(message, FutureWarning, stacklevel=2)
        return value

    return __getattr__
