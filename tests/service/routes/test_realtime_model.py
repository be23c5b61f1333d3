"""A model of the realtime endpoint, walked along random paths over real sockets."""

import base64
import json
import threading
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from speechlab.engines import EngineVoice
from speechlab.errors import EngineError
from speechlab.service import Provider, ServedEngine, run_service, voice_uuid
from support.clients import Http
from support.staged import staged_config

PIECE = 2_400
VOICE = voice_uuid("scripted", "script")
SINGLE = voice_uuid("single", "script")


class Scripted:
    """Speaks a script: after a name, words that each wait for a permission; ``fail`` fails, others sound."""

    model = "scripted-1"
    sample_rate = 24_000
    voices = (EngineVoice("script", ("en",), "Neutral", "speaks a script"),)

    def __init__(self) -> None:
        self.gates = defaultdict(lambda: threading.Semaphore(0))

    def synthesize(self, text, voice, *, temperature=None):
        name, *words = text.split()
        for word in words:
            assert self.gates[name].acquire(timeout=20)
            if word == "fail":
                raise EngineError("as the script says")
            yield np.zeros(PIECE, dtype=np.float32)


@pytest.fixture(scope="module")
def scripted():
    engine = Scripted()
    both = (
        ServedEngine(provider.name, "synthesizer", lambda: engine, provider)
        for provider in (
            Provider("scripted", heavy=False),
            Provider("single", sample_rates=(24_000,), ogg_rate_override=False, heavy=False),
        )
    )
    limits = {"tts_text_limit": 60, "tts_concurrency": 100, "queue_limit": 1_000, "ws_connections": 1_000}
    with run_service(staged_config(*both, **limits)) as service:
        yield Http(service.base_url), engine


BAD = {
    "voice": ({"voice_id": VOICE[:-1] + ("0" if VOICE[-1] != "0" else "1")}, "unknown_voice_id"),
    "no voice": ({"voice_id": None}, "missing_voice_id"),
    "format": ({"format": "aac"}, "unsupported_audio_format"),
    "no format": ({"format": None}, "unsupported_audio_format"),
    "flac": ({"format": "flac"}, "unsupported_streaming_format"),
    "rate": ({"sample_rate": 12_345}, "unsupported_sample_rate"),
    "single": ({"voice_id": SINGLE, "sample_rate": 24_000}, "unsupported_sample_rate"),
    "transport": ({"audio_transport": "x"}, "unsupported_audio_transport"),
    "temperature": ({"temperature": []}, "invalid_message"),
}
NAMES = iter(range(10**9))


class Model(RuleBasedStateMachine):
    def __init__(self, talk, http, engine) -> None:
        super().__init__()
        self.connect = lambda: talk(http)
        self.engine = engine
        self.open()

    def open(self) -> None:
        self.context = self.connect()
        self.client = self.context.__enter__()
        self.session = None
        self.transport = "binary"
        self.request = None  # what is being spoken: its start, its words to come, its audio so far

    # Most walks begin where most happens, or few would ever get there.
    @initialize(
        transport=st.sampled_from([None, "binary", "base64_json", "base64_json", "none yet"]),
        words=st.none() | st.lists(st.sampled_from(["la", "la", "fail"]), max_size=3),
    )
    def begin(self, transport, words) -> None:
        if transport != "none yet":
            self.good_update(transport)
        if words is not None:
            self.speak(words, "first")

    def teardown(self) -> None:
        if self.request:
            self.engine.gates[self.request["name"]].release(100)
        self.context.__exit__(None, None, None)

    def error(self, code, client_id=None) -> None:
        event = self.client.event()
        assert event.pop("message")
        named = {} if client_id is None else {"id": client_id}
        assert event == {"type": "tts.error", "code": code} | named

    def refused_update(self, fields, code, client_id) -> None:
        session = {"voice_id": VOICE, "format": "pcm"} | fields
        self.client.send(type="session.update", id=client_id, session=session)
        self.error("session_already_configured" if self.session else code, client_id)

    @rule(fault=st.sampled_from(sorted(BAD)), client_id=st.sampled_from([None, "u", "ü" * 128]))
    def bad_update(self, fault, client_id) -> None:
        self.refused_update(*BAD[fault], client_id)

    @rule(transport=st.sampled_from([None, "binary", "base64_json"]))
    def good_update(self, transport) -> None:
        if self.session:
            self.refused_update({}, "", "again")
            return
        self.session = self.client.configure(voice_id=VOICE, format="pcm", audio_transport=transport)[
            "session"
        ]
        self.transport = transport or "binary"

    @rule(
        value=st.sampled_from([5, "", "x" * 129, ["a"]]),
        kind=st.sampled_from(["session.update", "tts.speak"]),
    )
    def bad_id(self, value, kind) -> None:
        self.client.send(type=kind, id=value, text="a", session={})
        self.error("id_too_long" if isinstance(value, str) and value else "invalid_id")

    @rule(
        words=st.lists(st.sampled_from(["la", "la", "la", "fail"]), max_size=3),
        client_id=st.sampled_from([None, "s1", "s2"]),
    )
    def speak(self, words, client_id) -> None:
        name = f"ñ𠮷{next(NAMES)}"
        text = " ".join([name, *words])
        self.client.send(type="tts.speak", id=client_id, text=text)
        if not self.session or self.request:
            self.error("synthesis_in_progress" if self.session else "session_not_configured", client_id)
            return
        start = self.client.event()
        assert (start["type"], start["id"]) == ("tts.audio.start", client_id)
        assert start["audio_transport"] == self.transport
        self.request = {"name": name, "text": text, "words": words, "start": start, "audio": 0, "chunks": 0}
        if not words:
            self.ends()

    @rule(text=st.sampled_from(["", "\u3000", None, 5, "x" * 61]))
    def bad_text(self, text) -> None:
        self.client.send(type="tts.speak", id="b", text=text)
        if not self.session:
            self.error("session_not_configured", "b")
        elif self.request:
            self.error("synthesis_in_progress", "b")
        elif text == 5:
            self.error("invalid_message", "b")
        else:
            self.error("tts_text_too_long" if text and text.strip() else "empty_text", "b")

    @precondition(lambda self: self.request)
    @rule()
    def proceed(self) -> None:
        request = self.request
        word = request["words"].pop(0)
        self.engine.gates[request["name"]].release()
        if word == "fail":
            error = self.client.event()
            assert (error["code"], error.get("id")) == ("backend_request_failed", request["start"]["id"])
            self.usage("partial_backend_error" if request["audio"] else "backend_error")
            return
        event = self.client.event()
        if self.transport == "base64_json":
            assert (event["type"], event["seq"]) == ("tts.audio.delta", request["chunks"])
            assert event["request_id"] == request["start"]["request_id"]
            event = base64.b64decode(event["audio"], validate=True)
        assert event == bytes(PIECE * 2)
        request["audio"] += len(event)
        request["chunks"] += 1
        if not request["words"]:
            self.ends()

    @precondition(lambda self: self.request)
    @rule()
    def proceed_to_the_end(self) -> None:
        while self.request:
            self.proceed()

    def ends(self) -> None:
        done = self.client.event()
        assert (done["type"], done["id"]) == ("tts.audio.done", self.request["start"]["id"])
        assert (done["audio_bytes"], done["chunks"]) == (self.request["audio"], self.request["chunks"])
        self.usage("completed")

    def usage(self, status) -> None:
        request, self.request = self.request, None
        assert self.client.event() == {
            "type": "tts.usage",
            "request_id": request["start"]["request_id"],
            "session_id": self.session["id"],
            "client_id": request["start"]["id"],
            "model": "scripted-1",
            "usage": {
                "input_chars": len(request["text"]),
                "input_bytes": len(request["text"].encode()),
                "audio_bytes": request["audio"],
                "status": status,
                "final": True,
            },
        }

    @rule(
        text=st.text(max_size=20)
        | st.sampled_from(
            ["[]", "{}", '{"type": {}}', '{"type": "session.created"}', "[" * 5_000, "x" * 140_000]
        )
    )
    def junk(self, text) -> None:
        self.client.raw(text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = Ellipsis
        if len(text.encode()) > 131_072:
            self.error("tts_control_frame_too_large")
            return
        event = self.client.event()
        assert event["type"] == "router.error"
        if value is Ellipsis:
            assert event["code"] == "invalid_json"
        elif isinstance(value, dict) and isinstance(value.get("type"), str):
            assert event["code"] == "unknown_message_type"
        else:
            assert event["code"] in {"missing_message_type", "invalid_json"}  # JSON of Python knows NaN

    @rule()
    def ping(self) -> None:
        assert self.client.socket.ping().wait(10)

    @precondition(lambda self: self.session)
    @rule(really=st.sampled_from([False] * 5 + [True]))
    def binary(self, really) -> None:
        if not really:
            return
        self.client.raw(b"")
        assert self.client.closed() == 1003
        self.teardown()
        self.open()


@pytest.mark.slow
def test_the_endpoint_does_what_the_model_does(talk, scripted):
    http, engine = scripted
    run_state_machine_as_test(
        lambda: Model(talk, http, engine),
        settings=settings(
            max_examples=60,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
