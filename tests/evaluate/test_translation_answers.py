"""What decides between translations is in the sentence: failures, empty texts, lost terms; of plants with a truth."""

from functools import cache, partial
from pathlib import Path

import pandas as pd
import pytest

from speechlab import evaluate
from support import planted
from support.planted import check_budget, right, spoil
from support.texts import check_texts, describe_report

pytestmark = pytest.mark.slow

TEXTS = Path(__file__).with_name("answers.md")


def plant(count, repeats=1, **systems):
    """Texts with references, and what each system makes of them: of (row, reference, random)."""
    frame = planted.plant(count, **systems).drop(columns="language").rename(columns={"text": "reference"})
    texts = [f"satz {row}" for row in range(count)]
    frame = frame.assign(text=texts, source_lang="de", target_lang="en")
    return pd.concat([frame] * repeats, ignore_index=True)


def study(frame, *names, **options):
    return evaluate.translation(None, frame, hypotheses=list(names), progress=False, **options)


def of_two(*names, **options):
    return study(plant(30, a=spoil(0.1), b=spoil(0.09)), *names, **options)


def of_equal(count):
    frame = plant(count, a=spoil(0.1))
    return study(frame.assign(b=frame["a"]), "b", "a")


def of_a_third_system(*more):
    both = plant(40, a=spoil(0.05), b=spoil(0.3))
    return study(both.assign(c=both["reference"].where(both.index < 6, None)), "a", "b", *more)


def of_empty_outputs(*names):
    return study(plant(40, a=lambda row, text, noise: "" if row % 4 == 0 else text, b=spoil(0.5)), *names)


def of_lost_terms():
    frame = plant(30, plain=spoil(0.3), terms=spoil(0.05))
    has = frame.index % 3 == 0
    frame["text"] = frame["text"].where(~has, frame["text"] + " Foo")
    for name, kept in (("reference", has), ("plain", has), ("terms", frame.index % 6 == 0)):
        frame[name] = frame[name].where(~kept, frame[name] + " Foo")
    return study(frame.rename(columns={"terms": "with terms"}), "plain", "with terms", glossary=["Foo"])


def of_directions(*names):
    frame = plant(40, **{"my set": spoil(0.1), "iPhone": spoil(0.12), "c": spoil(0.6)})
    if "my set" not in names:
        frame.loc[20:, "source_lang"] = "zh"
    return study(frame, *names)


def of_copies(text, **outputs):
    frame = pd.DataFrame({"text": text, "source_lang": "de", "target_lang": "en"})
    return study(frame.assign(**outputs), *sorted(outputs.keys() - {"reference"}))


DAYS = [f"word {row} of the day" for row in range(20)]
SAID = [f"wort {row} des tages" for row in range(20)]
NAMES = [f"Siemens {row}" for row in range(20)]
PLANTS = {
    "no difference shown": partial(of_two, "a", "b"),
    "a baseline that is level": partial(of_two, "a", "b", baseline="b"),
    "a baseline that is worse": lambda: study(plant(30, a=spoil(0.4), b=spoil(0.05)), "a", "b", baseline="a"),
    "equal outputs": partial(of_equal, 30),
    "equal outputs of twelve texts": partial(of_equal, 12),
    "one of two failed often": lambda: study(
        plant(40, a=lambda row, text, noise: None if row % 2 else text, b=spoil(0.06)), "a", "b"
    ),
    "one system": lambda: study(plant(20, a=spoil(0.1)), "a"),
    "one system and few texts": lambda: study(plant(4, a=spoil(0.1)), "a"),
    "two systems": of_a_third_system,
    "two systems and one that answered little": partial(of_a_third_system, "c"),
    "empty outputs": partial(of_empty_outputs, "a"),
    "empty outputs beside another system": partial(of_empty_outputs, "a", "b"),
    "few empty outputs": lambda: study(
        plant(40, a=lambda row, text, _: "" if row < 3 else text, b=spoil(0.06)), "a", "b"
    ),
    "five texts eight times": lambda: study(plant(5, 8, a=right, b=spoil(0.4)), "a", "b"),
    "lost terms": of_lost_terms,
    "names of systems": partial(of_directions, "my set", "iPhone", "c"),
    "two directions": partial(of_directions, "iPhone", "c"),
    "copies of the source": partial(of_copies, SAID, reference=DAYS, plain=DAYS, other=SAID[:6] + DAYS[6:]),
    "names that stay as they are": partial(
        of_copies, NAMES, reference=NAMES, plain=NAMES, other=[name.replace("ie", "ea") for name in NAMES]
    ),
}


@cache
def report_of(name):
    return PLANTS[name]()


def test_answers_to_planted_translations():
    for name in PLANTS:
        check_budget(report_of(name))
    check_texts(TEXTS, "translation", {name: describe_report(report_of(name)) for name in PLANTS})


def test_verdicts_on_planted_translations():
    assert report_of("empty outputs").summary["empties"].tolist() == [10]
    assert report_of("names that stay as they are").summary["copies"].sum() == 0
