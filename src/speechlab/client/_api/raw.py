"""Replies as they came, beside what was read of them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from speechlab.client._api import portal as _portal
from speechlab.client._api.streams import SpeechStream, TranslationStream
from speechlab.client._operations.call import RawResponse
from speechlab.client._operations.noted import noting
from speechlab.client._streams.raw import raw_stream, waited_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from speechlab.client._api.async_client import AsyncClient

P = ParamSpec("P")
T = TypeVar("T")


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
        with noting() as box:
            value = await method(*args, **kwargs)
        reply = box[-1]  # calls for the catalogue come before
        return RawReply(**{one.name: getattr(reply, one.name) for one in fields(RawResponse)}, _value=value)

    return call


def _waited(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return _portal.run(method, *args, **kwargs)

    return call


class AsyncRawReplies:
    """The operations of a client, giving their replies as they came; streams with their head before their body."""

    def __init__(self, client: AsyncClient) -> None:
        self.voices = _raw(client.voices)
        self.synthesize = _raw(client.synthesize)
        self.stream_speech = raw_stream(client.stream_speech)
        self.transcribe = _raw(client.transcribe)
        self.translate = _raw(client.translate)
        self.stream_translation = raw_stream(client.stream_translation)


class RawReplies:
    """The operations of a client, giving their replies as they came; streams with their head before their body."""

    def __init__(self, client: AsyncRawReplies) -> None:
        self.voices = _waited(client.voices)
        self.synthesize = _waited(client.synthesize)
        self.stream_speech = waited_stream(client.stream_speech, SpeechStream)
        self.transcribe = _waited(client.transcribe)
        self.translate = _waited(client.translate)
        self.stream_translation = waited_stream(client.stream_translation, TranslationStream)
