"""Keys that change while their connection is open: looked at again with each update and each text."""

import contextlib
import sqlite3

import pytest

from speechlab.service import Database, KeyStore
from support.clock import eventually
from support.staged import used


@pytest.fixture
def kept(stage, tmp_path):
    """A service with a data folder, what changes its keys, and a key that may use everything."""
    with stage(data_dir=tmp_path) as service, contextlib.closing(Database(tmp_path)) as database:
        access = KeyStore(database)
        stored, key = access.create_key("a study")
        yield service, access, stored, key


def test_135_150_a_provider_taken_away_is_denied(kept, tmp_path):
    service, access, stored, key = kept
    with service.talk(key=key) as client:
        assert client.speak("One.")[-1]["usage"]["status"] == "completed"
        access.set_rights(stored.key_id, providers=["q"])
        error = client.refusal("Two.", id="s")
        assert (error["code"], "request_id" in error) == ("service_access_denied", False)
        access.set_rights(stored.key_id, providers=None)
        events = client.speak("Three.")
        # Nothing more came of the second text: the first event is of the third one.
        assert (events[0]["type"], events[-1]["usage"]["status"]) == ("tts.audio.start", "completed")
    assert eventually(lambda: len(used(tmp_path)) == 2)
    assert [call["text"] for call in service.speaker.calls] == ["One.", "Three."]


def test_136_150_a_key_that_is_gone_ends_the_session(kept, talk, tmp_path):
    service, access, stored, key = kept
    with talk(service.http, key) as client:
        access._database.write("UPDATE keys SET expires = 1.0 WHERE id = ?", (stored.key_id,))
        settings = {"voice_id": service.voice("plain"), "format": "pcm"}
        client.send(type="session.update", id="mine", session=settings)
        error = client.event()
        assert (error["type"], error["id"], error["code"]) == ("tts.error", "mine", "invalid_session")
        assert client.closed() == 1008
    assert used(tmp_path) == []


def test_136_a_text_that_is_being_spoken_is_finished(kept, tmp_path):
    service, access, stored, key = kept
    with service.talk("gated", key=key) as client:
        client.begin("Hello.")
        access.revoke_key(stored.key_id)
        service.speaker.gate.set()
        assert client.until_usage()[-1]["usage"]["status"] == "completed"
        assert client.refusal("Again.")["code"] == "invalid_session"
        assert client.closed() == 1008
    assert eventually(lambda: len(used(tmp_path)) == 1)


def test_152_keys_that_cannot_be_read_let_nobody_speak(kept, talk, tmp_path):
    service, _, _, key = kept
    with talk(service.http, key) as client, talk(service.http) as given:
        for each in (client, given):
            each.configure(voice_id=service.voice("plain"), format="pcm")
        with contextlib.closing(sqlite3.connect(tmp_path / "service.sqlite")) as database:
            database.execute("ALTER TABLE keys RENAME TO gone")
            error = client.refusal("Hello.", id="s")
            assert (error["code"], str(tmp_path) in error["message"]) == ("tts_service_unavailable", False)
            # A key of the settings does not depend on the file.
            assert given.speak("Hello.")[-1]["usage"]["status"] == "completed"
            database.execute("ALTER TABLE gone RENAME TO keys")
        assert client.speak("Hello.")[-1]["usage"]["status"] == "completed"
    assert eventually(lambda: len(used(tmp_path)) == 2)


@pytest.mark.slow
def test_163_a_session_lasts_so_long(stage, talk):
    with stage(ws_session_s=1.0) as service, talk(service.http) as busy, talk(service.http) as idle:
        busy.configure(voice_id=service.voice("gated"), format="pcm")
        busy.begin("Hello.")
        assert isinstance(busy.event(), bytes)
        idle.configure(voice_id=service.voice("plain"), format="pcm")
        assert idle.closed() == 1001  # a second is over, and the other session as old as this one
        service.speaker.gate.set()
        assert busy.until_usage()[-1]["usage"]["status"] == "completed"
        assert busy.closed() == 1001
    with stage(ws_session_s=0) as service, talk(service.http) as client:
        assert client.silent(0.2)
        client.configure(voice_id=service.voice("plain"), format="pcm")
