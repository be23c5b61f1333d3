"""Realtime speech against a server that says exactly what a test scripts."""

import asyncio
import gc
import itertools
import json
import logging
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Response

from speechlab.client import AsyncClient, AudioDelta, AudioDone, AudioStart, Client, Usage
from speechlab.contract import HandshakeCode, RealtimeCode
from speechlab.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AuthenticationError,
    ConfigurationError,
    ContractError,
    InvalidRequestError,
    PermissionDeniedError,
    RateLimitError,
    RealtimeError,
    StreamTruncatedError,
)
from support.clock import eventually
from support.realtime_server import PIECES, deltas, done, error, spoken, start, usage


@pytest.fixture
def script(realtime):
    return realtime


@pytest.fixture
def patient(script):
    """A client that waits for as long as the session is told to."""
    with Client(f"http://127.0.0.1:{script.port}", max_retries=0) as client:
        yield client


@pytest.fixture
def quick(script, http):
    """A client that does not wait long and asks once."""
    with Client(f"http://127.0.0.1:{script.port}", api_key=http.KEY, timeout=1.0, max_retries=0) as client:
        yield client


@pytest.fixture
def session(quick, http):
    with quick.realtime(voice=http.VOICE_ID, format="pcm") as opened:
        yield opened


def speaks(script):
    return [said for said in script.sent if said["type"] == "tts.speak"]


@pytest.mark.parametrize("transport", ["binary", "base64_json"])
def test_events_come_typed_and_in_order_in_either_transport(script, quick, http, transport):
    script.speaks = [deltas if transport == "base64_json" else spoken]
    given = {"format": "pcm", "temperature": 0.0, "audio_transport": transport}
    with quick.realtime(voice=http.VOICE_ID, **given) as session:
        assert session.info.id == "sess_1"
        events = list(session.speak("ああ"))
        clip = session.say("あ")
    assert [type(event) for event in events] == [AudioStart, *[AudioDelta] * 3, AudioDone, Usage]
    assert tuple(event.audio for event in events[1:4]) == PIECES
    assert clip.encoded == b"".join(PIECES)
    assert clip.timing.first_byte_s is not None
    settings = script.sent[0]["session"]
    assert settings["temperature"] == 0.0  # an explicit zero is a real value
    assert settings.get("audio_transport", "binary") == transport
    assert len({said["id"] for said in script.sent}) == 3
    assert (quick.usage.calls, quick.usage.synthesized_chars) == (2, 3)


def refuse(script, status, body=b"", **headers):
    head = Headers({"Content-Length": str(len(body)), **{k.replace("_", "-"): v for k, v in headers.items()}})
    script.refusals.append(Response(status, "X", head, body))


def test_124_the_key_travels_in_the_header_alone(script, quick, http, caplog):
    for name in ("websockets", "websockets.client", "asyncio", "speechlab.client"):
        caplog.set_level(logging.DEBUG, logger=name)
    with quick.realtime(voice=http.VOICE_ID, format="pcm") as session:
        session.say("a")
        kept = repr(vars(session._async._line.socket._connection))
        kept += repr(vars(session._async._line.socket._connection.protocol))
        kept += repr(session._async._line.socket._connection.request)
    path, headers = script.headers[0]
    assert headers["Authorization"] == f"Bearer {http.KEY}"
    assert path == "/ws/tts/realtime"
    assert "Sec-WebSocket-Extensions" not in headers
    assert http.KEY not in caplog.text + kept


@pytest.mark.parametrize("code", list(HandshakeCode))
def test_124_a_refused_upgrade_is_the_error_of_http(script, quick, http, code):
    kind = code.kind
    body = json.dumps(kind.body(f"refused, {http.KEY}", "ws")).encode()
    refuse(script, kind.status, body, Content_Type="application/json", Retry_After="7")
    with pytest.raises(APIError) as caught:
        quick.realtime(voice=http.VOICE_ID).open()
    error = caught.value
    assert (error.status, error.name, error.code, error.context) == (kind.status, code, kind.code, ("ws",))
    assert http.KEY not in repr(error)
    assert isinstance(error, AuthenticationError) == (kind.status == 401)
    assert isinstance(error, RateLimitError) == (kind.status == 429)
    assert kind.status != 429 or error.retry_after_s == 7


def test_upgrades_that_are_refused_otherwise(script, http, clock, quick):
    refuse(script, 403, b'{"code": "ws_origin_denied", "error": "not from here"}')  # 116
    with pytest.raises(PermissionDeniedError) as caught:
        quick.realtime(voice=http.VOICE_ID).open()
    assert (caught.value.name, caught.value.code) == ("ws_origin_denied", None)
    refuse(script, 307, Location="ws://127.0.0.1:9/")
    with pytest.raises(APIError, match="redirects"):
        quick.realtime(voice=http.VOICE_ID).open()
    lab = Client("http://127.0.0.1:9", api_key=http.KEY, max_retries=0)
    with lab, pytest.raises(APIConnectionError, match="check ws_base_url"):
        lab.realtime(voice=http.VOICE_ID).open()
    for status in (429, 503):  # which pass
        refuse(script, status, Retry_After="2")
    lab = Client(f"http://127.0.0.1:{script.port}", clock=clock, rng=http.Half())
    with lab, lab.realtime(voice=http.VOICE_ID, format="pcm") as session:
        assert session.say("a").encoded
    assert len(clock.slept) == 2


@pytest.mark.slow
def test_refused_settings_carry_the_code(script, quick, http):
    script.created = [error("unknown_voice_id", id="cfg")]
    with pytest.raises(RealtimeError) as caught:
        quick.realtime(voice=http.VOICE_ID).open()
    assert (caught.value.code, caught.value.retryable) == ("unknown_voice_id", False)
    script.created = [1008]
    with pytest.raises(APIConnectionError, match="before it was configured"):
        quick.realtime(voice=http.VOICE_ID).open()
    script.created = itertools.cycle([{"type": "vendor.notice"}, 0.1])
    with pytest.raises(APITimeoutError, match=r"no session\.created came within 1 s"):
        quick.realtime(voice=http.VOICE_ID).open()


def test_a_rejected_text_ends_no_session(script, session):
    for code in {*RealtimeCode} - {RealtimeCode.BACKEND_REQUEST_FAILED}:
        script.speaks = [lambda said, code=code: [error(code, id=said["id"])], spoken]
        with pytest.raises(RealtimeError) as caught:
            session.say("a")
        assert (caught.value.code, caught.value.retryable) == (code, code.retryable)
        assert caught.value.status is None
        assert session.say("b").encoded
    assert script.connections == 1


@pytest.mark.parametrize(("pieces", "status"), [((), "backend_error"), (PIECES[:2], "partial_backend_error")])
def test_a_backend_that_fails_is_waited_for_to_its_usage(script, session, pieces, status):
    def fail(said):
        yield from ((start(said), *pieces) if pieces else ())
        yield from (error("backend_request_failed", id=said["id"]), 0.1, usage(said, status))

    script.speaks = [fail, spoken]
    with pytest.raises(RealtimeError) as caught:
        session.say("a")
    assert (caught.value.code, caught.value.status) == ("backend_request_failed", status)
    assert caught.value.partial == b"".join(pieces)
    assert caught.value.retryable
    assert session.say("b").encoded
    assert script.connections == 1


def test_155_162_messages_between_audio_frames_are_passed_over(script, session):
    def chatter(said):
        yield {"type": "tts.something.new", "id": said["id"]}
        yield error("rate_limited", id="another")
        yield start(said, id="another", request_id="req_0")
        yield from (start(said, future=[1]), PIECES[0])
        yield error("synthesis_in_progress", id=said["id"])
        yield {"type": "router.error", "code": "invalid_json", "message": "?"}
        yield from (PIECES[1], done(said, id="another", audio_bytes=1))
        yield usage(said, client_id="another", request_id="req_0")
        yield from (error("invalid_message"), PIECES[2], done(said), usage(said))

    names = ("tts.audio.start", "tts.audio.done")
    first, last = ({"type": name} for name in names)  # whose fields are absent
    bare = [first, *PIECES, last, {"type": "tts.usage", "usage": {"status": "completed"}}]
    silent = lambda said: [start(said), done(said, audio_bytes=0, chunks=0), usage(said)]  # noqa: E731
    script.speaks = [chatter, bare, silent, spoken]
    assert session.say("a").encoded == session.say("b").encoded == b"".join(PIECES)
    with pytest.raises(ContractError, match="sent no byte"):
        session.say("c")
    assert session.say("d").encoded
    for wrong in ("", " ", "x" * 5001, "\ud800"):
        with pytest.raises(InvalidRequestError):
            session.speak(wrong)
    assert (len(speaks(script)), script.connections) == (4, 1)
    script.speaks = [lambda said: [*spoken(said), 1012], spoken]
    assert session.say("e").encoded
    assert eventually(lambda: not session.is_open)
    assert session.say("f").encoded  # on a connection that is made anew
    assert script.connections == 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda said: [start(said), *PIECES, done(said, audio_bytes=19)], "audio_bytes is 19, but 18 came"),
        (lambda said: [start(said), *PIECES, done(said, chunks=4)], "chunks is 4, but 3 came"),
        (lambda said: [start(said), *PIECES[:2], done(said)], "not whole"),
        (lambda said: [PIECES[0]], "none was due"),
        (lambda said: [start(said), start(said)], "second tts.audio.start"),
        (lambda said: [done(said)], "while no audio was coming"),
        (lambda said: [start(said), *PIECES, usage(said)], "before tts.audio.done"),
        (lambda said: ["{nonsense"], "not JSON"),
        (lambda said: ["[1]"], "without a type"),
        (lambda said: deltas(said, (0, 1, 3)), "numbered a piece of audio 3 after 1"),
        (lambda said: [start(said), {"type": "tts.audio.delta", "audio": "%%"}], "not base64"),
        (lambda said: [start(said), *PIECES, done(said), b"more"], "none was due"),
    ],
)
def test_156_audio_other_than_announced_is_an_error(script, session, wrong, says):
    script.speaks = [wrong, spoken]
    with pytest.raises(ContractError, match=says) as caught:
        session.say("a")
    assert caught.value.timing.attempts == 1
    assert session.say("b").encoded  # on a connection of its own
    assert script.connections == 2


@pytest.mark.parametrize("code", [1000, 1006, 1012])
def test_161_a_text_cut_by_a_close_is_not_sent_again(script, session, code):
    script.speaks = [lambda said: [start(said), PIECES[0], code], spoken]
    with pytest.raises(StreamTruncatedError, match=f"code {code}") as caught:
        session.say("a")
    assert caught.value.partial == PIECES[0]
    assert caught.value.close_code == code
    assert len(speaks(script)) == 1
    assert session.say("b").encoded
    assert [said["text"] for said in speaks(script)] == ["a", "b"]
    assert script.connections == 2


@pytest.mark.slow
def test_154_waiting_has_an_end(script, session, quick):
    script.speaks = [[], lambda said: [start(said), *PIECES[:1]], lambda said: spoken(said)[:-1], spoken]
    for said, kind, came in (
        ("for its first sound", APITimeoutError, None),
        ("for the rest of its audio, after 8 bytes", StreamTruncatedError, PIECES[0]),
        (r"for its tts.usage, after 18 bytes", StreamTruncatedError, b"".join(PIECES)),  # which is whole
    ):
        with pytest.raises(kind, match=said) as late:
            session.say("a")
        assert getattr(late.value, "partial", None) == came
        assert late.value.possibly_metered
    assert session.say("d").encoded
    assert quick.usage.possibly_metered == 3


def test_154_texts_wait_for_each_other(script, session):
    order = []

    def one(said):
        assert order.count("begin") == order.count("end")
        order.append("begin")
        yield from (start(said), *PIECES, 0.02, done(said), usage(said))
        order.append("end")

    script.speaks = [one]
    first, second = session.speak("first"), session.speak("second")
    assert len(list(second)) == 6  # read before the first
    assert len(list(first)) == 6
    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(session.say, "abcdef"))) == 6
    assert eventually(lambda: len(order) == 16)  # the service goes on for a moment after it has said the last
    assert order == ["begin", "end"] * 8
    assert script.connections == 1


@pytest.mark.slow
def test_leaving_early_closes_the_socket(script, quick, session):
    script.speaks = [lambda said: [start(said), PIECES[0], 0.4], spoken]
    with session.speak("long") as events:
        next(events)
        next(events)
        waiting = session.speak("next")
    assert events.partial == PIECES[0]
    assert len(list(waiting)) == 6
    assert script.connections == 2
    # still being spoken when the session closes, however slow the machine is
    script.speaks = [lambda said: [start(said), PIECES[0], 2.0]]
    events = session.speak("x", timeout=20)
    session.close()
    with pytest.raises((ConfigurationError, StreamTruncatedError)):
        list(events)
    with pytest.raises(ConfigurationError, match="closed"):
        session.speak("y")


@pytest.mark.slow
def test_sessions_that_are_let_go_are_closed_and_warn(script, quick, http):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        other = quick.realtime(voice=http.VOICE_ID, format="pcm")
        other.say("a")
        assert quick.realtime(voice=http.VOICE_ID, format="pcm").say("a").encoded
        gc.collect()
        assert eventually(lambda: script.open == 1)
        quick.close()  # and its sessions with it
        del other
        gc.collect()
        assert eventually(lambda: script.open == 0)
    assert ["dropped without being closed" in str(one.message) for one in caught] == [True]


@pytest.mark.slow
def test_the_time_of_a_text_bounds_its_waiting(script, patient, http):
    """What was not sent in time is not counted."""

    def late(said, session, timeout):
        with pytest.raises(APITimeoutError, match=said) as caught:
            session.say("late", timeout=timeout)
        assert "it was not sent" in str(caught.value)
        assert (caught.value.possibly_metered, caught.value.attempts) == (False, 0)
        assert patient.usage.possibly_metered == 0

    slow = lambda said: [start(said), PIECES[0], 1.0, *PIECES[1:], done(said), usage(said)]  # noqa: E731
    script.speaks = [lambda said: [*spoken(said), 1012], spoken, slow]
    with patient.realtime(voice=http.VOICE_ID, format="pcm") as session:
        assert session.say("a").encoded
        assert eventually(lambda: not session.is_open)
        script.handshake_s = 1.5
        late(r"the time of 0\.3 s was up while the text waited for a connection", session, 0.3)
        script.handshake_s = 0.0
        assert session.say("b").encoded  # on a connection that is made anew
        events = session.speak("c")
        late("for the texts before it", session, 0.2)
        assert events.collect().encoded
    assert [said["text"] for said in speaks(script)] == ["a", "b", "c"]


def test_a_service_that_falls_silent_is_not_waited_for(script, patient, http, monkeypatch):
    monkeypatch.setattr("speechlab.client._realtime.session._MESSAGE_GAP_S", 0.2)
    script.speaks = [[], lambda said: [start(said), PIECES[0]]]
    told = r"nothing came for 0\.2 s while .* its first sound"
    with patient.realtime(voice=http.VOICE_ID, format="pcm") as session:
        with pytest.raises(APITimeoutError, match=told) as caught:
            session.say("a")
        assert caught.value.possibly_metered
        with pytest.raises(StreamTruncatedError, match="the rest of its audio"):
            session.say("b")


@pytest.mark.slow
def test_a_kept_text_is_not_late(script, server, http, tmp_path):
    server.script(http.reply(body={"voices": []}))
    script.speaks = [lambda said: [start(said), *PIECES, 0.4, done(said), usage(said)]]
    given = {"base_url": server.base_url, "ws_base_url": f"ws://127.0.0.1:{script.port}", "store": tmp_path}
    for more, timeout in (({}, None), ({"pace": "as recorded"}, 0.2)):
        with Client(**given, **more) as lab, lab.realtime(voice=http.VOICE_ID, format="pcm") as session:
            assert session.say("a", timeout=timeout).encoded
    assert len(speaks(script)) == 1


def test_await(script, http):
    async def main():
        async with AsyncClient(f"http://127.0.0.1:{script.port}") as lab:
            async with lab.realtime(voice=http.VOICE_ID, format="pcm") as session:
                kinds = [type(event) async for event in session.speak("a")]
                clips = await asyncio.gather(*(session.say(text) for text in "bcd"))
            return kinds, [clip.text for clip in clips]

    kinds, texts = asyncio.run(main())
    assert kinds == [AudioStart, *[AudioDelta] * 3, AudioDone, Usage]
    assert texts == ["b", "c", "d"]
