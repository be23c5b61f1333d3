"""Whatever a service sends, a reader gives a value or an error of ours, and nothing else."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.client import RawResponse
from speechlab.client._operations.failures import error_from_reply
from speechlab.client._operations.pcm import SampleReader
from speechlab.client._operations.recognition import read_transcript
from speechlab.client._operations.speech import SpeechFacts, read_speech
from speechlab.client._operations.translation import read_chunk, read_translation
from speechlab.client._operations.voices import read_catalogue
from speechlab.contract import AudioFormat
from speechlab.errors import APIError, ContractError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KNOWN = [
    "context",
    "code",
    "name",
    "error",
    "text",
    "language",
    "confidence",
    "segments",
    "voices",
    "choices",
    "id",
]
KNOWN += ["message", "content", "delta", "usage", "start", "end", "detail"]
SHAPED = st.recursive(
    JSON,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KNOWN), inner, max_size=5),
    max_leaves=12,
)
BODIES = st.binary(max_size=60) | SHAPED.map(lambda value: json.dumps(value).encode())
FACTS = SpeechFacts("a", "v", AudioFormat.WAV, 24_000)

READERS = [
    read_catalogue,
    read_transcript,
    lambda reply: read_translation(reply, "ja", "en"),
    lambda reply: read_chunk(reply.json()),
    lambda reply: read_speech(reply, FACTS),
]


@given(BODIES)
@settings(max_examples=300)
def test_any_body_is_a_value_or_a_contract_error(body):
    reply = RawResponse(200, {"content-type": "application/octet-stream"}, body)
    readers = [
        read_catalogue,
        read_transcript,
        lambda r: read_translation(r, "ja", "en"),
        lambda r: read_chunk(r.json()),
    ]
    for read in [*readers, lambda r: read_speech(r, FACTS)]:
        try:
            value = read(reply)
        except ContractError as error:
            assert str(error)
        else:
            assert repr(value)
            shown = getattr(value, "_repr_html_", str)()
            assert "<script" not in shown


@given(
    st.integers(300, 599), st.dictionaries(st.sampled_from(["retry-after", "location"]), st.text()), BODIES
)
@settings(max_examples=300)
def test_011_any_error_body_is_a_typed_error(status, headers, body):
    error = error_from_reply(status, headers, body)
    assert isinstance(error, APIError)
    assert error.status == status
    assert error.message
    assert error.code is None or type(error.code) is int
    assert error.name is None or isinstance(error.name, str)
    assert all(isinstance(item, str) for item in error.context)
    assert len(str(error)) < 1_000


@given(st.binary(max_size=200), st.integers(1, 50), st.booleans())
def test_any_stream_of_bytes_is_sound_or_a_contract_error(data, width, with_header):
    if with_header:
        data = (
            b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0"
            + data[:16].ljust(16, b"\0")
            + b"data\0\0\0\0"
            + data[16:]
        )
    reader = SampleReader(FACTS, "audio/wav")
    try:
        for start in range(0, len(data), width):
            reader.feed(data[start : start + width])
    except ContractError as error:
        assert str(error)


@given(st.integers(1, 5_000))
def test_sound_is_the_same_in_any_slicing(width):
    from speechlab.audio import AudioClip

    whole = AudioClip([0.25, -0.5, 0.75, 0.0] * 300, 16_000)
    data = whole.encode("wav")
    reader = SampleReader(FACTS, "audio/wav")
    clips = [reader.feed(data[start : start + width]) for start in range(0, len(data), width)]
    joined = AudioClip.concatenate([clip for clip in clips if clip is not None])
    assert joined == AudioClip.from_bytes(data)
