"""Budgets, in calls, characters, seconds, tokens and money; and turns: the calls of one row follow each other."""

import time

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import speechlab as sl
from speechlab import batch
from speechlab.batch import Budget, Outcome, PlannedCall, Spending
from speechlab.client import Synthesize
from speechlab.errors import APIConnectionError
from support.batches import EN_JA, quiet, texts

PRICES = {"calls": 0.01, "characters": 0.002, "tokens": 0.001}


def test_a_run_stops_before_it_costs_too_much(reverser, translator, store):
    frame = texts(40)
    plan = batch.plan_translation(frame, reverser, store=store, **EN_JA)
    before = plan.summary(PRICES)
    assert before["cost"] == pytest.approx(
        0.01 * 40 + 0.002 * before["characters"] + 0.001 * 2 * before["characters"]
    )
    with pytest.warns(UserWarning, match="the budget of 0.5 \\(cost\\) is used up"):
        table = batch.translate(
            frame, reverser, budget=Budget(cost=0.5, prices=PRICES), **quiet(store, concurrency=1)
        )
    run = batch.load(table, store)
    usage = run.manifest["usage"]
    cost = sum(PRICES[name] * usage[name] for name in PRICES)
    assert usage["cost"] == pytest.approx(cost)
    assert 0.4 < usage["cost"] <= 0.5
    rest = batch.plan_translation(frame, reverser, store=store, **EN_JA).summary(PRICES)
    assert rest["calls"] == 40 - usage["calls"]
    assert 0 < rest["cost"] < before["cost"]


def test_what_is_known_costs_nothing(reverser, store):
    batch.translate(texts(3), reverser, **quiet(store))
    plan = batch.plan_translation(texts(3), reverser, store=store, **EN_JA)
    assert plan.summary(PRICES)["cost"] == 0
    run = batch.run(plan, reverser, budget=Budget(prices=PRICES), progress=False)
    assert (run.status, run.manifest["usage"]["cost"]) == ("finished", 0)


@pytest.mark.engines
def test_speech_and_recordings_by_the_second(quick_lab, store):
    frame = pd.DataFrame({"text": ["One two three.", "Good morning."]})
    prices = {"audio_s": 0.5}
    plan = batch.plan_synthesis(frame, quick_lab, voice="q: tone", store=store)
    assert plan.summary(prices)["cost"] == pytest.approx(0.5 * 0.15 * frame["text"].str.len().sum())
    spoken = batch.synthesize(
        frame, quick_lab, voice="q: tone", store=store, progress=False, budget=Budget(cost=5, prices=prices)
    )
    usage = batch.load(spoken, store).manifest["usage"]
    assert usage["cost"] == pytest.approx(0.5 * spoken["duration_s"].sum(), abs=0.01)
    heard = batch.plan_transcription(spoken, quick_lab, store=store).summary(prices)
    assert heard["cost"] == pytest.approx(0.5 * spoken["duration_s"].sum(), abs=0.01)


@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=30),
    real=st.floats(0.01, 1.0),
    limit=st.floats(0, 20),
    width=st.integers(1, 8),
)
def test_a_budget_is_passed_by_calls_under_way_alone(lengths, real, limit, width):
    """Calls of speech that lasts ``real`` seconds for a character, some of them under way at once."""
    spending = Spending(Budget(audio_s=limit))
    waiting = [
        PlannedCall(str(n), Synthesize("a", voice="v"), {}, {}, length) for n, length in enumerate(lengths)
    ]
    under_way, spent, excess, stopped = [], 0.0, 0.0, False
    while (waiting and not stopped) or under_way:
        while waiting and not stopped and len(under_way) < width:
            reserved = spending.reserve(waiting[0])
            stopped = reserved is None
            if reserved is not None:
                under_way.append((waiting.pop(0), reserved))
        if under_way:
            call, reserved = under_way.pop(0)
            seconds = call.characters * real
            spent += seconds
            excess = max(excess, 0) + max(0.0, seconds - reserved.audio_s)
            spending.release_and_count(call, Outcome("ok", audio_s=seconds), reserved)
    assert spent <= limit + excess + 1e-6
    if stopped:
        first = "is less than the" in spending.reason
        assert first or "seconds of audio is used up" in spending.reason
        assert first == (spent == 0)


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
