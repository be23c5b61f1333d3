"""Two processes make the calls, one of them is killed in the middle, and nothing that had come is asked again."""

from __future__ import annotations

import os
import signal
import threading
import time

import pandas as pd
import pytest

from speechlab import batch
from speechlab.errors import InvalidRequestError
from speechlab.store import Store
from support.stores import kept

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")

EN_JA = {"source_lang": "en", "target_lang": "ja", "progress": False}
LIMIT = 40


@pytest.fixture(scope="module")
def cluster():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made,
        Client(made) as client,
    ):
        yield client


def test_an_executor_that_is_none(reverser, store):
    with pytest.raises(InvalidRequestError, match=r"give a dask\.distributed\.Client"):
        batch.translate(pd.DataFrame({"text": ["a"]}), reverser, store=store, executor="cluster", **EN_JA)


@pytest.mark.slow
def test_a_worker_is_killed_in_the_middle(cluster, reverser, translator, store):
    translator.delay_s = 0.05
    frame = pd.DataFrame({"text": [f"text number {n}" for n in range(160)]})
    victim = cluster.run(os.getpid)
    pid = next(iter(victim.values()))
    had_come = set()

    def kill():
        while kept(store) < 40:
            time.sleep(0.01)
        had_come.update(request["text"] for _, request in store.newest("translate", 1_000))
        os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    table = batch.translate(frame, reverser, store=store, executor=cluster, concurrency=8, **EN_JA)
    assert 40 <= len(had_come) < 160
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    assert table["translation"].tolist() == [text[::-1] for text in frame["text"]]
    # only what the lost worker had under way, or had not yet handed over, was asked twice
    assert not had_come & {text for text, times in translator.calls.items() if times > 1}
    assert max(translator.calls.values()) <= 2
    before = sum(translator.calls.values())
    again = batch.translate(frame, reverser, store=store, executor=cluster, **EN_JA)
    assert (again["status"] == "cached").all()
    assert sum(translator.calls.values()) == before


def test_the_rate_is_one_for_all_workers(cluster, reverser, translator, tmp_path):
    frame = pd.DataFrame({"text": [f"paced {n}" for n in range(60)]})
    with Store(tmp_path / "s") as store:
        table = batch.translate(frame, reverser, store=store, executor=cluster, rate=LIMIT, **EN_JA)
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    began = sorted(translator.began)
    # the pace sets when calls may begin; a loaded machine can only be later
    assert began[-1] - began[0] >= 0.8 * 59 / LIMIT


@pytest.mark.slow
def test_the_worker_that_keeps_the_pace_is_killed(cluster, reverser, translator, store):
    translator.delay_s = 0.02
    frame = pd.DataFrame({"text": [f"paced and killed {n}" for n in range(120)]})
    first = next(iter(cluster.scheduler_info(n_workers=-1)["workers"]))
    pid = cluster.run(os.getpid, workers=[first])[first]

    def kill():
        while kept(store) < 30:
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    table = batch.translate(frame, reverser, store=store, executor=cluster, rate=100, concurrency=8, **EN_JA)
    killer.join(60)
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    assert max(translator.calls.values()) <= 2
