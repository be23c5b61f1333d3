"""What batches and tools of other rooms ask of a client and its store: replays, calls made each time, credentials."""

from __future__ import annotations

import pandas as pd
import pytest

import speechlab as sl
from speechlab.client import Client, connect, copy_for_timing, reveal_credentials
from speechlab.errors import InvalidRequestError, ReplayMiss, ServerError

FRAME = pd.DataFrame({"text": ["あ", "い"], "voice": ["Calm", "Calm"]})


@pytest.fixture
def store(tmp_path):
    return tmp_path / "kept"


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
