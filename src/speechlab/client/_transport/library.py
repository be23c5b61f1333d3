"""What both wires on HTTP libraries share: requests and replies whose exceptions are translated."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from speechlab.client._secret import redact
from speechlab.client._transport.http import Reply, Wire, WireError, broken_proxy, is_untrusted, without_trace
from speechlab.errors import SpeechLabError

if TYPE_CHECKING:
    from speechlab.client._transport.http import Sending


class LibraryReply(Reply):
    """A reply that a library reads."""

    def __init__(self, wire: LibraryWire, attempt: Sending) -> None:
        self._wire, self._attempt = wire, attempt

    @abstractmethod
    async def _read(self) -> bytes | None:
        """The next piece of the body, or None at its end; the library's own errors."""

    async def _next(self) -> bytes | None:
        failure: WireError
        try:
            return await self._read()
        except Exception as error:  # noqa: BLE001 - translated outside the block, to leave no context
            failure = self._wire.failure(error, self._attempt, reading=True)
        except BaseException as error:  # noqa: BLE001 - a cancellation, raised again without its frames
            raise without_trace(error)  # noqa: B904 - the cause was removed on purpose
        raise failure


class LibraryWire(Wire):
    """Connections of a library, whose exceptions are translated."""

    proxy: str | None = None
    """Address of the proxy before the service."""

    @abstractmethod
    async def _reply(self, attempt: Sending) -> Reply:
        """Send a request by the library; its own errors."""

    @abstractmethod
    def failure(self, error: Exception, attempt: Sending, *, reading: bool = False) -> WireError:
        """The failure for an exception of the library, before the reply or while it is read."""

    async def open(self, attempt: Sending) -> Reply:
        failure: Exception
        try:
            reply = await self._reply(attempt)
        except SpeechLabError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - translated outside the block, to leave no context
            failure = self.failure(error, attempt)
        except BaseException as error:  # noqa: BLE001 - a cancellation, raised again without its frames
            raise without_trace(error)  # noqa: B904 - the cause was removed on purpose
        else:
            self.replies.add(reply)
            if reply.status != 407 or self.proxy is None:
                return reply
            await reply.close()
            failure = broken_proxy(self.proxy, "407", 407)
        raise without_trace(failure)

    def _broken(
        self, error: Exception, text: str, *, sent: bool, connecting: bool, status: int | None = None
    ) -> WireError:
        """The failure of a connection: of the proxy, if there is one and the service was not reached."""
        text = redact(text).strip() or type(error).__name__
        if connecting and self.proxy is not None and not is_untrusted(text):
            return broken_proxy(self.proxy, text, status)
        return WireError(text, sent=sent)
