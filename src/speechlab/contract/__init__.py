"""The contract: the data of the speech services' API.

Models, limits, formats, error codes, messages, states and request keys, each with its section of the API document.
The client and the embedded service share nothing else. This package does no I/O, and contains nothing about retries
of a client or the work of an engine.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab._formats import CONTENT_TYPES, DEFAULT_SAMPLE_RATE, AudioFormat
from speechlab.contract._base import (
    CONTRACT_VERSION,
    REALTIME_PATH,
    RECOGNITION_PATH,
    SPEECH_PATH,
    TRANSLATION_PATH,
    VOICES_PATH,
    OperationName,
    compute_request_key,
    join_url,
    parse_json_object,
    parse_lenient_json,
    to_realtime_url,
)
from speechlab.contract._errors import (
    ASR_FAILED,
    ASR_UNAVAILABLE,
    AUTHENTICATION_MESSAGE,
    ERRORS,
    RETRYABLE_STATUS,
    UNREACHED_STATUS,
    CloseCode,
    ErrorBody,
    HandshakeCode,
    RealtimeCode,
    RouterCode,
)
from speechlab.contract._formats import (
    CONCURRENCY_HEADER,
    CORRELATION_ID_MAX_CHARS,
    INPUT_FORMATS,
    INTERIM_HEADER,
    LIMITS,
    REASON_HEADER,
    TRANSLATES_HEADER,
    WS_MESSAGE_MAX_BYTES,
    WS_READ_MAX_BYTES,
    AudioTransport,
    Gender,
    Language,
    Limits,
    VadMode,
    parse_concurrency_header,
)
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
    SessionVoice,
    StartSynthesis,
    SynthesisRecord,
)
from speechlab.contract._realtime.messages import (
    SERVICE_MESSAGES,
    TRANSITIONS,
    AudioDeltaMessage,
    AudioDone,
    AudioStart,
    RouterError,
    ServiceMessage,
    SessionCreated,
    SessionInfo,
    SessionSettings,
    SessionState,
    SessionUpdate,
    Speak,
    SynthesisUsage,
    TtsError,
    Usage,
    UsageStatus,
    parse_service_message,
)
from speechlab.contract._realtime.protocol import AUDIO_FRAME_MAX_BYTES, RealtimeProtocol
from speechlab.contract._recognition import (
    INVALID_BASE64,
    NO_AUDIO,
    SEGMENT_FIELDS,
    UNSUPPORTED_AUDIO,
    RecognitionReply,
    RecognitionRequest,
    ReplySegment,
    decode_audio_field,
)
from speechlab.contract._speech import (
    SpeechRequest,
    Voice,
    VoiceList,
    VoiceRules,
    check_format,
    check_text,
    parse_uuid,
)
from speechlab.contract._translation import (
    CHUNK_OBJECT,
    COMPLETION_OBJECT,
    STREAM_END,
    TRANSLATION_ID_PREFIX,
    Balance,
    TokenUsage,
    TranslationChunkReply,
    TranslationReply,
    TranslationRequest,
    encode_form,
)

__all__ = ["ERRORS", "RealtimeProtocol", "SpeechRequest", "Voice", "VoiceRules"]

_name_after(__name__, globals())
