"""Streamed replies, and work that is cancelled when its client leaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import Response

from speechlab.service._engines.threads import to_failure
from speechlab.service._faults import ClientGone, Fault
from speechlab.service._held_bytes import BLOCK_BYTES, HeldBytes
from speechlab.service._logs import build_error_fields, log
from speechlab.service._state import ServiceState, get_abort_function, get_or_create_record

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

T = TypeVar("T")
_READ_BYTES = 128 * 1024


async def run_while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do the work of a request whose body was read, and cancel it if the client disconnects."""
    task = asyncio.ensure_future(_convert_exit_to_failure(work))
    watch = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone
    finally:
        task.cancel()
        watch.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _convert_exit_to_failure(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:  # of an engine; in a task it would end the event loop
        raise to_failure(error) from None


class StreamReply(Response):
    """A chunked reply of an async generator.

    The guard sends it in pieces; a piece raises TimeoutError if its reader is too slow. The generator
    has started before: ``first`` is its first item, so that errors at the start are answered with a status. After a
    later failure the connection ends without the final chunk, which is the only sign of it in HTTP. The generator is
    closed when the client disconnects, or reads too slowly.
    """

    def __init__(
        self, first: bytes, rest: AsyncGenerator[bytes], *, media_type: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(None, 200, headers=headers, media_type=media_type)
        del self.headers["content-length"]
        self._first = first
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await run_while_connected(receive, self._send_all(scope, send))
        except ClientGone:
            get_or_create_record(scope).ended = (499, "the client left")
        finally:
            await self._rest.aclose()

    async def _send_all(self, scope: Scope, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            await self._send_piece(send, self._first)
            async for piece in self._rest:
                await self._send_piece(send, piece)
        except TimeoutError:
            get_or_create_record(scope).ended = (499, "the reader was too slow")
            get_abort_function(scope)()
            return
        except Exception as error:  # noqa: BLE001 - after the status was sent, logging is all that remains
            if not isinstance(error, Fault):  # faults are logged where they are made
                log("stream broken off", level="error", path=scope["path"], **build_error_fields(error))
            record_midway_failure(scope, error)
            return
        with contextlib.suppress(TimeoutError):
            await send({"type": "http.response.body", "body": b""})

    async def _send_piece(self, send: Send, data: bytes) -> None:
        if data:
            await send({"type": "http.response.body", "body": data, "more_body": True})


class HeldReply(Response):
    """A whole reply, read from where it is held while its client takes it."""

    def __init__(
        self,
        service: ServiceState,
        held: HeldBytes,
        status: int = 200,
        *,
        media_type: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(None, status, headers=headers, media_type=media_type)
        self.headers["content-length"] = str(held.size)
        self._threads = service.engines.threads
        self._held = held

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        size = self._held.size
        for start in range(0, size or 1, _READ_BYTES):
            read = partial(self._held.read, start, _READ_BYTES)
            block = read() if size <= BLOCK_BYTES else await self._threads.run_task(read)
            more = start + _READ_BYTES < size
            await send({"type": "http.response.body", "body": block, "more_body": more})


def record_midway_failure(scope: Scope, error: BaseException) -> None:
    """Record for the log that a reply failed after its status was sent, and why."""
    get_or_create_record(scope).ended = (
        500,
        error.error if isinstance(error, Fault) else type(error).__name__,
    )


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
