"""Killed at random moments and begun again, a batch loses nothing and asks nothing twice: by the service's books."""

from __future__ import annotations

import json
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
from support.forked import script
from support.quick import Tones
from support.staged import staged_config
from support.stores import kept

pytestmark = pytest.mark.slow

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
