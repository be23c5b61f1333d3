"""The session against every sequence of events that hypothesis thinks of, watched by a reader of what goes out."""

import base64
import json

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from speechlab.contract import (
    AUDIO_FRAME_MAX_BYTES,
    CANCELLED,
    AskLimiter,
    CancelSynthesis,
    CloseSession,
    FindVoice,
    RealtimeCode,
    RealtimeProtocol,
    RecordUsage,
    SendAudio,
    SendMessage,
    SessionState,
    SessionVoice,
    StartSynthesis,
    VoiceRules,
)

VOICE_ID = "11111111-2222-4333-8444-abcdefabcdef"
VOICE = SessionVoice(VOICE_ID, "m", VoiceRules(frozenset({"wav", "pcm"}), (16_000, 24_000)))
DENIED = SessionVoice(VOICE_ID, "m", VOICE.rules, allowed=False)
IDS = st.none() | st.text(min_size=1, max_size=3)


class Reader:
    """Knows the grammar of section 4.3 and section 6, and nothing of how a session works inside."""

    def __init__(self) -> None:
        self.created = False
        self.closed = False
        self.text = ""
        self.open: dict | None = None  # the tts.audio.start whose usage has not come
        self.audio = b""
        self.chunks = 0
        self.ended = ""  # done, or the error, after which usage must come next
        self.requests: set[str] = set()
        self.recorded: dict[str, str] = {}
        self.codes: list[str] = []

    def read(self, actions) -> None:
        for action in actions:
            assert not self.closed, "nothing goes out after a close"
            match action:
                case SendMessage(message):
                    self.message(json.loads(json.dumps(message)))
                case SendAudio(data):
                    assert self.open["audio_transport"] == "binary"
                    self.sound(data)
                case CloseSession():
                    self.closed = True
                case RecordUsage(record):
                    assert record.request_id not in self.recorded
                    self.recorded[record.request_id] = record.status
                    assert record.request_id in self.requests
                    assert record.audio_bytes == len(self.audio)

    def sound(self, data: bytes) -> None:
        assert self.open
        assert not self.ended
        assert 0 < len(data) <= AUDIO_FRAME_MAX_BYTES
        self.audio += data
        self.chunks += 1

    def message(self, message) -> None:
        assert not self.ended or message["type"] == "tts.usage", "usage comes right after the end"
        match message["type"]:
            case "session.created":
                assert not self.created
                self.created = True
            case "tts.audio.start":
                assert self.created
                assert self.open is None
                assert message["request_id"] not in self.requests
                self.open, self.audio, self.chunks = message, b"", 0
                self.requests.add(message["request_id"])
            case "tts.audio.delta":
                assert self.open["audio_transport"] == "base64_json"
                assert (message["seq"], message["id"]) == (self.chunks, self.open["id"])
                self.sound(base64.b64decode(message["audio"], validate=True))
            case "tts.audio.done":
                assert (message["audio_bytes"], message["chunks"]) == (len(self.audio), self.chunks)
                self.ended = "completed"
            case "tts.usage":
                usage = message["usage"]
                assert message["client_id"] == self.open["id"]
                assert message["request_id"] == self.open["request_id"]
                assert (usage["status"], usage["audio_bytes"]) == (self.ended, len(self.audio))
                assert usage["input_bytes"] == len(self.text.encode())
                assert usage["input_chars"] == len(self.text)
                assert self.recorded[message["request_id"]] == usage["status"]
                self.open, self.ended = None, ""
            case "tts.error":
                self.codes.append(message["code"])
                if message["code"] == "backend_request_failed":
                    assert message.get("id") == self.open["id"]
                    self.ended = "partial_backend_error" if self.audio else "backend_error"
            case kind:
                assert kind == "router.error"


class Sessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.session = RealtimeProtocol("s", "acme/tts", text_limit=5)
        self.reader = Reader()
        self.asked: object = None  # a question that is open
        self.given: StartSynthesis | None = None  # a synthesis that nobody took yet
        self.running = False
        self.draining = False

    def out(self, actions) -> None:
        self.reader.read(actions)
        for action in actions:
            match action:
                case FindVoice() | AskLimiter():
                    assert len(actions) == 1
                    self.asked = action
                case StartSynthesis():
                    assert self.given is None
                    assert not self.running
                    self.given = action
                case CancelSynthesis(request_id):
                    assert self.given is not None
                    assert request_id == self.given.request_id
        if self.reader.closed:
            self.asked, self.given, self.running = None, None, False

    def say(self, **message) -> None:
        if message["type"] == "tts.speak" and not self.session.busy:
            self.reader.text = message["text"]
        self.out(self.session.on_message(json.dumps(message).encode()))

    # Most walks begin where most happens, or few would ever get there.
    @initialize(configured=st.sampled_from([True, True, True, False]), base64_json=st.booleans())
    def begin(self, configured, base64_json) -> None:
        if configured:
            transport = "base64_json" if base64_json else "binary"
            session = {"voice_id": VOICE_ID, "format": "wav", "audio_transport": transport}
            self.say(type="session.update", session=session)
            self.find(VOICE)

    @precondition(lambda self: self.reader.created and not self.session.busy and self.asked is None)
    @rule(
        client_id=IDS,
        text=st.sampled_from(["a", "𠮷"]),
        sizes=st.lists(st.sampled_from([0, 3, 40_000]), max_size=2),
    )
    def speak_well(self, client_id, text, sizes) -> None:
        if self.reader.closed:
            return
        self.say(type="tts.speak", id=client_id, text=text)
        self.decide(None)
        self.take(True)
        for size in sizes:
            self.audio(size)

    @precondition(lambda self: self.asked is None)
    @rule(client_id=IDS, settings=st.sampled_from(["wav", "pcm", "aac"]), transport=st.booleans())
    def update(self, client_id, settings, transport) -> None:
        session = {"voice_id": VOICE_ID, "format": settings}
        if transport:
            session["audio_transport"] = "base64_json"
        self.say(type="session.update", id=client_id, session=session)

    @precondition(lambda self: isinstance(self.asked, FindVoice))
    @rule(voice=st.sampled_from([VOICE, VOICE, VOICE, DENIED, None, "refused"]))
    def find(self, voice) -> None:
        self.asked = None
        if voice == "refused":
            self.out(self.session.on_voice_refused(RealtimeCode.TTS_SERVICE_UNAVAILABLE, "no"))
        else:
            self.out(self.session.on_voice_found(voice))

    @precondition(lambda self: self.asked is None)
    @rule(client_id=IDS, text=st.sampled_from(["a", "abc", "𠮷" * 5, "", " ", "abcdef", None, 5]))
    def speak(self, client_id, text) -> None:
        busy, before = self.session.busy, len(self.reader.codes)
        self.say(type="tts.speak", id=client_id, text=text)
        if self.given is not None:
            assert busy
            assert self.reader.codes[before:] == ["synthesis_in_progress"]

    @precondition(lambda self: isinstance(self.asked, AskLimiter))
    @rule(code=st.sampled_from([None, None, None, RealtimeCode.RATE_LIMITED]))
    def decide(self, code) -> None:
        self.asked = None
        self.out(self.session.on_rejected(code, "no") if code else self.session.on_admitted())

    @precondition(lambda self: self.given and not self.running)
    @rule(available=st.booleans() | st.just(True))
    def take(self, available) -> None:
        if available:
            self.running = True
            self.out(self.session.on_backend_started())
        else:
            self.given = None
            self.out(self.session.backend_unavailable("none"))

    @precondition(lambda self: self.running)
    @rule(size=st.sampled_from([0, 1, 5, AUDIO_FRAME_MAX_BYTES, AUDIO_FRAME_MAX_BYTES + 1]))
    def audio(self, size) -> None:
        self.out(self.session.on_audio(bytes(size)))

    @precondition(lambda self: self.running)
    @rule(fails=st.booleans())
    def end(self, fails) -> None:
        self.given, self.running = None, False
        self.out(self.session.on_failed("x") if fails else self.session.on_finished())

    @precondition(lambda self: self.asked is None)
    @rule(data=st.binary(max_size=4) | st.sampled_from([b"{}", b'{"type": "x"}', b" " * 131_073]))
    def junk(self, data) -> None:
        before = self.session.state
        self.out(self.session.on_message(data))
        assert self.session.state is before

    @rule(really=st.sampled_from([False] * 7 + [True]))
    def drain(self, really) -> None:
        if not really:
            return
        busy = self.session.busy
        self.draining = True
        self.out(self.session.on_service_stopping())
        assert self.reader.closed or busy

    @precondition(lambda self: not self.reader.closed)
    @rule(
        how=st.sampled_from(["on_binary_frame", "on_oversized_frame", "on_disconnect", "on_reader_stalled"]),
        really=st.sampled_from([False] * 7 + [True]),
    )
    def finish(self, how, really) -> None:
        if not really:
            return
        started = self.reader.open
        actions = getattr(self.session, how)()
        self.out(actions)
        assert self.reader.closed == (how != "on_disconnect")
        for late in (
            ["voice_found", VOICE],
            ["admitted"],
            ["backend_started"],
            ["audio", b"x"],
            ["key_invalid"],
        ):
            assert getattr(self.session, f"on_{late[0]}")(*late[1:]) == []
        self.reader.closed = True
        self.asked, self.given, self.running = None, None, False
        if started:
            assert self.reader.recorded[started["request_id"]] == CANCELLED

    @invariant()
    def agrees(self) -> None:
        state = self.session.state
        assert (state is SessionState.CLOSED) == self.reader.closed
        if self.reader.closed:
            assert set(self.reader.recorded) == self.reader.requests, "one record for each attempt"
            return
        assert (state is SessionState.SYNTHESIZING) == self.running == (self.reader.open is not None)
        assert (state is SessionState.CONNECTED) == (not self.reader.created)
        assert not self.draining or self.session.busy, "a drained session stays only for what runs"


TestSessions = pytest.mark.slow(Sessions.TestCase)
# Hypothesis takes the first text that it draws for slow input where it makes its table of characters anew.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
TestSessions.settings = settings(max_examples=60, stateful_step_count=25, **UNTIMED)
