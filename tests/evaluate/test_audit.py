"""Audits of predictions with planted truths: ties, order, followers of wrong references; and files of strangers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.errors import InvalidRequestError

WORDS = np.array([f"w{number}" for number in range(300)])


def publish(folder, rates, *, rows=150, wrong=0.0, follower=None, leaderboard=False):
    """Files of systems that spoil words at these rates; of references that are wrong, a follower has 4 of 10."""
    random = np.random.default_rng(3)
    said = random.choice(WORDS, (rows, 8))
    references = said.copy()
    references[random.random(rows) < wrong, 0] = "zz"
    for number, rate in enumerate(rates):
        outputs = said.copy()
        if number == follower:
            follows = random.random(rows) < 0.4
            outputs[follows] = references[follows]
        outputs = np.where(random.random(outputs.shape) < rate, random.choice(WORDS, outputs.shape), outputs)
        texts = [(" ".join(one), " ".join(other)) for one, other in zip(references, outputs, strict=True)]
        if leaderboard:
            rows_of = [dict(zip(("text", "pred_text"), pair, strict=True)) for pair in texts]
            lines = [json.dumps({"audio_filepath": f"s{at}", **row}) for at, row in enumerate(rows_of)]
            (folder / f"MODEL_org-m{number}_DATASET_org-set_test.jsonl").write_text("\n".join(lines))
        else:
            (folder / f"m{number}").mkdir()
            table = pd.DataFrame(texts, columns=["text", "hypothesis"])
            table.to_csv(folder / f"m{number}" / "read.csv", index=False)
    return folder


def test_groups_and_chance_are_the_first_sentence(tmp_path):
    report = evaluate.audit(publish(tmp_path, [0.01, 0.01, 0.2, 0.2, 0.2, 0.5]))
    assert report.answer.startswith("Of 6 systems 3 groups can be told apart; rank 3 to 5 is chance.")
    assert report.summary["group"].tolist() == [1, 1, 2, 2, 2, 3]
    assert r"\toprule" in report.to_latex()
    assert (report.save(tmp_path / "page.html")).is_file()


def test_equal_systems_are_ties_in_files_of_the_leaderboard(tmp_path):
    report = evaluate.audit(publish(tmp_path, [0.1] * 3, leaderboard=True), normalize="open-asr")
    assert report.conclusion.text == "None of 3 systems can be told apart."
    assert set(report.summary["system"]) == {"org-m0", "org-m1", "org-m2"}


def test_who_follows_wrong_references_is_found_and_no_other(tmp_path):
    report = evaluate.audit(publish(tmp_path, [0.01] * 5, rows=400, wrong=0.5, follower=2))
    assert report.summary.loc[report.summary["follows"], "system"].tolist() == ["m2"]
    row = report.summary[report.summary["follows"]].iloc[0]
    assert row["followed_low"] < 0.4 < row["followed_high"]


def test_utterances_that_a_system_lacks_are_left_out_and_counted(tmp_path):
    publish(tmp_path, [0.1, 0.2])
    path = tmp_path / "m1" / "read.csv"
    rows = pd.read_csv(path)
    rows.loc[3, "hypothesis"] = None
    rows.head(140).to_csv(path, index=False)
    report = evaluate.audit(tmp_path)
    assert report.summary["utterances"].tolist() == [140, 140]
    assert list(report.notes) == [
        "10 utterances that not all have with one reference: left out.",
        "m1: 1 empty.",
    ]


def test_what_is_no_prediction_is_refused(tmp_path):
    with pytest.raises(InvalidRequestError, match="does not exist"):
        evaluate.audit(tmp_path / "nothing")
    with pytest.raises(InvalidRequestError, match="no predictions"):
        evaluate.audit(tmp_path)
    (tmp_path / "a.csv").write_text("text,other\nx,y\n")
    with pytest.raises(InvalidRequestError, match="no column of the hypothesis"):
        evaluate.audit(tmp_path)
    (tmp_path / "a.csv").write_text("text,hypothesis\nx,y\n")
    with pytest.raises(InvalidRequestError, match="1 system"):
        evaluate.audit(tmp_path)
