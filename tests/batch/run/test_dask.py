"""The workers of a cluster make the attempts: they are killed, and nothing that had come is asked again."""

from __future__ import annotations

import asyncio
import os
import random
import re
import threading
import time
from contextlib import contextmanager

import pandas as pd
import pytest

import speechlab as sl
from speechlab import batch
from speechlab.client import Client
from speechlab.errors import AuthenticationError, ConfigurationError, InvalidRequestError
from speechlab.store import Store
from support.batches import quiet, texts
from support.forked import dask_worker
from support.stores import kept
from support.translator import Translator, Wire, in_the_way

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")

LIMIT = 40
KILLS = 20


class Cluster:
    """A scheduler, and workers, each of which another one may replace."""

    def __init__(self, scheduler, client, workers):
        self.scheduler, self.client = scheduler, client
        self.processes = [dask_worker(scheduler.scheduler_address) for _ in range(workers)]

    def kill(self, number):
        """Kill a worker; another one takes its place."""
        self.processes[number].kill()
        self.processes[number].join()
        self.processes[number] = dask_worker(self.scheduler.scheduler_address)

    def full(self):
        """Whether all workers are there."""
        there = self.client.scheduler_info(n_workers=-1)["workers"]
        return len(self.client.run(os.getpid, workers=list(there), on_error="ignore")) >= len(self.processes)

    def end(self):
        for process in self.processes:
            process.kill()
            process.join()


@contextmanager
def started(workers):
    from distributed import Client as Executor
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=0, protocol="tcp://", dashboard_address=None) as made,
        Executor(made) as client,
    ):
        cluster = Cluster(made, client, workers)
        try:
            client.wait_for_workers(workers, timeout=60)
            yield cluster
        finally:
            cluster.end()


@pytest.fixture(scope="module")
def cluster():
    with started(2) as made:
        yield made


def test_an_executor_that_is_none(reverser, store):
    with pytest.raises(InvalidRequestError, match=r"give a dask\.distributed\.Client"):
        batch.translate(pd.DataFrame({"text": ["a"]}), reverser, **quiet(store, executor="cluster"))


def test_functions_in_place_of_a_service_run_on_the_workers(cluster, store):
    held = threading.Lock()
    frame = pd.DataFrame({"text": ["a", "b"]})
    how = quiet(store, executor=cluster.client, source_lang="en", target_lang="ja")
    with sl.system("pids", translate=lambda text: f"{text} {os.getpid()}", version="1") as lab:
        rows = batch.translate(frame, lab, **how)
    pids = {text.split()[1] for text in rows["translation"]}
    assert str(os.getpid()) not in pids
    told = pytest.raises(ConfigurationError, match="load the model in a factory")
    with sl.system("locked", translate=lambda text: f"{held}", version="1") as lab, told:
        batch.translate(frame, lab, **how)


class SlowUntilOthersCame(Translator):
    """Answers a tenth of the texts only when all others have been answered."""

    def __init__(self, others):
        super().__init__()
        self.left = others
        self.came = asyncio.Event()

    async def answer(self, head, body):
        slow = re.search(rb"text number \d*3\r", body)
        if slow:
            await self.came.wait()
        reply = await super().answer(head, body)
        self.left -= head.startswith(b"POST") and not slow
        if not self.left:
            self.came.set()
        return reply


@pytest.mark.slow
def test_slow_calls_hold_up_no_others(cluster, store):
    service = SlowUntilOthersCame(108)
    with Wire(service.answer) as wire, Client(f"http://127.0.0.1:{wire.port}", timeout=60) as lab:
        table = batch.translate(texts(120), lab, **quiet(store, executor=cluster.client, concurrency=8))
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    assert table["attempts"].tolist() == [1] * 120


@pytest.mark.slow
def test_what_fails_is_repeated_and_counted_here(cluster, translator, store):
    with in_the_way(translator, seed=5) as (base_url, counts), Client(base_url) as lab:
        table = batch.translate(texts(120), lab, **quiet(store, executor=cluster.client, concurrency=8))
    assert counts[429] > 20
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    assert table["attempts"].sum() == 120 + counts[429] + counts[500] + counts["dropped"]
    assert set(translator.calls.values()) == {1}


def test_a_key_that_is_refused_stops_the_run(cluster, translator, reverser, store):
    translator.faults = {"number 7$": 401}
    with pytest.raises(AuthenticationError) as caught:
        batch.translate(texts(400), reverser, **quiet(store, executor=cluster.client, concurrency=4))
    assert sum(translator.calls.values()) < 400
    assert f"{sum(translator.calls.values()) - 1} of 400 rows are kept in run" in str(caught.value)
    # those under way are paid for, and kept
    assert kept(store) == sum(translator.calls.values()) - 1


def test_a_cluster_without_the_library_says_so(translator, reverser, store):
    def lose_it():
        import sys

        sys.modules["speechlab.batch._run.dask"] = None

    with started(1) as poor:
        poor.client.run(lose_it)
        table = batch.translate(texts(30), reverser, **quiet(store, executor=poor.client))
    assert "no worker of the cluster can make calls" in table["error"][0]
    assert "ModuleNotFoundError" in table["error"][0]
    assert not translator.calls


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle(cluster, reverser, translator, store):
    translator.delay_s = 0.05
    had_come = set()

    def kill():
        while kept(store) < 40:
            time.sleep(0.01)
        had_come.update(request["text"] for _, request in store.newest("translate", 1_000))
        cluster.kill(0)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    table = batch.translate(texts(160), reverser, **quiet(store, executor=cluster.client, concurrency=8))
    killer.join(60)
    assert 40 <= len(had_come) < 160
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    assert table["translation"].tolist() == [text[::-1] for text in table["text"]]
    # only what the lost worker had under way, or had not yet handed over, was asked twice
    assert not had_come & {text for text, times in translator.calls.items() if times > 1}
    assert sum(translator.calls.values()) - 160 <= 8
    before = sum(translator.calls.values())
    again = batch.translate(texts(160), reverser, **quiet(store, executor=cluster.client))
    assert (again["status"] == "cached").all()
    assert sum(translator.calls.values()) == before


@pytest.mark.slow
def test_the_rate_is_one_for_all_workers(cluster, reverser, translator, tmp_path):
    with Store(tmp_path / "s") as store:
        options = quiet(store, executor=cluster.client, rate=LIMIT)
        table = batch.translate(texts(60), reverser, **options)
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    began = sorted(translator.began)
    # the rate says when calls may begin; a loaded machine can only be later
    assert began[-1] - began[0] >= 0.8 * 59 / LIMIT


@pytest.mark.slow
def test_twenty_workers_are_killed(translator, store):
    translator.delay_s = 0.1
    chance, killed = random.Random(20261122), []
    with started(3) as cluster, Client(translator.base_url) as lab:

        def kill():
            while len(killed) < KILLS:
                time.sleep(chance.uniform(0.1, 0.4))
                number = chance.randrange(3)
                if cluster.full():
                    killed.append(kept(store))
                    cluster.kill(number)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        tables = []
        while len(killed) < KILLS:
            options = quiet(store, executor=cluster.client, concurrency=8)
            tables.append(batch.translate(texts(200, 200 * len(tables)), lab, **options))
        killer.join(60)
    table = pd.concat(tables)
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    assert table["translation"].tolist() == [text[::-1] for text in table["text"]]
    assert len(set(killed)) > KILLS // 2, "most kills came while nothing was going on"
    # what was asked twice was under way when a worker was killed
    assert sum(translator.calls.values()) - len(table) <= KILLS * 8
