"""Workers of a cluster take leases: all of its processes are killed, and nothing that had come is asked again."""

import os
import random
import re
import socket
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pandas as pd
import pytest

import speechlab as sl
from speechlab import batch
from speechlab.client import Client
from speechlab.errors import AuthenticationError, ConfigurationError, InvalidRequestError, StoreError
from support.batches import quiet, texts
from support.clock import eventually
from support.forked import Script, dask
from support.sockets import free_port
from support.stores import kept
from support.translator import in_the_way

pytestmark = pytest.mark.filterwarnings("ignore")

CONCURRENCY = 4
LIMIT = 40


class Cluster:
    """A scheduler and workers as commands of their own, of which each may be killed."""

    def __init__(self, workers):
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.workers = [None] * workers
        self.start()

    def start(self):
        port = str(urlsplit(self.address).port)
        self.scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", port)
        assert eventually(self.listens, 60)  # its Client may be one that does not wait for long
        for number in range(len(self.workers)):
            self.start_worker(number)

    def listens(self):
        """Whether the scheduler accepts connections."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", urlsplit(self.address).port), 1):
            return True
        return False

    def start_worker(self, number):
        self.workers[number] = dask("worker", self.address, "--nthreads", "1", "--no-nanny")

    def kill_worker(self, number):
        """Kill a worker; another one takes its place."""
        self.workers[number].kill()
        self.workers[number].join()
        self.start_worker(number)

    def kill(self):
        """Kill the scheduler and all workers."""
        for process in (self.scheduler, *self.workers):
            process.kill()
            process.join()


@contextmanager
def started(workers, **options):
    executor = pytest.importorskip("distributed").Client  # not at the top: each worker would load it
    cluster = Cluster(workers)
    try:
        with executor(cluster.address, **options) as cluster.client:
            cluster.client.wait_for_workers(workers, timeout=60)
            yield cluster
    finally:
        cluster.kill()


@pytest.fixture(scope="module")
def cluster():
    with started(2) as made:
        yield made


@contextmanager
def meanwhile(work):
    """What happens to a cluster while a block runs."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join(60)


def on(cluster, store, **options):
    return quiet(store, executor=cluster.client, **{"concurrency": CONCURRENCY, **options})


def all_there(table):
    assert (table["status"] == "ok").all(), table["error"].dropna().unique().tolist()
    assert table["translation"].tolist() == [text[::-1] for text in table["text"]]


def more_than(translator, calls):
    """Wait until a service has answered more than so many calls."""
    while sum(translator.calls.values()) <= calls:
        time.sleep(0.01)


def asked_again(translator):
    return sum(translator.calls.values()) - len(translator.calls)


def test_an_executor_that_is_closed(cluster, reverser, store):
    with type(cluster.client)(cluster.address, set_as_default=False) as closed:
        pass
    with pytest.raises(
        InvalidRequestError, match=r"executor is closed; make a new dask\.distributed\.Client"
    ):
        batch.translate(pd.DataFrame({"text": ["a"]}), reverser, **quiet(store, executor=closed))


@pytest.mark.slow
def test_the_page_runs(cluster, translator, monkeypatch, tmp_path):
    page = Path(__file__).parents[3] / "docs" / "cluster.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dask.distributed.Client", lambda _address: cluster.client)
    with Client(translator.base_url) as lab:
        monkeypatch.setattr("speechlab.connect", lambda: lab)
        names: dict = {}
        exec(compile(code, str(page), "exec"), names)
    assert names["done"]["status"].tolist() == ["ok", "ok"]


@pytest.mark.slow
def test_a_function_that_no_worker_can_have_is_told(cluster, store):
    held = threading.Lock()
    frame = pd.DataFrame({"text": ["a", "b"]})
    told = pytest.raises(ConfigurationError, match="load the model in a factory")
    with sl.system("locked", translate=lambda text: f"{held}", version="1") as lab, told:
        batch.translate(frame, lab, **on(cluster, store))


@pytest.mark.slow
def test_what_fails_is_repeated_by_the_workers(cluster, translator, store):
    with in_the_way(translator, seed=5) as (base_url, counts), Client(base_url) as lab:
        table = batch.translate(texts(120), lab, **on(cluster, store))
    all_there(table)
    assert counts[429] > 20
    assert table["attempts"].sum() == 120 + counts[429] + counts[500] + counts["dropped"]
    assert set(translator.calls.values()) == {1}
    assert kept(store) == 120
    assert not list((store.path / "parts").iterdir())


def test_faults_of_rows_are_told_with_their_rows(cluster, translator, reverser, store):
    translator.faults = {"number 7$": 400}
    table = batch.translate(texts(60), reverser, **on(cluster, store))
    assert table["status"].value_counts()[["ok", "error"]].tolist() == [59, 1]
    assert table["http_status"].dropna().tolist() == [400]
    assert len(store.failures([table["key"][7]])) == 1


def test_a_key_that_is_refused_stops_the_run(cluster, translator, reverser, store):
    translator.faults = {"number 7$": 401}
    with pytest.raises(AuthenticationError) as caught:
        batch.translate(texts(800), reverser, **on(cluster, store))
    assert sum(translator.calls.values()) < 800
    # those under way are paid for, and kept
    assert f"{kept(store):,} of 800 rows are kept in run" in str(caught.value)
    assert kept(store) == sum(translator.calls.values()) - 1


@pytest.mark.slow
def test_a_budget_is_one_for_all_workers(cluster, translator, reverser, store):
    table = batch.translate(texts(200), reverser, **on(cluster, store, budget=batch.Budget(calls=90)))
    assert sum(translator.calls.values()) == 90
    assert table["status"].value_counts()[["ok", "cancelled"]].tolist() == [90, 110]
    tokens = batch.Budget(tokens=60 * len("text number 30"))
    table = batch.translate(texts(200, 200), reverser, **on(cluster, store, budget=tokens))
    assert 0.8 * tokens.tokens < table["usage_tokens"].sum() <= tokens.tokens + 2 * CONCURRENCY * 20


@pytest.mark.slow
def test_the_rate_is_one_for_all_workers(cluster, translator, reverser, store):
    all_there(batch.translate(texts(60), reverser, **on(cluster, store, rate=LIMIT)))
    began = sorted(translator.began)
    # the rate says when calls may begin; a loaded machine can only be later
    assert began[-1] - began[0] >= 0.8 * 58 / LIMIT


@pytest.mark.slow
def test_leases_that_are_cancelled_are_given_out_again(cluster, translator, reverser, store):
    from distributed import Future

    translator.delay_s = 0.02

    def cancel():
        more_than(translator, 10)
        client = cluster.client
        client.cancel([Future(key, client) for key in client.futures], force=True)

    with meanwhile(cancel):
        table = batch.translate(texts(60), reverser, **on(cluster, store))
    all_there(table)


def test_a_worker_that_does_not_see_the_store(cluster, reverser, translator, store):
    def hide(sees):
        import sys

        sys.modules["speechlab.batch._run.lease"].can_access_folder = sees

    cluster.client.run(hide, lambda folder: False)
    try:
        all_there(batch.translate(texts(60), reverser, **on(cluster, store)))
    finally:
        cluster.client.run(hide, lambda folder: folder.is_dir())
    assert set(translator.calls.values()) == {1}


@pytest.mark.slow
def test_a_frame_of_dask_gives_one(cluster, translator, reverser, store):
    dd = pytest.importorskip("dask.dataframe")
    given = texts(100).assign(n=range(100))
    frame = dd.from_pandas(given, npartitions=4)
    made = batch.translate(frame, reverser, **on(cluster, store, prefix="a_"))
    assert made.npartitions == 4
    assert made.groupby("a_status").n.sum().compute()["ok"] == given["n"].sum()
    again = batch.translate(frame, reverser, **on(cluster, store, columns="result")).compute()
    assert again.columns.tolist()[:3] == ["text", "n", "translation"]
    assert again["translation"].tolist() == [text[::-1] for text in given["text"]]
    assert set(translator.calls.values()) == {1}


@pytest.mark.slow
def test_a_study_runs_on_a_cluster(cluster, translator, reverser, store):
    frame = texts(20).assign(
        reference=[text[::-1] for text in texts(20)["text"]], source_lang="en", target_lang="ja"
    )
    how = {"store": store, "progress": False, "executor": cluster.client}
    with (
        sl.system("one", translate=lambda text: f"{time.time()} {os.getpid()}", version="2") as one,
        sl.system("two", translate=lambda text: f"{time.time()} {os.getpid()}", version="2") as two,
    ):
        report = sl.evaluate.translation({"one": one, "two": two}, frame, **how)
    assert not report.table["translation"].str.endswith(f" {os.getpid()}").any()
    assert len(report.table) == 40
    times = report.table["translation"].str.split().str[0].astype(float).groupby(report.table["system"])
    assert times.min().max() < times.max().min()  # in turns


@pytest.mark.slow
def test_a_folder_of_parts_comes_out(cluster, reverser, store, tmp_path):
    texts(100).to_csv(tmp_path / "rows.csv", index=False)
    plan = batch.plan_translation(tmp_path / "rows.csv", reverser, **quiet(store, chunk_rows=30))
    run = batch.run(plan, reverser, executor=cluster.client, progress=False)
    folder = run.export(tmp_path / "out")
    assert len(list(folder.glob("*.parquet"))) == 4
    pd.testing.assert_frame_equal(
        pd.read_parquet(folder), pd.read_parquet(run.export(tmp_path / "out.parquet"))
    )
    again = batch.plan_translation(folder, reverser, **quiet(store, columns="result", prefix="b_"))
    assert again.summary()["cached"] == 100
    with pytest.raises(StoreError, match="cannot be written"):
        run.export(folder)


DRIVER = """
import sys
from distributed import Client as Executor
import speechlab as sl
from speechlab import batch
from speechlab.client import Client
from support.batches import quiet, texts
with Executor(sys.argv[2]) as executor, Client(sys.argv[1]) as lab:
    batch.translate(texts(int(sys.argv[4])), lab, **quiet(sys.argv[3], executor=executor, concurrency=4))
"""


@pytest.mark.slow
def test_two_drivers_share_a_store(cluster, translator, reverser, store):
    translator.delay_s = 0.02
    other = Script(DRIVER, translator.base_url, cluster.address, store.path, 150)
    more_than(translator, 0)
    table = batch.translate(texts(150), reverser, **on(cluster, store))
    assert set(table["status"]) == {"ok", "cached"}
    other.communicate()
    assert other.returncode == 0
    assert set(translator.calls.values()) == {1}


@pytest.mark.slow
def test_a_driver_that_is_killed(cluster, translator, reverser, store):
    translator.delay_s = 0.02
    driver = Script(DRIVER, translator.base_url, cluster.address, store.path, 240)
    more_than(translator, 100)
    driver.kill()
    table = batch.translate(texts(240), reverser, **on(cluster, store))
    assert set(table["status"]) == {"ok", "cached"}
    # its workers end by themselves, and what they still got is there
    assert set(translator.calls.values()) == {1}
    assert not list((store.path / "parts").iterdir())


@pytest.mark.slow
def test_a_cluster_without_the_library_says_so(translator, reverser, store):
    def lose_it():
        import sys

        sys.modules["speechlab.batch._run.lease"] = None

    with started(1) as poor:
        poor.client.run(lose_it)
        table = batch.translate(texts(30), reverser, **on(poor, store))
    assert set(table["status"]) == {"cancelled"}
    assert "no worker of the cluster can make calls" in table["error"][0]
    assert "ModuleNotFoundError" in table["error"][0]
    assert not translator.calls


@pytest.mark.slow
def test_workers_are_killed(translator, store):
    translator.delay_s, kills = 0.05, 4
    chance = random.Random(20261122)
    with started(3) as cluster, Client(translator.base_url) as lab:

        def kill():
            for number in range(kills):
                more_than(translator, 40 * (number + 1))
                cluster.kill_worker(chance.randrange(3))

        with meanwhile(kill):
            table = batch.translate(texts(260), lab, **on(cluster, store))
    all_there(table)
    # what a worker had got is in its part: what was asked twice was under way when it was killed
    assert asked_again(translator) <= kills * CONCURRENCY


@pytest.mark.slow
@pytest.mark.parametrize("patience_s", [30, 1])
def test_a_scheduler_that_is_killed_and_comes_back(translator, store, patience_s):
    """While the user's client of it still waits, and after that has given up."""
    translator.delay_s = 0.02
    with started(2, timeout=patience_s) as cluster, Client(translator.base_url) as lab:

        def kill():
            more_than(translator, 60)
            cluster.scheduler.kill()
            for process in cluster.workers:  # they end by themselves
                process.join(60)
            assert patience_s > 1 or eventually(lambda: cluster.client.status == "closed", 60)
            cluster.start()

        with meanwhile(kill):
            table = batch.translate(texts(250), lab, **on(cluster, store))
    all_there(table)
    # its workers first finished what was under way
    assert not asked_again(translator)


@pytest.mark.slow
def test_a_scheduler_that_is_gone(translator, store):
    translator.delay_s = 0.02
    with started(2, timeout=2) as cluster, Client(translator.base_url) as lab:

        def kill():
            more_than(translator, 60)
            cluster.scheduler.kill()

        with meanwhile(kill):
            words = (
                f"the scheduler at {cluster.address} did not come back within 4 s; start it and its workers"
            )
            with pytest.warns(UserWarning, match=words):
                table = batch.translate(texts(250), lab, **on(cluster, store, give_up_after_s=4))
        assert set(table["status"]) == {"ok", "cancelled"}
        assert (table["status"] == "ok").sum() == len(translator.calls)
        # the same call goes on, also without a cluster
        table = batch.translate(texts(250), lab, **quiet(store))
    assert set(table["status"]) == {"ok", "cached"}
    assert not asked_again(translator)
    assert [run.status for run in store.runs()] == ["stopped", "finished"]
