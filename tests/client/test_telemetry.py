"""Spans: one for each sending, under the caller's span, with nothing in them that is the user's."""

from __future__ import annotations

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


class Traces:
    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")
        self.hook = opentelemetry_hook(self.provider)

    def of_calls(self):
        return [span for span in self.exporter.get_finished_spans() if span.name.startswith("speechlab ")]


@pytest.fixture
def traces():
    made = Traces()
    yield made
    made.provider.shutdown()


@pytest.fixture
def traced(server, clock, http, traces):
    with Client(
        server.base_url, api_key=http.KEY, clock=clock, rng=http.Half(), on_event=traces.hook
    ) as client:
        yield client


def translate(lab):
    return lab.translate(SECRET_TEXT, source_lang="ja", target_lang="en")


def test_each_sending_is_a_span_below_that_of_the_caller(server, traced, http, traces, clock):
    server.script(http.reply(500), http.reply(body=TRANSLATED))
    with traces.tracer.start_as_current_span("caller") as caller:
        translate(traced)
    failed, succeeded = traces.of_calls()
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


def test_a_reply_that_is_not_whole_is_a_failure_whatever_its_status(server, traced, http, traces):
    server.script([http.reply(body=TRANSLATED)[:-5], http.CLOSE])
    with pytest.raises(SpeechLabError):
        translate(traced)
    (cut,) = traces.of_calls()
    assert cut.attributes["http.response.status_code"] == 200
    assert cut.attributes["error.type"] == "StreamTruncatedError"
    assert cut.status.status_code is StatusCode.ERROR


def test_no_key_text_or_address_is_in_a_span(server, traced, http, traces):
    server.script(http.reply(500, body={"error": http.KEY}), http.RESET, http.reply(401))
    with pytest.raises(SpeechLabError):
        translate(traced)
    told = "".join(span.to_json() for span in traces.of_calls())
    assert len(traces.of_calls()) == 3
    for secret in (http.KEY, "canary", server.base_url, str(server.port)):
        assert secret not in told


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    with pytest.raises(MissingDependencyError, match=r"speechlab\[otel\]"):
        opentelemetry_hook()
