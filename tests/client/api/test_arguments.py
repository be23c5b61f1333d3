"""Arguments of the wrong kind are refused in words, before anything is sent, and never fail raw."""

import asyncio
import contextlib
import inspect
import io
from pathlib import Path

import pytest

import speechlab as sl
from speechlab.client import Client, connect
from speechlab.contract import SEGMENT_FIELDS
from speechlab.errors import APIError, APITimeoutError, ConfigurationError, InvalidRequestError
from support.arguments import WRONG, list_accepted, list_client_options
from support.texts import check_refusals

REFUSALS = Path(__file__).parents[1] / "refusals.md"

SPOKEN = {"text": "あ", "voice": "0f8fad5b-d9cb-469f-a165-70867728950e"}
MEANT = {"text": "あ", "source_lang": "ja", "target_lang": "en"}
SESSION = {"voice": SPOKEN["voice"], "format": "pcm"}
ANY_TEXT, ANY_LENGTH = "None x empty", "None 0 2 5"
LENGTHS = ("initial_segment_padding_ms", "max_retries", "min_silence_gap", "segment_padding", "speech_pad_ms")
ACCEPTED = {
    "allow_insecure": "True",
    "connect_timeout_s": "2 5 1.5",
    "content": "None bytes",
    "default_headers": "{}",
    "form": "None []",
    "frequency_penalty": "None 0 2 -1 1.5",
    "headers": "None {}",
    "hotwords": "None x empty []",
    "json": "None 0 2 5 -1 1.5 True x empty [] [5] [None] [nan] {} nan",
    "keywords": "None x []",
    "max_concurrency": "2 5",
    "patience_s": "0 2 5 1.5",
    "path": "x empty",
    "repetition_penalty": "None 2 1.5",
    "streaming": "None True",
    **dict.fromkeys(LENGTHS, ANY_LENGTH),
    **dict.fromkeys(("min_segment_duration", "temperature"), "None 0 2 5 1.5"),
    **dict.fromkeys(("read_timeout_s", "timeout"), "None 2 5 1.5"),
    **dict.fromkeys(("sample_rate", "top_p", "vad"), "None 0"),
    **dict.fromkeys(("language", "mode", "ws_base_url"), "None empty"),
    **dict.fromkeys(("method", "source_lang", "target_lang", "text"), "x"),
    **dict.fromkeys(("adapter", "engines", "on_event", "respell", "transport"), "None"),
    **dict.fromkeys(("api_key", "context", "gender", "model", "session_id", "store"), ANY_TEXT),
}
ACCEPTED_BY = {
    **{("with_options", name): "" for name in ("adapter", "engines", "transport")},
    **{("transcribe", name): "None" for name in SEGMENT_FIELDS},  # which are refused without segments
    **{(name, "temperature"): "None 0 2 1.5" for name in ("transcribe", "segments")},
    **{("find", name): ANY_TEXT for name in ("format", "language")},
}
ALIASES = {"name": "a voice is asked for", "json": "the body"}


def parameters(method):
    return [name for name in inspect.signature(method).parameters if name not in {"self", "cls"}]


OPTIONS = [*parameters(Client)[:3], *list_client_options()]


def list_accepted_unsent(server, function, good, names, aliases=None):
    """As :func:`list_accepted`; a call that is refused has sent nothing but a question for the voices."""

    def call(**arguments):
        server.requests.clear()
        try:
            function(**arguments)
        except APITimeoutError:
            pass  # it was accepted and sent, and a busy machine answers late
        except Exception:
            assert not [request for request in server.requests if not request.path.endswith("/voices")]
            raise

    return list_accepted(call, good, names, aliases=aliases)


def expect(name, arguments):
    """Return what the arguments of a function take by the tables."""
    return {argument: ACCEPTED_BY.get((name, argument), ACCEPTED.get(argument, "")) for argument in arguments}


@pytest.mark.slow
def test_wrong_arguments_of_calls_are_refused_by_name(answering, lab, wav):
    # What answers here is no realtime service: a call that was accepted ends with its reply to the handshake.
    def configure(**arguments):
        with contextlib.suppress(APIError):
            lab.realtime(**arguments).open()

    def speak(text):
        with contextlib.closing(lab.realtime(**SESSION)) as session, contextlib.suppress(APIError):
            session.speak(text).collect()

    def stream(**arguments):
        return (lab.stream_speech if "voice" in arguments else lab.stream_translation)(**arguments).collect()

    voices, heard = lab.voices(), {"audio": wav}
    for name, function, arguments, names in (
        ("synthesize", lab.synthesize, SPOKEN, parameters(Client.synthesize)),
        ("stream_speech", stream, SPOKEN, parameters(Client.stream_speech)),
        ("transcribe", lab.transcribe, heard, parameters(Client.transcribe)),
        ("segments", lab.transcribe, {**heard, "vad": "segments"}, parameters(Client.transcribe)),
        ("translate", lab.translate, MEANT, parameters(Client.translate)),
        ("translate", stream, MEANT, parameters(Client.translate)),
        ("realtime", configure, SESSION, parameters(Client.realtime)),
        ("request", lab.request, {"method": "GET", "path": "/x"}, parameters(Client.request)),
        ("find", voices.find, {}, parameters(voices.find)),
        ("one", voices.one, {}, ["name"]),
        ("speak", speak, {}, ["text"]),
    ):
        accepted = list_accepted_unsent(answering, function, arguments, names, ALIASES)
        assert (name, accepted) == (name, expect(name, names))
    for value in WRONG.values():
        assert voices.get(value) is None


@pytest.mark.slow
def test_wrong_options_are_refused_by_name(answering, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def make(**options):
        with Client(**{"base_url": answering.base_url, **options}) as lab:
            lab.translate(**MEANT)

    def change(**options):
        with Client(answering.base_url) as lab:
            lab.with_options(**options).translate(**MEANT)

    for name, function, names in (
        ("Client", make, OPTIONS),
        ("with_options", change, OPTIONS[3:]),
    ):
        accepted = list_accepted_unsent(answering, function, {}, names)
        assert (name, accepted) == (name, expect(name, names))


def test_a_single_text_is_one_term(answering, lab, wav):
    for keywords, count in (("いい天気", 1), (None, 0)):
        lab.translate(**{**MEANT, "keywords": keywords})
        body = answering.requests[-1].body.decode()
        assert (body.count('name="keywords"'), "いい天気" in body) == (count, bool(count))
    lab.transcribe(wav, hotwords="いい天気")
    assert answering.requests[-1].json["hotwords"] == ["いい天気"]


@pytest.mark.parametrize("make", [Client, connect])
def test_refusals_of_options(make, server):
    names = {"asyncio": asyncio, "make": lambda **options: make(**{"base_url": server.base_url, **options})}
    check_refusals(REFUSALS, "clients", **names)


def test_refusals_of_calls_send_nothing(answering, lab, wav, http):
    voice = sl.Voice.parse(http.VOICE)
    lab.voices()
    answering.requests.clear()
    check_refusals(REFUSALS, "calls", sl=sl, io=io, lab=lab, wav=wav, voice=voice)
    with pytest.raises(InvalidRequestError, match="control characters"):
        lab.request("GET", "/x\r\nOther: 1")
    for url in ("http://127.0.0.1/\r\nOther: 1", "http://127.0.0.1\x00"):
        with pytest.raises(ConfigurationError, match="base_url"):
            Client(url)
    with pytest.raises(InvalidRequestError) as caught:
        lab.synthesize(**{**SPOKEN, "format": "aac"})
    assert (caught.value.parameter, caught.value.rule) == ("format", "2.2")
    assert not [request for request in answering.requests if not request.path.endswith("/voices")]
