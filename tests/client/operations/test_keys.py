"""One question, one key: however it is spelled, and whether a client or a batch asks it."""

from __future__ import annotations

import hashlib
import inspect

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab.client import Client, Synthesize, Transcribe, Translate
from speechlab.contract import (
    SEGMENT_FIELDS,
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
ZERO = (0, 0.0, np.float64(0), np.int16(0))
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


def spellings(table, **always):
    return [pytest.param(name, always, values, id=name) for name, values in table.items()]


def one_key(operations, plans):
    keys = {operation.compute_key(SERVICE) for operation in operations}
    keys |= {key for plan in plans for key in plan.calls}
    assert len(keys) == 1, keys


@pytest.mark.parametrize(("name", "always", "values"), spellings(SPEECH))
def test_of_synthesis(lab, http, tmp_path, name, always, values):
    voice, frame = Voice(**http.VOICE), pd.DataFrame({"text": ["あ"]})
    plain = {"format": "flac", **always}
    one_key(
        [
            Synthesize("あ", voice=who, **{**plain, name: value})
            for value in values
            for who in (voice, voice.id)
        ],
        [
            sl.batch.plan_synthesis(frame, lab, voice=voice, store=tmp_path, **{**plain, name: value})
            for value in values
        ],
    )


@pytest.mark.parametrize(("name", "always", "values"), spellings(RECOGNITION, vad="segments"))
def test_of_recognition(lab, wav, tmp_path, name, always, values):
    path = tmp_path / "a.wav"
    path.write_bytes(wav)
    frame = pd.DataFrame({"audio": [path]})
    given = [{**always, name: value} for value in values]
    one_key(
        [
            Transcribe(audio, **options)
            for options in given
            for audio in (wav, path, str(path), bytearray(wav))
        ],
        [sl.batch.plan_transcription(frame, lab, store=tmp_path / "s", **options) for options in given],
    )


def test_without_segments_there_is_one_key(lab, wav, tmp_path):
    for vad in (0, "0", np.int64(0), "off", VadMode.OFF, None):
        frame = pd.DataFrame({"audio": [wav]})
        one_key(
            [Transcribe(wav), Transcribe(wav, vad=vad)],
            [sl.batch.plan_transcription(frame, lab, store=tmp_path, vad=vad)],
        )


def test_options_of_segments_are_refused_without_them(lab, wav, tmp_path):
    frame = pd.DataFrame({"audio": [wav]})
    for name in SEGMENT_FIELDS:
        for vad in ({}, {"vad": 0}, {"vad": "on"}, {"vad": None}):
            given = {**vad, name: 7}
            said = rf"{name} has no effect without vad='segments', and vad is '(off|on)'; give vad='segments'"
            for ask in (
                lambda given: Transcribe(wav, **given).parameters,
                lambda given: lab.transcribe(wav, **given),
                lambda given: sl.batch.plan_transcription(frame, lab, store=tmp_path, **given),
            ):
                with pytest.raises(InvalidRequestError, match=said) as caught:
                    ask(given)
                assert (caught.value.parameter, caught.value.rule) == (name, "2.3")


def test_rows_that_say_vad_are_held_to_the_same_rule(lab, wav, tmp_path):
    frame = pd.DataFrame({"audio": [wav, wav], "vad": ["segments", "off"], "gap": [300, None]})
    asked = {"store": tmp_path, "vad": sl.batch.Column("vad")}
    table = sl.batch.transcribe(frame, lab, min_silence_gap=sl.batch.Column("gap"), **asked)
    assert list(table["status"]) == ["ok", "ok"]
    table = sl.batch.transcribe(frame, lab, min_silence_gap=300, **asked)
    assert list(table["status"]) == ["cached", "error"]
    assert "has no effect without vad='segments'" in table["error"][1]


def test_true_and_false_are_no_mode(lab, wav, tmp_path):
    for vad in (True, np.bool_(True), False):
        with pytest.raises(InvalidRequestError, match="vad"):
            Transcribe(wav, vad=vad).compute_key(SERVICE)
        with pytest.raises(InvalidRequestError, match="vad"):
            sl.batch.plan_transcription(pd.DataFrame({"audio": [wav]}), lab, store=tmp_path, vad=vad)


@pytest.mark.parametrize(("name", "always", "values"), spellings(TRANSLATION, **LANGUAGES))
def test_of_translation(lab, tmp_path, name, always, values):
    frame = pd.DataFrame({"text": ["あ"]})
    given = [{**always, name: value} for value in values]
    one_key(
        [Translate("あ", **options) for options in given],
        [sl.batch.plan_translation(frame, lab, store=tmp_path, **options) for options in given],
    )


@pytest.mark.parametrize("zero", [-0.0, np.float64(-0.0), np.float32(-0.0)])
def test_minus_zero_is_zero(http, wav, zero):
    keys = {
        Transcribe(wav, temperature=value, frequency_penalty=value).compute_key(SERVICE)
        for value in (0, zero)
    }
    spoken = {
        Synthesize("あ", voice=http.VOICE_ID, temperature=value).compute_key(SERVICE) for value in (0, zero)
    }
    assert (len(keys), len(spoken)) == (1, 1)


def test_the_keys_of_calls_are_pinned(http, wav):
    voice = http.VOICE_ID
    spoken = {"voice_id": voice, "text": "あ", "format": "wav", "sample_rate": 24_000, "temperature": None}
    assert Synthesize("あ", voice=voice).compute_key("s") == compute_request_key(
        "synthesize", spoken, service="s"
    )
    heard = {
        "audio": hashlib.sha256(wav).hexdigest(),
        "language": None,
        "hotwords": [],
        "temperature": 0.0,
        "top_p": 0.85,
        "frequency_penalty": 0.5,
        "repetition_penalty": 1.05,
        "vad": "off",
        "min_silence_gap": 400,
        "segment_padding": 100,
        "initial_segment_padding_ms": 1500,
        "speech_pad_ms": 200,
        "min_segment_duration": 1.5,
    }
    assert Transcribe(wav).compute_key("s") == compute_request_key("transcribe", heard, service="s")
    said = {"text": "あ", **LANGUAGES, "keywords": [], "context": None, "model": None}
    assert Translate("あ", **LANGUAGES).compute_key("s", 1) == compute_request_key(
        "translate", said, service="s", repeat=1
    )


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


def test_an_operation_is_performed_as_the_method_would(lab, http, wav):
    clip = lab.perform(Synthesize("あ", voice="Calm"))
    assert (clip.encoded, clip.text) == (wav, "あ")
    assert lab.with_raw_response.perform(Transcribe(wav)).parse().text == lab.transcribe(wav).text == "あ"
    with pytest.raises(InvalidRequestError, match="empty"):
        lab.perform(Translate(" ", **LANGUAGES))


def test_words_that_can_be_read_once_are_not_lost(wav):
    terms = ["a", "b"]
    translate = Translate("x", keywords=iter(terms), **LANGUAGES)
    assert translate.compute_key(SERVICE) == Translate("x", keywords=terms, **LANGUAGES).compute_key(SERVICE)
    assert translate.request.keywords == ("a", "b")
    transcribe = Transcribe(wav, hotwords=iter(terms))
    assert transcribe.compute_key(SERVICE) == Transcribe(wav, hotwords=terms).compute_key(SERVICE)
    assert transcribe.options.hotwords == terms


def test_a_text_alone_is_checked_as_with_its_options():
    for text in (None, 5, "", " ", "a" * 10_001, "\ud83d"):
        for whole in (
            Synthesize(text, voice="00000000-0000-0000-0000-000000000000"),
            Translate(text, **LANGUAGES),
        ):
            with pytest.raises(InvalidRequestError) as together:
                _ = whole.parameters
            with pytest.raises(InvalidRequestError) as alone:
                _ = whole.content
            assert alone.value.parameter == together.value.parameter == "text"
            if isinstance(text, str):
                assert str(alone.value) == str(together.value)


def asked_by(operation):
    """What an operation asks for; ``timeout`` says how it is sent."""
    return set(inspect.signature(operation).parameters) - {"timeout"}


def test_options_of_speech_are_fields_on_both_wires():
    for wire in (SpeechRequest, SessionSettings):
        # models ignore what they do not know, so an option that is missing here would be dropped without a word
        # respell changes the text that is sent
        options = {name.replace("voice", "voice_id") for name in asked_by(Synthesize)} - {"text", "respell"}
        assert options <= set(wire.model_fields)


def test_a_batch_takes_every_parameter_of_the_operations():
    for operation, batch in (
        (Synthesize, sl.batch.synthesize),
        (Transcribe, sl.batch.transcribe),
        (Translate, sl.batch.translate),
    ):
        assert asked_by(operation) <= set(inspect.signature(batch).parameters)
