"""The store keeps what it was given, whole, whatever happens to the process or the disk."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from speechlab.errors import StoreError
from speechlab.store import Attempt, RunRecord, Store
from support.forked import script

ASK = {"text": "hello", "voice": "v", "temperature": None}


def keep(store: Store, key: str = "k", data: bytes = b"sound"):
    return store.put(
        key,
        operation="synthesize",
        request=ASK,
        response={"duration_s": 1.5},
        files={"audio": (data, ".flac")},
        attempt=Attempt(key, 1.0, 0.5, "ok", 200),
    )


def test_a_result_comes_back_as_it_was(tmp_path):
    with Store(tmp_path / "s") as store:
        assert store.get("k") is None
        put = keep(store)
    with Store(tmp_path / "s") as store:
        got = store.get("k")
        assert got == put
        assert got.request == ASK
        assert got.files["audio"].read_bytes() == b"sound"
        assert [attempt.status for attempt in store.attempts("k")] == ["ok"]
        assert len(store) == 1


def test_failures_are_remembered_and_never_hits(tmp_path):
    with Store(tmp_path) as store:
        store.add_attempt(Attempt("k", 1.0, 0.1, "error", 429, "RateLimitError", "slow down"))
        assert store.get("k") is None
        keep(store)
        assert [attempt.status for attempt in store.attempts("k")] == ["error", "ok"]


def test_a_result_whose_file_is_gone_or_cut_short_is_no_hit(tmp_path):
    with Store(tmp_path) as store:
        for damage in (lambda file: file.unlink(), lambda file: file.write_bytes(b"")):
            damage(keep(store).files["audio"])
            assert store.get("k") is None
            assert store.get_many(["k"]) == {}
            keep(store, data=b"other")
            assert store.get("k").files["audio"].read_bytes() == b"other"
        assert keep(store).files["audio"].read_bytes() == b"sound"


def test_many_threads_write_at_once(tmp_path):
    with Store(tmp_path) as store, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: keep(store, str(n), str(n % 3).encode()), range(60)))
        assert len(store) == 60
        assert store.blobs.is_intact(store.get("7").files["audio"].stem, ".flac")
    assert sum(1 for path in (tmp_path / "blobs").rglob("*.flac")) == 3  # the same sound is kept once


WRITER = """
import sys
from speechlab.store import Store
store = Store(sys.argv[1])
for n in range(100_000):
    store.put(f"{sys.argv[2]}{n}", operation="o", request={}, response={"n": n}, files={"audio": (b"%d" % n, ".bin")})
    print(n, flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_it_had_reported(tmp_path):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name], stdout=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    begun = [[writer.stdout.readline() for _ in range(6)] for writer in writers]
    time.sleep(0.5)
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
    with Store(tmp_path) as store:
        for writer, name, first in zip(writers, "ab", begun, strict=True):
            reported = "".join((*first, writer.stdout.read())).split()
            writer.stdout.close()
            writer.wait()
            assert len(reported) > 5
            for n in reported[:-1]:
                assert store.get(f"{name}{n}").response == {"n": int(n)}
        assert not [path for path in store.blobs.root.rglob(".*") if path.is_dir()]


FULL = """
import resource, signal, sys
from speechlab.errors import StoreError
from speechlab.store import Store
store = Store(sys.argv[1])
store.put("kept", operation="o", request={}, response={})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # a module half written would stay
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    store.put("k", operation="o", request={}, response={}, files={"audio": (bytes(300_000), ".wav")})
except StoreError as error:
    print(error)
left = [path.name for path in store.blobs.root.rglob("*") if path.is_file()]
print(store.get("kept") is not None, store.get("k") is None, left)
"""


@pytest.mark.slow
def test_no_space_left(tmp_path):
    done = script(FULL, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert "no space left" in first
    assert "stored results stay valid" in first
    assert second == "True True []"


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match=r"cannot write .*; choose a folder that you may write to"):
        Store(tmp_path / "file" / "store")


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "store.sqlite").write_bytes(b"not a database, but long enough to look like something" * 50)
    with pytest.raises(StoreError, match="not a store"):
        Store(tmp_path)


def test_a_store_of_another_version_is_refused_with_what_to_do(tmp_path):
    Store(tmp_path).close()
    for version in (0, 2):
        with closing(sqlite3.connect(tmp_path / "store.sqlite")) as db:
            db.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(
            StoreError, match=r"store\.sqlite is of another version .*; use that version, or choose"
        ):
            Store(tmp_path)


CLAIM = """
import sys
from speechlab.store import Store
claims = Store(sys.argv[1]).claims()
print([key for key in sys.argv[2:] if claims.claim_key(key)], flush=True)
sys.stdin.readline()
"""


def test_a_claim_ends_with_its_process(tmp_path):
    with Store(tmp_path) as store, Store(tmp_path) as same:
        claims, others = store.claims(), same.claims()
        assert claims.claim_key("mine")
        assert not others.claim_key("mine")
        assert others.claim_key("other")
        others.release_keys(["other", "mine", "unknown"])
        assert (claims.keys, others.keys) == ({"mine"}, set())
        command = [sys.executable, "-c", CLAIM, tmp_path, "mine", "yours", "other"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "['yours', 'other']\n"
        assert not claims.claim_key("yours")
        claims.release_keys(["mine"])
        assert claims.claim_key("mine")
        process.kill()
        process.communicate()
        assert claims.claim_key("yours")
        assert others.claim_key("other")


def test_a_child_of_a_fork_has_no_claims(tmp_path):
    with Store(tmp_path) as store:
        claims = store.claims()
        assert claims.claim_key("parent")
        child = os.fork()
        if not child:
            again = store.claims()
            os._exit(again.claim_key("parent") + 2 * again.claim_key("child"))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
        assert claims.claim_key("child")


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
        with pytest.raises(StoreError, match="no run 'x'; its latest are: r1"):
            store.run("x")


def test_many_results_at_once(tmp_path):
    with Store(tmp_path) as store:
        with store.transaction():
            for n in range(1200):
                store.put(
                    f"k{n}", operation="o", request={}, response={"n": n}, files={"f": (b"%d" % n, ".b")}
                )
        keys = [f"k{n}" for n in range(0, 2400, 2)]
        assert store.get_many(keys) == {key: store.get(key) for key in keys[:600]}


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
