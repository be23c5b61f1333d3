"""The bar of a recording of minutes that is transcribed whole."""

import threading
import time

import numpy as np
import pytest

from speechlab import AudioClip, system


class Bar:
    """A bar that notes what it shows."""

    def __init__(self, total, label, unit, **options):
        self.total, self.label, self.n, self.seen, self.closed = total, label, 0.0, [], False

    def update(self, more):
        self.n += more
        self.seen.append(self.n)

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    opened = []

    def open_bar(*given, **how):
        opened.append(Bar(*given, **how))
        return opened[-1]

    monkeypatch.setattr("speechlab.client._wait_bar._DELAY_S", 0.05)
    monkeypatch.setattr("speechlab.client._wait_bar.open_bar", open_bar)
    return opened


def transcribe_minutes(seconds=0.3, minutes=2):
    """Transcribe twice with one client, the second time at the pace of the first; return how long that took."""
    waiting, times = threading.Event(), [time.monotonic()]
    with system("slow", transcribe=lambda clip: waiting.wait(seconds) or "done", version="1") as lab:
        for loudness in (0.1, 0.2):
            lab.transcribe(AudioClip(np.full(int(60 * minutes) * 1_000, loudness, np.float32), 1_000))
            times.append(time.monotonic())
    return times[1] - times[0]


def test_minutes_have_a_bar_that_is_full_at_the_end_alone(bars, monkeypatch):
    took_s = transcribe_minutes()
    first, second = bars
    assert first.total is None
    assert "transcribe 2 min" in first.label
    assert "transcribe_long" in first.label
    assert 0.3 <= second.total <= took_s
    assert max(second.seen[:-1], default=0) < second.total
    assert second.n == pytest.approx(second.total)
    assert first.closed
    assert second.closed
    transcribe_minutes(minutes=1 / 4)
    assert len(bars) == 2  # short recordings have none
    monkeypatch.setattr(Bar, "update", lambda self, more: 1 / 0)
    transcribe_minutes()  # a display that fails costs no call
    assert len(bars) > 2
