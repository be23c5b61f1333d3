"""Listeners who do not exist: reports that say so, and how often a test finds a difference."""

from __future__ import annotations

import numpy as np
import pytest

from speechlab import evaluate

SYSTEMS, ITEMS = ("good", "bad"), 20


def key_of(method="mos", items=ITEMS, systems=SYSTEMS):
    trials = [
        {"id": f"t{item}s{place}", "role": "test", "item": f"i{item}", "sounds": {f"a{item}b{place}": system}}
        for item in range(items)
        for place, system in enumerate(systems)
    ]
    check = {"id": "c1", "role": "check", "item": "i0", "sounds": {"c2": "noise"}}
    practice = {"id": "p1", "role": "training", "item": "i0", "sounds": {"p2": "good"}}
    key = {"format": "speechlab listening key 1", "test": "0a", "title": "Voices", "question": "How natural?"}
    key |= {"method": method, "seed": 1, "systems": list(systems)}
    return {**key, "trials": [practice, *trials, check]}


def simulate(scores, *, listeners, seed=0, items=ITEMS, listener_sd=0.4, item_sd=0.4, answer_sd=0.7):
    """Files of answers that follow the model of ``listening_power``, drawn one by one."""
    random, key = np.random.default_rng(seed), key_of(items=items)
    of_item = {(f"i{item}", system): random.normal(0, item_sd) for item in range(items) for system in SYSTEMS}
    files = []
    for listener in range(listeners):
        bias = {system: random.normal(0, listener_sd) for system in SYSTEMS}
        answers = []
        for order, trial in enumerate(key["trials"], 1):
            ((name, system),) = trial["sounds"].items()
            score = 1
            if trial["role"] == "test":
                exact = scores[system] + bias[system] + of_item[trial["item"], system]
                score = int(np.clip(np.rint(exact + random.normal(0, answer_sd)), 1, 5))
            answer = {"trial": trial["id"], "order": order, "sounds": [name], "scores": {name: score}}
            answers.append({**answer, "time_s": 1.0})
        head = {
            "format": "speechlab listening answers 1",
            "test": key["test"],
            "listener": f"number {listener}",
        }
        model = f"simulated: true scores {scores}"
        files.append({**head, "started": model, "finished": model, "answers": answers})
    return files


@pytest.mark.slow
def test_the_report_says_that_nobody_listened():
    report = evaluate.listening(simulate({"good": 3.6, "bad": 2.4}, listeners=20), key_of())
    assert not report.tables["listeners"]["checks_failed"].any()
    (finding,) = map(str, report.findings)
    assert finding.startswith(
        "20 of 20 listeners are simulated, so that nobody heard what they rate (true scores"
    )
    assert "simulated listeners" in report.answer
    assert "Listeners are simulated: nobody heard what they rated." in report.methods()[0]


def test_people_among_simulated_listeners_are_told_apart():
    files = simulate({"good": 4, "bad": 3}, listeners=7, items=8)
    ann = {**files[0], "listener": "ann", "started": "2026-01-01"}
    report = evaluate.listening([*files, ann], key_of(items=8))
    assert str(report.findings[0]).startswith("7 of 8 listeners are simulated")
    assert "simulated" not in str(evaluate.listening(ann, key_of(items=8)).findings)


@pytest.mark.slow
def test_listening_power_is_that_of_the_analysis():
    scores = {"good": 3.5, "bad": 3.0}
    options = {"listener_sd": 0.6, "item_sd": 0.1, "answer_sd": 0.6}
    power = evaluate.listening_power(key_of(), scores, listeners=(6, 12, 24), tests=60, **options)
    assert power["listeners"].tolist() == [6, 12, 24]
    assert power["found"].is_monotonic_increasing
    assert power["found"].iloc[0] < 0.6 < 0.8 < power["found"].iloc[-1]
    found = [
        evaluate.listening(
            simulate(scores, listeners=12, seed=seed, **options), key_of(), draws=100
        ).differences["verdict"][0]
        == "better"
        for seed in range(16, 24)
    ]
    assert np.mean(found) == pytest.approx(power["found"].iloc[1], abs=0.35)


@pytest.mark.slow
def test_where_systems_are_alike_few_tests_find_a_difference():
    power = evaluate.listening_power(key_of(), dict.fromkeys(SYSTEMS, 3.0), listeners=12, tests=100)
    assert power["found"].tolist()[0] <= 0.08
    hardly = evaluate.listening_power(key_of(), {"good": 3.0, "bad": 2.999}, listeners=12, tests=100)
    assert (
        hardly["found"][0] < power["found"][0]
    )  # the same draws, and the wrong system found better is no find
