"""The replies of the call that is running, for who wants to see them as they came."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speechlab.client._operations.call import RawResponse

_noted: ContextVar[list[RawResponse] | None] = ContextVar("_noted", default=None)


def note(reply: RawResponse) -> RawResponse:
    """Remember a reply for the call that wants to see it, and give it back."""
    box = _noted.get()
    if box is not None:
        box.append(reply)
    return reply


@contextmanager
def noting() -> Iterator[list[RawResponse]]:
    """Collect the replies of the calls within."""
    box: list[RawResponse] = []
    token = _noted.set(box)
    try:
        yield box
    finally:
        _noted.reset(token)
