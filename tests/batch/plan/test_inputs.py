"""Tables as pandas users have them: of polars, lists of dicts, files, folders, Series; cells; steps in a row."""

import gzip
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from speechlab import batch
from speechlab.errors import InvalidRequestError
from support.batches import EN_JA, quiet, texts

FRAME = pd.DataFrame({"text": ["007", "NA", "None"], "to": ["ja", "zh", "ja"], "n": [1, 2, 3]})
RESULTS = ["translation", "model", "prompt_tokens", "completion_tokens"]
TURNED = ["700", "AN", "enoN"]


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
    keys, digests = set(), set()
    for number, path in enumerate(sorted(files.iterdir())):
        source, rows = (str(path), 100) if number % 2 else (path, 2)
        table = translated(source, reverser, tmp_path, chunk_rows=rows, progress=False)
        assert table["translation"].tolist() == TURNED, path
        assert table["n"].tolist() == [1, 2, 3], path
        assert table.index.tolist() == [0, 1, 2], path
        keys.add(tuple(table["key"]))
        run = batch.load(table, tmp_path / "s")
        digests.add(run.manifest["output_sha256"])
        assert len(run.record.parts) == (1 if number % 2 and path.is_file() else 2), path
        with pytest.raises(InvalidRequestError, match="'gone'; it has 'text', 'to'"):
            batch.plan_translation(path, reverser, target_lang=batch.Column("gone"), source_lang="en")
    assert (len(keys), len(digests)) == (1, 1)
    exported = pq.read_schema(run.export(tmp_path / "out.parquet"))
    assert b"speechlab_run" in exported.metadata


def test_a_folder_whose_names_hold_a_column(reverser, tmp_path):
    for language, rows in FRAME.groupby("to"):
        folder = tmp_path / "t" / f"to={language}"
        folder.mkdir(parents=True)
        rows.drop(columns="to").to_parquet(folder / "a.parquet")
    table = translated(tmp_path / "t", reverser, tmp_path, progress=False)
    assert sorted(table["translation"]) == sorted(TURNED)
    assert table["to"].astype(str).tolist() == ["ja", "ja", "zh"]


def test_lists_of_dicts(reverser, tmp_path):
    rows = FRAME.to_dict("records")
    for source in (rows, iter(rows), pa.Table.from_pandas(FRAME)):
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
    timed = batch.transcribe(
        pl.from_pandas(spoken[["audio"]]), quick_lab, language="en", vad="segments", **given
    )
    assert batch.to_segments(timed, store)["text"].tolist() == ["heard", "heard"]
    json.dumps(timed["status"].to_list())


def test_a_table_that_is_none(reverser, store, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"no such thing")
    for folder in ("folder", "bad", "two"):
        (tmp_path / folder).mkdir()
    (tmp_path / "folder" / "t.csv").write_text("text\na\n")
    (tmp_path / "bad" / "a.parquet").write_bytes(b"no Parquet")
    FRAME.to_parquet(tmp_path / "two" / "a.parquet")
    FRAME.assign(n=[{"a": 1}] * 3).to_parquet(tmp_path / "two" / "b.parquet")
    for source, words in (
        (tmp_path / "folder", "is a folder without Parquet files"),
        (tmp_path / "bad", "cannot be read as a table"),
        (tmp_path / "two", "cannot be read as a table"),
        (tmp_path / "bad.parquet", "cannot be read as a table"),
        ({"text": ["a"]}, "the table is a dict"),
        ([["a"]], "gives a list; it must give DataFrames or dicts"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            batch.translate(source, reverser, **quiet(store))
    texts(0).to_parquet(tmp_path / "empty.parquet")
    assert len(batch.translate(tmp_path / "empty.parquet", reverser, **quiet(store))) == 0
    twice = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(InvalidRequestError, match="several columns named 'text'"):
        batch.translate(twice, reverser, **quiet(store))
    with pytest.raises(InvalidRequestError, match="only once"):
        batch.plan_translation(iter([texts(1)]), reverser, store=store, **EN_JA).summary()


def test_strange_cells_are_error_rows(reverser, store):
    cells = ["fine", None, float("nan"), pd.NA, 5, b"bytes", ["list"], "half \ud800 pair", " "]
    frame = pd.DataFrame({"text": pd.Series(cells, dtype=object)})
    table = batch.translate(frame, reverser, **quiet(store))
    assert table["status"].tolist() == ["ok"] + ["error"] * 8
    assert table["error"].str.contains("is empty in this row").tolist() == [False] + [True] * 3 + [False] * 5
    assert batch.load(table, store).table()["status"].tolist() == table["status"].tolist()
    assert batch.load(table, store).verify()


def test_recordings_that_cannot_be_read_say_why(reverser, store, tmp_path):
    (tmp_path / "loop.wav").symlink_to(tmp_path / "loop.wav")
    words = {
        tmp_path / "gone.wav": "there is no file",
        tmp_path: "is a folder",
        tmp_path / "loop.wav": "cannot be read: Too many levels",
        "null\0.wav": "cannot be read",
        " ": "is empty in this row",
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
