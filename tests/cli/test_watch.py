"""``speechlab watch`` as cron runs it: the same set asked again, and the status that says what became of it."""

import os
from dataclasses import replace

import pandas as pd
import pytest

from evaluate.test_watch import nights
from speechlab import evaluate
from support.clients import KEY
from support.forked import speechlab
from support.studies import serving

pytestmark = pytest.mark.slow

STUDY = 'study = "round-trip"\ninput = "set.csv"\nout = "watched"\nvoice = ["low"]\n[service]\nours = ""\n'


@pytest.fixture
def place(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    texts = ["good morning", "good evening"]
    pd.DataFrame({"id": ["a", "b"], "text": texts, "language": "en"}).to_csv(
        tmp_path / "set.csv", index=False
    )
    return tmp_path


def test_each_run_asks_again_and_is_kept_beside_the_others(place):
    with serving() as staged:
        where = {**os.environ, "SPEECHLAB_BASE_URL": staged.base_url, "SPEECHLAB_API_KEY": KEY}
        for _ in range(2):
            done = speechlab("watch", place / "study.toml", env=where, cwd=place)
            assert done.returncode == 0, done.stderr
        said = [call["text"] for call in staged.voice.calls]
        assert sorted(said[:2]) == sorted(said[2:]) == ["good evening", "good morning"]
    runs = sorted(one.parent for one in (place / "watched").glob("*/record.json"))
    assert len(runs) == 2
    assert "Nothing is shown to have become worse in 2 runs." in done.stdout
    assert evaluate.verify(place / "watched" / "report.html")
    assert not (place / "watched" / "unfinished").exists()
    (place / "set.csv").write_text("id,text,language\na,good night,en\n")
    done = speechlab("watch", place / "study.toml", env=where, cwd=place)
    assert done.returncode == 2
    assert "is not the table of the first run any more" in done.stderr.replace("\n", " ")


def test_a_change_ends_with_4_and_looking_asks_nobody(place):
    for night, report in enumerate(nights([0.05] * 2 + [0.5] * 2, count=12)):
        replace(report, drawings=()).save(place / "watched" / f"2026-11-{night + 10}")
    done = speechlab("watch", "--look", place / "study.toml", cwd=place)
    assert done.returncode == 4, done.stderr
    assert "The error rate of other in German has been higher since about run 3. " in done.stdout


def test_what_is_wrong_in_the_file_is_told(place):
    for text, why in (
        ("study = [", "cannot be read"),
        (STUDY.replace("round-trip", "weather"), "cannot be watched"),
        (STUDY.replace("set.csv", "nowhere.csv"), "is not there"),
    ):
        (place / "study.toml").write_text(text)
        done = speechlab("watch", place / "study.toml", cwd=place)
        assert done.returncode == 2
        assert why in done.stderr.replace("\n", " ")
