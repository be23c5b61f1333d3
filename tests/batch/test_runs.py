"""Plans, runs and tables, each alone: on a small service that can be told to misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pandas as pd
import pyarrow as pa
import pytest

from speechlab import batch
from speechlab.client import AsyncClient
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.store import Store
from support.stores import kept

EN_JA = {"source_lang": "en", "target_lang": "ja"}


def texts(count, start=0):
    return pd.DataFrame({"text": [f"text number {n}" for n in range(start, start + count)]})


def quiet(store, **options):
    return {**EN_JA, "store": store, "progress": False, **options}


def test_plan_run_and_assemble_each_alone(reverser, translator, store):
    frame = pd.DataFrame({"text": ["one", "two", "one", None]}, index=[5, 5, 6, 7])
    plan = batch.plan_translation(frame, reverser, store=store, **EN_JA)
    assert plan.summary() == {
        "rows": 4,
        "invalid": 1,
        "calls": 2,
        "cached": 0,
        "duplicates": 1,
        "characters": 6,
        "audio_s": 0,
    }
    assert not translator.calls
    assert batch.assemble(plan)["status"].tolist() == ["cancelled"] * 3 + ["error"]
    run = batch.run(plan, reverser, progress=False)
    assert run.status == "finished"
    assert run.manifest["statuses"] == {"ok": 3, "error": 1}
    assert run.manifest["usage"] == {"calls": 2, "characters": 6, "audio_s": 0, "tokens": 8}
    assert dict(translator.calls) == {"one": 1, "two": 1}
    table = batch.assemble(plan)
    assert table.index.equals(frame.index)
    assert table["translation"].tolist()[:3] == ["eno", "owt", "eno"]
    pd.testing.assert_frame_equal(run.table()[["text", "translation"]], table[["text", "translation"]])
    assert run.table().dtypes.equals(table.dtypes)


def test_what_a_run_spent_counts_once(reverser, store):
    frame = pd.DataFrame({"text": ["one", "one", "three"]})
    first = batch.translate(frame, reverser, **quiet(store))
    assert first["usage_characters"].tolist() == [3, 0, 5]
    assert first["usage_tokens"].tolist() == [4, 0, 6]
    assert first["attempts"].tolist() == [1, 0, 1]
    assert (first["first_byte_s"] <= first["latency_s"]).all()
    again = batch.translate(frame, reverser, **quiet(store))
    assert again["usage_characters"].sum() == 0
    assert {str(first[name].dtype) for name in ("usage_characters", "usage_tokens")} == {"Int64"}


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
    assert batch.diff(*folders)[["row", "change"]].values.tolist() == [[2, "added"]]
    with Store(tmp_path / "empty"), pytest.raises(StoreError, match="has no run yet"):
        batch.load(tmp_path / "empty")


def test_no_key_is_written_down(translator, store):
    from speechlab.client import Client

    with Client(base_url=translator.base_url, api_key="sl:very-secret-indeed") as lab:
        table = batch.translate(texts(2), lab, **quiet(store))
    run = batch.load(table, store)
    run.export(store.path / "out.parquet")
    for path in store.path.rglob("*"):
        assert not path.is_file() or b"very-secret" not in path.read_bytes()
    assert "very-secret" not in repr(run) + json.dumps(run.manifest)


def test_two_runs_are_compared_row_by_row(reverser, translator, store):
    one = texts(4)
    two = one.assign(text=["text number 0", "changed", "text number 2", "refused"]).drop(2)
    two.loc[9] = "added"
    translator.faults = {"refused": 400}
    a = batch.translate(one, reverser, **quiet(store))
    b = batch.translate(two, reverser, **quiet(store))
    assert batch.diff(a, batch.load(a, store), store).empty
    found = batch.diff(a, b, store)
    assert set(zip(found["row"], found["change"], found["column"].fillna(""), strict=True)) == {
        (1, "changed", "translation"),
        (2, "removed", ""),
        (3, "changed", "status"),
        (3, "changed", "translation"),
        (3, "changed", "model"),
        (3, "changed", "error"),
        (9, "added", ""),
    }
    assert found.loc[found["row"] == 1, "b"].tolist() == ["degnahc"]


def test_a_run_that_was_tampered_with_says_so(reverser, store):
    table = batch.translate(texts(3), reverser, **quiet(store))
    run = batch.load(table, store)
    assert run.verify()
    assert run.verify().results == 3
    key = table["key"].iloc[1]
    kept = store.get(key)
    store.put(key, operation="translate", request=kept.request, response={**kept.response, "text": "other"})
    assert "not those that the run wrote down" in run.verify().problems[0]
    path = store.part_path(run.record.parts[0])
    path.write_bytes(path.read_bytes() + b" ")
    assert "missing or was changed" in run.verify().problems[0]
    path.unlink()
    assert not run.verify()
    with pytest.raises(StoreError, match="cannot be read"):
        run.table()


SOURCES = {
    "parquet": lambda frame, path: frame.to_parquet(path) or path,
    "csv": lambda frame, path: frame.to_csv(path, index=False) or path,
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True) or path,
    "arrow": lambda frame, path: pa.Table.from_pandas(frame),
    "list": lambda frame, path: [frame.iloc[:30], frame.iloc[30:]],
    "iterator": lambda frame, path: iter([frame.iloc[:30], frame.iloc[30:]]),
}


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
    assert len(run.record.parts) == {"arrow": 1, "list": 3, "iterator": 3}.get(kind, 3)
    out = run.export(tmp_path / "out.parquet")
    exported = pd.read_parquet(out)
    assert exported["translation"].tolist() == table["translation"].tolist()
    assert exported.index.tolist() == table.index.tolist()
    assert b"speechlab_run" in pa.parquet.read_schema(out).metadata


def test_a_table_that_is_none(reverser, store, tmp_path):
    (tmp_path / "rows.txt").write_text("text\n")
    (tmp_path / "bad.parquet").write_bytes(b"no such thing")
    for source, words in (
        (tmp_path / "gone.csv", "does not exist"),
        (tmp_path, "ends in 'nothing'"),
        (tmp_path / "rows.txt", "ends in '.txt'; give a DataFrame"),
        (tmp_path / "bad.parquet", "cannot be read as a table"),
        (7, "the table is a int"),
        ({"text": ["a"]}, "the table is a dict"),
        ([{"text": "a"}], "gives a dict; it must give DataFrames"),
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
        "https://example.com/a.wav": "is an address",
        7: "holds 7 (int) in this row, and must hold a path",
    }
    cells = [path if isinstance(path, int) else str(path) for path in words]
    frame = pd.DataFrame({"audio": pd.Series(cells, dtype=object)})
    plan = batch.plan_transcription(frame, reverser, store=store)
    assert plan.summary()["invalid"] == len(words)
    for error, expected in zip(plan.rows, words.values(), strict=True):
        assert expected in str(error)


def test_awaited_it_is_the_same(translator, store):
    async def everything():
        async with AsyncClient(base_url=translator.base_url) as lab:
            plan = await batch.aplan_translation(texts(5), lab, store=store, **EN_JA)
            run = await batch.arun(plan, lab, progress=False)
            return run, await batch.atranslate(texts(5), lab, **quiet(store))

    run, table = asyncio.run(everything())
    assert run.manifest["statuses"] == {"ok": 5}
    assert table["status"].tolist() == ["cached"] * 5


def test_failed_rows_are_asked_again_unless_told_otherwise(reverser, translator, store):
    translator.faults = {"number 1": 400}
    assert batch.translate(texts(3), reverser, **quiet(store))["status"].tolist() == ["ok", "error", "ok"]
    translator.faults = {}
    left = batch.translate(texts(3), reverser, **quiet(store, retry_failed=False))
    assert left["status"].tolist() == ["cached", "skipped", "cached"]
    assert left["http_status"].tolist()[1] == 400
    assert left["error_type"].tolist()[1] == "BadRequestError"
    again = batch.translate(texts(3), reverser, **quiet(store))
    assert again["status"].tolist() == ["cached", "ok", "cached"]


def test_errors_can_be_raised_at_the_end(reverser, translator, store):
    translator.faults = {"number 1": 400}
    with pytest.raises(ExceptionGroup, match="1 requests failed") as caught:
        batch.translate(texts(3), reverser, **quiet(store, on_error="raise"))
    assert caught.value.exceptions[0].status == 400
    assert kept(store) == 2
    with pytest.raises(InvalidRequestError, match="'row' or 'raise'"):
        batch.translate(texts(3), reverser, **quiet(store, on_error="ignore"))
    with pytest.raises(InvalidRequestError, match="'speed' is no option of transcribe"):
        batch.transcribe(pd.DataFrame({"audio": []}), reverser, store=store, speed=3)


def test_a_hopeless_run_stops_and_says_why(reverser, translator, store):
    translator.faults = {"number": 403}
    with pytest.warns(UserWarning, match="20 of 20 calls failed, more than the 50%"):
        table = batch.translate(texts(200), reverser, **quiet(store, concurrency=1))
    counts = table["status"].value_counts()
    assert counts["error"] == 20
    assert counts["cancelled"] == 180
    assert "max_error_share" in table["error"].iloc[-1]
    run = batch.load(table, store)
    assert (run.status, run.manifest["statuses"]) == ("stopped", {"error": 20, "cancelled": 180})
    translator.faults = {}
    assert (batch.translate(texts(200), reverser, **quiet(store))["status"] == "ok").all()


@pytest.mark.parametrize(
    ("budget", "asked"),
    [({"calls": 7}, 7), ({"characters": 60}, 4), ({"calls": 0}, 0), ({"characters": 1e9}, 30)],
)
def test_a_budget_is_not_passed(reverser, translator, store, budget, asked):
    import contextlib

    with pytest.warns(UserWarning, match="is used up") if asked < 30 else contextlib.nullcontext():
        table = batch.translate(texts(30), reverser, **quiet(store, budget=batch.Budget(**budget)))
    assert sum(translator.calls.values()) == asked
    assert (table["status"] == "ok").sum() == asked
    assert table["usage_characters"].sum() <= budget.get("characters", 1e9)
    with pytest.raises(InvalidRequestError, match="budget calls is -1"):
        batch.Budget(calls=-1)


def test_a_pace_is_kept(reverser, translator, store):
    began = time.monotonic()
    batch.translate(texts(20), reverser, **quiet(store, rate=50))
    assert time.monotonic() - began >= 19 / 50
    with pytest.raises(InvalidRequestError, match="rate is 0"):
        batch.translate(texts(20), reverser, **quiet(store, rate=0))


def test_an_interrupt_keeps_everything(reverser, translator, store):
    translator.delay_s = 0.02

    def interrupt():
        while sum(translator.calls.values()) < 50:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        batch.translate(texts(2000), reverser, **quiet(store))
    done = kept(store)
    assert 0 < done < 2000
    run = batch.load(batch.runs(store)["run"].iloc[-1], store)
    assert run.status == "interrupted"
    assert run.manifest["statuses"]["ok"] == done
    assert run.table()["status"].value_counts()["cancelled"] == 2000 - done
    # those under way were let finish
    assert sum(translator.calls.values()) == done


def test_a_cancelled_task_lets_go_of_its_store(translator, tmp_path):
    translator.delay_s = 0.02

    async def begin_and_cancel():
        async with AsyncClient(base_url=translator.base_url) as lab:
            work = asyncio.create_task(batch.atranslate(texts(500), lab, **quiet(tmp_path / "s")))
            while sum(translator.calls.values()) < 30:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work

    asyncio.run(begin_and_cancel())
    with Store(tmp_path / "s") as store:
        assert batch.runs(store)["status"].tolist() == ["interrupted"]
        assert kept(store) > 0


BAR = """
import pandas as pd, sys
from speechlab import batch
from speechlab.client import Client
lab = Client(base_url=sys.argv[1])
frame = pd.DataFrame({"text": [f"text {n}" for n in range(40)]})
batch.translate(frame, lab, source_lang="en", target_lang="ja", store=sys.argv[2])
"""


def test_the_bar_is_for_terminals(translator, tmp_path):
    import fcntl
    import pty
    import struct
    import termios

    command = [sys.executable, "-c", BAR, translator.base_url]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    plain = subprocess.Popen([*command, str(tmp_path / "a")], **pipes)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    process = subprocess.Popen([*command, str(tmp_path / "b")], stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 4096):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(150) == 0
    assert b"translate: 100%" in shown
    assert b"errors=0" in shown
    assert b"tokens=" in shown, shown
    assert b"call/s" in shown
    assert plain.communicate(timeout=150)[0] == b""
    assert plain.returncode == 0


def test_progress_that_fails_stops_the_run(reverser, translator, store):
    translator.delay_s = 0.02

    def told(done, total):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        batch.translate(texts(500), reverser, **quiet(store, progress=told))
    assert kept(store) < 500


def test_cells_of_a_text_file_are_what_is_written_there_in_every_piece(reverser, tmp_path):
    written = ["NA", "007", "None", "1.50", "null", "", "plain"]
    lines = [f"{text},{number}" for number, text in enumerate(written)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,n", *lines]))
    rows = [json.dumps({"text": text, "n": number}) for number, text in enumerate(written)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    for kind in ("csv", "jsonl"):
        for size in (1, 2, 100):
            options = quiet(tmp_path / f"{kind}{size}", chunk_rows=size)
            table = batch.translate(tmp_path / f"rows.{kind}", reverser, **options)
            assert table["status"].tolist() == ["ok"] * 5 + ["error", "ok"]
            done = table[table["status"] == "ok"]
            assert done["translation"].tolist() == [text[::-1] for text in written if text]
            assert table["n"].tolist() == list(range(7))


def test_pieces_that_differ_in_their_types_and_columns_become_one_file(reverser, tmp_path):
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


def test_cells_that_no_file_can_hold_cost_nothing_of_the_run(reverser, store, tmp_path):
    frame = texts(2).assign(z=[1 + 2j, 3j], o=[{1}, object], p=pd.period_range("2024", periods=2, freq="Y"))
    table = batch.translate(frame, reverser, **quiet(store))
    assert table["status"].tolist() == ["ok", "ok"]
    run = batch.load(table, store)
    assert run.verify()
    assert run.table()["z"].tolist() == ["(1+2j)", "3j"]
    assert run.table()["p"].tolist() == frame["p"].tolist()
    assert pd.read_parquet(run.export(tmp_path / "out.parquet"))["z"].tolist() == ["(1+2j)", "3j"]


def test_a_store_that_is_not_there_is_not_made_by_looking_for_it(tmp_path):
    for look in (batch.runs, lambda store: batch.load("20260101-000000-00000000", store)):
        with pytest.raises(StoreError, match="there is no store in"):
            look(tmp_path / "stroe")
    assert not (tmp_path / "stroe").exists()
