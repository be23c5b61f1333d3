"""Every fault of the service, the network and the proxies between has its own typed outcome."""

import gc

import pytest

from speechlab.client import Client
from speechlab.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    StreamTruncatedError,
)
from support.clock import ends_within
from support.samples import KEY, TRANSLATED
from support.sockets import nobody


def translate(lab):
    return lab.translate("a", source_lang="ja", target_lang="en")


FULL = {"context": ["tts"], "code": 104, "name": "ErrAuthenticationFailed", "error": f"no such key: {KEY}"}


def test_011_014_error_bodies_of_every_kind(server, http, wire):
    odd = {"code": "x", "name": 5, "error": ["a"], "context": {"a": 1}}
    named = {"code": 104, "name": "ErrAuthenticationFailed", "context": ("tts",)}
    titled = b"<html><head><title>400 Bad &amp; worse</title><p>x</html>"
    for status, body, kind, facts in (
        (401, FULL, AuthenticationError, {**named, "message": "no such key: ***"}),
        (400, {"code": 400, "error": "Unsupported"}, BadRequestError, {"code": 400, "name": None}),
        (403, {}, PermissionDeniedError, {"code": None}),
        (400, titled, BadRequestError, {"message": "400 Bad & worse"}),
        (500, b"", ServerError, {"retryable": True}),
        (501, b"plain text", ServerError, {"retryable": False}),
        (413, odd, APIError, {"code": None, "name": None}),
        (422, {"error": {"message": "inner", "code": 7}}, APIError, {"code": 7, "message": "inner"}),
        (400, {"detail": "as FastAPI says it"}, BadRequestError, {"message": "as FastAPI says it"}),
        (302, b"", APIError, {}),
    ):
        server.script(http.reply(status, body, location="http://elsewhere/"))
        retries = {"max_retries": 0} if status == 500 else {}  # what cannot get better is not repeated
        with (
            Client(server.base_url, api_key=http.KEY, transport=wire, **retries) as lab,
            pytest.raises(kind) as caught,
        ):
            translate(lab)
        error = caught.value
        assert (error.status, error.attempts, len(server.requests)) == (status, 1, 1)
        assert error.timing.latency_s >= 0
        assert error.message
        assert {name: getattr(error, name) for name in facts} == facts
        assert http.KEY not in repr(vars(error))


def test_015_what_can_get_better_is_repeated(server, lab, http):
    for status in (408, 425, 429, 500, 502, 503, 504, 520, 524, 529):
        server.script(http.reply(status), http.reply(status, b"<html>"), http.reply(body=TRANSLATED))
        result = translate(lab)
        assert (result.text, result.timing.attempts, len(server.requests)) == ("Hello", 3, 3), status
    cut = [b"HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\n[", http.CLOSE]
    server.script(http.RESET, http.CLOSE, cut, http.reply(body=[http.VOICE]))
    assert len(lab.voices()) == 1  # which costs nothing, however it is cut
    for step, told, kind in (
        (http.reply(500), "after 3 attempts", ServerError),
        (http.reply(502), "after 5 attempts", ServerError),
        (http.RESET, "may have been done and billed", APIConnectionError),
    ):
        server.script(step)
        with pytest.raises(kind, match=told) as caught:
            translate(lab)
        assert caught.value.attempts == len(server.requests) == (3 if "3" in told else 5)
    assert caught.value.possibly_metered
    assert lab.usage.possibly_metered == 1


def test_a_reply_that_never_comes(server, http, wire):
    head = b"HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\n"
    for steps in ([30.0], [head, *[b"x", 0.1] * 300]):  # whose body trickles for ever
        server.script(steps)
        with (
            ends_within(20),  # of thirty
            Client(server.base_url, api_key=http.KEY, timeout=0.3, transport=wire) as lab,
            pytest.raises(APITimeoutError, match="timeout=") as caught,
        ):
            translate(lab)
        assert caught.value.possibly_metered
        assert caught.value.attempts == len(server.requests) == 1


def test_a_redirection_says_where_to(server, lab, http):
    new = "https://new.example"
    for status, location, told in (
        (301, f"{new}:8443/v2/translate/", f" to '{new}:8443/v2/translate/', and redirections"),
        (302, f"{new}/{KEY}", f" to '{new}/***', and"),
        (307, f"{new}/v2?token=s3cret", f" to '{new}', and"),
        (308, "https://me:s3cret@new.example/v2", f" to '{new}', and"),
        (307, "http://[s3cret", ", and redirections are not followed; set base_url"),
    ):
        server.script(http.reply(status, b"moved", "text/plain", Location=location))
        with pytest.raises(APIError, match=rf"HTTP {status}: moved; the service redirects") as caught:
            translate(lab)
        assert f"the service redirects{told}" in str(caught.value)
        assert "s3cret" not in str(caught.value)
        assert len(server.requests) == 1


def test_a_500_that_says_it_will_stay_is_not_repeated(server, lab, http):
    body = {"code": 500, "error": "Transcription service not available"}
    headers = {"X_Should_Retry": "false", "X_Speechlab_Reason": "the model 'small' is not here; fetch it"}
    server.script(http.reply(500, body, **headers))
    with pytest.raises(
        ServerError, match=r"not available; the model 'small' is not here; fetch it$"
    ) as failure:
        translate(lab)
    assert (len(server.requests), failure.value.retryable, failure.value.attempts) == (1, False, 1)


def test_nobody_listens(http, clock, wire):
    with (
        nobody() as address,
        Client(f"http://{address}", api_key=http.KEY, clock=clock, transport=wire) as lab,
        pytest.raises(APIConnectionError, match="check base_url") as caught,
    ):
        translate(lab)
    assert not caught.value.possibly_metered
    assert caught.value.attempts == 5
    assert address in str(caught.value)


def test_the_calls_time_bounds_its_retries(server, http, clock):
    server.script(http.reply(503, b"", Retry_After="40"))
    times = {"timeout": 100, "patience_s": 200, "clock": clock, "rng": http.Half()}
    with Client(server.base_url, **times) as lab, pytest.raises(ServerError):
        translate(lab)
    assert (len(server.requests), sum(clock.slept) < 100) == (3, True)


def test_015_a_reply_that_is_cut_is_not_paid_for_twice(server, http, wire):
    head = b"HTTP/1.1 200 X\r\nContent-Type: audio/wav\r\nContent-Length: 1000\r\n\r\n"
    with Client(server.base_url, transport=wire) as lab:
        server.script([head + b"RIFF", http.CLOSE])
        said = r"cut short after 4 bytes \([^<>]*\)"
        with pytest.raises(StreamTruncatedError, match=said) as caught:
            lab.synthesize("a", voice=http.VOICE_ID)
        assert caught.value.partial == b"RIFF"
        assert caught.value.timing.attempts == len(server.requests) == 1
        server.script([b"HTTP/1.1 400 X\r\nContent-Length: 1000\r\n\r\nhalf a rea", http.CLOSE])
        with pytest.raises(BadRequestError, match="half a rea"):  # an error is read as far as it came
            translate(lab)
        whole = http.reply(body=TRANSLATED)
        server.script([whole[:9], 0.1, whole[9:30], 0.1, whole[30:]])
        assert translate(lab).text == "Hello"  # whose head comes slowly


def test_a_wait_that_is_over_is_no_leave_to_ask_at_once(server, lab, http, clock):
    for status, asked, least in (
        (429, "0", 0.25),
        (503, "-5", 0.25),
        (429, "Wed, 21 Oct 2015 07:28:00 GMT", 0.25),
        (429, "2", 6),
        (429, "2.5", 7.5),
    ):
        clock.slept.clear()
        server.script(*[http.reply(status, Retry_After=asked)] * 3, http.reply(body=TRANSLATED))
        translate(lab)
        assert least <= sum(clock.slept) < least + 3, asked


def test_whoever_waits_a_minute_waits_for_a_quota_of_a_minute(server, lab, http, clock):
    server.script(http.reply(429, {"error": "quota"}, Retry_After="60"), http.reply(body=TRANSLATED))
    translate(lab)
    assert 60 <= sum(clock.slept) <= 60.3
    clock.slept.clear()
    server.script(http.reply(429, {"error": "quota"}, Retry_After="67"))
    with pytest.raises(RateLimitError, match=r"quota; a call waits 60 s for it \(patience_s=\)") as caught:
        translate(lab)
    assert (caught.value.retry_after_s, clock.slept) == (67, [])
    with pytest.raises(APITimeoutError, match=r"asks to wait .* beyond its patience of 60 s \(patience_s\)"):
        translate(lab)


def test_streams_are_opened_again_until_their_first_byte(server, http, wav, wire, clock):
    server.script(http.reply(503), http.RESET, http.chunked(wav))
    options = {"api_key": http.KEY, "clock": clock, "rng": http.Half(), "transport": wire}
    with Client(server.base_url, **options) as lab, lab.stream_speech("a", voice=http.VOICE_ID) as stream:
        assert b"".join(stream) == wav
    assert stream.timing.attempts == 3
    gc.collect()  # an unclosed socket would be a warning, and so an error


def test_events_of_a_call_reach_the_hook(server, http, clock, caplog, wire):
    seen = []
    server.script(http.reply(503), http.reply(body=TRANSLATED))
    with Client(server.base_url, clock=clock, on_event=seen.append, transport=wire) as lab:
        translate(lab)
        kinds = [(event.kind, event.attempt, event.status) for event in seen]
        assert kinds == [
            ("request", 1, None),
            ("response", 1, 503),
            ("retry", 1, 503),
            ("request", 2, None),
            ("response", 2, 200),
            ("done", 2, 200),
        ]
        assert len({event.call_id for event in seen}) == 1
        translate(lab.with_options(on_event=lambda event: 1 / 0))
    assert "hook failed" in caplog.text


def test_an_address_of_openais_api_gets_the_hint(server, http):
    server.script(http.reply(404, b"Not Found"))
    for base_url, hint in ((f"{server.base_url}/v1", True), (server.base_url, False)):
        with Client(base_url, api_key=http.KEY) as lab, pytest.raises(NotFoundError) as caught:
            lab.voices()
        assert ("adapter=sl.client.OpenAIAdapter(…)" in str(caught.value)) is hint
