"""Scores of a table of Dask: by partition the same rows, and merged the same figures."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab import metrics
from speechlab.errors import InvalidRequestError

pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=4).map(" ".join)
ROWS = st.lists(
    st.tuples(
        WORDS, WORDS, st.sampled_from(["en", "de", "xx", None]), st.sampled_from("ab"), st.integers(0, 3)
    ),
    min_size=1,
    max_size=30,
)


def of_dask(frame, parts):
    dd = pytest.importorskip("dask.dataframe")  # not at the top: each worker would load it
    return dd.from_pandas(frame, npartitions=min(parts, len(frame)), sort=False)


@pytest.mark.slow
@settings(max_examples=8)  # each computes two tables of Dask
@given(ROWS, st.integers(1, 5), st.booleans())
def test_partitions_merge_to_the_whole(rows, parts, blocks):
    frame = pd.DataFrame(rows, columns=["text", "hypothesis", "language", "voice", "speaker"])
    whole = metrics.score(frame)
    scored = metrics.score(of_dask(frame, parts))
    assert scored.columns.tolist() == whole.columns.tolist()
    made = scored.compute()
    for name in ("errors", "alignment", "score_error", "reference_length"):
        assert made[name].astype(object).fillna("").tolist() == whole[name].astype(object).fillna("").tolist()
    how = {"by": "voice", "draws": 50, "groups": "speaker" if blocks else None}
    merged = metrics.summarize(scored, **how)
    pd.testing.assert_frame_equal(merged, metrics.summarize(whole, **how), check_exact=False, rtol=1e-12)


@pytest.mark.slow
def test_each_language_has_its_columns_in_each_partition():
    frame = pd.DataFrame(
        {"text": ["good morning", "早上好"], "hypothesis": ["good", "早上"], "language": ["en", "zh"]}
    )
    scored = metrics.score(of_dask(frame, 2))
    assert scored["tolerant_wer"].compute().isna().tolist() == [False, True]
    assert metrics.summarize(scored)["cer"].notna().all()
    direct = metrics.summarize(of_dask(frame, 2), language="language")
    pd.testing.assert_frame_equal(direct, metrics.summarize(frame, language="language"))


def test_groups_of_partitions_are_a_column():
    scored = metrics.score(of_dask(pd.DataFrame({"text": ["a"], "hypothesis": ["b"]}), 1), language="en")
    with pytest.raises(InvalidRequestError, match="give the name of the column"):
        metrics.summarize(scored, groups=["x"])
    with pytest.raises(InvalidRequestError, match="no column"):
        metrics.summarize(scored, by="voice")
