"""Rows that fail in a study of recordings: kept with their reason, and told once."""

from __future__ import annotations

import html
import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from speechlab import batch, evaluate
from speechlab.audio import AudioClip
from speechlab.client import Client
from support.ears import Ears, ears
from support.planted import plant, right, spoil, study

__all__ = ["ears"]  # a fixture


def study_sounds(address, folder, **options):
    """Study three sounds, of which each is the word "word"."""
    clips = [AudioClip(np.full(64_000, level, np.float32), 16_000) for level in (0.1, 0.2, 0.3)]
    frame = pd.DataFrame({"audio": clips, "text": "word", "language": "en"})
    how = {"voice": None, "store": folder / "store", "progress": False, "concurrency": 1, **options}
    with Client(base_url=address, max_retries=0) as lab:
        return evaluate.recognition(lab, frame, **how)


def test_a_study_keeps_the_row_whose_segments_cannot_be_right(ears, tmp_path):
    Ears.backwards = {2}
    report = study_sounds(ears, tmp_path, vad="segments")
    assert report.tables["segments"]["position"].tolist() == [0, 2]
    assert report.table["hypothesis"].tolist() == ["word"] * 3
    assert report.table["status"].tolist() == ["ok"] * 3
    assert report.table["error"].str.contains("cannot be right").fillna(False).tolist() == [
        False,
        True,
        False,
    ]


@pytest.mark.slow
def test_a_study_tells_of_failed_rows_once_and_where_they_are(ears, tmp_path):
    Ears.failing = {2}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = study_sounds(ears, tmp_path, vad="segments")
    (warning,) = told
    assert str(warning.message) == "1 of 3 rows failed: 1 like 'HTTP 400: no'. report.failures() has them"
    assert warning.filename == __file__
    assert len(report.failures()) == 1


@pytest.mark.slow
def test_rows_that_were_not_asked_have_failed(ears, tmp_path):
    with pytest.warns(UserWarning, match="the batch stopped") as told:
        report = study_sounds(ears, tmp_path, budget=batch.Budget(calls=1))
    assert report.table["status"].tolist() == ["ok", "error", "error"]
    assert "not asked: the budget of 1 calls is used up" in report.table["error"].tolist()[2]
    said = [str(one.message) for one in told]
    assert said[0] == "the batch stopped: the budget of 1 calls is used up"
    assert said[1].startswith("2 of 3 rows failed: 2 like 'not asked: ")


@pytest.mark.slow
def test_failed_rows_and_counts_lead_to_their_rows():
    frame = plant(8, a=right, b=right, c=spoil(0.2))
    frame.loc[:1, "c"], frame.loc[2, "b"] = None, ""
    report = study(frame, "a", "b", "c")
    rows = report.build_shown_table()
    page = "".join(map(str, report.below(rows)))
    assert "2 of 8 rows of c failed: 2 like " in page
    links = [json.loads(html.unescape(link)) for link in re.findall(r'data-rows="([^"]*)"', page)]
    columns = {name for link in links for name, _ in [*link["categories"], *link["ranges"]]}
    assert columns <= set(rows.rows.layout.by_title)
    assert {"categories": [["status_c", ["error"]]], "ranges": []} in links
    assert ["empty_b", ["✓"]] in [category for link in links for category in link["categories"]]
