"""A store that cannot be written is read: whole, also what a killed process left in its log."""

import sqlite3
from contextlib import closing

import pytest

from speechlab import batch
from speechlab.client import Client
from speechlab.store import Store
from support.batches import quiet, texts
from support.forked import script
from support.translator import Translator, Wire

WRITER = """
import os, signal, sys
from speechlab.store import Store
store = Store(sys.argv[1])
for n in range(3):
    store.put(f"k{n}", operation="o", request={}, response={"n": n}, files={"f": (b"%d" % n, ".b")})
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
store.close()
"""

READER = """
import ctypes, os, sys
from speechlab import batch
from speechlab.client import Client
from speechlab.errors import SpeechLabError
from speechlab.store import RunRecord, Store
from support.batches import quiet, texts
folder = sys.argv[1]

if os.getuid() == 0:  # give up what lets root write everywhere: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
    kernel = ctypes.CDLL(None)
    version, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()  # capget(2)
    assert kernel.capget(version, sets) == 0
    sets[0] &= ~0b1110  # effective
    sets[1] &= ~0b1110  # permitted
    assert kernel.capset(version, sets) == 0

def refused(work):
    try:
        work()
    except SpeechLabError as error:
        print(type(error).__name__, error)
    else:
        print("done")
"""
READ = """
with Store(folder) as store:
    assert store.read_only
    assert [store.get(f"k{n}").files["f"].read_bytes() for n in range(3)] == [b"0", b"1", b"2"]
    assert len(store) == 3 and store.runs() == [] and store.newest("o")[0][0] == "k2"
    refused(lambda: store.put("k", operation="o", request={}, response={}))
    refused(lambda: store.put("k", operation="o", request={}, response={}, files={"f": (b"9", ".b")}))
    refused(lambda: store.save_run(RunRecord("r", "o", "running", 1.0)))
"""
BATCH = """
run = batch.load(folder)
assert run.verify(), run.verify().problems
print(run.table()["translation"].tolist())
for options in ({"max_retries": 0}, {"mode": "replay", "store": folder}):
    with Client(sys.argv[2], **options) as lab:
        table = batch.translate(texts(3), lab, **quiet(folder))
        print(table["status"].tolist(), table.attrs)
        plan = batch.plan_translation(texts(3), lab, store=folder, source_lang="en", target_lang="ja")
        assert batch.assemble(plan)["translation"].tolist() == table["translation"].tolist()
        refused(lambda: batch.run(plan, lab, progress=False))
        refused(lambda: batch.translate(texts(4), lab, **quiet(folder)))
        refused(lambda: lab.translate("new", source_lang="en", target_lang="ja"))
"""


@pytest.fixture
def translator():
    service = Translator()
    with Wire(service.answer) as wire:
        service.base_url = f"http://127.0.0.1:{wire.port}"
        yield service


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "store"
    yield made
    lock(made, 0o755, 0o644)


def lock(folder, for_folders=0o555, for_files=0o444):
    for path in [folder, *folder.rglob("*")]:
        path.chmod(for_folders if path.is_dir() else for_files)


def read(code, *arguments):
    done = script(READER + code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "kill and lose the index", "kill and lock the files"])
def test_all_that_was_written_is_read(folder, how):
    script(WRITER, folder, how.split()[0])
    log = folder / "store.sqlite-wal"
    assert log.exists() == how.startswith("kill")
    if how.endswith("index"):
        (folder / "store.sqlite-shm").unlink()
    before = (folder / "store.sqlite").read_bytes()
    lock(folder, 0o777 if how.endswith("files") else 0o555)
    told = read(READ, folder)
    assert len(told) == 3
    assert all(line.startswith("StoreError") for line in told)
    assert "can only be read" in told[0]
    assert "cannot write" in told[1] or "can only be read" in told[1]
    assert (folder / "store.sqlite").read_bytes() == before


@pytest.mark.slow
def test_a_read_only_store_of_another_version_is_refused(folder):
    with Store(folder), closing(sqlite3.connect(folder / "store.sqlite")) as db:
        db.execute("PRAGMA user_version = 7")
    lock(folder)
    (told,) = read("refused(lambda: Store(folder))", folder)
    assert "is of another version of speechlab (its schema is 7, the one known here 1)" in told


@pytest.mark.slow
def test_runs_are_loaded_verified_replayed_and_repeated(folder, translator):
    with Client(base_url=translator.base_url) as lab:
        batch.translate(texts(3), lab, **quiet(folder))
    lock(folder)
    told = read(BATCH, folder, translator.base_url)
    assert told[0] == str([text[::-1] for text in texts(3)["text"]])
    assert told[1] == "['cached', 'cached', 'cached'] {}"
    assert "sl.batch.assemble(plan)" in told[2]
    assert told[3].startswith("StoreError")
    assert "does not have all of the results" in told[3]
    assert told[4] == "done"  # a client without a store keeps nothing
    assert told[5:7] == told[1:3]
    assert told[7] == "done"  # with an error in the row
    assert told[8].startswith("ReplayMiss")
    # nothing was asked whose answer could not have been kept
    assert sum(translator.calls.values()) == 4


@pytest.mark.slow
def test_a_client_makes_no_call_whose_result_cannot_be_kept(folder, translator):
    with Client(base_url=translator.base_url, store=folder) as lab:
        lab.translate("known", source_lang="en", target_lang="ja")
    lock(folder)
    code = """
with Client(base_url=sys.argv[2], store=folder) as lab:
    print(lab.translate("known", source_lang="en", target_lang="ja").text)
    refused(lambda: lab.translate("new", source_lang="en", target_lang="ja"))
"""
    told = read(code, folder, translator.base_url)
    assert told[0] == "nwonk"
    assert told[1].startswith("StoreError")
    assert translator.calls == {"known": 1}
