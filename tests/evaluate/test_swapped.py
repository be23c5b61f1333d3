"""Nothing depends on which system comes first: swapping the columns mirrors every figure, and changes no answer."""

import pandas as pd
import pytest

from evaluate.test_listening_answers import plant as plant_ratings
from evaluate.test_listening_answers import rate
from evaluate.test_translation_answers import plant as plant_translations
from speechlab import evaluate
from support.planted import hear_anew, plant, spoil

MIRRORED = {"worse": "better", "better": "worse"}


def mirror(differences):
    """Differences with the two systems of each exchanged."""
    swapped = differences.assign(
        a=differences["b"],
        b=differences["a"],
        value_a=differences["value_b"],
        value_b=differences["value_a"],
        difference=-differences["difference"] + 0.0,
        low=-differences["high"] + 0.0,
        high=-differences["low"] + 0.0,
        verdict=differences["verdict"].replace(MIRRORED),
    )
    return pd.concat([differences, swapped]).drop(columns=["signature"], errors="ignore")


def check_mirrored(one, other):
    """Check that two tables have the same differences, whichever system is the first."""
    keys = ["a", "b", "language", "condition", "measure"]
    tables = [
        mirror(table).drop_duplicates(keys).sort_values(keys, ignore_index=True) for table in (one, other)
    ]
    pd.testing.assert_frame_equal(*tables, rtol=1e-9)


@pytest.mark.slow
def test_in_translation_and_recognition():
    outputs = {"a": spoil(0.1), "b": spoil(0.3)}
    texts, rows = (make(12, **outputs) for make in (plant_translations, plant))
    for study, frame in ((evaluate.translation, texts), (evaluate.recognition, rows)):
        first, second = (study(None, frame, hypotheses=list(order), progress=False) for order in ("ab", "ba"))
        assert str(first.conclusion) == str(second.conclusion)
        check_mirrored(first.differences, second.differences)


@pytest.mark.slow
def test_in_changes():
    rows = plant(30, a=spoil(0.1), b=spoil(0.16))
    one = evaluate.recognition(None, rows, hypotheses="a", progress=False)
    other = hear_anew(one, rows["b"])
    forth, back = (
        later.compare(earlier).differences.iloc[0] for later, earlier in ((other, one), (one, other))
    )
    assert (forth["difference"], forth["low"], forth["high"]) == (
        -back["difference"],
        -back["high"],
        -back["low"],
    )
    assert forth["p"] == back["p"]


def test_in_listening():
    first = evaluate.listening(plant_ratings("mos", rate({"a": 3.2, "b": 3.6}), names=("a", "b")), draws=200)
    turned = first.table.iloc[::-1].drop(columns="excluded")
    second = evaluate.listening(turned, draws=200)
    assert str(first.conclusion) == str(second.conclusion)
    check_mirrored(first.differences, second.differences)
