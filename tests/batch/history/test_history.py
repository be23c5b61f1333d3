"""Runs of the past: found again, compared, verified, exported, and their failures told; on small services."""

import json
import shutil
import time
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import soundfile

from speechlab import batch
from speechlab.client import Client
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.store import Store
from support.batches import EN_JA, quiet, texts
from support.translator import reached, reply


def test_a_run_is_found_again_by_its_table_and_by_its_id(reverser, store):
    table = batch.translate(texts(3), reverser, **quiet(store))
    run = batch.load(table, store)
    assert run.id == table.attrs["speechlab_run"]
    assert batch.load(run.id, store.path).manifest == run.manifest
    assert run.manifest["service"] == "reverser/1"
    assert run.manifest["parameters"]["target_lang"] == "ja"
    assert batch.runs(store)["run"].tolist() == [run.id]
    pd.testing.assert_frame_equal(run.table(), table)
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
        pd.DataFrame({"text": ["a", "b"], "k": pd.Categorical(["x", "y"])}),
        pd.DataFrame({"text": ["c"], "k": pd.Categorical([1]), "late": ["l"]}),
    ]
    table = batch.translate(iter(pieces), reverser, **quiet(tmp_path / "s"))
    run = batch.load(table, tmp_path / "s")
    file = pd.read_parquet(run.export(tmp_path / "more.parquet"))
    assert file["k"].fillna("").tolist() == ["x", "y", "1"]
    assert file["late"].fillna("").tolist() == ["", "", "l"]
    monkeypatch.setattr("speechlab.tables._writing._MAX_PIECES_IN_MEMORY", 1)  # more are read twice
    pd.testing.assert_frame_equal(pd.read_parquet(run.export(tmp_path / "twice.parquet")), file)


def test_categories_stay_categories_in_pieces(reverser, store):
    pieces = [pd.DataFrame({"text": [text], "k": pd.Categorical([kind])}) for text, kind in ("ax", "by")]
    table = batch.translate(iter(pieces), reverser, **quiet(store))
    assert (table["k"].dtype, table["k"].tolist()) == ("category", ["x", "y"])
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


VOICE = "0f8fad5b-d9cb-469f-a165-70867728950e"
CALM = {
    "id": VOICE,
    "description": "calm",
    "language": "English",
    "gender": "Male",
    "streaming": False,
    "formats": ["flac"],
}
SEGMENTS = [{"start": 0.25, "end": 1.5, "text": "one"}, {"start": 1.75, "end": 2.0, "text": "two"}]


def sound(seconds, rate=8_000):
    out = BytesIO()
    soundfile.write(out, np.full(int(seconds * rate), 0.25, dtype=np.float32), rate, format="FLAC")
    return out.getvalue()


@pytest.fixture
def speaker():
    """A service that hears two segments in all recordings, and speaks half a second for texts, or one for "three"."""
    asked = []

    async def answer(head, body):
        if b"GET /tts/voices" in head:
            return reply(200, {"voices": [CALM]}, "X-Speechlab-Service: speaker/1")
        asked.append(head.split()[1])
        if b"/asr/" in head:
            return reply(200, {"language": "en", "confidence": 0.5, "segments": SEGMENTS})
        return reply(200, sound(1.0 if b"three" in body else 0.5)).replace(
            b"application/json", b"audio/flac", 1
        )

    with reached(answer, max_retries=0) as lab:
        lab.asked = asked
        yield lab


def test_recordings_in_a_moved_store_are_found(speaker, tmp_path):
    mine = tmp_path / "mine.flac"
    mine.write_bytes(sound(3))
    spoken = batch.synthesize(texts(2).assign(voice="calm"), speaker, store=tmp_path / "old", progress=False)
    frame = pd.DataFrame({"audio": [*spoken["audio"], str(mine)], "source": [*spoken["audio"], "by hand"]})
    frame["kind"] = frame["source"].astype("category")
    heard = batch.transcribe(frame, speaker, store=tmp_path / "old", progress=False)
    shutil.move(tmp_path / "old", tmp_path / "new")
    mine.unlink()
    run = batch.load(heard.attrs["speechlab_run"], tmp_path / "new")
    table = run.table()
    for name, left in (("audio", str(mine)), ("source", "by hand"), ("kind", "by hand")):
        assert [Path(path).is_file() for path in table[name]] == [True, True, False]
        assert {Path(path).parents[2] for path in table[name][:2]} == {tmp_path / "new"}
        assert table[name][2] == left
    assert table["kind"].dtype == "category"
    checked = run.verify()
    assert (checked.ok, checked.results, checked.outside) == (True, 3, 1)
    Path(table["audio"][0]).write_bytes(b"changed")
    assert "is not what its name says" in run.verify().problems[0]


def test_sound_that_was_cut_short_on_disk_is_asked_again(speaker, store):
    frame = texts(2).assign(voice="calm", text=["one", "two"])
    table = batch.synthesize(frame, speaker, store=store, progress=False)
    path = Path(table["audio"][0])
    assert table["audio"][1] == str(path)
    path.write_bytes(b"")  # as a machine leaves it that loses its power
    run = batch.load(table, store)
    assert "missing or truncated" in run.verify().problems[0]
    again = batch.synthesize(frame, speaker, store=store, progress=False)
    assert again["status"].tolist() == ["ok"] * 2
    assert path.read_bytes() == sound(0.5)
    assert run.verify()


def test_a_clock_set_back_gives_no_negative_duration(translator, reverser, store, monkeypatch):
    real, back_s = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() - back_s[0])

    def set_back(done, total):
        back_s[0] = 172_800.0

    translator.delay_s = 0.05
    batch.translate(texts(4), reverser, **quiet(store, progress=set_back))
    assert 0.05 <= batch.runs(store)["seconds"][0] < 600


def test_sound_of_zero_length_is_an_error_and_asked_again(store):
    empty, asked = BytesIO(), []
    soundfile.write(empty, np.zeros(0, dtype=np.float32), 8_000, format="WAV")

    async def answer(head, body):
        if b"GET /tts/voices" in head:
            return reply(200, {"voices": [{**CALM, "formats": ["wav"]}]})
        asked.append(body)
        return reply(200, empty.getvalue()).replace(b"application/json", b"audio/wav", 1)

    frame = texts(1).assign(voice="calm")
    with reached(answer, max_retries=0) as lab:
        for times in (1, 2):
            table = batch.synthesize(frame, lab, store=store, format="wav", progress=False)
            row = table.iloc[0]
            assert (row["status"], row["error_type"], row["attempts"]) == ("error", "ContractError", 1)
            assert "zero length" in row["error"]
            assert len(asked) == times


pytestmark = pytest.mark.filterwarnings("default:.* rows failed:UserWarning")


def told(function, *arguments, **options):
    """What a call returned, and the one warning that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        returned = function(*arguments, **options)
    assert len(caught) == 1, [str(one.message) for one in caught]
    assert caught[0].category is UserWarning
    assert caught[0].filename == __file__
    return returned, str(caught[0].message)


def test_reasons_are_counted_with_the_commonest_first(reverser, translator, store):
    translator.faults = {"number [3-6]$": 400, "number 7$": 403, "number 8$": 404}
    frame = pd.concat([texts(12), pd.DataFrame({"text": [None, 5, 6.5, 7.5]})]).set_axis(
        [f"row {n}" for n in range(16)]
    )
    table, text = told(batch.translate, frame, reverser, prefix="mt_", **quiet(store))
    assert text.startswith(
        "10 of 16 rows failed: 4 like 'HTTP 400 Err: no: 400'; 3 like \"column 'text' holds 5"
    )
    assert "; 2 for other reasons. " in text
    assert "sl.batch.failures(table, prefix='mt_')" in text
    reasons = batch.failures(table, prefix="mt_")
    assert reasons["rows"].tolist() == [4, 3, 1, 1, 1]
    assert reasons.iloc[0].tolist() == [4, "BadRequestError", 400, "HTTP 400 Err: no: 400", "row 3"]
    again = batch.failures(batch.load(table, store))
    pd.testing.assert_frame_equal(again, reasons)


def test_what_is_well_or_raised_is_not_told(reverser, translator, store):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = batch.translate(texts(2), reverser, **quiet(store))
        translator.faults = {"number 5": 400}
        with pytest.raises(ExceptionGroup):
            batch.translate(texts(6), reverser, on_error="raise", **quiet(store))
    assert batch.failures(table).empty
    assert batch.failures(pl.from_pandas(table)).empty
