"""The realtime session without a socket: each row of section 3, and settings that are odd.

What a session says is held by the checks of ``speechlab.conform`` (tests/service/test_contract.py), and by two
models, one here and one over sockets (tests/service/routes/test_realtime_model.py).
"""

import json

from speechlab.contract import (
    TRANSITIONS,
    AskLimiter,
    CloseSession,
    FindVoice,
    RealtimeCode,
    RealtimeProtocol,
    SendMessage,
    SessionState,
    SessionVoice,
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


def make() -> RealtimeProtocol:
    return RealtimeProtocol("sess_1", "acme/tts")


def say(machine: RealtimeProtocol, /, **fields):
    return machine.on_message(json.dumps(fields).encode())


def update(machine: RealtimeProtocol, /, voice: SessionVoice | None = VOICE, **fields):
    actions = say(machine, type="session.update", **({"session": GOOD} | fields))
    return machine.on_voice_found(voice) if isinstance(actions[0], FindVoice) else actions


def speak(session: RealtimeProtocol):
    actions = say(session, type="tts.speak", text="Hello.")
    if isinstance(actions[0], AskLimiter):
        session.on_admitted()
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


def in_state(state: SessionState) -> RealtimeProtocol:
    session = make()
    if state is not SessionState.CONNECTED:
        update(session)
    if state is SessionState.SYNTHESIZING:
        speak(session)
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


NO_STREAM = SessionVoice(VOICE_ID, "m", VoiceRules(RULES.formats, streaming=False))
NO_SUCH_STREAM = SessionVoice(VOICE_ID, "m", RULES, streams=lambda _f, _r: False)
SETTINGS = {
    "unknown_voice_id": [({"voice_id": value}, VOICE) for value in (VOICE_ID.replace("-", ""), 5)],
    "unsupported_audio_format": [({"format": ["wav"]}, VOICE)],
    "unsupported_streaming_format": [({}, NO_STREAM), ({}, NO_SUCH_STREAM)],
    "unsupported_sample_rate": [
        ({"sample_rate": value}, VOICE) for value in (16_000.0, "16000", True, 10**40)
    ],
    "invalid_message": [({"temperature": -0.1}, Q)],
}


def test_130_to_136_settings_that_no_check_of_conform_sends():
    for code, cases in SETTINGS.items():
        for settings, voice in cases:
            session = make()
            (error,) = update(session, voice, id="c", session=GOOD | settings)
            assert (error.message["code"], error.message["id"]) == (code, "c"), settings
            assert session.state is SessionState.CONNECTED
