"""A folder or a list of recordings is a table, wherever a table is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

import speechlab as sl
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
    assert sl.datasets.read(folder / "b.wav")["text"].tolist() == ["two cats"]


def test_texts_that_are_missing_or_damaged_are_counted(folder):
    (folder / "day 2" / "a.txt").write_bytes(b"\xff\xfe\x00")
    with (
        pytest.warns(UserWarning, match=r"a\.txt cannot be read as a text: the text is not UTF-8"),
        pytest.warns(UserWarning, match="1 of 2 rows have no text"),
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


def test_what_a_folder_cannot_have_is_refused(folder, tmp_path):
    with pytest.raises(InvalidRequestError, match="columns= is for manifests"):
        sl.datasets.read(folder, columns={"text": "sentence"})
    with pytest.raises(InvalidRequestError, match="give the unpacked folder, recordings, or a manifest"):
        sl.datasets.read(tmp_path / "recordings" / "day 2" / "..", layout="librispeech")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidRequestError, match="give the unpacked folder, recordings, or a manifest"):
        sl.datasets.read(tmp_path / "empty")
    with pytest.raises(InvalidRequestError, match="a list of the paths of recordings"):
        sl.datasets.read([5])


@pytest.mark.slow
def test_batches_studies_and_widgets_take_folders_and_lists(folder, tmp_path):
    lab = sl.system("two", transcribe=lambda clip: "two cats", translate=lambda text, **_: text, version="1")
    for table in (folder, str(folder), [folder], [folder / "b.wav", str(folder / "day 2" / "a.flac")]):
        done = sl.batch.transcribe(table, lab, store=str(tmp_path / "store"), progress=False)
        assert done["hypothesis"].tolist() == ["two cats"] * len(done)
        assert len(sl.show(table).frame) == len(done)
    texts = ["one", "two"]
    done = sl.batch.translate(texts, lab, source_lang="en", target_lang="ja", progress=False)
    assert done["translation"].tolist() == texts
    report = sl.evaluate.recognition(lab, folder, language="en", progress=False)
    assert report.table["error_rate"].tolist() == [0.0, 1.0]
    assert report.record["asked"]["rows"] == 2


def test_samples_in_a_manifest_are_recordings(tmp_path):
    path = tmp_path / "list.jsonl"
    path.write_text('{"sound": {"array": [0.0, 0.5], "sampling_rate": 8000}, "text": "hi"}\n')
    table = sl.datasets.read(path, columns={"audio": "sound"})
    assert sl.metrics.speech_measures(table)["duration_s"].tolist() == [2 / 8_000]
