"""One question, one key: however it is spelled, and whether a client or a batch asks it."""

import hashlib
import inspect

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab.client import Client, Synthesize, Transcribe, Translate
from speechlab.contract import (
    AudioFormat,
    Language,
    SessionSettings,
    SpeechRequest,
    VadMode,
    Voice,
    compute_request_key,
)
from speechlab.errors import InvalidRequestError

SERVICE = "service-1"
LANGUAGES = {"source_lang": "ja", "target_lang": "en"}
SPEECH = {
    "format": ("flac", AudioFormat.FLAC, np.str_("flac")),
    "sample_rate": (None, 0, 24_000, np.int64(24_000), np.int32(0)),
    "temperature": (1, 1.0, np.float64(1), np.float32(1), np.int64(1)),
}
ZERO = (0, 0.0, -0.0, np.float64(0), np.float32(-0.0), np.int16(0))
RECOGNITION = {
    "language": ("ja", "JA", "ja-JP", "ja_JP", Language("ja")),
    "hotwords": (["a", "b"], ("a", "b"), np.array(["a", "b"]), pd.Series(["a", "b"])),
    "vad": ("segments", VadMode.SEGMENTS, np.str_("segments")),
    "min_silence_gap": (300, np.int64(300)),
    "segment_padding": (0, np.int64(0)),
    "initial_segment_padding_ms": (10, np.int32(10)),
    "speech_pad_ms": (10, np.int64(10)),
    "min_segment_duration": (2, 2.0, np.float32(2)),
    "temperature": ZERO,
    "top_p": (1, 1.0, np.float64(1)),
    "frequency_penalty": ZERO,
    "repetition_penalty": (2, 2.0, np.int8(2)),
    "session_id": (None, "a", "b"),
}
TRANSLATION = {
    "keywords": (["k"], ("k",), "k", np.array(["k"])),
    "context": ("c", np.str_("c")),
    "model": ("m", np.str_("m")),
}


@pytest.fixture
def lab(answering):
    with Client(answering.base_url) as client:
        yield client


def one_key(operations, plans):
    keys = {operation.compute_key(SERVICE) for operation in operations}
    keys |= {key for plan in plans for key in plan.calls}
    assert len(keys) == 1, keys


SPELLINGS = [
    *(("speech", name, values) for name, values in SPEECH.items()),
    *(("recognition", name, values) for name, values in RECOGNITION.items()),
    *(("translation", name, values) for name, values in TRANSLATION.items()),
]


@pytest.mark.parametrize(("kind", "name", "values"), SPELLINGS, ids=lambda value: str(value)[:20])
def test_however_an_option_is_spelled_there_is_one_key(lab, http, wav, tmp_path, kind, name, values):
    how = {"store": tmp_path / "store"}
    if kind == "speech":
        voice, frame = Voice(**http.VOICE), pd.DataFrame({"text": ["あ"]})
        given = [{"format": "flac", name: value} for value in values]
        one_key(
            [Synthesize("あ", voice=who, **options) for options in given for who in (voice, voice.id)],
            [sl.batch.plan_synthesis(frame, lab, voice=voice, **how, **options) for options in given],
        )
    elif kind == "recognition":
        path = tmp_path / "a.wav"
        path.write_bytes(wav)
        frame = pd.DataFrame({"audio": [path]})
        given = [{"vad": "segments", name: value} for value in values]
        audios = (wav, path, str(path), bytearray(wav))
        one_key(
            [Transcribe(audio, **options) for options in given for audio in audios],
            [sl.batch.plan_transcription(frame, lab, **how, **options) for options in given],
        )
    else:
        frame = pd.DataFrame({"text": ["あ"]})
        given = [{**LANGUAGES, name: value} for value in values]
        once = [{**given[0], name: iter(["k"])}] if name == "keywords" else []  # which can be read once
        one_key(
            [Translate("あ", **options) for options in given + once],
            [sl.batch.plan_translation(frame, lab, **how, **options) for options in given],
        )


def test_without_segments_there_is_one_key(lab, wav, tmp_path):
    frame, how = pd.DataFrame({"audio": [wav]}), {"store": tmp_path}
    modes = (0, "0", np.int64(0), "off", VadMode.OFF, None)
    one_key(
        [Transcribe(wav), *(Transcribe(wav, vad=vad) for vad in modes)],
        [sl.batch.plan_transcription(frame, lab, **how, vad=vad) for vad in modes],
    )
    for vad in (True, np.bool_(True), False):
        with pytest.raises(InvalidRequestError, match="vad"):
            Transcribe(wav, vad=vad).compute_key(SERVICE)
        with pytest.raises(InvalidRequestError, match="vad"):
            sl.batch.plan_transcription(frame, lab, **how, vad=vad)


def test_the_keys_of_calls_are_pinned(http, wav):
    voice = http.VOICE_ID
    spoken = {"voice_id": voice, "text": "あ", "format": "wav", "sample_rate": 24_000, "temperature": None}
    numbers = {"temperature": 0.0, "top_p": 0.85, "frequency_penalty": 0.5, "repetition_penalty": 1.05}
    gaps = {"min_silence_gap": 400, "segment_padding": 100, "initial_segment_padding_ms": 1500}
    gaps |= {"speech_pad_ms": 200, "min_segment_duration": 1.5}
    audio = hashlib.sha256(wav).hexdigest()
    heard = {"audio": audio, "language": None, "hotwords": [], **numbers, "vad": "off", **gaps}
    said = {"text": "あ", **LANGUAGES, "keywords": [], "context": None, "model": None}
    for operation, name, asked in (
        (Synthesize("あ", voice=voice, timeout=3), "synthesize", spoken),  # the time is no part of it
        (Transcribe(wav, timeout=3), "transcribe", heard),
        (Translate("あ", **LANGUAGES, timeout=3), "translate", said),
    ):
        for repeat in (0, 1):
            key = compute_request_key(name, asked, service="s", repeat=repeat)
            assert operation.compute_key("s", repeat) == key


def test_what_a_client_has_paid_for_a_batch_finds(lab, server, http, tmp_path):
    kept = lab.with_options(store=tmp_path)
    kept.synthesize("あ", voice="Calm", format="wav", temperature=1)
    server.requests.clear()
    frame = pd.DataFrame({"text": ["あ"], "voice": ["Calm"]})
    found = sl.batch.synthesize(frame, lab, format="wav", temperature=1, store=tmp_path, progress=False)
    assert list(found.status) == ["cached"]
    assert not [request for request in server.requests if request.method == "POST"]
    heard = kept.transcribe(found.audio[0], temperature=-0.0)
    frame = pd.DataFrame({"audio": found.audio})
    again = sl.batch.transcribe(frame, lab, temperature=0, store=tmp_path, progress=False)
    assert (list(again.status), list(again.hypothesis)) == (["cached"], [heard.text])


def test_options_are_fields_on_both_wires_and_of_batches():
    asked = {  # timeout says how a call is sent
        operation: set(inspect.signature(operation).parameters) - {"timeout"}
        for operation in (Synthesize, Transcribe, Translate)
    }
    # models ignore what they do not know, so an option that is missing here would be dropped without a word
    # respell changes the text that is sent
    speech = {name.replace("voice", "voice_id") for name in asked[Synthesize]} - {"text", "respell"}
    for wire in (SpeechRequest, SessionSettings):
        assert speech <= set(wire.model_fields)
    batches = (sl.batch.synthesize, sl.batch.transcribe, sl.batch.translate)
    for operation, batch in zip(asked, batches, strict=True):
        assert asked[operation] <= set(inspect.signature(batch).parameters)
