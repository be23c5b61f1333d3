"""Error rate against a measure."""

import numpy as np
import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import by_bins, score, summarize


@pytest.fixture(scope="module")
def scored():
    random = np.random.default_rng(0)
    rows = []
    for _ in range(200):
        length = int(random.integers(2, 30))
        said = [f"w{i}" for i in random.integers(0, 50, length)]
        heard = [w if random.random() > 0.02 * length / 2 else "x" for w in said]
        rows.append((" ".join(said), " ".join(heard), length / 3, f"s{random.integers(0, 9)}"))
    frame = pd.DataFrame(rows, columns=["text", "hypothesis", "duration_s", "speaker"])
    return score(frame, language="de")


def test_bins_hold_equal_shares_and_all_errors(scored):
    table = by_bins(scored, "duration_s", bins=4)
    assert table["utterances"].sum() == 200
    assert table["utterances"].between(35, 65).all()
    assert table["errors"].sum() == scored["errors"].sum()
    assert (table["duration_s_from"] <= table["duration_s_mean"]).all()
    assert (table["duration_s_mean"] <= table["duration_s_to"]).all()
    assert table["error_rate"].is_monotonic_increasing
    assert (table["error_rate_low"] <= table["error_rate"]).all()


def test_given_edges_include_empty_bins(scored):
    table = by_bins(scored, "duration_s", bins=[0, 5, 10, 20, 40])
    assert table["duration_s_from"].tolist() == [0, 5, 10, 20]
    assert table["utterances"].tolist()[2:] == [0, 0]
    assert table["error_rate"].isna().tolist() == [False, False, True, True]
    inside = scored[(scored["duration_s"] >= 5) & (scored["duration_s"] < 10)]
    one = summarize(inside).iloc[0]
    assert table["error_rate"].tolist()[1] == one["error_rate"]
    assert table["error_rate_low"].tolist()[1] == one["error_rate_low"]
    blocks = by_bins(scored, "duration_s", bins=[5, 10], groups="speaker")["error_rate_low"]
    assert blocks.tolist() == summarize(inside, groups="speaker")["error_rate_low"].tolist()
    assert blocks.tolist() != [one["error_rate_low"]]
    assert by_bins(scored, "duration_s", bins=[3, 4])["utterances"].sum() < 200
    with pytest.raises(InvalidRequestError, match="not numbers"):
        by_bins(scored, "speaker", 5)


def test_missing_and_constant_measures(scored):
    gaps = scored.assign(duration_s=scored["duration_s"].where(scored.index > 20))
    table = by_bins(gaps, "duration_s", bins=2)
    assert table["utterances"].tolist()[-1] == 21
    assert table[["duration_s_from", "duration_s_mean"]].isna().all(axis=1).tolist() == [False, False, True]
    assert by_bins(scored.assign(k=1), "k")["utterances"].tolist() == [200]
    assert len(by_bins(scored.iloc[:0], "duration_s")) == 0
    none = by_bins(scored.assign(k=pd.array([pd.NA] * 200, dtype="Float64")), "k")
    assert none["utterances"].tolist() == [200]
    nullable = scored.assign(duration_s=scored["duration_s"].astype("Float64"))
    pd.testing.assert_frame_equal(by_bins(nullable, "duration_s"), by_bins(scored, "duration_s"))
