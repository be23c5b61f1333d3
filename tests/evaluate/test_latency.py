"""How soon a text is heard, in three ways: each call is made, kept, and told."""

from __future__ import annotations

import pandas as pd
import pytest

from speechlab import connect, evaluate
from speechlab.errors import InvalidRequestError

TEXTS = ["The weather is fine today.", "See you tomorrow."]
WAYS = ["whole", "stream", "realtime"]


@pytest.mark.engines
def test_each_way_is_timed_and_replayed(lab, tmp_path):
    kept = lab.with_options(store=tmp_path / "store")
    found = evaluate.latency(kept, TEXTS, "heart")
    assert found["way"].tolist() == [*WAYS, *WAYS[1:], WAYS[0]]
    assert found["text"].tolist() == [TEXTS[0]] * 3 + [TEXTS[1]] * 3
    assert (found["first_byte_s"] < found["total_s"]).tolist() == (found["way"] != "whole").tolist()
    assert (found["first_byte_s"] > 0).all()
    assert (found["first_byte_s"] <= found["first_audible_s"]).all()
    assert found.groupby("text")["duration_s"].nunique().tolist() == [1, 1]
    assert found["error"].isna().all()
    pd.testing.assert_series_equal(found["rtf"], found["total_s"] / found["duration_s"], check_names=False)
    replaying = connect(store=tmp_path / "store", mode="replay")
    again = evaluate.latency(replaying, TEXTS, "heart")
    same = ["way", "text", "turn", "duration_s"]
    pd.testing.assert_frame_equal(found[same], again[same])
    whole = found["way"] == "whole"
    assert found.loc[whole, "total_s"].tolist() == again.loc[whole, "total_s"].tolist()


@pytest.mark.engines
def test_latency_makes_every_call(lab, tmp_path):
    kept = lab.with_options(store=tmp_path / "store")
    found = evaluate.latency(kept, ["", TEXTS[0]], lab.voices()["heart"], ways=["whole", "stream"])
    assert found["error"].notna().tolist() == [True, True, False, False]
    before = lab.usage.synthesized_chars
    evaluate.latency(kept, TEXTS[0], "heart", ways="whole")
    assert lab.usage.synthesized_chars - before == 2 * len(TEXTS[0])


def test_what_makes_no_sense_is_refused():
    for texts, ways in (
        ([], "whole"),
        ([3], "whole"),
        (3, "whole"),
        ("One.", []),
        ("One.", ["radio"]),
        ("One.", [[3]]),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            evaluate.latency(None, texts, "heart", ways=ways)
        assert caught.value.parameter == ("texts" if ways == "whole" else "ways")
    with pytest.raises(InvalidRequestError, match="a Client, as"):
        evaluate.latency(None, "One.", "heart")
