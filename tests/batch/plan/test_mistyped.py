"""Values that may be mistyped columns: asked where a column is like them, told where they look like one."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

from speechlab import batch
from speechlab.batch import Column, Value
from speechlab.contract import AudioFormat
from speechlab.errors import InvalidRequestError
from support.batches import EN_JA, quiet
from support.plans import MADE, VOICES, planning

FRAME = pd.DataFrame({"text": ["a", "b"], "hint": ["x", "y"], "Key Words": ["p", "q"], "tgt_lang": "ja"})


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"context": "hints"}, "hint"),
        ({"context": "Hint"}, "hint"),
        ({"keywords": "keywords"}, "Key Words"),
        ({"keywords": "key_word"}, "Key Words"),
        ({"model": "hnt"}, "hint"),
        ({"target_lang": "tgt"}, "tgt_lang"),
    ],
    ids=str,
)
def test_a_name_like_that_of_a_column_is_asked_about(reverser, translator, store, given, column):
    ((parameter, value),) = given.items()
    with pytest.raises(InvalidRequestError) as caught:
        batch.translate(FRAME, reverser, **{**quiet(store), **given})
    text = str(caught.value)
    assert f"{parameter}=sl.batch.Column({column!r})" in text
    assert f"{parameter}=sl.batch.Value({value!r})" in text
    assert not translator.calls
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = batch.plan_translation(FRAME, reverser, store=store, **{**EN_JA, parameter: Value(value)})
        assert plan.step.settings[parameter] in (value, [value])
        plan = batch.plan_translation(FRAME, reverser, store=store, **{**EN_JA, parameter: Column(column)})
        assert plan.step.settings["columns"][parameter] == column


def test_the_name_of_the_parameter_is_no_value(reverser, store):
    for parameter in ("context", "keywords", "model"):
        frame = FRAME[["text"]]
        with pytest.raises(
            InvalidRequestError, match=rf"{parameter!r} is no column .* which has 'text'; .*Value"
        ):
            batch.plan_translation(frame, reverser, store=store, **EN_JA, **{parameter: parameter})


def test_a_value_that_looks_like_a_column_is_told(reverser, store):
    with pytest.warns(UserWarning, match=r"context is the text 'notes_of_mine' for every row") as told:
        batch.translate(FRAME, reverser, context="notes_of_mine", **quiet(store))
    assert told[0].filename == __file__
    plan, row, given = MADE["transcribe"]
    with pytest.warns(UserWarning, match=r"hotwords is the text 'terms' for every row"):
        plan(pd.DataFrame([row]), planning(), **{**given, "hotwords": "terms"})


@pytest.mark.parametrize(
    "given",
    [
        {"context": "A talk about whales."},
        {"context": ""},
        {"context": "hint"},
        {"keywords": ["hints"]},
        {"keywords": "Kyoto"},
        {"model": "gpt-oss-20b"},
        {"model": "base"},
        {"target_lang": "zh-TW"},
        {"target_lang": "fr"},
    ],
    ids=str,
)
def test_what_is_plain_is_not_asked(reverser, store, given):
    plan = batch.plan_translation(FRAME, reverser, store=store, **{**EN_JA, **given})
    assert len(plan.rows) == 2


def test_a_format_is_named_in_words(store):
    frame = pd.DataFrame({"text": ["a"]})
    for kind in (AudioFormat.PCM, "pcm"):
        with pytest.raises(InvalidRequestError, match=r"^format 'pcm' cannot be kept as a file"):
            batch.plan_synthesis(frame, planning(), voice=VOICES[0]["id"], format=kind, store=store)
