"""Requests out of docs/openapi.json, right and wrong ones, and bytes: replies must be as it says, never a 500."""

import base64
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from speechlab.audio import encode

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text("utf-8"))
LABELS = [f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods]
FEW = settings(
    max_examples=12,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
DEPENDS_ON_THE_VOICE = {"ErrUnsupportedSampleRate", "ErrUnsupportedStreaming"}
WAV = base64.b64encode(encode(np.zeros(1_600, dtype=np.float32), "wav", 16_000)).decode()


@pytest.fixture(scope="module")
def fuzz():
    """What Schemathesis makes of the description; its import takes a second, and every worker collects the tests."""
    reason = "pip install 'speechlab[fuzz]'"
    schemathesis = pytest.importorskip("schemathesis", reason=reason)
    from schemathesis.config import SchemathesisConfig
    from schemathesis.specs.openapi import checks

    schema = schemathesis.openapi.from_dict(DOCUMENT, config=SchemathesisConfig(seed=1))
    operations = {operation.ok().label: operation.ok() for operation in schema.get_all_operations()}
    assert list(operations) == LABELS
    always = [
        schemathesis.checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]
    return SimpleNamespace(
        schema=schema, operations=operations, always=always, checks=checks, modes=schemathesis.GenerationMode
    )


@pytest.fixture(scope="module")
def service(stage):
    with stage() as service:
        yield service


def sent(service, fuzz, case, *more):
    """Send a request, and check what comes."""
    headers = {"Authorization": f"Bearer {service.http.key}"}
    reply = case.call(base_url=service.http.base_url, headers=headers, timeout=30)
    case.validate_response(reply, checks=[*fuzz.always, *more], headers=headers)
    return reply


def made_right(service, body):
    """Put in what a generator cannot know: a voice that exists, a recording, languages."""
    right = {
        "voice_id": service.voice("plain"),
        "audio": WAV,
        "language": "ja",
        "source_lang": "en",
        "target_lang": "ja",
        "model": "staged/echo",
    }
    return {name: right.get(name, value) for name, value in body.items()}


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_what_fits_the_description_is_answered_as_it_says(service, fuzz, label):
    answered = set()

    @seed(1)
    @FEW
    @given(fuzz.operations[label].as_strategy(generation_mode=fuzz.modes.POSITIVE), st.booleans())
    def ask(case, knowing):
        if knowing and isinstance(case.body, dict):
            case.body = made_right(service, case.body)
        answered.add(sent(service, fuzz, case).status_code)

    ask()
    assert 200 in answered


@pytest.mark.slow
@pytest.mark.parametrize("label", [label for label in LABELS if label.startswith("POST")])
def test_what_does_not_fit_is_refused(service, fuzz, label):
    @seed(1)
    @FEW
    @given(fuzz.operations[label].as_strategy(generation_mode=fuzz.modes.NEGATIVE))
    def ask(case):
        sent(service, fuzz, case, fuzz.checks.negative_data_rejection)

    ask()


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_each_edge_of_the_description(service, fuzz, label):
    from schemathesis.config import GenerationConfig

    operation, count = fuzz.operations[label], 0
    modes = [fuzz.modes.POSITIVE, fuzz.modes.NEGATIVE]
    for case in fuzz.schema.iter_coverage_cases(
        operation, generation_modes=modes, generation_config=GenerationConfig()
    ):
        right = case.meta.generation.mode is fuzz.modes.POSITIVE
        if right and isinstance(case.body, dict):
            case.body = made_right(service, case.body)
        reply = sent(service, fuzz, case, fuzz.checks.unsupported_method)
        if right and reply.status_code != 200:
            assert reply.json()["name"] in DEPENDS_ON_THE_VOICE, (case.body, reply.text)
        count += 1
    assert count


MANY = settings(
    max_examples=40,
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
@MANY
@given(fields=st.dictionaries(names, json_values), path=st.sampled_from(["/tts", "/asr/srt/audio_llm"]))
def test_s41_s64_any_json(staged, fields, path):
    agreed(staged.http.post_json(path, json.dumps(fields).encode("utf-8", "surrogatepass")))


@MANY
@given(body=st.binary(max_size=200), path=st.sampled_from(["/tts", "/asr/srt/audio_llm", "/translate/"]))
def test_s41_s99_any_bytes(staged, body, path):
    kind = "multipart/form-data; boundary=b" if path == "/translate/" else "application/json"
    agreed(staged.http.request("POST", path, body, {"Content-Type": kind}))


@pytest.mark.slow
@MANY
@given(header=st.sampled_from(HEADERS), rest=st.binary(max_size=300))
def test_s58_s61_any_recording(staged, header, rest):
    reply = staged.http.post_json("/asr/srt/audio_llm", {"audio": base64.b64encode(header + rest).decode()})
    agreed(reply)


FORM_PIECES = (
    *(b"--b", b"--b--", b"\r\n", b"\r\n\r\n", b"\n", b";", b":", b'"', b"\xff", b"x"),
    *(b'Content-Disposition: form-data; name="text"', b'name="'),
)
FORM_KINDS = ("; boundary=b", '; boundary="b"; x', ";boundary")


@MANY
@given(pieces=st.lists(st.sampled_from(FORM_PIECES)), kind=st.sampled_from(FORM_KINDS))
def test_s99_any_form(staged, pieces, kind):
    headers = {"Content-Type": f"multipart/form-data{kind}"}
    agreed(staged.http.request("POST", "/translate/", b"".join(pieces), headers))
