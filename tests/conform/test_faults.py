"""The tool can fail: each fault is planted into a service's replies and has to be caught."""

import base64
import json

import pytest

from speechlab.conform import Verdict, list_checks, to_json
from support.clients import KEY
from support.proxy import BINARY, CLOSE, TEXT, Fault, Reply

FAULTS: dict[str, tuple[type[Fault], tuple[str, ...]]] = {}


def plant(name: str, *checks: str, base: type[Fault] = Fault, **methods) -> None:
    """Note a fault by its methods, and the checks that have to catch it."""
    FAULTS[name] = type(name, (base,), methods), checks


class _Messages(Fault):
    """Changes the service's messages: each gives one, several or none."""

    def down(self, kind, data):
        if kind != TEXT:
            return [(kind, data)]
        return [(TEXT, json.dumps(each).encode()) for each in self.message(json.loads(data))]


class _Events(Fault):
    def answered(self, request, reply):
        if reply.headers.get("content-type", "").startswith("text/event-stream"):
            self.events(reply)


def plant_body(name: str, *checks: str, path="", status=None, holding=b"", to_status=None, **fields) -> None:
    """Plant other fields in the bodies of some replies; a function makes one from the body as it was."""

    def answered(self, request, reply):
        if request.path.startswith(path) and status in {None, reply.status} and holding in reply.body:
            body = reply.json()
            made = {key: value(body) if callable(value) else value for key, value in fields.items()}
            reply.set(body | made, to_status)

    plant(name, *checks, answered=answered)


def plant_reply(name: str, *checks: str, when, **changes) -> None:
    """Plant other attributes or headers in the replies for which a function holds."""

    def answered(self, request, reply):
        if when(request, reply):
            for key, value in changes.items():
                if key.startswith("_"):
                    reply.headers[key[1:].replace("_", "-")] = value
                else:
                    setattr(reply, key, value(reply) if callable(value) else value)

    plant(name, *checks, answered=answered)


def plant_events(name: str, *checks: str, change) -> None:
    plant(name, *checks, base=_Events, events=lambda self, reply: setattr(reply, "body", change(reply.body)))


def plant_message(name: str, *checks: str, of: str, change) -> None:
    """Plant a change of the messages of a type, or with a code: what a function makes of each, or it itself."""

    def message(self, message):
        if of not in {message["type"], message.get("code")}:
            return [message]
        made = change(message)
        return made if isinstance(made, list) else [message if made is None else made]

    plant(name, *checks, base=_Messages, message=message)


def plant_lost_fields(name: str, *checks: str, path: str, lost: tuple[str, ...]) -> None:
    """Plant requests that reach the service without some fields."""

    def asked(self, request):
        fields = request.json()
        if request.path.startswith(path) and any(fields.pop(each, 0) not in (0, None) for each in lost):
            request.body = json.dumps(fields).encode()

    plant(name, *checks, asked=asked)


def is_audio(kind: str):
    return lambda request, reply: reply.headers.get("content-type") == f"audio/{kind}"


def refusal(error: dict) -> Reply:
    return Reply(400, {"content-type": "application/json"}, json.dumps(error).encode())


# HTTP, who is let in


def _let_in(self, request):
    names = {name.lower() for name, _ in request.headers}
    if "authorization" not in names and request.method == "GET":
        return Reply(200, {"content-type": "application/json"}, b'{"voices": []}')
    return None


def _body_before_key(self, request, reply):
    if reply.status == 401 and request.body == b"{":
        reply.set(reply.json() | {"code": 100}, 400)


# fmt: off
plant("KeyNotNeeded", "1-key-needed", asked=_let_in)
plant_body("OtherWords401", "3-401-body", status=401, error="go away")
plant_body("OtherNumber401", "3-401-body", status=401, code=401)
plant("BodyBeforeKey", "6-before-the-body", answered=_body_before_key)
plant_reply("PlainTextErrors", "9-body",
    when=lambda _, reply: reply.status == 400, _content_type="text/plain", body=b"bad request")

# HTTP, voices and speech


def _change_voices(change):
    return lambda body: [change(voice) for voice in body["voices"]]


def _code_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _too_many_code_units(self, request):
    too_long = _code_units(str(request.json().get("text", ""))) > 5_000
    return refusal({"code": 400, "error": "too long"}) if too_long else None


def _too_many_code_units_said(self, kind, data):
    message = json.loads(data) if kind == TEXT else {}
    if _code_units(message.get("text", "")) > 5_000:
        error = {"type": "tts.error", "code": "tts_text_too_long", "message": "too long"}
        return [], [(TEXT, json.dumps(error).encode())]
    return [(kind, data)], []


def _shorten(self, request):
    fields = request.json()
    if len(str(fields.get("text", ""))) > 5_000:
        request.body = json.dumps(fields | {"text": "Hello."}).encode()


def _no_error_body(self, request, reply):
    if reply.status == 400:
        reply.set({"detail": "field required"}, 422)


plant_body("VoicesWithoutStreaming", "22-fields", path="/tts/voices",
    voices=_change_voices(lambda voice: {k: v for k, v in voice.items() if k != "streaming"}))
plant_body("OtherGenders", "23-values", path="/tts/voices",
    voices=_change_voices(lambda voice: voice | {"gender": voice["gender"].lower()}))
plant("FrameworkValidation", "27-voice-id", "28-text", "31-format", answered=_no_error_body)
plant("Utf16Limit", "29-code-points", "151-most-text",
    asked=_too_many_code_units, up=_too_many_code_units_said)
plant("NoTextLimit", "29-too-long", asked=_shorten)
plant_reply("OtherDefaultRate", "34-default-rate", when=lambda _, reply: reply.body[:4] == b"RIFF",
    body=lambda reply: reply.body[:24] + (22_050).to_bytes(4, "little") + reply.body[28:])
plant_lost_fields("RatesIgnored", "36-odd-rate", path="/tts", lost=("sample_rate",))
plant_reply(
    "CrashOnJson", "41-hostile", status=500, body=b'{"code": 500, "error": "Traceback (most recent call last)"}',
    when=lambda request, _: request.path == "/tts" and request.body[:1] == b"[", _content_type="application/json",
)  # fmt: skip
plant_reply("WrongType", "42-type", when=is_audio("mpeg"), _content_type="audio/mp3")
plant_reply("JsonAroundAudio", "42-type", when=is_audio("flac"),
    body=lambda reply: json.dumps({"audio": base64.b64encode(reply.body).decode()}).encode())
plant_reply("NoContentLength", "43-whole", framing="close",
    when=lambda request, reply: request.path == "/tts" and reply.status == 200)
ENGINE_FAILED = b'{"code": 500, "error": "engine failed"}'
plant_reply("StreamInOnePiece", "43-chunked", when=lambda *_: True, framing="length")
plant_reply("NoFinalChunk", "43-chunked", when=lambda *_: True, final=False)
for _name, _changes in (
    ("JsonAfterTheEnd", {"tail": ENGINE_FAILED}),
    ("JsonInTheSound", {"body": lambda reply: reply.body + ENGINE_FAILED}),
):
    plant_reply(_name, "43-chunked", when=lambda _, reply: reply.framing == "chunked", **_changes)

# HTTP, recognition

plant_body(
    "OtherWordsForNoAudio", "55-no-audio", holding=b"No audio data provided", error="audio is required"
)
plant_body("LaxBase64", "56-no-base64", holding=b"Invalid base64", error="No audio data provided")
plant_body("ShortBodyWithOtherCode", "10-asr-body", path="/asr", status=400, code=7)
plant_body("SureBeyondOne", "54-happy", path="/asr", status=200, confidence=99.0)
plant_body("SegmentsPlusText", "78-form", holding=b'"segments"', text="all of it")
plant_body("IgnoresLanguage", "66-language", path="/asr", status=200, language="en")  # whatever was specified
plant_lost_fields("RangesNotHeld", "69-ranges", path="/asr", lost=("top_p",))


def _ends_excluded(self, request, reply):
    if request.json().get("segment_padding") == 5_000:
        reply.set({"code": 400, "error": "segment_padding is below 5000"}, 400)


plant("EndsExcluded", "75-padding", answered=_ends_excluded)

# HTTP, translation


def _without_usage(self, request, reply):
    if b'"usage"' in reply.body:
        reply.set({key: value for key, value in reply.json().items() if key != "usage"})


def _any_keywords(self, request, reply):
    if request.body.count(b'name="keywords"') > 20:
        reply.set({"id": "trans_1"}, 200)


def _each_id(body: bytes) -> bytes:
    blocks = body.split(b"\n\n")
    return b"\n\n".join(block.replace(b"trans_", b"trans_%d" % n) for n, block in enumerate(blocks))


def _over_two_lines(body: bytes) -> bytes:
    return body.replace(b', "object"', b',\ndata: "object"').replace(b',"object"', b',\ndata: "object"')


plant_reply("OtherIds", "100-form", when=lambda _, reply: b'"trans_' in reply.body,
    body=lambda reply: reply.body.replace(b'"trans_', b'"chatcmpl-'))
plant_body("SourceTrimmed", "101-source", holding=b'"transcription"',
    transcription=lambda body: body["transcription"].replace("\r\n", "\n"))
plant("NoUsage", "102-usage", answered=_without_usage)
plant("AnyKeywords", "94-keywords", answered=_any_keywords)
plant_reply("RefusedWithinTheStream", "112-refused-first", status=200, _content_type="text/event-stream",
    when=lambda request, reply: reply.status == 400 and b'name="stream"' in request.body,
    body=b'data: {"error": "text is missing"}\n\n')
plant_events("NoDone", "107-done", change=lambda body: body.replace(b"data: [DONE]\n\n", b""))
plant_events("TwoDones", "107-done", change=lambda body: body + b"data: [DONE]\n\n")
plant_events("ChunkAfterDone", "107-done", change=lambda body: body + b'data: {"id": "trans_1"}\n\n')
plant_events(
    "FirstWithoutSource", "105-first", change=lambda body: body.replace(b'"transcription"', b'"source"', 1)
)
plant_events("AnIdForEachChunk", "104-chunks", change=_each_id)
plant_events("EventsOverTwoLines", "103-events", change=_over_two_lines)
plant_events(
    "WrongSum", "106-usage", change=lambda body: body.replace(b'"total_tokens":', b'"total_tokens":9')
)
plant_reply("EventsAsJson", "103-events", _content_type="application/json",
    when=lambda _, reply: reply.headers.get("content-type", "").startswith("text/event-stream"))

# The realtime endpoint

plant_reply("EmptyRefusal", "115-structured", when=lambda request, _: request.path.startswith("/ws"),
    body=b"", _content_type="text/plain")
plant("AnyOrigin", "121-origin", asked=lambda self, request: request.drop("origin"))
plant_reply("WrongHandshakeCode", "119-no-upgrade", when=lambda *_: True,
    body=lambda reply: reply.body.replace(b"invalid_websocket_upgrade", b"bad_request"))
plant("Greeting", "125-silent", opened=lambda self: [(TEXT, b'{"type": "hello"}')])
plant_message("CreatedWithoutModel", "126-created", of="session.created",
    change=lambda message: message["session"].pop("model") and message)
plant_message("ZeroRateEchoed", "126-created", of="session.created",
    change=lambda message: message | {"session": message["session"] | {"sample_rate": 0}})
plant_message("SecondUpdateTaken", "128-again", of="session_already_configured",
    change=lambda _: {"type": "session.created", "session": {}})
plant_message("WrongIdEchoed", "137-id", of="invalid_id", change=lambda message: message | {"id": 5})


class UsageBeforeDone(_Messages):
    held = None

    def message(self, message):
        if message["type"] == "tts.audio.done":
            self.held = message
            return []
        return [message, self.held] if message["type"] == "tts.usage" else [message]


class DoneBeforeAudio(_Messages):
    def message(self, message):
        if message["type"] == "tts.audio.start":
            ids = {"id": message.get("id"), "request_id": message["request_id"]}
            return [message, {"type": "tts.audio.done", **ids, "audio_bytes": 0, "chunks": 0}]
        return [] if message["type"] == "tts.audio.done" else [message]


class AlwaysBinary(Fault):
    def down(self, kind, data):
        message = json.loads(data) if kind == TEXT else {}
        if message.get("type") == "tts.audio.delta":
            return [(BINARY, base64.b64decode(message["audio"]))]
        return [(kind, data)]


class AudioLost(Fault):
    lost = 0

    def down(self, kind, data):
        self.lost += kind == BINARY
        return [] if kind == BINARY and self.lost == 1 else [(kind, data)]


class SecondTextSwallowed(Fault):
    seen = 0

    def up(self, kind, data):
        self.seen += b"tts.speak" in data
        return ([], []) if self.seen == 2 and b"tts.speak" in data else ([(kind, data)], [])


FAULTS |= {
    "UsageBeforeDone": (UsageBeforeDone, ("140-sequence",)),
    "DoneBeforeAudio": (DoneBeforeAudio, ("140-sequence", "144-done")),
    "AlwaysBinary": (AlwaysBinary, ("142-transports",)),
    "AudioLost": (AudioLost, ("144-done",)),
    "SecondTextSwallowed": (SecondTextSwallowed, ("149-busy",)),
}
plant_message("StartWithoutType", "141-start", of="tts.audio.start",
    change=lambda message: message.pop("content_type") and message)
plant_message(
    "RateOfNoNumber",
    "141-start",
    of="tts.audio.start",
    change=lambda message: message | {"sample_rate": "faulty"},
)
plant_message(
    "SeqGap", "143-seq", of="tts.audio.delta", change=lambda message: message | {"seq": message["seq"] * 2}
)
plant_message("BytesMiscounted", "144-done", of="tts.audio.done",
    change=lambda message: message | {"audio_bytes": message["audio_bytes"] + 1})


def _count_utf16(message):
    message["usage"]["input_chars"] += 1 if message["client_id"] else 0


plant_message("Utf16Counted", "145-usage", of="tts.usage", change=_count_utf16)
plant_message("UsageNotFinal", "145-usage", of="tts.usage",
    change=lambda message: message["usage"].pop("final") and message)
plant_message("IdNotEchoed", "146-ids", of="tts.audio.done", change=lambda message: message | {"id": None})
plant("OneRequestId", "146-ids", base=_Messages,
    message=lambda self, message: [
        message | {"request_id": "req_1"} if "request_id" in message else message
    ])
for _code in ("empty_text", "tts_text_too_long"):
    plant_message(
        f"UsageForRefused_{_code}", "150-one-error", of=_code,
        change=lambda message: [message, {"type": "tts.usage", "usage": {}}],
    )  # fmt: skip
plant_message(
    "OtherCodeForEmpty",
    "151-texts",
    of="empty_text",
    change=lambda message: message | {"code": "invalid_message"},
)
plant_message(
    "RouterErrorsAsTts",
    "157-router",
    of="router.error",
    change=lambda message: message | {"type": "tts.error"},
)
plant("BinaryIgnored", "158-binary", up=lambda self, kind, data: ([(kind, data)] * (kind != BINARY), []))
for _name, _check, _other in (
    ("BinaryClosesOtherwise", "158-binary", 1008),
    ("HugeClosesOtherwise", "159-huge", 1011),
):
    plant(
        _name, _check,
        down=lambda self, kind, data, other=_other: [(kind, other.to_bytes(2, "big") if kind == CLOSE else data)],
    )  # fmt: skip
# fmt: on


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_caught(name, spoiled):
    cls, meant = FAULTS[name]
    outcomes, report = spoiled(cls(), *meant, timeout_s=2.0 if name == "BinaryIgnored" else 30.0)
    for check in meant:
        outcome = outcomes[check]
        assert outcome.verdict is Verdict.FAILS, (check, outcome)
        assert all(finding.expected for finding in outcome.findings)
        evidence = "faulty" if name == "RateOfNoNumber" else ""
        assert any(finding.came and evidence in finding.came for finding in outcome.findings)
    assert not report.has_passed()
    said = json.dumps(to_json(report))
    assert KEY.partition(":")[2] not in said


class NothingAsDescribed(_Events):
    """Of a form that nobody would think of: a run goes on all the same."""

    def asked(self, request):
        if request.path == "/tts/voices":
            odd = {"id": "x", "formats": ["opus", 5], "sample_rates": "many", "streaming": True}
            return Reply(200, {"content-type": "application/json"}, json.dumps([odd, 5]).encode())
        return None

    def events(self, reply):
        reply.body = b'data: {"choices": ["text"]}\n\ndata: [DONE]\n\n'


@pytest.mark.slow
def test_replies_of_any_form_do_not_end_a_run(spoiled):
    names = [
        check.id for check in list_checks() if check.quick and check.area not in {"recognition", "segments"}
    ]
    outcomes, report = spoiled(NothingAsDescribed(), *names, voice=None)
    assert len(outcomes) == len(names)
    assert outcomes["22-fields"].verdict is outcomes["104-chunks"].verdict is Verdict.FAILS
    assert outcomes["107-no-finish"].verdict is Verdict.ADVISORY
    assert not report.has_passed()


@pytest.mark.slow
def test_without_a_fault_the_proxy_is_not_noticed(spoiled):
    names = {name for _, meant in FAULTS.values() for name in meant}
    outcomes, _ = spoiled(Fault(), *names)
    assert {name: outcome for name, outcome in outcomes.items() if outcome.verdict is not Verdict.HOLDS} == {}
    assert set(outcomes) == names


def test_119_a_gateway_that_lets_old_handshakes_in_is_noticed(spoiled):
    # The proxy writes HTTP/1.1 over whatever came, so that an old handshake is upgraded.
    outcomes, _ = spoiled(Fault(), "119-http-1.0")
    assert outcomes["119-http-1.0"].verdict is Verdict.ADVISORY
    assert "101" in outcomes["119-http-1.0"].findings[0].came
