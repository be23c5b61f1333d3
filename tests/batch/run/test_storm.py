"""A service that refuses, fails and hangs up at random: the batch completes, with the right table."""

from __future__ import annotations

import pandas as pd
import pytest

from speechlab import batch
from speechlab.client import Client
from speechlab.store import Store
from support.translator import in_the_way

EN_JA = {"source_lang": "en", "target_lang": "ja", "progress": False}


@pytest.mark.slow
def test_a_storm_changes_nothing_but_the_time(translator, tmp_path):
    frame = pd.DataFrame({"text": [f"text number {n}" for n in range(120)]})
    with in_the_way(translator, seed=5) as (base_url, counts), Client(base_url=base_url) as lab:
        table = batch.translate(frame, lab, store=tmp_path / "a", concurrency=16, **EN_JA)
    assert counts[429] > 30
    assert counts[500] > 2
    assert counts["dropped"] > 2
    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
    assert table["translation"].tolist() == [text[::-1] for text in frame["text"]]
    assert table["attempts"].sum() == 120 + counts[429] + counts[500] + counts["dropped"]
    assert set(translator.calls.values()) == {1}


class UntilOthersCame(dict):
    """Refuses one text until all others have been asked."""

    def __init__(self, calls, others):
        self.calls, self.others = calls, others

    def items(self):
        came = sum(count for text, count in self.calls.items() if not text.endswith(" 0"))
        return [] if came >= self.others else [(" 0$", 429)]


@pytest.mark.slow
def test_a_call_that_waits_keeps_no_other_from_being_made(translator, reverser, store):
    translator.faults = UntilOthersCame(translator.calls, 5)
    frame = pd.DataFrame({"text": [f"text number {n}" for n in range(6)]})
    patient = reverser.with_options(max_retries=None)
    table = batch.translate(frame, patient, store=store, concurrency=1, **EN_JA)
    assert table["status"].tolist() == ["ok"] * 6
    assert translator.calls["text number 0"] > 1
    assert translator.most == 1


@pytest.mark.engines
def test_the_real_service_behind_a_storm(live_service, lab, tmp_path):
    frame = pd.DataFrame({"text": [f"Number {n}." for n in range(30)], "voice": "heart"})
    with Store(tmp_path / "calm") as calm:
        undisturbed = batch.synthesize(frame, lab, store=calm, progress=False)
    with (
        in_the_way(live_service, seed=7) as (base_url, counts),
        Client(base_url=base_url, api_key=live_service.api_key) as shaken,
    ):
        table = batch.synthesize(frame, shaken, store=tmp_path / "shaken", progress=False)
    assert counts[429] + counts[500] + counts["dropped"] > 5
    same = ["text", "duration_s", "sample_rate", "key"]
    pd.testing.assert_frame_equal(table[same], undisturbed[same])
