"""One attempt of a call over a wire: the reply, or how it failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from speechlab.client._events import server_timing_s
from speechlab.client._operations.call import HttpCall, RawResponse
from speechlab.client._operations.failures import error_from_reply, retry_after_s
from speechlab.client._operations.operation import whole_s
from speechlab.client._scheduling.retry import Failure
from speechlab.client._transport.http import Sent, WireError
from speechlab.client._transport.progress import Progress, ReplyStream
from speechlab.errors import APIConnectionError, APITimeoutError, StreamTruncatedError

if TYPE_CHECKING:
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.http import Reply, Wire


async def exchange(
    wire: Wire, settings: Settings, call: HttpCall, progress: Progress, place: CallPlace, *, stream: bool
) -> RawResponse | ReplyStream | Failure:
    """Send a request, and read its reply.

    Args:
        wire: The connections.
        settings: Of the client.
        call: What to send.
        progress: Where it is measured; its deadline holds.
        place: The place that the attempt has.
        stream: Whether a successful reply is to be read piece by piece.

    Returns:
        The reply, whole or as a stream; or how it failed.
    """
    remaining = None if progress.deadline is None else progress.deadline - progress.clock.monotonic()
    reply: Reply | None = None
    opened = False
    sent = Sent()
    try:
        async with asyncio.timeout(remaining):
            reply = await wire.open(call, sent, settings.connect_timeout_s)
            progress.first_byte_s = progress.clock.monotonic() - place.started
            progress.processing_s = server_timing_s(reply.headers, "engine")
            progress.service_queued_s = server_timing_s(reply.headers, "queue")
            progress.tell("response", status=reply.status)
            if stream and 200 <= reply.status < 300:
                opened = True
                place.streams()
                return ReplyStream(reply, place, progress)
            return await _read_reply(settings, call, progress, reply)
    except WireError as error:
        fault = error
    except TimeoutError:
        if reply is not None:
            waited = "the rest of the reply"
        elif call.body is None:
            waited = "a connection, or for the reply"
        else:
            waited = "the reply" if sent.done else "a connection, and for the request to be taken"
        text = f"the call's time of {whole_s(call.timeouts.total or 0.0):g} s was up while it waited for {waited}"
        fault = WireError(text, sent=sent.done, timed_out=True)
    finally:
        if reply is not None and not opened:
            await reply.close()
    return _no_reply(settings, call, fault)


async def _read_reply(
    settings: Settings, call: HttpCall, progress: Progress, reply: Reply
) -> RawResponse | Failure:
    if call.raw or 200 <= reply.status < 300:
        content = await _read_body(settings, call, reply)
        if isinstance(content, Failure):
            return content
        return RawResponse(reply.status, reply.headers, content, progress.timing())
    content = await reply.read_some()
    error = error_from_reply(reply.status, reply.headers, content)
    wait = retry_after_s(reply.headers, progress.clock.time())
    return Failure(error, status=reply.status, retry_after_s=wait)


async def _read_body(settings: Settings, call: HttpCall, reply: Reply) -> bytes | Failure:
    content = bytearray()
    try:
        async for piece in reply.pieces():
            content += piece
    except WireError as error:
        if error.timed_out or call.free:
            return _no_reply(settings, call, error)
        text = f"the reply was cut short after {len(content):,} bytes ({error})"
    else:
        return bytes(content)
    # Not repeated: the work has been done, and most likely counted.
    return Failure(StreamTruncatedError(text, partial=bytes(content)), sent=True, final=True)


def _no_reply(settings: Settings, call: HttpCall, fault: WireError) -> Failure:
    where = f"{call.method} {settings.base_url.rstrip('/')}{call.path}"
    advice = [fault.advice] if fault.advice else []
    if not advice and fault.sent and not call.free:
        advice = ["the request had been sent in full, so it may have been done and billed"]
    elif not advice and not fault.timed_out:
        lease = settings.lease
        advice = [lease.explain() if lease is not None else "check base_url, and that the service runs"]
    if fault.timed_out and not fault.advice:
        advice.append("give a longer time as timeout= of the call, or by with_options(timeout=...)")
    kind = APITimeoutError if fault.timed_out else APIConnectionError
    error = kind(f"{where}: {fault}", possibly_metered=fault.sent and not call.free)
    error.advice = "; ".join(advice)
    if fault.final:
        error.retryable = False
    return Failure(error, sent=fault.sent, timed_out=fault.timed_out, final=fault.final)
