"""A service under pressure: quotas, outages, random failures, a key that is withdrawn, a disk that is full."""

import asyncio
import random
import shutil
import sys
import time
from collections import Counter

import pytest

from speechlab import batch
from speechlab.client import Client
from speechlab.errors import AuthenticationError, StoreError
from speechlab.store import Store
from support.batches import EN_JA, quiet, texts
from support.translator import Translator, in_the_way, reached, reply


class Hostile(Translator):
    """A translator before which ``judge`` decides: it gives the reply of a refusal, None to hang up, or OK."""

    OK = "ok"

    def __init__(self, judge, delay_s=0.01):
        super().__init__()
        self.judge, self.delay_s = judge, delay_s
        self.refused = []

    async def answer(self, head, body):
        if head.startswith(b"POST"):
            found = self.judge(self)
            if found is not self.OK:
                self.refused.append(time.monotonic())
                return found
        return await super().answer(head, body)


def no(status, *headers):
    return reply(status, {"code": 1, "name": "ErrNo", "message": "no"}, *headers)


def run(judge, store, rows, delay_s=0.01, kind=Hostile, **options):
    service = kind(judge, delay_s)
    with reached(service) as lab:
        return batch.translate(texts(rows), lab, **quiet(store, **options)), service


def every_row_once(table, service):
    assert table["status"].tolist() == ["ok"] * len(table), table["error"].dropna().tolist()[:3]
    assert set(service.calls.values()) == {1}


class InStep(Hostile):
    """One that lets calls end together, twenty times a second."""

    async def answer(self, head, body):
        answer = await super().answer(head, body)
        await asyncio.sleep(0.05 - asyncio.get_running_loop().time() % 0.05)
        return answer


@pytest.mark.slow
def test_after_an_outage_as_many_are_under_way_as_before(tmp_path):
    at_once = []

    def judge(service):
        at_once.append(service.under_way)
        return no(503) if 40 < len(at_once) <= 56 else Hostile.OK

    table, service = run(judge, tmp_path / "a", 300, delay_s=0.04, concurrency=8, kind=InStep)
    every_row_once(table, service)
    assert max(at_once[-100:]) == 7  # beside the one that is judged


@pytest.mark.slow
def test_a_service_that_is_gone_stops_the_run(tmp_path):
    def judge(service):
        return Hostile.OK if sum(service.calls.values()) < 100 else no(503)

    with pytest.warns(UserWarning, match="the service was given up"):
        table, service = run(judge, tmp_path / "a", 500, concurrency=4, give_up_after_s=1.5)
    counts = Counter(table["status"])
    assert counts["ok"] == sum(service.calls.values()) == 100
    assert counts["error"] <= 16
    assert counts["cancelled"] == 400 - counts["error"]
    rest, _ = run(lambda _: Hostile.OK, tmp_path / "a", 500)
    assert Counter(rest["status"]) in ({"ok": 500}, {"cached": 100, "ok": 400})


@pytest.mark.slow
def test_what_the_service_asked_for_is_told_when_it_is_given_up(tmp_path):
    with pytest.warns(UserWarning, match="the service was given up") as told:
        table, _ = run(lambda _: no(503, "Retry-After: 1"), tmp_path / "a", 40, give_up_after_s=6)
    assert (
        str(told[0].message).count("the service asked to wait 1 s") == 2
    )  # why it stopped, and why rows failed
    failed = table[table["status"] == "error"]
    assert failed["error"].str.contains("the service asked to wait 1 s", regex=False).all()
    assert failed["attempts"].max() > 1
    assert batch.failures(table)["rows"].tolist() == [len(failed)]  # however often each was sent


@pytest.mark.slow
def test_what_a_concurrency_says_counts(tmp_path):
    service = Hostile(lambda _: Hostile.OK, delay_s=0.5)  # in which a loaded machine begins forty calls
    with reached(service) as lab:
        batch.translate(texts(200), lab, **quiet(tmp_path / "a", concurrency=40))
        assert 30 < service.most <= 40
        service.most = 0
        batch.translate(texts(8), lab, **quiet(tmp_path / "b", concurrency=2))
        assert service.most == 2


@pytest.mark.slow
def test_a_key_that_is_withdrawn_discards_nothing(tmp_path, caplog):
    service = Hostile(lambda one: Hostile.OK if len(one.began) < 40 else no(401), delay_s=0.1)
    with (
        reached(service) as lab,
        pytest.raises(
            AuthenticationError, match=r"40 of 200 rows are kept in run \S+, and the same call again"
        ),
    ):
        batch.translate(texts(200), lab, **quiet(tmp_path / "a"))
    with Store(tmp_path / "a") as store:
        assert len(store) - 1 == sum(service.calls.values()) == 40  # and the catalogue
    assert len(service.refused) <= 16
    assert "never retrieved" not in caplog.text


def test_a_full_disk_ends_the_run_with_one_error(tmp_path, caplog):
    service = Hostile(lambda _: Hostile.OK)
    with (
        reached(service) as lab,
        Store(tmp_path / "a") as store,
    ):
        (pages,) = store._db.execute("PRAGMA page_count").fetchone()
        store._db.execute(f"PRAGMA max_page_count = {pages + 12}")  # as full as a disk can be
        with pytest.raises(StoreError, match=r"full.*; \d+ of 2,000 rows are kept in run"):
            batch.translate(texts(2000), lab, **quiet(store))
        kept = len(store) - 1
        assert 5 < kept <= sum(service.calls.values()) <= kept + 4 * 16
    assert "never retrieved" not in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes and moves no open files")
@pytest.mark.parametrize("happens", [shutil.rmtree, lambda folder: folder.rename(folder.with_name("b"))])
def test_a_store_that_is_removed_or_moved_ends_the_run(tmp_path, happens):
    service, folder, at = Hostile(lambda _: Hostile.OK), tmp_path / "a", []

    def tell(done, _):
        if done >= 20 and not at:
            at.append(sum(service.calls.values()))
            happens(folder)

    with (
        reached(service) as lab,
        pytest.raises(StoreError, match=r"is gone: its folder was removed or moved .* kept in it$"),
    ):
        batch.translate(texts(2000), lab, **{**quiet(folder), "progress": tell})
    assert sum(service.calls.values()) < at[0] + 4 * 16
    assert not (folder / "store.sqlite").exists()


def test_a_function_of_progress_that_raises_ends_the_run(tmp_path):
    at = 7

    def tell(done, total):
        if done == at:
            raise LookupError("no such widget")

    service = Hostile(lambda _: Hostile.OK)
    options = {**EN_JA, "store": tmp_path / "a", "progress": tell}
    with reached(service) as lab, pytest.raises(LookupError, match="no such widget"):
        batch.translate(texts(60), lab, **options)
    with Store(tmp_path / "a") as store:
        assert len(store) - 1 == sum(service.calls.values()) >= at  # and the catalogue


@pytest.mark.slow
def test_a_rate_bounds_attempts(tmp_path):
    chance = random.Random(3)
    table, service = run(
        lambda _: no(503) if chance.random() < 0.2 else Hostile.OK, tmp_path / "a", 60, rate=40
    )
    every_row_once(table, service)
    times = sorted([*service.began, *service.refused])
    assert times[-1] - times[0] > len(times) / 40 * 0.9 - 0.2


def test_rows_of_a_stopped_run_tell_how_often_they_were_asked(tmp_path):
    with pytest.warns(UserWarning, match="max_error_share"):
        table, service = run(lambda service: no(500), tmp_path / "a", 300)
    left = table[table["status"] == "cancelled"]
    assert table["attempts"].sum() == len(service.refused)
    assert left["error"].str.startswith("not asked again").tolist() == (left["attempts"] > 0).tolist()
    assert (left["attempts"] > 0).any()


@pytest.mark.slow
def test_a_storm_changes_nothing_but_the_time(translator, tmp_path):
    with in_the_way(translator, seed=5) as (base_url, counts), Client(base_url=base_url) as lab:
        table = batch.translate(texts(120), lab, **quiet(tmp_path / "a", concurrency=16))
    assert counts[429] > 30
    assert counts[500] > 2
    assert counts["dropped"] > 2
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    assert table["translation"].tolist() == [text[::-1] for text in texts(120)["text"]]
    assert table["attempts"].sum() == 120 + counts[429] + counts[500] + counts["dropped"]
    assert set(translator.calls.values()) == {1}


class UntilOthersCame(dict):
    """Refuses one text until all others have been asked."""

    def __init__(self, calls, others):
        self.calls, self.others = calls, others

    def items(self):
        came = sum(count for text, count in self.calls.items() if not text.endswith(" 0"))
        return [] if came >= self.others else [(" 0$", 429)]


@pytest.mark.slow
def test_a_call_that_waits_keeps_no_other_from_being_made(translator, reverser, store):
    translator.faults = UntilOthersCame(translator.calls, 5)
    patient = reverser.with_options(max_retries=None)
    table = batch.translate(texts(6), patient, **quiet(store, concurrency=1))
    assert table["status"].tolist() == ["ok"] * 6
    assert translator.calls["text number 0"] > 1
    assert translator.most == 1
