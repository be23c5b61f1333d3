"""The errors that rank are said in one place: readings, else without notation, else as written."""

from __future__ import annotations

import pandas as pd
import pytest

from speechlab.evaluate import recognition


@pytest.mark.slow
def test_each_language_ranks_by_its_own_errors():
    rows = pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "text": ["4719", "今日は会議", "guten Tag"],
            "heard": ["4 7 1 9", "きょうは会議", "guten Abend"],
            "language": ["en", "ja", "de"],
        }
    )
    summary = recognition(None, rows, hypotheses="heard", voice=None).summary.set_index("language")
    assert summary["ranked_by"].to_dict() == {"en": "tolerant_wer", "ja": "reading_cer", "de": "error_rate"}
    assert summary["ranking_rate"].to_dict() == {"en": 0.0, "ja": 0.0, "de": 0.5}
    assert summary.loc["ja", "error_rate"] > 0
