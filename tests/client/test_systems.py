"""Functions as systems: in calls, streams, batches, the store and studies, in threads and in processes."""

import io
import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import batch
from speechlab.errors import APITimeoutError, ContractError, EngineError, InvalidRequestError
from speechlab.store import Store
from support.functions import Counting, slowly, spoken
from support.texts import check_refusals

RATE = 8_000
LOCK = threading.Lock()


def tone(seconds: float = 0.5, rate: int = RATE) -> sl.AudioClip:
    return sl.AudioClip(0.5 * np.sin(np.arange(round(seconds * rate)) / 9), rate)


def heard(clip, language=None):
    return f"{clip.frames} frames at {clip.sample_rate} in {language}"


def words(text, source_lang, target_lang):
    for word in text.split():
        yield f"{target_lang}:{word} "


def test_a_function_gets_the_clip_at_its_rate_and_any_language(mine, tmp_path):
    assert mine.transcribe(tone(), language="fr").text == "4000 frames at 8000 in fr"
    assert mine.transcribe(tone()).language == ""
    stereo = sl.AudioClip(np.zeros((100, 2), np.float32), 48_000)
    assert mine.transcribe(stereo).text == "100 frames at 48000 in None"
    given = []
    with sl.system("keeps", transcribe=lambda clip: given.append(clip) or "", version="1") as lab:
        samples = np.float32(0.1) + np.zeros(10, np.float32)  # is no multiple of a 16-bit step
        lab.transcribe(sl.AudioClip(samples, RATE))
    assert np.array_equal(given[0].samples, samples)
    with sl.system("at 16", transcribe=heard, sample_rate=16_000, version="1") as lab:
        path = tone().save(tmp_path / "a.wav")
        for audio in (tone(), path, path.read_bytes()):
            assert lab.transcribe(audio).text == "8000 frames at 16000 in None"


@pytest.fixture
def mine(tmp_path):
    with sl.system(
        "mine", transcribe=heard, synthesize=spoken, translate=words, voices={"anna": "English"}, version="1"
    ) as lab:
        yield lab


def test_the_usage_counts_seconds_of_recordings_of_every_form(mine, tmp_path):
    for kind in ("wav", "mp3"):
        path = tone(1.5).save(tmp_path / f"a.{kind}")
        seconds = pytest.approx(sl.AudioClip.from_file(path).duration_s, abs=0.01)
        data = path.read_bytes()
        for form in (path, data, io.BytesIO(data), {"path": None, "bytes": data}):
            before = mine.usage.recognized_s
            mine.transcribe(form)
            assert mine.usage.recognized_s - before == seconds, form
    before = mine.usage.recognized_s
    for _ in range(2):  # of which the second asks nothing
        batch.transcribe(pd.DataFrame({"audio": [str(path)]}), mine, store=tmp_path, progress=False)
    assert mine.usage.recognized_s - before == seconds


def test_an_iterator_streams_and_ends_with_its_stream():
    going_on, left = threading.Event(), threading.Event()

    def two(text, voice):
        try:
            yield [0.1] * 800, RATE
            assert going_on.wait(60)
            while True:
                yield [0.2] * 800, RATE
        finally:
            left.set()

    with sl.system("two", synthesize=two, version="1") as lab:
        with lab.stream_speech("a", voice="default") as stream:
            clips = stream.clips()
            assert next(clips).frames == 800  # before the second is made
            going_on.set()
            assert next(clips).frames > 0
        assert left.wait(60)


def test_texts_and_sounds_beyond_the_contract(mine):
    long = "word" + " " * 10_000 + "s"
    assert mine.synthesize(long, voice="anna").duration_s == pytest.approx(0.5)
    assert mine.translate(long, source_lang="sw", target_lang="cy").text.split() == ["cy:word", "cy:s"]
    clip = mine.synthesize("a bc", voice="anna", format="flac")
    assert (clip.format, clip.sample_rate, clip.voice) == ("flac", RATE, "anna")


SEGMENT = {"start": 0.0, "end": 1.0, "text": "hello there"}


WORDS = [
    {"word": " hello", "start": 0.1, "end": 0.4, "probability": 0.75},
    {"word": " there", "start": 0.5, "end": 0.9},
]


FORMS = {
    "text": ("hello there", 0),
    "transcript": (sl.Transcript("hello there", language="en"), 0),
    "dict": ({"text": " hello there", "language": "en"}, 0),
    "tuples": ([(0.0, 0.5, "hello"), (0.5, 1.0, "there")], 2),
    "dicts": (iter([{**SEGMENT, "text": " hello"}, {"start": 1, "end": 2, "text": " there"}]), 2),
    "pipeline": ({"text": "hello there", "chunks": [{"timestamp": (0.0, 1.0), "text": "hello there"}]}, 1),
    "words": ({"text": "hello there", "segments": [{**SEGMENT, "words": WORDS}]}, 1),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_a_transcript_come_through_the_store(form, tmp_path):
    reply, segments = FORMS[form]
    with sl.system("forms", transcribe=lambda clip: reply, version="1", store=tmp_path) as lab:
        first = lab.transcribe(tone(), language="en")
        # a copy for another process has what the first has kept
        again = pickle.loads(pickle.dumps(lab.with_options(mode="replay"))).transcribe(tone(), language="en")
    for transcript in (first, again):
        assert (transcript.text, transcript.language) == ("hello there", "en")
        assert len(transcript.segments) == segments
        assert (transcript.words is None) == (form != "words")
        if form == "words":
            assert transcript.words["word"].tolist() == ["hello", "there"]
            assert transcript.words["confidence"].tolist()[0] == 0.75
            assert transcript.words["confidence"].isna().tolist() == [False, True]
            assert transcript.words["end"].tolist() == [0.4, 0.9]


@pytest.mark.parametrize("result", [7, None, [7], {"other": 1}])
def test_another_result_is_said_in_words(result):
    told = pytest.raises((ContractError, InvalidRequestError), match=r"return a text|has the fields other")
    with sl.system("odd", transcribe=lambda clip: result, version="1") as lab, told:
        lab.transcribe(tone())


class Performing:
    """An object that performs operations of every kind."""

    def __init__(self):
        self.asked = []

    async def perform(self, operation):
        self.asked.append(operation)
        if isinstance(operation, sl.client.Synthesize):
            return sl.client.Reply(audio=([0.1] * 800, RATE))
        if isinstance(operation, sl.client.Transcribe):
            body = {"text": f"{operation.audio.frames} frames", "confidence": np.float32(0.5)}
            return sl.client.Reply(body)
        return sl.client.Reply({"text": operation.text.upper(), "model": "shout", "prompt_tokens": 3})


def test_an_object_that_performs_operations_is_a_service(tmp_path):
    asked = {"source_lang": "en", "target_lang": "ja"}
    mine = Performing()
    with sl.system("mine", service=mine, voices=["anna"], version="1", store=tmp_path) as lab:
        first = lab.translate("a", **asked)
        assert (first.text, first.model, first.usage.prompt_tokens) == ("A", "shout", 3)
        assert lab.translate("a", **asked) == first
        assert lab.transcribe(tone(), language="fr", hotwords=["x"]).confidence == 0.5
        assert lab.synthesize("a", voice="anna", format="flac").frames == 800
        assert (mine.asked[1].hotwords, mine.asked[2].voice) == (["x"], "anna")
        with pytest.raises(InvalidRequestError, match="no function for transcribe_stream"):
            lab.transcribe(tone(), stream=True)


def test_replies_of_an_object_are_checked():
    given, reply = [None], sl.client.Reply
    lab = sl.system("odd", service=type("Odd", (), {"perform": lambda *_: given[0]})(), version="1")
    asked = {"source_lang": "en", "target_lang": "ja"}
    calls = {
        "translate": lambda: lab.translate("a", **asked),
        "translated stream": lambda: lab.stream_translation("a", **asked).collect(),
        "transcribe": lambda: lab.transcribe(tone()),
        "synthesize": lambda: lab.synthesize("a", voice="default"),
        "spoken stream": lambda: lab.stream_speech("a", voice="default", format="wav").collect(),
    }
    texts = [*calls][:3]
    with lab:
        for given[0], names, told in (
            *((reply(*wrong), calls, r"\w") for wrong in ((), ("a",), ({"text": float("nan")},))),
            (reply({"text": "\ud800"}), texts, "surrogates not allowed"),
            (reply({"text": "b"}, audio=5), ["translate"], "a Reply whose audio is 5"),
            ("text", ["translate"], "return a sl.client.Reply, such as Reply"),
        ):
            for name in names:
                with pytest.raises(ContractError, match=told):
                    calls[name]()
        given[0] = reply({"text": "b"}, audio=tone())  # one object may give both
        assert [calls[name]().text for name in texts] == ["b"] * 3
        assert calls["synthesize"]().frames == calls["spoken stream"]().frames == tone().frames


def test_refusals_of_systems(mine):
    names = {"sl": sl, "mine": mine, "clip": tone(), "heard": heard, "spoken": spoken}
    check_refusals(
        Path(__file__).with_name("refusals.md"), "systems", performing=Performing(), lock=LOCK, **names
    )


KEYS = {  # as stores of earlier versions have them
    "transcribe": ("385a5dae79ae82d8", "f70decaba8e05467"),
    "translate": ("13398ffacfe1cd39",),
    "synthesize": ("b6c7c142d00ed5ca", "93ae2e375eeaba39"),
    "stream_speech": ("a393c28019244545",),
    "stream_translation": ("e77a806411b2ca43",),
}


def test_keys_stay_those_of_earlier_stores(tmp_path):
    def translated(text, source_lang, target_lang, keywords=None, context=None):
        return text

    def recognized(clip, language=None, hotwords=None, temperature=None):
        return "a"

    def said(text, voice, sample_rate=None, temperature=None):
        yield [0.1] * 800, RATE

    store, how = Store(tmp_path), {"source_lang": "sw", "target_lang": "cy"}
    functions = {"transcribe": recognized, "translate": translated, "synthesize": said}
    with sl.system("mine", **functions, voices={"anna": "English"}, version="1", store=store) as lab:
        lab.transcribe(tone(), language="fr", hotwords=["x"], temperature=0.5)
        lab.transcribe(tone())
        lab.translate("a b", **how, keywords=["k"], context="c")
        lab.synthesize("a bc", voice="anna", format="flac")
        lab.synthesize("a bc", voice=lab.voices()["anna"], sample_rate=8000, temperature=0.5)
        lab.stream_speech("a", voice="anna").collect()
        lab.stream_translation("a b", **how).collect()
    made = {name: {key[:16] for key, _ in store.newest(name, 9)} for name in KEYS}
    store.close()
    assert made == {name: set(keys) for name, keys in KEYS.items()}


def test_code_and_values_are_the_version_of_a_function():
    def made(word, shout=str.upper):
        return lambda clip: shout(word)

    def identity(function, **more):
        with sl.system("x", transcribe=function, **more) as lab:
            return lab.identity()

    assert identity(made("a")) == identity(made("a"))
    assert identity(made("a")) != identity(made("b"))
    assert identity(made("a")) != identity(made("a"), sample_rate=16_000)
    assert identity(made("a"), version="3") == identity(made("b"), version="3") == "x 3"
    model = Counting()
    with pytest.warns(UserWarning, match=r"does not change with model \(Counting\); give version="):
        identity(lambda clip: model(clip, "en"))


def test_a_crash_is_the_rows_error_with_its_traceback(tmp_path):
    def fragile(clip, language=None):
        if clip.frames == 800:
            raise ValueError("no such sound")
        return "fine"

    table = pd.DataFrame({"audio": [tone(0.1), tone(0.2)]})
    where = r"ValueError: no such sound \(test_systems.py, line \d+, in fragile"
    with sl.system("fragile", transcribe=fragile, version="1") as lab:
        with pytest.raises(EngineError, match=where) as told:
            lab.transcribe(tone(0.1))
        assert 'raise ValueError("no such sound")' in told.value.traceback
        assert isinstance(told.value.__cause__, ValueError)
        rows = batch.transcribe(table, lab, store=tmp_path, progress=False)
    assert rows["status"].tolist() == ["error", "ok"]
    assert rows["error_type"].iloc[0] == "EngineError"
    assert "Traceback" not in rows["error"].iloc[0]
    with Store(tmp_path) as store:
        assert 'raise ValueError("no such sound")' in store.attempts(rows["key"].iloc[0])[0].error


def test_no_more_calls_run_at_once_than_allowed(tmp_path):
    running, peak, lock = [0], [0], threading.Lock()
    met = threading.Barrier(3)

    def counting(clip):
        with lock:
            running[0] += 1
            peak[0] = max(peak[0], running[0])
        met.wait(60)  # passes only if as many as allowed run at once
        with lock:
            running[0] -= 1
        return ""

    table = pd.DataFrame({"audio": [tone(0.01 * n) for n in range(1, 10)]})
    with sl.system("counting", transcribe=counting, version="1", concurrency=3) as lab:
        done = batch.transcribe(table, lab, store=tmp_path, progress=False, concurrency=8)
    assert done["status"].tolist() == ["ok"] * 9
    assert peak[0] == 3


@pytest.mark.slow
def test_processes_load_the_model_once_in_each():
    table = pd.DataFrame({"audio": [tone(0.01 * n) for n in range(1, 13)]})
    with sl.system("apart", transcribe=Counting, version="1", processes=2) as lab:
        done = batch.transcribe(table, lab, language="en", progress=False)
    assert done["status"].tolist() == ["ok"] * 12
    pids, counts = zip(*(text.split() for text in done["hypothesis"]), strict=True)
    assert 1 <= len(set(pids)) <= 2
    assert str(os.getpid()) not in pids
    for pid in set(pids):  # one model counted all calls of its process
        own = [int(count) for one, count in zip(pids, counts, strict=True) if one == pid]
        assert sorted(own) == list(range(1, len(own) + 1))


@pytest.mark.slow
def test_a_process_that_hangs_or_dies_is_replaced():
    with sl.system("apart", transcribe=slowly, version="1", processes=1, timeout=60) as lab:
        first = lab.transcribe(tone(0.5)).text
        with pytest.raises(APITimeoutError):
            lab.transcribe(tone(1.5), timeout=0.5)
        second = lab.transcribe(tone(0.5)).text
        with pytest.raises(EngineError, match=r"ended during transcribe \(exit code 7\)"):
            lab.transcribe(tone(0.05))
        third = lab.transcribe(tone(0.5)).text
        assert len({first, second, third}) == 3
        with pytest.raises(InvalidRequestError, match="takes no hotwords"):
            lab.transcribe(tone(0.5), hotwords=["a"])


def test_sound_in_other_forms():
    forms = {
        "clip": tone(0.1),
        "file": tone(0.1).encode("flac"),
        "rate first": (RATE, tone(0.1).samples),
        "integers": (np.round(tone(0.1).samples * 32_767).astype(np.int16), RATE),
        "rows": (tone(0.1).samples[None, :], RATE),
    }
    for name, form in forms.items():
        with sl.system(name, synthesize=lambda text, form=form: form, version="1") as lab:
            clip = lab.synthesize("a", voice="default", format="wav")
            assert (clip.frames, clip.sample_rate) == (800, RATE), name
            assert np.abs(clip.samples - tone(0.1).samples).max() < 1e-4, name


def test_files_in_pieces_are_streamed_as_they_come():
    data = tone(0.5).encode("mp3")
    with sl.system("pieces", synthesize=lambda text: iter([data[:900], data[900:]]), version="1") as lab:
        with lab.stream_speech("a", voice="default", format="mp3") as stream:
            assert list(stream) == [data[:900], data[900:]]
        assert lab.synthesize("a", voice="default", format="wav").duration_s > 0.4
        told = pytest.raises(ContractError, match="do not begin a file of wav")
        with told, lab.stream_speech("a", voice="default", format="wav") as stream:
            stream.collect()
