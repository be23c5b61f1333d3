"""Plans of batches of one row, and what changes them."""

from io import BytesIO

import httpx2
import numpy as np
import pandas as pd
import soundfile

from speechlab import batch
from speechlab.client import Client

VOICES = [
    {
        "id": f"00000000-0000-0000-0000-00000000000{n}",
        "description": f"Voice {name}",
        "language": "en",
        "gender": "female",
        "formats": ["wav", "flac", "mp3", "ogg"],
        "sample_rates": [16000, 24000],
        "streaming": True,
    }
    for n, name in enumerate("AB")
]


def planning(service="service/1", base_url="http://127.0.0.1:9", **options):
    """A client of a service that answers only what a plan asks: who it is, and its voices."""

    def answer(request):
        assert request.url.path == "/tts/voices"
        return httpx2.Response(200, json={"voices": VOICES}, headers={"X-Speechlab-Service": service})

    return Client(base_url, transport=httpx2.MockTransport(answer), **options)


def wav(level=0.1):
    file = BytesIO()
    soundfile.write(file, np.full(1600, level, np.float32), 16000, format="WAV")
    return file.getvalue()


MADE = {
    "synthesize": (batch.plan_synthesis, {"text": "hello", "voice": VOICES[0]["id"]}, {}),
    "transcribe": (batch.plan_transcription, {"audio": wav(), "language": "en"}, {"language": "en"}),
    "translate": (batch.plan_translation, {"text": "hello"}, {"source_lang": "en", "target_lang": "ja"}),
}
SEGMENTS = {"vad": "segments"}
CHANGES = [
    ("synthesize", {"cell": ("text", "Hello")}),
    ("synthesize", {"cell": ("text", "hello ")}),
    ("synthesize", {"cell": ("voice", VOICES[1]["id"])}),
    ("synthesize", {"format": "wav"}),
    ("synthesize", {"sample_rate": 16000}),
    ("synthesize", {"temperature": 0.5}),
    ("synthesize", {"repeat": 1}),
    ("transcribe", {"cell": ("audio", wav(0.2))}),
    ("transcribe", {"language": "ja"}),
    ("transcribe", {"language": None}),
    ("transcribe", {"hotwords": ["a"]}),
    ("transcribe", {"temperature": 0.5}),
    ("transcribe", {"top_p": 0.5}),
    ("transcribe", {"frequency_penalty": 0.1}),
    ("transcribe", {"repetition_penalty": 1.5}),
    ("transcribe", {"vad": "on"}),
    ("transcribe", SEGMENTS),
    ("transcribe", {"min_silence_gap": 300, **SEGMENTS}),
    ("transcribe", {"segment_padding": 10, **SEGMENTS}),
    ("transcribe", {"initial_segment_padding_ms": 10, **SEGMENTS}),
    ("transcribe", {"speech_pad_ms": 10, **SEGMENTS}),
    ("transcribe", {"min_segment_duration": 0.5, **SEGMENTS}),
    ("transcribe", {"repeat": 1}),
    ("translate", {"cell": ("text", "Hello")}),
    ("translate", {"source_lang": "zh"}),
    ("translate", {"target_lang": "zh"}),
    ("translate", {"keywords": ["a"]}),
    ("translate", {"context": "b"}),
    ("translate", {"model": "c/d"}),
    ("translate", {"repeat": 1}),
]


def key_of(lab, operation, cell=None, **options):
    plan, row, given = MADE[operation]
    frame = pd.DataFrame([{**row, **dict([cell] if cell else [])}])
    if operation == "transcribe":
        options["store"] = options.get("store")
    made = plan(frame, lab, **{**given, **options})
    return made.rows[0]
