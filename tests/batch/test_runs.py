"""Plans, runs and tables, each alone: on a small service that can be told to misbehave."""

import asyncio
import os
import signal
import sys
import threading
import time
from concurrent.futures import wait
from contextlib import nullcontext

import pandas as pd
import pytest

from speechlab import batch
from speechlab.client import start_work
from support.batches import EN_JA, quiet, texts
from support.cells import cells
from support.stores import kept


def test_plan_run_and_assemble_each_alone(reverser, translator, store):
    frame = pd.DataFrame({"text": ["one", "two", "one", None]}, index=[5, 5, 6, 7])
    plan = batch.plan_translation(frame, reverser, store=store, **EN_JA)
    assert plan.summary() == {
        "rows": 4,
        "invalid": 1,
        "calls": 2,
        "cached": 0,
        "duplicates": 1,
        "characters": 6,
        "audio_s": 0,
    }
    assert not translator.calls
    assert batch.assemble(plan)["status"].tolist() == ["cancelled"] * 3 + ["error"]
    run = batch.run(plan, reverser, progress=False)
    assert run.status == "finished"
    assert run.manifest["statuses"] == {"ok": 3, "error": 1}
    assert run.manifest["usage"] == {"calls": 2, "characters": 6, "audio_s": 0, "tokens": 8}
    assert dict(translator.calls) == {"one": 1, "two": 1}
    table = batch.assemble(plan)
    assert table.index.equals(frame.index)
    assert table["translation"].tolist()[:3] == ["eno", "owt", "eno"]
    pd.testing.assert_frame_equal(run.table()[["text", "translation"]], table[["text", "translation"]])
    assert run.table().dtypes.equals(table.dtypes)


def test_what_a_run_spent_counts_once(reverser, store):
    frame = pd.DataFrame({"text": ["one", "one", "three"]})
    first = batch.translate(frame, reverser, **quiet(store))
    assert first["usage_characters"].tolist() == [3, 0, 5]
    assert first["usage_tokens"].tolist() == [4, 0, 6]
    assert first["attempts"].tolist() == [1, 0, 1]
    assert (first["first_byte_s"] <= first["latency_s"]).all()
    again = batch.translate(frame, reverser, **quiet(store))
    assert again["usage_characters"].sum() == 0
    assert {str(first[name].dtype) for name in ("usage_characters", "usage_tokens")} == {"Int64"}


def test_a_batch_beside_a_loop_and_in_its_threads(reverser, translator, store):
    async def everything():
        beside = batch.translate(texts(3), reverser, **quiet(store))
        translator.delay_s = 0.02
        both = (
            asyncio.to_thread(batch.translate, texts(50), reverser, **quiet(where))
            for where in (store, store.path)
        )
        return [beside, *await asyncio.gather(*both)]

    beside, *threads = asyncio.run(everything())
    assert beside["status"].tolist() == ["ok"] * 3
    for table in threads:
        assert table["status"].isin(["ok", "cached"]).all()
        assert table["translation"].tolist()[:3] == beside["translation"].tolist()
    assert set(translator.calls.values()) == {1}


def test_failed_rows_are_asked_again_unless_told_otherwise(reverser, translator, store):
    translator.faults = {"number 1": 400}
    assert batch.translate(texts(3), reverser, **quiet(store))["status"].tolist() == ["ok", "error", "ok"]
    translator.faults = {}
    left = batch.translate(texts(3), reverser, **quiet(store, retry_failed=False))
    assert left["status"].tolist() == ["cached", "skipped", "cached"]
    assert left["http_status"].tolist()[1] == 400
    assert left["error_type"].tolist()[1] == "BadRequestError"
    again = batch.translate(texts(3), reverser, **quiet(store))
    assert again["status"].tolist() == ["cached", "ok", "cached"]


def test_errors_of_many_rows_are_a_few_lines_in_a_cell(reverser, store, tmp_path):
    names = {"batch": batch, "frame": pd.DataFrame({"text": [None] * 20}), "lab": reverser}
    with cells(tmp_path, options=quiet(store, on_error="raise"), **names) as run:
        shown, _ = run("batch.translate(frame, lab, **options)")
    assert len(shown.splitlines()) <= 12, shown
    assert "speechlab" not in shown
    assert "InvalidRequestError: column 'text' is empty in this row" in shown
    assert "and 17 more in its .exceptions" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "the first 20 calls were all refused with one and the same error"),
        (501, "20 of the last 20 calls failed, more than the 50%"),
    ],
)
def test_a_hopeless_run_stops_and_says_why(status, words, reverser, translator, store):
    translator.faults = {"number": status}
    with pytest.warns(UserWarning, match=words):
        table = batch.translate(texts(200), reverser, **quiet(store, concurrency=1))
    counts = table["status"].value_counts()
    assert counts["error"] in (20, 21)  # the next call may have begun when the last one ended
    assert counts["cancelled"] == 200 - counts["error"]
    assert "max_error_share" in table["error"].iloc[-1]
    run = batch.load(table, store)
    assert run.status == "stopped"
    assert run.manifest["statuses"] == {"error": counts["error"], "cancelled": counts["cancelled"]}
    translator.faults = {}
    assert (batch.translate(texts(200), reverser, **quiet(store))["status"] == "ok").all()


@pytest.mark.parametrize(
    ("budget", "asked", "said"),
    [
        ({"calls": 7}, 7, "is used up"),
        ({"characters": 60}, 4, "is used up"),
        ({"calls": 0}, 0, "nothing was asked"),
        ({"characters": 1e9}, 30, None),
    ],
)
def test_a_budget_is_not_passed(reverser, translator, store, budget, asked, said):
    with pytest.warns(UserWarning, match=said) if said else nullcontext():
        table = batch.translate(texts(30), reverser, **quiet(store, budget=batch.Budget(**budget)))
    assert sum(translator.calls.values()) == asked
    assert (table["status"] == "ok").sum() == asked
    assert table["usage_characters"].sum() <= budget.get("characters", 1e9)


def test_an_interrupt_keeps_everything(reverser, translator, store, capsys):
    translator.delay_s = 0.02

    def interrupt():
        while sum(translator.calls.values()) < 50:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        batch.translate(texts(2000), reverser, **quiet(store))
    done = kept(store)
    (name,) = batch.runs(store)["run"]
    assert f"run {name} was interrupted: {done:,} of 2,000 calls had ended" in str(caught.value)
    assert f"sl.batch.load({name!r}, {str(store.path)!r})" in str(caught.value)
    sys.excepthook(caught.type, caught.value, caught.tb)
    shown = capsys.readouterr().err
    assert "threading.py" not in shown  # which waited
    assert "speechlab/" not in shown
    assert 0 < done < 2000
    run = batch.load(batch.runs(store)["run"].iloc[-1], store)
    assert run.status == "interrupted"
    assert run.manifest["statuses"]["ok"] == done
    assert run.table()["status"].value_counts()["cancelled"] == 2000 - done
    # those under way were let finish
    assert sum(translator.calls.values()) == done


def test_calls_under_way_are_kept_after_two_interrupts(reverser, translator, store):
    translator.delay_s = 0.4
    ended = threading.Event()

    def interrupt():
        while not translator.under_way and not ended.is_set():
            time.sleep(0.01)
        for _ in range(2):
            if not ended.is_set():
                os.kill(os.getpid(), signal.SIGINT)
            ended.wait(0.1)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt, match="was interrupted: "):
        batch.translate(texts(100), reverser, **quiet(store))
    ended.set()
    assert 0 < sum(translator.calls.values()) == kept(store) < 100
    assert batch.load(batch.runs(store)["run"].iloc[-1], store).status == "interrupted"


@pytest.mark.parametrize("begun", [1, 2])  # the first reads the service's catalogue
def test_an_interrupt_before_the_first_call_makes_none(reverser, translator, store, monkeypatch, begun):
    calls = []

    def interrupted(*args):
        calls.append(start_work(*args))
        if len(calls) == begun:
            raise KeyboardInterrupt
        return calls[-1]

    monkeypatch.setattr("speechlab.batch._run.caller.start_work", interrupted)
    with pytest.raises(KeyboardInterrupt, match="^$" if begun == 1 else "before its first call; the same"):
        batch.translate(texts(3), reverser, **quiet(store))
    wait(calls, 10)
    assert calls[-1].cancelled()
    assert not translator.calls


@pytest.mark.slow
def test_an_interrupt_does_not_wait_for_ever(reverser, translator, store):
    translator.delay_s = 3.0

    def interrupt():
        while not translator.under_way:
            time.sleep(0.01)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt, match="0 of 100 calls had ended"):
        batch.translate(texts(100), reverser, **quiet(store))
    run = batch.load(batch.runs(store)["run"].iloc[-1], store)
    assert (run.status, run.manifest["statuses"]) == ("interrupted", {"cancelled": 100})
