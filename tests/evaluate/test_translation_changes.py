"""What changed between two reports of translations: by direction, paired, in words."""

from __future__ import annotations

import math
from functools import cache

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.errors import InvalidRequestError

GOOD = "The meeting room is on the third floor of the building."
BAD = "A room for the meeting can be found above."
HOSTILE = "<img src=x onerror=alert(1)>"
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
def made(translated, count=12, hypotheses="output", **options):
    return evaluate.translation(None, frame_of(translated, count, **options), hypotheses=hypotheses)


def good(row):
    return f"{GOOD} {row}"


def worse_into_english(row):
    return good(row) if row % 2 else f"{BAD} {row}"


def verdicts(changes):
    return dict(zip(changes.summary["group"], changes.summary["verdict"], strict=True))


def tell(changes):
    return "\n".join(map(str, changes.findings))


def test_a_direction_that_became_worse_is_said():
    changes = made(worse_into_english).compare(made(good))
    assert verdicts(changes) == {"ja → en": "worse", "en → ja": "no difference shown"}
    row = changes.summary.set_index("group").loc["ja → en"]
    assert (row["value_a"], row["value_b"] < 60) == (100, True)
    assert row["difference"] == pytest.approx(row["value_b"] - row["value_a"])
    assert row["p_holm"] == pytest.approx(2 * row["p"])
    assert math.isnan(row["low"])  # of twelve pairs
    assert "Worse: ja → en (chrF 100.0 to " in tell(changes)
    assert changes.table["score_difference"].iloc[0] < 0
    assert changes.table["score_difference"].iloc[-1] == 0
    back = made(good).compare(made(worse_into_english))
    assert [(one.worse, one.better) for one in (changes, back)] == [(True, False), (False, True)]
    same = {"text": "二階です。", "reference": GOOD, "id": "x"}  # many times
    for options in (same, {"count": 4}):
        assert not made(worse_into_english, **options).compare(made(good, **options)).worse


def test_from_twenty_pairs_on_the_difference_has_an_interval():
    changes = made(worse_into_english, count=20).compare(made(good, count=20))
    row = changes.summary.set_index("group").loc["ja → en"]
    assert row["low"] < row["difference"] < row["high"] < 0
    told = f"95% interval {row['low']:+.1f} to {row['high']:+.1f}".replace("-", "−")
    assert told in tell(changes)
    assert told.removeprefix("95% interval ") in changes.headline()["95% interval"].tolist()
    said = str(changes.methods())
    cited = ("paired bootstrap", "Koehn", "Riezler", "Bisani", "sign-flip")
    assert [words in said for words in cited] == [True] * 3 + [False] * 2


def test_the_two_sides_are_called_by_the_names_given():
    changes = made(worse_into_english).compare(made(good), names=("ours", "theirs"))
    assert changes.title == "theirs against ours: Translation"
    assert str(changes.findings[0]).startswith("Worse, from ours to theirs: ja → en (chrF 100.0 to ")
    assert [said.count("ours") for said in tell(changes).split(").\n")] == [1, 1]
    assert changes.headline().columns.tolist()[:4] == ["group", "ours", "theirs", "pairs"]
    assert set(changes.facts) == {"speechlab", "ours", "theirs"}
    assert changes.summary["a"].tolist() == ["ours", "ours"]
    assert "earlier" not in "".join(changes.sections())
    columns = [column["name"] for column in changes.rows().columns]
    assert columns[2:4] == ["translation: ours", "translation: theirs"]
    alone = made(worse_into_english).compare(made(good, count=13), names=("ours", "theirs"))
    assert "of ours alone and not compared" in tell(alone)


def test_one_system_and_several_cannot_be_compared():
    frame = frame_of(good, 12)
    several = evaluate.translation(None, frame, hypotheses={"ours": "output", "theirs": "output"})
    told = "has the systems 'ours', 'theirs', the other one a single"
    for now, earlier in ((several, made(good)), (made(good), several)):
        with pytest.raises(InvalidRequestError, match=told):
            now.compare(earlier)
    assert several.compare(several).paired


def test_rows_that_failed_and_rows_without_a_partner():
    changes = made(lambda row: None if row < 12 else good(row)).compare(made(good))
    assert verdicts(changes)["rows that failed"] == "worse"
    assert "rows that failed (0.0% to 50.0%" in tell(changes)
    other = made(worse_into_english, text="{}番です。").compare(made(good))
    assert set(verdicts(other).values()) == {"not paired"}
    assert (other.worse, other.figures()) == (False, {})
    assert "of other rows" in tell(other)


def test_columns_of_other_names():
    roles = {"text": "t", "reference": "r", "source_lang": "s", "target_lang": "z"}
    named = [
        evaluate.translation(
            None, frame_of(heard, 12).rename(columns=roles).assign(text="other"), hypotheses="output", **roles
        )
        for heard in (worse_into_english, good)
    ]
    plain = made(worse_into_english).compare(made(good))
    pd.testing.assert_frame_equal(named[0].compare(named[1]).summary, plain.summary)


def test_it_is_saved_shown_and_read_back(tmp_path):
    made(good, text=HOSTILE + "{}").save(tmp_path / "before")
    changes = made(worse_into_english, text=HOSTILE + "{}").compare(tmp_path / "before")
    again = evaluate.Report.load(changes.save(tmp_path / "changes"))
    assert again.findings == changes.findings
    assert HOSTILE not in (tmp_path / "changes" / "report.html").read_text("utf-8")
    assert HOSTILE not in changes._repr_html_()
    assert changes.headline()["now"].tolist()[1] == "100.0"
