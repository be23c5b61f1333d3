"""Replies: both documented forms are read, unknown things survive, nonsense is a ContractError."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.contract import (
    ErrorBody,
    RecognitionReply,
    TranslationChunkReply,
    TranslationReply,
    Usage,
    Voice,
    VoiceList,
    VoiceRules,
    compute_request_key,
    join_url,
    parse_service_message,
    to_realtime_url,
)
from speechlab.errors import ContractError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
VOICE = {
    "id": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "language": "ja, en",
    "gender": "Robot",
    "formats": ["wav", "aac"],
    "new": 1,
}


def test_021_024_025_the_catalogue_in_both_forms():
    for value in ({"voices": [VOICE]}, [VOICE]):
        (voice,) = VoiceList.parse(value).voices
        assert (voice.sample_rates, voice.gender, voice.formats) == (None, "Robot", ("wav", "aac"))
        assert voice.model_extra == {"new": 1}
        rules = VoiceRules.from_voice(voice.model_copy(update={"streaming": True}))
        assert rules.check(format="aac", sample_rate=1, stream=True) == 1
    for value in (None, 5, "voices", {}, {"voices": 5}, [{"description": "no id"}]):
        with pytest.raises(ContractError):
            VoiceList.parse(value)


def test_088_the_form_of_a_transcript_is_told_by_its_fields():
    plain = RecognitionReply.parse({"text": "", "language": "en"})
    assert (plain.text, plain.segments, plain.confidence) == ("", None, None)
    timed = RecognitionReply.parse(
        {"language": "en", "confidence": 1, "segments": [{"start": 0, "end": 1.5, "text": "a"}]}
    )
    assert timed.text is None
    assert timed.segments[0].end == 1.5
    assert RecognitionReply.parse({"segments": []}).segments == ()
    with pytest.raises(ContractError, match="neither text nor segments"):
        RecognitionReply.parse({"language": "en"})


def test_null_counts_as_absent():
    voice = Voice.parse(dict.fromkeys(Voice.model_fields, None) | {"id": "v", "new": None})
    assert voice == Voice(id="v", new=None)
    plain = RecognitionReply.parse({"text": "a", "language": None, "confidence": None, "segments": None})
    assert plain == RecognitionReply(text="a")
    choice = {"index": None, "message": {"role": None, "content": "a"}, "finish_reason": None}
    usage = {"prompt_tokens": None, "total_tokens": 2}
    reply = TranslationReply.parse({"id": None, "model": None, "choices": [choice], "usage": usage})
    assert (reply.id, reply.choices[0].message.role, reply.usage.total_tokens) == ("", "assistant", 2)
    for delta in (None, {"content": None}):
        last = TranslationChunkReply.parse({"choices": [{"delta": delta, "finish_reason": "stop"}]})
        assert (last.content, last.choices[0].finish_reason) == ("", "stop")
    start = parse_service_message({"type": "tts.audio.start", "request_id": None, "sample_rate": None})
    assert (start.request_id, start.sample_rate) == ("", None)
    with pytest.raises(ContractError, match="content"):  # without it the reply has no meaning
        TranslationReply.parse({"choices": [{"message": {"content": None}}]})


def test_162_unknown_messages_and_fields_survive():
    message = parse_service_message({"type": "tts.new", "value": 3})
    assert message.model_extra == {"value": 3}
    usage = parse_service_message({"type": "tts.usage", "usage": {"status": "other"}, "extra": True})
    assert isinstance(usage, Usage)
    assert usage.usage.status == "other"


@given(JSON)
def test_any_json_is_read_or_a_contract_error(value):
    for model in (VoiceList, RecognitionReply, TranslationReply, TranslationChunkReply, ErrorBody):
        try:
            model.parse(value)
        except ContractError as error:
            assert str(error)
    try:
        parse_service_message(value)
    except ContractError as error:
        assert str(error)


def test_019_089_addresses():
    for base in ("http://host", "http://host/", "http://host/api/v2", "http://host/api/v2//"):
        assert join_url(base, "/translate/") == base.rstrip("/") + "/translate/"
    for base, realtime in (
        ("https://a/b", "wss://a/b"),
        ("http://a:1", "ws://a:1"),
        ("HTTP://A", "ws://A"),
        ("Https://a", "wss://a"),
        ("a", "ws://a"),
    ):
        assert to_realtime_url(base) == realtime


def test_keys_of_requests_follow_the_question_alone():
    ask = {"text": "a", "voice_id": "v", "temperature": None}
    key = compute_request_key("synthesize", ask, service="s")
    assert key == compute_request_key("synthesize", dict(reversed(ask.items())), service="s")
    others = [
        compute_request_key("translate", ask, service="s"),
        compute_request_key("synthesize", {**ask, "text": "b"}, service="s"),
        compute_request_key("synthesize", {**ask, "temperature": 0.0}, service="s"),
        compute_request_key("synthesize", ask, service="t"),
        compute_request_key("synthesize", ask, service="s", repeat=1),
    ]
    assert len({key, *others}) == 6
