"""What both wires on HTTP libraries share: requests and replies whose exceptions are translated."""

from __future__ import annotations

from abc import abstractmethod
from enum import Enum, auto
from typing import TYPE_CHECKING

from speechlab.client._secret import redact
from speechlab.client._transport.http import (
    Reply,
    Wire,
    WireError,
    broken_proxy,
    is_untrusted,
    no_connection,
    nothing_came,
    without_trace,
)
from speechlab.errors import SpeechLabError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from speechlab.client._operations.call import HttpCall, Timeouts
    from speechlab.client._transport.http import Sent


class WireFault(Enum):
    """What a library says by an exception."""

    NO_CONNECTION = auto()
    """No connection in time."""
    NOT_TAKEN = auto()
    """The network did not take the request in time."""
    SILENT = auto()
    """Nothing came in time."""
    PROXY = auto()
    """The proxy cannot be reached, or refuses."""
    OTHER = auto()


class LibraryReply(Reply):
    """A reply that a library reads."""

    def __init__(self, wire: LibraryWire, limits: Timeouts) -> None:
        self._wire, self._limits = wire, limits

    @abstractmethod
    async def _next(self) -> bytes | None:
        """The next piece of the body, or None at its end; the library's own errors."""

    async def _left(self) -> None:
        """End the library's reading, whose caller left it before the end."""

    async def pieces(self) -> AsyncIterator[bytes]:
        failure: WireError | None = None
        while failure is None:
            try:
                piece = await self._next()
            except Exception as error:  # noqa: BLE001 - translated outside the block, to leave no context
                failure = self._wire.translated(error, self._limits, sent=True, cut=True)
            except BaseException as error:  # noqa: BLE001 - a cancellation, raised again without its frames
                raise without_trace(error)  # noqa: B904 - the cause was removed on purpose
            else:
                if piece is None:
                    self.ended = True
                    return
                try:
                    yield piece
                except GeneratorExit:
                    await self._left()
                    raise
        raise failure


class LibraryWire(Wire):
    """Connections of a library, whose exceptions are translated."""

    proxy: str | None = None
    """Address of the proxy before the service."""

    @abstractmethod
    async def _reply(self, call: HttpCall, sent: Sent, connect_s: float, read_s: float | None) -> Reply:
        """Send a request by the library; its own errors."""

    @abstractmethod
    def _fault(self, error: Exception, *, sent: bool) -> tuple[WireFault, str, int | None]:
        """What an exception of the library says: its kind, its message, and the status of a refusing proxy."""

    async def open(self, call: HttpCall, sent: Sent, connect_s: float, read_s: float | None) -> Reply:
        failure: Exception
        try:
            reply = await self._reply(call, sent, connect_s, read_s)
        except SpeechLabError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - translated outside the block, to leave no context
            failure = self.translated(error, call.timeouts, sent=sent.done, connect_s=connect_s)
        except BaseException as error:  # noqa: BLE001 - a cancellation, raised again without its frames
            raise without_trace(error)  # noqa: B904 - the cause was removed on purpose
        else:
            self.replies.add(reply)
            if reply.status != 407 or self.proxy is None:
                return reply
            await reply.close()
            failure = broken_proxy(self.proxy, "407", 407)
        raise without_trace(failure)

    def translated(
        self, error: Exception, limits: Timeouts, *, sent: bool, cut: bool = False, connect_s: float = 0.0
    ) -> WireError:
        """The failure for an exception of the library."""
        fault, text, status = self._fault(error, sent=sent)
        if fault is WireFault.NO_CONNECTION:
            return no_connection(connect_s, proxy=self.proxy)
        if fault in {WireFault.NOT_TAKEN, WireFault.SILENT}:
            taking = fault is WireFault.NOT_TAKEN
            return nothing_came(limits.write if taking else limits.read, sent=sent, cut=cut, taking=taking)
        text = redact(text).strip() or type(error).__name__
        if fault is WireFault.PROXY and self.proxy is not None and not is_untrusted(text):
            return broken_proxy(self.proxy, text, status)
        return WireError(text, sent=sent, timed_out=False, cut=cut)
