"""Corrections of references: applied where they fit, refused where they do not, and never written into the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab import datasets
from speechlab.audio import AudioClip, FileSegment
from speechlab.errors import InvalidRequestError


def fixes(*rows):
    return pd.DataFrame(rows, columns=["row", "old", "new"]).assign(by="Ada", when="2026-11-24", why="heard")


def test_a_data_set_is_read_with_corrections_and_its_file_stays(tmp_path):
    AudioClip(np.zeros(800, np.float32), 8_000).save(tmp_path / "a.wav")
    manifest = tmp_path / "list.csv"
    manifest.write_text("audio,text,language\na.wav,ten cats,en\n")
    before = manifest.read_bytes()
    fixes(("a.wav", "ten cats", "ten “hats”,\n=1")).to_csv(tmp_path / "fixes.csv", index=False)
    table = datasets.read(manifest, corrections=tmp_path / "fixes.csv")
    assert table["text"].tolist() == ["ten “hats”,\n=1"]
    assert table["text"].dtype == "string"
    assert manifest.read_bytes() == before


def test_rows_are_named_alike_wherever_the_data_lie():
    here = ["/data/x/one/a.wav", "/data/x/two/a.wav", "/data/x/b.wav", FileSegment("/data/x/c.wav", 1.5, 4)]
    there = ["/mnt/x/one/a.wav", "/mnt/x/two/a.wav", "/mnt/x/b.wav", FileSegment("/mnt/x/c.wav", 1.5, 4)]
    keys = datasets.row_keys(pd.DataFrame({"audio": here}))
    assert keys == ["one/a.wav", "two/a.wav", "b.wav", "c.wav#t=1.5,4"]
    assert datasets.row_keys(pd.DataFrame({"audio": there})) == keys
    assert datasets.row_keys(pd.DataFrame({"audio": here, "id": list("pqrs")})) == list("pqrs")
    assert datasets.row_keys(pd.DataFrame({"text": ["x", "y"]})) == ["row 1", "row 2"]
    assert datasets.row_keys(pd.DataFrame({"audio": ["a.wav", "a.wav"]})) == ["row 1", "row 2"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=6))
@settings(max_examples=25)
def test_keys_are_unique_and_find_their_rows(names):
    frame = pd.DataFrame({"audio": [f"{folder}/{file}.wav" for folder, file in names], "text": "old"})
    keys = datasets.row_keys(frame)
    assert len(set(keys)) == len(keys)
    table = datasets.apply_corrections(frame, fixes(*((key, "old", f"new {key}") for key in keys)))
    assert table["text"].tolist() == [f"new {key}" for key in keys]


def test_a_correction_that_fits_no_row_changes_nothing():
    for row, old, why in (
        ("a.wav", "other", "has the text 'ten cats', not 'other'"),
        ("z.wav", "ten cats", "there is no such row. Rows have the names of row_keys, such as 'a.wav'"),
        ("same.wav", "x", "2 rows have this name"),
    ):
        frame = pd.DataFrame(
            {"audio": ["/d/a.wav", "/p/same.wav", "/q/same.wav"], "text": ["ten cats", "x", "x"]}
        )
        with pytest.raises(InvalidRequestError, match="1 of 2 corrections fit no row") as refused:
            datasets.apply_corrections(
                frame, fixes(("a.wav", "ten cats", "ten hats"), (row, old, "new"))[::-1]
            )
        assert why in str(refused.value)
        assert frame["text"].tolist() == ["ten cats", "x", "x"]


def test_corrections_of_one_row_follow_each_other():
    frame = pd.DataFrame({"id": ["a"], "text": ["one"]}, index=[7])
    table = datasets.apply_corrections(frame, fixes(("a", "one", "two"), ("a", "two", "three")))
    assert table["text"].to_dict() == {7: "three"}


def test_a_file_that_holds_no_corrections_is_refused_in_words(tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    frame = pd.DataFrame({"id": ["a"], "text": ["one"]})
    with pytest.raises(InvalidRequestError, match="row, old, new, by, when and why"):
        datasets.apply_corrections(frame, tmp_path / "other.csv")
    with pytest.raises(InvalidRequestError, match="no file of corrections"):
        datasets.apply_corrections(frame, tmp_path / "none.csv")


def test_corrections_are_read_as_spreadsheets_write_them(tmp_path):
    data = pd.DataFrame({"id": ["a", "b"], "text": ["=ten", "two"]})
    file = tmp_path / "fixes.csv"
    file.write_text("row;old;new;by;when;why\na;'=ten;'=one;Ada;;\n", encoding="utf-16")
    assert datasets.apply_corrections(data, file)["text"].tolist() == ["=one", "two"]
