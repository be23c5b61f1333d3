"""What changed since an earlier report: significant, paired, in words; and the exit status for CI jobs."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest
from typer.testing import CliRunner

from speechlab import evaluate
from speechlab.cli import app
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.metrics import score
from support.forked import speechlab

RIGHT = {"en": "the cat sat on the mat", "ja": "精度を上げる"}
WRONG = {"en": "the hat sat on the mat", "ja": "西都を上げる"}
ALIKE = {"en": "the cat sat on the mat", "ja": "制度を上げる"}
HOSTILE = "<img src=x onerror=alert(1)>"


def made(heard, count=24, **options):
    """A report of English and Japanese rows, in turns; ``heard`` gives what was recognized in each."""
    return report_of(heard, count, **options) if options else plain_report_of(heard, count)


def report_of(heard, count, *, voice="v", normalize="auto", **columns):
    codes = ["en", "ja"] * (count // 2)
    frame = pd.DataFrame(
        {
            "id": [f"r{row}" for row in range(count)],
            "text": [RIGHT[code] for code in codes],
            "language": codes,
            "voice": voice,
            "voice_name": voice,
            "gender": "",
            "audio": None,
            "duration_s": 1.0,
            "hypothesis": [heard(row, code) for row, code in enumerate(codes)],
            "error": None,
        }
    )
    frame["status"] = frame["hypothesis"].isna().map({True: "error", False: "ok"})
    scored = score(frame.assign(**columns), normalize=normalize)
    return evaluate.Report.of_scores(
        "Nightly", scored.assign(loop=False), record={"made": "2026-11-01T00:00:00Z"}
    )


plain_report_of = cache(report_of)


def right(row, code):
    return RIGHT[code]


def wrong(row, code):
    return WRONG[code]


def alike(row, code):
    return ALIKE[code]


def verdicts(changes):
    return dict(zip(changes.summary["group"], changes.summary["verdict"], strict=True))


@pytest.mark.slow
def test_what_is_worse_or_better_is_said():
    changes = made(wrong).compare(made(right))
    assert verdicts(changes) == {"v, en": "worse", "v, ja": "worse"}
    assert (changes.worse, changes.better) == (True, False)
    back = made(right).compare(made(wrong))
    assert (back.worse, back.better) == (False, True)
    assert changes.summary["low"].isna().all()  # of twelve pairs
    table = made(wrong, count=14).compare(made(right, count=14)).summary
    assert table["p"].tolist() == pytest.approx([2**-6, 2**-6])
    assert table["p_holm"].tolist() == pytest.approx([2**-5, 2**-5])
    many = made(wrong, count=40).compare(made(right, count=40))
    assert many.summary["low"].notna().all()
    assert [drawing.title for drawing in many.drawings] == ["Differences, with 95% intervals"]
    assert "sign-flip" in many.methods().text
    assert "Holm" in many.methods().text


@pytest.mark.slow
def test_japanese_goes_by_how_it_sounds():
    changes = made(alike).compare(made(right))
    assert verdicts(changes)["v, ja"] == "no difference shown"
    assert changes.summary.set_index("group").loc["v, ja", "unit"] == "reading"
    assert not made(wrong, count=8).compare(made(right, count=8)).worse  # four pairs: p = 0.125


@pytest.mark.slow
def test_rows_without_a_partner_are_told_and_not_tested():
    changes = made(wrong, count=30).compare(made(right))
    assert "6 rows are in this report alone and not compared." in "\n".join(map(str, changes.findings))
    assert changes.summary["n"].sum() == 24
    unpaired = made(wrong, text="another text").compare(made(right))
    assert set(verdicts(unpaired).values()) == {"not paired"}
    assert (unpaired.worse, unpaired.paired, unpaired.figures()) == (False, False, {})
    assert "of other rows" in "\n".join(map(str, unpaired.findings))


@pytest.mark.slow
def test_rows_that_fail_are_a_change_of_their_own():
    failing = made(lambda row, code: None if row < 8 else RIGHT[code])
    changes = failing.compare(made(right))
    assert verdicts(changes)["rows that failed"] == "worse"
    assert changes.summary.set_index("group").loc["rows that failed", "p"] == pytest.approx(2**-7)
    assert verdicts(made(right).compare(failing))["rows that failed"] == "better"
    all_failed = made(lambda row, code: None)
    assert all_failed.compare(made(right)).worse
    assert not all_failed.compare(all_failed).worse


@pytest.mark.slow
def test_the_same_row_twice_has_partners_in_order():
    changes = made(wrong, id="same").compare(made(right, id="same"))
    assert changes.summary["n"].tolist() == [12, 12]
    assert not changes.worse  # twelve takes of one sentence say nothing of others
    takes = [f"r{row // 4}" for row in range(96)]
    repeated = made(wrong, count=96, id=takes).compare(made(right, count=96, id=takes)).summary
    assert repeated["p"].tolist() == pytest.approx([2**-23] * 2)


@pytest.mark.slow
def test_columns_of_other_names_are_those_of_the_study():
    def named(heard):
        rows = made(heard).table.rename(columns={"text": "said", "language": "code"})
        return evaluate.Report.of_scores(
            "N", rows.assign(text="other", language="xx", group=1), text="said", language="code"
        )

    changes = named(wrong).compare(named(right))
    plain = made(wrong).compare(made(right))
    pd.testing.assert_frame_equal(changes.summary, plain.summary)
    assert set(changes.table["text"]) == set(RIGHT.values())
    assert set(changes.table["group"]) == {1}
    assert RIGHT["en"] in str(named(wrong).sections()[-1])


def test_other_normalizers_are_refused_with_what_differs():
    with pytest.raises(InvalidRequestError, match=r"English: normalizer none-v1\S+ earlier, en-v\S+ now"):
        made(wrong).compare(made(right, normalize="none"))
    # versions of tools are another matter
    table = made(right).table
    signatures = table["signature"].astype(str).str.replace("rapidfuzz:3", "rapidfuzz:2")
    older = replace(made(right), table=table.assign(signature=signatures))
    assert made(wrong).compare(older).worse


def test_reports_without_scores_are_refused():
    rows = pd.DataFrame({"text": ["a"], "translation": ["b"], "status": "ok"})
    translated = evaluate.Report("T", rows, rows, study="translation")
    changes = made(right).compare(made(wrong))
    bare = evaluate.Report("S", rows, rows)
    for other in (translated, changes, bare):
        with pytest.raises(InvalidRequestError, match="holds no scores that could be compared"):
            made(right).compare(other)


@pytest.mark.slow
def test_changes_are_a_report_that_is_saved_and_read_back(tmp_path):
    now, before = made(wrong, voice=HOSTILE), made(right, voice=HOSTILE)
    before.save(tmp_path / "before")
    changes = now.compare(tmp_path / "before")
    assert changes.table["error_difference"].tolist()[0] > 0
    assert changes.table["hypothesis_earlier"].iloc[0] in RIGHT.values()
    again = evaluate.Report.load(changes.save(tmp_path / "changes"))
    assert again.findings == changes.findings
    page = (tmp_path / "changes" / "report.html").read_text("utf-8")
    assert HOSTILE not in page
    assert "2026-11-01T00:00:00Z" in page
    assert HOSTILE not in changes._repr_html_()
    with pytest.raises(StoreError, match="holds no report"):
        now.compare(tmp_path)


# The command


def study(*arguments):
    return speechlab("study", *arguments, env={**os.environ, "COLUMNS": "120"})


@pytest.mark.slow
def test_the_exit_status_serves_a_ci_job(tmp_path):
    for name, report in (("good", made(right)), ("bad", made(wrong)), ("other", made(right, text="another"))):
        replace(report, drawings=()).save(tmp_path / name)
    done = study(
        "compare", tmp_path / "bad", tmp_path / "good", "--fail-if", "worse", "--out", tmp_path / "c.html"
    )
    assert done.returncode == 4, done.stderr
    assert "Worse: v, en (0.0% to 16.7%" in done.stdout
    assert (tmp_path / "c.html").is_file()
    assert study("compare", tmp_path / "good", tmp_path / "bad", "--fail-if", "worse").returncode == 0
    unpaired = study("compare", tmp_path / "other", tmp_path / "good", "--fail-if", "worse")
    assert unpaired.returncode == 2
    assert "no row is in both reports" in unpaired.stderr


def timed(report, slower=1.0, count=8):
    """The report with calls that were timed, whose times vary by a twentieth."""
    calls = pd.DataFrame(
        {
            "voice": "v",
            "voice_name": "v",
            "language": "en",
            "text": [f"t{row}" for row in range(count)],
            "turn": range(count),
            "first_audible_s": [slower * (0.2 + 0.01 * (row % 3)) for row in range(count)],
            "total_s": [slower * (1 + 0.01 * (row % 2)) for row in range(count)],
            "duration_s": 2.0,
            "concurrency": 1,
            "error": None,
        }
    )
    calls = calls.assign(rtf=calls["total_s"] / 2).sample(frac=1, random_state=1)
    return evaluate.Report.of_scores(report.title, report.table, speed=calls, record=report.record)


def ratios(changes):
    return changes.differences[changes.differences["unit"] == "ratio"]


@pytest.mark.slow
def test_slower_fails_a_ci_job_only_where_asked(tmp_path):
    fast, slow = timed(made(right)), timed(made(right), slower=1.5)
    noisy = fast.speed.assign(
        first_audible_s=[
            (1.4 if row % 2 else 0.7) * value for row, value in enumerate(fast.speed["first_audible_s"])
        ],
        error=["it broke", *[None] * 7],
    )
    changes = replace(fast, speed=noisy).compare(fast)
    of_speed = ratios(changes)
    assert of_speed["n"].tolist() == [7, 7]
    assert of_speed["verdict"].tolist() == ["no difference shown"] * 2
    assert of_speed["low"].iloc[0] < 1 < of_speed["high"].iloc[0]
    few = timed(made(right), slower=1.5, count=5).compare(timed(made(right), count=5))
    assert (few.slower, ratios(few)["low"].isna().all()) == (False, True)
    assert ratios(few)["difference"].tolist() == pytest.approx([1.5, 1.5])
    twins = [fast.speed, fast.speed.assign(voice="w", total_s=2 * fast.speed["total_s"])]
    one, other = (replace(fast, speed=pd.concat(pair)) for pair in (twins, twins[::-1]))
    of_twins = ratios(one.compare(other))  # two voices of one name, asked in another order
    assert of_twins[["low", "high"]].to_numpy() == pytest.approx(1)
    for name, report in (("fast", fast), ("slow", slow), ("untimed", made(right))):
        replace(report, drawings=()).save(tmp_path / name)

    def ends(now, earlier, *asked):
        options = [word for one in asked for word in ("--fail-if", one)]
        return CliRunner().invoke(
            app, ["study", "compare", str(tmp_path / now), str(tmp_path / earlier), *options]
        )

    assert ends("slow", "fast", "worse").exit_code == 0
    told = ends("slow", "fast", "worse", "slower")
    assert told.exit_code == 4
    words = " ".join(told.stdout.split())
    assert "Slower: v, en (time to the first sound × 1.50, 95% interval 1.50 to 1.50" in words
    assert "machines, their load and the network may have been others" in words
    assert ends("fast", "slow", "slower").exit_code == 0
    for asked, told in (
        (["round-trip", "--service", "a=", "--service", "b=http://x"], "the systems 'a', 'b'"),
        (["recognition", "--setting", "a={}", "--hotword", "b"], "the systems 'a', 'hotwords'"),
        (["translation"], "is of another study"),
    ):
        way = [asked[0], "none.csv", "--out", "x", *asked[1:], "--earlier", str(tmp_path / "slow")]
        done = CliRunner().invoke(app, ["study", *way])
        assert told in (done.output or str(done.exception))
    assert "give --speed 6 to both" in str(ends("slow", "untimed", "slower").exception)
    for earlier, speed in (("slow", 0), ("untimed", 6)):  # said before anything is read or sent
        asked = ["round-trip", "none.csv", "--out", "x", "--earlier", str(tmp_path / earlier)]
        early = CliRunner().invoke(app, ["study", *asked, "--fail-if", "slower", "--speed", str(speed)])
        assert "give --speed 6 to both" in str(early.exception)
    again = evaluate.Report.load(slow.compare(fast).save(tmp_path / "changes"))
    assert again.slower
