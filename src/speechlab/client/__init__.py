"""The client: every operation of the contract, for scripts and for ``await``, with one implementation.

It sends requests, retries them where that is safe, and reads replies into values that display themselves. It contains
no engine and no store, and it reaches every service through the contract alone. It starts the embedded service as a
separate process. Notebooks, batches, studies, widgets and the command line use it.
"""

from __future__ import annotations

from speechlab._door import name_after as _name_after
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.client import (
    Client,
    RealtimeSession,
    SpeechEvents,
    SpeechStream,
    TranslationStream,
    connect,
)
from speechlab.client._api.for_batches import address_and_key as address_and_key
from speechlab.client._api.for_batches import ask_service as ask_service
from speechlab.client._api.for_batches import asking_afresh as asking_afresh
from speechlab.client._api.for_batches import begin as begin
from speechlab.client._api.for_batches import fitted_to as fitted_to
from speechlab.client._api.for_batches import functions_of as functions_of
from speechlab.client._api.for_batches import grouped as grouped
from speechlab.client._api.for_batches import remember_service as remember_service
from speechlab.client._api.for_batches import replaying_from as replaying_from
from speechlab.client._api.portal import result_of as result_of
from speechlab.client._api.system import system
from speechlab.client._clock import Clock, SystemClock
from speechlab.client._events import CallEvent, Timing, opentelemetry_hook
from speechlab.client._openai import OpenAIAdapter
from speechlab.client._operations.call import RawResponse
from speechlab.client._operations.operation import Operation
from speechlab.client._operations.recognition import Transcribe, Transcript
from speechlab.client._operations.speech import SpeechClip, Synthesize
from speechlab.client._operations.translation import Translate, Translation, TranslationChunk
from speechlab.client._operations.voices import VoiceCatalogue
from speechlab.client._realtime.job import AsyncSpeechEvents
from speechlab.client._realtime.protocol import AudioDelta
from speechlab.client._realtime.session import AsyncRealtimeSession
from speechlab.client._scheduling.waiting import CallGroup as CallGroup
from speechlab.client._secret import Secret
from speechlab.client._settings.resolve import BASE_URL_VARIABLE as BASE_URL_VARIABLE
from speechlab.client._settings.resolve import remember_key as remember_key
from speechlab.client._settings.resolve import remembered_key as remembered_key
from speechlab.client._settings.settings import plain_url as plain_url
from speechlab.client._streams.speech import AsyncSpeechStream
from speechlab.client._streams.translation import AsyncTranslationStream
from speechlab.contract import AudioDone, AudioStart, Usage

__all__ = [
    "AsyncClient",
    "AudioDelta",
    "AudioDone",
    "AudioStart",
    "CallEvent",
    "Client",
    "OpenAIAdapter",
    "Secret",
    "SpeechClip",
    "Synthesize",
    "Timing",
    "Transcribe",
    "Transcript",
    "Translate",
    "Translation",
    "Usage",
    "connect",
    "opentelemetry_hook",
    "system",
]

_name_after(__name__, globals())
