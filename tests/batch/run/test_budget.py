"""Budgets: in calls, characters, seconds, tokens and money, and what a plan says before."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab import batch
from speechlab.batch import Budget, Outcome, PlannedCall, Spending
from speechlab.client import Synthesize
from speechlab.errors import InvalidRequestError
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


def test_tokens_have_a_limit(reverser, translator, store):
    with pytest.warns(UserWarning, match="the budget of 100 tokens is used up"):
        table = batch.translate(texts(40), reverser, budget=Budget(tokens=100), **quiet(store, concurrency=1))
    assert 30 < table["usage_tokens"].sum() <= 100


def test_seconds_of_speech_say_nothing_about_translations(reverser, store):
    table = batch.translate(texts(5), reverser, budget=Budget(audio_s=0), **quiet(store))
    assert table["status"].eq("ok").all()


def test_what_are_no_prices_of_a_plan(reverser, store):
    plan = batch.plan_translation(texts(1), reverser, store=store, **EN_JA)
    with pytest.raises(InvalidRequestError, match="the units are calls, characters, audio_s, tokens"):
        plan.summary({"words": 1})


@pytest.mark.engines
def test_speech_and_recordings_by_the_second(lab, store):
    frame = pd.DataFrame({"text": ["One two three.", "Good morning."]})
    prices = {"audio_s": 0.5}
    plan = batch.plan_synthesis(frame, lab, voice="heart", store=store)
    assert plan.summary(prices)["cost"] == pytest.approx(0.5 * 0.15 * frame["text"].str.len().sum())
    spoken = batch.synthesize(
        frame, lab, voice="heart", store=store, progress=False, budget=Budget(cost=5, prices=prices)
    )
    usage = batch.load(spoken, store).manifest["usage"]
    assert usage["cost"] == pytest.approx(0.5 * spoken["duration_s"].sum(), abs=0.01)
    heard = batch.plan_transcription(spoken, lab, store=store).summary(prices)
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


def test_a_budget_that_is_too_small_for_one_call_says_so(reverser, translator, store):
    with pytest.warns(UserWarning, match="the budget of 1 tokens is less than the .* nothing was asked"):
        table = batch.translate(texts(3), reverser, budget=Budget(tokens=1), **quiet(store))
    assert table["status"].eq("cancelled").all()
    assert not translator.calls


def test_calls_under_way_give_back_what_they_did_not_need(reverser, store):
    frame = texts(60)  # which are reserved at two tokens a character, and take about one
    with pytest.warns(UserWarning, match="the budget of 300 tokens is used up"):
        table = batch.translate(frame, reverser, budget=Budget(tokens=300), **quiet(store))
    assert 250 < table["usage_tokens"].sum() <= 300
