"""What the functions take: said by their signatures, and refused by type and in words before anything is asked."""

import inspect
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from speechlab import batch
from speechlab.batch import Column
from speechlab.client import AsyncClient
from support.arguments import list_accepted
from support.cells import cells
from support.texts import check_texts, list_calls

REFUSALS = Path(__file__).with_name("refusals.md")
WHOLE = {"synthesize": batch.synthesize, "transcribe": batch.transcribe, "translate": batch.translate}
NEEDED = {"translate": {"source_lang": "en", "target_lang": "ja"}}
FRAME = pd.DataFrame({"text": ["a"], "audio": [b"x"], "voice": ["v"]})

NUMBER = ["x", [1]]
WRONG = {
    "text": [0, None, ["text"], "gone", Column("gone")],
    "audio": [0, None, "gone"],
    "voice": [0, None, ["v"], "nobody", Column("gone"), Column(0)],
    "format": [5, ["wav"], "pcm", "gone", Column("gone")],
    "sample_rate": [*NUMBER, 1.5, True, -1, Column("gone")],
    "temperature": [*NUMBER, -1],
    "language": [5, ["en"], "x1", "the language"],
    "hotwords": [5, [5], {"Ada": "エイダ"}],
    "vad": ["loud", 7, 0.5],
    "min_silence_gap": [*NUMBER, -1],
    "segment_padding": [*NUMBER, 5001],
    "initial_segment_padding_ms": [*NUMBER, -1],
    "speech_pad_ms": [*NUMBER, -1],
    "min_segment_duration": [*NUMBER, -1],
    "top_p": [*NUMBER, 2],
    "frequency_penalty": [*NUMBER, 3],
    "repetition_penalty": [*NUMBER, 0],
    "session_id": [5, "x" * 200],
    "stream": ["yes", 1, True],
    "source_lang": [5, None, "", "the language", ["en"], Column("gone")],
    "target_lang": [5, None, " ", "tgt_lang", ["en"]],
    "keywords": [5, [5], {"会議室": "meeting room"}, ["x"] * 21, [""]],
    "context": [5, "x" * 2001],
    "model": [5, ["m"]],
    "respell": [5, "lexicon.csv", [("ja", "a", "b")]],
    "repeat": [-1, "x", 1.5, True, None],
    "store": [5, ["here"], b"here"],
    "prefix": [5, None],
    "columns": [5, None, "some", ["text"]],
    "chunk_rows": [0, "x", None, 1.5],
    "concurrency": [0, -1, "x", None, 2.5, True],
    "progress": [5, "x", None],
    "on_error": ["ignore", None, 5, ["row"]],
    "retry_failed": ["x", None, 1],
    "max_error_share": ["x", 2, -0.1, float("nan"), True],
    "budget": ["x", 5, {"calls": 5}],
    "executor": ["cluster", 5],
    "check": [5, "http://127.0.0.1", True],
    "takes": [*NUMBER, 0, 1.5, True],
    "fallback_voice": [0, ["v"], "nobody", Column("gone")],
    "rate": [0, -1, "x", float("nan"), True],
    "give_up_after_s": [-1, "x", float("nan"), True],
}


def parameters(function):
    return {
        name: one
        for name, one in inspect.signature(function).parameters.items()
        if one.kind is one.KEYWORD_ONLY
    }


@pytest.mark.parametrize("operation", WHOLE)
def test_wrong_arguments_are_refused_by_name(reverser, translator, store, operation):
    good = {"store": store, "progress": False, **NEEDED.get(operation, {})}
    if operation == "synthesize":
        good["voice"] = Column(
            "voice"
        )  # the small service has no voices; what is wrong besides is said first
    for name in parameters(WHOLE[operation]):
        values = {f"{value!r:.30}": value for value in WRONG[name]}
        call = partial(WHOLE[operation], FRAME, reverser)
        assert list_accepted(call, good, [name], values=values, aliases={name: "column"}) == {name: ""}
    assert not translator.calls
    assert not batch.runs(store)["status"].eq("finished").any()


@pytest.mark.slow
def test_refusals_are_a_few_lines_in_a_cell(reverser, translator, store, tmp_path):
    other = AsyncClient(translator.base_url)
    pair, found = "source_lang='en', target_lang='ja'", {}
    names = {"batch": batch, "frame": FRAME, "lab": reverser, "other": other, "store": store}
    with cells(tmp_path, files=tmp_path, **names) as run:
        for cell in list_calls(REFUSALS, "cells"):
            shown, error = run(cell)
            found[cell] = f"{type(error).__name__}: {error}".replace(translator.base_url, "(service)")
            found[cell] = found[cell].replace(str(Path.cwd()), "(folder)")
            assert len(shown.splitlines()) <= 12, shown
        check_texts(REFUSALS, "cells", found)
        (tmp_path / "a.csv").write_bytes("text\nCafé.\n".encode("latin-1"))
        (tmp_path / "a.parquet").write_text("no table")
        for cell, told in {
            f"batch.translate(files / 'a.csv', lab, {pair})": "a.csv cannot be read as a table: it is no UTF-8",
            f"batch.translate(files / 'a.parquet', lab, {pair})": "a.parquet cannot be read as a table: ",
            f"batch.translate(frame, lab, {pair}, store=files / 'a.csv', progress=False)": "cannot write ",
        }.items():
            shown, error = run(cell)
            assert told in str(error), (cell, error)
            assert isinstance(error.__cause__, Exception)  # its words are in the message, so it is not shown
            assert len(shown.splitlines()) <= 12, shown
        run("await other.aclose()")
