"""Listeners who do not exist: a stated model, answers that say so, and how often a test finds a difference."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.errors import InvalidRequestError

SYSTEMS, ITEMS = ("good", "bad"), 20


def key_of(method="mos", items=ITEMS, systems=SYSTEMS):
    trials = [
        {"id": f"t{item}s{place}", "role": "test", "item": f"i{item}", "sounds": {f"a{item}b{place}": system}}
        for item in range(items)
        for place, system in enumerate(systems)
    ]
    check = {"id": "c1", "role": "check", "item": "i0", "sounds": {"c2": "noise"}}
    practice = {"id": "p1", "role": "training", "item": "i0", "sounds": {"p2": "good"}}
    head = {
        "format": "speechlab listening key 1",
        "test": "0a",
        "title": "Voices",
        "question": "How natural?",
    }
    return {
        **head,
        "method": method,
        "seed": 1,
        "systems": list(systems),
        "trials": [practice, *trials, check],
    }


@pytest.mark.slow
def test_answers_follow_the_model_and_the_report_says_that_nobody_listened():
    options = {"listeners": 200, "listener_sd": 0.3, "item_sd": 0.3, "answer_sd": 0.5, "seed": 4}
    answers = evaluate.simulated_listeners(key_of(), {"good": 3.6, "bad": 2.4}, **options)
    rated = answers[answers["role"] == "test"]
    assert len(rated) == 200 * ITEMS * 2
    means = rated.groupby("system")["score"].mean()
    assert means["good"] == pytest.approx(3.6, abs=0.12)
    assert means["bad"] == pytest.approx(2.4, abs=0.12)
    by_listener = rated.groupby(["system", "listener"])["score"].mean().unstack(0)
    assert by_listener["good"].std() == pytest.approx(0.3, abs=0.06)
    assert abs(by_listener["good"].corr(by_listener["bad"])) < 0.25  # each system is thought of by itself
    by_item = rated.groupby(["system", "item"])["score"].mean().unstack(0)
    assert by_item["good"].std() == pytest.approx(0.3, abs=0.12)
    good = (
        rated[rated["system"] == "good"].pivot(index="listener", columns="item", values="score").astype(float)
    )
    rest = good.sub(good.mean(axis=1), axis=0).sub(good.mean(axis=0), axis=1)
    assert rest.to_numpy().std() == pytest.approx(
        np.sqrt(0.5**2 + 1 / 12), abs=0.05
    )  # the variance of rounding
    assert set(rated["score"]) <= {1, 2, 3, 4, 5}
    again = evaluate.simulated_listeners(key_of(), {"good": 3.6, "bad": 2.4}, **options)
    pd.testing.assert_frame_equal(answers, again)
    report = evaluate.listening(answers[answers["listener"] <= "simulated 020"])
    assert not report.tables["listeners"]["checks_failed"].any()
    assert "20 of 20 listeners are simulated" in str(report.findings[0])
    assert "true scores good 3.6, bad 2.4" in str(report.findings[0])
    assert "simulated" in report.methods()[0]


def test_people_among_simulated_listeners_are_told_apart():
    answers = evaluate.simulated_listeners(key_of(items=8), {"good": 4, "bad": 3}, listeners=7)
    people = answers[answers["listener"] == "simulated 1"].assign(listener="ann", session="2026-01-01")
    report = evaluate.listening([answers, people])
    assert str(report.findings[0]).startswith("7 of 8 listeners are simulated")
    assert "simulated" not in str(evaluate.listening(people).findings)


@pytest.mark.slow
def test_power_grows_with_listeners_and_is_that_of_the_whole_analysis():
    scores = {"good": 3.5, "bad": 3.0}
    options = {"listener_sd": 0.6, "item_sd": 0.1, "answer_sd": 0.6}
    power = evaluate.listening_power(key_of(), scores, listeners=(6, 12, 24), tests=60, **options)
    assert power["listeners"].tolist() == [6, 12, 24]
    assert power["found"].is_monotonic_increasing
    assert power["found"].iloc[0] < 0.6 < 0.8 < power["found"].iloc[-1]
    found = [
        evaluate.listening(simulated, draws=100).differences["verdict"][0] == "better"
        for simulated in (
            evaluate.simulated_listeners(key_of(), scores, listeners=12, seed=seed, **options)
            for seed in range(16)
        )
    ]
    assert np.mean(found) == pytest.approx(power["found"].iloc[1], abs=0.25)


@pytest.mark.slow
def test_where_systems_are_alike_few_tests_find_a_difference():
    power = evaluate.listening_power(key_of(), dict.fromkeys(SYSTEMS, 3.0), listeners=12, tests=100)
    assert power["found"].tolist()[0] <= 0.08
    hardly = evaluate.listening_power(key_of(), {"good": 3.0, "bad": 2.999}, listeners=12, tests=100)
    assert (
        hardly["found"][0] < power["found"][0]
    )  # the same draws, and the wrong system found better is no find


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scores": {"good": 4}}, "give one for each"),
        ({"scores": {"good": 4, "bad": 6}}, "for 'bad' a number from 1 to 5"),
        ({"scores": [4, 3]}, "a mapping of systems"),
        ({"key": key_of("ab")}, "method='mos'"),
        ({"key": None}, "a ListeningTest, or its key"),
        ({"listeners": 0}, "a whole number from"),
        ({"answer_sd": -1}, "a number from 0 to 4"),
        ({"seed": 1.5}, "a whole number from 0 on"),
    ],
)
@pytest.mark.parametrize("function", [evaluate.simulated_listeners, evaluate.listening_power])
def test_what_makes_no_sense_is_refused_in_words(function, changes, words):
    options = {"key": key_of(), "scores": {"good": 4, "bad": 3}, "listeners": 8, **changes}
    with pytest.raises(InvalidRequestError, match=words):
        function(options.pop("key"), options.pop("scores"), **options)
