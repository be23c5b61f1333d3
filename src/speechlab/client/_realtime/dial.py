"""Connecting and configuring a realtime session; connecting is retried, because it costs nothing."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab.client._openai import OpenAIAdapter
from speechlab.client._operations.call import HttpCall, Timeouts
from speechlab.client._operations.operation import TimeLeft, whole_s
from speechlab.client._operations.speech import SpeechOptions
from speechlab.client._realtime.protocol import error_from_event, read_message
from speechlab.client._scheduling.pressure import End, Ended
from speechlab.client._scheduling.retry import Failure
from speechlab.client._settings.settings import Settings, nothing_is_sent
from speechlab.client._transport.exchange import Progress
from speechlab.client._transport.websocket import Socket, SocketClosedError, open_socket
from speechlab.contract import (
    REALTIME_PATH,
    AudioTransport,
    RouterError,
    SessionCreated,
    SessionInfo,
    SessionSettings,
    SessionUpdate,
    TtsError,
)
from speechlab.errors import (
    APIConnectionError,
    APITimeoutError,
    ConfigurationError,
    InvalidRequestError,
    SpeechLabError,
)

if TYPE_CHECKING:
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._transport.sender import Sender

OPEN_S = 30.0


@dataclass(frozen=True, slots=True)
class RealtimeConfig:
    """Checked settings of a session, the same for all of its texts."""

    settings: SessionSettings
    sample_rate: int


@dataclass(frozen=True, eq=False, kw_only=True)
class RealtimeOptions(SpeechOptions):
    """Options of a realtime session.

    Args:
        audio_transport: Form of the audio: ``"binary"`` frames, or ``"base64_json"`` for proxies that pass text
            only. Events contain the same bytes in both.
        timeout: Seconds for connecting and configuring, and for each text with its waits; None is the client's.
    """

    audio_transport: str = "binary"
    timeout: float | None = None

    def config(self) -> RealtimeConfig:
        """Check the settings of a session (section 4.3); a voice by its description has to be looked up first."""
        transport: object = self.audio_transport
        if not isinstance(transport, str) or transport not in list(AudioTransport):
            names = " or ".join(map(repr, map(str, AudioTransport)))
            message, code = f"audio_transport is {transport!r}; it is {names}", "unsupported_audio_transport"
            raise InvalidRequestError(message, parameter="audio_transport", rule="4.3", code=code)
        request, rate = self.checked("-", stream=True)
        fields = request.body()
        del fields["text"], fields["stream"]
        if transport != AudioTransport.BINARY:
            fields["audio_transport"] = str(transport)
        return RealtimeConfig(SessionSettings.parse(fields), rate)


async def configured_socket(sender: Sender, config: RealtimeConfig) -> tuple[Socket, SessionInfo]:
    """Connect and configure a session."""
    clock = sender.settings.clock
    update = SessionUpdate(id=f"cfg_{secrets.token_hex(6)}", session=config.settings)
    problem: SpeechLabError
    socket, deadline = await _dial(sender)
    within_s = _within_s(sender.settings, deadline)
    until = clock.monotonic() + within_s  # for all messages together: a service may send others without end
    try:
        await socket.send(update.message())
        while True:
            frame = await socket.receive(max(0.0, until - clock.monotonic()))
            message = None if isinstance(frame, bytes) else read_message(frame)
            if isinstance(message, SessionCreated):
                return socket, message.session
            if isinstance(message, TtsError | RouterError):
                problem = error_from_event(message)
                break
    except SocketClosedError as error:
        problem = APIConnectionError(f"the realtime session was closed before it was configured: {error}")
    except TimeoutError:
        problem = APITimeoutError(
            f"no session.created came within {whole_s(within_s):g} s; give a longer time by with_options(timeout=...)"
        )
    except BaseException:
        await socket.close(wait=False)
        raise
    await socket.close(wait=False)
    raise problem


def _within_s(settings: Settings, deadline: float | None) -> float:
    """Seconds for the handshake or the configuration: the rest of the timeout, if one was given."""
    if deadline is None or settings.timeout is None:
        return OPEN_S
    return TimeLeft(deadline - settings.clock.monotonic(), whole_s(settings.timeout))


async def _dial(sender: Sender) -> tuple[Socket, float | None]:
    """A connection, and the deadline of its timeout, if one was given."""
    settings = sender.settings
    if settings.mode == "replay":
        raise nothing_is_sent("realtime")
    if settings.adapter is not None:
        whose = "OpenAI's API" if isinstance(settings.adapter, OpenAIAdapter) else "a system of functions"
        raise ConfigurationError(
            f"{whose} has no realtime session of the contract; use stream_speech instead"
        )
    sender.connections.check()
    limits = Timeouts(read=settings.timeout or OPEN_S, total=settings.timeout)
    progress = Progress(settings, HttpCall("realtime", "tts", "GET", REALTIME_PATH, limits, free=True))
    progress.address = settings.ws_base_url
    if settings.timeout is not None:
        progress.deadline = progress.began + settings.timeout

    async def attempt(place: CallPlace) -> Socket | Failure:
        progress.attempts += 1
        progress.tell("request")
        outcome: Socket | Failure | None = None
        try:
            outcome = await open_socket(settings, _within_s(settings, progress.deadline))
        finally:
            if not isinstance(outcome, Failure):
                place.end(Ended(End.UNKNOWN if outcome is None else End.ANSWERED))
        if isinstance(outcome, Socket):
            progress.tell("response", status=101)
        return outcome

    scheduled = sender.scheduled("tts", free=True, light=True)
    socket = await sender.until_answered(scheduled, progress, attempt)
    progress.tell("done", status=101)
    return socket, progress.deadline
