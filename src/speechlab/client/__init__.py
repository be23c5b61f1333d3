"""The client: every operation of the contract, for scripts and for ``await``, one implementation for both.

It sends requests, repeats them when that makes sense, and reads replies into values that show themselves. It is no
engine and no store, and knows the service only through the contract; the embedded one is started as a process.
Used by people in notebooks, by batches, studies, widgets and the command line.
"""

from __future__ import annotations

from speechlab.client._async_client import AsyncClient
from speechlab.client._audio_input import AudioInput
from speechlab.client._begin import begin, telling
from speechlab.client._call import RawResponse
from speechlab.client._client import Client
from speechlab.client._clock import Clock, Random, SystemClock
from speechlab.client._connect import aconnect, connect
from speechlab.client._events import CallEvent, Timing, Usage
from speechlab.client._found_keys import remember_key
from speechlab.client._raw import AsyncRawReplies, RawReplies, RawReply
from speechlab.client._raw_streams import AsyncRawStream, RawStream
from speechlab.client._realtime import AsyncRealtimeSession
from speechlab.client._realtime_events import AsyncSpeechEvents
from speechlab.client._realtime_pool import AsyncRealtimePool
from speechlab.client._secret import Secret
from speechlab.client._service_facts import remember_service, replaying_from
from speechlab.client._settings import BASE_URL_VARIABLE, plain_url
from speechlab.client._speech import SpeechClip
from speechlab.client._speech_stream import AsyncSpeechStream
from speechlab.client._sync_realtime import RealtimePool, RealtimeSession, SpeechEvents
from speechlab.client._sync_streams import SpeechStream, TranslationStream
from speechlab.client._synthesis import AudioDelta, RealtimeEvent
from speechlab.client._telemetry import opentelemetry_hook
from speechlab.client._transcript import Transcript, join_texts
from speechlab.client._translation import Translation, TranslationChunk
from speechlab.client._translation_stream import AsyncTranslationStream
from speechlab.client._voices import VoiceCatalogue

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
    "AudioInput",
    "CallEvent",
    "Client",
    "Clock",
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
    "SystemClock",
    "Timing",
    "Transcript",
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
    "telling",
]
