"""Tables through the real service: order, types, errors as rows, nothing asked twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import soundfile

import speechlab as sl
from speechlab import batch
from speechlab.audio import AudioClip, FileSegment, concatenate

pytestmark = pytest.mark.engines

BOOKKEEPING = [
    *("status", "error_type", "error", "http_status", "attempts", "latency_s", "first_byte_s"),
    *("usage_characters", "usage_audio_s", "usage_tokens", "answered_at", "key"),
]


@pytest.fixture(scope="module")
def heart(lab):
    return lab.voices()["heart"].id


def says(frame, lab, store, **options):
    return batch.synthesize(frame, lab, store=store, progress=False, **options)


def test_rows_come_back_in_order_with_their_index_and_types(lab, store, heart):
    frame = pd.DataFrame(
        {"text": ["One.", "Two.", "One.", None, "", 5], "voice": heart, "mine": range(6)},
        index=pd.Index(["a", "b", "a", "d", "e", "f"], name="row"),
    )
    before = frame.copy()
    said = says(frame, lab, store)
    pd.testing.assert_frame_equal(frame, before)
    assert said.index.equals(frame.index)
    assert list(said.columns) == [
        *frame.columns,
        "audio",
        "duration_s",
        "sample_rate",
        "processing_s",
        *BOOKKEEPING,
    ]
    assert said["status"].tolist() == ["ok", "ok", "ok", "error", "error", "error"]
    assert said["error_type"].tolist()[3:] == ["InvalidRequestError"] * 3
    assert "is empty in this row" in said["error"].iloc[3]
    assert "must hold text" in said["error"].iloc[5]
    assert said["key"].iloc[0] == said["key"].iloc[2]
    assert said["audio"].iloc[0] == said["audio"].iloc[2]
    assert said["duration_s"].iloc[0] == pytest.approx(soundfile.info(said["audio"].iloc[0]).duration)
    dtypes = {name: str(kind) for name, kind in said.dtypes.items()}
    assert dtypes["status"] == dtypes["error_type"] == "category"
    assert dtypes["sample_rate"] == dtypes["attempts"] == dtypes["http_status"] == "Int64"
    assert dtypes["duration_s"] == dtypes["latency_s"] == "float64"
    assert all(isinstance(said[name].dtype, pd.StringDtype) for name in ("audio", "error", "key"))


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
