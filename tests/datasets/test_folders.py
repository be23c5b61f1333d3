"""Folders and lists of recordings as tables; corrections of references, applied where they fit alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import speechlab as sl
from speechlab import datasets
from speechlab.audio import AudioClip, FileSegment
from speechlab.errors import InvalidRequestError

CLIP = sl.AudioClip([0.0, 0.1] * 400, 8_000)


@pytest.fixture
def folder(tmp_path):
    """Two recordings with their texts, one of them deeper; and what is none."""
    home = tmp_path / "recordings"
    for name in ("b.wav", "day 2/a.flac", ".trash/c.wav"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        CLIP.save(home / name)
    (home / "b.txt").write_text("two\ncats\n", "utf-8")
    (home / "day 2" / "a.txt").write_text("\ufeffone cat", "utf-8")
    (home / "._b.wav").write_bytes(b"x")
    return home


def test_a_folder_gives_a_row_for_each_recording(folder):
    table = sl.datasets.read(folder, language="en")
    assert table.columns.tolist() == ["audio", "text", "language"]
    assert [Path(path).relative_to(folder).as_posix() for path in table["audio"]] == ["b.wav", "day 2/a.flac"]
    assert table["text"].tolist() == ["two cats", "one cat"]
    assert sl.datasets.read([folder / "day 2", str(folder / "b.wav")])["text"].tolist() == [
        "one cat",
        "two cats",
    ]
    assert sl.datasets.read(folder.glob("b.w*"))["text"].tolist() == ["two cats"]


def test_texts_that_are_missing_or_damaged_are_counted(folder):
    (folder / "day 2" / "a.txt").write_bytes(b"\xff\xfe\x00")
    with (
        pytest.warns(UserWarning, match=r"a\.txt cannot be read as a text: the text is not UTF-8"),
        pytest.warns(UserWarning, match=r"1 of 2 rows have no text, the first: a\.flac"),
    ):
        table = sl.datasets.read(folder)
    assert table["text"].isna().tolist() == [False, True]
    for file in folder.rglob("*.txt"):
        file.unlink()
    assert sl.datasets.read(folder).columns.tolist() == ["audio"]


def test_formats_that_nobody_decodes_are_named(folder):
    (folder / "x.m4a").write_bytes(b"x")
    with pytest.warns(
        UserWarning, match=r"left out \(1 \.m4a\); convert them first, as by ffmpeg -i talk\.m4a"
    ):
        assert len(sl.datasets.read(folder)) == 2


def test_a_manifest_goes_first_unless_it_names_no_recordings(folder):
    (folder / "notes.csv").write_text("day,weather\n1,fine\n")
    with pytest.warns(
        UserWarning, match=r"notes\.csv names no recordings, so the rows are the 2 recordings in"
    ):
        assert len(sl.datasets.read(folder)) == 2
    (folder / "notes.csv").write_text("file,sentence\nb.wav,two hats\n")
    assert sl.datasets.read(folder)["text"].tolist() == ["two hats"]


@pytest.mark.slow
def test_batches_studies_and_widgets_take_folders_and_lists(folder, tmp_path):
    lab = sl.system("two", transcribe=lambda clip: "two cats", translate=lambda text, **_: text, version="1")
    for table in (folder, [folder / "b.wav", str(folder / "day 2" / "a.flac")]):
        done = sl.batch.transcribe(table, lab, store=str(tmp_path / "store"), progress=False)
        assert done["hypothesis"].tolist() == ["two cats"] * len(done)
        assert len(sl.show(table).frame) == len(done)
    texts = ["one", "two"]
    done = sl.batch.translate(texts, lab, source_lang="en", target_lang="ja", progress=False)
    assert done["translation"].tolist() == texts
    report = sl.evaluate.recognition(lab, folder, language="en", progress=False)
    assert report.table["error_rate"].tolist() == [0.0, 1.0]
    assert report.record["asked"]["rows"] == 2


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
    for audio in (here, there):
        keys = datasets.row_keys(pd.DataFrame({"audio": audio}))
        assert keys == ["one/a.wav", "two/a.wav", "b.wav", "c.wav#t=1.5,4"]
    assert datasets.row_keys(pd.DataFrame({"audio": here, "id": list("pqrs")})) == list("pqrs")
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


def test_corrections_are_read_as_spreadsheets_write_them(tmp_path):
    data = pd.DataFrame({"id": ["a", "b"], "text": ["=ten", "two"]})
    file = tmp_path / "fixes.csv"
    file.write_text("row;old;new;by;when;why\na;'=ten;'=one;Ada;;\n", encoding="utf-16")
    assert datasets.apply_corrections(data, file)["text"].tolist() == ["=one", "two"]
