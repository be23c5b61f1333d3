"""Failed rows are told when a run has ended, with the commonest reasons and where to look."""

from __future__ import annotations

import warnings

import pandas as pd
import polars as pl
import pytest

from speechlab import batch
from speechlab.errors import InvalidRequestError
from support.batches import EN_JA, quiet, texts

pytestmark = pytest.mark.filterwarnings("default:.* rows failed:UserWarning")


def told(function, *arguments, **options):
    """What a call returned, and the one warning that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        returned = function(*arguments, **options)
    assert len(caught) == 1, [str(one.message) for one in caught]
    assert caught[0].category is UserWarning
    assert caught[0].filename == __file__
    return returned, str(caught[0].message)


def test_a_run_that_only_fails_says_so(reverser, translator, store):
    translator.faults = {"number": 400}
    frame = texts(50)
    table, text = told(batch.translate, frame, reverser, **quiet(store, max_error_share=None))
    assert text.startswith("50 of 50 rows failed: 50 like 'HTTP 400 Err: no: 400'. ")
    assert "table[table['status'] == 'error']" in text
    assert "sl.batch.failures(table)" in text
    reasons = batch.failures(table)
    assert reasons.to_dict("records") == [
        {
            "rows": 50,
            "error_type": "BadRequestError",
            "http_status": 400,
            "error": "HTTP 400 Err: no: 400",
            "first": 0,
        }
    ]


def test_reasons_are_counted_with_the_commonest_first(reverser, translator, store):
    translator.faults = {"number [3-6]$": 400, "number 7$": 403, "number 8$": 404}
    frame = pd.concat([texts(12), pd.DataFrame({"text": [None, 5, 6.5, 7.5]})]).set_axis(
        [f"row {n}" for n in range(16)]
    )
    table, text = told(batch.translate, frame, reverser, prefix="mt_", **quiet(store))
    assert text.startswith(
        "10 of 16 rows failed: 4 like 'HTTP 400 Err: no: 400'; 3 like \"column 'text' holds 5"
    )
    assert "; 2 for other reasons. " in text
    assert "table[table['mt_status'] == 'error']" in text
    assert "sl.batch.failures(table, prefix='mt_')" in text
    reasons = batch.failures(table, prefix="mt_")
    assert reasons["rows"].sum() == 10
    assert reasons["rows"].is_monotonic_decreasing
    assert reasons["first"].tolist()[0] == "row 3"
    assert reasons["http_status"].dtype == "Int64"
    again = batch.failures(batch.load(table, store))
    pd.testing.assert_frame_equal(again, reasons)


def test_pieces_are_told_once_and_a_run_names_itself(reverser, translator, store):
    translator.faults = {"number 3": 400}
    plan = batch.plan_translation([texts(2), texts(2, start=2)], reverser, store=store, **EN_JA)
    run, text = told(batch.run, plan, reverser, progress=False)
    assert (
        text == "1 of 4 rows failed: 1 like 'HTTP 400 Err: no: 400'. sl.batch.failures(run) lists the reasons"
    )
    assert batch.failures(run)["rows"].tolist() == [1]
    again = batch.plan_translation(texts(4), reverser, store=store, **EN_JA)
    _, text = told(batch.run, again, reverser, progress=False, retry_failed=False)
    assert text.startswith("1 of 4 rows failed in an earlier run, and were not asked again.")


def test_a_table_of_results_alone_leads_to_its_run(reverser, translator, store):
    translator.faults = {"number 1": 400}
    table, text = told(batch.translate, texts(2), reverser, columns="result", **quiet(store))
    run = table.attrs["speechlab_run"]
    assert f"sl.batch.failures(sl.batch.load({run!r}, {str(store.path)!r})) lists the reasons" in text
    assert batch.failures(table, store)["rows"].tolist() == [1]
    with pytest.raises(InvalidRequestError, match="does not say which run"):
        batch.failures(texts(1))


def test_a_stop_and_failures_are_one_warning(reverser, translator, store):
    translator.faults = {"number 0": 400}
    _, text = told(
        batch.translate, texts(3), reverser, budget=batch.Budget(calls=2), concurrency=1, **quiet(store)
    )
    assert text.startswith("the batch stopped: the budget of 2 calls is used up. 1 of 3 rows failed: ")


def test_what_is_well_or_raised_is_not_told(reverser, translator, store):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = batch.translate(texts(2), reverser, **quiet(store))
        translator.faults = {"number 5": 400}
        with pytest.raises(ExceptionGroup):
            batch.translate(texts(6), reverser, on_error="raise", **quiet(store))
    assert batch.failures(table).empty
    assert batch.failures(table).columns.tolist() == ["rows", "error_type", "http_status", "error", "first"]
    assert batch.failures(pl.from_pandas(table)).empty
