"""What changed between two reports of translations: by direction, paired, in words."""

from __future__ import annotations

import math
from functools import cache

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._translation.translation_measures import Columns
from speechlab.evaluate._translation.translation_report import build_translation_report
from speechlab.metrics import score_translations

GOOD = "The meeting room is on the third floor of the building."
BAD = "A room for the meeting can be found above."
HOSTILE = "<img src=x onerror=alert(1)>"


def translation(*values, **facts):
    return evaluate.Report.of(build_translation_report(*values, **facts))


def made(translated, count=12, **options):
    """A report of texts from Japanese to English and back, in turns; ``translated`` gives each translation."""
    return report_of(translated, count, **options) if options else plain_report_of(translated, count)


def report_of(translated, count, *, text="会議室は{}階です。", **columns):
    rows = [
        {
            "id": f"r{row}",
            "text": text.format(row),
            "reference": f"{GOOD} {row}",
            "source_lang": ("ja", "en")[row % 2],
            "target_lang": ("en", "ja")[row % 2],
            "translation": translated(row),
        }
        for row in range(2 * count)
    ]
    frame = pd.DataFrame(rows).assign(**columns)
    frame["status"] = frame["translation"].isna().map({True: "error", False: "ok"})
    frame["error"] = frame["translation"].isna().map({True: "no", False: None})
    frame["chrf"] = [
        score_translations([row["reference"]], [row["translation"]], metrics=["chrf"]).chrf
        if isinstance(row["translation"], str)
        else float("nan")
        for row in frame.to_dict("records")
    ]
    return translation("Nightly", frame, frame.head(0), record={"made": "2026-11-01T00:00:00Z"})


plain_report_of = cache(report_of)


def good(row):
    return f"{GOOD} {row}"


def worse_into_english(row):
    return good(row) if row % 2 else f"{BAD} {row}"


def verdicts(changes):
    return dict(zip(changes.summary["group"], changes.summary["verdict"], strict=True))


@pytest.mark.slow
def test_a_direction_that_became_worse_is_said():
    changes = made(worse_into_english).compare(made(good))
    assert verdicts(changes) == {"ja → en": "worse", "en → ja": "no difference shown"}
    assert (changes.worse, changes.better) == (True, False)
    row = changes.summary.set_index("group").loc["ja → en"]
    assert row["value_a"] == 100
    assert row["value_b"] < 60
    assert row["difference"] == pytest.approx(row["value_b"] - row["value_a"])
    assert row["p_holm"] == pytest.approx(2 * row["p"])
    assert math.isnan(row["low"])  # of twelve pairs
    assert "Worse: ja → en (chrF 100.0 to " in "\n".join(map(str, changes.findings))
    assert changes.table["score_difference"].iloc[0] < 0
    assert changes.table["score_difference"].iloc[-1] == 0
    back = made(good).compare(made(worse_into_english))
    assert (back.worse, back.better) == (False, True)
    same = {"text": "二階です。", "reference": GOOD, "id": "x"}  # many times
    for now, earlier in (
        (made(worse_into_english, **same), made(good, **same)),
        (made(worse_into_english, count=4), made(good, count=4)),
    ):
        assert not now.compare(earlier).worse


@pytest.mark.slow
def test_from_twenty_pairs_on_the_difference_has_an_interval():
    changes = made(worse_into_english, count=20).compare(made(good, count=20))
    row = changes.summary.set_index("group").loc["ja → en"]
    assert row["low"] < row["difference"] < row["high"] < 0
    told = f"95% interval {row['low']:+.1f} to {row['high']:+.1f}".replace("-", "−")
    assert told in "\n".join(map(str, changes.findings))
    assert told.removeprefix("95% interval ") in changes.headline()["95% interval"].tolist()
    said = str(changes.methods())
    assert "paired bootstrap" in said
    assert "Koehn" in said
    assert "Bisani" not in said


@pytest.mark.slow
def test_the_two_sides_are_called_by_the_names_given():
    changes = made(worse_into_english).compare(made(good), names=("ours", "theirs"))
    assert changes.title == "theirs against ours: Nightly"
    assert str(changes.findings[0]).startswith("Worse, from ours to theirs: ja → en (chrF 100.0 to ")
    assert [said.count("ours") for said in "\n".join(map(str, changes.findings)).split(").\n")] == [1, 1]
    assert changes.headline().columns.tolist()[:4] == ["group", "ours", "theirs", "pairs"]
    assert set(changes.facts) == {"speechlab", "ours", "theirs"}
    assert changes.summary["a"].tolist() == ["ours", "ours"]
    assert "earlier" not in "".join(changes.sections())
    columns = [column["name"] for column in changes.rows().columns]
    assert columns[2:4] == ["translation: ours", "translation: theirs"]
    alone = made(worse_into_english).compare(made(good, count=13), names=("ours", "theirs"))
    assert "of ours alone and not compared" in "\n".join(map(str, alone.findings))
    for wrong in ("ours", ("ours",), ("ours", "ours"), ("ours", ""), ("group", "b"), None):
        with pytest.raises(InvalidRequestError, match="names"):
            made(good).compare(made(good), names=wrong)


@pytest.mark.slow
def test_reports_that_cannot_be_compared_are_refused():
    several, one = made(good, system=["ours", "theirs"] * 12), made(good)
    told = "has the systems 'ours', 'theirs', the other one a single"
    for now, earlier in ((several, one), (one, several)):
        with pytest.raises(InvalidRequestError, match=told):
            now.compare(earlier)
    assert several.compare(several).paired
    rows = pd.DataFrame({"text": ["a"], "status": "ok"})
    with pytest.raises(InvalidRequestError, match="compare two reports of translation"):
        one.compare(evaluate.Report("S", rows, rows))


def test_rows_that_failed_and_rows_without_a_partner():
    changes = made(lambda row: None if row < 12 else good(row)).compare(made(good))
    assert verdicts(changes)["rows that failed"] == "worse"
    assert "rows that failed (0.0% to 50.0%" in "\n".join(map(str, changes.findings))
    other = made(worse_into_english, text="{}番です。").compare(made(good))
    assert set(verdicts(other).values()) == {"not paired"}
    assert not other.worse
    assert "of other rows" in "\n".join(map(str, other.findings))
    assert other.figures() == {}


@pytest.mark.slow
def test_columns_of_other_names():
    named = []
    for heard in (worse_into_english, good):
        report = made(heard)
        names = {"text": "t", "reference": "r", "source_lang": "s", "target_lang": "z"}
        table = report.table.rename(columns=names).assign(text="other")
        named.append(translation("N", table, report.summary, Columns(*names.values())))
    plain = made(worse_into_english).compare(made(good))
    pd.testing.assert_frame_equal(named[0].compare(named[1]).summary, plain.summary)


@pytest.mark.slow
def test_it_is_saved_shown_and_read_back(tmp_path):
    made(good, text=HOSTILE + "{}").save(tmp_path / "before")
    changes = made(worse_into_english, text=HOSTILE + "{}").compare(tmp_path / "before")
    again = evaluate.Report.load(changes.save(tmp_path / "changes"))
    assert again.findings == changes.findings
    assert HOSTILE not in (tmp_path / "changes" / "report.html").read_text("utf-8")
    assert HOSTILE not in changes._repr_html_()
    assert "Riezler" in str(changes.methods())
    assert "sign-flip" not in str(changes.methods())
    assert changes.headline()["now"].tolist()[1] == "100.0"
