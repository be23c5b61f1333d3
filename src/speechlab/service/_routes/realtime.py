"""``/ws/tts/realtime`` (section 4.3): connects the protocol of ``contract`` to a socket and the engines.

One task receives, another speaks. Both report events to the protocol and perform the actions that it returns. A fair
lock sends messages in the order in which they were decided.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect

from speechlab.audio import can_stream
from speechlab.contract import (
    AskLimiter,
    AudioFormat,
    CancelSynthesis,
    CloseCode,
    CloseSession,
    FindVoice,
    RealtimeCode,
    RealtimeProtocol,
    RecordUsage,
    SendAudio,
    SendMessage,
    SessionAction,
    SessionState,
    SessionVoice,
    StartSynthesis,
    SynthesisRecord,
)
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.service._accounts.limits import NotAdmitted
from speechlab.service._engines.turn import Turn
from speechlab.service._faults import Fault, describe_failure
from speechlab.service._held_bytes import READER_BYTES_S, Pace
from speechlab.service._logs import build_error_fields, log
from speechlab.service._routes.speech import Utterance
from speechlab.service._state import (
    ServiceState,
    get_abort_function,
    get_or_create_record,
    get_principal,
    get_service,
)

if TYPE_CHECKING:
    from speechlab.service._accounts.ledger import Status
    from speechlab.service._accounts.metering import Meter
    from speechlab.service._engines.voices import CatalogueVoice
    from speechlab.service._keys import Principal

_STOPPING_MESSAGE = "the service is stopping; try again later"


async def run_realtime(socket: WebSocket) -> None:
    """Run one conversation; :class:`HandshakeGuard` has checked the handshake."""
    conversation = Conversation(socket, get_service(socket), get_principal(socket))
    with get_service(socket).in_flight.register_conversation(conversation):
        await conversation.run_conversation()


class Conversation:
    """One connection, from the upgrade to its end."""

    def __init__(self, socket: WebSocket, service: ServiceState, principal: Principal) -> None:
        self._socket = socket
        self._service = service
        self._principal = principal
        self._session = RealtimeProtocol(
            f"sess_{uuid4().hex}", f"{service.config.vendor}/tts", text_limit=service.config.tts_text_limit
        )
        self._request_id = get_or_create_record(socket.scope).id
        self._abort = get_abort_function(socket.scope)
        self._sending = asyncio.Lock()
        self._pace = Pace(service.config.send_timeout_s, READER_BYTES_S)
        self._lost = False
        self._receiving: asyncio.Timeout | None = None
        self._voice: CatalogueVoice | None = None
        self._meter: Meter | None = None
        self._speaking: asyncio.Task[None] | None = None
        self._close_code = 0
        self._spoken_since = 0.0

    async def run_conversation(self) -> None:
        started = time.monotonic()
        try:
            await self._socket.accept(headers=[(b"x-request-id", self._request_id.encode())])
        except (OSError, WebSocketDisconnect):
            return  # the client left during the handshake
        aging = asyncio.create_task(self._end_at_max_age())
        try:
            if self._service.in_flight.draining:
                await self.drain()
            while self._session.state is not SessionState.CLOSED:
                await self._handle_next_message()
        finally:
            aging.cancel()
            self._perform_immediate_actions(self._session.on_disconnect())
            if self._speaking is not None:
                self._speaking.cancel()
                await asyncio.wait([self._speaking])
            log(
                "realtime session ended",
                request_id=self._request_id,
                session=self._session.session_id,
                key=self._principal.key_id,
                close=self._close_code or None,
                seconds=round(time.monotonic() - started, 4),
            )

    async def _end_at_max_age(self) -> None:
        if self._service.config.ws_session_s:
            await asyncio.sleep(self._service.config.ws_session_s)
            await self._perform_actions(self._session.on_session_too_old())

    async def drain(self) -> None:
        """Close now if no text is under way, and otherwise after it."""
        await self._perform_actions(self._session.on_service_stopping())

    async def close_now(self) -> None:
        """Stop the text under way, report it to the client, and close."""
        if self._speaking is not None:
            self._speaking.cancel()
        await self._perform_actions(
            self._session.on_failed(_STOPPING_MESSAGE) or self._session.backend_unavailable(_STOPPING_MESSAGE)
        )

    # Receiving

    async def _handle_next_message(self) -> None:
        idle_s = None if self._session.config else self._service.config.ws_idle_s
        try:
            async with asyncio.timeout(idle_s) as self._receiving:
                message = await self._socket.receive()
        except TimeoutError:
            await self._perform_actions(self._session.on_configure_timeout())
            return
        finally:
            self._receiving = None
        if message["type"] == "websocket.disconnect":
            self._lost = True
            self._close_code = self._close_code or message.get("code", 0)
            over_limit = message.get("code") == CloseCode.FRAME_TOO_LARGE
            ended = self._session.on_oversized_frame() if over_limit else self._session.on_disconnect()
            await self._perform_actions(ended)
        elif message.get("text") is None:
            await self._perform_actions(self._session.on_binary_frame())
        else:
            await self._perform_actions(self._session.on_message(message["text"].encode()))

    def _find_key_refusal(self) -> list[SessionAction] | None:
        """Check the key again; return the actions that refuse the client, or None."""
        try:
            principal = self._service.keyring.recheck(self._principal)
        except StoreError as error:
            log("keys cannot be read", level="error", **build_error_fields(error))
            code, message = (
                RealtimeCode.TTS_SERVICE_UNAVAILABLE,
                "keys cannot be checked now; try again later",
            )
            return self._session.on_voice_refused(code, message) or self._session.on_rejected(code, message)
        if principal is None:
            log("the key of a session is gone", session=self._session.session_id, key=self._principal.key_id)
            return self._session.on_key_invalid()
        self._principal = principal
        return None

    async def _set_voice_or_refuse(self, voice_id: str) -> list[SessionAction]:
        if (refused := self._find_key_refusal()) is not None:
            return refused
        engines = self._service.engines
        if not engines.synthesizers:
            message = "no text-to-speech engine is registered here"
            return self._session.on_voice_refused(RealtimeCode.TTS_SERVICE_UNAVAILABLE, message)

        def find_voice_and_model() -> tuple[CatalogueVoice, str] | None:
            voice = engines.catalogue.find_voice(voice_id)
            return None if voice is None else (voice, str(voice.lane.get_or_create_engine().model))

        try:
            voice_and_model = await engines.threads.run_task(find_voice_and_model)
        except Exception as error:  # noqa: BLE001 - any error means that voices are not available
            log("voices cannot be listed", level="error", **build_error_fields(error))
            message = f"voices are not available now: {describe_failure(error)}"
            return self._session.on_voice_refused(RealtimeCode.TTS_SERVICE_UNAVAILABLE, message)
        if voice_and_model is None:
            return self._session.on_voice_found(None)
        self._voice, model = voice_and_model
        provider = self._voice.provider
        return self._session.on_voice_found(
            SessionVoice(
                id=self._voice.id,
                model=model,
                rules=self._voice.rules,
                allowed=self._principal.can_use_voice(provider.name, self._voice.id),
                temperature=provider.temperature,
                streams=lambda name, rate: can_stream(AudioFormat(name), rate),
            )
        )

    def _admit_or_refuse_text(self, text: str) -> list[SessionAction]:
        assert self._voice is not None  # a text is accepted in a configured session only
        if (refused := self._find_key_refusal()) is not None:
            return refused
        provider = self._voice.provider.name
        meter = self._service.metering.build_meter("tts", self._principal, transport="websocket")
        try:
            meter.admit_by_key_limits()
            if not self._principal.can_use_voice(provider, self._voice.id):
                meter.close()
                message = "this key may no longer use this voice, or the provider behind it"
                return self._session.on_rejected(RealtimeCode.SERVICE_ACCESS_DENIED, message)
            meter.admit_by_service_limits(
                provider, characters=len(text), input_bytes=len(text.encode("utf-8"))
            )
        except NotAdmitted as refusal:
            meter.close()
            return self._session.on_rejected(refusal.realtime_code, refusal.reason)
        self._meter = meter
        self._spoken_since = time.monotonic()
        return self._session.on_admitted()

    # Speaking

    async def _speak_text(self, start: StartSynthesis) -> None:
        meter, voice, config = self._meter, self._voice, start.config
        assert meter is not None
        assert voice is not None
        audio_format = AudioFormat(config.format)
        utterance = Utterance(voice, start.text, audio_format, config.sample_rate, config.temperature)
        try:
            end = await self._synthesize_and_choose_end(utterance, meter)
            await self._perform_actions(end())
        finally:
            meter.close()

    async def _synthesize_and_choose_end(
        self, utterance: Utterance, meter: Meter
    ) -> Callable[[], list[SessionAction]]:
        """Speak, and return a function that reports the end to the session."""
        lane = utterance.voice.lane
        try:
            # An engine that cannot be made counts as an unavailable backend.
            await self._service.engines.threads.run_task(utterance.check_text)
        except InvalidRequestError as error:
            return partial(self._session.on_rejected, RealtimeCode.INVALID_MESSAGE, error.message)
        except Exception as error:  # noqa: BLE001 - reported to the client in its terms
            log(
                "no backend",
                level="error",
                provider=utterance.voice.provider.name,
                **build_error_fields(error),
            )
            message = f"the voice's engine is not available: {describe_failure(error)}"
            return partial(self._session.backend_unavailable, message)
        turn = Turn(lane, meter)
        try:
            async with turn:
                pieces = turn.iterate_pieces(partial(utterance.speak_and_encode, meter))
                await self._perform_actions(self._session.on_backend_started())
                async for piece in pieces:
                    # The next piece is requested after this one was sent: a slow reader slows its synthesis.
                    await self._perform_actions(self._session.on_audio(piece))
        except Fault as fault:
            ended = self._session.on_failed if turn.reached else self._session.backend_unavailable
            return partial(ended, fault.error)
        return self._session.on_finished

    def _record_usage_and_close_meter(self, record: SynthesisRecord) -> None:
        meter = self._meter
        assert meter is not None
        meter.row.model, meter.row.audio_bytes = record.model, record.audio_bytes
        meter.status = cast("Status", record.status)
        log(
            "realtime text",
            request_id=self._request_id,
            text_id=record.request_id,
            session=record.session_id,
            key=self._principal.key_id,
            characters=record.input_chars,
            audio_s=round(meter.row.audio_s, 3),
            status=record.status,
            seconds=round(time.monotonic() - self._spoken_since, 4),
        )
        meter.close()

    # Performing

    async def _perform_actions(self, actions: list[SessionAction]) -> None:
        """Perform the session's actions. Connection errors are reported to the session, not raised."""
        match actions:
            case [FindVoice(voice_id)]:
                await self._perform_actions(await self._set_voice_or_refuse(voice_id))
                return
            case [AskLimiter(text)]:
                await self._perform_actions(self._admit_or_refuse_text(text))
                return
        if outgoing := self._perform_immediate_actions(actions):
            async with self._sending:
                for action in outgoing:
                    await self._send_action(action)

    def _perform_immediate_actions(
        self, actions: list[SessionAction]
    ) -> list[SendMessage | SendAudio | CloseSession]:
        """Perform the actions that need no waiting, and return the others."""
        outgoing: list[SendMessage | SendAudio | CloseSession] = []
        for action in actions:
            match action:
                case StartSynthesis():
                    self._speaking = asyncio.create_task(self._speak_text(action))
                    self._speaking.add_done_callback(self._on_speaking_done)
                case CancelSynthesis():
                    assert self._speaking is not None
                    self._speaking.cancel()
                case RecordUsage(record):
                    self._record_usage_and_close_meter(record)
                case SendMessage() | SendAudio() | CloseSession():
                    outgoing.append(action)
        return outgoing

    async def _send_action(self, action: SendMessage | SendAudio | CloseSession) -> None:
        if self._lost:
            return
        try:
            match action:
                case SendMessage(message):
                    text = orjson.dumps(message).decode()
                    await self._pace.wait_within_pace(self._socket.send_text(text))
                    self._pace.count_bytes(len(text))
                case SendAudio(data):
                    await self._pace.wait_within_pace(self._socket.send_bytes(data))
                    self._pace.count_bytes(len(data))
                case CloseSession(code, reason):
                    self._close_code = code
                    await self._pace.wait_within_pace(self._socket.close(code, reason))
                    self._stop_receiving()
        except TimeoutError:
            log("connection dropped: its reader was too slow", session=self._session.session_id)
            self._perform_immediate_actions(self._session.on_reader_stalled())
            self._drop_connection()
        except WebSocketDisconnect:
            self._perform_immediate_actions(self._session.on_disconnect())
            self._drop_connection()

    def _on_speaking_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # An internal error: the client can try again on a new connection; this one would stay busy for ever.
            log(
                "internal error", level="error", session=self._session.session_id, **build_error_fields(error)
            )
            self._drop_connection()

    def _drop_connection(self) -> None:
        self._lost = True
        self._abort()
        self._stop_receiving()

    def _stop_receiving(self) -> None:
        # Called by the task that speaks or drains, while the other waits for a message that is not needed any more.
        if self._receiving is not None:
            self._receiving.reschedule(0)
