"""The realtime session of section 3 as an explicit state machine, without I/O.

Each method takes an event and returns the actions to perform, in order. The machine never waits and contains no
clock, socket or engine, so tests can run through every path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import orjson
import pybase64

from speechlab.contract._errors import CloseCode, RealtimeCode, RouterCode
from speechlab.contract._formats import LIMITS, WS_MESSAGE_MAX_BYTES, AudioTransport
from speechlab.contract._realtime.actions import (
    CANCELLED,
    AskLimiter,
    CancelSynthesis,
    CloseSession,
    FindVoice,
    RecordUsage,
    SendAudio,
    SendMessage,
    SessionAction,
    SessionConfig,
    SessionVoice,
    StartSynthesis,
    SynthesisRecord,
    build_audio_start,
    build_protocol_error,
    build_refusal_message,
    build_session_config,
    build_session_created,
    build_tts_error,
    build_usage_message,
    check_correlation_id,
    format_value,
    to_send_message,
)
from speechlab.contract._realtime.messages import (
    AudioDeltaMessage,
    AudioDone,
    RouterError,
    SessionState,
    UsageStatus,
)
from speechlab.contract._speech import check_text, parse_uuid
from speechlab.errors import InvalidRequestError

# Maximum bytes of audio in one frame or delta: small, so that errors and pongs are sent without long delay.
AUDIO_FRAME_MAX_BYTES = 32 * 1024


@dataclass(slots=True)
class _Attempt:
    request_id: str
    client_id: str | None
    text: str
    given_away: bool = False  # StartSynthesis was returned, and its driver works on the text
    reached: bool = False  # a backend accepted the text
    audio_bytes: int = 0
    chunks: int = 0

    @property
    def ids(self) -> dict[str, str | None]:
        return {"id": self.client_id, "request_id": self.request_id}


def _make_request_id() -> str:
    return f"req_{uuid4().hex}"


def _build_router_error(code: RouterCode, message: str) -> SendMessage:
    return to_send_message(RouterError(code=code.value, message=message))


class RealtimeProtocol:
    """One connection, from the upgrade to its end.

    Args:
        session_id: Id of the session.
        service: Name of the service in usage records, ``<vendor>/tts``.
        text_limit: Maximum of code points of a text.
        new_id: Makes the id of an attempt.

    Example:
        >>> session = RealtimeProtocol("s-1", "speechlab/tts")
        >>> (sent,) = session.on_message('{"type": "tts.speak", "text": "Hello."}')
        >>> sent.message["code"], str(session.state)
        ('session_not_configured', 'connected')
    """

    def __init__(
        self,
        session_id: str,
        service: str,
        *,
        text_limit: int = LIMITS.tts_text_chars,
        new_id: Callable[[], str] = _make_request_id,
    ) -> None:
        self.session_id = session_id
        self.service = service
        self._text_limit = text_limit
        self._new_id = new_id
        self._config: SessionConfig | None = None
        self._attempt: _Attempt | None = None
        self._update: tuple[str | None, dict[str, Any]] | None = None
        self._limiter_asked = False
        self._ending: CloseSession | None = None  # performed when no text is under way
        self._closed = False

    @property
    def state(self) -> SessionState:
        """State of the session in the table of section 3."""
        if self._closed:
            return SessionState.CLOSED
        if self._attempt is not None and self._attempt.reached:
            return SessionState.SYNTHESIZING
        return SessionState.CONNECTED if self._config is None else SessionState.CONFIGURED

    @property
    def config(self) -> SessionConfig | None:
        """Settings in force, or None before the first valid ``session.update``."""
        return self._config

    @property
    def busy(self) -> bool:
        """Whether a text is under way: from its acceptance to its usage or its terminal error."""
        return self._attempt is not None

    # Events of the client

    def on_message(self, data: bytes) -> list[SessionAction]:
        """Return the actions after a complete text message in UTF-8 arrived."""
        if self._update is not None or self._limiter_asked:
            raise RuntimeError(
                "the session waits for the outcome of an action; report it before the next message"
            )
        if self._closed:
            return []
        if len(data) > WS_MESSAGE_MAX_BYTES:
            said = (
                f"a control message may have {WS_MESSAGE_MAX_BYTES:,} bytes, and this one has {len(data):,}"
            )
            return [build_tts_error(RealtimeCode.TTS_CONTROL_FRAME_TOO_LARGE, said, None)]
        try:
            fields = orjson.loads(data)
        except (orjson.JSONDecodeError, RecursionError):
            return [_build_router_error(RouterCode.INVALID_JSON, "the message is not valid JSON in UTF-8")]
        kind = fields.get("type") if isinstance(fields, dict) else None
        if not isinstance(kind, str):
            said = 'a message is a JSON object with a string "type": session.update or tts.speak'
            return [_build_router_error(RouterCode.MISSING_MESSAGE_TYPE, said)]
        handler = {"session.update": self._on_update, "tts.speak": self._on_speak}.get(kind)
        if handler is None:
            said = f"there is no message of type {kind[:40]!r}; send session.update or tts.speak"
            return [_build_router_error(RouterCode.UNKNOWN_MESSAGE_TYPE, said)]
        client_id: str | None = None
        try:
            client_id = check_correlation_id(fields.get("id"))
            return [handler(client_id, fields)]
        except InvalidRequestError as error:
            return [build_refusal_message(error, client_id)]

    def on_binary_frame(self) -> list[SessionAction]:
        """Return the actions after a binary frame arrived, which is never allowed."""
        return self._close_and_list_actions(CloseCode.BINARY_FRAME, "binary frames are not allowed here")

    def on_oversized_frame(self) -> list[SessionAction]:
        """A message was larger than the read limit, and was not read."""
        return self._close_and_list_actions(CloseCode.FRAME_TOO_LARGE, "the control message is too large")

    def on_disconnect(self) -> list[SessionAction]:
        """Return the actions after the connection ended, closed by either side."""
        return [
            action for action in self._close_and_list_actions(0, "") if not isinstance(action, CloseSession)
        ]

    # Outcomes of actions

    def on_voice_found(self, voice: SessionVoice | None) -> list[SessionAction]:
        """Outcome of ``FindVoice``: the voice, or None if no voice has the id."""
        if self._update is None:
            return []
        client_id, session = self._update
        self._update = None
        try:
            self._config = build_session_config(session, voice)
        except InvalidRequestError as error:
            return [build_refusal_message(error, client_id)]
        return [build_session_created(self.session_id, self.service, self._config)]

    def on_voice_refused(self, code: RealtimeCode, message: str) -> list[SessionAction]:
        """Outcome of ``FindVoice``: voices are not available."""
        if self._update is None:
            return []
        client_id, _ = self._update
        self._update = None
        return [build_tts_error(code, message, client_id)]

    def on_key_invalid(self) -> list[SessionAction]:
        """Outcome of ``FindVoice`` or ``AskLimiter``: the key is not valid any more. One error, no usage, then close.

        Section 7.2 has ``invalid_session`` for a session whose state at the router is not valid any more. A new
        connection gets the 401 of the handshake.
        """
        if self._closed:
            return []
        client_id = self._update[0] if self._update else self._attempt.client_id if self._attempt else None
        message = "the key of this session has expired or was revoked"
        ended = self._close_and_list_actions(CloseCode.POLICY, message)
        return [build_tts_error(RealtimeCode.INVALID_SESSION, message, client_id), *ended]

    def on_admitted(self) -> list[SessionAction]:
        """Outcome of ``AskLimiter``: admitted."""
        attempt, self._limiter_asked = self._attempt, False
        if attempt is None or self._config is None:
            return []
        attempt.given_away = True
        return [StartSynthesis(attempt.request_id, attempt.text, self._config)]

    def on_rejected(self, code: RealtimeCode, message: str) -> list[SessionAction]:
        """Outcome of ``AskLimiter``: rejected. One error, and no usage."""
        attempt, self._limiter_asked = self._attempt, False
        if attempt is None:
            return []
        self._attempt = None
        return [build_tts_error(code, message, attempt.client_id), *self._close_session_if_asked()]

    # Events of the backend

    def backend_unavailable(self, message: str) -> list[SessionAction]:
        """No backend accepted the text."""
        return self.on_rejected(RealtimeCode.BACKEND_UNAVAILABLE, message)

    def on_backend_started(self) -> list[SessionAction]:
        """Return the actions after a backend accepted the text, which has a usage record from now on."""
        attempt = self._attempt
        if attempt is None or self._config is None:
            return []
        attempt.reached = True
        return [build_audio_start(attempt.request_id, attempt.client_id, self._config)]

    def on_audio(self, data: bytes) -> list[SessionAction]:
        """Return the actions after the backend returned encoded audio."""
        attempt = self._attempt
        if attempt is None or not attempt.reached or self._config is None:
            return []
        actions: list[SessionAction] = []
        for start in range(0, len(data), AUDIO_FRAME_MAX_BYTES):
            frame = data[start : start + AUDIO_FRAME_MAX_BYTES]
            if self._config.audio_transport is AudioTransport.BINARY:
                actions.append(SendAudio(frame))
            else:
                piece = pybase64.b64encode_as_string(frame)
                actions.append(
                    to_send_message(AudioDeltaMessage(**attempt.ids, seq=attempt.chunks, audio=piece))
                )
            attempt.audio_bytes += len(frame)
            attempt.chunks += 1
        return actions

    def on_finished(self) -> list[SessionAction]:
        """Return the actions after the backend returned all audio."""
        attempt = self._attempt
        if attempt is None or not attempt.reached:
            return []
        done = AudioDone(**attempt.ids, audio_bytes=attempt.audio_bytes, chunks=attempt.chunks)
        return [
            to_send_message(done),
            *self._build_usage_actions(attempt, UsageStatus.COMPLETED),
            *self._close_session_if_asked(),
        ]

    def on_failed(self, message: str) -> list[SessionAction]:
        """Return the actions after the backend failed after it had accepted the text."""
        attempt = self._attempt
        if attempt is None or not attempt.reached:
            return []
        status = UsageStatus.PARTIAL_BACKEND_ERROR if attempt.audio_bytes else UsageStatus.BACKEND_ERROR
        error = build_tts_error(RealtimeCode.BACKEND_REQUEST_FAILED, message, attempt.client_id)
        return [error, *self._build_usage_actions(attempt, status), *self._close_session_if_asked()]

    # Timeouts, and events of the operator

    def on_reader_stalled(self) -> list[SessionAction]:
        """The client has read nothing for too long."""
        return self._close_and_list_actions(CloseCode.POLICY, "nothing was read for too long")

    def on_configure_timeout(self) -> list[SessionAction]:
        """The client has sent nothing for too long, and has not configured the session."""
        if self._config is not None:
            return []
        return self._close_and_list_actions(CloseCode.POLICY, "the session was not configured in time")

    def on_service_stopping(self) -> list[SessionAction]:
        """The service is about to stop: finish the text under way, then close."""
        return self._close_session_when_idle(
            CloseCode.SERVICE_RESTART, "the service is stopping; connect again later"
        )

    def on_session_too_old(self) -> list[SessionAction]:
        """The session has reached its maximum duration: finish the text under way, then close."""
        return self._close_session_when_idle(
            CloseCode.GOING_AWAY, "the session has lasted as long as one may; connect again"
        )

    # Helpers

    def _on_update(self, client_id: str | None, fields: dict[str, Any]) -> SessionAction:
        if self._config is not None:
            message = "this connection is configured already; open another one for other settings"
            raise build_protocol_error(RealtimeCode.SESSION_ALREADY_CONFIGURED, message)
        session = fields.get("session")
        if not isinstance(session, dict):
            raise build_protocol_error(
                RealtimeCode.INVALID_MESSAGE, "session must be an object with voice_id and format"
            )
        voice_id = session.get("voice_id")
        if voice_id is None or voice_id == "":
            raise build_protocol_error(RealtimeCode.MISSING_VOICE_ID, "session.voice_id is required")
        identity = parse_uuid(voice_id) if isinstance(voice_id, str) else None
        if identity is None:
            message = (
                f"session.voice_id {format_value(voice_id)} is not a UUID; take one from GET /tts/voices"
            )
            raise build_protocol_error(RealtimeCode.UNKNOWN_VOICE_ID, message)
        self._update = client_id, session
        return FindVoice(identity)

    def _on_speak(self, client_id: str | None, fields: dict[str, Any]) -> SessionAction:
        if self._config is None:
            message = "send a session.update that succeeds before tts.speak"
            raise build_protocol_error(RealtimeCode.SESSION_NOT_CONFIGURED, message)
        if self.busy:
            message = "a text is still being spoken; wait for its tts.usage or its terminal tts.error"
            raise build_protocol_error(RealtimeCode.SYNTHESIS_IN_PROGRESS, message)
        text = fields.get("text")
        if text is not None and not isinstance(text, str):
            raise build_protocol_error(RealtimeCode.INVALID_MESSAGE, "text must be a string")
        check_text(text or "", limit=self._text_limit)
        self._attempt = _Attempt(self._new_id(), client_id, text or "")
        self._limiter_asked = True
        return AskLimiter(self._attempt.text)

    def _build_record(self, attempt: _Attempt, status: str) -> SynthesisRecord:
        assert self._config is not None  # an attempt exists only in a configured session
        return SynthesisRecord(
            request_id=attempt.request_id,
            session_id=self.session_id,
            client_id=attempt.client_id,
            service=self.service,
            voice_id=self._config.voice_id,
            model=self._config.model,
            input_chars=len(attempt.text),
            input_bytes=len(attempt.text.encode()),
            audio_bytes=attempt.audio_bytes,
            status=status,
        )

    def _build_usage_actions(self, attempt: _Attempt, status: UsageStatus) -> list[SessionAction]:
        record = self._build_record(attempt, status.value)
        self._attempt = None
        return [RecordUsage(record), build_usage_message(record)]

    def _close_and_list_actions(self, code: int, reason: str) -> list[SessionAction]:
        if self._closed:
            return []
        attempt, self._attempt = self._attempt, None
        self._closed, self._update, self._limiter_asked = True, None, False
        actions: list[SessionAction] = []
        if attempt is not None and attempt.given_away:
            actions.append(CancelSynthesis(attempt.request_id))
        if attempt is not None and attempt.reached:
            actions.append(RecordUsage(self._build_record(attempt, CANCELLED)))
        return [*actions, CloseSession(code, reason)]

    def _close_session_when_idle(self, code: CloseCode, reason: str) -> list[SessionAction]:
        self._ending = self._ending or CloseSession(code, reason)
        return [] if self.busy else self._close_session_if_asked()

    def _close_session_if_asked(self) -> list[SessionAction]:
        return (
            []
            if self._ending is None
            else self._close_and_list_actions(self._ending.code, self._ending.reason)
        )
