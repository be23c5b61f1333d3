"""A realtime connection that sends any message in any order, and records everything."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import logging
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from speechlab.conform._probe.findings import CheckSkipped, ExpectationUnmet
from speechlab.conform._probe.http import shorten_middle
from speechlab.conform._probe.target import Target, drop_omitted
from speechlab.contract import REALTIME_PATH

if TYPE_CHECKING:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import ClientConnection

_MAX_LINES = 20
_MAX_MESSAGE = 32 << 20
_RATE_CODES = {
    "rate_limited",
    "service_rate_limited",
    "rate_limiter_unavailable",
    "service_rate_limiter_unavailable",
}

Event = dict[str, Any] | bytes


class TalkClosed(Exception):  # noqa: N818 - connections end
    """The service has closed the connection."""


@dataclass(frozen=True, slots=True)
class SpeakAttempt:
    """A ``tts.speak`` and the messages about it."""

    id: Any
    text: str
    events: tuple[Event, ...]
    sent: str
    came: str

    def select_messages(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.events if isinstance(each, dict) and each.get("type") == kind]

    def insist_one_message(self, kind: str) -> dict[str, Any]:
        """Return the message of a type."""
        messages = self.select_messages(kind)
        if len(messages) != 1:
            raise ExpectationUnmet(f"exactly one {kind} for a spoken text", self)
        return messages[0]

    @property
    def audio_pieces(self) -> list[bytes]:
        """The pieces of audio as received, by either transport."""
        pieces = []
        for event in self.events:
            if isinstance(event, bytes):
                pieces.append(event)
            elif event.get("type") == "tts.audio.delta":
                with contextlib.suppress(binascii.Error, TypeError, ValueError):
                    pieces.append(base64.b64decode(event.get("audio", ""), validate=True))
        return pieces


@dataclass
class Talk:
    """A connection, open for the duration of the block; also the evidence of its messages."""

    target: Target
    key: str | None = None
    lines: list[str] = field(default_factory=list)
    came_lines: list[str] = field(default_factory=list)
    socket: ClientConnection = field(init=False)
    _run: list[int] = field(default_factory=list)
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        from websockets.exceptions import InvalidHandshake
        from websockets.sync.client import connect

        silent = logging.getLogger("speechlab.conform.silent")  # the library logs the header with the key
        silent.disabled = True
        ws = self.target.ws
        address = f"{'wss' if ws.tls else 'ws'}://{ws.host_header}{ws.path}{REALTIME_PATH}"
        key = self.key or self.target.options.api_key
        for attempt in range(3):
            try:
                opened = connect(
                    address,
                    additional_headers={"Authorization": f"Bearer {key}"},
                    compression=None,
                    max_size=_MAX_MESSAGE,
                    open_timeout=self.target.options.timeout_s,
                    close_timeout=2,
                    ping_interval=None,
                    proxy=None,
                    logger=silent,
                )
                self.socket = self.stack.enter_context(opened)
            except InvalidHandshake as refused:
                self.lines.append("handshake")
                reply = getattr(refused, "response", None)
                status = getattr(reply, "status_code", 0)
                if status in {429, 503} and attempt < 2:
                    time.sleep(1 + attempt)
                    continue
                body = getattr(reply, "body", b"") or b""
                self.came_lines.append(f"{status} {body[:300].decode('utf-8', 'replace')}")
                if status == 429:
                    raise CheckSkipped("the service accepts no further connection") from None
                raise ExpectationUnmet("a valid handshake is accepted", self) from None
            return self
        raise CheckSkipped("the service accepts no further connection")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stack.close()

    @property
    def sent(self) -> str:
        return _join_abridged_lines(self.lines)

    @property
    def came(self) -> str:
        return _join_abridged_lines(self.came_lines) or "nothing"

    def send_raw(self, data: Any, *, text: bool | None = None) -> None:
        """Send a message unchanged: text, bytes as a binary message, or a list of fragments."""
        from websockets.exceptions import ConnectionClosed

        self.lines.append(shorten_middle(data if isinstance(data, str) else repr(data), 300))
        try:
            self.socket.send(data, text=text)
        except ConnectionClosed as closed:
            raise self._record_close(closed) from None

    def send_message(self, **message: Any) -> None:
        """Send a message; fields that are ``...`` are left out."""
        self.send_raw(json.dumps(drop_omitted(message)))

    def receive_event(self, seconds: float | None = None) -> Event:
        from websockets.exceptions import ConnectionClosed

        try:
            data = self.socket.recv(self.target.options.timeout_s if seconds is None else seconds)
        except ConnectionClosed as closed:
            raise self._record_close(closed) from None
        except TimeoutError:
            self.came_lines.append("(nothing more)")
            raise ExpectationUnmet("a reply arrives in time", self) from None
        if isinstance(data, bytes):
            # Consecutive binary messages share a line.
            if self.came_lines and self.came_lines[-1].startswith("(binary"):
                self.came_lines.pop()
            else:
                self._run = []
            self._run.append(len(data))
            several = f"{len(self._run)} binary messages, " if len(self._run) > 1 else ""
            self.came_lines.append(f"(binary: {several}{sum(self._run):,} bytes)")
            return data
        self.came_lines.append(shorten_middle(data, 1_000))
        try:
            message = json.loads(data)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise ExpectationUnmet("every text message of the service is a JSON object", self)
        return message

    def _record_close(self, closed: ConnectionClosed) -> TalkClosed:
        self.came_lines.append(f"(closed: {closed.rcvd.code if closed.rcvd else 'without a code'})")
        return TalkClosed()

    def receive_message(self, seconds: float | None = None) -> dict[str, Any]:
        """Return the next message, which is not audio."""
        try:
            event = self.receive_event(seconds)
        except TalkClosed:
            raise ExpectationUnmet("the connection stays open", self) from None
        if isinstance(event, bytes):
            raise ExpectationUnmet("a reply arrives before any audio", self)
        return event

    def ask_message(self, **message: Any) -> dict[str, Any]:
        self.send_message(**message)
        return self.receive_message()

    def ask_update(self, _id: Any = "u-1", **session: Any) -> dict[str, Any]:
        """Send ``session.update`` with the voice of this run; fields that are ``...`` are left out."""
        settings = {"voice_id": self.target.voice["id"], "format": self.target.stream_format} | session
        return self.ask_message(type="session.update", id=_id, session=drop_omitted(settings))

    def configure_session(self, **session: Any) -> dict[str, Any]:
        """Send a valid ``session.update`` and return ``session.created``."""
        reply = self.ask_update(**session)
        if reply.get("type") != "session.created":
            raise ExpectationUnmet("the reply to a valid session.update is session.created", self)
        return reply

    def require_error(self, found: dict[str, Any], code: str, kind: str = "tts.error") -> bool:
        """Record a finding unless a message is an error with this code; return whether it is."""
        right = found.get("type") == kind and found.get("code") == code
        right = right and isinstance(found.get("message"), str)
        return self.target.require_that(right, f"{kind} with code {code} and a message", self)

    def speak_text(self, text: str, _id: Any = ...) -> SpeakAttempt:
        """Send ``tts.speak`` and read to its end: ``tts.usage``, or an error that ends it."""
        self.send_message(type="tts.speak", id=_id, text=text)
        return self.receive_to_end(text, _id)

    def receive_to_end(self, text: str, _id: Any) -> SpeakAttempt:
        events: list[Event] = []
        while True:
            try:
                event = self.receive_event()
            except TalkClosed:
                raise ExpectationUnmet("the connection stays open until tts.usage", self) from None
            events.append(event)
            if isinstance(event, bytes):
                continue
            kind = event.get("type")
            if kind == "tts.audio.start":
                self.target.metered += 1
            if kind == "tts.error" and event.get("code") in _RATE_CODES:
                raise CheckSkipped(f"the service replies {event['code']}")
            ends = event.get("code") not in {"backend_request_failed", "synthesis_in_progress"}
            if kind == "tts.usage" or (kind == "tts.error" and ends):
                return SpeakAttempt(_id, text, tuple(events), self.sent, self.came)

    def insist_close(self, code: int) -> None:
        """End the check unless the service closes with this code; a connection may stay open, or break off."""
        came: int | None = None
        deadline = time.monotonic() + min(self.target.options.timeout_s, 10.0)
        try:
            while time.monotonic() < deadline:
                self.receive_event(max(0.05, deadline - time.monotonic()))
        except TalkClosed:
            came = self.socket.close_code if self.socket.close_code != 1006 else None
        except ExpectationUnmet:
            pass
        self.target.insist_that(came == code, f"close code {code}, and not {came}", self)


def _join_abridged_lines(lines: list[str]) -> str:
    """Join lines; of very many, only the first and the last ones, because a fault may be at either end."""
    left_out = len(lines) - 2 * _MAX_LINES
    if left_out > 0:
        lines = [*lines[:_MAX_LINES], f"… {left_out} more …", *lines[-_MAX_LINES:]]
    return "\n".join(lines)
