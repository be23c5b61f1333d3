"""Tables as pandas users have them: of polars, lists of dicts, packed files, folders, Series, steps in a row."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from speechlab import batch
from speechlab.errors import InvalidRequestError
from support.batches import EN_JA, quiet, texts

FRAME = pd.DataFrame({"text": ["007", "b", "None"], "to": ["ja", "zh", "ja"], "n": [1, 2, 3]})
RESULTS = ["translation", "model", "prompt_tokens", "completion_tokens"]
TURNED = ["700", "b", "enoN"]


def translated(source, lab, folder, **options):
    return batch.translate(source, lab, store=folder / "s", source_lang="en", target_lang="to", **options)


@pytest.fixture
def files(tmp_path):
    """The same table in files of every kind."""
    there = tmp_path / "files"
    there.mkdir()
    FRAME.to_parquet(there / "t.parquet")
    FRAME.to_csv(there / "t.csv", index=False)
    FRAME.to_csv(there / "t.csv.gz", index=False)
    FRAME.to_csv(there / "t.tsv", index=False, sep="\t")
    FRAME.to_csv(there / "T.TSV.GZ", index=False, sep="\t", compression="gzip")
    lines = FRAME.to_json(orient="records", lines=True)
    (there / "t.jsonl").write_text(lines)
    (there / "t.ndjson").write_text(lines)
    (there / "t.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    folder = there / "parts"
    folder.mkdir()
    FRAME.iloc[:1].to_parquet(folder / "part-0.parquet")
    FRAME.iloc[1:].astype({"n": "float64"}).to_parquet(folder / "part-1.parquet")
    (folder / "_SUCCESS").touch()
    return there


@pytest.mark.slow
def test_files_of_every_kind(files, reverser, tmp_path):
    keys = set()
    for number, path in enumerate(sorted(files.iterdir())):
        source, rows = (str(path), 100) if number % 2 else (path, 2)
        table = translated(source, reverser, tmp_path, chunk_rows=rows, progress=False)
        assert table["translation"].tolist() == TURNED, path
        assert table["n"].tolist() == [1, 2, 3], path
        assert table.index.tolist() == [0, 1, 2], path
        keys.add(tuple(table["key"]))
        with pytest.raises(InvalidRequestError, match="'gone'; it has 'text', 'to'"):
            batch.plan_translation(path, reverser, target_lang=batch.Column("gone"), source_lang="en")
    assert len(keys) == 1


def test_a_folder_whose_names_hold_a_column(reverser, tmp_path):
    for language, rows in FRAME.groupby("to"):
        folder = tmp_path / "t" / f"to={language}"
        folder.mkdir(parents=True)
        rows.drop(columns="to").to_parquet(folder / "a.parquet")
    table = translated(tmp_path / "t", reverser, tmp_path, progress=False)
    assert sorted(table["translation"]) == sorted(TURNED)
    assert table["to"].astype(str).tolist() == ["ja", "ja", "zh"]


def test_a_folder_that_is_no_table(reverser, tmp_path):
    (tmp_path / "t.csv").write_text("text\na\n")
    with pytest.raises(InvalidRequestError, match=r"is a folder without Parquet files"):
        batch.plan_translation(tmp_path, reverser, **EN_JA)
    (tmp_path / "a.parquet").write_bytes(b"no Parquet")
    with pytest.raises(InvalidRequestError, match=r"cannot be read as a table"):
        batch.plan_translation(tmp_path, reverser, **EN_JA)
    FRAME.to_parquet(tmp_path / "a.parquet")
    FRAME.assign(n=[{"a": 1}] * 3).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InvalidRequestError, match=r"cannot be read as a table"):
        batch.plan_translation(tmp_path, reverser, **EN_JA)


def test_lists_of_dicts(reverser, tmp_path):
    rows = FRAME.to_dict("records")
    for source in (rows, tuple(rows), iter(rows), (row for row in rows)):
        table = translated(source, reverser, tmp_path, chunk_rows=2, progress=False)
        assert table["translation"].tolist() == TURNED
        assert table["n"].tolist() == [1, 2, 3]
    for source in ([*rows, "text"], iter([*rows, FRAME])):
        with pytest.raises(InvalidRequestError, match="all of its rows must be dicts"):
            translated(source, reverser, tmp_path, progress=False)


def test_a_table_of_polars_comes_back_as_one(reverser, tmp_path):
    frame = pl.from_pandas(FRAME).with_columns(
        pl.Series("of", [[1], None, []]),
        pl.Series("at", [{"a": 1}, None, {"a": 2}]),
        pl.Series("kind", ["x", None, "y"], dtype=pl.Enum(["y", "x"])),
        pl.Series("size", [10**30, None, 1], dtype=pl.Int128),
        pl.Series("any", [object(), None, 5], dtype=pl.Object),
    )
    for source in (frame, frame.lazy()):
        table = translated(source, reverser, tmp_path, progress=False)
        assert isinstance(table, pl.DataFrame)
        for name in frame.columns:
            assert table.schema[name] == frame.schema[name]
            assert table[name].to_list() == frame[name].to_list()
        assert table["translation"].to_list() == TURNED
        assert isinstance(table["status"].dtype, pl.Categorical | pl.Enum)
        slim = translated(table, reverser, tmp_path, prefix="again_", columns="result", progress=False)
        assert slim.columns == [*table.columns, *(f"again_{name}" for name in RESULTS)]
    plan = batch.plan_translation(frame, reverser, store=tmp_path / "s", source_lang="en", target_lang="to")
    assert isinstance(batch.assemble(plan), pl.DataFrame)


def test_pieces_may_be_of_any_kind(reverser, tmp_path):
    pieces = [pl.from_pandas(FRAME.iloc[:1]), pa.Table.from_pandas(FRAME.iloc[1:2]), FRAME.iloc[2:]]
    table = translated(pieces, reverser, tmp_path, progress=False)
    assert isinstance(table, pd.DataFrame)
    assert table["translation"].tolist() == TURNED


def test_a_series_is_a_table_of_one_column(reverser, store):
    series = pd.Series(["a", "b"], index=["x", "y"])
    for given, name in ((series, "text"), (series.rename("line"), "line"), (series.rename(3), 3)):
        for table in (
            batch.translate(given, reverser, **quiet(store)),
            given.speech.translate(reverser, **quiet(store)),
        ):
            assert table.columns[0] == name
            assert table.index.tolist() == ["x", "y"]
            assert table["translation"].tolist() == ["a", "b"]
    categories = pd.Series(["a", "b", "a"], dtype="category")
    assert categories.speech.translate(reverser, **quiet(store))["translation"].tolist() == ["a", "b", "a"]


# Bookkeeping


def test_only_the_results_if_that_is_wanted(reverser, store):
    frame = texts(2).assign(status=["new", "old"], key=[1, 2])
    with pytest.raises(InvalidRequestError, match=r"'status', 'key'; .*columns='result'"):
        batch.translate(frame, reverser, **quiet(store))
    table = batch.translate(frame, reverser, columns="result", **quiet(store))
    assert table.columns.tolist() == ["text", "status", "key", *RESULTS]
    pd.testing.assert_frame_equal(table[frame.columns], frame)
    run = batch.load(table, store)
    assert run.verify()
    assert run.table()["status (input)"].tolist() == ["new", "old"]
    assert run.table()["status"].tolist() == ["ok", "ok"]
    plan = batch.plan_translation(frame, reverser, columns="result", store=store, **EN_JA)
    assert batch.assemble(plan).columns.tolist() == table.columns.tolist()
    pieces = [frame.iloc[:1], frame.iloc[1:]]
    again = batch.translate(pieces, reverser, columns="result", **quiet(store))
    pd.testing.assert_frame_equal(again, table, check_categorical=False)
    with pytest.raises(InvalidRequestError, match=r"'translation'.*prefix='second_', or drop the old"):
        batch.translate(table, reverser, columns="result", **quiet(store))


def test_results_of_no_rows_alone(reverser, store):
    frame = texts(0)
    table = batch.translate(frame, reverser, columns="result", **quiet(store))
    assert table.columns.tolist()[1] == "translation"
    assert "status" not in batch.translate(iter(()), reverser, columns="result", **quiet(store))


@pytest.mark.engines
def test_steps_follow_one_another_without_prefixes(quick_lab, store):
    frame = pd.DataFrame({"text": ["One two three.", "Good morning."]})
    given = {"store": store, "progress": False}
    spoken = frame.speech.synthesize(quick_lab, voice="q: tone", **given)
    heard = spoken.speech.transcribe(quick_lab, language="en", **given)
    assert heard.columns.is_unique
    assert heard["status"].tolist() == ["ok", "ok"]
    assert (heard["key"] != spoken["key"]).all()
    assert batch.load(heard, store).verify()
    slim = frame.speech.synthesize(quick_lab, voice="q: tone", columns="result", **given)
    timed = slim.speech.transcribe(quick_lab, language="en", vad="segments", **given)
    pieces = batch.to_segments(timed, store)["text"].tolist()
    assert pieces == ["heard", "heard"]
    polars = batch.synthesize(pl.from_pandas(frame), quick_lab, voice="q: tone", **given)
    again = batch.transcribe(polars, quick_lab, language="en", vad="segments", **given)
    assert batch.to_segments(again, store)["text"].tolist() == pieces
    assert again["hypothesis"].to_list() == timed["hypothesis"].tolist()
    json.dumps(again["status"].to_list())
