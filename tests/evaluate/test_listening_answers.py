"""What decides a listening test is in its sentence: taste, no preference, who was left out; of planted answers."""

from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from support.planted import check_budget
from support.texts import check_texts, describe_report

TEXTS = Path(__file__).with_name("answers.md")


def plant(method, draw, listeners=12, items=20, names=("a", "b"), seed=0):
    """Answers of (random, listener, item): 1 for the first of two sounds, whose button is drawn by chance."""
    random, rows = np.random.default_rng(seed), []
    facts = {"question": "?", "choice": None, "order": 1, "time_s": 1.0, "plays": 1, "attention": None}
    facts |= {"role": "test", "method": method, "test": "x", "session": "s", "finished": True}
    for listener, item in np.ndindex(listeners, items):
        at = int(random.integers(2))
        score = draw(random, listener, item)
        scores = score if isinstance(score, dict) else {names[0]: score}
        for system, value in scores.items():
            button = 1 + (at if value > 0 else 1 - at) if value else 0
            sound = {"system": system, "other": None if isinstance(score, dict) else names[1]}
            who = {"listener": f"l{listener:02}", "item": f"i{item}", "trial": f"t{item}{system}"}
            rows.append({**facts, **who, **sound, "score": float(value), "position": button})
    return pd.DataFrame(rows)


def rate(means, deviation=0.7):
    """Ratings of each system: a mean, or what a listener and an item make of it."""

    def draw(random, listener, item):
        exact = {name: mean(listener, item) if callable(mean) else mean for name, mean in means.items()}
        return {
            name: float(np.clip(np.rint(mean + random.normal(0, deviation)), 1, 5))
            for name, mean in exact.items()
        }

    return draw


def rate_exactly(scores):
    """Ratings of each system: a mean, and what each listener and item adds."""
    return lambda _, who, item: {name: mean + 0.5 * ((who + item) % 2) for name, mean in scores.items()}


def choose(share, neither=0.0):
    """Choices of b with a share of those that are made."""
    return lambda random, *_: 0 if random.random() < neither else -1 if random.random() < share else 1


def turn(mean):
    """A mean, which the third listener has on the other side of the scale."""
    return lambda who, _: 6 - mean if who == 2 else mean


def take_sides(random, listener, _):
    return (1 if random.random() < 0.97 else -1) * (1 if listener < 8 else -1)


def rate_anchored(random, *_):
    means = {"a": 50, "b": 60, "reference": 94}
    return {name: float(np.clip(mean + random.normal(0, 5), 0, 100)) for name, mean in means.items()}


def press_one_button():
    answers = plant("ab", choose(0.7))
    pressed = answers["listener"].isin(["l00", "l01"])
    answers.loc[pressed, "position"] = 1
    answers.loc[pressed, "score"] = [1.0, -1.0] * 20
    return answers


def give_one_rating():
    answers = plant("mos", rate({"a": 3, "b": 4}))
    return answers.assign(score=answers["score"].mask(answers["listener"] == "l03", 5.0))


def add_checks(failed=""):
    """Answers with questions that a listener may have failed."""
    answers = plant("mos", rate({"a": 3, "b": 4}))
    checks = answers[answers["system"] == "b"].head(24).assign(system="noise", role="check", score=1.0)
    checks["attention"] = checks["listener"] != failed
    return pd.concat([answers, checks], ignore_index=True)


def rate_three():
    answers = plant("mos", rate_exactly({"a": 3, "b": 4, "c": 4.02}), 8, 8)
    return answers.assign(score=answers["score"] + np.random.default_rng(1).normal(0, 0.4, len(answers)))


def differ_a_little():
    answers = plant("mos", rate_exactly({"a": 3, "b": 4}), 5, 8)
    by = answers["listener"].map({"l03": 0.6, "l04": -0.6}).fillna(0.0)
    return answers.assign(score=answers["score"] + by.where(answers["system"] == "a", 0.0))


def anchor():
    answers = plant("mushra", rate_anchored, 10, 10)
    return answers.assign(role=answers["system"].where(answers["system"] == "reference", "test"))


PAIRS = ({"a": lambda who, _: 4 if who < 8 else 2, "b": lambda who, _: 2 if who < 8 else 4}, 0.7)
ITEMS = {"a": lambda _, item: 4 if item < 10 else 2, "b": lambda _, item: 2 if item < 10 else 4}
PLANTS = {
    "clear": partial(plant, "ab", choose(0.92)),
    "four of twenty hear it": partial(
        plant, "abx", lambda random, listener, _: listener < 4 or random.random() < 0.5, 20, 40
    ),
    "all hear it": partial(plant, "abx", lambda *_: 1),
    "one button": press_one_button,
    "systems that never changed places": lambda: plant("ab", choose(0.95)).assign(position=1),
    "one rating": give_one_rating,
    "all systems at the top": partial(plant, "mos", rate({"a": 5, "b": 5}, 0.2)),
    "mostly no preference": partial(plant, "ab", choose(0.85, 0.8), 14),
    "hardly any preference": partial(plant, "ab", choose(0.5, 0.9)),
    "half and half by choices": partial(plant, "ab", take_sides, 16),
    "half and half by ratings": partial(plant, "mos", rate(*PAIRS), 16),
    "by the item": partial(plant, "mos", rate(ITEMS), 16),
    "no difference": partial(plant, "mos", rate({"new voice": 3.5, "iPhone": 3.5})),
    "equal": partial(plant, "mos", rate({"a": 3, "b": 3}, 0)),
    "listeners left out": anchor,
    "checks": add_checks,
    "a listener who failed checks": partial(add_checks, "l00"),
    "a turned scale": partial(plant, "mos", rate({"a": turn(2), "b": turn(3.5), "c": turn(4.5)})),
    "two systems and another taste": partial(plant, "mos", rate({"a": turn(2), "b": turn(4.5)})),
    "two listeners": partial(plant, "mos", rate_exactly({"a": 3, "b": 4}), 2, 8),
    "five listeners": differ_a_little,
    "eight listeners": partial(plant, "mos", rate_exactly({"a": 3, "b": 4}), 8, 8),
    "the best two of three": rate_three,
    "pairs of three systems": lambda: pd.concat(
        [plant("ab", lambda _, who, item: (who + item) % 2, 8, 8, ("a", other)) for other in "bc"],
        ignore_index=True,
    ),
}  # fmt: skip


@cache
def report_of(name):
    return evaluate.listening(PLANTS[name](), draws=100)


@pytest.mark.slow
def test_answers_to_planted_ratings():
    for name in PLANTS:
        check_budget(report_of(name))
    check_texts(TEXTS, "listening", {name: describe_report(report_of(name)) for name in PLANTS})
    assert "3 systems" in report_of("pairs of three systems").to_html()  # of both sides
