"""Tables as a source of rows, and what their cells may hold; on a small service."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pytest

from speechlab import batch
from speechlab.errors import InvalidRequestError
from support.batches import EN_JA, quiet, texts

SOURCES = {
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True) or path,
    "arrow": lambda frame, path: pa.Table.from_pandas(frame),
    "iterator": lambda frame, path: iter([frame.iloc[:30], frame.iloc[30:]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_tables_come_from_everywhere(kind, reverser, store, tmp_path):
    frame = texts(50)
    frame.loc[41, "text"] = frame.loc[3, "text"]
    whole = batch.translate(frame, reverser, **quiet(tmp_path / "other"))
    source = SOURCES[kind](frame, tmp_path / f"rows.{kind}")
    table = batch.translate(source, reverser, **quiet(store, chunk_rows=20))
    told = ["text", "translation", "model", "prompt_tokens", "error_type", "key"]
    pd.testing.assert_frame_equal(table[told], whole[told])
    assert table.dtypes.equals(whole.dtypes)
    run = batch.load(table, store)
    assert run.manifest["output_sha256"] == batch.load(whole, tmp_path / "other").manifest["output_sha256"]
    assert len(run.record.parts) == (1 if kind == "arrow" else 3)
    out = run.export(tmp_path / "out.parquet")
    exported = pd.read_parquet(out)
    assert exported["translation"].tolist() == table["translation"].tolist()
    assert exported.index.tolist() == table.index.tolist()
    assert b"speechlab_run" in pa.parquet.read_schema(out).metadata


def test_a_table_that_is_none(reverser, store, tmp_path):
    (tmp_path / "rows.txt").write_text("text\n")
    (tmp_path / "bad.parquet").write_bytes(b"no such thing")
    (tmp_path / "folder").mkdir()
    for source, words in (
        (tmp_path / "gone.csv", "does not exist"),
        (tmp_path / "folder", "is a folder without Parquet files"),
        (tmp_path / "rows.txt", r"ends in '\.txt'; give a path that ends in \.parquet"),
        (tmp_path / "bad.parquet", "cannot be read as a table"),
        (7, "the table is a int"),
        ({"text": ["a"]}, "the table is a dict"),
        ([["a"]], "gives a list; it must give DataFrames or dicts"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            batch.translate(source, reverser, **quiet(store))
    (tmp_path / "empty.parquet").unlink(missing_ok=True)
    texts(0).to_parquet(tmp_path / "empty.parquet")
    assert len(batch.translate(tmp_path / "empty.parquet", reverser, **quiet(store))) == 0
    twice = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(InvalidRequestError, match="several columns named 'text'"):
        batch.translate(twice, reverser, **quiet(store))
    with pytest.raises(InvalidRequestError, match="only once"):
        batch.plan_translation(iter([texts(1)]), reverser, store=store, **EN_JA).summary()


@pytest.mark.slow
def test_cells_of_a_text_file_are_as_written(reverser, tmp_path):
    written = ["NA", "007", "None", "1.50", "null", "", "plain"]
    lines = [f"{text},{number}" for number, text in enumerate(written)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,n", *lines]))
    rows = [json.dumps({"text": text, "n": number}) for number, text in enumerate(written)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    for kind in ("csv", "jsonl"):
        for size in (2, 100):
            options = quiet(tmp_path / f"{kind}{size}", chunk_rows=size)
            table = batch.translate(tmp_path / f"rows.{kind}", reverser, **options)
            assert table["status"].tolist() == ["ok"] * 5 + ["error", "ok"]
            done = table[table["status"] == "ok"]
            assert done["translation"].tolist() == [text[::-1] for text in written if text]
            assert table["n"].tolist() == list(range(7))


def test_strange_cells_are_error_rows(reverser, store):
    cells = ["fine", None, float("nan"), pd.NA, 5, b"bytes", ["list"], "half \ud800 pair", " "]
    frame = pd.DataFrame({"text": pd.Series(cells, dtype=object)})
    table = batch.translate(frame, reverser, **quiet(store))
    assert table["status"].tolist() == ["ok"] + ["error"] * 8
    assert table["error"].str.contains("is empty in this row").tolist() == [False] + [True] * 3 + [False] * 5
    assert batch.load(table, store).table()["status"].tolist() == table["status"].tolist()
    assert batch.load(table, store).verify()


def test_recordings_that_cannot_be_read_say_why(reverser, store, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop.wav").symlink_to(tmp_path / "loop.wav")
    words = {
        tmp_path / "gone.wav": "there is no file",
        tmp_path: "is a folder",
        tmp_path / "file" / "inside.wav": "cannot be read: Not a directory",
        tmp_path / ("x" * 300): "cannot be read: File name too long",
        tmp_path / "loop.wav": "cannot be read: Too many levels",
        "null\0.wav": "cannot be read",
        "": "is empty in this row",
        " ": "is empty in this row",
        "https://me:pw@example.com/a.wav?key=1": "cannot be read",
        "data:audio/wav;base64,"
        + "UklG" * 9_000: "data of 36,022 characters (data:audio/wav;base64…), where a path",
        "UklG" * 9_000: "a text of 36,000 characters ('UklGUklGUklGUklGUklG'…) is no path",
        7: "holds 7 (int) in this row, and must hold a recording",
    }
    cells = [path if isinstance(path, int) else str(path) for path in words]
    frame = pd.DataFrame({"audio": pd.Series(cells, dtype=object)})
    plan = batch.plan_transcription(frame, reverser, store=store)
    assert plan.summary()["invalid"] == len(words)
    for error, expected in zip(plan.rows, words.values(), strict=True):
        assert expected in str(error)
        assert len(str(error)) < 500
