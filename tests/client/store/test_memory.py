"""One store for cache, resume and replay: what is asked again costs nothing, what is replayed touches no network."""

import pickle

import pandas as pd
import pytest

import speechlab as sl
from speechlab.client import Client, Translate, connect, copy_for_timing, reveal_credentials
from speechlab.errors import (
    ConfigurationError,
    InvalidRequestError,
    ReplayMiss,
    ServerError,
    StreamTruncatedError,
)
from speechlab.store import Store
from support.samples import TRANSLATED

HEARD = {"text": "あ", "language": "ja", "confidence": 0.5, "extra": [1]}
SERVICE = "service-1"
MEANT = {"source_lang": "ja", "target_lang": "en"}


@pytest.fixture
def store(tmp_path):
    return tmp_path / "kept"


@pytest.fixture
def service(server, http, wav):
    """A service that answers everything, by path; `server.requests` tells what it was asked."""

    def answer(request):
        if request.path.endswith("/voices"):
            return http.reply(body={"voices": [http.VOICE]}, X_Speechlab_Service=SERVICE)
        if "asr" in request.path:
            return http.reply(body=HEARD, Server_Timing="engine;dur=12.5")
        if "translate" in request.path and b"true" in request.body:
            first, last = http.delta("Hel"), http.delta("lo", usage={"total_tokens": 3})
            pieces = (http.events(first, end=b""), 0.05, http.events(last))
            return http.chunked(*pieces, content_type="text/event-stream")
        if "translate" in request.path:
            return http.reply(body=TRANSLATED)
        if b'"stream":true' in request.body:
            return http.chunked(wav[:1000], 0.05, wav[1000:])
        return http.reply(body=wav, content_type="audio/wav")

    server.script(answer)
    return server


def work(lab, voice, wav):
    """Everything that a notebook may ask, as values that can be compared."""
    clip = lab.synthesize("あ", voice=voice)
    with lab.stream_speech("あ", voice=voice) as speech:
        pieces = list(speech)
    with lab.stream_translation("あ", **MEANT) as stream:
        chunks = list(stream)
    return [
        lab.voices().frame().to_dict(),
        (clip.encoded, clip.timing, clip.content_type, clip.samples.tobytes()),
        lab.transcribe(wav, language="ja", hotwords=["x"]),
        lab.transcribe(wav).reply,
        lab.translate("あ", **MEANT, keywords=["k"]),
        (pieces, speech.timing, speech.content_type),
        (chunks, stream.translation),
    ]


def test_a_store_answers_again_and_without_a_network(service, store, http, wav):
    with Client(service.base_url, api_key=http.KEY, store=store) as lab:
        first = work(lab, http.VOICE_ID, wav)
        spent, asked = lab.usage, len(service.requests)
        assert work(lab, http.VOICE_ID, wav) == first
        assert lab.usage == spent
        assert len(service.requests) == asked + 1  # the catalogue, which tells whose answers these are
    del service.requests[:]
    with connect(store=store, mode="replay") as lab:
        assert work(lab, "Calm", wav) == first
        assert lab.usage.calls == 0
        assert lab.identity() == SERVICE
    assert not service.requests
    for path in store.rglob("*"):
        assert not path.is_file() or http.KEY.encode() not in path.read_bytes()


def test_modes_and_the_stores_of_their_calls(service, http, tmp_path, monkeypatch):
    own = tmp_path / "own" / "store.sqlite"
    monkeypatch.setenv("SPEECHLAB_STORE", str(own.parent))
    with Client(service.base_url, store=tmp_path / "kept", mode="live") as lab:
        for _ in range(2):
            lab.translate("a", **MEANT)
        assert lab.usage.calls == 2
        lab.with_options(mode="auto").translate("a", **MEANT)
        assert lab.usage.calls == 2
        with pytest.raises(ReplayMiss):
            lab.with_options(mode="replay").translate("b", **MEANT)
    monkeypatch.setenv("SPEECHLAB_MODE", "auto")
    with Client(service.base_url) as lab:
        lab.translate("a", **MEANT)
    assert own.exists()
    monkeypatch.setenv("SPEECHLAB_MODE", "replay")
    with connect() as lab, pickle.loads(pickle.dumps(lab)) as twin:  # which takes its store along
        assert lab.translate("a", **MEANT) == twin.translate("a", **MEANT)
    monkeypatch.setenv("SPEECHLAB_MODE", "rerun")
    wrong = "SPEECHLAB_MODE is 'rerun'; it is one of auto, live, replay"
    with pytest.raises(ConfigurationError, match=wrong):
        connect()


def test_what_a_batch_kept_in_place_of_a_call_is_the_answer(store, http):
    with Store(store) as kept:
        kept.put("v", operation="voices", request={"base_url": "http://x"}, response={"service": SERVICE})
        kept.keep_facts("v", {"service": SERVICE, "body": [http.VOICE]})
        asked, answer = Translate("あ", **MEANT), {"text": "Hello", "model": "m", "prompt_tokens": 3}
        key = asked.compute_key(SERVICE)
        kept.put(key, operation="translate", request=asked.parameters, response=answer)
        kept.keep_facts(key, {"response": {"text": "of a former one"}, "body": TRANSLATED})
        with Client(store=kept, mode="replay") as lab:
            meaning = lab.translate("あ", **MEANT)
            assert (meaning.text, meaning.model, meaning.usage.prompt_tokens) == ("Hello", "m", 3)


def test_store_none_is_no_store(service, store, http, tmp_path, monkeypatch):
    monkeypatch.setenv("SPEECHLAB_STORE", str(tmp_path / "own"))
    with Client(service.base_url, store=store) as lab:
        lab.translate("a", **MEANT)
        without = lab.with_options(store=None)
        without.translate("a", **MEANT)
        without.translate("b", **MEANT)
        assert lab.usage.calls == 3
        lab.translate("b", **MEANT)  # which the other has not kept
        assert lab.usage.calls == 4
        with pytest.raises(ConfigurationError, match="store is None, but this client only replays"):
            lab.with_options(mode="replay").with_options(store=None)
    assert not (tmp_path / "own").exists()


def test_failures_are_not_kept(server, store, http, wav):
    catalogue = http.reply(body={"voices": []})
    server.script(catalogue, http.reply(500), http.reply(body=TRANSLATED))
    with Client(server.base_url, store=store, max_retries=0) as lab:
        with pytest.raises(ServerError):
            lab.translate("a", **MEANT)
        assert lab.translate("a", **MEANT).text == "Hello"
    server.script(catalogue, [*http.chunked(wav[:500], end=False), http.CLOSE], http.chunked(wav))
    with Client(server.base_url, store=store) as lab:
        with pytest.raises(StreamTruncatedError):
            lab.stream_speech("a", voice=http.VOICE_ID).collect()
        with lab.stream_speech("a", voice=http.VOICE_ID) as stream:
            next(stream)  # left early: not whole, and so not kept
    with Client(server.base_url, store=store) as lab:
        server.script(catalogue, http.chunked(wav))
        assert lab.stream_speech("a", voice=http.VOICE_ID).collect().encoded == wav


def test_streams_are_replayed_at_once_or_as_recorded(service, store, http, clock):
    with Client(service.base_url, store=store) as lab, lab.stream_speech("あ", voice=http.VOICE_ID) as stream:
        recorded = list(stream)
    with Client(store=store, mode="replay", clock=clock) as lab:
        with lab.stream_speech("あ", voice=http.VOICE_ID) as stream:
            assert list(stream) == recorded
        assert not clock.slept
        with lab.with_options(pace="as recorded").stream_speech("あ", voice=http.VOICE_ID) as stream:
            assert list(stream) == recorded
        assert sum(clock.slept) >= 0.04


FRAME = pd.DataFrame({"text": ["あ", "い"], "voice": ["Calm", "Calm"]})


def test_names_of_voices_are_known_without_the_service(answering, store, http, wav, monkeypatch, tmp_path):
    def run(lab, **changed):
        return sl.batch.synthesize(FRAME.assign(**changed), lab, format="wav", store=store, progress=False)

    monkeypatch.setenv("SPEECHLAB_STORE", str(tmp_path / "own"))
    with sl.connect(answering.base_url) as lab:
        live = run(lab)
    assert list(live.status) == ["ok", "ok"]
    answering.script(http.CLOSE)
    with Client(store=store, mode="replay") as lab:
        assert lab.voices()["calm"].id == http.VOICE_ID
        assert lab.voices()[0].sample_rates == (16000, 24000)
        assert lab.synthesize("あ", voice="Calm").encoded == wav
        with pytest.raises(ReplayMiss, match="text"):
            lab.synthesize("う", voice="Calm")
        with pytest.raises(InvalidRequestError, match="fits no voice"):
            lab.synthesize("あ", voice="Loud")
        again = run(lab)
    assert list(again.status) == ["cached", "cached"]
    assert list(again.audio) == list(live.audio)
    # a replaying client reads the store of the batch, too
    monkeypatch.setenv("SPEECHLAB_MODE", "replay")
    with sl.connect(answering.base_url) as lab:
        assert list(run(lab).audio) == list(live.audio)
        more = run(lab, text="う")
    assert set(more.error_type) == {"ReplayMiss"}
    assert str(store) in more.error[0]
    assert not answering.requests


def test_copy_for_timing_makes_each_call_once_and_keeps_it(server, http, wav, store):
    voices, away = http.reply(body={"voices": [http.VOICE]}), http.reply(503, body={"error": "away"})
    spoken = http.reply(body=wav, content_type="audio/wav")
    by_path = {"/tts/voices": voices, "/translate/": away, "/tts": spoken}
    server.script(lambda request: by_path[request.path])
    with Client(server.base_url, store=store, mode="auto") as lab:
        for _ in range(2):
            copy_for_timing(lab, keep=True).synthesize("あ", voice=http.VOICE_ID)
        with pytest.raises(ServerError):
            copy_for_timing(lab, keep=True).translate("あ", source_lang="ja", target_lang="en")
    assert [one.path for one in server.requests if one.method == "POST"] == ["/tts", "/tts", "/translate/"]
    asked = len(server.requests)
    with connect(store=store, mode="replay") as lab:
        assert copy_for_timing(lab, keep=True).synthesize("あ", voice=http.VOICE_ID).duration_s > 0
    assert len(server.requests) == asked


def test_reveal_credentials_gives_those_of_a_live_client(answering, store, http):
    with Client(answering.base_url, ws_base_url="ws://127.0.0.1:9", api_key=http.KEY) as lab:
        assert reveal_credentials(lab) == (answering.base_url, "ws://127.0.0.1:9", http.KEY)
    with Client(answering.base_url, store=store, mode="auto") as lab:
        assert reveal_credentials(lab)[2] == ""
        lab.voices()
    with connect(store=store, mode="replay") as lab, pytest.raises(ReplayMiss, match="this tool"):
        reveal_credentials(lab)
