"""Replies as they came, beside what was read of them."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from speechlab.client import _portal
from speechlab.client._call import RawResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from speechlab.client._async_client import AsyncClient

__all__ = ["AsyncRawReplies", "RawReplies", "RawReply", "note"]

P = ParamSpec("P")
T = TypeVar("T")
_noted: ContextVar[list[RawResponse] | None] = ContextVar("_noted", default=None)


def note(reply: RawResponse) -> RawResponse:
    """Remember a reply for the call that wants to see it, and give it back."""
    box = _noted.get()
    if box is not None:
        box.append(reply)
    return reply


@dataclass(frozen=True)
class RawReply(RawResponse, Generic[T]):
    """A reply as it came: status, headers, content and timing; and what was read of it."""

    _value: T | None = field(default=None, repr=False)

    def parse(self) -> T:
        """What the call without ``with_raw_response`` gives."""
        value: Any = self._value
        return value  # type: ignore[no-any-return]


def _raw(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, RawReply[T]]]:
    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> RawReply[T]:
        box: list[RawResponse] = []
        token = _noted.set(box)
        try:
            value = await method(*args, **kwargs)
        finally:
            _noted.reset(token)
        reply = box[-1]  # calls for the catalogue come before
        return RawReply(**{one.name: getattr(reply, one.name) for one in fields(RawResponse)}, _value=value)

    return call


def _waited(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return _portal.run(method, *args, **kwargs)

    return call


class AsyncRawReplies:
    """The operations of a client that end with one reply, giving that reply as it came."""

    def __init__(self, client: AsyncClient) -> None:
        self.voices = _raw(client.voices)
        self.synthesize = _raw(client.synthesize)
        self.transcribe = _raw(client.transcribe)
        self.translate = _raw(client.translate)


class RawReplies:
    """The operations of a client that end with one reply, giving that reply as it came."""

    def __init__(self, client: AsyncRawReplies) -> None:
        self.voices = _waited(client.voices)
        self.synthesize = _waited(client.synthesize)
        self.transcribe = _waited(client.transcribe)
        self.translate = _waited(client.translate)
