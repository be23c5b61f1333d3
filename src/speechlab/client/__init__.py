"""The client: every operation of the contract, for scripts and for ``await``, one implementation for both.

It sends requests, repeats them when that makes sense, and reads replies into values that show themselves. It is no
engine and no store, and knows the service only through the contract; the embedded one is started as a process.
Used by people in notebooks, by batches, studies, widgets and the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._door import name_after as _name_after
from speechlab.client._api.async_client import AsyncClient, AsyncRawReplies
from speechlab.client._api.client import Client, RawReplies, aconnect, connect
from speechlab.client._api.for_batches import (
    address_and_key,
    ask_service,
    asking_afresh,
    asking_always,
    begin,
    by_attempts,
    grouped,
    remember_service,
    replaying_from,
    result_of,
    without_scheduler,
)
from speechlab.client._api.perform import RawReply
from speechlab.client._api.realtime import RealtimePool, RealtimeSession, SpeechEvents
from speechlab.client._api.streams import RawStream, SpeechStream, TranslationStream
from speechlab.client._clock import Clock, Random, SystemClock
from speechlab.client._events import CallEvent, CallTotals, Timing
from speechlab.client._openai import OpenAIAdapter
from speechlab.client._operations.call import RawResponse
from speechlab.client._operations.operation import Operation
from speechlab.client._operations.recognition import Transcribe, Transcript
from speechlab.client._operations.recording import AudioInput
from speechlab.client._operations.speech import SpeechClip, Synthesize
from speechlab.client._operations.translation import Translate, Translation, TranslationChunk
from speechlab.client._operations.voices import VoiceCatalogue
from speechlab.client._realtime.events import AsyncSpeechEvents
from speechlab.client._realtime.pool import AsyncRealtimePool
from speechlab.client._realtime.session import AsyncRealtimeSession
from speechlab.client._realtime.synthesis import AudioDelta, RealtimeEvent
from speechlab.client._scheduling.group import CallGroup
from speechlab.client._secret import Secret
from speechlab.client._settings.keys import remember_key, remembered_key
from speechlab.client._settings.resolve import BASE_URL_VARIABLE
from speechlab.client._settings.settings import plain_url
from speechlab.client._streams.raw import AsyncRawStream
from speechlab.client._streams.speech import AsyncSpeechStream
from speechlab.client._streams.translation import AsyncTranslationStream
from speechlab.client._telemetry import opentelemetry_hook
from speechlab.contract import AudioDone, AudioStart, Usage

if TYPE_CHECKING:
    from speechlab.text import join_texts

__all__ = [
    "BASE_URL_VARIABLE",
    "AsyncClient",
    "AsyncRawReplies",
    "AsyncRawStream",
    "AsyncRealtimePool",
    "AsyncRealtimeSession",
    "AsyncSpeechEvents",
    "AsyncSpeechStream",
    "AsyncTranslationStream",
    "AudioDelta",
    "AudioDone",
    "AudioInput",
    "AudioStart",
    "CallEvent",
    "CallGroup",
    "CallTotals",
    "Client",
    "Clock",
    "OpenAIAdapter",
    "Operation",
    "Random",
    "RawReplies",
    "RawReply",
    "RawResponse",
    "RawStream",
    "RealtimeEvent",
    "RealtimePool",
    "RealtimeSession",
    "Secret",
    "SpeechClip",
    "SpeechEvents",
    "SpeechStream",
    "Synthesize",
    "SystemClock",
    "Timing",
    "Transcribe",
    "Transcript",
    "Translate",
    "Translation",
    "TranslationChunk",
    "TranslationStream",
    "Usage",
    "VoiceCatalogue",
    "aconnect",
    "address_and_key",
    "ask_service",
    "asking_afresh",
    "asking_always",
    "begin",
    "by_attempts",
    "connect",
    "grouped",
    "join_texts",
    "opentelemetry_hook",
    "plain_url",
    "remember_key",
    "remember_service",
    "remembered_key",
    "replaying_from",
    "result_of",
    "without_scheduler",
]

_name_after(__name__, globals(), __all__)


def __getattr__(name: str) -> Any:
    if name == "join_texts":  # its room is heavy, and most calls need nothing of it
        from speechlab.text import join_texts

        return join_texts
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
