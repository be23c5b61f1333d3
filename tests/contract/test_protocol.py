"""The realtime session without a socket: each row of section 3, each code of 7.2, each order of checks."""

from __future__ import annotations

import base64
import itertools
import json

import pytest

from speechlab.contract import (
    AUDIO_FRAME_MAX_BYTES,
    CANCELLED,
    CORRELATION_ID_MAX_CHARS,
    TRANSITIONS,
    WS_MESSAGE_MAX_BYTES,
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
    parse_service_message,
)

VOICE_ID = "11111111-2222-4333-8444-abcdefabcdef"
RULES = VoiceRules(
    frozenset({"mp3", "wav", "ogg", "pcm", "flac"}),
    (16_000, 24_000),
    streamable=frozenset({"mp3", "wav", "ogg", "pcm"}),
)
VOICE = SessionVoice(VOICE_ID, "model-1", RULES)
Q = SessionVoice(
    VOICE_ID, "q-1", VoiceRules(RULES.formats, RULES.sample_rates, ogg_rate_override=False), temperature=0.5
)
GOOD = {"voice_id": VOICE_ID, "format": "wav"}


def make(**options) -> RealtimeProtocol:
    numbers = itertools.count(1)
    return RealtimeProtocol("sess_1", "acme/tts", new_id=lambda: f"req_{next(numbers)}", **options)


def say(machine: RealtimeProtocol, /, **fields):
    return machine.on_message(json.dumps(fields).encode())


def update(machine: RealtimeProtocol, /, voice: SessionVoice | None = VOICE, **fields):
    actions = say(machine, type="session.update", **({"session": GOOD} | fields))
    if isinstance(actions[0], FindVoice):
        assert len(actions) == 1
        return machine.on_voice_found(voice)
    return actions


def configured(**settings) -> RealtimeProtocol:
    session = make()
    assert sent(update(session, session=GOOD | settings)) == ["session.created"]
    return session


def speak(session: RealtimeProtocol, text: str = "Hello.", **fields):
    actions = say(session, type="tts.speak", text=text, **fields)
    if isinstance(actions[0], AskLimiter):
        actions = session.on_admitted()
        assert [type(action) for action in actions] == [StartSynthesis]
        return session.on_backend_started()
    return actions


def sent(actions) -> list[str]:
    """Names as the table of section 3 writes them."""
    names = []
    for action in actions:
        match action:
            case SendMessage(message):
                parse_service_message(message)
                detail = message.get("code") or message.get("usage", {}).get("status")
                names.append(message["type"] + (f":{detail}" if detail else ""))
            case CloseSession(code):
                names.append(f"close:{int(code)}")
    return names


def only(actions) -> dict:
    assert len(actions) == 1
    return actions[0].message


def in_state(state: SessionState) -> RealtimeProtocol:
    if state is SessionState.CONNECTED:
        return make()
    session = configured()
    if state is SessionState.SYNTHESIZING:
        speak(session, id="first")
    assert session.state is state
    return session


def happens(session: RealtimeProtocol, trigger: str, condition: str):
    match trigger, condition:
        case "session.update", "invalid":
            return update(session, None)
        case "session.update", _:
            return update(session)
        case "tts.speak", "rejected before a backend":
            assert say(session, type="tts.speak", text="a") == [AskLimiter("a")]
            return session.on_rejected(RealtimeCode.RATE_LIMITED, "too fast")
        case "tts.speak", _:
            return speak(session)
        case "backend finishes", _:
            session.on_audio(b"ab")
            return session.on_finished()
        case "backend fails", condition:
            if condition == "some audio":
                session.on_audio(b"ab")
            return session.on_failed("broken")
        case "binary frame", _:
            return session.on_binary_frame()
        case "control frame over the read limit", _:
            return session.on_oversized_frame()
    raise AssertionError((trigger, condition))


def test_each_row_of_section_3_is_what_the_machine_does():
    for row in TRANSITIONS:
        for state in row.states:
            session = in_state(state)
            names = sent(happens(session, row.trigger, row.condition))
            assert len(names) == len(row.sends), row
            for name, expected in zip(names, row.sends, strict=True):
                assert name == expected or name.startswith(expected + ":"), row
            assert session.state is (row.next or state), row


def test_126_127_session_created_has_every_field_and_no_id():
    config = {"voice_id": VOICE_ID, "format": "wav", "sample_rate": 24_000, "model": "model-1"}
    for voice_id in (VOICE_ID, VOICE_ID.upper()):
        created = only(update(make(), id="u1", session={"voice_id": voice_id, "format": "wav"}))
        session = {"id": "sess_1", "service": "acme/tts", **config}
        assert created == {"type": "session.created", "session": session}


def test_128_129_a_second_update_is_refused_and_a_failed_one_changes_nothing():
    session = make()
    for voice, settings in ((None, {}), (VOICE, {"format": "aiff"}), (VOICE, {"sample_rate": 1})):
        update(session, voice, session=GOOD | settings)
        assert (session.state, session.config) == (SessionState.CONNECTED, None)
    assert sent(update(session)) == ["session.created"]
    before = session.config
    for fields in ({"session": GOOD | {"format": "mp3"}}, {"session": 5}, {"session": {}}):
        error = only(update(session, id="again", **fields))
        assert (error["code"], error["id"]) == ("session_already_configured", "again")
    assert session.config == before
    speak(session)
    assert sent(update(session)) == ["tts.error:session_already_configured"]
    assert session.state is SessionState.SYNTHESIZING


WAV_ALONE = SessionVoice(VOICE_ID, "m", VoiceRules(frozenset({"wav"})))
NO_STREAM = SessionVoice(VOICE_ID, "m", VoiceRules(RULES.formats, streaming=False))
NO_SUCH_STREAM = SessionVoice(VOICE_ID, "m", RULES, streams=lambda _f, _r: False)
ONE_RATE = SessionVoice(VOICE_ID, "m", VoiceRules(RULES.formats, (24_000,)))
SETTINGS = {
    "missing_voice_id": [({"voice_id": value}, VOICE) for value in (None, "")],
    "unknown_voice_id": [
        ({}, None),
        *(({"voice_id": value}, VOICE) for value in ("nobody", VOICE_ID + "0", VOICE_ID.replace("-", ""), 5)),
    ],
    "unsupported_audio_format": [
        ({"format": "mp3"}, WAV_ALONE),
        *(({"format": value}, VOICE) for value in (None, "aac", "WAV", ["wav"])),
    ],
    "unsupported_streaming_format": [({"format": "flac"}, VOICE), ({}, NO_STREAM), ({}, NO_SUCH_STREAM)],
    "unsupported_sample_rate": [
        *(({"sample_rate": value}, VOICE) for value in (44_100, -1, 16_000.0, "16000", True, 10**40)),
        ({"sample_rate": 24_000}, ONE_RATE),
        ({"sample_rate": 24_000, "format": "ogg"}, Q),
    ],
    "unsupported_audio_transport": [({"audio_transport": value}, VOICE) for value in ("json", "Binary", 1)],
    "invalid_message": [
        ({"temperature": "warm"}, VOICE),
        ({"temperature": True}, Q),
        ({"temperature": -0.1}, Q),
    ],
}


def test_126_132_134_settings_in_force():
    for settings, voice, rate, temperature in (
        ({}, VOICE, 24_000, None),
        ({"sample_rate": 0}, VOICE, 24_000, None),
        ({"sample_rate": None, "temperature": None, "audio_transport": None}, VOICE, 24_000, None),
        ({"format": "ogg", "sample_rate": 16_000}, VOICE, 16_000, None),
        ({"format": "ogg"}, Q, 24_000, 0.5),
        ({"sample_rate": 16_000}, Q, 16_000, 0.5),
        ({"temperature": 0.0}, Q, 24_000, 0.0),
        ({"temperature": 0}, Q, 24_000, 0.0),
        ({"temperature": 1.5}, VOICE, 24_000, None),
        ({"unknown": {"field": 1}}, VOICE, 24_000, None),
    ):
        session = make()
        assert sent(update(session, voice, session=GOOD | settings)) == ["session.created"], settings
        assert (session.config.sample_rate, session.config.temperature) == (rate, temperature), settings


def test_130_to_136_settings_that_cannot_be():
    for code, cases in SETTINGS.items():
        for settings, voice in cases:
            session = make()
            error = only(update(session, voice, id="c", session=GOOD | settings))
            assert (error["type"], error["code"], error["id"]) == ("tts.error", code, "c"), settings
            assert error["message"]
            assert session.state is SessionState.CONNECTED
    for value in (None, 5, [], "wav"):
        assert sent(update(make(), session=value)) == ["tts.error:invalid_message"]
    assert sent(say(make(), type="session.update")) == ["tts.error:invalid_message"]


def test_135_access_and_availability():
    session = make()
    denied = SessionVoice(VOICE_ID, "m", RULES, allowed=False)
    assert sent(update(session, denied)) == ["tts.error:service_access_denied"]
    say(session, type="session.update", session=GOOD, id="x")
    gone = session.on_voice_refused(RealtimeCode.TTS_SERVICE_UNAVAILABLE, "no engine")
    assert (sent(gone), only(gone)["id"]) == (["tts.error:tts_service_unavailable"], "x")
    assert session.state is SessionState.CONNECTED


def test_137_ids():
    for value in (5, "", True, ["a"], "𠮷" * (CORRELATION_ID_MAX_CHARS + 1)):
        code = "id_too_long" if isinstance(value, str) and value else "invalid_id"
        for kind in ("session.update", "tts.speak"):
            for session in (make(), configured()):
                error = only(say(session, type=kind, id=value, session=GOOD, text="a"))
                assert (error["code"], "id" in error) == (code, False), value
    for value in ("𠮷" * CORRELATION_ID_MAX_CHARS, " ", "a\x00b", None):
        assert only(speak(configured(), id=value))["id"] == value


ORDER = ["id", "state", "session", "voice", "access", "format", "streamable", "rate", "transport", "temp"]
FAULTS = {
    "id": ({"id": 5}, {}, "invalid_id"),
    "session": ({"session": 5}, {}, "invalid_message"),
    "voice": ({}, {"voice_id": ""}, "missing_voice_id"),
    "format": ({}, {"format": "aac"}, "unsupported_audio_format"),
    "streamable": ({}, {"format": "flac"}, "unsupported_streaming_format"),
    "rate": ({}, {"sample_rate": "fast"}, "unsupported_sample_rate"),
    "transport": ({}, {"audio_transport": "x"}, "unsupported_audio_transport"),
    "temp": ({}, {"temperature": "x"}, "invalid_message"),
}


# One field cannot have two faults at once; a voice that is not found cannot be denied either.
PAIRS = [
    pair
    for pair in itertools.combinations(ORDER, 2)
    if pair != ("format", "streamable") and not (pair[0] == "session" and pair[1] != "access")
]


def test_138_of_two_faults_the_first_in_order_is_told():
    codes = {"state": "session_already_configured", "access": "service_access_denied"}
    for pair in PAIRS:
        top, inner = {}, {}
        for name in reversed(pair):
            if name not in codes:
                top |= FAULTS[name][0]
                inner |= FAULTS[name][1]
        session = configured() if "state" in pair else make()
        voice = SessionVoice(VOICE_ID, "m", RULES, allowed="access" not in pair)
        error = only(update(session, voice, **{"session": GOOD | inner} | top))
        assert error["code"] == (codes.get(pair[0]) or FAULTS[pair[0]][2]), pair


def test_140_141_145_146_a_binary_synthesis():
    session = configured(format="mp3", sample_rate=16_000)
    sound = {"format": "mp3", "content_type": "audio/mpeg", "sample_rate": 16_000}
    sound |= {"voice_id": VOICE_ID, "model": "model-1", "audio_transport": "binary"}
    counted = {"input_chars": 3, "input_bytes": 6, "audio_bytes": 5, "status": "completed", "final": True}
    requests = set()
    for number in (1, 2):
        start = only(speak(session, "𠮷 a", id=f"c{number}"))
        of = {"request_id": start["request_id"]}
        requests.add(start["request_id"])
        assert start == {"type": "tts.audio.start", "id": f"c{number}", **of, **sound}
        assert session.on_audio(b"abc") == [SendAudio(b"abc")]
        assert session.on_audio(b"") == []
        assert session.on_audio(b"de") == [SendAudio(b"de")]
        done, record, usage = session.on_finished()
        totals = {"audio_bytes": 5, "chunks": 2}
        assert done.message == {"type": "tts.audio.done", "id": f"c{number}", **of, **totals}
        whose = {"session_id": "sess_1", "client_id": f"c{number}", "model": "model-1"}
        assert usage.message == {"type": "tts.usage", **of, **whose, "usage": counted}
        assert (record.record.status, record.record.audio_bytes) == ("completed", 5)
        assert record.record.service == "acme/tts"
        assert not session.busy
    assert len(requests) == 2


def test_142_143_144_base64_deltas_count_from_zero():
    session = configured(audio_transport="base64_json")
    data = bytes(range(256)) * (AUDIO_FRAME_MAX_BYTES // 256) + b"tail"
    for _ in range(2):
        speak(session)
        deltas = [action.message for piece in (data, b"x") for action in session.on_audio(piece)]
        assert [delta["seq"] for delta in deltas] == [0, 1, 2]
        assert b"".join(base64.b64decode(delta["audio"], validate=True) for delta in deltas) == data + b"x"
        done = session.on_finished()[0].message
        assert (done["audio_bytes"], done["chunks"]) == (len(data) + 1, 3)


def test_147_148_failures_before_and_in_the_middle():
    for pieces, status in (([], "backend_error"), ([b"abc"], "partial_backend_error")):
        session = configured()
        start = only(speak(session, id="s"))
        for piece in pieces:
            session.on_audio(piece)
        error, record, usage = session.on_failed("it broke")
        told = {"code": "backend_request_failed", "message": "it broke"}
        assert error.message == {"type": "tts.error", "id": "s", **told}
        counted = usage.message["usage"]
        assert counted["status"] == record.record.status == status
        assert counted["audio_bytes"] == record.record.audio_bytes == len(b"".join(pieces))
        assert usage.message["request_id"] == start["request_id"]
        assert sent(speak(session)) == ["tts.audio.start"]


def test_139_150_151_texts_that_cannot_be():
    for fields, code in (
        *((fields, "empty_text") for fields in ({}, {"text": None}, {"text": ""}, {"text": " \u3000\n"})),
        *(({"text": text}, "invalid_message") for text in (5, ["a"])),
        ({"text": "a" * 5_001}, "tts_text_too_long"),
    ):
        for session, told in ((configured(), code), (make(), "session_not_configured")):
            before = session.state
            error = only(say(session, type="tts.speak", id="s", **fields))
            assert (error["code"], error["id"]) == (told, "s")
            assert (session.state, session.busy) == (before, False)


def test_029_030_159_the_limit_counts_code_points_and_can_be_set():
    text = "\\ud842\\udfb7" * 5_000
    message = f'{{"type": "tts.speak", "text": "{text}"}}'.encode()
    assert len(message) > 60_000
    assert configured().on_message(message) == [AskLimiter("𠮷" * 5_000)]
    session = make(text_limit=3)
    update(session)
    assert sent(say(session, type="tts.speak", text="abcd")) == ["tts.error:tts_text_too_long"]
    assert sent(speak(session, "abc")) == ["tts.audio.start"]


def test_149_one_at_a_time_even_before_a_backend_took_it():
    session = configured()
    assert say(session, type="tts.speak", text="a", id="one") == [AskLimiter("a")]
    session.on_admitted()
    assert session.busy
    for _ in range(2):
        error = only(speak(session, id="two"))
        assert (error["code"], error["id"]) == ("synthesis_in_progress", "two")
    assert sent(session.on_backend_started()) == ["tts.audio.start"]
    assert only(speak(session, text=""))["code"] == "synthesis_in_progress"
    session.on_audio(b"a")
    _, record, usage = session.on_finished()
    assert (record.record.client_id, usage.message["client_id"]) == ("one", "one")


def test_150_152_a_rejected_text_is_one_error():
    for code in (
        RealtimeCode.RATE_LIMITED,
        RealtimeCode.SERVICE_RATE_LIMITED,
        RealtimeCode.RATE_LIMITER_UNAVAILABLE,
        RealtimeCode.SERVICE_RATE_LIMITER_UNAVAILABLE,
        RealtimeCode.BACKEND_UNAVAILABLE,
    ):
        session = configured()
        say(session, type="tts.speak", text="a", id="s")
        if code is RealtimeCode.BACKEND_UNAVAILABLE:
            session.on_admitted()
            actions = session.backend_unavailable("none")
        else:
            actions = session.on_rejected(code, "no")
        assert (only(actions)["code"], only(actions)["id"]) == (code, "s")
        assert sent(speak(session)) == ["tts.audio.start"]


def test_153_a_client_that_left_is_recorded_and_told_nothing():
    session = configured()
    speak(session, id="s")
    session.on_audio(b"abc")
    cancel, record = session.on_disconnect()
    assert isinstance(cancel, CancelSynthesis)
    assert isinstance(record, RecordUsage)
    assert (record.record.status, record.record.audio_bytes) == (CANCELLED, 3)
    assert session.state is SessionState.CLOSED
    late = (session.on_audio(b"x"), session.on_finished(), session.on_failed("x"), session.on_disconnect())
    assert late == ([], [], [], [])
    assert session.on_message(b"{}") == session.on_service_stopping() == session.on_binary_frame() == []
    for admitted, kinds in ((True, [CancelSynthesis]), (False, [])):  # one in the queue costs nothing
        session = configured()
        say(session, type="tts.speak", text="a")
        if admitted:
            session.on_admitted()
        assert [type(action) for action in session.on_disconnect()] == kinds
        assert session.on_admitted() == []


def test_123_163_draining_and_sessions_that_are_too_old():
    for end, code in (
        (RealtimeProtocol.on_service_stopping, 1012),
        (RealtimeProtocol.on_session_too_old, 1001),
    ):
        idle = configured()
        assert sent(end(idle)) == [f"close:{code}"]
        assert idle.state is SessionState.CLOSED
        busy, failing, refused = configured(), configured(), configured()
        for session in (busy, failing):
            speak(session)
            assert end(session) == []
            assert session.on_service_stopping() == []
        assert busy.on_audio(b"a") == [SendAudio(b"a")]
        assert sent(busy.on_finished()) == ["tts.audio.done", "tts.usage:completed", f"close:{code}"]
        assert sent(failing.on_failed("x"))[-2:] == ["tts.usage:backend_error", f"close:{code}"]
        say(refused, type="tts.speak", text="a")
        end(refused)
        told = sent(refused.on_rejected(RealtimeCode.RATE_LIMITED, "no"))
        assert told == ["tts.error:rate_limited", f"close:{code}"]
    assert sent(make().on_service_stopping()) == ["close:1012"]
    session = configured()
    speak(session)
    kinds = [type(action) for action in session.on_reader_stalled()]
    assert kinds == [CancelSynthesis, RecordUsage, CloseSession]
    assert configured().on_configure_timeout() == []
    assert sent(make().on_configure_timeout()) == ["close:1008"]


STATES = (SessionState.CONNECTED, SessionState.CONFIGURED, SessionState.SYNTHESIZING)
JUNK = {
    "invalid_json": [
        b"", b"{", b"\xef\xbb\xbf{}", b"\xff\xfe", b'{"type": "tts.speak", "text": "\\ud800"}',
        b'{"type": "tts.speak", "x": NaN}', b"[" * 100_000,
    ],
    "missing_message_type": [b"[]", b'"tts.speak"', b"null", b"{}", b'{"type": null}', b'{"type": 5}'],
    "unknown_message_type": [b'{"type": ""}', b'{"type": "TTS.speak"}', b'{"type": "session.created"}'],
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_157_router_errors_leave_the_session_as_it_is(state):
    session = in_state(state)
    for code, messages in JUNK.items():
        for data in messages:
            error = only(session.on_message(data))
            assert (error["type"], error["code"]) == ("router.error", code), data
            assert set(error) == {"type", "code", "message"}
            assert session.state is state


@pytest.mark.parametrize("state", STATES)
def test_159_the_two_size_limits(state):
    session = in_state(state)
    fits = b'{"type": "x"}'.ljust(WS_MESSAGE_MAX_BYTES)
    assert sent(session.on_message(fits)) == ["router.error:unknown_message_type"]
    assert sent(session.on_message(fits + b" ")) == ["tts.error:tts_control_frame_too_large"]
    assert session.state is state
    assert sent(session.on_oversized_frame()) == ["close:1009"]


def test_136_a_key_that_is_gone_ends_the_session_with_one_error():
    unconfigured, idle = make(), configured()
    say(unconfigured, type="session.update", id="u", session=GOOD)
    say(idle, type="tts.speak", id="s", text="a")
    for session, client_id in ((unconfigured, "u"), (idle, "s")):
        actions = session.on_key_invalid()
        assert sent(actions) == ["tts.error:invalid_session", "close:1008"]
        assert actions[0].message["id"] == client_id
        assert (session.state, session.on_key_invalid()) == (SessionState.CLOSED, [])


def test_questions_are_answered_before_the_next_message():
    session = make()
    say(session, type="session.update", session=GOOD)
    with pytest.raises(RuntimeError, match="report"):
        session.on_message(b"{}")
    assert sent(session.on_service_stopping()) == ["close:1012"]
    assert session.on_voice_found(VOICE) == session.on_voice_refused(RealtimeCode.INVALID_SESSION, "x") == []
