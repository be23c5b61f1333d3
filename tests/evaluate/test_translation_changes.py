"""What changed between two reports of translations: by direction, paired, in words."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest

from speechlab import evaluate

GOOD = "The meeting room is on the third floor of the building."
BAD = "A room for the meeting can be found above."
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]


def frame_of(translated, count, *, text="会議室は{}階です。", **columns):
    """Texts from Japanese to English and back, in turns; ``translated`` gives each translation."""
    rows = [
        (
            f"r{row}",
            text.format(row),
            f"{GOOD} {row}",
            *(("ja", "en"), ("en", "ja"))[row % 2],
            translated(row),
        )
        for row in range(2 * count)
    ]
    names = ["id", "text", "reference", "source_lang", "target_lang", "output"]
    return pd.DataFrame(rows, columns=names).assign(**columns)


@cache
def made(translated, count=12, **options):
    return evaluate.translation(None, frame_of(translated, count, **options), hypotheses="output")


def good(row):
    return f"{GOOD} {row}"


def worse_into_english(row):
    return good(row) if row % 2 else f"{BAD} {row}"


def verdicts(changes):
    return dict(zip(changes.summary["group"], changes.summary["verdict"], strict=True))


def tell(changes):
    return "\n".join(map(str, changes.findings))


def test_a_direction_that_became_worse_is_said():
    changes = made(worse_into_english, count=20).compare(made(good, count=20))
    assert verdicts(changes) == {"ja → en": "worse", "en → ja": "no difference shown"}
    row = changes.summary.set_index("group").loc["ja → en"]
    assert (row["value_a"], row["value_b"] < 60) == (100, True)
    assert row["difference"] == pytest.approx(row["value_b"] - row["value_a"])
    assert row["p_holm"] == pytest.approx(2 * row["p"])
    assert row["low"] < row["difference"] < row["high"] < 0
    told = f"95% interval {row['low']:+.1f} to {row['high']:+.1f}".replace("-", "−")
    assert "Worse: ja → en (chrF 100.0 to " in tell(changes)
    assert told in tell(changes)
    cited = ("paired bootstrap", "Koehn", "Riezler", "Bisani", "sign-flip")
    assert [words in str(changes.methods()) for words in cited] == [True] * 3 + [False] * 2
    assert changes.table["score_difference"].iloc[[0, -1]].tolist() == [
        changes.table["score_difference"].min(),
        0,
    ]
    assert (changes.worse, changes.better) == (True, False)
    same = {"text": "二階です。", "reference": GOOD, "id": "x"}  # many times
    for options in (same, {"count": 4}):
        assert not made(worse_into_english, **options).compare(made(good, **options)).worse


def test_rows_that_failed_and_rows_without_a_partner():
    changes = made(lambda row: None if row < 12 else good(row)).compare(made(good))
    assert verdicts(changes)["rows that failed"] == "worse"
    assert "rows that failed (0.0% to 50.0%" in tell(changes)
    other = made(worse_into_english, text="{}番です。").compare(made(good))
    assert set(verdicts(other).values()) == {"not paired"}
    assert (other.worse, other.figures()) == (False, {})
    assert "of other rows" in tell(other)
