"""Connecting and configuring a realtime session; connecting is retried, because it costs nothing."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab.client._operations.call import HttpCall, Timeouts
from speechlab.client._operations.operation import TimeLeft, get_original_timeout
from speechlab.client._operations.speech import SpeechOptions
from speechlab.client._realtime.protocol import build_error_from_event, parse_message
from speechlab.client._scheduling.pressure import AttemptEnd, End
from speechlab.client._scheduling.retry import Failure
from speechlab.client._services.progress import Progress
from speechlab.client._settings.settings import Settings, build_not_replayable_error
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
    ContractError,
    InvalidRequestError,
    SpeechLabError,
)

if TYPE_CHECKING:
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._services.sender import Sender

OPEN_S = 30.0
# Bytes that a service sends before a session is configured.
_MOST_BEFORE = 1 << 20


@dataclass(frozen=True, slots=True)
class RealtimeConfig:
    """Checked settings of a session, the same for all of its texts."""

    settings: SessionSettings
    sample_rate: int
    respell_text: Callable[[str], str]


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

    def build_config(self) -> RealtimeConfig:
        """Check the settings of a session (section 4.3); a voice by its description has to be looked up first."""
        transport: object = self.audio_transport
        if not isinstance(transport, str) or transport not in list(AudioTransport):
            names = " or ".join(map(repr, map(str, AudioTransport)))
            message, code = f"audio_transport is {transport!r}; it is {names}", "unsupported_audio_transport"
            raise InvalidRequestError(message, parameter="audio_transport", rule="4.3", code=code)
        self.respell_text("-")  # what is no lexicon is refused before the first text
        request, rate = self.build_request_and_rate("-", stream=True)
        fields = request.body()
        del fields["text"], fields["stream"]
        if transport != AudioTransport.BINARY:
            fields["audio_transport"] = str(transport)
        return RealtimeConfig(SessionSettings.parse(fields), rate, self.respell_text)


async def open_session(sender: Sender, config: RealtimeConfig) -> tuple[Socket, SessionInfo]:
    """Connect and configure a session."""
    clock = sender.settings.clock
    update = SessionUpdate(id=f"cfg_{secrets.token_hex(6)}", session=config.settings)
    problem: SpeechLabError
    received = 0
    socket, deadline = await _open_socket_with_retries(sender)
    within_s = _compute_time_left(sender.settings, deadline)
    until = clock.monotonic() + within_s  # for all messages together: a service may send others without end
    try:
        await socket.send(update.to_message())
        while True:
            frame = await socket.receive(max(0.0, until - clock.monotonic()))
            received += len(frame)
            if received > _MOST_BEFORE:
                problem = ContractError(f"the service sent {received:,} bytes before session.created")
                break
            message = None if isinstance(frame, bytes) else parse_message(frame)
            if isinstance(message, SessionCreated):
                return socket, message.session
            if isinstance(message, TtsError | RouterError):
                problem = build_error_from_event(message)
                break
    except SocketClosedError as error:
        problem = APIConnectionError(f"the realtime session was closed before it was configured: {error}")
    except TimeoutError:
        problem = APITimeoutError(
            f"no session.created came within {get_original_timeout(within_s):g} s; give a longer time by "
            "with_options(timeout=...)"
        )
    except BaseException:
        await socket.close(wait=False)
        raise
    await socket.close(wait=False)
    raise problem


def _compute_time_left(settings: Settings, deadline: float | None) -> float:
    """Seconds for the handshake or the configuration: the rest of the timeout, if one was given."""
    if deadline is None or settings.timeout is None:
        return OPEN_S
    return TimeLeft(deadline - settings.clock.monotonic(), get_original_timeout(settings.timeout))


async def _open_socket_with_retries(sender: Sender) -> tuple[Socket, float | None]:
    """Return a connection, and the deadline of its timeout, if one was given."""
    settings = sender.settings
    if settings.mode == "replay":
        raise build_not_replayable_error("realtime")
    if sender.service.other_api:
        raise ConfigurationError(
            f"{sender.service.other_api} has no realtime session of the contract; use stream_speech instead"
        )
    sender.connections.bind_to_loop()
    limits = Timeouts(read=settings.timeout or OPEN_S, total=settings.timeout)
    call = HttpCall("realtime", "tts", limits, "GET", REALTIME_PATH, free=True)
    clock = settings.clock
    progress = Progress(
        settings=settings, clock=clock, call=call, place=settings.ws_base_url, began=clock.monotonic()
    )
    if settings.timeout is not None:
        progress.deadline = progress.began + settings.timeout

    async def attempt(place: CallPlace) -> Socket | Failure:
        progress.attempts += 1
        progress.report("request")
        outcome: Socket | Failure | None = None
        try:
            outcome = await open_socket(settings, _compute_time_left(settings, progress.deadline))
        finally:
            if not isinstance(outcome, Failure):
                place.end(AttemptEnd(End.UNKNOWN if outcome is None else End.ANSWERED))
        if isinstance(outcome, Socket):
            progress.report("response", status=101)
        return outcome

    scheduled = sender.build_scheduled_call("tts", free=True, light=True)
    socket = await sender.retry_until_answered(scheduled, progress, attempt)
    progress.report("done", status=101)
    return socket, progress.deadline
