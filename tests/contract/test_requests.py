"""Requests: what is accepted, what is refused, and in which words. Numbers are those of the contract checks."""

from __future__ import annotations

import base64

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


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"text"',
        b"null",
        b"{",
        b'\xef\xbb\xbf{"text":"a"}',
        b"[" * 5000 + b"]" * 5000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b'{"text":"\xff"}',
        b'{"text":"\\ud800"}',
        b'{"temperature":NaN}',
        b'{"temperature":Infinity}',
    ],
)
def test_041_bodies_that_are_not_json_objects(body):
    refusal(parse_json_object, body)


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_041_huge_integers_are_refused(digits):
    body = b'{"sample_rate":' + b"9" * digits + b"}"
    refusal(lambda: SpeechRequest.parse({**SPEECH, **parse_json_object(body)}))


def test_041_of_a_repeated_key_the_last_counts():
    assert parse_json_object(b'{"text":"a","text":"b"}') == {"text": "b"}


@pytest.mark.parametrize("name", ["voice_id", "text", "format"])
@pytest.mark.parametrize("value", [None, 5, True, [], {}, ""])
def test_027_028_031_required_fields(name, value):
    assert refusal(SpeechRequest.parse, {**SPEECH, name: value}).parameter == name


@pytest.mark.parametrize(
    "value", ["nonsense", "{" + VOICE + "}", VOICE.replace("-", ""), "urn:uuid:" + VOICE]
)
def test_027_malformed_ids(value):
    error = refusal(SpeechRequest.parse, {**SPEECH, "voice_id": value})
    assert (error.parameter, error.code) == ("voice_id", "unknown_voice_id")


def test_027_upper_case_ids_are_made_canonical():
    assert SpeechRequest.parse({**SPEECH, "voice_id": VOICE.upper()}).voice_id == VOICE


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\N{IDEOGRAPHIC SPACE}", "\N{NO-BREAK SPACE}"])
def test_028_texts_with_nothing_to_say(text):
    assert refusal(SpeechRequest.parse, {**SPEECH, "text": text}).code == "empty_text"


def test_029_the_limit_counts_code_points():
    assert SpeechRequest.parse({**SPEECH, "text": "\U00020bb7" * 5000}).text
    error = refusal(SpeechRequest.parse, {**SPEECH, "text": "a" * 5001})
    assert error.code == "tts_text_too_long"
    assert "5,001" in str(error)
    assert "5,000" in str(error)


def test_030_the_limit_is_configurable():
    refusal(SpeechRequest.parse, {**SPEECH, "text": "a" * 11}, text_limit=10)


@pytest.mark.parametrize("value", ["MP3", "opus", "wav "])
def test_031_formats_are_case_sensitive_and_known(value):
    error = refusal(SpeechRequest.parse, {**SPEECH, "format": value})
    assert error.code == "unsupported_audio_format"
    assert "mp3, wav, ogg, pcm, flac" in str(error)


@pytest.mark.parametrize("value", ["true", 1, 0, "false", []])
def test_032_stream_is_a_boolean(value):
    assert refusal(SpeechRequest.parse, {**SPEECH, "stream": value}).parameter == "stream"


def test_032_034_null_counts_as_absent():
    request = SpeechRequest.parse({**SPEECH, "stream": None, "sample_rate": None, "temperature": None})
    assert (request.stream, request.sample_rate, request.temperature) == (False, 0, None)


@pytest.mark.parametrize("value", [-1, 24000.5, 24000.0, True, "24000", []])
def test_036_rates_are_whole_numbers(value):
    assert refusal(SpeechRequest.parse, {**SPEECH, "sample_rate": value}).parameter == "sample_rate"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.5", -0.1])
def test_039_temperatures(value):
    assert refusal(SpeechRequest.parse, {**SPEECH, "temperature": value}).parameter == "temperature"


def test_040_unknown_fields_are_ignored():
    assert SpeechRequest.parse({**SPEECH, "speed": 2})


def test_052_unset_options_are_left_out_and_zero_is_sent():
    assert SpeechRequest.parse(SPEECH).body() == SPEECH
    assert SpeechRequest.parse({**SPEECH, "temperature": 0.0}).body()["temperature"] == 0.0


Q = VoiceRules(frozenset(AudioFormat), (16000, 24000), streamable=frozenset({"wav"}), ogg_rate_override=False)


@pytest.mark.parametrize(
    ("rules", "settings", "result"),
    [
        (Q, {"format": "ogg"}, 24000),
        (Q, {"format": "wav", "sample_rate": 16000}, 16000),
        (Q, {"format": "ogg", "sample_rate": 16000}, "unsupported_sample_rate"),
        (Q, {"format": "ogg", "sample_rate": 24000}, "unsupported_sample_rate"),
        (Q, {"format": "wav", "sample_rate": 8000}, "unsupported_sample_rate"),
        (Q, {"format": "flac", "stream": True}, "unsupported_streaming_format"),
        (Q, {"format": "wav", "stream": True}, 24000),
        (VoiceRules(frozenset({"wav"}), (24000,)), {"format": "mp3"}, "unsupported_audio_format"),
        (
            VoiceRules(frozenset({"wav"}), (24000,)),
            {"format": "wav", "sample_rate": 24000},
            "unsupported_sample_rate",
        ),
        (
            VoiceRules(frozenset({"wav"}), (24000,), single_rate_override=True),
            {"format": "wav", "sample_rate": 24000},
            24000,
        ),
        (VoiceRules(frozenset({"wav"}), None), {"format": "wav", "sample_rate": 7}, 7),
        (
            VoiceRules(frozenset({"wav"}), streaming=False),
            {"format": "wav", "stream": True},
            "unsupported_streaming_format",
        ),
        # format comes before streaming, and streaming before the rate
        (
            VoiceRules(frozenset({"wav"}), streaming=False),
            {"format": "mp3", "stream": True},
            "unsupported_audio_format",
        ),
        (Q, {"format": "flac", "stream": True, "sample_rate": 1}, "unsupported_streaming_format"),
    ],
)
def test_031_to_037_what_a_voice_accepts(rules, settings, result):
    if isinstance(result, int):
        assert rules.check(**settings) == result
    else:
        assert refusal(rules.check, **settings).code == result


@pytest.mark.parametrize(
    "fields", [{}, {"audio": None}, {"audio": ""}, {"messages": []}, {"messages": [{"role": "user"}]}]
)
def test_055_missing_recording(fields):
    assert str(refusal(RecognitionRequest.parse, fields)) == "No audio data provided"


@pytest.mark.parametrize(
    "audio",
    [
        "@@@@",
        "data:audio/wav;base64," + AUDIO,
        "UklG\n",
        " UklG",
        "UklGR",
        "_-_-",
        "UklGUg==UklG",
        "ü",
        "====",
    ],
)
def test_056_057_only_plain_base64(audio):
    assert str(refusal(decode_audio_field, audio)) == "Invalid base64 audio data"


def test_056_a_recording_that_is_no_string_is_no_base64():
    request = RecognitionRequest.parse({"audio": 5})
    assert str(refusal(decode_audio_field, request.audio)) == "Invalid base64 audio data"


@given(st.binary(min_size=1, max_size=500))
def test_088_what_is_sent_can_be_read(data):
    assert decode_audio_field(base64.b64encode(data).decode()) == data


@pytest.mark.parametrize(
    ("value", "code"),
    [("ja", "ja"), ("JA", "ja"), ("ja-JP", "ja"), ("zh_CN", "zh"), ("de-AT", "de"), ("", None), (None, None)],
)
def test_067_languages(value, code):
    assert RecognitionRequest.parse({"audio": AUDIO, "language": value}).language == code


@pytest.mark.parametrize("value", ["f", "japanese", "日本", 5, ["ja"]])
def test_067_unknown_languages(value):
    assert refusal(RecognitionRequest.parse, {"audio": AUDIO, "language": value}).parameter == "language"


@pytest.mark.parametrize(
    ("value", "mode"),
    [
        (0, "off"),
        (1, "on"),
        ("0", "off"),
        ("1", "on"),
        ("off", "off"),
        ("on", "on"),
        ("segments", "segments"),
    ],
)
def test_071_vad(value, mode):
    assert RecognitionRequest.parse({"audio": AUDIO, "vad": value}).vad == mode


@pytest.mark.parametrize("value", [2, True, False, "Segments", 1.0, [], "yes"])
def test_071_vad_refused(value):
    assert refusal(RecognitionRequest.parse, {"audio": AUDIO, "vad": value}).parameter == "vad"


@pytest.mark.parametrize(
    ("name", "default", "good", "bad"),
    [
        ("temperature", 0.0, [0, 2, 1.5], [-0.01, 2.01, True, "1", float("nan")]),
        ("top_p", 0.85, [0, 1], [-0.01, 1.01, True, "1"]),
        ("frequency_penalty", 0.5, [-2, 2], [-2.01, 2.01, False]),
        ("repetition_penalty", 1.05, [1, 2], [0.99, 2.01, "1"]),
    ],
)
def test_069_070_sampling_ranges(name, default, good, bad):
    assert getattr(RecognitionRequest.parse({"audio": AUDIO}), name) == default
    for value in good:
        assert getattr(RecognitionRequest.parse({"audio": AUDIO, name: value}), name) == value
    for value in bad:
        assert refusal(RecognitionRequest.parse, {"audio": AUDIO, name: value}).parameter == name


@pytest.mark.parametrize(
    ("name", "default", "good", "bad"),
    [
        ("min_silence_gap", 400, [0, 10_000], [-1, 1.5, True, "400"]),
        ("segment_padding", 100, [0, 5000], [-1, 5001, 1.5, True]),
        ("initial_segment_padding_ms", 1500, [0, 5000], [-1, 5001, "0"]),
        ("speech_pad_ms", 200, [0], [-1, 0.5]),
        ("min_segment_duration", 1.5, [0, 3], [-0.1, float("inf"), True]),
    ],
)
def test_074_to_077_segment_parameters(name, default, good, bad):
    base = {"audio": AUDIO, "vad": "segments"}
    assert getattr(RecognitionRequest.parse(base), name) == default
    for value in good:
        assert getattr(RecognitionRequest.parse({**base, name: value}), name) == value
    for value in bad:
        assert refusal(RecognitionRequest.parse, {**base, name: value}).parameter == name
        assert (
            getattr(RecognitionRequest.parse({"audio": AUDIO, name: value}), name) == default
        )  # 76: ignored


@pytest.mark.parametrize("value", ["word", [1], [None], {"a": 1}])
def test_068_hotwords_are_strings(value):
    assert refusal(RecognitionRequest.parse, {"audio": AUDIO, "hotwords": value}).parameter == "hotwords"


def test_073_vad_filter_is_no_alias():
    assert RecognitionRequest.parse({"audio": AUDIO, "vad_filter": True}).vad is VadMode.OFF


@pytest.mark.parametrize(
    "part",
    [
        {"input_audio": {"data": AUDIO, "format": "wav"}},
        {"audio_url": {"url": "data:audio/wav;base64," + AUDIO}},
    ],
)
def test_083_084_the_legacy_shape(part):
    fields = {"model": 7, "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}, part]}]}
    request = RecognitionRequest.parse(fields)
    assert (request.audio, request.vad) == (AUDIO, "on")
    assert RecognitionRequest.parse({**fields, "vad": "off"}).vad == "off"
    assert RecognitionRequest.parse({**fields, "audio": "QUJD"}).audio == "QUJD"  # 85: audio wins


FORM = [("text", "こんにちは"), ("source_lang", "ja"), ("target_lang", "en")]


@pytest.mark.parametrize("name", ["text", "source_lang", "target_lang"])
def test_091_092_required_form_fields(name):
    rest = [pair for pair in FORM if pair[0] != name]
    assert refusal(TranslationRequest.from_form, rest).parameter == name
    assert refusal(TranslationRequest.from_form, [*rest, (name, " ")]).parameter == name


def test_091_096_lengths_count_code_points():
    assert TranslationRequest.from_form([*FORM[1:], ("text", "\U00020bb7" * 10_000)])
    refusal(TranslationRequest.from_form, [*FORM[1:], ("text", "a" * 10_001)])
    assert TranslationRequest.from_form([*FORM, ("context", "\U00020bb7" * 2_000)])
    refusal(TranslationRequest.from_form, [*FORM, ("context", "a" * 2_001)])


@pytest.mark.parametrize("value", ["1", "True", "yes", ""])
def test_093_stream_is_true_or_false(value):
    assert refusal(TranslationRequest.from_form, [*FORM, ("stream", value)]).parameter == "stream"


def test_094_095_keywords():
    assert len(TranslationRequest.from_form([*FORM, *[("keywords", "a")] * 20]).keywords) == 20
    refusal(TranslationRequest.from_form, [*FORM, *[("keywords", "a")] * 21])
    assert TranslationRequest.from_form([*FORM, ("keywords", "a,b")]).keywords == ("a,b",)
    assert TranslationRequest.from_form([*FORM, ("keywords", "あ" * 33)])
    assert refusal(TranslationRequest.from_form, [*FORM, ("keywords", "あ" * 34)]).parameter == "keywords"


def test_099_only_keywords_may_repeat():
    assert refusal(TranslationRequest.from_form, [*FORM, ("text", "b")]).parameter == "text"


@given(
    st.text(min_size=1, max_size=50).filter(str.strip),
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip), max_size=5),
    st.none() | st.text(min_size=1, max_size=50),
    st.booleans(),
)
def test_a_form_survives_the_way(text, keywords, context, stream):
    request = TranslationRequest(
        text=text,
        source_lang="ja",
        target_lang="en",
        keywords=tuple(keywords),
        context=context,
        stream=stream,
    )
    assert TranslationRequest.from_form(request.form()) == request


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
