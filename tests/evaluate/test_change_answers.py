"""What a comparison or a watch answers: figures of what is not significant, few speakers, from when to when."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from support.planted import check_budget, hear_anew, plant, right, spoil, study
from support.texts import check_texts, describe_report

pytestmark = pytest.mark.slow

TEXTS = Path(__file__).with_name("answers.md")


def compare(before, now, count=40, *, names=("earlier", "now"), **columns):
    """Both reports of one system on planted rows, compared."""
    frame = plant(count, before=before, now=now).assign(**columns)
    earlier = study(frame, "before")
    later = study(frame, "now") if frame["now"].isna().any() else hear_anew(earlier, frame["now"])
    return later.compare(earlier, names=names)


def of_groups():
    frame = plant(40, a=spoil(0.05), b=spoil(0.3)).assign(language=["fr", "de"] * 20)
    return study(frame, "b").compare(study(frame, "a"), names=("ours", "their new one"))


def of_systems_that_changed_places():
    frame = plant(40, a=spoil(0.05), b=spoil(0.3)).assign(language=["fr", "de"] * 20)
    sides = [{"iPhone": "a", "my b": "b"}, {"iPhone": "b", "my b": "a"}]
    before, now = (evaluate.recognition(None, frame, hypotheses=side, progress=False) for side in sides)
    return now.compare(before)


def of_a_store():
    report = study(plant(12, a=right), "a")
    asked = replace(report, record={**report.record, "runs": [{"id": "1"}]})
    return evaluate.Report.of(asked).compare(report)


def loop(row, text, noise):
    return f"{text}{' yes' * 400}" if row == 3 else spoil(0.02)(row, text, noise)


def spoil_rows(*rows):
    return lambda row, text, noise: f"x {text}" if row in rows else text


PLANTS = {
    "a rise that may be chance": partial(compare, spoil(0.05), spoil(0.1), 20),
    "equal": partial(compare, right, right, 12),
    "a rise": partial(compare, spoil(0.02), spoil(0.2)),
    "a rise by other names": partial(compare, right, spoil(0.3), 12, names=("ours", "theirs")),
    "two languages": of_groups,
    "two systems that changed places": of_systems_that_changed_places,
    "four speakers": partial(
        compare, spoil(0.03), spoil(0.2), 80, speaker=[f"s{row % 4}" for row in range(80)]
    ),
    "eight speakers": partial(
        compare, right, lambda row, text, _: f"x {text}", 24, speaker=[f"s{row % 8}" for row in range(24)]
    ),
    "three speakers and little": partial(
        compare, spoil_rows(1, 2), spoil_rows(1, 2, 3), 27, speaker=[f"s{row % 3}" for row in range(27)]
    ),
    "three speakers and nothing": partial(
        compare, spoil_rows(1, 2), spoil_rows(1, 2), 27, speaker=[f"s{row % 3}" for row in range(27)]
    ),
    "rows that failed": partial(compare, right, lambda row, text, noise: None if row < 10 else text),
    "one row that hides a rise": partial(compare, loop, spoil(0.2)),
    "answers of a store": of_a_store,
}


def test_answers_to_planted_changes():
    changes = {name: make() for name, make in PLANTS.items()}
    for name in changes.keys() - {"three speakers and little"}:
        check_budget(changes[name])
    check_texts(TEXTS, "changes", {name: describe_report(report) for name, report in changes.items()})
    worse = {name for name, report in changes.items() if report.worse}
    assert worse == {
        *(
            "a rise",
            "a rise by other names",
            "two languages",
            "two systems that changed places",
            "eight speakers",
        ),
        "rows that failed",
    }
    assert [drawing.title for drawing in changes["a rise by other names"].drawings] == ["Differences"]


def watch(rates, count=30, fails=()):
    """A watch of nights with these error rates, or with failed rows in some of them."""
    random, nights = np.random.default_rng(1), []
    frame = plant(count, a=right)
    first = study(frame, "a")
    for night, rate in enumerate(rates, 1):
        texts = [
            " ".join("x" if random.random() < rate else word for word in text.split())
            for text in frame["text"]
        ]
        heard = pd.Series(texts, dtype="string").mask(pd.Series(frame.index < 12) & (night in fails))
        nights.append(study(frame.assign(a=heard), "a") if night in fails else hear_anew(first, heard))
    return evaluate.watch(nights)


def test_answers_to_watches():
    """From when to when a rate was higher, and since when rows fail of which none failed before."""
    back = watch([0.05] * 4 + [0.3] * 3 + [0.05] * 2)
    row = back.summary[back.summary["changed"]].iloc[0]
    assert (row["onset"], row["back"]) == (5, 8)
    assert (row["usual"], row["worst"]) == (pytest.approx(0.05, abs=0.02), pytest.approx(0.28, abs=0.05))
    lasting = watch([0.03] * 6, fails=(4, 5, 6))
    for report in (back, lasting):
        check_budget(report)
    texts = {"a rise and its end": back, "rows that fail": lasting}
    check_texts(TEXTS, "watch", {name: describe_report(report) for name, report in texts.items()})
