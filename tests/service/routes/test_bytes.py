"""Whatever the bytes are, the answer is an agreed one, and never a 500."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FEW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
HEADERS = [b"RIFF\x24\0\0\0WAVEfmt ", b"OggS\0\2", b"fLaC\0\0\0\x22", b"ID3\4\0\0", b"\xff\xfb\x90\x64", b""]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_NAMES = "voice_id text format stream sample_rate temperature audio vad messages language hotwords"
names = st.sampled_from(_NAMES.split())


def agreed(reply) -> None:
    assert reply.status in {200, 400, 413}, (reply.status, reply.body)
    if reply.status != 200:
        assert {"code", "error"} <= set(reply.json())


@pytest.mark.slow
@FEW
@given(fields=st.dictionaries(names, json_values), path=st.sampled_from(["/tts", "/asr/srt/audio_llm"]))
def test_s41_s64_any_json(staged, fields, path):
    agreed(staged.http.post_json(path, json.dumps(fields).encode("utf-8", "surrogatepass")))


@FEW
@given(body=st.binary(max_size=200), path=st.sampled_from(["/tts", "/asr/srt/audio_llm", "/translate/"]))
def test_s41_s99_any_bytes(staged, body, path):
    kind = "multipart/form-data; boundary=b" if path == "/translate/" else "application/json"
    agreed(staged.http.request("POST", path, body, {"Content-Type": kind}))


@pytest.mark.slow
@FEW
@given(header=st.sampled_from(HEADERS), rest=st.binary(max_size=300))
def test_s58_s61_any_recording(staged, header, rest):
    reply = staged.http.post_json("/asr/srt/audio_llm", {"audio": base64.b64encode(header + rest).decode()})
    agreed(reply)


@FEW
@given(
    pieces=st.lists(
        st.sampled_from(
            [
                b"--b",
                b"--b--",
                b"\r\n",
                b'Content-Disposition: form-data; name="text"',
                b"\r\n\r\n",
                b"x",
                b'name="',
                b":",
                b"\xff",
                b"\n",
                b";",
                b'"',
            ]
        )
    ),
    kind=st.sampled_from(
        [
            "multipart/form-data; boundary=b",
            'multipart/form-data; boundary="b"; x',
            "multipart/form-data;boundary",
        ]
    ),
)
def test_s99_any_form(staged, pieces, kind):
    agreed(staged.http.request("POST", "/translate/", b"".join(pieces), {"Content-Type": kind}))
