"""Whatever a service sends, a reader gives a value or an error of ours, and nothing else."""

import json
import time
from email.utils import formatdate
from functools import partial

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from speechlab.audio import AudioClip
from speechlab.client import Client, OpenAIAdapter, RawResponse, Synthesize, Transcribe, Translate
from speechlab.errors import APIError, ContractError, RateLimitError, StreamTruncatedError
from support.pieces import answer_in_pieces

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KNOWN = (
    "context code name error text language confidence segments voices choices id message content delta usage"
)
KNOWN += " start end detail"
SHAPED = st.recursive(
    JSON,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KNOWN.split()), inner, max_size=5)
    ),
    max_leaves=12,
)
BODIES = st.binary(max_size=60) | SHAPED.map(lambda value: json.dumps(value).encode())
VOICE = "0f8fad5b-d9cb-469f-a165-70867728950e"
MEANT = {"source_lang": "ja", "target_lang": "en"}
READERS = [Synthesize("a", voice=VOICE).read, Transcribe(b"").read, Translate("a", **MEANT).read]


@pytest.fixture(scope="module")
def service():
    """A client, and a function that says what its service answers next, in which pieces."""
    with answer_in_pieces() as both:
        yield both


@pytest.mark.slow
@given(BODIES)
@example(b'{"":null,"error":[null]}')
@settings(max_examples=50)
def test_any_body_is_a_value_or_a_contract_error(service, body):
    lab, answer = service
    reply = RawResponse(200, {"content-type": "application/octet-stream"}, body)

    def read_voices():
        with answer_in_pieces() as (fresh, answer_anew):  # which keeps no voices yet
            answer_anew([body], "application/json")
            return fresh.voices()

    def read_stream():
        answer([b"data: " + body + b"\n\ndata: [DONE]\n\n"], "text/event-stream")
        return lab.stream_translation("a", **MEANT).collect()

    for read in (*(partial(reader, reply) for reader in READERS), read_voices, read_stream):
        try:
            value = read()
        except (ContractError, StreamTruncatedError) as error:  # the latter for an error in a stream
            assert str(error)
        else:
            assert repr(value)
            shown = getattr(value, "_repr_html_", str)()
            assert "<script" not in shown


@pytest.mark.slow
@given(
    st.integers(300, 599), st.dictionaries(st.sampled_from(["retry-after", "location"]), st.text()), BODIES
)
@settings(max_examples=100)
def test_011_any_error_body_is_a_typed_error(status, headers, body):
    with pytest.raises(APIError) as caught:
        RawResponse(status, headers, body).raise_for_status()
    error = caught.value
    assert error.status == status
    assert error.message
    assert error.code is None or type(error.code) is int
    assert error.name is None or isinstance(error.name, str)
    assert all(isinstance(item, str) for item in error.context)
    assert getattr(error, "retry_after_s", None) is None or 0 < error.retry_after_s <= 86_400
    assert len(str(error)) < 1_000


def test_json_as_loose_writers_make_it_keeps_its_text():
    for body, text in (
        (b'{"text":"a","confidence":NaN,"words":[{"word":"a","start":0,"end":Infinity}]}', "a"),
        (b'\xef\xbb\xbf{"text":"a","confidence":1e999}', "a"),
        (b'{"text":"\\ud83d\\ude00 \\ude00"}', "\U0001f600 \ufffd"),
        (b'{"text":"a\xed\xa0\xbd"}', "a\ufffd"),
    ):
        transcript = Transcribe(b"").read(RawResponse(200, {}, body))
        assert (transcript.text, transcript.confidence, transcript.words) == (text, None, None)
        assert RawResponse(400, {}, body.replace(b'"text"', b'"error"')).json()["error"] == text
    for body in (b"{'text': 'a'}", b'{"text":"a\xff"}', b"[" * 100_000, b'{"text":NaN,}', b""):
        with pytest.raises(ContractError, match=r"not JSON|is empty"):
            RawResponse(200, {}, body).json()
    for value in (5, [{}], [{"word": "a", "start": "x", "end": 1}]):
        body = json.dumps({"text": "a", "words": value, "partials": value}).encode()
        transcript = Transcribe(b"").read(RawResponse(200, {}, body))
        assert transcript.words is None  # fields beyond the contract are read or left out
        assert transcript.partials is None or transcript.partials.empty


@pytest.mark.parametrize(("given", "text"), [("", "a b c"), ("A b c.", "A b c.")])
def test_segments_without_times_keep_their_texts(given, text):
    segments = b'[{"start":NaN,"end":1,"text":"a"},{"start":1,"end":Infinity,"text":"b"},{"text":"c"}]'
    body = b'{"text":"%s","language":"en","segments":%s}' % (given.encode(), segments)
    transcript = Transcribe(b"").read(RawResponse(200, {}, body))
    assert transcript.text == text
    assert [(piece.start, piece.end, piece.text) for piece in transcript.pieces] == [(1.0, 1.0, "b")]


def test_odd_transcripts_of_openai_are_contract_errors():
    bodies = [json.dumps({"text": "a", "segments": segments}) for segments in (5, [5])]
    bodies.append('data: {"type": "transcript.text.delta", "delta": 5}\n\ndata: 5\n\n')
    answers = httpx2.MockTransport(lambda _: httpx2.Response(200, text=bodies.pop(0)))
    adapter = OpenAIAdapter(transcription="whisper-1")
    with Client("http://127.0.0.1:9/v1", transport=answers, adapter=adapter) as lab:
        for _ in range(2):
            with pytest.raises(ContractError, match="segments"):
                lab.transcribe(([0.0] * 800, 8_000), vad="segments")
        assert not lab.transcribe(([0.0] * 800, 8_000)).text  # events without a text


@given(st.binary(max_size=200), st.integers(1, 50), st.booleans())
def test_any_stream_of_bytes_is_sound_or_a_contract_error(service, data, width, with_header):
    if with_header:
        head = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0" + data[:16].ljust(16, b"\0")
        data = head + b"data\0\0\0\0" + data[16:]
    lab, answer = service
    answer([data[start : start + width] for start in range(0, len(data), width)])
    try:
        list(lab.stream_speech("a", voice=VOICE, format="wav").clips())
    except (ContractError, StreamTruncatedError) as error:
        assert str(error)


@given(st.integers(1, 5_000))
@settings(max_examples=50)
def test_sound_is_the_same_in_any_slicing(service, width):
    lab, answer = service
    whole = AudioClip([0.25, -0.5, 0.75, 0.0] * 300, 16_000)
    data = whole.encode("wav")
    answer([data[start : start + width] for start in range(0, len(data), width)])
    joined = AudioClip.concatenate(list(lab.stream_speech("a", voice=VOICE, format="wav").clips()))
    assert joined == AudioClip.from_bytes(data)


def test_both_forms_of_retry_after():
    now = time.time()
    for value, seconds in (
        *((" 0.5 ", 0.5), ("0", None), ("-3", None), ("1e9", 86_400.0), ("soon", None), ("nan", None)),
        (formatdate(now + 30, usegmt=True), pytest.approx(30, abs=10)),
        (formatdate(now - 1_000, usegmt=True), None),
    ):
        with pytest.raises(RateLimitError) as caught:
            RawResponse(429, {"retry-after": value}, b"").raise_for_status()
        assert caught.value.retry_after_s == seconds
