"""Arguments of the wrong kind are refused in words, before anything is sent, and never fail raw."""

from __future__ import annotations

import asyncio
import inspect

import pandas as pd
import pytest

from speechlab.client import AsyncClient, Client, connect
from speechlab.client._api import portal as _portal
from speechlab.client._settings.settings import ClientOptions
from speechlab.errors import ConfigurationError, InvalidRequestError, SpeechLabError

NAN = float("nan")
WRONG = [None, 5, -1, 1.5, True, "x", "", b"x", [], [5], {}, NAN, pd.NA, object()]
SPOKEN = {"text": "あ", "voice": "0f8fad5b-d9cb-469f-a165-70867728950e"}
MEANT = {"text": "あ", "source_lang": "ja", "target_lang": "en"}
SESSION = {"voice": SPOKEN["voice"], "format": "pcm"}
HTML = {"method": "GET", "path": "/x"}


def parameters(method):
    return [name for name in inspect.signature(method).parameters if name not in {"self", "cls"}]


def cases(method, *names):
    return [
        pytest.param(name, value, id=f"{name}={value!r:.20}")
        for name in names or parameters(method)
        for value in WRONG
    ]


def fine(result):
    return result


@pytest.fixture
def good(server, http, wav):
    """A service that answers whatever is asked, and counts what costs."""

    def answer(request):
        if request.path.endswith("/voices"):
            return http.reply(body={"voices": [http.VOICE]})
        if "asr" in request.path:
            return http.reply(body={"text": "あ", "language": "ja"})
        if "translate" in request.path:
            return http.reply(body={"choices": [{"message": {"content": "Hello"}}]})
        return http.reply(body=wav, content_type="audio/wav")

    server.script(answer)
    return server


def check(server, call):
    """It works, or is refused in words before anything is sent but a look at the catalogue."""
    server.requests.clear()
    try:
        call()
    except FileNotFoundError as error:
        assert "'x'" in str(error)
    except SpeechLabError as error:
        assert not [request for request in server.requests if not request.path.endswith("/voices")], error
        assert isinstance(error, (InvalidRequestError, ConfigurationError)), repr(error)
        assert len(str(error)) > 15
        assert "object at 0x" not in str(error) or "<object object" in str(error)


@pytest.mark.parametrize(("name", "value"), cases(Client.synthesize))
def test_synthesize(good, lab, name, value):
    check(good, lambda: lab.synthesize(**{**SPOKEN, name: value}))


@pytest.mark.parametrize(("name", "value"), cases(Client.stream_speech))
def test_stream_speech(good, lab, name, value):
    check(good, lambda: lab.stream_speech(**{**SPOKEN, name: value}).collect())


@pytest.mark.parametrize(("name", "value"), cases(Client.transcribe))
def test_transcribe(good, lab, wav, name, value):
    check(good, lambda: lab.transcribe(**{"audio": wav, name: value}))
    check(good, lambda: lab.transcribe(**{"audio": wav, "vad": "segments", name: value}))


@pytest.mark.parametrize(("name", "value"), cases(Client.translate))
def test_translate(good, lab, name, value):
    check(good, lambda: lab.translate(**{**MEANT, name: value}))
    check(good, lambda: lab.stream_translation(**{**MEANT, name: value}).collect())


@pytest.mark.parametrize(("name", "value"), cases(Client.realtime))
def test_realtime(good, lab, name, value):
    def call():
        session = lab.realtime(**{**SESSION, name: value})
        _portal.run(session._async._ensure_config)

    check(good, call)


@pytest.mark.parametrize("value", [value for value in WRONG if not isinstance(value, str) or not value])
def test_realtime_texts(good, lab, value):
    def speak():
        session = lab.realtime(**SESSION)
        try:
            session.speak(value).close()
        finally:
            session.close()

    check(good, speak)


@pytest.mark.parametrize(("name", "value"), cases(Client.request))
def test_request(good, lab, name, value):
    try:
        lab.request(**{**HTML, name: value})
    except SpeechLabError as error:
        assert not good.requests
        assert isinstance(error, InvalidRequestError), repr(error)


def test_line_breaks_do_not_reach_the_address(good, lab):
    with pytest.raises(InvalidRequestError, match="control characters"):
        lab.request("GET", "/x\r\nOther: 1")
    for url in ("http://127.0.0.1/\r\nOther: 1", "http://127.0.0.1\x00"):
        with pytest.raises(ConfigurationError, match="base_url"):
            Client(url)
    assert not good.requests


OPTIONS = [*parameters(Client)[:3], *ClientOptions.__annotations__]


@pytest.mark.parametrize(("name", "value"), cases(Client, *OPTIONS))
def test_options(good, name, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call():
        with Client(**{"base_url": good.base_url, name: value}) as lab:
            lab.translate(**MEANT)

    check(good, call)
    check(good, lambda: asyncio.run(awaited(good, name, value)))
    if name not in {"base_url", "ws_base_url", "api_key"}:
        with Client(good.base_url) as lab:
            good.requests.clear()
            check(good, lambda: lab.with_options(**{name: value}).translate(**MEANT))


async def awaited(server, name, value):
    async with AsyncClient(**{"base_url": server.base_url, name: value}) as lab:
        await lab.translate(**MEANT)


@pytest.mark.parametrize("value", WRONG)
def test_catalogue(good, lab, value):
    voices = lab.voices()
    for name in parameters(voices.find):
        check(good, lambda name=name: voices.find(**{name: value}))
    check(good, lambda: voices.one(value))
    check(good, lambda: voices.get(value))
    if not isinstance(value, (int, float)) and value is not None:
        check(good, lambda: voices[value])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout": "x"}, "timeout is 'x'; give seconds above 0, or None"),
        ({"timeout": NAN}, "timeout is nan; give seconds above 0, or None"),
        ({"api_key": 5}, "api_key is a int; give the key as text"),
        ({"base_url": 5}, "base_url is 5; it must look like https://host"),
        ({"store": 5}, "store is 5; give a Store, the path of its folder, or None"),
        ({"mode": 3}, "mode is 3; it is one of auto, live, replay"),
        ({"max_retries": 1.5}, "max_retries is 1.5; it must be a whole number of at least 0"),
        ({"allow_insecure": "no"}, "allow_insecure is 'no'; give True or False"),
        ({"clock": 5}, r"clock is 5, which has no monotonic\(\); it needs monotonic, time, sleep"),
    ],
)
def test_what_is_said_of_options(server, options, words):
    for make in (Client, connect):
        with pytest.raises(ConfigurationError, match=words):
            make(**{"base_url": server.base_url, **options})


def test_what_is_said_of_calls(good, lab, wav):
    for call, words in (
        (lambda: lab.transcribe(5), r"audio is a int; give a path, bytes, .* an AudioClip"),
        (lambda: lab.transcribe(wav, hotwords=5), "hotwords is a int; give a list of texts"),
        (lambda: lab.translate(**{**MEANT, "keywords": b"x"}), "keywords is a bytes; give a list of texts"),
        (lambda: lab.synthesize(**{**SPOKEN, "voice": 5}), "voice is a int; give a Voice, its id"),
        (lambda: lab.voices().find(language=5), "language is asked for by a int; give a text"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            call()


def test_a_single_text_is_one_term(good, lab, wav):
    lab.translate(**{**MEANT, "keywords": "いい天気"})
    assert good.requests[-1].body.decode().count('name="keywords"') == 1
    assert "いい天気" in good.requests[-1].body.decode()
    lab.transcribe(wav, hotwords="いい天気")
    assert good.requests[-1].json["hotwords"] == ["いい天気"]
    lab.translate(**{**MEANT, "keywords": None})
    assert b"keywords" not in good.requests[-1].body
