"""Long recordings: cut, asked for piece by piece, and put together in bounded memory."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile

from speechlab import batch, segments
from speechlab.audio import AudioClip, concatenate
from speechlab.client import Client
from speechlab.errors import AudioDecodeError, InvalidRequestError
from support.ears import Ears, ears

__all__ = ["ears"]  # a fixture

RATE = 8_000


def talk(path, seconds, rate=RATE):
    """Ten seconds of noise and two of silence, again and again."""
    noise = np.random.default_rng(1).uniform(-0.3, 0.3, 10 * rate).astype(np.float32)
    block = np.concatenate([noise, np.zeros(2 * rate, dtype=np.float32)])
    with soundfile.SoundFile(path, "w", rate, 1, "PCM_16") as out:
        for start in range(0, seconds * rate, len(block)):
            block[: start // len(block) + 1] = 0.1  # no two pieces are the same, and asked for once
            out.write(block[: seconds * rate - start])
    return str(path)


def test_pieces_of_a_long_recording_are_asked_once(ears, store, tmp_path):
    frame = pd.DataFrame(
        {"audio": [talk(tmp_path / "a.wav", 100), talk(tmp_path / "b.flac", 20)]}, index=["x", "y"]
    )
    Ears.failing = {2}
    with Client(base_url=ears, max_retries=0) as lab:
        given = {"piece_s": 30, "store": store, "progress": False, "concurrency": 1, "max_error_share": None}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            part = batch.transcribe_long(frame, lab, **given)
        (said,) = [str(one.message) for one in told]  # nothing about a table of pieces, which nobody has
        assert re.match(r"1 recording is not whole: .*a\.wav at \d+ s: HTTP 400", said)
        assert "the same call again asks for what is missing" in said
        assert list(part.attrs[batch.FAULTS_ATTRIBUTE]) == [0]
        asked = Ears.asked
        whole = batch.transcribe_long(frame, lab, **given)
        assert Ears.asked == asked + 1
        assert batch.transcribe_long(frame, lab, **given).equals(whole)
        pieces = [frame.iloc[:1], frame.iloc[1:]]
        assert batch.transcribe_long(pieces, lab, **given).equals(whole)
        short = AudioClip.from_file(frame["audio"]["y"])
        sounds = pd.Series([Path(frame["audio"]["y"]).read_bytes(), short], name="sound")
        assert batch.transcribe_long(sounds, lab, **given)["start"].tolist() == [1.0, 1.0]
        assert Ears.asked == asked + 1
    assert len(part) == len(whole) - 1
    assert list(whole) == ["file", "start", "end", "text", "row", "piece", "doubt"]
    assert segments.equal(whole, segments.frame(whole))
    first = whole[whole["row"] == "x"]
    assert first["start"].diff().dropna().between(20, 30).all()
    # each cut lies in a silence: ten seconds of noise, two without
    assert ((first["start"].iloc[1:] - 1) % 12).between(10, 12).all()
    assert whole[whole["row"] == "y"]["start"].tolist() == [1.0]


def test_what_is_refused(ears, store, tmp_path):
    frame = pd.DataFrame({"audio": [talk(tmp_path / "a.wav", 2)]})
    with Client(base_url=ears) as lab:
        for error, table, options in (
            (InvalidRequestError, frame, {"loud": True}),
            (InvalidRequestError, pd.DataFrame({"audio": [None]}), {"on_error": "raise"}),
            (AudioDecodeError, pd.DataFrame({"audio": [b"RIFF"]}), {"on_error": "raise"}),
        ):
            with pytest.raises(error):
                batch.transcribe_long(table, lab, store=store, progress=False, **options)
    assert Ears.asked == 0


def test_a_recording_that_cannot_be_read_keeps_no_other_back(ears, store, tmp_path):
    short = AudioClip(np.full(RATE, 0.1, np.float32), RATE).encode("flac")
    cells = [
        str(tmp_path / "none.wav"),
        talk(tmp_path / "a.wav", 20),
        None,
        b"RIFF",
        str(tmp_path),
        short[:-9],
        7,
    ]
    with Client(base_url=ears) as lab, pytest.warns(UserWarning, match=r"6 recordings are not whole: .*none"):
        found = batch.transcribe_long(pd.DataFrame({"audio": cells}), lab, store=store, progress=False)
    assert found["row"].unique().tolist() == [1]
    faults = found.attrs[batch.FAULTS_ATTRIBUTE]
    assert list(faults) == [0, 2, 3, 4, 5, 6]
    assert "no file" in faults[0]
    assert "folder" in faults[4]


def test_a_reply_that_cannot_be_right_costs_its_row_alone(ears, store, tmp_path):
    sounds = [AudioClip(np.full(RATE, level, np.float32), RATE) for level in (0.1, 0.2, 0.3)]
    frame = pd.DataFrame({"audio": sounds})
    Ears.backwards = {2, 4}
    with Client(base_url=ears) as lab:
        given = {"vad": "segments", "store": store, "progress": False, "concurrency": 1}
        heard = batch.transcribe(frame, lab, **given)
        with pytest.warns(
            UserWarning, match=r"no segments of 1 rows: sha256:.* ends at 2 s, before its start"
        ):
            timed = batch.to_segments(heard, store)
        assert timed["position"].tolist() == [0, 2]
        assert list(timed.attrs[batch.FAULTS_ATTRIBUTE]) == [1]
        done = batch.run(
            batch.plan_transcription(frame, lab, vad="segments", store=store), lab, progress=False
        )
        with pytest.warns(UserWarning, match="no segments of 1 rows"):
            (written,) = done.write_segments(tmp_path / "all.csv")
        assert written.rows == 2
        with pytest.warns(UserWarning, match="1 recording is not whole: .* cannot be right"):
            long = batch.transcribe_long(frame.iloc[1:2], lab, store=store, progress=False)
    assert len(long) == 0
    assert list(long) == ["file", "start", "end", "text", "row", "piece", "doubt"]


CHILD = """
import re, sys, pandas as pd
from pathlib import Path
from speechlab import batch
from speechlab.client import Client
def peak_mb():  # of this program alone: getrusage counts what forked it too
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
with Client(base_url=sys.argv[1]) as lab:
    table = pd.DataFrame({"audio": [sys.argv[2]]})
    found = batch.transcribe_long(table, lab, store=sys.argv[3], progress=False)
print(len(found), found["end"].max(), peak_mb())
"""


@pytest.mark.slow
def test_an_hour_takes_bounded_memory(ears, tmp_path):
    file = talk(tmp_path / "long.wav", 3600)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, ears, file, str(tmp_path / "runs")],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    pieces, latest, peak = map(float, done.stdout.split())
    assert pieces >= 12
    assert latest > 3600 - 302
    # MB. Eight pieces are in memory; as float32 the recording alone has 115, and the libraries take 130.
    assert peak < 310


@pytest.mark.engines
def test_a_long_recording_on_the_real_service(lab, store, tmp_path):
    said = ["Good morning, everybody.", "The weather is fine today.", "See you tomorrow."]
    parts = [lab.synthesize(text, voice="heart") for text in said]
    concatenate(parts, gap_s=1.5).save(tmp_path / "talk.wav")
    frame = pd.DataFrame({"audio": [str(tmp_path / "talk.wav")]})
    found = batch.transcribe_long(frame, lab, piece_s=5, language="en", store=store, progress=False)
    assert found["piece"].nunique() >= 2
    words = " ".join(found["text"]).lower()
    assert all(word in words for word in ("morning", "weather", "tomorrow"))
    assert found["end"].max() <= AudioClip.from_file(tmp_path / "talk.wav").duration_s + 0.001
    assert (found["start"].to_numpy()[1:] >= found["end"].to_numpy()[:-1]).all()
