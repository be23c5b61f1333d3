"""Functions that take many calls at once: what they get, and that each row has its own result, error and time."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import batch
from speechlab.errors import ConfigurationError, InvalidRequestError, RateLimitError
from speechlab.store import Store
from support.clock import ends_within
from support.functions import spoken

RATE = 8_000
LANGS = {"source_lang": "en", "target_lang": "ja"}
FULL = {"max_wait_s": 60}  # batches begin only once they are full


def texts(count):
    return pd.DataFrame({"text": ["x" * (number % 17) + f" {number}" for number in range(count)]})


def reverse_all(given, calls=None):
    if calls is not None:
        calls.append(list(given))
    return [text[::-1] for text in given]


def translate(table, lab, store, **options):
    return batch.translate(table, lab, **LANGS, store=store, progress=False, **options)


def test_rows_are_gathered_with_others_of_their_length(tmp_path):
    calls = []
    table = texts(100)
    with sl.system(
        "many", translate_batch=lambda rows: reverse_all(rows, calls), version="1", batch_size=20, **FULL
    ) as lab:
        made = translate(table, lab, tmp_path)
        assert made["translation"].tolist() == [text[::-1] for text in table["text"]]
        assert len(calls) == 5
        assert all(sorted(call, key=len, reverse=True) == call for call in calls)
        assert np.median([len(call[0]) - len(call[-1]) for call in calls]) < 12
        again = translate(table, lab, tmp_path)
    assert again["status"].tolist() == ["cached"] * 100
    assert len(calls) == 5


def test_calls_of_a_batch_have_the_same_fields(tmp_path):
    calls = []

    def heard(clips, language=None):
        calls.append(language)
        time.sleep(0.1)
        return [f"{clip.frames} in {language}" for clip in clips]

    clips = [sl.AudioClip([0.1] * (100 + number), RATE) for number in range(20)]
    table = pd.DataFrame({"audio": clips, "language": ["en", "ja"] * 10})
    with sl.system("many", transcribe_batch=heard, version="1", batch_size=10, **FULL) as lab:
        made = batch.transcribe(table, lab, language="language", store=tmp_path, progress=False)
    assert made["hypothesis"][5] == "105 in ja"
    assert sorted(calls) == ["en", "ja"]
    assert made["latency_s"].min() >= 0.1
    assert made["processing_s"].nunique() <= 2  # each call has its share of the time of its batch
    assert 0.01 <= made["processing_s"].min() <= made["latency_s"].max() / 10
    with sl.system("many", transcribe_batch=heard, version="1") as lab:
        assert lab.transcribe(clips[0], language="zh").text == "100 in zh"  # after a moment, alone


def test_other_results_are_errors_of_their_rows(tmp_path):
    for result, words in (
        (lambda rows: rows[1:], "returned 9 results for 10 texts; return a list with one result for each"),
        (lambda rows: {*rows}, r"\(set\) for 10 texts"),  # whose order is not that of the texts
    ):
        with sl.system("many", translate_batch=result, version="1", batch_size=10, **FULL) as lab:
            made = translate(texts(10), lab, tmp_path)
            assert made["error"].str.contains(words).all()

    def mixed(rows):
        given = [ValueError("bad") if text[-1] == "3" else 5 if text[-1] == "4" else text for text in rows]
        rows.clear()  # which is its own list
        return given

    with sl.system("many", translate_batch=mixed, version="1") as lab:
        made = translate(texts(6), lab, tmp_path)
    assert made["status"].tolist() == ["ok", "ok", "ok", "error", "error", "ok"]
    assert made["error"][3] == "the function of translate of 'many' failed: ValueError: bad"
    assert "returned 5 (int); return a text" in made["error"][4]


def test_a_row_that_spoils_its_batch_fails_alone(tmp_path):
    calls = []

    def fragile(rows):
        reverse_all(rows, calls)
        if any(text.endswith(" 7") for text in rows):
            raise ValueError("no such text")
        return reverse_all(rows)

    table = texts(64)
    with sl.system("many", translate_batch=fragile, version="1", batch_size=32, **FULL) as lab:
        made = translate(table, lab, tmp_path)
    assert made["status"].tolist() == ["error" if number == 7 else "ok" for number in range(64)]
    assert (
        "translate of 'many' failed: ValueError: no such text (test_batched_functions.py" in made["error"][7]
    )
    assert made["translation"][8] == table["text"][8][::-1]
    assert len(calls) == 2 + 2 * 5  # halves of 32, down to one
    with Store(tmp_path) as store:
        assert 'raise ValueError("no such text")' in store.attempts(made["key"][7])[0].error


class Panic(BaseException):
    """As of a library in Rust."""


ENDS = [Panic("it broke"), SystemExit("it broke"), asyncio.CancelledError("it broke")]


@pytest.mark.parametrize(
    ("form", "error"),
    [*product(["translate_batch", "translate"], ENDS), ("async", ENDS[2])],
    ids=str,
)
def test_whatever_a_function_raises_is_the_error_of_its_row(form, error, tmp_path):
    def answer(text, **_):
        if "x" in text:
            raise error
        return text

    async def later(text, **_):
        return answer(text)

    functions = {
        "translate": {"translate": answer},
        "translate_batch": {"translate_batch": lambda given: [answer(text) for text in given]},
        "async": {"translate": later},
    }
    with sl.system("odd", version="1", **functions[form]) as lab, ends_within(20):
        made = translate(pd.DataFrame({"text": ["a", "x", "b"]}), lab, tmp_path)
    assert made["status"].tolist() == ["ok", "error", "ok"]
    assert made["error"].str.contains("broke").tolist() == [False, True, False]


def test_batches_of_other_forms(tmp_path):
    calls = []

    def busy(rows):
        calls.append(len(rows))
        if len(calls) < 3:
            raise RateLimitError("later", status=429, retry_after_s=0.01)
        return reverse_all(rows)

    async def generator(rows):
        for row in reverse_all(rows):
            yield row

    for function in (busy, generator):
        with sl.system("many", translate_batch=function, version=function.__name__) as lab:
            made = translate(texts(5), lab, tmp_path)
        assert made["translation"][3] == "3 xxx"
        assert (made["attempts"].max() >= 2) == (function is busy)

    def speak(rows, voice):
        return [spoken(row, voice) for row in rows]

    rows = texts(6).assign(voice=["anna", "bert"] * 3)
    with sl.system("many", synthesize_batch=speak, voices=["anna", "bert"], version="1") as lab:
        made = batch.synthesize(rows, lab, store=tmp_path, progress=False)
        assert made["status"].tolist() == ["ok"] * 6
        with lab.stream_speech("a bc", voice="anna") as stream:
            assert stream.collect().duration_s == lab.synthesize("a bc", voice="anna").duration_s


@pytest.mark.parametrize("wait_s", [0.01, 60])
def test_a_client_that_is_closed_ends_the_calls_of_its_batches(wait_s):
    free = threading.Event()
    lab = sl.system("many", translate_batch=lambda rows: free.wait(60), version="1", max_wait_s=wait_s)
    try:
        with ThreadPoolExecutor(2) as threads:
            calls = [threads.submit(lab.translate, text, **LANGS) for text in ("ab", "cd")]
            time.sleep(0.3)
            lab.close()
            for call in calls:
                with pytest.raises(ConfigurationError, match="this client is closed"):
                    call.result(20)
    finally:
        free.set()


def test_the_size_of_batches_is_part_of_the_key(tmp_path):
    calls = []
    for size in (4, 2, 4):
        with sl.system(
            "many", translate_batch=lambda rows: reverse_all(rows, calls), version="1", batch_size=size
        ) as lab:
            translate(texts(4), lab, tmp_path)
    assert [len(call) for call in calls] == [4, 2, 2]


@pytest.mark.slow
def test_a_study_says_how_many_texts_the_batch_size_changes(tmp_path):
    def padded(rows):
        return [row[::-1] + ("." if row != rows[0] and row[-1] in "24" else "") for row in rows]

    table = texts(6).assign(source_lang="en", target_lang="ja")
    how = {"store": tmp_path, "progress": False}
    with sl.system("many", translate_batch=padded, version="1") as lab:
        report = sl.evaluate.translation(lab, table, other_batch_size=1, **how)
        plain = sl.evaluate.translation(lab, table, **how)
        with pytest.raises(InvalidRequestError, match="needs a function in batches of another size"):
            sl.evaluate.translation(lab, table, other_batch_size=32, **how)
    assert "2 of 6 texts change in batches of 1." in report.notes
    assert not any("batches" in note for note in plain.notes)
