"""What decides a listening test is in its sentence: taste, no preference, who was left out; of planted answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate


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
        return {
            name: float(
                np.clip(
                    np.rint((mean(listener, item) if callable(mean) else mean) + random.normal(0, deviation)),
                    1,
                    5,
                )
            )
            for name, mean in means.items()
        }

    return draw


def choose(share, neither=0.0):
    """Choices of b with a share of those that are made."""
    return lambda random, *_: 0 if random.random() < neither else -1 if random.random() < share else 1


def report_on(answers):
    report = evaluate.listening(answers, draws=100)
    title, lines = report.conclusion.text, report.conclusion.certainty.split("\n")
    assert len(title.split()) <= 14, title
    assert all(len(line.split()) <= 25 for line in lines), lines
    return title, lines


def test_a_clear_preference_accuses_nobody():
    title, lines = report_on(plant("ab", choose(0.92)))
    assert title == "b is preferred to a."
    assert lines == ["b was chosen in 90% of the questions, a in 10% (p < 0.001, 12 listeners)."]
    title, lines = report_on(
        plant("abx", lambda random, listener, _: listener < 4 or random.random() < 0.5, 20, 40)
    )
    assert title == "4 of 20 listeners hear a difference between a and b."
    assert len(lines) == 1
    assert len(report_on(plant("abx", lambda *_: 1))[1]) == 1


def test_the_same_button_is_named_whatever_was_there():
    answers = plant("ab", choose(0.7))
    pressed = answers["listener"].isin(["l00", "l01"])
    answers.loc[pressed, "position"] = 1
    answers.loc[pressed, "score"] = [1.0, -1.0] * 20
    _, lines = report_on(answers)
    assert lines[1] == (
        "l00 and l01 pressed the same button in 100% of the questions; without them: b is preferred to a."
    )
    # where systems never changed places, a button is a system
    assert len(report_on(plant("ab", choose(0.95)).assign(position=1))[1]) == 1


def test_one_rating_is_named_only_where_others_differ():
    answers = plant("mos", rate({"a": 3, "b": 4}))
    answers.loc[answers["listener"] == "l03", "score"] = 5.0
    assert report_on(answers)[1][1].startswith(
        "l03 gave the same rating in 100% of the questions; without this one:"
    )
    assert len(report_on(plant("mos", rate({"a": 5, "b": 5}, 0.2)))[1]) == 1


def test_no_preference_is_told_as_itself():
    title, lines = report_on(plant("ab", choose(0.85, 0.8), 14))
    assert title == "Mostly no preference; otherwise b is preferred to a."
    assert lines == [
        "b was chosen in 22% of the questions, a in 4%, neither in 74% (p < 0.001, 14 listeners)."
    ]
    title, _ = report_on(plant("ab", choose(0.5, 0.9)))
    assert title == "Mostly no preference between a and b."


@pytest.mark.parametrize(
    ("method", "draw"),
    [
        (
            "ab",
            lambda random, listener, _: (1 if random.random() < 0.97 else -1) * (1 if listener < 8 else -1),
        ),
        ("mos", rate({"a": lambda who, _: 4 if who < 8 else 2, "b": lambda who, _: 2 if who < 8 else 4})),
    ],
)
def test_half_and_half_is_disagreement(method, draw):
    title, lines = report_on(plant(method, draw, 16))
    assert title in {f"Listeners disagree: 8 prefer {one}, 8 prefer {other}." for one, other in ("ab", "ba")}
    assert "more listener" not in lines[0]


def test_what_depends_on_the_item_is_no_lack_of_listeners():
    means = {"a": lambda _, item: 4 if item < 10 else 2, "b": lambda _, item: 2 if item < 10 else 4}
    title, lines = report_on(plant("mos", rate(means), 16))
    assert title == "It depends on the item: b is preferred in 10, a in 10."
    assert "more listener" not in lines[0]


def test_no_difference_has_its_figures_and_names_stay_as_they_are():
    title, lines = report_on(plant("mos", rate({"new voice": 3.5, "iPhone": 3.5})))
    assert title == "No significant preference between iPhone and “new voice”."
    assert lines[0].startswith(
        "iPhone 3.51, “new voice” 3.48: +0.04 points, 95% interval \N{MINUS SIGN}0.10 to 0.18 (p = 0.567"
    )
    title, lines = report_on(plant("mos", rate({"a": 3, "b": 3}, 0)))
    assert lines == [
        "Both have the same mean (3.00 points), 12 listeners; a difference of 0.2 would probably have been found."
    ]


def test_excluded_listeners_are_in_the_answer_with_what_all_say():
    answers = plant("mushra", lambda random, *_: {
        "a": 50 + random.normal(0, 5), "b": 60 + random.normal(0, 5), "reference": 94 + random.normal(0, 5),
    }, 10, 10)  # fmt: skip
    answers["role"] = answers["system"].where(answers["system"] == "reference", "test")
    title, lines = report_on(answers.assign(score=answers["score"].clip(0, 100)))
    assert title == "Four listeners are too few to tell b from a."
    assert lines[1].startswith(
        "6 of 10 listeners rated the hidden reference below 90 and are left out; with all 10, b is "
    )
    assert abs(float(lines[1].split()[-3]) - 10) < 1.5


def test_checks_are_no_system():
    answers = plant("mos", rate({"a": 3, "b": 4}))
    checks = (
        answers[answers["system"] == "b"]
        .head(24)
        .assign(system="noise", role="check", attention=True, score=1.0)
    )
    title, lines = report_on(pd.concat([answers, checks], ignore_index=True))
    assert (title, lines) == report_on(answers)
    failed = checks.assign(attention=checks["listener"] != "l00")
    assert report_on(pd.concat([answers, failed], ignore_index=True))[1][1].startswith(
        "1 of 12 listeners failed attention checks and is left out; with all 12, b is 1.01 points ahead."
    )


def test_a_turned_scale_takes_three_systems_and_another_taste_is_none():
    turn = lambda mean: lambda who, _: 6 - mean if who == 2 else mean  # noqa: E731
    _, lines = report_on(
        plant("mos", rate({name: turn(mean) for name, mean in {"a": 2, "b": 3.5, "c": 4.5}.items()}))
    )
    assert lines[1].startswith(
        "l02 answered as if the scale were turned; without this one: c is preferred to "
    )
    assert len(report_on(plant("mos", rate({"a": turn(2), "b": turn(4.5)})))[1]) == 1
