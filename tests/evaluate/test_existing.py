"""Studies of outputs that exist, scored by what the user gives too: a table, without a call for them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import speechlab as sl
from speechlab import evaluate
from speechlab.cli import app
from speechlab.errors import InvalidRequestError

pytestmark = pytest.mark.slow

COUNT = 24
TEXTS = [f"this is sentence number {n} of many" for n in range(COUNT)]


@pytest.fixture
def texts():
    old = [text.replace("sentence", "sentences") for text in TEXTS]
    return pd.DataFrame({"text": TEXTS, "language": "en", "good": TEXTS, "old": old})


def clip(n: int, sign: int = 1) -> sl.AudioClip:
    return sl.AudioClip(np.full(8_000 + n, sign * 0.01 * (n + 1), np.float32), 8_000)


def said(sound: sl.AudioClip) -> str:
    return TEXTS[round(sound.peak * 100) - 1]


def test_translations_that_exist_stand_beside_those_of_a_system(tmp_path):
    table = pd.DataFrame({"text": TEXTS[:4], "source_lang": "en", "target_lang": "de"})
    table = table.assign(reference=table["text"].str.upper(), bad=["Nein.", "Nein.", None, "Nein."])
    with sl.system("upper", translate=str.upper, version="1") as lab:
        report = evaluate.translation(lab, table, hypotheses=["bad"], store=tmp_path, progress=False)
    assert report.summary.set_index("system")["chrf"]["lab"] == 100
    assert report.summary["system"].tolist() == ["lab", "bad"]
    assert report.failures()["error"].tolist() == ["the table has no output of this system"]
    assert report.table["status"].value_counts().to_dict() == {"ok": 4, "cached": 3, "error": 1}


def test_recordings_that_exist_are_ranked(tmp_path):
    rows = [
        {"text": TEXTS[n], "language": "en", "voice": voice, "audio": clip(n, sign), "note": n}
        for n in range(8)
        for voice, sign in (("anna", 1), ("bert", -1))
    ]
    calls = []

    def hears(sound: sl.AudioClip) -> str:
        calls.append(sound)
        return said(sound) if sound.samples[0] > 0 else f"{said(sound)} oops"

    with sl.system("ears", transcribe=hears, version="1") as ears:
        how = {"recognizer": ears, "store": tmp_path, "progress": False}
        report = evaluate.voices(None, pd.DataFrame(rows), dnsmos=0, **how)
        trip = evaluate.round_trip(None, pd.DataFrame(rows[:-1]), **how)
    assert report.answer.startswith("Take anna. It makes significantly fewer errors than bert")
    assert not report.notes
    assert len(calls) == 16
    assert trip.summary.set_index("voice_name")["wer"].round(2).to_dict() == {"anna": 0.0, "bert": 0.14}
    assert "no recording of this text by 'bert'" in trip.failures()["error"].iloc[0]


def test_the_command_scores_columns_and_folders(texts, tmp_path):
    texts = texts.head(6).assign(file=[f"{n}.wav" for n in range(6)])
    for n, name in enumerate(texts["file"]):
        clip(n).save(tmp_path / name)
    texts.to_csv(tmp_path / "list.csv", index=False)
    (tmp_path / "vendor").mkdir()
    for n, text in enumerate(texts["text"]):
        (tmp_path / "vendor" / f"{n}.json").write_text(json.dumps({"text": text}))
    out = tmp_path / "report"
    given = ["--hypothesis", f"theirs={tmp_path / 'vendor'}", "--hypothesis", "week=old"]
    done = CliRunner().invoke(
        app, ["study", "recognition", f"{tmp_path / 'list.csv'}", "--out", f"{out}", *given]
    )
    assert done.exit_code == 0, done.output
    assert "Take theirs." in done.output
    assert "estimate" not in done.output  # nothing is asked
    assert evaluate.Report.load(out).systems == ["theirs", "week"]


def test_rows_without_texts_or_languages_cost_themselves_alone(texts):
    rows = texts.assign(text=None, speaker=["a", "b", "c"] * 8)
    report = evaluate.recognition(None, rows, hypotheses="good")
    assert report.answer.startswith("Nothing could be scored. 24 of 24 rows have no score.")
    rows = texts.head(2).assign(source_lang="en", target_lang="ja", text=["\u3000", "one"])
    report = evaluate.translation(None, rows, hypotheses="good")
    assert report.table["length_ratio"].isna().tolist() == [True, False]
    report = evaluate.recognition(None, texts.head(2).assign(language=["en", 5]), hypotheses="good")
    assert report.summary["language"].tolist() == [5, "en"]


def test_a_setting_has_the_language_identified(texts):
    """Otherwise the recognizer is told the language of the row."""
    rows = texts.head(1).assign(audio=[clip(0)])
    settings = {"told": {}, "asked": {"language": None}}
    with sl.system("a", transcribe=lambda sound, language=None: language or "unknown", version="1") as lab:
        report = evaluate.recognition(lab, rows, settings=settings, speed=1, progress=False)
    assert report.table["hypothesis"].tolist() == ["en", "unknown"]
    assert report.speed["error"].isna().all()


def test_what_a_batch_noted_of_its_calls_is_set_aside(texts):
    """A table of recordings that a batch made needs no column to be dropped."""
    with sl.system("a", synthesize=lambda text: clip(TEXTS.index(text)), transcribe=said, version="1") as lab:
        spoken = sl.batch.synthesize(texts.head(2), lab, voice="default", progress=False)
        report = evaluate.recognition(lab, spoken, progress=False)
        with pytest.raises(InvalidRequestError, match="the columns 'status', 'error', 'answered_at', which"):
            evaluate.recognition(lab, spoken.drop(columns="key"), progress=False)
    assert report.summary["wer"].tolist() == [0]
    assert report.table["key"].tolist() == spoken["key"].tolist()


BIRDS = [f"Anna saw {number} birds, and left." for number in range(10, 34)]


@pytest.fixture
def table():
    entities = [json.dumps([{"text": "Anna", "class": "name"}]) for _ in BIRDS]
    worse = [text.lower().replace("anna", "hanna").replace(",", "") for text in BIRDS]
    return pd.DataFrame({"text": BIRDS, "language": "en", "entities": entities, "good": BIRDS, "bad": worse})


def test_formatting_entities_and_scores_have_a_table(table, tmp_path):
    calls = []

    def judge(references, hypotheses):
        calls.append(len(references))
        return [float(one == other) for one, other in zip(references, hypotheses, strict=True)]

    how = {
        "hypotheses": ["good", "bad"],
        "store": tmp_path / "store",
        "formatting": True,
        "entities": "entities",
    }
    report = evaluate.recognition(None, table, **how, scorers={"judge": judge})
    found = report.tables["measures"].set_index(["system", "measure"])
    assert found.loc["good", "error_rate"].dropna().tolist() == [0.0] * 5
    assert found.loc[("bad", "punctuation"), ["items", "hits", "recall"]].tolist() == [48, 24, 0.5]
    assert found.loc[("bad", "capitals"), "f1"] == 0
    assert found.loc[("bad", "digits"), "f1"] == 1
    assert found.loc[("bad", "entities: name"), "recall"] == 0
    assert found["score"].dropna().to_dict() == {("good", "judge"): 1.0, ("bad", "judge"): 0.0}
    assert set(report.table["score_judge"]) == {0.0, 1.0}
    assert "Formatting, entities and scores" in [view.title for view in report.views]
    assert calls == [48]


def test_a_scorer_that_fails_costs_no_report_and_is_told(table, tmp_path):
    def broken(references, hypotheses):
        raise RuntimeError("no key")

    def half(references, hypotheses):
        return [0.5, float("nan")] * 12

    how = {"hypotheses": "good", "store": tmp_path}
    report = evaluate.recognition(None, table, **how, scorers={"judge": broken, "half": half})
    assert "judge scored nothing: RuntimeError: no key" in report.notes
    assert "half gave no finite number for 12 of 24 rows." in report.notes
    assert report.tables["measures"].set_index("measure")["score"].dropna().to_dict() == {"half": 0.5}


def test_scorers_of_translations_are_asked_once(tmp_path):
    texts = pd.DataFrame(
        {"text": ["eins", "zwei"], "reference": ["one", "two"], "source_lang": "de", "target_lang": "en"}
    )
    texts = texts.assign(good=["one", "two"], bad=["one", "too"])
    calls = []

    def comet(sources, translations, references):
        calls.append(sources)
        return [1.0 if one == other else 0.25 for one, other in zip(translations, references, strict=True)]

    how = {"hypotheses": ["good", "bad"], "store": tmp_path / "store", "scorers": {"comet": comet}}
    report = evaluate.translation(None, texts, **how)
    assert report.summary.set_index("system")["score_comet"].to_dict() == {"good": 1.0, "bad": 0.625}
    evaluate.translation(None, texts, **how)
    assert calls == [["eins", "zwei", "zwei"]]  # equal texts are asked for once
