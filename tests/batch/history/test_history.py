"""Runs of the past: found again, compared, verified and exported; on a small service."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from speechlab import batch
from speechlab.client import Client
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.store import Store
from support.batches import EN_JA, quiet, texts


def test_a_run_is_found_again_by_its_table_and_by_its_id(reverser, store):
    table = batch.translate(texts(3), reverser, **quiet(store))
    run = batch.load(table, store)
    assert run.id == table.attrs["speechlab_run"]
    assert batch.load(run.id, store.path).manifest == run.manifest
    assert run.manifest["service"] == "reverser/1"
    assert run.manifest["parameters"]["target_lang"] == "ja"
    assert batch.runs(store)["run"].tolist() == [run.id]
    pd.testing.assert_frame_equal(run.table(), table)
    with pytest.raises(StoreError, match="has no run 'nothing'; its latest are: 20"):
        batch.load("nothing", store)
    with pytest.raises(InvalidRequestError, match="speechlab_run"):
        batch.load(pd.DataFrame(), store)


def test_the_folder_of_a_run_gives_its_latest(reverser, tmp_path):
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        batch.translate(texts(2), reverser, **quiet(folder))
    latest = batch.translate(texts(3), reverser, **quiet(folders[1]))
    assert batch.load(folders[1]).id == batch.load(str(folders[1])).id == latest.attrs["speechlab_run"]
    assert batch.load(folders[1]).verify()
    with Store(tmp_path / "empty"), pytest.raises(StoreError, match="has no run yet"):
        batch.load(tmp_path / "empty")


def test_looking_for_a_store_makes_none(tmp_path):
    for look in (batch.runs, lambda store: batch.load("20260101-000000-00000000", store)):
        with pytest.raises(StoreError, match="there is no store in"):
            look(tmp_path / "stroe")
    assert not (tmp_path / "stroe").exists()


def test_no_key_is_written_down(translator, store):
    with Client(base_url=translator.base_url, api_key="sl:very-secret-indeed") as lab:
        table = batch.translate(texts(2), lab, **quiet(store))
    run = batch.load(table, store)
    run.export(store.path / "out.parquet")
    for path in store.path.rglob("*"):
        assert not path.is_file() or b"very-secret" not in path.read_bytes()
    assert "very-secret" not in repr(run) + json.dumps(run.manifest)


def test_a_run_that_was_tampered_with_says_so(reverser, store):
    table = batch.translate(texts(3), reverser, **quiet(store))
    run = batch.load(table, store)
    assert run.verify()
    assert run.verify().results == 3
    key = table["key"].iloc[1]
    kept = store.get(key)
    store.put(key, operation="translate", request=kept.request, response={**kept.response, "text": "other"})
    assert "differ from the recorded digest" in run.verify().problems[0]
    path = store.part_path(run.record.parts[0])
    path.write_bytes(path.read_bytes() + b" ")
    assert "missing or was changed" in run.verify().problems[0]
    path.unlink()
    assert not run.verify()
    with pytest.raises(StoreError, match="cannot be read"):
        run.table()


@pytest.mark.slow
def test_export_joins_pieces_of_different_columns(reverser, tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text(
        "text,n,d,b\na,1,,True\nb,2,,False\nc,,x,\nd,2.5,y,True\ne,,z,maybe\nf,9,,1\n"
    )
    plan = batch.plan_translation(
        tmp_path / "rows.csv", reverser, store=tmp_path / "s", chunk_rows=2, **EN_JA
    )
    run = batch.run(plan, reverser, progress=False)
    file = pd.read_parquet(run.export(tmp_path / "out.parquet"))
    assert file["text"].tolist() == list("abcdef")
    assert file["n"].fillna(-1).tolist() == [1, 2, -1, 2.5, -1, 9]
    assert file["d"].fillna("").tolist() == ["", "", "x", "y", "z", ""]
    assert file["b"].fillna("").tolist() == ["true", "false", "", "true", "maybe", "1"]
    assert run.verify()

    pieces = [
        pd.DataFrame(
            {"text": ["a", "b"], "k": pd.Categorical(["x", "y"]), "n": pd.array([1, None], "Int64")}
        ),
        pd.DataFrame({"text": ["c"], "k": pd.Categorical([1]), "n": [0.5], "late": ["l"]}),
        pd.DataFrame({"text": ["d"], "n": pd.to_datetime(["2024-01-01"])}),
    ]
    table = batch.translate(iter(pieces), reverser, **quiet(tmp_path / "s"))
    run = batch.load(table, tmp_path / "s")
    pd.testing.assert_frame_equal(run.table(), table)
    file = pd.read_parquet(run.export(tmp_path / "more.parquet"))
    assert file["text"].tolist() == list("abcd")
    assert file["k"].fillna("").tolist() == ["x", "y", "1", ""]
    assert file["late"].fillna("").tolist() == ["", "", "l", ""]
    assert file["n"].tolist()[0] == "1"
    assert file["n"].tolist()[3].startswith("2024-01-01")
    monkeypatch.setattr(
        "speechlab.tables._writing._MAX_PIECES_IN_MEMORY", 2
    )  # of more pieces, which are read twice
    pd.testing.assert_frame_equal(pd.read_parquet(run.export(tmp_path / "twice.parquet")), file)


def test_cells_that_no_file_can_hold_cost_nothing_of_the_run(reverser, store, tmp_path):
    frame = texts(2).assign(z=[1 + 2j, 3j], o=[{1}, object], p=pd.period_range("2024", periods=2, freq="Y"))
    table = batch.translate(frame, reverser, **quiet(store))
    assert table["status"].tolist() == ["ok", "ok"]
    run = batch.load(table, store)
    assert run.verify()
    assert run.table()["z"].tolist() == ["(1+2j)", "3j"]
    assert run.table()["p"].tolist() == frame["p"].tolist()
    assert pd.read_parquet(run.export(tmp_path / "out.parquet"))["z"].tolist() == ["(1+2j)", "3j"]


def test_categories_stay_categories_in_pieces(reverser, store):
    pieces = [pd.DataFrame({"text": [text], "k": pd.Categorical([kind])}) for text, kind in ("ax", "by")]
    table = batch.translate(iter(pieces), reverser, **quiet(store))
    assert table["k"].dtype == "category"
    assert table["k"].tolist() == ["x", "y"]
    pd.testing.assert_frame_equal(batch.load(table, store).table(), table)


def test_export_escapes_formulas_without_loss(reverser, tmp_path):
    for ending in (".csv", ".tsv"):
        texts = ["=1+1", "+1", "-1", "@a", "'=2", "it's", "plain"]
        frame = pd.DataFrame({"text": texts, "=n": [-1.5, 2, 3, 4, 5, 6, 7]})
        table = batch.translate(frame, reverser, **quiet(tmp_path / "s"))
        path = batch.load(table, tmp_path / "s").export(tmp_path / f"out{ending}")
        raw = pd.read_csv(path, sep="\t" if ending == ".tsv" else ",", keep_default_na=False)
        assert raw["text"].tolist() == ["'=1+1", "'+1", "'-1", "'@a", "''=2", "it's", "plain"]
        assert raw["'=n"].tolist() == frame["=n"].tolist()
        again = batch.plan_translation(path, reverser, store=tmp_path / "s", prefix="again_", **EN_JA)
        rows = next(again.source.iter_pieces(100, {"text"}))
        assert rows["text"].tolist() == texts
        assert rows["=n"].tolist() == frame["=n"].tolist()
        assert again.summary()["cached"] == len(texts)
