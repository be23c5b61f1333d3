"""Schemathesis makes requests out of docs/openapi.json, right and wrong ones; replies must be as it says."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from speechlab.audio import encode

schemathesis = pytest.importorskip("schemathesis", reason="pip install 'speechlab[fuzz]'")
from schemathesis import GenerationMode, checks  # noqa: E402 - after the check that it is installed
from schemathesis.config import GenerationConfig, SchemathesisConfig  # noqa: E402 - after the check that it is installed
from schemathesis.specs.openapi.checks import (  # noqa: E402 - after the check that it is installed
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text("utf-8"))
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT, config=SchemathesisConfig(seed=1))
OPERATIONS = {operation.ok().label: operation.ok() for operation in SCHEMA.get_all_operations()}
CHECKS = [
    checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 40
DEPENDS_ON_THE_VOICE = {"ErrUnsupportedSampleRate", "ErrUnsupportedStreaming"}
WAV = base64.b64encode(encode(np.zeros(1_600, dtype=np.float32), "wav", 16_000)).decode()


@pytest.fixture(scope="module")
def service(stage):
    with stage() as service:
        yield service


def sent(service, case, *more):
    """Send a request, and check what comes."""
    headers = {"Authorization": f"Bearer {service.http.key}"}
    reply = case.call(base_url=service.http.base_url, headers=headers, timeout=30)
    case.validate_response(reply, checks=[*CHECKS, *more], headers=headers)
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
@pytest.mark.parametrize("label", OPERATIONS)
def test_what_fits_the_description_is_answered_as_it_says(service, label):
    answered = set()

    @seed(1)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(OPERATIONS[label].as_strategy(generation_mode=GenerationMode.POSITIVE), st.booleans())
    def ask(case, knowing):
        if knowing and isinstance(case.body, dict):
            case.body = made_right(service, case.body)
        answered.add(sent(service, case).status_code)

    ask()
    assert 200 in answered


@pytest.mark.slow
@pytest.mark.parametrize("label", [label for label in OPERATIONS if label.startswith("POST")])
def test_what_does_not_fit_is_refused(service, label):
    @seed(1)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(OPERATIONS[label].as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def ask(case):
        sent(service, case, negative_data_rejection)

    ask()


@pytest.mark.slow
@pytest.mark.parametrize("label", OPERATIONS)
def test_each_edge_of_the_description(service, label):
    operation, count = OPERATIONS[label], 0
    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    for case in SCHEMA.iter_coverage_cases(
        operation, generation_modes=modes, generation_config=GenerationConfig()
    ):
        right = case.meta.generation.mode is GenerationMode.POSITIVE
        if right and isinstance(case.body, dict):
            case.body = made_right(service, case.body)
        reply = sent(service, case, unsupported_method)
        if right and reply.status_code != 200:
            assert reply.json()["name"] in DEPENDS_ON_THE_VOICE, (case.body, reply.text)
        count += 1
    assert count
