"""The Chinese recordings: present, intact, decodable and what the manifest says."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import soundfile

from speechlab.datasets import datasheet, prompts, zh_speech


def test_the_manifest_is_a_typed_table():
    frame = zh_speech()
    assert list(frame.columns) == [
        "audio",
        "id",
        "language",
        "text",
        "voice",
        "license",
        "sha256",
        "duration_s",
    ]
    assert 6 <= len(frame) <= 8
    assert frame["duration_s"].dtype == "float64"
    assert set(frame["language"]) == {"zh"}
    assert frame["id"].is_unique


@pytest.mark.parametrize("row", zh_speech().to_dict("records"), ids=lambda row: row["id"])
def test_each_clip_is_what_the_manifest_says(row):
    path = Path(row["audio"])
    assert path.is_absolute()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == row["sha256"]
    samples, rate = soundfile.read(path)
    assert rate == 24_000
    assert samples.ndim == 1
    assert len(samples) / rate == pytest.approx(row["duration_s"], abs=0.002)
    assert 0.1 < np.abs(samples).max() <= 1.0


def test_texts_are_those_of_the_prompts():
    texts = prompts("zh").set_index("id")["text"]
    for row in zh_speech().itertuples():
        assert texts[row.id] == row.text


def test_there_are_several_voices_and_little_weight():
    frame = zh_speech()
    assert frame["voice"].nunique() >= 3
    folder = Path(frame.loc[0, "audio"]).parent
    assert sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) < 400_000


def test_the_datasheet_reports_an_error_rate_for_each_clip():
    sheet = datasheet("zh-speech")
    for row in zh_speech().itertuples():
        assert f"| {row.id} | {row.voice} |" in sheet
