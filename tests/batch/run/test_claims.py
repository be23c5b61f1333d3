"""Two processes that begin the same at once ask each row once; killed at random moments, a batch loses nothing."""

import json
import signal
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab import batch
from speechlab.client import Client
from speechlab.service import Database, Ledger, Provider, ServedEngine, run_service
from speechlab.store import Store
from support.batches import texts
from support.forked import Script, script
from support.quick import Tones
from support.staged import staged_config
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
def test_a_row_that_failed_elsewhere_is_tried_here(begin, translator):
    translator.faults = {"number 7$": 400}
    translator.delay_s = 0.02
    tables = [ended(process) for process in begin(60)]
    for statuses, _ in tables:
        assert [number for number, status in enumerate(statuses) if status == "error"] == [7]
    assert translator.calls["text number 7"] == 2
    assert sum(translator.calls.values()) == 61


KILLS = 5
ROWS = 50
AT_ONCE = 2

KILLER = """
import json, os, random, signal, sqlite3, sys, time
import pandas as pd, pyarrow.parquet, soundfile
from speechlab import batch
from speechlab.client import Client
from speechlab.store import Store
base_url, api_key, table, folder, kills, at_once = sys.argv[1:]
chance = random.Random(20261121)
with Store(folder):
    pass
db = sqlite3.connect(f"{folder}/store.sqlite")

def count():
    return db.execute("SELECT count(*) FROM results WHERE operation = 'synthesize'").fetchone()[0]

def work():
    lab = Client(base_url=base_url, api_key=api_key)
    frame = pd.read_parquet(table)
    batch.synthesize(frame, lab, store=folder, progress=False, concurrency=int(at_once))

hit = []
for _ in range(int(kills)):
    # forked, so that each start costs no second of imports; nothing here has begun a thread
    wanted = count() + chance.randrange(8)
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    while count() < wanted and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.005)
    time.sleep(chance.uniform(0, 0.06))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    hit.append(count())
print(json.dumps(hit))
"""


class Hums(Tones):
    """Says a tone that is as long as the text, after a pause in which the one who asked may be killed."""

    def synthesize(self, text, voice, *, temperature=None):
        time.sleep(0.03)
        yield np.full(240 * len(text.encode()) + 24 * len(text), 0.1, dtype=np.float32)


def sentence(number):
    """A short text that no other equals in its number of characters and of bytes, which is what the books say."""
    dots, accents = divmod(number, 10)
    return "la" + "é" * accents + "." * dots


@pytest.mark.slow
def test_a_batch_that_is_killed_loses_nothing(tmp_path):
    frame = pd.DataFrame({"text": [sentence(number) for number in range(ROWS)], "voice": "hums: tone"})
    sizes = [(len(text), len(text.encode())) for text in frame["text"]]
    assert len(set(sizes)) == ROWS
    frame.to_parquet(tmp_path / "rows.parquet")
    data = tmp_path / "service"
    hums = ServedEngine("hums", "synthesizer", Hums, Provider("hums", heavy=False))
    with run_service(staged_config(hums, data_dir=data)) as service:
        arguments = [
            service.base_url,
            service.api_key,
            tmp_path / "rows.parquet",
            tmp_path / "store",
            KILLS,
            AT_ONCE,
        ]
        done = script(KILLER, *arguments, timeout=200)
        assert done.returncode == 0, done.stderr
        hit = json.loads(done.stdout)
        with (
            Client(base_url=service.base_url, api_key=service.api_key) as lab,
            Store(tmp_path / "store") as store,
        ):
            table = batch.synthesize(frame, lab, store=store, progress=False)
            at_the_end = kept(store)
            statuses = batch.runs(store)["status"].tolist()
            again = batch.synthesize(frame, lab, store=store, progress=False)
        with closing(Database(data)) as database:
            books = Counter((row.characters, row.input_bytes) for row in Ledger(database).list_rows())
        with (
            Client(base_url=service.base_url, api_key=service.api_key) as lab,
            Store(tmp_path / "calm") as calm,
        ):
            undisturbed = batch.synthesize(frame, lab, store=calm, progress=False)

    assert len(hit) == KILLS
    assert hit[-1] < ROWS, "the last kill came after the end"
    assert statuses.count("finished") == 1
    # no row lost
    assert table["status"].isin(["ok", "cached"]).all()
    assert (table["status"] == "cached").sum() == hit[-1]
    assert at_the_end == ROWS
    assert set(books) == set(sizes)
    # none done twice, except what was under way at a kill
    assert sum(books.values()) - ROWS <= KILLS * AT_ONCE
    assert (again["status"] == "cached").all()
    # and the table is that of a run that nobody disturbed
    same = ["text", "voice", "duration_s", "sample_rate", "key"]
    pd.testing.assert_frame_equal(table[same], undisturbed[same])
    assert [Path(path).name for path in table["audio"]] == [Path(path).name for path in undisturbed["audio"]]
