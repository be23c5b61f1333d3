"""The doors of rooms: public names say the room that they belong to, not the file that they stand in."""

from __future__ import annotations

from types import FunctionType
from typing import Any


def name_after(room: str, names: dict[str, Any], public: list[str]) -> None:
    """Set ``__module__`` of a room's public classes and functions to the room.

    Tracebacks and reprs then say ``speechlab.client.Client`` wherever the file lies, and a pickle survives a move.
    The price: ``inspect.getsource`` looks for a class in the door, and ``typing.get_type_hints`` for the names in its
    annotations.

    Args:
        room: The room's name, such as ``"speechlab.client"``.
        names: The room's globals.
        public: The room's ``__all__``. What comes from another room keeps that room's name.
    """
    for name in public:
        value = names.get(name)
        if isinstance(value, (type, FunctionType)) and value.__module__.startswith(f"{room}._"):
            value.__module__ = room
