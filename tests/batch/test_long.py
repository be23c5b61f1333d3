"""Long recordings: cut, asked for piece by piece, and put together in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest
import soundfile

from speechlab import batch, segments
from speechlab.audio import AudioClip, concatenate
from speechlab.client import Client
from speechlab.errors import AudioDecodeError, InvalidRequestError

RATE = 8_000


class Ears(BaseHTTPRequestHandler):
    """A recogniser that hears one word a second into each piece, and fails where it is told to."""

    asked = 0
    failing = frozenset()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Ears.asked += 1
        body = {"language": "en", "confidence": 1, "segments": [{"start": 1.0, "end": 2.0, "text": "word"}]}
        status = 400 if Ears.asked in Ears.failing else 200
        self.reply(status, body if status == 200 else {"error": "no"})

    def do_GET(self):
        self.reply(200, {"voices": []})

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def ears():
    Ears.asked, Ears.failing = 0, frozenset()
    with ThreadingHTTPServer(("127.0.0.1", 0), Ears) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def talk(path, seconds, rate=RATE):
    """Ten seconds of noise and two of silence, again and again."""
    noise = np.random.default_rng(1).uniform(-0.3, 0.3, 10 * rate).astype(np.float32)
    block = np.concatenate([noise, np.zeros(2 * rate, dtype=np.float32)])
    with soundfile.SoundFile(path, "w", rate, 1, "PCM_16") as out:
        for start in range(0, seconds * rate, len(block)):
            block[: start // len(block) + 1] = 0.1  # no two pieces are the same, and asked for once
            out.write(block[: seconds * rate - start])
    return str(path)


def test_pieces_are_asked_once_and_stand_in_the_time_of_the_recording(ears, store, tmp_path):
    frame = pd.DataFrame(
        {"audio": [talk(tmp_path / "a.wav", 100), talk(tmp_path / "b.flac", 20)]}, index=["x", "y"]
    )
    Ears.failing = {2}
    with Client(base_url=ears, max_retries=0) as lab:
        given = {"piece_s": 30, "store": store, "progress": False, "concurrency": 1, "max_error_share": None}
        with pytest.warns(UserWarning, match=r"1 pieces have no transcript: .*a\.wav at"):
            part = batch.transcribe_long(frame, lab, **given)
        asked = Ears.asked
        whole = batch.transcribe_long(frame, lab, **given)
        assert Ears.asked == asked + 1
        assert batch.transcribe_long(frame, lab, **given).equals(whole)
        assert Ears.asked == asked + 1
    assert len(part) == len(whole) - 1
    assert list(whole) == ["file", "start", "end", "text", "row", "piece"]
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
            (InvalidRequestError, frame, {"piece_s": 0}),
            (InvalidRequestError, frame, {"vad": "on"}),
            (InvalidRequestError, frame, {"audio": "sound"}),
            (InvalidRequestError, pd.DataFrame({"audio": [b"RIFF"]}), {}),
            (AudioDecodeError, pd.DataFrame({"audio": [str(tmp_path / "none.wav")]}), {}),
        ):
            with pytest.raises(error):
                batch.transcribe_long(table, lab, store=store, progress=False, **options)
        assert len(batch.transcribe_long(frame.iloc[:0], lab, store=store)) == 0
    assert Ears.asked == 0


CHILD = """
import re, sys, pandas as pd
from pathlib import Path
from speechlab import batch
from speechlab.client import Client
def peak_mb():  # of this program alone: getrusage counts what forked it too
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
with Client(base_url=sys.argv[1]) as lab:
    found = []
    for file in sys.argv[2:4]:
        table = batch.transcribe_long(pd.DataFrame({"audio": [file]}), lab, store=sys.argv[4], progress=False)
        found += [len(table), table["end"].max(), peak_mb()]
print(*found)
"""


def test_three_hours_take_bounded_memory(ears, tmp_path):
    files = [talk(tmp_path / "short.wav", 3600), talk(tmp_path / "long.wav", 3 * 3600)]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, ears, *files, str(tmp_path / "runs")],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    pieces, _, before, all_pieces, latest, after = map(float, done.stdout.split())
    assert pieces >= 12
    assert all_pieces >= 36
    assert latest > 3 * 3600 - 302
    # MB. Eight pieces are under way while the next eight are cut; as float32 the recording alone has 345.
    assert after < 600, (before, after)
    assert after - before < 200


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
