"""What a service tells those who wait: how much it works on at once, and that it goes on."""

from __future__ import annotations

import pandas as pd
import pytest

import speechlab as sl
from speechlab.client import Client
from speechlab.errors import InvalidRequestError
from support.clock import eventually

SAYS = b"HTTP/1.1 100 Continue\r\n\r\n"


def test_every_reply_says_how_much_is_worked_on_at_once(staged):
    for path, key in (("/tts/voices", ""), ("/nothing", ""), ("/tts/voices", "sl:wrong")):
        told = staged.http.request("GET", path, key=key).headers["x-speechlab-concurrency"]
        assert dict(one.split("=") for one in told.split(", ")).keys() == {"tts", "asr", "translate"}


def test_a_batch_into_an_unknown_language_is_refused_first(staged, tmp_path):
    assert staged.http.request("GET", "/tts/voices").headers["x-speechlab-translates"] == "ja, en, zh"
    rows = pd.DataFrame({"text": ["One.", "Two."], "to": ["fr", "ja"]})
    given = {"source_lang": "en", "store": tmp_path, "progress": False}
    with Client(staged.http.base_url, api_key=staged.http.key) as lab:
        with pytest.raises(InvalidRequestError, match=r"target_lang is 'fr'.* between ja, en, zh"):
            sl.batch.translate(rows, lab, target_lang="fr", **given)
        assert not staged.translator.jobs
        with pytest.warns(UserWarning, match="1 of 2 rows failed"):
            table = sl.batch.translate(rows, lab, target_lang="to", **given)
    assert table["status"].tolist() == ["error", "ok"]


@pytest.mark.slow
@pytest.mark.parametrize("asks", [True, False])
def test_a_client_that_asks_hears_that_its_call_waits(staged, asks, monkeypatch):
    monkeypatch.setattr("speechlab.service._gate.guard._PULSE_S", 0.05)
    fields = {"voice_id": staged.voice("gated"), "text": "x", "format": "pcm"}
    with staged.http.raw_json("/tts", fields, "X-Speechlab-Interim: 100\n" if asks else "") as connection:
        assert eventually(lambda: staged.speaker.calls)
        connection.settimeout(1.0)
        if asks:
            assert connection.recv(len(SAYS)) == SAYS
        else:
            with pytest.raises(TimeoutError):
                connection.recv(1)
        staged.speaker.gate.set()
        connection.settimeout(20)
        data = b""
        while b"HTTP/1.1 200 " not in data:
            data += connection.recv(65_536)
        assert (SAYS in data) <= asks
