"""The client: every operation of the contract, for scripts and for ``await``, with one implementation.

It sends requests, retries them where that is safe, and reads replies into values that display themselves. It contains
no engine and no store, and it reaches every service through the contract alone. It starts the embedded service as a
separate process. Notebooks, batches, studies, widgets and the command line use it.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.client import connect
from speechlab.client._api.copies import check_and_save_service as check_and_save_service
from speechlab.client._api.copies import copy_for_timing as copy_for_timing
from speechlab.client._api.copies import copy_with_batch_size as copy_with_batch_size
from speechlab.client._api.copies import copy_with_group as copy_with_group
from speechlab.client._api.copies import get_service as get_service
from speechlab.client._api.copies import identify_service_and_voices as identify_service_and_voices
from speechlab.client._api.copies import replace_store_if_replaying as replace_store_if_replaying
from speechlab.client._api.copies import reveal_credentials as reveal_credentials
from speechlab.client._api.copies import start_work as start_work
from speechlab.client._api.portal import wait_for_result as wait_for_result
from speechlab.client._api.sync_client import Client
from speechlab.client._api.sync_streams import RealtimeSession, SpeechEvents, SpeechStream, TranslationStream
from speechlab.client._api.system import system
from speechlab.client._clock import Clock
from speechlab.client._events import CallEvent, Timing, opentelemetry_hook
from speechlab.client._openai import OpenAIAdapter
from speechlab.client._operations.call import RawResponse, Reply
from speechlab.client._operations.operation import Operation
from speechlab.client._operations.recognition import Transcribe, Transcript
from speechlab.client._operations.speech import SpeechClip, Synthesize
from speechlab.client._operations.translation import Translate, Translation, TranslationChunk
from speechlab.client._operations.voices import VoiceCatalogue
from speechlab.client._operations.voices import describe_absent_voices as describe_absent_voices
from speechlab.client._realtime.job import AsyncSpeechEvents
from speechlab.client._realtime.protocol import AudioDelta
from speechlab.client._realtime.session import AsyncRealtimeSession
from speechlab.client._scheduling.waiting import CallGroup as CallGroup
from speechlab.client._secret import Secret
from speechlab.client._services.service import Service as Service
from speechlab.client._settings.resolve import BASE_URL_VARIABLE as BASE_URL_VARIABLE
from speechlab.client._settings.resolve import load_key as load_key
from speechlab.client._settings.resolve import save_key as save_key
from speechlab.client._settings.settings import normalize_url as normalize_url
from speechlab.client._streams.speech_stream import AsyncSpeechStream
from speechlab.client._streams.translation_stream import AsyncTranslationStream
from speechlab.client._streams.translation_stream import EventReader as EventReader
from speechlab.client._transport.wires import choose_library as choose_library
from speechlab.contract import AudioDone, AudioStart, Usage

__all__ = [
    "AsyncClient",
    "AudioDelta",
    "AudioDone",
    "AudioStart",
    "CallEvent",
    "Client",
    "OpenAIAdapter",
    "Reply",
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
