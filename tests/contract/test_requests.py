"""Requests: what is accepted, what is refused, and in which words. Numbers are those of the contract checks."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.contract import (
    AudioFormat,
    RecognitionRequest,
    SpeechRequest,
    TranslationRequest,
    VadMode,
    VoiceRules,
    decode_audio_field,
    parse_json_object,
)
from speechlab.errors import InvalidRequestError

VOICE = "0f8fad5b-d9cb-469f-a165-70867728950e"
SPEECH = {"voice_id": VOICE, "text": "Hello.", "format": "wav"}
AUDIO = base64.b64encode(b"RIFF....WAVE").decode()


def refusal(call, *args, **kwargs) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        call(*args, **kwargs)
    assert str(caught.value)
    return caught.value


BODIES = [
    b"", b"  ", b"[]", b'"text"', b"5", b"null", b"{", b'{"voice_id": "x"', b"{} {}", b"voice_id=1", b"{'text': 'x'}",
    b'\xef\xbb\xbf{"text":"a"}', "{}".encode("utf-16"), b'{"text":"\xff"}', b'{"text":"\\ud800"}', b'{"text":"\x01"}',
    b"[" * 5000 + b"]" * 5000, b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b'{"temperature":NaN}', b'{"temperature":-Infinity}', b'{"temperature":1e999}',
]  # fmt: skip


def test_041_bodies_that_are_not_json_objects():
    for body in BODIES:
        refusal(parse_json_object, body)
    for digits in (20, 400, 5000):
        body = b'{"sample_rate":' + b"9" * digits + b"}"
        refusal(lambda body=body: SpeechRequest.parse({**SPEECH, **parse_json_object(body)}))
    assert parse_json_object(b'{"text":"a","text":"b"}') == {"text": "b"}  # the last counts


WRONG = {
    "voice_id": [None, 5, True, [], {}, ""],
    "text": [None, 5, True, [], {}, ""],
    "format": [None, 5, True, [], {}, ""],
    "stream": ["true", 1, 0, "false", []],
    "sample_rate": [-1, 24000.5, 24000.0, True, "24000", []],
    "temperature": [float("nan"), float("inf"), True, "0.5", -0.1],
}


def test_027_to_039_fields_of_the_wrong_kind_are_named():
    for name, values in WRONG.items():
        for value in values:
            assert refusal(SpeechRequest.parse, {**SPEECH, name: value}).parameter == name, value
    request = SpeechRequest.parse({**SPEECH, "stream": None, "sample_rate": None, "temperature": None})
    assert (request.stream, request.sample_rate, request.temperature) == (False, 0, None)


Q = VoiceRules(frozenset(AudioFormat), (16000, 24000), streamable=frozenset({"wav"}), ogg_rate_override=False)


ONE_RATE = VoiceRules(frozenset({"wav"}), (24000,))
MUTE = VoiceRules(frozenset({"wav"}), streaming=False)


def test_031_to_037_what_a_voice_accepts():
    for rules, settings, result in (
        (Q, {"format": "ogg"}, 24000),
        (Q, {"format": "wav", "sample_rate": 16000}, 16000),
        (Q, {"format": "ogg", "sample_rate": 16000}, "unsupported_sample_rate"),
        (Q, {"format": "ogg", "sample_rate": 24000}, "unsupported_sample_rate"),
        (Q, {"format": "wav", "sample_rate": 8000}, "unsupported_sample_rate"),
        (Q, {"format": "flac", "stream": True}, "unsupported_streaming_format"),
        (Q, {"format": "wav", "stream": True}, 24000),
        (ONE_RATE, {"format": "mp3"}, "unsupported_audio_format"),
        (ONE_RATE, {"format": "wav", "sample_rate": 24000}, "unsupported_sample_rate"),
        (replace(ONE_RATE, single_rate_override=True), {"format": "wav", "sample_rate": 24000}, 24000),
        (VoiceRules(frozenset({"wav"}), None), {"format": "wav", "sample_rate": 7}, 7),
        (MUTE, {"format": "wav", "stream": True}, "unsupported_streaming_format"),
        # format comes before streaming, and streaming before the rate
        (MUTE, {"format": "mp3", "stream": True}, "unsupported_audio_format"),
        (Q, {"format": "flac", "stream": True, "sample_rate": 1}, "unsupported_streaming_format"),
    ):
        if isinstance(result, int):
            assert rules.check(**settings) == result, settings
        else:
            assert refusal(rules.check, **settings).code == result, settings


def test_055_056_057_missing_recordings_and_no_base64():
    no_text = ([{"content": [5]}], [{"content": [{}]}])
    parts = ([], "x", 5, {}, [5], [{"role": "user"}], [{"content": 5}], *no_text)
    for fields in ({}, {"audio": None}, {"audio": ""}, *({"messages": part} for part in parts)):
        assert str(refusal(RecognitionRequest.parse, fields)) == "No audio data provided"
    no_text = RecognitionRequest.parse({"audio": 5}).audio
    for audio in (
        no_text, "@@@@", "data:audio/wav;base64," + AUDIO, "UklG\n", " UklG", "UklG Rg==", "UklGR", "UklGRg", "_-_-",
        "UklGUg==UklG", "ü", "=", "====",
    ):  # fmt: skip
        assert str(refusal(decode_audio_field, audio)) == "Invalid base64 audio data", audio


@given(st.binary(min_size=1, max_size=500))
def test_088_what_is_sent_can_be_read(data):
    assert decode_audio_field(base64.b64encode(data).decode()) == data


def parse_recognition(**fields) -> RecognitionRequest:
    return RecognitionRequest.parse({"audio": AUDIO, **fields})


def test_067_071_languages_and_vad():
    codes = {"ja": "ja", "JA": "ja", "ja-JP": "ja", "zh_CN": "zh", "de-AT": "de", "": None, None: None}
    for value, code in codes.items():
        assert parse_recognition(language=value).language == code
    modes = {0: "off", 1: "on", "0": "off", "1": "on", "off": "off", "on": "on", "segments": "segments"}
    for value, mode in modes.items():
        assert parse_recognition(vad=value).vad == mode
    assert parse_recognition(vad_filter=True).vad is VadMode.OFF  # 73: no alias
    for name, values in {
        "language": ["f", "japanese", "日本", 5, ["ja"]],
        "vad": [2, True, False, "Segments", 1.0, [], "yes"],
        "hotwords": ["word", [1], [None], {"a": 1}],
        "session_id": [5, "x" * 129],
    }.items():
        for value in values:
            assert refusal(parse_recognition, **{name: value}).parameter == name, value


@pytest.mark.parametrize(
    ("name", "default", "good", "bad"),
    [
        ("temperature", 0.0, [0, 2, 1.5], [-0.01, 2.01, True, "1", float("nan")]),
        ("top_p", 0.85, [0, 1], [-0.01, 1.01, True, "1"]),
        ("frequency_penalty", 0.5, [-2, 2], [-2.01, 2.01, False]),
        ("repetition_penalty", 1.05, [1, 2], [0.99, 2.01, "1"]),
        ("min_silence_gap", 400, [0, 10_000], [-1, 1.5, True, "400"]),
        ("segment_padding", 100, [0, 5000], [-1, 5001, 1.5, True]),
        ("initial_segment_padding_ms", 1500, [0, 5000], [-1, 5001, "0"]),
        ("speech_pad_ms", 200, [0], [-1, 0.5]),
        ("min_segment_duration", 1.5, [0, 3], [-0.1, float("inf"), True]),
    ],
)
def test_069_070_074_to_077_ranges(name, default, good, bad):
    assert getattr(parse_recognition(vad="segments"), name) == default
    for value in good:
        assert getattr(parse_recognition(vad="segments", **{name: value}), name) == value
    of_segments = name not in {"temperature", "top_p", "frequency_penalty", "repetition_penalty"}
    for value in bad:
        assert refusal(parse_recognition, vad="segments", **{name: value}).parameter == name, value
        if of_segments:  # 76: ignored without them
            assert getattr(parse_recognition(**{name: value}), name) == default


def test_027_to_052_values_have_their_codes_and_limits():
    for value in ("nonsense", "{" + VOICE + "}", VOICE.replace("-", ""), "urn:uuid:" + VOICE):
        error = refusal(SpeechRequest.parse, {**SPEECH, "voice_id": value})
        assert (error.parameter, error.code) == ("voice_id", "unknown_voice_id")
    assert SpeechRequest.parse({**SPEECH, "voice_id": VOICE.upper()}).voice_id == VOICE
    for text in ("", " ", "\t\n", "\N{IDEOGRAPHIC SPACE}", "\N{NO-BREAK SPACE}"):
        assert refusal(SpeechRequest.parse, {**SPEECH, "text": text}).code == "empty_text"
    for value in ("MP3", "opus", "wav "):
        error = refusal(SpeechRequest.parse, {**SPEECH, "format": value})
        assert error.code == "unsupported_audio_format"
        assert "mp3, wav, ogg, pcm, flac" in str(error)
    assert SpeechRequest.parse({**SPEECH, "text": "\U00020bb7" * 5000}).text  # code points are counted
    error = refusal(SpeechRequest.parse, {**SPEECH, "text": "a" * 5001})
    assert error.code == "tts_text_too_long"
    assert "5,001" in str(error)
    assert "5,000" in str(error)
    refusal(SpeechRequest.parse, {**SPEECH, "text": "a" * 11}, text_limit=10)
    assert (
        SpeechRequest.parse({**SPEECH, "speed": 2}).body() == SPEECH
    )  # what is unknown or unset is left out
    assert SpeechRequest.parse({**SPEECH, "temperature": 0.0}).body()["temperature"] == 0.0


def test_083_084_085_the_legacy_shape():
    for part in (
        {"input_audio": {"data": AUDIO, "format": "wav"}},
        {"audio_url": {"url": "data:audio/wav;base64," + AUDIO}},
    ):
        content = [{"type": "text", "text": "hi"}, part]
        fields = {"model": 7, "messages": [{"role": "user", "content": content}]}
        request = RecognitionRequest.parse(fields)
        assert (request.audio, request.vad) == (AUDIO, "on")
        other = RecognitionRequest.parse({**fields, "vad": "off", "audio": "QUJD"})
        assert (other.audio, other.vad) == ("QUJD", "off")  # audio wins


FORM = [("text", "こんにちは"), ("source_lang", "ja"), ("target_lang", "en")]


def refused_form(*pairs) -> str | None:
    return refusal(TranslationRequest.from_form, list(pairs)).parameter


def test_091_to_099_forms_that_cannot_be():
    for name in ("text", "source_lang", "target_lang"):
        rest = [pair for pair in FORM if pair[0] != name]
        assert refused_form(*rest) == refused_form(*rest, (name, " ")) == name
    assert refused_form(*FORM[1:], ("text", "a" * 10_001)) == "text"
    assert refused_form(*FORM, ("context", "a" * 2_001)) == "context"
    for value in ("1", "True", "yes", ""):
        assert refused_form(*FORM, ("stream", value)) == "stream"
    assert refused_form(*FORM, *[("keywords", "a")] * 21) == "keywords"
    assert refused_form(*FORM, ("keywords", "あ" * 34)) == "keywords"
    assert refused_form(*FORM, ("text", "b")) == "text"  # only keywords may repeat
    astral, most = "\U00020bb7", [("keywords", "a")] * 18  # limits count code points and are inclusive
    form = [*FORM[1:], ("text", astral * 10_000), ("context", astral * 2_000), *most]
    request = TranslationRequest.from_form([*form, ("keywords", "a,b"), ("keywords", "あ" * 33)])
    assert request.keywords == (*["a"] * 18, "a,b", "あ" * 33)


@given(
    st.text(min_size=1, max_size=50).filter(str.strip),
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip), max_size=5),
    st.none() | st.text(min_size=1, max_size=50),
    st.booleans(),
)
def test_a_form_survives_the_way(text, keywords, context, stream):
    meant = {"source_lang": "ja", "target_lang": "en", "keywords": tuple(keywords)}
    request = TranslationRequest(text=text, **meant, context=context, stream=stream)
    assert TranslationRequest.from_form(request.form()) == request


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from([*SPEECH, "stream", "sample_rate", "temperature"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
    )
)
def test_any_fields_are_read_or_refused_with_words(fields):
    try:
        SpeechRequest.parse({**SPEECH, **fields})
    except InvalidRequestError as error:
        assert error.parameter
        assert len(str(error)) < 400
