"""Two processes that begin the same at the same time ask each row once; one that is killed takes nothing with it."""

from __future__ import annotations

import json
import signal
import threading
import time

import pytest

from speechlab import batch
from speechlab.store import Store
from support.batches import EN_JA, quiet, texts
from support.forked import Script
from support.stores import kept

WORK = """
import json, os, sys, time
from pathlib import Path
from speechlab import batch
from speechlab.client import Client
from support.batches import quiet, texts
base_url, folder, rows, at_once = sys.argv[1:]
ready = Path(folder).with_name("ready")
ready.mkdir(exist_ok=True)
(ready / str(os.getpid())).touch()
while len(list(ready.iterdir())) < 2:  # neither begins before the other has started
    time.sleep(0.005)
with Client(base_url) as lab:
    table = batch.translate(texts(int(rows)), lab, **quiet(folder, concurrency=int(at_once)))
    assert batch.load(table, folder).verify()
print(json.dumps([table["status"].tolist(), table["translation"].tolist()]))
"""


@pytest.fixture
def begin(tmp_path, translator):
    """Begin the same batch in two processes at the same time."""
    begun = []

    def begin(rows, at_once=8):
        begun.extend(Script(WORK, translator.base_url, tmp_path / "store", rows, at_once) for _ in range(2))
        return begun

    yield begin
    for process in begun:
        process.kill()


def ended(process):
    told, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    statuses, translations = json.loads(told)
    return statuses, translations


@pytest.mark.slow
def test_two_processes_share_the_rows(begin, translator, tmp_path):
    translator.delay_s = 0.03
    tables = [ended(process) for process in begin(300)]
    expected = [text[::-1] for text in texts(300)["text"]]
    assert [translations for _, translations in tables] == [expected] * 2
    assert sum(translator.calls.values()) == 300
    assert set(translator.calls.values()) == {1}
    # each asked about a half, and together they asked for all
    asked = [statuses.count("ok") for statuses, _ in tables]
    assert sum(asked) == 300
    assert min(asked) > 30
    assert all(set(statuses) == {"ok", "cached"} for statuses, _ in tables)
    with Store(tmp_path / "store") as store:
        runs = batch.runs(store)
        assert runs["status"].tolist() == ["finished"] * 2
        assert runs["ok"].sum() == runs["cached"].sum() == 300


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_is_killed_takes_no_row_with_it(begin, translator, tmp_path, stopped):
    translator.delay_s = 0.05
    victim, survivor = begin(200)
    with Store(tmp_path / "store") as store:
        while kept(store) < 80:
            time.sleep(0.02)
        victim.send_signal(stopped)
        if (
            stopped == signal.SIGSTOP
        ):  # it has its claims as long as it is there, and maybe the lock of the store
            rows = -1
            while rows < (rows := kept(store)):
                time.sleep(1.5)
            assert survivor.poll() is None
            assert rows < 200
            victim.kill()
        statuses, translations = ended(survivor)
    assert translations == [text[::-1] for text in texts(200)["text"]]
    assert set(statuses) == {"ok", "cached"}
    assert max(translator.calls.values()) <= 2
    # only what the victim had under way, or had not written down yet
    assert sum(translator.calls.values()) - 200 <= 2 * 8


@pytest.mark.slow
def test_threads_of_one_process_share_the_rows_too(translator, reverser, store):
    translator.delay_s = 0.02
    tables = []

    def work(where):
        tables.append(batch.translate(texts(100), reverser, **quiet(where)))

    threads = [threading.Thread(target=work, args=(where,)) for where in (store, store, store.path)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert set(translator.calls.values()) == {1}
    assert len(tables) == 3
    assert all(set(table["status"]) <= {"ok", "cached"} for table in tables)


@pytest.mark.slow
def test_a_row_that_failed_elsewhere_is_tried_here(begin, translator):
    translator.faults = {"number 7$": 400}
    translator.delay_s = 0.02
    tables = [ended(process) for process in begin(60)]
    for statuses, _ in tables:
        assert [number for number, status in enumerate(statuses) if status == "error"] == [7]
    assert translator.calls["text number 7"] == 2
    assert sum(translator.calls.values()) == 61


def test_claims_of_others_are_waited_for(translator, reverser, store):
    plan = batch.plan_translation(texts(3), reverser, store=store, **EN_JA)
    claims = store.claims()
    assert all(claims.claim_key(key) for key in list(plan.calls)[:2])

    def stop(done, total):
        raise RuntimeError(f"{done} of {total}")

    with pytest.raises(RuntimeError):
        batch.run(plan, reverser, progress=stop)
    assert claims.keys == set(list(plan.calls)[:2])

    def let_go():
        while kept(store) < 1:
            time.sleep(0.01)
        claims.release_keys(claims.keys)

    threading.Thread(target=let_go).start()
    run = batch.run(plan, reverser, progress=False)
    assert sum(run.manifest["statuses"].values()) == 3
    assert set(run.manifest["statuses"]) <= {"ok", "cached"}
    assert set(translator.calls.values()) == {1}
