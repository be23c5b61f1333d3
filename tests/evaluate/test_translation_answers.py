"""What decides between translations is in the sentence: failures, empty texts, lost terms; of plants with a truth."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.errors import InvalidRequestError
from support.planted import WORDS, check_budget, right, spoil


def plant(count, repeats=1, **systems):
    """Texts with references, and what each system makes of them: of (row, reference, random)."""
    made = random.Random(1)
    texts = [" ".join(made.choices(WORDS, k=10)) + f" {row + 100}" for row in range(count)]
    frame = pd.DataFrame({"text": [f"satz {row}" for row in range(count)], "reference": texts})
    for name, make in systems.items():
        noise = random.Random(name)
        frame[name] = pd.array([make(row, text, noise) for row, text in enumerate(texts)], dtype="string")
    return pd.concat([frame.assign(source_lang="de", target_lang="en")] * repeats, ignore_index=True)


def study(frame, *names, **options):
    report = evaluate.translation(None, frame, hypotheses=list(names), progress=False, **options)
    check_budget(report)
    return report


def test_no_difference_has_its_figures_whatever_comes_first():
    frame = plant(30, a=spoil(0.1), b=spoil(0.09))
    report = study(frame, "a", "b")
    first, second = sorted("ab", key=lambda name: -report.summary.set_index("system")["chrf"][name])
    assert report.conclusion.text == f"{first} is ahead of {second}, not yet for sure."
    assert report.conclusion.certainty.startswith(f"{first} 8")
    assert "chrF" in report.answer
    assert report.answer.endswith(" 30 texts); this may be chance.")
    swapped = study(frame, "b", "a")
    assert swapped.conclusion.text == report.conclusion.text
    assert swapped.differences["p"].tolist() == report.differences["p"].tolist()


def test_keep_is_a_claim_with_a_baseline_and_level_one_with_a_margin():
    frame = plant(30, a=spoil(0.1), b=spoil(0.09))
    for name in "ab":
        assert study(frame, "a", "b", baseline=name).conclusion.text == f"Keep {name}."
    clear = plant(30, a=spoil(0.4), b=spoil(0.05))
    assert study(clear, "a", "b", baseline="a").conclusion.text == "Take b."
    same = frame.assign(b=frame["a"])
    report = study(same, "b", "a")
    assert report.conclusion.text == "a and b are level."
    assert "at most 0.0 points apart (margin 1 point)" in report.answer
    assert study(same.head(12), "a", "b").conclusion.text == "No difference seen between a and b."
    with pytest.raises(InvalidRequestError, match="baseline"):
        study(frame, "a", "b", baseline="c")
    with pytest.raises(InvalidRequestError, match="margin"):
        study(frame, "a", "b", margin=0)


def test_failures_are_told_and_never_taken():
    frame = plant(40, a=lambda row, text, noise: None if row % 2 else text, b=spoil(0.06))
    report = study(frame, "a", "b")
    assert report.conclusion.text == "Take b: a failed on 20 of 40 texts."
    assert report.conclusion.certainty.startswith("Where both answered, a 100.0 chrF, b 9")
    assert report.differences["verdict"].tolist() == ["not settled, as one failed on more rows"]
    both = plant(40, a=spoil(0.05), b=spoil(0.3))
    third = both.assign(c=both["reference"].where(both.index < 6, None))
    report = study(third, "a", "b", "c")
    assert report.conclusion.text == study(both, "a", "b").conclusion.text == "Take a."
    assert report.answer.endswith("c answered 6 of 40.")


def test_empty_translations_are_counted_in_the_answer():
    frame = plant(40, a=lambda row, text, noise: "" if row % 4 == 0 else text, b=spoil(0.5))
    report = study(frame, "a")
    assert report.answer == (
        "10 of 40 translations came back empty. The others score chrF 100.0 of 100, all together 79.1."
    )
    assert report.summary["empties"].tolist() == [10]
    assert study(frame, "a", "b").answer.endswith("a came back empty on 10 of 40.")
    few = study(plant(40, a=lambda row, text, _: "" if row < 3 else text, b=spoil(0.06)), "a", "b")
    assert few.conclusion.text == "No difference is shown, but a came back empty on 3 of 40 texts."
    assert few.answer.count("came back empty") == 1


def test_equal_texts_are_one_block():
    report = study(plant(5, 8, a=right, b=spoil(0.4)), "a", "b")
    assert report.conclusion.text == "a is ahead of b, not yet for sure."
    assert "40 texts that count as 5); too few to show a difference; take 20 or more." in report.answer


def test_what_a_glossary_loses_stands_beside_what_it_wins():
    frame = plant(30, plain=spoil(0.3), terms=spoil(0.05))
    has = frame.index % 3 == 0
    frame["text"] = frame["text"].where(~has, frame["text"] + " Foo")
    for name, kept in (("reference", has), ("plain", has), ("terms", frame.index % 6 == 0)):
        frame[name] = frame[name].where(~kept, frame[name] + " Foo")
    report = study(frame.rename(columns={"terms": "with terms"}), "plain", "with terms", glossary=["Foo"])
    assert report.conclusion.text == "“with terms” has the higher score, but keeps fewer terms than plain."
    assert report.conclusion.certainty.startswith("“with terms” kept 50.0% of terms, plain 100.0% (p = ")
    scores = report.summary.set_index("system")["chrf"]
    assert f"“with terms” {scores['with terms']:.1f} chrF, plain {scores['plain']:.1f}" in report.answer


def test_names_stay_as_they_are_with_a_line_for_each_direction():
    frame = plant(40, **{"my set": spoil(0.1), "iPhone": spoil(0.12), "c": spoil(0.6)})
    report = study(frame, "my set", "iPhone", "c")
    assert report.conclusion.text == "Take “my set” for now; iPhone may be as good, c is worse."
    frame.loc[20:, "source_lang"] = "zh"
    report = study(frame, "iPhone", "c")
    assert report.conclusion.text == "Take iPhone."
    lines = report.conclusion.certainty.split("\n")
    assert [line.partition(": ")[0] for line in lines] == ["German to English", "Chinese to English"]
