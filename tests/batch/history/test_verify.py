"""What is verified of a run: fresh, repeated, moved, damaged."""

from __future__ import annotations

import shutil
import time
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile

from speechlab import batch
from speechlab.client import Client
from support.batches import quiet, texts
from support.translator import Wire, reply

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

    with Wire(answer) as wire, Client(base_url=f"http://127.0.0.1:{wire.port}", max_retries=0) as lab:
        lab.asked = asked
        yield lab


def hear(lab, store, *recordings):
    frame = pd.DataFrame({"audio": list(recordings)})
    return batch.transcribe(frame, lab, vad="segments", store=store, progress=False)


def test_a_fresh_run_and_its_repetition_have_one_digest(speaker, store):
    fresh = hear(speaker, store, sound(2), sound(3))
    cached = hear(speaker, store, sound(2), sound(3))
    assert fresh["status"].tolist() == ["ok"] * 2
    assert cached["status"].tolist() == ["cached"] * 2
    one, other = batch.load(fresh, store), batch.load(cached, store)
    assert one.verify().problems == ()
    assert other.verify().problems == ()
    assert one.manifest["output_sha256"] == other.manifest["output_sha256"]


def test_a_store_that_was_moved_has_its_sound_in_its_tables(speaker, tmp_path):
    frame = texts(2).assign(voice="calm")
    table = batch.synthesize(frame, speaker, store=tmp_path / "old", prefix="tts_", progress=False)
    shutil.move(tmp_path / "old", tmp_path / "new")
    run = batch.load(tmp_path / "new")
    moved = run.table()
    assert [Path(path).exists() for path in moved["tts_audio"]] == [True, True]
    assert {Path(path).parents[2] for path in moved["tts_audio"]} == {tmp_path / "new"}
    assert moved.drop(columns="tts_audio").equals(table.drop(columns="tts_audio"))
    assert (
        pd.read_parquet(run.export(tmp_path / "out.parquet"))["tts_audio"].tolist()
        == moved["tts_audio"].tolist()
    )
    assert run.verify()


def test_recordings_in_a_moved_store_are_found(speaker, tmp_path):
    mine = tmp_path / "mine.flac"
    mine.write_bytes(sound(3))
    spoken = batch.synthesize(texts(2).assign(voice="calm"), speaker, store=tmp_path / "old", progress=False)
    frame = pd.DataFrame({"audio": [*spoken["audio"], str(mine)], "source": [*spoken["audio"], "by hand"]})
    heard = batch.transcribe(frame, speaker, store=tmp_path / "old", progress=False)
    shutil.move(tmp_path / "old", tmp_path / "new")
    mine.unlink()
    run = batch.load(heard.attrs["speechlab_run"], tmp_path / "new")
    table = run.table()
    for name, left in (("audio", str(mine)), ("source", "by hand")):
        assert [Path(path).is_file() for path in table[name]] == [True, True, False]
        assert {Path(path).parents[2] for path in table[name][:2]} == {tmp_path / "new"}
        assert table[name][2] == left
    checked = run.verify()
    assert (checked.ok, checked.results, checked.outside) == (True, 3, 1)
    Path(table["audio"][0]).write_bytes(b"changed")
    assert "is not what its name says" in run.verify().problems[0]


def test_paths_that_are_categories_are_found_after_a_move(speaker, tmp_path):
    spoken = batch.synthesize(
        texts(2).assign(voice="calm", text=["one", "three"]), speaker, store=tmp_path / "old", progress=False
    )
    first, second = spoken["audio"]
    ordered = pd.Categorical([second, first, None], categories=[second, first, "none"], ordered=True)
    both = [first, first.replace(str(tmp_path / "old"), str(tmp_path / "new")), second]
    frame = pd.DataFrame({"audio": [first, second, first], "ordered": ordered, "both": both})
    frame = frame.astype({"audio": "category", "both": "category"})
    heard = batch.transcribe(frame, speaker, store=tmp_path / "old", progress=False)
    assert heard["status"].tolist() == ["ok"] * 3
    shutil.move(tmp_path / "old", tmp_path / "new")
    table = batch.load(heard.attrs["speechlab_run"], tmp_path / "new").table()
    here = [path.replace(str(tmp_path / "old"), str(tmp_path / "new")) for path in (first, second)]
    assert table["audio"].tolist() == [here[0], here[1], here[0]]
    assert table["ordered"].tolist()[:2] == [here[1], here[0]]
    assert table["ordered"].isna().tolist() == [False, False, True]
    assert table["ordered"].cat.categories.tolist() == [here[1], here[0], "none"]
    assert table["ordered"].cat.ordered
    assert table["both"].tolist() == [here[0], here[0], here[1]]
    assert {str(table[name].dtype) for name in ("audio", "ordered", "both")} == {"category"}


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
    assert back_s[0]
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
    with Wire(answer) as wire, Client(base_url=f"http://127.0.0.1:{wire.port}", max_retries=0) as lab:
        for times in (1, 2):
            table = batch.synthesize(frame, lab, store=store, format="wav", progress=False)
            row = table.iloc[0]
            assert (row["status"], row["error_type"], row["attempts"]) == ("error", "ContractError", 1)
            assert "zero length" in row["error"]
            assert len(asked) == times
