"""What a batch kept is enough: its store replays without the service that it came from."""

from __future__ import annotations

import pandas as pd
import pytest

import speechlab as sl
from speechlab.client import Client
from speechlab.errors import InvalidRequestError, ReplayMiss

FRAME = pd.DataFrame({"text": ["あ", "い"], "voice": ["Calm", "Calm"]})


@pytest.fixture
def store(tmp_path):
    return tmp_path / "kept"


def test_names_of_voices_are_known_without_the_service(answering, store, http, wav):
    with Client(answering.base_url) as lab:
        live = sl.batch.synthesize(FRAME, lab, format="wav", store=store, progress=False)
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
        again = sl.batch.synthesize(FRAME, lab, format="wav", store=store, progress=False)
    assert list(again.status) == ["cached", "cached"]
    assert list(again.audio) == list(live.audio)
    assert not answering.requests


def test_a_replaying_client_reads_the_batchs_store(answering, store, http, monkeypatch, tmp_path):
    def run():
        with sl.connect(answering.base_url) as lab:
            spoken = sl.batch.synthesize(FRAME, lab, format="wav", store=store, progress=False)
        return list(spoken.audio)

    monkeypatch.setenv("SPEECHLAB_STORE", str(tmp_path / "own"))
    live = run()
    answering.script(http.CLOSE)
    monkeypatch.setenv("SPEECHLAB_MODE", "replay")
    assert run() == live
    with sl.connect() as lab:
        more = sl.batch.synthesize(FRAME.assign(text="う"), lab, format="wav", store=store, progress=False)
    assert set(more.error_type) == {"ReplayMiss"}
    assert str(store) in more.error[0]
    assert not answering.requests
