"""The tool can fail: each fault is seeded into a service's replies and has to be caught."""

from __future__ import annotations

import base64
import json

import pytest

from speechlab.conform import Verdict, list_checks, to_json
from support.clients import KEY
from support.proxy import BINARY, CLOSE, TEXT, Fault, Reply

FAULTS: dict[str, tuple[type[Fault], tuple[str, ...]]] = {}


def seeded(*names):
    def register(cls):
        FAULTS[cls.__name__] = (cls, names)
        return cls

    return register


# HTTP, who is let in


@seeded("1-key-needed")
class KeyNotNeeded(Fault):
    def asked(self, request):
        if (
            not any(name.lower() == "authorization" for name, _ in request.headers)
            and request.method == "GET"
        ):
            return Reply(200, {"content-type": "application/json"}, b'{"voices": []}')
        return None


@seeded("3-401-body")
class OtherWords401(Fault):
    def answered(self, request, reply):
        if reply.status == 401:
            reply.set(reply.json() | {"error": "go away"})


@seeded("3-401-body")
class OtherNumber401(Fault):
    def answered(self, request, reply):
        if reply.status == 401:
            reply.set(reply.json() | {"code": 401})


@seeded("6-before-the-body")
class BodyBeforeKey(Fault):
    def answered(self, request, reply):
        if reply.status == 401 and request.body == b"{":
            reply.set(reply.json() | {"code": 100}, 400)


@seeded("9-body")
class PlainTextErrors(Fault):
    def answered(self, request, reply):
        if reply.status == 400:
            reply.headers["content-type"], reply.body = "text/plain", b"bad request"


# HTTP, voices and speech


@seeded("22-fields")
class VoicesWithoutStreaming(Fault):
    def answered(self, request, reply):
        if request.path == "/tts/voices":
            found = reply.json()["voices"]
            reply.set({"voices": [{k: v for k, v in each.items() if k != "streaming"} for each in found]})


@seeded("23-values")
class OtherGenders(Fault):
    def answered(self, request, reply):
        if request.path == "/tts/voices":
            reply.set(
                {"voices": [each | {"gender": each["gender"].lower()} for each in reply.json()["voices"]]}
            )


@seeded("27-voice-id", "28-text", "31-format")
class FrameworkValidation(Fault):
    def answered(self, request, reply):
        if reply.status == 400:
            reply.set({"detail": "field required"}, 422)


@seeded("29-code-points", "151-most-text")
class Utf16Limit(Fault):
    def asked(self, request):
        if len(str(request.json().get("text", "")).encode("utf-16-le")) > 10_000:
            return Reply(400, {"content-type": "application/json"}, b'{"code": 400, "error": "too long"}')
        return None

    def up(self, kind, data):
        message = json.loads(data) if kind == TEXT else {}
        if len(message.get("text", "").encode("utf-16-le")) > 10_000:
            error = {"type": "tts.error", "code": "tts_text_too_long", "message": "too long"}
            return [], [(TEXT, json.dumps(error).encode())]
        return [(kind, data)], []


@seeded("29-too-long")
class NoTextLimit(Fault):
    def asked(self, request):
        fields = request.json()
        if len(str(fields.get("text", ""))) > 5_000:
            request.body = json.dumps(fields | {"text": "Hello."}).encode()


@seeded("34-default-rate")
class OtherDefaultRate(Fault):
    def answered(self, request, reply):
        if reply.body[:4] == b"RIFF":
            reply.body = reply.body[:24] + (22_050).to_bytes(4, "little") + reply.body[28:]


@seeded("36-odd-rate")
class RatesIgnored(Fault):
    def asked(self, request):
        fields = request.json()
        if fields.pop("sample_rate", None) is not None:
            request.body = json.dumps(fields).encode()


@seeded("41-hostile")
class CrashOnJson(Fault):
    def answered(self, request, reply):
        if request.path == "/tts" and request.body[:1] == b"[":
            reply.set({"code": 500, "error": "Traceback (most recent call last)"}, 500)


@seeded("42-type")
class WrongType(Fault):
    def answered(self, request, reply):
        if reply.headers.get("content-type") == "audio/mpeg":
            reply.headers["content-type"] = "audio/mp3"


@seeded("42-type")
class JsonAroundAudio(Fault):
    def answered(self, request, reply):
        if reply.headers.get("content-type") == "audio/flac":
            reply.body = json.dumps({"audio": base64.b64encode(reply.body).decode()}).encode()


@seeded("43-whole")
class NoContentLength(Fault):
    def answered(self, request, reply):
        if request.path == "/tts" and reply.status == 200:
            reply.framing = "close"


@seeded("43-chunked")
class StreamInOnePiece(Fault):
    def answered(self, request, reply):
        reply.framing = "length"


@seeded("43-chunked")
class JsonAfterTheEnd(Fault):
    def answered(self, request, reply):
        if reply.framing == "chunked":
            reply.tail = b'{"code": 500, "error": "engine failed"}'


@seeded("43-chunked")
class JsonInTheSound(Fault):
    def answered(self, request, reply):
        if reply.framing == "chunked":
            reply.body += b'{"code": 500, "error": "engine failed"}'


@seeded("43-chunked")
class NoFinalChunk(Fault):
    def answered(self, request, reply):
        reply.final = False


# HTTP, recognition


@seeded("55-no-audio")
class OtherWordsForNoAudio(Fault):
    def answered(self, request, reply):
        if b"No audio data provided" in reply.body:
            reply.set(reply.json() | {"error": "audio is required"})


@seeded("56-no-base64")
class LaxBase64(Fault):
    def answered(self, request, reply):
        if b"Invalid base64" in reply.body:
            reply.set(reply.json() | {"error": "No audio data provided"})


@seeded("10-asr-body")
class ShortBodyWithOtherCode(Fault):
    def answered(self, request, reply):
        if reply.status == 400 and request.path.startswith("/asr"):
            reply.set({"code": 7, "error": reply.json()["error"]})


@seeded("54-happy")
class SureBeyondOne(Fault):
    def answered(self, request, reply):
        if reply.status == 200 and request.path.startswith("/asr"):
            reply.set(reply.json() | {"confidence": 99.0})


@seeded("78-form")
class SegmentsPlusText(Fault):
    def answered(self, request, reply):
        if b'"segments"' in reply.body:
            reply.set(reply.json() | {"text": "all of it"})


@seeded("69-ranges")
class RangesNotHeld(Fault):
    def asked(self, request):
        fields = request.json()
        if fields.pop("top_p", 0) != 0:
            request.body = json.dumps(fields).encode()


@seeded("75-padding")
class EndsExcluded(Fault):
    def answered(self, request, reply):
        if request.json().get("segment_padding") == 5_000:
            reply.set({"code": 400, "error": "segment_padding is below 5000"}, 400)


# HTTP, translation


@seeded("100-form")
class OtherIds(Fault):
    def answered(self, request, reply):
        if b'"trans_' in reply.body:
            reply.body = reply.body.replace(b'"trans_', b'"chatcmpl-')


@seeded("101-source")
class SourceTrimmed(Fault):
    def answered(self, request, reply):
        if b'"transcription"' in reply.body:
            found = reply.json()
            reply.set(found | {"transcription": found["transcription"].replace("\r\n", "\n")})


@seeded("102-usage")
class NoUsage(Fault):
    def answered(self, request, reply):
        if b'"usage"' in reply.body:
            reply.set({k: v for k, v in reply.json().items() if k != "usage"})


@seeded("94-keywords")
class AnyKeywords(Fault):
    def answered(self, request, reply):
        if request.body.count(b'name="keywords"') > 20:
            reply.set({"id": "trans_1"}, 200)


@seeded("112-refused-first")
class RefusedWithinTheStream(Fault):
    def answered(self, request, reply):
        if reply.status == 400 and b'name="stream"' in request.body:
            reply.status, reply.headers["content-type"] = 200, "text/event-stream"
            reply.body = b'data: {"error": "text is missing"}\n\n'


class _Events(Fault):
    def answered(self, request, reply):
        if reply.headers.get("content-type", "").startswith("text/event-stream"):
            self.events(reply)


@seeded("107-done")
class NoDone(_Events):
    def events(self, reply):
        reply.body = reply.body.replace(b"data: [DONE]\n\n", b"")


@seeded("107-done")
class TwoDones(_Events):
    def events(self, reply):
        reply.body += b"data: [DONE]\n\n"


@seeded("107-done")
class ChunkAfterDone(_Events):
    def events(self, reply):
        reply.body += b'data: {"id": "trans_1"}\n\n'


@seeded("105-first")
class FirstWithoutSource(_Events):
    def events(self, reply):
        reply.body = reply.body.replace(b'"transcription"', b'"source"', 1)


@seeded("104-chunks")
class AnIdForEachChunk(_Events):
    def events(self, reply):
        blocks = reply.body.split(b"\n\n")
        reply.body = b"\n\n".join(b.replace(b"trans_", b"trans_%d" % n) for n, b in enumerate(blocks))


@seeded("103-events")
class EventsAsJson(_Events):
    def events(self, reply):
        reply.headers["content-type"] = "application/json"


@seeded("103-events")
class EventsOverTwoLines(_Events):
    def events(self, reply):
        reply.body = reply.body.replace(b', "object"', b',\ndata: "object"').replace(
            b',"object"', b',\ndata: "object"'
        )


@seeded("106-usage")
class WrongSum(_Events):
    def events(self, reply):
        reply.body = reply.body.replace(b'"total_tokens":', b'"total_tokens":9')


# The realtime endpoint


@seeded("115-structured")
class EmptyRefusal(Fault):
    def answered(self, request, reply):
        if request.path.startswith("/ws"):
            reply.body, reply.headers["content-type"] = b"", "text/plain"


@seeded("121-origin")
class AnyOrigin(Fault):
    def asked(self, request):
        request.drop("origin")


@seeded("119-no-upgrade")
class WrongHandshakeCode(Fault):
    def answered(self, request, reply):
        reply.body = reply.body.replace(b"invalid_websocket_upgrade", b"bad_request")


@seeded("125-silent")
class Greeting(Fault):
    def opened(self):
        return [(TEXT, b'{"type": "hello"}')]


class _Messages(Fault):
    """Changes the service's messages: each gives one, several or none."""

    def down(self, kind, data):
        if kind != TEXT:
            return [(kind, data)]
        return [(TEXT, json.dumps(each).encode()) for each in self.message(json.loads(data))]


@seeded("126-created")
class CreatedWithoutModel(_Messages):
    def message(self, message):
        if message["type"] == "session.created":
            del message["session"]["model"]
        return [message]


@seeded("126-created")
class ZeroRateEchoed(_Messages):
    def message(self, message):
        if message["type"] == "session.created":
            message["session"]["sample_rate"] = 0
        return [message]


@seeded("128-again")
class SecondUpdateTaken(_Messages):
    def message(self, message):
        if message.get("code") == "session_already_configured":
            return [{"type": "session.created", "session": {}}]
        return [message]


@seeded("137-id")
class WrongIdEchoed(_Messages):
    def message(self, message):
        return [message | {"id": 5} if message.get("code") == "invalid_id" else message]


@seeded("140-sequence")
class UsageBeforeDone(_Messages):
    held = None

    def message(self, message):
        if message["type"] == "tts.audio.done":
            self.held = message
            return []
        return [message, self.held] if message["type"] == "tts.usage" else [message]


@seeded("140-sequence", "144-done")
class DoneBeforeAudio(_Messages):
    def message(self, message):
        if message["type"] == "tts.audio.start":
            ids = {"id": message.get("id"), "request_id": message["request_id"]}
            return [message, {"type": "tts.audio.done", **ids, "audio_bytes": 0, "chunks": 0}]
        return [] if message["type"] == "tts.audio.done" else [message]


@seeded("141-start")
class StartWithoutType(_Messages):
    def message(self, message):
        message.pop("content_type", None)
        return [message]


@seeded("142-transports")
class AlwaysBinary(Fault):
    def down(self, kind, data):
        message = json.loads(data) if kind == TEXT else {}
        if message.get("type") == "tts.audio.delta":
            return [(BINARY, base64.b64decode(message["audio"]))]
        return [(kind, data)]


@seeded("143-seq")
class SeqGap(_Messages):
    def message(self, message):
        if message["type"] == "tts.audio.delta":
            message["seq"] *= 2
        return [message]


@seeded("144-done")
class BytesMiscounted(_Messages):
    def message(self, message):
        if message["type"] == "tts.audio.done":
            message["audio_bytes"] += 1
        return [message]


@seeded("144-done")
class AudioLost(Fault):
    lost = 0

    def down(self, kind, data):
        self.lost += kind == BINARY
        return [] if kind == BINARY and self.lost == 1 else [(kind, data)]


@seeded("145-usage")
class Utf16Counted(_Messages):
    def message(self, message):
        if message["type"] == "tts.usage":
            message["usage"]["input_chars"] += 1 if message["client_id"] else 0
        return [message]


@seeded("145-usage")
class UsageNotFinal(_Messages):
    def message(self, message):
        if message["type"] == "tts.usage":
            del message["usage"]["final"]
        return [message]


@seeded("146-ids")
class IdNotEchoed(_Messages):
    def message(self, message):
        if message["type"] == "tts.audio.done":
            message["id"] = None
        return [message]


@seeded("146-ids")
class OneRequestId(_Messages):
    def message(self, message):
        return [message | {"request_id": "req_1"} if "request_id" in message else message]


@seeded("149-busy")
class SecondTextSwallowed(Fault):
    seen = 0

    def up(self, kind, data):
        self.seen += b"tts.speak" in data
        return ([], []) if self.seen == 2 and b"tts.speak" in data else ([(kind, data)], [])


@seeded("150-one-error")
class UsageForRefused(_Messages):
    def message(self, message):
        refused = message.get("code") in {"empty_text", "tts_text_too_long"}
        return [message, {"type": "tts.usage", "usage": {}}] if refused else [message]


@seeded("151-texts")
class OtherCodeForEmpty(_Messages):
    def message(self, message):
        return [message | {"code": "invalid_message"} if message.get("code") == "empty_text" else message]


@seeded("157-router")
class RouterErrorsAsTts(_Messages):
    def message(self, message):
        return [message | {"type": "tts.error"} if message["type"] == "router.error" else message]


@seeded("158-binary")
class BinaryIgnored(Fault):
    def up(self, kind, data):
        return ([], []) if kind == BINARY else ([(kind, data)], [])


@seeded("158-binary")
class BinaryClosesOtherwise(Fault):
    def down(self, kind, data):
        return [(kind, (1008).to_bytes(2, "big") if kind == CLOSE else data)]


@seeded("159-huge")
class HugeClosesOtherwise(Fault):
    def down(self, kind, data):
        return [(kind, (1011).to_bytes(2, "big") if kind == CLOSE else data)]


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_caught(name, spoiled):
    cls, meant = FAULTS[name]
    outcomes, report = spoiled(cls(), *meant, timeout_s=2.0 if name == "BinaryIgnored" else 30.0)
    for check in meant:
        outcome = outcomes[check]
        assert outcome.verdict is Verdict.FAILS, (check, outcome)
        assert all(finding.expected for finding in outcome.findings)
        assert any(finding.came for finding in outcome.findings)
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


class IgnoresLanguage(Fault):
    """A recognizer that always says what it heard, whatever was specified."""

    def answered(self, request, reply):
        if request.path.startswith("/asr") and reply.status == 200:
            reply.set(reply.json() | {"language": "en"})


def test_66_a_service_that_ignores_the_language_is_noticed(spoiled):
    outcomes, _ = spoiled(IgnoresLanguage(), "66-language")
    assert outcomes["66-language"].verdict is Verdict.FAILS


def test_evidence_shows_the_faulty_message_however_much_audio_came(spoiled):
    class LateStart(Fault):
        def down(self, kind, data):
            message = json.loads(data) if kind == TEXT else {}
            if message.get("type") == "tts.audio.start":
                return [(kind, json.dumps(message | {"sample_rate": "faulty"}).encode())]
            return [(kind, data)]

    outcomes, _ = spoiled(LateStart(), "141-start")
    assert any('"faulty"' in finding.came for finding in outcomes["141-start"].findings)
