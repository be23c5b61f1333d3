"""What changed since an earlier report: significant, paired, in words; and the exit status for CI jobs."""

from dataclasses import replace
from functools import cache

import pandas as pd
import pytest
from typer.testing import CliRunner

from speechlab import evaluate
from speechlab.cli import app
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.metrics import score

pytestmark = pytest.mark.slow

RIGHT = {"en": "the cat sat on the mat", "ja": "精度を上げる"}
WRONG = {"en": "the hat sat on the mat", "ja": "西都を上げる"}
ALIKE = {"en": "the cat sat on the mat", "ja": "制度を上げる"}
HOSTILE = "<img src=x onerror=alert(1)>"


@cache
def made(heard, count=24, **options):
    """A report of English and Japanese rows, in turns; ``heard`` gives what was recognized in each."""
    return replace(build_whole(), table=score_rows(heard, count, **options))


@cache
def build_whole():
    """One whole report, whose rows others replace: a comparison is of the rows."""
    record = {"made": "2026-11-01T00:00:00Z"}
    return evaluate.Report.of_scores("Nightly", score_rows(right, 24), record=record)


def score_rows(heard, count, *, voice="v", normalize="auto", **columns):
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
    return score(frame.assign(**columns), normalize=normalize).assign(loop=False)


def right(row, code):
    return RIGHT[code]


def wrong(row, code):
    return WRONG[code]


def alike(row, code):
    return ALIKE[code]


def verdicts(changes):
    return dict(zip(changes.summary["group"], changes.summary["verdict"], strict=True))


def test_what_is_worse_or_better_is_said():
    changes = made(wrong).compare(made(right))
    assert verdicts(changes) == {"v, en": "worse", "v, ja": "worse"}
    assert (changes.worse, changes.better) == (True, False)
    assert changes.summary["low"].isna().all()  # of twelve pairs
    assert changes.summary["p"].tolist() == pytest.approx([2**-11] * 2)
    assert changes.summary["p_holm"].tolist() == pytest.approx([2**-10] * 2)
    assert [words in changes.methods().text for words in ("sign-flip", "Holm")] == [True, True]


def test_japanese_goes_by_how_it_sounds():
    changes = made(alike).compare(made(right))
    assert verdicts(changes)["v, ja"] == "no difference shown"
    assert changes.summary.set_index("group").loc["v, ja", "unit"] == "reading"


def test_rows_without_a_partner_are_told_and_not_tested():
    changes = made(wrong, count=30).compare(made(right))
    assert "6 rows are in this report alone and not compared." in "\n".join(map(str, changes.findings))
    assert changes.summary["n"].sum() == 24
    unpaired = made(wrong, text="another text").compare(made(right))
    assert set(verdicts(unpaired).values()) == {"not paired"}
    assert (unpaired.worse, unpaired.paired, unpaired.figures()) == (False, False, {})
    assert "of other rows" in "\n".join(map(str, unpaired.findings))


def test_the_same_row_twice_has_partners_in_order():
    """Two takes of a sentence are two pairs, and no new sentence."""
    takes = tuple(f"r{row // 4}" for row in range(24))
    repeated = made(wrong, id=takes).compare(made(right, id=takes)).summary
    assert repeated["n"].tolist() == [12, 12]
    assert repeated["p"].tolist() == pytest.approx([2**-5] * 2)


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


def test_other_normalizers_are_refused_with_what_differs():
    with pytest.raises(InvalidRequestError, match=r"English: normalizer none-v1\S+ earlier, en-v\S+ now"):
        made(wrong).compare(made(right, normalize="none"))
    # versions of tools are another matter
    table = made(right).table
    signatures = table["signature"].astype(str).str.replace("rapidfuzz:3", "rapidfuzz:2")
    older = replace(made(right), table=table.assign(signature=signatures))
    assert made(wrong).compare(older).worse


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


@pytest.fixture(scope="module")
def fast():
    return timed(made(right))


def test_failed_and_few_calls_and_other_voices_are_not_slower(fast):
    factors = [1.4 if row % 2 else 0.7 for row in range(8)]
    noisy = fast.speed.assign(total_s=factors * fast.speed["total_s"], error=["it broke", *[None] * 7])
    few = timed(made(right), slower=1.5, count=5).compare(timed(made(right), count=5))
    twins = [fast.speed, fast.speed.assign(voice="w", total_s=2 * fast.speed["total_s"])]
    one, other = (replace(fast, speed=pd.concat(pair)) for pair in (twins, twins[::-1]))  # of one name
    found = [replace(fast, speed=noisy).compare(fast), few, one.compare(other)]
    ratios = [changes.differences[changes.differences["unit"] == "ratio"] for changes in found]
    assert [(changes.slower, set(rows["n"])) for changes, rows in zip(found, ratios, strict=True)] == [
        (False, {7}), (False, {5}), (False, {16}),
    ]  # fmt: skip
    assert ratios[1]["low"].isna().all()
    assert ratios[2][["low", "high"]].to_numpy() == pytest.approx(1)


def test_slower_fails_a_ci_job_only_where_asked(fast, tmp_path):
    slow = timed(made(right), slower=1.5)
    for name, report in (("fast", fast), ("slow", slow)):
        replace(report, drawings=()).save(tmp_path / name)

    def ends(*arguments):
        """The status of a command, and what it says or raises; reports are named by their folders here."""
        names = [str(tmp_path / word) if word in {"fast", "slow"} else word for word in arguments]
        done = CliRunner().invoke(app, ["study", *names])
        return done.exit_code, " ".join(f"{done.output} {done.exception or ''}".split())

    worse, slower = (["--fail-if", name] for name in ("worse", "slower"))
    assert ends("compare", "slow", "fast", *worse)[0] == 0
    status, told = ends("compare", "slow", "fast", *worse, *slower)
    assert status == 4
    assert "Slower: v, en (time to the first sound × 1.50, 95% interval 1.50 to 1.50" in told
    assert "machines, their load and the network may have been others" in told
    assert ends("compare", "fast", "slow", *slower)[0] == 0
    out = ("none.csv", "--out", "x")
    for command, words in (
        (["round-trip", *out, "--service", "a=", "--service", "b=http://x"], "the systems 'a', 'b'"),
        (["translation", *out], "is of another study"),
        # said before anything is read or sent
        (["round-trip", *out, *slower, "--speed", "0"], "give --speed 6 to both"),
    ):
        assert words in ends(*command, "--earlier", "slow")[1]
