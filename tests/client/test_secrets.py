"""A key that is planted is found nowhere but on the wire."""

import asyncio
import copy
import io
import logging
import pickle
import pprint
from itertools import product

import pytest

from speechlab.client import AsyncClient, Client, Secret, connect
from speechlab.errors import ConfigurationError, ContractError, SpeechLabError
from support.arguments import list_client_options
from support.samples import TRANSLATED

MEANT = {"source_lang": "ja", "target_lang": "en"}


FAILURES = {
    "401": lambda http: [
        http.reply(401, {"code": 104, "error": f"bad key {http.KEY}", "context": [http.KEY]})
    ],
    "HTML": lambda http: [http.reply(500, f"<html>{http.KEY}".encode(), "text/html")],
    "reset": lambda http: [http.RESET],
    "not HTTP": lambda http: [b"nonsense\r\n\r\n", http.CLOSE],
    "cut": lambda http: [b"HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\n", http.CLOSE],
    "redirect": lambda http: [http.reply(307, Location=f"http://elsewhere/?key={http.KEY}")],
    "no JSON": lambda http: [http.reply(200, b"?")],
    "timeout": lambda http: [5.0],
}


LOGGERS = ("aiohttp.client", "httpcore2", "httpx2", "httpcore2.http11", "httpcore2.connection", "asyncio")


def everything_of(error):
    """Tracebacks with the locals of all frames, of the error and of all that hangs on it."""
    texts, seen, queue = [], set(), [error]
    while queue:
        one = queue.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        queue += [one.__cause__, one.__context__]
        texts += [repr(one), str(one), repr(vars(one))]
        trace = one.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename != __file__:  # the test itself knows the key
                for value in trace.tb_frame.f_locals.values():
                    texts.append(repr(value))
                    texts.append(pprint.pformat(getattr(value, "__dict__", None)))
            trace = trace.tb_next
    return "\n".join(texts)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
@pytest.mark.parametrize("kind", FAILURES)
def test_018_errors_and_their_frames_hold_no_key(server, http, caplog, kind, transport):
    for name in ("", *LOGGERS):
        caplog.set_level(logging.DEBUG, logger=name)
    server.script(FAILURES[kind](http))
    options = {"max_retries": 1, "timeout": 0.5, "rng": http.Half(), "transport": transport}

    async def cancel():
        async with AsyncClient(server.base_url, api_key=http.KEY, **options) as lab:
            task = asyncio.ensure_future(lab.translate("a", **MEANT))
            await asyncio.sleep(0.2)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError as error:
                return everything_of(error)

    with Client(server.base_url, api_key=http.KEY, **options) as lab:
        with pytest.raises(SpeechLabError) as caught:
            lab.translate("a", **MEANT)
        found = everything_of(caught.value)
    assert server.requests[0].headers["authorization"] == f"Bearer {http.KEY}"
    if kind == "timeout":
        found += asyncio.run(cancel())
    assert http.KEY not in found
    assert "Bearer" not in found
    assert http.KEY.encode() not in pickle.dumps(caught.value)
    logged = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert transport or "httpcore2" in logged
    assert http.KEY not in logged


def test_a_key_in_the_wrong_place_is_not_shown(server, http, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for wrong in (http.KEY.encode(), list(http.KEY), [http.KEY], f"{http.KEY}\n x"):
        for make in (Client, AsyncClient):
            with pytest.raises(ConfigurationError, match=r"key (is|as)") as caught:
                make(server.base_url, api_key=wrong)
            assert http.KEY not in everything_of(caught.value)
    secret = http.KEY.partition(":")[2]
    addresses = (form + http.KEY for form in ("vendor://", "http://", "https://127.0.0.1/?key="))
    values = [secret, http.KEY, http.KEY.encode(), [http.KEY], {http.KEY: http.KEY}, *addresses]
    for name, value in product(["base_url", "ws_base_url", *list_client_options()], values):
        for make in (Client, connect):
            try:
                make(**{"base_url": server.base_url, "max_retries": 0, name: value}).close()
            except ConfigurationError as error:
                assert secret not in f"{error} {vars(error)}"
    monkeypatch.setenv("SPEECHLAB_MODE", http.KEY)
    with pytest.raises(ConfigurationError, match="SPEECHLAB_MODE is a text") as caught:
        Client(server.base_url)
    assert secret not in str(caught.value)


def test_a_key_under_a_wrong_name_is_in_no_frame(server, http):
    with Client(server.base_url) as lab:
        for name in ("token", "authorization", "retries"):
            for make in (Client, AsyncClient, connect, lambda _, **given: lab.with_options(**given)):
                with pytest.raises(ConfigurationError, match=f"no option {name!r}") as caught:
                    make(server.base_url, **{name: http.KEY})
                assert ("the key is api_key" in str(caught.value)) == (name != "retries")
                assert http.KEY not in everything_of(caught.value)


def test_018_clients_show_no_key(server, lab, http):
    server.script(http.reply(body=TRANSLATED))
    lab.translate("a", **MEANT)
    seen = [repr(lab), str(lab), pprint.pformat(vars(lab))]
    queue, known = [lab], set()
    while queue:  # everything that attributes and slots lead to
        one = queue.pop()
        if id(one) in known or len(known) > 20_000:
            continue
        known.add(id(one))
        seen.append(repr(one))
        queue += list(getattr(one, "__dict__", {}).values())
        if isinstance(one, dict):
            queue += list(one.values())
        elif isinstance(one, (list, tuple, set)):
            queue += list(one)
    assert http.KEY not in "\n".join(seen)
    assert http.KEY not in repr(copy.deepcopy(lab)) + repr(vars(copy.copy(lab)))


def test_pickles_hold_no_key_and_take_it_from_the_environment(server, lab, http, monkeypatch):
    for client in (lab, AsyncClient(server.base_url, api_key=http.KEY, timeout=7)):
        data = pickle.dumps(client)
        assert http.KEY.encode() not in data
        assert b"speechlab.client._" not in data  # it outlives the files that it was made by
        with pytest.raises(ConfigurationError, match="SPEECHLAB_API_KEY"):
            pickle.loads(data)
        with monkeypatch.context() as patch:
            patch.setenv("SPEECHLAB_API_KEY", http.KEY)
            again = pickle.loads(data)
        assert type(again) is type(client)
        assert again.base_url == server.base_url
    assert again._settings.timeout == 7
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Secret("sl:a"))


def test_loggers_below_are_guarded(server, http):
    secret = Secret(http.KEY)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    server.script(http.reply(body=TRANSLATED))
    with Client(server.base_url, api_key=secret) as lab:
        lab.translate("a", **MEANT)
    for name in ("websockets.client", "httpx2", "speechlab.client"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.warning("> Authorization: Bearer %s", http.KEY)
        logger.removeHandler(handler)
    assert http.KEY not in stream.getvalue()
    assert stream.getvalue().count("***") == 3
    assert secret.fingerprint() == Secret(http.KEY + "\n").fingerprint()


def test_a_key_travels_to_this_machine_or_over_tls_alone(http):
    for host in ("example.org", "10.0.0.1:8100", "localhost.example.org", "[2001:db8::1]"):
        address = f"http://{host}"
        for kind in (Client, AsyncClient):
            with pytest.raises(ConfigurationError, match="allow_insecure") as caught:
                kind(address, api_key=http.KEY)
            assert http.KEY not in everything_of(caught.value)
            kind(address, api_key=http.KEY, allow_insecure=True)
            kind(address)
        with pytest.raises(ConfigurationError, match="ws_base_url"):
            Client("https://example.org", ws_base_url=address.replace("http", "ws"), api_key=http.KEY)
    local = ("http://127.0.0.1", "http://localhost:1", "http://[::1]:8100/x")
    for address in (*local, "https://example.org/v2"):
        assert Client(address, api_key=http.KEY).ws_base_url == address.replace("http", "ws", 1)


def test_arguments_come_before_the_environment(server, http, monkeypatch):
    with pytest.raises(ConfigurationError, match="SPEECHLAB_BASE_URL"):
        Client()
    monkeypatch.setenv("SPEECHLAB_BASE_URL", server.base_url)
    monkeypatch.setenv("SPEECHLAB_WS_BASE_URL", "ws://127.0.0.1:7")
    with Client() as lab:
        assert (lab.base_url, lab.ws_base_url) == (server.base_url, "ws://127.0.0.1:7")
    with Client("http://localhost:1") as lab:
        assert lab.ws_base_url == "ws://localhost:1"


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_malformed_reply_that_echoes_the_key_hides_it(server, http, transport):
    key = "vendor:echoed-by-a-proxy"
    server.script(http.reply(body=f"Authorization: Bearer {key}".encode(), content_type="text/plain"))
    with Client(server.base_url, api_key=key, transport=transport) as lab:
        for call in (
            lambda: lab.translate("a", **MEANT),
            lab.voices,
            lambda: lab.stream_speech("a", voice=http.VOICE_ID).collect(),
            lambda: lab.request("GET", "/x").json(),
        ):
            with pytest.raises(ContractError) as caught:
                call()
            assert key not in f"{caught.value}{caught.value!r}{vars(caught.value)}"
