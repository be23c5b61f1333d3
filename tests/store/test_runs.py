"""Runs are remembered with the parts of their tables, by any process that opens the store."""

from __future__ import annotations

import time

import pytest

from speechlab.errors import StoreError
from speechlab.store import RunRecord, Store


def test_a_run_is_written_down_twice_and_found_once(tmp_path):
    with Store(tmp_path) as store:
        store.save_run(RunRecord("r1", "translate", "running", 1.0, manifest={"a": 1}))
        assert store.run("r1").status == "running"
        store.add_part("r1", b"one", 5)
        store.add_part("r1", b"two", 3)
        store.save_run(RunRecord("r1", "translate", "finished", 1.0, 2.0, {"a": 2}))
    with Store(tmp_path) as store:
        run = store.run("r1")
        assert (run.status, run.ended, run.manifest) == ("finished", 2.0, {"a": 2})
        assert [part.rows for part in run.parts] == [5, 3]
        assert store.part_path(run.parts[1]).read_bytes() == b"two"
        assert [record.id for record in store.runs()] == ["r1"]


def test_a_run_that_is_not_there(tmp_path):
    with Store(tmp_path) as store, pytest.raises(StoreError, match="no run 'x'; its latest are: none"):
        store.run("x")


def test_many_results_at_once(tmp_path):
    with Store(tmp_path) as store:
        with store.transaction():
            for n in range(1200):
                store.put(
                    f"k{n}", operation="o", request={}, response={"n": n}, files={"f": (b"%d" % n, ".b")}
                )
        keys = [f"k{n}" for n in range(0, 2400, 2)]
        found = store.get_many(keys)
        assert found == {key: store.get(key) for key in keys[:600]}
        store.get("k0").files["f"].unlink()
        assert "k0" not in store.get_many(["k0", "k2"])


def test_a_transaction_is_all_or_nothing(tmp_path):
    with Store(tmp_path) as store:

        def half_way():
            with store.transaction():
                store.put("a", operation="o", request={}, response={})
                raise RuntimeError

        with pytest.raises(RuntimeError):
            half_way()
        assert store.get("a") is None
        store.put("b", operation="o", request={}, response={})
        assert len(store) == 1


def test_a_clock_that_was_set_back_does_not_change_the_order(tmp_path, monkeypatch):
    with Store(tmp_path) as store:
        for name, clock in (("z", 2e9), ("y", 1e9), ("x", 1.5e9)):
            monkeypatch.setattr(time, "time", lambda clock=clock: clock)
            store.save_run(RunRecord(name, "translate", "running", time.time()))
            store.put(f"k{name}", operation="o", request={"of": name}, response={})
        store.save_run(RunRecord("z", "translate", "finished", 2e9, 3e9))
        assert [run.id for run in store.runs()] == ["z", "y", "x"]
        assert [key for key, _ in store.newest("o", 3)] == ["kx", "ky", "kz"]
        store.put("ky", operation="o", request={}, response={})
        assert store.newest("o")[0][0] == "ky"


def test_a_result_whose_file_was_cut_short_is_no_result(tmp_path):
    with Store(tmp_path) as store:
        kept = store.put("k", operation="o", request={}, response={}, files={"audio": (b"sound", ".flac")})
        kept.files["audio"].write_bytes(b"")
        assert store.get("k") is None
        assert store.get_many(["k"]) == {}
        store.put("k", operation="o", request={}, response={}, files={"audio": (b"sound", ".flac")})
        assert store.get("k").files["audio"].read_bytes() == b"sound"
