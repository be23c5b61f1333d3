"""Tables through the real service: order, types, errors as rows, nothing asked twice."""

import numpy as np
import pandas as pd
import pytest
import soundfile

import speechlab as sl
from speechlab import batch
from speechlab.audio import AudioClip, FileSegment, concatenate

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def heart(lab):
    return lab.voices()["heart"].id


def test_recordings_of_every_kind(lab, store, heart, tmp_path):
    clip = lab.synthesize("The quick brown fox.", voice=heart)
    path = clip.save(tmp_path / "fox.wav")
    (tmp_path / "zero.wav").write_bytes(b"")
    (tmp_path / "noise.wav").write_bytes(b"RIFF" + bytes(range(200)))
    soundfile.write(tmp_path / "header.wav", np.zeros(0), 16000)
    rows = [str(path), path, clip, path.read_bytes(), tmp_path / "gone.wav", tmp_path, tmp_path / "zero.wav"]
    rows += [tmp_path / "noise.wav", tmp_path / "header.wav", float("nan"), 7]
    frame = pd.DataFrame({"audio": pd.Series(rows, dtype=object)})
    heard = batch.transcribe(frame, lab, language="en", store=store, progress=False)
    assert heard["status"].tolist() == ["ok"] * 4 + ["error"] * 7
    assert all("brown fox" in text.lower() for text in heard["hypothesis"].iloc[:4])
    assert heard["hypothesis_language"].iloc[0] == "en"
    assert 0 < heard["confidence"].iloc[0] <= 1
    errors = heard["error"].iloc[4:].tolist()
    assert "there is no file" in errors[0]
    assert "is a folder" in errors[1]
    assert "is empty in this row" in errors[5]
    assert "must hold a recording: a path" in errors[6]
    assert all(errors)


def test_segments_of_files_are_recordings(store, tmp_path):
    quiet, loud = (AudioClip(np.full(8_000 * n, 0.2 * n, np.float32), 8_000) for n in (1, 2))
    path = concatenate([quiet, loud], gap_s=0.5).save(tmp_path / "both.wav")
    parts = [FileSegment(path, 0, 1.25), FileSegment(path, 1.25), FileSegment(tmp_path / "gone.wav", 1, 2)]
    frame = pd.DataFrame({"audio": parts})

    def loudest(clip):
        return f"{clip.duration_s:.2f} s, up to {abs(clip.samples).max():.1f}"

    with sl.system("loudest", transcribe=loudest, version="1") as lab:
        heard = batch.transcribe(frame, lab, store=store, progress=False)
        again = batch.transcribe(frame[:2], lab, store=store, progress=False)
    assert heard["status"].tolist() == ["ok", "ok", "error"]
    assert heard["hypothesis"].tolist()[:2] == ["1.25 s, up to 0.2", "2.25 s, up to 0.4"]
    assert "there is no file" in heard["error"][2]
    assert again["status"].tolist() == ["cached", "cached"]
