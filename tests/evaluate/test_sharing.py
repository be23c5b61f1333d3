"""Reports given to others: trackers, data sets of Hugging Face, and files for a CI job.

The trackers are not installed here. Stand-ins have the names and arguments of MLflow 3, W&B 0.31 and Trackio 0.43.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import speechlab as sl
from speechlab import evaluate
from speechlab.cli import app
from speechlab.errors import InvalidRequestError

COUNT = 6
TEXTS = [f"sentence number {n}" for n in range(COUNT)]


@pytest.fixture
def report(tmp_path):
    clips = [sl.AudioClip(np.full(800, 0.1 * (n + 1), np.float32), 8_000) for n in range(COUNT)]
    paths = [str(clip.save(tmp_path / f"{n}.wav")) for n, clip in enumerate(clips)]
    table = pd.DataFrame({"audio": paths, "text": TEXTS, "language": "en", "good": TEXTS, "bad": TEXTS[::-1]})
    return evaluate.recognition(
        None, table, hypotheses={"good": "good", "bad": "bad"}, store=tmp_path / "store"
    )


def stand_in(name, monkeypatch, **members):
    module = ModuleType(name)
    for member, value in members.items():
        setattr(module, member, value)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def run_of(name, **members):
    kind = type("Run", (), {"__module__": f"{name}.run"})
    run = kind()
    for member, value in members.items():
        setattr(run, member, value)
    return run


@pytest.mark.parametrize("tracker", ["wandb", "trackio"])
def test_a_tracker_gets_metrics_sound_and_files(report, tracker, monkeypatch):
    logged, artifacts = [], []

    class Artifact:
        def __init__(self, name, type):  # noqa: A002 - as theirs
            self.name, self.type, self.files = name, type, []

        def add_dir(self, folder):
            from pathlib import Path

            self.files = sorted(path.name for path in Path(folder).iterdir())

    def audio(path, caption=None):
        return sl.AudioClip.from_file(path), caption

    stand_in(tracker, monkeypatch, Artifact=Artifact, Audio=audio)
    report.log_to(run_of(tracker, log=logged.append, log_artifact=artifacts.append), clips=2)
    (values,) = logged
    assert values["wer/good/en"] == 0
    assert values["wer/bad/en"] == pytest.approx(1 / 3)
    sounds = [value for name, value in values.items() if name.startswith("rows/")]
    assert len(sounds) == 2
    assert all(caption.count(" → ") == 1 and clip.frames == 800 for clip, caption in sounds)
    (artifact,) = artifacts
    assert artifact.type == "report"
    assert {"record.json", "report.html", "results.parquet", "summary.csv"} <= set(artifact.files)


def test_mlflow_gets_metrics_and_files(report, monkeypatch):
    metrics, tags, files = {}, {}, []

    class MlflowClient:
        def log_metric(self, run_id, key, value):
            assert run_id == "r1"
            metrics[key] = value

        def set_tag(self, run_id, key, value):
            tags[key] = value

        def log_artifacts(self, run_id, local_dir, artifact_path=None):
            from pathlib import Path

            files.extend(path.name for path in Path(local_dir).iterdir())

    stand_in("mlflow", monkeypatch, MlflowClient=MlflowClient)
    report.log_to(run_of("mlflow", info=SimpleNamespace(run_id="r1")))
    assert metrics["utterances/good/en"] == COUNT
    assert tags == {"speechlab.answer": report.answer}
    assert "report.html" in files


def test_what_is_no_run_is_refused(report, monkeypatch):
    stand_in("wandb", monkeypatch)
    for wrong in (None, "wandb", report):
        with pytest.raises(InvalidRequestError, match="must be a run of MLflow, W&B or Trackio"):
            report.log_to(wrong)
    with pytest.raises(InvalidRequestError, match="clips is -1"):
        report.log_to(run_of("wandb"), clips=-1)


def test_a_data_set_of_hugging_face_with_sound_and_a_card(report, tmp_path):
    import datasets

    folder = report.to_dataset(tmp_path / "set")
    card = (folder / "README.md").read_text("utf-8")
    assert card.startswith("---\npretty_name: ")
    assert '  - "en"' in card
    assert report.methods().text[:40] in card
    read = datasets.load_dataset("parquet", data_files=str(folder / "data" / "rows.parquet"), split="train",
                                 cache_dir=str(tmp_path / "cache"))  # fmt: skip
    assert len(read) == 2 * COUNT
    assert isinstance(read.features["audio"], datasets.Audio)
    back = sl.datasets.from_hugging_face(read)
    assert sl.AudioClip.from_bytes(back["audio"].iloc[0]) == sl.AudioClip.from_file(
        report.table["audio"].iloc[0]
    )
    assert back["text"].tolist() == report.table["text"].tolist()
    assert report.to_dataset(folder) == folder  # it is replaced
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("a")
    with pytest.raises(InvalidRequestError, match="has other files"):
        report.to_dataset(tmp_path / "other")


@pytest.mark.slow
def test_the_command_writes_junit_and_a_summary(tmp_path):
    texts = [f"sentence number {n} of the list" for n in range(30)]
    table = pd.DataFrame({"text": texts, "language": "en", "good": texts})
    table["bad"] = table["text"].str.replace("sentence", "sentences")
    table.loc[0, "bad"] = None
    table.to_csv(tmp_path / "list.csv", index=False)

    def run(column, out, *more):
        given = ["study", "recognition", f"{tmp_path / 'list.csv'}", "--out", f"{tmp_path / out}"]
        return CliRunner().invoke(app, [*given, "--hypothesis", f"a={column}", *map(str, more)])

    files = ["--junit", tmp_path / "junit.xml", "--markdown", tmp_path / "summary.md"]
    assert run("good", "one", *files).exit_code == 0
    suite = ET.parse(tmp_path / "junit.xml").getroot()
    assert suite.get("failures") == "0"
    (tmp_path / "summary.md").write_text("before\n")
    later = run("bad", "two", "--earlier", tmp_path / "one", "--fail-if", "worse", *files)
    assert later.exit_code == 4, later.output
    suite = ET.parse(tmp_path / "junit.xml").getroot()
    failures = {case.get("classname"): case.find("failure").get("message") for case in suite.iter("testcase")
                if case.find("failure") is not None}  # fmt: skip
    assert failures["study.rows"] == "1 of 30 rows failed"
    assert failures["study.changes"] == "worse"
    told = (tmp_path / "summary.md").read_text("utf-8")
    assert told.startswith("before\n**")
    assert "| " in told
