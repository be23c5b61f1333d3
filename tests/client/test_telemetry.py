"""Spans: one for each sending, under the caller's span, with nothing in them that is the user's."""

import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from speechlab.client import Client, opentelemetry_hook
from speechlab.errors import MissingDependencyError, SpeechLabError
from support.samples import TRANSLATED

SECRET_TEXT = "canary-text-51c7"


@pytest.fixture
def traced(server, clock, http):
    """A client whose calls are traced, a tracer for the caller, and a function that lists the spans of calls."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    hook = opentelemetry_hook(provider)

    def list_spans():
        return [span for span in exporter.get_finished_spans() if span.name.startswith("speechlab ")]

    options = {"api_key": http.KEY, "clock": clock, "rng": http.Half(), "on_event": hook}
    with Client(server.base_url, **options) as client:
        yield client, provider.get_tracer("test"), list_spans
    provider.shutdown()


def translate(lab):
    return lab.translate(SECRET_TEXT, source_lang="ja", target_lang="en")


def test_each_sending_is_a_span_below_that_of_the_caller(server, traced, http, clock):
    lab, tracer, list_spans = traced
    server.script(http.reply(500), http.reply(body=TRANSLATED))
    with tracer.start_as_current_span("caller") as caller:
        translate(lab)
    failed, succeeded = list_spans()
    assert failed.name == succeeded.name == "speechlab translate"
    assert failed.kind is SpanKind.CLIENT
    always = {"speechlab.operation": "translate"}
    assert dict(failed.attributes) == {
        **always,
        "speechlab.attempt": 1,
        "http.response.status_code": 500,
        "error.type": "ServerError",
        "speechlab.retry_delay_s": clock.slept[0],
    }
    answered = {"speechlab.attempt": 2, "http.response.status_code": 200}
    assert dict(succeeded.attributes) == {**always, **answered}
    assert [span.status.status_code for span in (failed, succeeded)] == [StatusCode.ERROR, StatusCode.UNSET]
    assert {span.parent.span_id for span in (failed, succeeded)} == {caller.get_span_context().span_id}


def test_no_key_text_or_address_is_in_a_span(server, traced, http):
    lab, _, list_spans = traced
    server.script(http.reply(500, body={"error": http.KEY}), http.RESET, http.reply(401))
    with pytest.raises(SpeechLabError):
        translate(lab)
    told = "".join(span.to_json() for span in list_spans())
    assert len(list_spans()) == 3
    for secret in (http.KEY, "canary", server.base_url, str(server.port)):
        assert secret not in told


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    with pytest.raises(MissingDependencyError, match=r"speechlab\[otel\]"):
        opentelemetry_hook()
