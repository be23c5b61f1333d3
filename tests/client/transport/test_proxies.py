"""Proxies of the environment, for calls over either wire and for realtime sessions."""

import base64
from contextlib import closing

import pytest

from speechlab.client import Client
from speechlab.errors import APIConnectionError, APIError, ConfigurationError
from support.forward_proxies import ForwardProxy, SocksProxy
from support.samples import TRANSLATED
from support.sockets import nobody

SECRET = "hid:den@"
USER = "me:hid%3Aden%40"
BASIC = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
ELSEWHERE = "http://speech.invalid:8080"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def proxy(server):
    running = ForwardProxy(("127.0.0.1", server.port))
    yield running
    running.close()


def client(http, wire, base_url=ELSEWHERE, **options):
    options = {"max_retries": 0, "allow_insecure": True, "transport": wire, **options}
    return Client(base_url, api_key=http.KEY, **options)


def translate(lab):
    return lab.translate("a", source_lang="ja", target_lang="en").text


def test_calls_go_through_the_proxy_with_its_password(server, http, wire, proxy, monkeypatch, wav):
    monkeypatch.setenv("HTTP_PROXY", f"http://{USER}@{proxy.place}")
    proxy.authorization = BASIC
    server.script(http.reply(body=TRANSLATED))
    with client(http, wire) as lab:
        assert translate(lab) == translate(lab) == "Hello"
        server.script(http.chunked(wav[:1000], wav[1000:]))
        assert lab.stream_speech("a", voice=http.VOICE_ID).collect().encoded == wav
    first, headers = proxy.asked[0]
    assert first == f"POST {ELSEWHERE}/translate/ HTTP/1.1"
    assert headers["host"] == "speech.invalid:8080"
    assert server.requests[0].headers["authorization"] == f"Bearer {http.KEY}"


@pytest.mark.parametrize("user", ["", "me:wrong@"])
def test_a_proxy_that_wants_a_password(server, http, wire, proxy, monkeypatch, clock, user):
    monkeypatch.setenv("http_proxy", f"{user}{proxy.place}")  # without a scheme, as many write it
    proxy.authorization = BASIC
    with (
        client(http, wire, max_retries=4, clock=clock) as lab,
        pytest.raises(APIConnectionError, match=r"requires a user and a password.*HTTP_PROXY") as caught,
    ):
        translate(lab)
    assert f"http://{proxy.place} " in str(caught.value)
    assert "wrong" not in str(caught.value)
    assert "base_url" not in str(caught.value)
    assert caught.value.timing.attempts == len(proxy.asked) == 1
    assert not caught.value.possibly_metered
    assert not server.requests


def ask(lab, ways, http):
    return translate(lab) if ways == "calls" else lab.realtime(voice=http.VOICE_ID, format="pcm").open()


@pytest.mark.parametrize("ways", ["calls", "realtime"])
@pytest.mark.parametrize("base_url", [ELSEWHERE, "https://speech.invalid"])
def test_a_proxy_that_is_not_there(http, wire, monkeypatch, base_url, ways):
    told = r"the proxy .* cannot be reached .*check that it runs"
    with nobody() as place, client(http, wire, base_url) as lab:
        monkeypatch.setenv("ALL_PROXY", f"http://{USER}@{place}")
        with pytest.raises(APIConnectionError, match=told) as caught:
            ask(lab, ways, http)
        assert f"http://{place} " in str(caught.value)
        assert "NO_PROXY" in str(caught.value)
        assert not {"hid", "base_url"} & set(str(caught.value).replace(":", " ").split())


@pytest.mark.parametrize("ways", ["calls", "realtime"])
def test_a_proxy_that_opens_no_tunnel(server, http, wire, proxy, monkeypatch, ways):
    monkeypatch.setenv("HTTPS_PROXY", f"http://{USER}@{proxy.place}")
    for proxy.refusal, said in (
        ("502 Far away", "does not pass the request on .*502.*rules of the proxy"),
        ("407 Who", "requires a user"),
    ):
        with (
            client(http, wire, "https://speech.invalid") as lab,
            pytest.raises(APIConnectionError, match=said) as caught,
        ):
            ask(lab, ways, http)
        assert "hid" not in str(caught.value)
    for first, headers in proxy.asked:
        assert first == "CONNECT speech.invalid:443 HTTP/1.1"
        assert headers["proxy-authorization"] == BASIC
        assert "authorization" not in headers


def test_tunnels_to_a_service_with_a_certificate(http, secure, certificate, wire, monkeypatch):
    place, _, asked = secure
    host, _, port = place.partition(":")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    with closing(ForwardProxy((host, int(port)))) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.place}")
        with client(http, wire, "https://speech.invalid") as lab:
            assert len(lab.voices()) == 0
    assert http.KEY.encode() in asked[0]
    assert http.KEY not in str(proxy.asked)


def test_what_is_reached_without_it(server, http, wire, proxy, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", f"http://{proxy.place}")
    server.script(http.reply(407, {"error": "odd"}), http.reply(body=TRANSLATED))
    with client(http, wire, server.base_url) as lab:  # this machine
        with pytest.raises(APIError, match="odd"):
            translate(lab)  # of whose service a 407 is an answer
        assert translate(lab) == "Hello"
    for base_url, excepted in (
        ("http://192.0.2.1", "10.0.0.0/8,192.0.2.0/24"),
        ("http://192.0.2.1", "192.0.2.1"),
        ("http://speech.invalid", "other.invalid, .invalid"),
        ("http://speech.invalid", "*"),
    ):
        monkeypatch.setenv("NO_PROXY", excepted)
        with client(http, wire, base_url, timeout=0.3) as lab:
            for ways in ("calls", "realtime"):
                with pytest.raises(APIConnectionError) as caught:
                    ask(lab, ways, http)
                assert "proxy" not in str(caught.value)
    assert not proxy.asked


@pytest.mark.parametrize("kind", [ForwardProxy, SocksProxy])
def test_realtime_sessions_go_through_the_proxy(http, realtime, kind, monkeypatch):
    scheme = "socks5h" if kind is SocksProxy else "http"
    with closing(kind(("127.0.0.1", realtime.port))) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"{scheme}://{proxy.place}")
        with client(http, None) as lab, lab.realtime(voice=http.VOICE_ID, format="pcm") as session:
            assert session.say("a").duration_s > 0
    (asked,) = proxy.asked
    assert "speech.invalid" in asked[0]
    assert realtime.headers[0][1]["Authorization"] == f"Bearer {http.KEY}"


def test_calls_go_through_socks(server, http, monkeypatch):
    server.script(http.reply(body=TRANSLATED))
    with closing(SocksProxy(("127.0.0.1", server.port), authorization=f"me:{SECRET}")) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"socks5h://{USER}@{proxy.place}")
        with client(http, None) as lab:
            assert translate(lab) == "Hello"
        assert proxy.asked == [("speech.invalid", {})]
        told = pytest.raises(ConfigurationError, match="HTTP proxies alone")
        with client(http, "aiohttp") as lab, told as caught:
            translate(lab)
        assert "hid" not in str(caught.value)
