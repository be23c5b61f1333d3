"""What users of other SDKs look for: a time for one call, headers of all calls, a key that a function gives."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from speechlab.client import Client, Translate
from speechlab.errors import APIError, APITimeoutError, AuthenticationError, ConfigurationError, ServerError
from support.samples import TRANSLATED

MEANT = {"source_lang": "ja", "target_lang": "en"}
REFUSED = {"code": 104, "name": "ErrAuthenticationFailed", "error": "Authentication error: Invalid token"}


# -- a time for one call


@pytest.mark.slow
def test_a_call_may_have_a_time_of_its_own(server, http, wav):
    server.script([20.0])
    calls = (
        lambda lab, **given: lab.transcribe(wav, **given),
        lambda lab, **given: lab.stream_speech("a", voice=http.VOICE_ID, **given).open(),
        lambda lab, **given: lab.synthesize("a", voice="haru", **given),  # which is looked for first
        lambda lab, **given: lab.request("GET", "/x", **given),
        lambda lab, **given: lab.perform(Translate("a", **MEANT, **given)),
    )
    with Client(server.base_url, max_retries=0) as lab:
        for call in calls:
            with pytest.raises(APITimeoutError, match=r"0\.2 s"):
                call(lab, timeout=0.2)
        server.script(http.reply(body={"voices": [http.VOICE]}), [20.0])
        with pytest.raises(APITimeoutError, match=r"/tts: the call's time of 0\.8 s"):  # not what is left
            lab.synthesize("a", voice="calm", timeout=0.8)
    server.script([0.6, http.reply(body=TRANSLATED)])
    with Client(server.base_url, timeout=0.2, max_retries=0) as lab:
        with pytest.raises(APITimeoutError):
            lab.translate("a", **MEANT)
        assert lab.translate("a", **MEANT, timeout=10).text == "Hello"  # which may be longer, too


# -- headers of all calls


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_headers_of_all_calls(server, http, transport):
    server.script(http.reply(body=TRANSLATED))
    headers = {"X-Team": "speech", "user-agent": "mine/1", "X-Gateway-Key": "gateway-secret-1"}
    options = {"api_key": http.KEY, "transport": transport, "default_headers": headers}
    with Client(server.base_url, **options) as lab:
        lab.translate("a", **MEANT)
        lab.with_options(default_headers={"X-Team": "other"}).translate("a", **MEANT)
        lab.request("GET", "/x", headers={"x-team": "this call"})
        shown = f"{lab!r} {vars(lab)} {vars(lab._async)} {lab._async._settings}"
    assert "gateway-secret-1" not in shown
    sent = {name.lower(): value for name, value in headers.items()}
    first, second, third = (request.headers for request in server.requests)
    assert sent.items() <= first.items()
    assert first["authorization"] == f"Bearer {http.KEY}"
    assert (second["x-team"], "x-gateway-key" in second) == ("other", False)
    assert third["x-team"] == "this call"


def test_headers_and_a_functions_key_reach_realtime_sessions(realtime, http):
    options = {"api_key": Keys(), "default_headers": {"X-Team": "speech"}}
    with (
        Client(f"http://127.0.0.1:{realtime.port}", **options) as lab,
        lab.realtime(voice=http.VOICE_ID, format="pcm") as session,
    ):
        assert session.say("a").encoded
    _, headers = realtime.headers[0]
    assert (headers["X-Team"], headers["Authorization"]) == ("speech", "Bearer sl:fresh-key-1")


def test_a_refused_key_that_is_given_again_ends_the_call(server, http):
    server.script(http.reply(401, REFUSED))
    with Client(server.base_url, api_key=lambda: http.KEY) as lab, pytest.raises(AuthenticationError):
        lab.translate("a", **MEANT)
    assert len(server.requests) == 1


def test_an_own_authorization_is_sent_but_not_beside_a_key(server, http, monkeypatch):
    server.script(http.reply(body=TRANSLATED))
    with Client(server.base_url, default_headers={"Authorization": "Basic abc"}) as lab:
        lab.translate("a", **MEANT)
    assert server.requests[0].headers["authorization"] == "Basic abc"
    with pytest.raises(ConfigurationError, match="in the clear"):
        Client("http://speech.example", default_headers={"Authorization": "Basic abc"})
    own = {"default_headers": {"X-Team": "a", "authorization": "Basic gateway-secret-3"}}
    lab = Client(server.base_url, api_key=http.KEY)
    monkeypatch.setenv("SPEECHLAB_API_KEY", http.KEY)
    makes = (lambda: Client(server.base_url, api_key="sl:x", **own), lambda: lab.with_options(**own))
    for make in (*makes, lambda: Client(server.base_url, **own)):
        with pytest.raises(ConfigurationError, match="'authorization', the header of the API key") as told:
            make()
        assert "secret-3" not in str(told.value)
        assert http.KEY not in str(told.value)


def test_a_secret_in_a_header_is_not_shown_by_errors(server, http):
    server.script(http.reply(400, {"error": "no such gateway key: gateway-secret-2"}))
    with Client(
        server.base_url, default_headers={"X-Gateway-Key": "gateway-secret-2", "X-Team": "such"}
    ) as lab:
        with pytest.raises(APIError, match=r"no such gateway key: \*\*\*"):
            lab.translate("a", **MEANT)
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(lab)
    with Client(server.base_url, default_headers={"X-Team": "speech"}) as lab:
        again = pickle.loads(pickle.dumps(lab))
        with again, pytest.raises(APIError):
            again.translate("a", **MEANT)
    assert server.requests[-1].headers["x-team"] == "speech"


# -- a key that a function gives


class Keys:
    """Gives another key each time; the service takes the last that was given."""

    def __init__(self):
        self.given = 0
        self.threads = set()

    def __call__(self):
        self.given += 1
        self.threads.add(threading.current_thread().name)
        return f"sl:fresh-key-{self.given}"


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_key_is_asked_for_once_and_again_when_it_is_refused(server, http, transport):
    def answer(request):
        fits = request.headers["authorization"] == f"Bearer sl:fresh-key-{valid}"
        return http.reply(body=TRANSLATED) if fits else http.reply(401, REFUSED)

    server.script(answer)
    keys, valid = Keys(), 1
    with Client(server.base_url, api_key=keys, transport=transport) as lab:
        assert keys.given == 0
        for _ in range(3):
            assert lab.translate("a", **MEANT).text == "Hello"
        assert keys.given == 1
        valid = 2
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _: lab.translate("a", **MEANT).text, range(20))) == {"Hello"}
        assert keys.given == 2
        assert "speechlab-client" not in keys.threads
        valid = 9
        with pytest.raises(AuthenticationError) as caught:
            lab.translate("a", **MEANT)
        assert (keys.given, caught.value.attempts) == (3, 2)
        assert "fresh-key" not in f"{caught.value} {vars(caught.value)} {lab!r}"
        valid = 4
        once = lab.with_options(max_retries=0)
        with pytest.raises(AuthenticationError):
            once.translate("a", **MEANT)
        assert once.translate("a", **MEANT).text == "Hello"  # the new key serves the next call


async def awaited():
    return "sl:x"


class Vault:
    async def __call__(self):
        return "sl:x"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            Mock(side_effect=OSError("the vault is closed")),
            "the function that was given as api_key failed: OSError: the vault is closed",
        ),
        (Vault(), "api_key is async; give one that returns the key, without async"),
        (lambda: None, "returned no text; let it return the key"),
        (lambda: "sl:a b", "the API key is empty, or contains spaces"),
    ],
    ids=range(4),
)
def test_a_function_that_gives_no_key(server, http, function, said):
    server.script(http.reply(body=TRANSLATED))
    with Client(server.base_url, api_key=function) as lab, pytest.raises(ConfigurationError, match=said):
        lab.translate("a", **MEANT)
    assert not server.requests
    with pytest.raises(ConfigurationError, match="a function without async"):
        Client(server.base_url, api_key=awaited)


def test_the_time_of_a_call_bounds_the_function_of_its_key(server):
    given = threading.Event()
    late = pytest.raises(APITimeoutError, match="waited for the function of api_key")
    with Client(server.base_url, api_key=lambda: given.wait(20) or "k-late") as lab, late:
        try:
            lab.translate("a", **MEANT, timeout=0.3)
        finally:
            given.set()
    assert not server.requests


# -- what may have been billed


def test_possibly_metered_lasts_over_the_attempts_of_a_call(server, lab, http):
    server.script(http.RESET, http.reply(400, {"error": "no"}))
    with pytest.raises(APIError, match="an earlier attempt had been sent in full") as caught:
        lab.translate("a", **MEANT)
    assert caught.value.possibly_metered
    assert caught.value.attempts == 2
    assert lab.usage.possibly_metered == 1
    server.script(http.reply(503), http.reply(503))
    with pytest.raises(ServerError) as caught:
        lab.with_options(max_retries=1).translate("a", **MEANT)
    assert not caught.value.possibly_metered
    server.script(http.RESET, http.reply(body=TRANSLATED))
    assert lab.translate("a", **MEANT).text == "Hello"
    assert (lab.usage.possibly_metered, lab.usage.calls) == (2, 1)
    server.script(http.RESET, http.reply(body=[]))
    lab.voices()
    assert lab.usage.possibly_metered == 2  # a list of voices costs nothing
