"""Limits and quotas of single keys: by the minute, day and month, changed while the service runs."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.service import Access, Database, KeyLimits, Ledger, Quotas, UsageRow
from speechlab.service._accounts.limits import LIMIT_NAMES, NotAdmitted
from support.clients import Http
from support.clock import eventually

DAY_S = 86_400.0
NOON = datetime(2024, 1, 30, 12, tzinfo=UTC).timestamp()


class Clock:
    now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def database(tmp_path):
    with contextlib.closing(Database(tmp_path)) as database:
        yield database


def row(key_id="k", *, characters=0, audio_s=0.0, at=NOON) -> UsageRow:
    return UsageRow(at, key_id, "tts", "http", "p", "m", characters, 0, 0, audio_s, 0, 0, "completed")


def refusal(quotas: Quotas, key_id="k") -> NotAdmitted | None:
    try:
        quotas.check(key_id, quotas.limits_of(key_id))
    except NotAdmitted as refused:
        return refused
    return None


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("operations_per_day", [row(), row()]),
        ("characters_per_day", [row(characters=1), row(characters=1)]),
        ("seconds_per_month", [row(audio_s=1.5), row(audio_s=0.5)]),
    ],
)
def test_a_key_that_has_used_its_quota_waits_for_the_next_day_or_month(database, name, used):
    clock = Clock()
    quotas = Quotas(database, clock=clock)
    quotas.load()
    quotas.change("k", {name: 2})
    quotas.used(used[0])
    assert refusal(quotas) is None
    quotas.used(used[1])
    quotas.used(row("other", characters=9, audio_s=9.0))
    found = refusal(quotas)
    assert found is not None
    end = NOON + DAY_S / 2 if name.endswith("day") else datetime(2024, 2, 1, tzinfo=UTC).timestamp()
    assert found.retry_after_s == pytest.approx(end - NOON)
    assert name.partition("_")[0] in found.reason
    assert refusal(quotas, "other") is None
    clock.now = end - 1
    assert refusal(quotas) is not None
    clock.now = end
    assert refusal(quotas) is None


def test_use_is_that_of_the_ledger_after_a_restart(database):
    clock = Clock()
    ledger = Ledger(database)
    for at in (NOON - 40 * DAY_S, NOON - 2 * DAY_S, NOON - DAY_S, NOON):
        ledger.add(row(characters=10, at=at))
    assert eventually(lambda: len(ledger.rows()) == 4)
    quotas = Quotas(database, clock=clock)
    quotas.load()
    for limits, refused in (
        ({"characters_per_day": 11}, False),
        ({"characters_per_day": 10}, True),
        ({"characters_per_day": None, "characters_per_month": 31}, False),
        ({"characters_per_month": 30}, True),
        ({"characters_per_month": 0}, False),
    ):
        quotas.change("k", limits)
        assert (refusal(quotas) is not None) == refused, limits


some_limits = st.builds(KeyLimits, **dict.fromkeys(LIMIT_NAMES, st.none() | st.integers(0, 9)))


@given(some_limits, some_limits)
def test_a_keys_own_limits_go_before_those_of_every_key(own, every):
    both = own.over(every)
    for name in LIMIT_NAMES:
        mine = getattr(own, name)
        assert getattr(both, name) == (getattr(every, name) if mine is None else mine)


def test_limits_are_kept_changed_and_taken_back(database):
    quotas = Quotas(database)
    quotas.change("all", {"operations_per_day": 5, "concurrent": 1})
    quotas.change("k", {"concurrent": 0})
    again = Quotas(database)
    assert again.limits_of("k") == KeyLimits(operations_per_day=5, concurrent=0)
    assert again.limits_of("other") == KeyLimits(operations_per_day=5, concurrent=1)
    quotas.change("k", {"concurrent": None})
    assert set(again.own_limits()) == {"all"}
    for wrong in ({"words_per_day": 1}, {"concurrent": -1}, {"concurrent": 10**16}):
        with pytest.raises(InvalidRequestError):
            quotas.change("k", wrong)
    assert again.limits_of("k").concurrent == 1


def test_a_change_holds_at_once_in_a_service_that_runs(stage, error_body, talk, tmp_path):
    with stage(data_dir=tmp_path) as service, contextlib.closing(Database(tmp_path)) as database:
        stored, key = Access(database).create("greedy")
        quotas, greedy = Quotas(database), Http(service.http.base_url, key)
        good = {"voice_id": service.voice("plain"), "text": "Hello.", "format": "pcm"}
        with talk(service.http, key) as client:
            client.configure(voice_id=service.voice("plain"), format="pcm")
            assert greedy.speak(**good).status == 200
            client.speak("Hello.")
            quotas.change(stored.key_id, {"characters_per_day": 12})
            reply = greedy.speak(**good)
            body = error_body(reply, 429, "ErrRateLimited")
            assert body["context"] == ["tts", "key_limit"]
            assert "12 characters of this day" in body["error"]
            assert 1 <= int(reply.headers["retry-after"]) <= DAY_S
            client.send(type="tts.speak", text="Hello.")
            assert client.event()["code"] == "rate_limited"
            assert service.http.speak(**good).status == 200  # another key
            quotas.change(stored.key_id, {"characters_per_day": 13})
            assert greedy.speak(**good).status == 200
            quotas.change(stored.key_id, {"characters_per_day": None, "requests_per_minute": 1})
            assert [greedy.speak(**good).status for _ in range(2)] == [200, 429]
            quotas.change(stored.key_id, {"requests_per_minute": 0})
            quotas.change("all", {"requests_per_minute": 1})
            assert [greedy.speak(**good).status for _ in range(2)] == [200, 200]
            assert [service.http.speak(**good).status for _ in range(2)] == [200, 429]


def test_limits_of_a_service_are_changed_while_it_runs_and_hold_for_all_keys_together(
    stage, error_body, tmp_path
):
    settings = {"data_dir": tmp_path, "service_requests_per_minute": {"tts": 1}}
    with stage(**settings) as service, contextlib.closing(Database(tmp_path)) as database:
        quotas, another = Quotas(database), Http(service.http.base_url, Access(database).create("another")[1])
        good = {"voice_id": service.voice("plain"), "text": "Hello.", "format": "pcm"}
        quotas.change("service:tts", {"requests_per_minute": 2})
        assert [http.speak(**good).status for http in (service.http, another)] == [200, 200]
        body = error_body(another.speak(**good), 429, "ErrRateLimited")
        assert body["context"] == ["tts", "service_limit"]
        assert "may make 2 requests a minute" in body["error"]
        quotas.change("service:tts", {"requests_per_minute": 0})
        assert another.speak(**good).status == 200
        quotas.change("service:tts", {"requests_per_minute": None})
        assert (
            "may make 1 request a minute" in error_body(another.speak(**good), 429, "ErrRateLimited")["error"]
        )
        text = {"text": "Hi.", "source_lang": "en", "target_lang": "ja"}
        assert service.http.translate(**text).status == 200
        quotas.change("service:translate", {"requests_per_minute": 1})
        assert [service.http.translate(**text).status for _ in range(2)] == [200, 429]


def test_a_service_has_no_quotas(database):
    with pytest.raises(InvalidRequestError, match="there are requests_per_minute, concurrent"):
        Quotas(database).change("service:tts", {"characters_per_day": 5})


def test_8_135_a_key_may_use_single_voices(stage, error_body, talk, tmp_path):
    with stage(data_dir=tmp_path) as service, contextlib.closing(Database(tmp_path)) as database:
        access = Access(database)
        stored, key = access.create("one voice")
        plain, other = service.voice("plain"), service.voice("picky")
        client = Http(service.http.base_url, key)
        with talk(service.http, key) as socket:
            socket.configure(voice_id=plain, format="pcm")
            access.allow(stored.key_id, voices=[other])
            assert access.get(stored.key_id).voices == {other}
            socket.send(type="tts.speak", text="Hello.")
            assert socket.event()["code"] == "service_access_denied"
            fields = {"text": "Hello.", "format": "pcm"}
            error_body(client.speak(voice_id=plain, **fields), 403, "ErrPermissionDenied")
            with talk(service.http, key) as second:
                second.send(type="session.update", session={"voice_id": plain, "format": "pcm"})
                assert second.event()["code"] == "service_access_denied"
            access.allow(stored.key_id, voices=[plain.upper().lower()])
            assert client.speak(voice_id=plain, **fields).status == 200
            socket.speak("Hello.")
