"""Limits of single keys and services, changed while the service runs."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.service import Database, KeyLimits, KeyStore, StoredLimits
from support.clients import Http


@pytest.fixture
def database(tmp_path):
    with contextlib.closing(Database(tmp_path)) as database:
        yield database


LIMIT_NAMES = [field.name for field in dataclasses.fields(KeyLimits)]
some_limits = st.builds(KeyLimits, **dict.fromkeys(LIMIT_NAMES, st.none() | st.integers(0, 9)))


@given(some_limits, some_limits)
def test_a_keys_own_limits_go_before_those_of_every_key(own, every):
    both = own.fill_unset(every)
    for name in LIMIT_NAMES:
        mine = getattr(own, name)
        assert getattr(both, name) == (getattr(every, name) if mine is None else mine)


def test_limits_are_kept_changed_and_taken_back(database):
    limits = StoredLimits(database)
    limits.change_limits("all", {"requests_per_minute": 5, "concurrent": 1})
    limits.change_limits("k", {"concurrent": 0})
    again = StoredLimits(database)
    assert again.read_effective_limits("k") == KeyLimits(requests_per_minute=5, concurrent=0)
    assert again.read_effective_limits("other") == KeyLimits(requests_per_minute=5, concurrent=1)
    limits.change_limits("k", {"concurrent": None})
    assert set(again.read_set_limits()) == {"all"}
    for wrong in ({"words_per_minute": 1}, {"concurrent": -1}, {"concurrent": 10**16}):
        with pytest.raises(InvalidRequestError):
            limits.change_limits("k", wrong)
    assert again.read_effective_limits("k").concurrent == 1


def test_a_change_holds_at_once_in_a_service_that_runs(stage, error_body, talk, tmp_path):
    with stage(data_dir=tmp_path) as service, contextlib.closing(Database(tmp_path)) as database:
        stored, key = KeyStore(database).create_key("greedy")
        limits, greedy = StoredLimits(database), Http(service.http.base_url, key)
        good = {"voice_id": service.voice("plain"), "text": "Hello.", "format": "pcm"}
        with talk(service.http, key) as client:
            client.configure(voice_id=service.voice("plain"), format="pcm")
            assert greedy.speak(**good).status == 200
            client.speak("Hello.")
            limits.change_limits(stored.key_id, {"requests_per_minute": 1})
            assert greedy.speak(**good).status == 200
            reply = greedy.speak(**good)
            body = error_body(reply, 429, "ErrRateLimited")
            assert body["context"] == ["tts", "key_limit"]
            assert "may make 1 request a minute" in body["error"]
            assert 1 <= int(reply.headers["retry-after"]) <= 60
            client.send(type="tts.speak", text="Hello.")
            assert client.event()["code"] == "rate_limited"
            assert service.http.speak(**good).status == 200  # another key
            limits.change_limits(stored.key_id, {"requests_per_minute": 0})
            limits.change_limits("all", {"requests_per_minute": 1})
            assert [greedy.speak(**good).status for _ in range(2)] == [200, 200]
            assert [service.http.speak(**good).status for _ in range(2)] == [200, 429]


def test_limits_of_a_service_change_while_it_runs(stage, error_body, tmp_path):
    settings = {"data_dir": tmp_path, "service_requests_per_minute": {"tts": 1}}
    with stage(**settings) as service, contextlib.closing(Database(tmp_path)) as database:
        limits, another = (
            StoredLimits(database),
            Http(service.http.base_url, KeyStore(database).create_key("another")[1]),
        )
        good = {"voice_id": service.voice("plain"), "text": "Hello.", "format": "pcm"}
        limits.change_limits("service:tts", {"requests_per_minute": 2})
        assert [http.speak(**good).status for http in (service.http, another)] == [200, 200]
        body = error_body(another.speak(**good), 429, "ErrRateLimited")
        assert body["context"] == ["tts", "service_limit"]
        assert "may make 2 requests a minute" in body["error"]
        limits.change_limits("service:tts", {"requests_per_minute": 0})
        assert another.speak(**good).status == 200
        limits.change_limits("service:tts", {"requests_per_minute": None})
        assert (
            "may make 1 request a minute" in error_body(another.speak(**good), 429, "ErrRateLimited")["error"]
        )
        text = {"text": "Hi.", "source_lang": "en", "target_lang": "ja"}
        assert service.http.translate(**text).status == 200
        limits.change_limits("service:translate", {"requests_per_minute": 1})
        assert [service.http.translate(**text).status for _ in range(2)] == [200, 429]


def test_8_135_a_key_may_use_single_voices(stage, error_body, talk, tmp_path):
    with stage(data_dir=tmp_path) as service, contextlib.closing(Database(tmp_path)) as database:
        access = KeyStore(database)
        stored, key = access.create_key("one voice")
        plain, other = service.voice("plain"), service.voice("picky")
        client = Http(service.http.base_url, key)
        with talk(service.http, key) as socket:
            socket.configure(voice_id=plain, format="pcm")
            access.set_rights(stored.key_id, voices=[other])
            assert access.resolve_key(stored.key_id).voices == {other}
            socket.send(type="tts.speak", text="Hello.")
            assert socket.event()["code"] == "service_access_denied"
            fields = {"text": "Hello.", "format": "pcm"}
            error_body(client.speak(voice_id=plain, **fields), 403, "ErrPermissionDenied")
            with talk(service.http, key) as second:
                second.send(type="session.update", session={"voice_id": plain, "format": "pcm"})
                assert second.event()["code"] == "service_access_denied"
            access.set_rights(stored.key_id, voices=[plain.upper().lower()])
            assert client.speak(voice_id=plain, **fields).status == 200
            socket.speak("Hello.")
