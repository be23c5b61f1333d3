"""Progress of a run: the bar, functions and watchers, and the preview."""

import os
import re
import select
import time
from types import SimpleNamespace

import pandas as pd
import pytest

from speechlab import batch
from speechlab.batch import Outcome, Tally
from speechlab.widgets import BatchPreview
from support.batches import EN_JA, Notes, texts
from support.forked import Script
from support.translator import Translator, Wire, reply


def test_a_watcher_is_told_each_call_once_and_the_end(reverser, translator, store):
    translator.faults = {"bad": 400}
    frame = pd.DataFrame({"text": ["one", "bad", "two", "one"]})
    notes = Notes()
    assert isinstance(notes, batch.Watcher)
    batch.translate(frame, reverser, store=store, progress=notes, **EN_JA)
    assert (notes.began, notes.ended) == (["translate"], 1)
    assert sorted(outcome.status for outcome in notes.told) == ["error", "ok", "ok"]
    last = notes.counts[-1]
    assert (last.done, last.total, last.errors, last.cached) == (3, 3, 1, 0)
    again = Notes()
    batch.translate(frame, reverser, store=store, progress=again, **EN_JA)
    assert (again.counts[-1].done, again.counts[-1].total, again.counts[-1].cached) == (1, 1, 2)


def test_the_preview_shows_the_last_rows_of_a_real_run(reverser, translator, store):
    translator.faults = {"bad": 400}
    frame = pd.DataFrame({"text": [f"text {n}" for n in range(9)] + ["bad"]})
    preview = BatchPreview(rows=3)
    batch.translate(frame, reverser, store=store, progress=preview, concurrency=1, **EN_JA)
    assert [row["status"] for row in preview.recent] == ["ok", "ok", "error"]
    assert [row["text"] for row in preview.recent[:2]] == ["7 txet", "8 txet"]
    assert preview.recent[0]["lang"] == "ja"
    assert preview.recent[0]["latency"].endswith(" s")
    assert "no: 400" in preview.recent[2]["text"]
    assert (preview.title, preview.done, preview.total, preview.running) == ("Translation", 10, 10, False)
    assert preview.summary.startswith("10 of 10 calls · 1 failed · 0 cached · ")
    assert "most often: HTTP 400" in preview.summary


def test_in_a_notebook_a_batch_shows_its_preview(reverser, store, monkeypatch):
    shown = []
    cell = SimpleNamespace(get_parent=lambda: {"header": {"msg_id": "first"}})
    monkeypatch.setattr("speechlab.batch._run.progress.is_in_notebook", lambda: True)
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: cell)
    monkeypatch.setattr("IPython.display.display", lambda *values, **_: shown.extend(values))
    batch.translate(texts(3), reverser, store=store, **EN_JA)
    (preview,) = shown
    assert isinstance(preview, BatchPreview)
    assert (preview.title, preview.done, preview.running) == ("Translation", 3, False)
    cell.get_parent = lambda: {"header": {"msg_id": "second"}}
    with batch.show_progress(True, 1, "sounds") as advance:
        advance()
    assert len(shown) == 2


def test_rows_that_cannot_be_asked_are_counted_as_well(reverser, store):
    frame = pd.DataFrame({"text": ["one", "", None]})
    first = "1 of 1 calls · 2 failed · 0 cached"
    for summary in (first, "no calls to make · 2 failed · 1 cached"):
        preview = BatchPreview()
        batch.translate(frame, reverser, store=store, progress=preview, **EN_JA)
        assert preview.summary.startswith(summary)


BAR = """
import pandas as pd, sys
from speechlab import batch
from speechlab.client import Client
lab = Client(base_url=sys.argv[1])
frame = pd.DataFrame({"text": [f"text {n}" for n in range(40)]})
batch.translate(frame, lab, source_lang="en", target_lang="ja", store=sys.argv[2])
"""


def on_a_terminal(code, *arguments, columns=120):
    """What a program writes that believes in a terminal."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = Script(code, *arguments, terminal=os.ttyname(slave))
    shown, over = b"", False
    while not over:
        over = process.poll() is not None  # what it wrote before its end is still to be read
        while select.select([master], [], [], 0.1)[0]:
            shown += os.read(master, 4096)
    os.close(slave)
    os.close(master)
    assert process.returncode == 0, shown
    return shown


@pytest.mark.slow
def test_the_bar_is_for_terminals(translator, tmp_path):
    plain = Script(BAR, translator.base_url, tmp_path / "a")
    shown = on_a_terminal(BAR, translator.base_url, tmp_path / "b")
    assert b"translate: 100%" in shown
    assert b"failed=0" in shown
    assert b"tokens=" in shown, shown
    assert b"call/s" in shown
    assert plain.communicate(timeout=150) == ("", "")
    assert plain.returncode == 0


class Quota(Translator):
    """A translator that takes 25 of the 40 calls, and the others after a wait that is a pause."""

    def __init__(self):
        super().__init__()
        self.taken, self.until = 0, None

    async def answer(self, head, body):
        if head.startswith(b"POST"):
            self.taken += 1
            if self.taken > 25:
                self.until = self.until or time.monotonic() + 5.5
                if (left := self.until - time.monotonic()) > 0:
                    no = {"code": 1, "name": "Quota", "message": "25 calls"}
                    return reply(429, no, f"Retry-After: {left:.2f}")
        return await super().answer(head, body)


@pytest.mark.slow
def test_the_bar_says_what_a_run_waits_for(tmp_path):
    with Wire(Quota().answer) as wire:
        there = f"http://127.0.0.1:{wire.port}"
        shown = on_a_terminal(BAR, there, tmp_path / "a", columns=80)
    lines = re.split(r"[\r\n]+", shown.decode())
    assert max(map(len, lines)) <= 80
    waiting = [line for line in lines if "waiting" in line]
    whole = re.compile(r"translate: +\d+%\|.{5,}\| \d+/40.*, waiting for the service's quota(, \d s)?")
    assert waiting
    assert all(whole.fullmatch(line) for line in waiting), waiting
    assert any(", 1 s" in line for line in waiting)
    assert any("40/40" in line and "waiting" not in line for line in lines)


def test_the_time_left_goes_by_the_sizes_of_calls(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    tally = Tally()
    assert tally.to_counts().left_s is None
    lengths = [1, 2, 3, 4, 5, 6, 7, 8]
    tally.add_planned(len(lengths), 0, size=sum(lengths))
    for length in lengths[:3]:  # an engine that takes 10 s for each second of sound
        now[0] += 10 * length
        tally.add_outcome(Outcome("ok", audio_s=length))
    assert tally.to_counts().left_s == pytest.approx(300)
    preview = BatchPreview()
    preview.begin("transcribe")
    preview.update([], tally.to_counts())
    assert preview.summary.endswith("5 min 0 s left")
