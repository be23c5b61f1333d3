"""What a room's door does: objects have its name, and completion its promised names."""

from __future__ import annotations

from types import FunctionType
from typing import Any


def set_module_to_room(room: str, names: dict[str, Any], only: list[str] | None = None) -> None:
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
