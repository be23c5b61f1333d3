"""Requests survive the way, and anything else is refused in words.

Which values are refused is held by the checks of ``speechlab.conform`` (tests/service/test_contract.py).
"""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.contract import (
    SpeechRequest,
    TranslationRequest,
    decode_audio_field,
)
from speechlab.errors import InvalidRequestError

VOICE = "0f8fad5b-d9cb-469f-a165-70867728950e"
SPEECH = {"voice_id": VOICE, "text": "Hello.", "format": "wav"}


@given(st.binary(min_size=1, max_size=500))
def test_088_what_is_sent_can_be_read(data):
    assert decode_audio_field(base64.b64encode(data).decode()) == data


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


def test_052_what_is_unset_is_left_out_and_zero_is_sent():
    assert SpeechRequest.parse({**SPEECH, "sample_rate": None, "temperature": None}).body() == SPEECH
    assert SpeechRequest.parse({**SPEECH, "temperature": 0.0}).body()["temperature"] == 0.0
