"""What other rooms ask of a client: calls that are made each time, and the address and the key for tools."""

from __future__ import annotations

import pytest

from speechlab.client import Client, connect, copy_for_timing, reveal_credentials
from speechlab.errors import ReplayMiss, ServerError


@pytest.fixture
def service(server, http, wav):
    def answer(request):
        if request.path.endswith("/voices"):
            return http.reply(body={"voices": [http.VOICE]})
        if "translate" in request.path:
            return http.reply(503, body={"error": "away"})
        return http.reply(body=wav, content_type="audio/wav")

    server.script(answer)
    return server


def test_each_call_is_made_once_and_kept(service, tmp_path, http):
    with Client(service.base_url, store=tmp_path / "kept", mode="auto") as lab:
        for _ in range(2):
            copy_for_timing(lab, keep=True).synthesize("あ", voice=http.VOICE_ID)
        with pytest.raises(ServerError):
            copy_for_timing(lab, keep=True).translate("あ", source_lang="ja", target_lang="en")
        assert [one.path for one in service.requests if one.method == "POST"] == [
            "/tts",
            "/tts",
            "/translate/",
        ]
    asked = len(service.requests)
    with connect(store=tmp_path / "kept", mode="replay") as lab:
        assert copy_for_timing(lab, keep=True).synthesize("あ", voice=http.VOICE_ID).duration_s > 0
    assert len(service.requests) == asked


def test_reveal_credentials_gives_those_of_a_live_client(service, tmp_path, http):
    with Client(service.base_url, ws_base_url="ws://127.0.0.1:9", api_key=http.KEY) as lab:
        assert reveal_credentials(lab) == (service.base_url, "ws://127.0.0.1:9", http.KEY)
    with Client(service.base_url, store=tmp_path / "kept", mode="auto") as lab:
        assert reveal_credentials(lab)[2] == ""
        lab.voices()
    with connect(store=tmp_path / "kept", mode="replay") as lab, pytest.raises(ReplayMiss, match="this tool"):
        reveal_credentials(lab)
