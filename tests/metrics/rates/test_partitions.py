"""Scores of a table of Dask: by partition the same rows, and merged the same figures."""

import random

import pandas as pd
import pytest

from speechlab import metrics
from speechlab.errors import InvalidRequestError

pytestmark = pytest.mark.filterwarnings("ignore")


def of_dask(frame, parts):
    dd = pytest.importorskip("dask.dataframe")  # not at the top: each worker would load it
    return dd.from_pandas(frame, npartitions=min(parts, len(frame)), sort=False)


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "groups"), [(1, None), (5, "speaker")])
def test_partitions_merge_to_the_whole(parts, groups):
    chance = random.Random(parts)
    rows = [
        (
            *(" ".join(chance.choices(["one", "two", "three", "four"], k=chance.randrange(5))) for _ in "ab"),
            *(chance.choice(values) for values in (["en", "zh", "xx", None], "ab", range(4))),
        )
        for _ in range(30)
    ]
    frame = pd.DataFrame(rows, columns=["text", "hypothesis", "language", "voice", "speaker"])
    whole = metrics.score(frame)
    scored = metrics.score(of_dask(frame, parts))
    assert scored.columns.tolist() == whole.columns.tolist()
    made = scored.compute()
    for name in ("errors", "alignment", "score_error", "reference_length"):
        assert made[name].astype(object).fillna("").tolist() == whole[name].astype(object).fillna("").tolist()
    how = {"by": "voice", "draws": 50, "groups": groups}
    merged = metrics.summarize(scored, **how)
    pd.testing.assert_frame_equal(merged, metrics.summarize(whole, **how), check_exact=False, rtol=1e-12)


def test_groups_of_partitions_are_a_column():
    scored = metrics.score(of_dask(pd.DataFrame({"text": ["a"], "hypothesis": ["b"]}), 1), language="en")
    with pytest.raises(InvalidRequestError, match="give the name of the column"):
        metrics.summarize(scored, groups=["x"])
    with pytest.raises(InvalidRequestError, match="no column"):
        metrics.summarize(scored, by="voice")
