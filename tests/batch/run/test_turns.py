"""Batches in turns: the calls of one row follow each other, however fast the systems are."""

import time
from types import SimpleNamespace

import pandas as pd

import speechlab as sl
from speechlab import batch
from speechlab.batch import LeaseTurns
from speechlab.errors import APIConnectionError

ROWS = 24


def request(calls, name, frame, store, delay_s=0.0, **options):
    def translate(text, **_):
        calls.append((name, int(text)))
        time.sleep(delay_s)
        return text

    lab = sl.system(name, translate=translate, version="1")
    options = {"text": "text", "source_lang": "en", "target_lang": "de", "store": store, **options}
    return batch.TableRequest("translate", lab, frame, {"progress": False, **options})


def frame_of(rows=ROWS):
    return pd.DataFrame({"text": [str(row) for row in range(rows)]})


def process(requests):
    return batch.process_in_turns(requests, (APIConnectionError,))


def test_each_row_begins_with_another_system(store):
    calls = []
    tables, errors = process(
        {name: request(calls, name, frame_of(), store, concurrency=1) for name in ("a", "b", "c")}
    )
    assert not errors
    assert [row for _, row in calls] == [row for row in range(ROWS) for _ in "abc"]
    assert [name for name, _ in calls[:9]] == list("abcbcacab")
    assert list(tables) == ["a", "b", "c"]
    assert all(table["translation"].tolist() == frame_of()["text"].tolist() for table in tables.values())


def test_a_slow_system_holds_the_others_near_its_row(store):
    calls = []
    process(
        {
            "slow": request(calls, "slow", frame_of(), store, 0.005),
            "fast": request(calls, "fast", frame_of(), store),
        }
    )
    rows = {"slow": -1, "fast": -1}
    for name, row in calls:
        rows[name] = row
        assert abs(rows["slow"] - rows["fast"]) <= 1


def test_tables_of_other_lengths_and_stored_rows_keep_the_pace(store):
    calls = []
    batch.translate(
        frame_of(12),
        request(calls, "a", frame_of(), store).lab,
        source_lang="en",
        target_lang="de",
        store=store,
        progress=False,
    )
    calls.clear()
    told = []
    both = {
        "a": request(
            calls, "a", frame_of(), store, concurrency=1, progress=lambda *given: told.append(given)
        ),
        "b": request(calls, "b", frame_of(8), store, concurrency=1),
    }
    tables, _ = process(both)
    assert tables["a"]["status"].tolist() == ["cached"] * 12 + ["ok"] * 12
    assert [row for name, row in calls if name == "b"] == list(range(8))
    middle = next(at for at, (name, _) in enumerate(calls) if name == "a")
    assert [row for name, row in calls[:middle]] == [0, 1, 2, 3]  # of b, until a has a row to ask for
    assert told[-1] == (20, 20)  # one count of all


def test_a_client_that_cannot_be_asked_fails_alone(store):
    calls = []
    with sl.Client("http://127.0.0.1:9", api_key="nobody-is-there-1", max_retries=0) as nobody:
        lost = request(calls, "lost", frame_of(4), store, give_up_after_s=0.0)._replace(lab=nobody)
        tables, errors = process(
            {"lost": lost, "here": request(calls, "here", frame_of(4), store), "too": lost}
        )
    assert list(tables) == ["here"]
    assert list(errors) == ["lost", "too"]
    assert errors["lost"] is errors["too"]


def test_leases_of_a_cluster_are_in_turns():
    plan = SimpleNamespace(rows=[str(row) for row in range(90)])
    batches = []
    turns = {name: LeaseTurns.of_plan(batches, plan) for name in "abc"}
    rows, leases = dict.fromkeys(turns, 0), []
    sizes = {"a": 4, "b": 30, "c": 8}
    while any(row < 90 for row in rows.values()):
        name = next(name for name, row in rows.items() if row < 90 and turns[name].is_next())
        keys = plan.rows[rows[name] : rows[name] + sizes[name]]
        turns[name].count_lease(keys)
        leases.append((name, rows[name]))
        rows[name] += len(keys)
        assert max(rows.values()) - min(rows.values()) <= 30
        if rows[name] >= 90:
            turns[name].end()
    assert leases[:6] == [("a", 0), ("b", 0), ("c", 0), ("a", 4), ("a", 8), ("c", 8)]
