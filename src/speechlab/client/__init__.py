"""The client: every operation of the contract, for scripts and for ``await``, one implementation for both.

It sends requests, repeats them when that makes sense, and reads replies into values that show themselves. It is no
engine and no store, and knows the service only through the contract; the embedded one is started as a process.
Used by people in notebooks, by batches, studies, widgets and the command line.
"""

from __future__ import annotations

from speechlab._door import name_after as _name_after
from speechlab.client._api.async_client import AsyncClient, AsyncRawReplies
from speechlab.client._api.client import Client, RawReplies, aconnect, connect
from speechlab.client._api.for_batches import begin, remember_service, replaying_from, with_listener
from speechlab.client._api.perform import RawReply
from speechlab.client._api.realtime import RealtimePool, RealtimeSession, SpeechEvents
from speechlab.client._api.streams import RawStream, SpeechStream, TranslationStream
from speechlab.client._clock import Clock, Random, SystemClock
from speechlab.client._events import CallEvent, CallTotals, Timing
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
from speechlab.client._secret import Secret
from speechlab.client._settings.keys import remember_key
from speechlab.client._settings.resolve import BASE_URL_VARIABLE
from speechlab.client._settings.settings import plain_url
from speechlab.client._streams.raw import AsyncRawStream
from speechlab.client._streams.speech import AsyncSpeechStream
from speechlab.client._streams.translation import AsyncTranslationStream
from speechlab.client._telemetry import opentelemetry_hook
from speechlab.contract import AudioDone, AudioStart, Usage
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
    "CallTotals",
    "Client",
    "Clock",
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
    "begin",
    "connect",
    "join_texts",
    "opentelemetry_hook",
    "plain_url",
    "remember_key",
    "remember_service",
    "replaying_from",
    "with_listener",
]

_name_after(__name__, globals(), __all__)
