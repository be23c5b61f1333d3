"""Functions of the user that score rows, and measures beside the error rates, in studies of what exists."""

import json

import pandas as pd
import pytest

from speechlab import evaluate

TEXTS = [f"Anna saw {number} birds, and left." for number in range(10, 34)]


@pytest.fixture
def table():
    entities = [json.dumps([{"text": "Anna", "class": "name"}]) for _ in TEXTS]
    worse = [text.lower().replace("anna", "hanna").replace(",", "") for text in TEXTS]
    return pd.DataFrame({"text": TEXTS, "language": "en", "entities": entities, "good": TEXTS, "bad": worse})


@pytest.mark.slow
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
    # The answers come from the store: nothing is asked again.
    again = evaluate.recognition(None, table, **how, scorers={"judge": judge})
    assert calls == [48]
    pd.testing.assert_frame_equal(again.tables["measures"], report.tables["measures"])
    kept = evaluate.Report.load(report.save(tmp_path / "folder"))
    assert kept.tables["measures"]["score"].dropna().tolist() == [1.0, 0.0]


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


@pytest.mark.slow
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
    assert "comet" in "".join(report.sections(clips=0))
    evaluate.translation(None, texts, **how)
    assert calls == [["eins", "zwei", "zwei"]]  # equal texts are asked for once
    alone = evaluate.translation(None, texts.drop(columns="reference"), **how)
    assert alone.summary["score_comet"].tolist() == [0.25, 0.25]
