"""Reports given to others: trackers, data sets of Hugging Face, and files for a CI job."""

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import speechlab as sl
from speechlab import evaluate
from speechlab.cli import app
from speechlab.errors import InvalidRequestError

pytestmark = pytest.mark.slow

COUNT = 6
TEXTS = [f"sentence number {n}" for n in range(COUNT)]
FILES = {"record.json", "report.html", "results.parquet", "summary.csv"}


@pytest.fixture
def report(tmp_path):
    clips = [sl.AudioClip(np.full(800, 0.1 * (n + 1), np.float32), 8_000) for n in range(COUNT)]
    paths = [str(clip.save(tmp_path / f"{n}.wav")) for n, clip in enumerate(clips)]
    table = pd.DataFrame({"audio": paths, "text": TEXTS, "language": "en", "good": TEXTS, "bad": TEXTS[::-1]})
    return evaluate.recognition(
        None, table, hypotheses={"good": "good", "bad": "bad"}, store=tmp_path / "store"
    )


def test_wandb_gets_metrics_sound_and_files(report, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    logged, artifacts = [], []
    with wandb.init(project="speech", dir=tmp_path, mode="offline", settings={"silent": True}) as run:
        keep, add = run.log, run.log_artifact
        monkeypatch.setattr(run, "log", lambda values: logged.append(values) or keep(values))
        monkeypatch.setattr(run, "log_artifact", lambda one: artifacts.append(one) or add(one))
        report.log_to(run, clips=2)
        assert run.summary["wer/good/en"] == 0
        assert run.summary["wer/bad/en"] == pytest.approx(1 / 3)
        sounds = sorted(Path(run.dir).rglob("media/audio/**/*.wav"))
    assert [sl.AudioClip.from_file(sound).frames for sound in sounds] == [800, 800]
    assert all(" → " in logged[0][f"rows/{n}"]._caption for n in (1, 2))
    assert set(artifacts[0].manifest.entries) >= FILES


def test_trackio_gets_metrics_sound_and_files(report, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    trackio = pytest.importorskip("trackio")
    run = trackio.init(project="speech", name="first", auto_log_cpu=False, auto_log_gpu=False)
    report.log_to(run, clips=2)
    trackio.finish()
    from trackio.sqlite_storage import SQLiteStorage

    (logged,) = SQLiteStorage.get_logs("speech", "first")
    assert (logged["wer/good/en"], logged["wer/bad/en"]) == (0, pytest.approx(1 / 3))
    assert all(" → " in logged[f"rows/{n}"]["caption"] for n in (1, 2))
    sounds = (tmp_path / "trackio" / "media").rglob("*.wav")
    assert [sl.AudioClip.from_file(sound).frames for sound in sounds] == [800, 800]
    kept = [path.read_bytes() for path in (tmp_path / "trackio" / "artifacts").rglob("*") if path.is_file()]
    assert len(kept) >= len(FILES)
    assert any(data[:50].lower().startswith(b"<!doctype html") for data in kept)


def test_mlflow_gets_metrics_and_files(report, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    with mlflow.start_run() as run:
        report.log_to(run)
        with pytest.raises(InvalidRequestError, match="must be a run of MLflow, W&B or Trackio"):
            report.log_to(mlflow)
    client = mlflow.MlflowClient()
    kept = client.get_run(run.info.run_id).data
    assert (kept.metrics["utterances/good/en"], kept.metrics["wer/bad/en"]) == (COUNT, pytest.approx(1 / 3))
    assert kept.tags["speechlab.answer"] == report.answer
    files = {Path(one.path).name for one in client.list_artifacts(run.info.run_id, "report")}
    assert files >= FILES


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
    (row,) = suite.iterfind("testcase[@classname='study.summary']")
    assert row.get("name").startswith("all recordings, en, word")
    assert "wer: 0.0" in row.find("system-out").text
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
