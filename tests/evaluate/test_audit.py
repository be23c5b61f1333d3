"""Audits of predictions with planted truths: ties, order, followers of wrong references; and files of strangers."""

import json
import random

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from speechlab import evaluate
from speechlab.cli import app
from speechlab.errors import InvalidRequestError
from support.planted import plant, right

WORDS = np.array([f"w{number}" for number in range(300)])


def publish(folder, rates, *, rows=150, wrong=0.0, follower=None, leaderboard=False, sets=("read",), **more):
    """Files of systems that spoil words at these rates; of references that are wrong, a follower has 4 of 10."""
    noise = np.random.default_rng(3)
    for name in sets:
        said = noise.choice(WORDS, (rows, 8))
        references = said.copy()
        references[noise.random(rows) < wrong, 0] = "zz"
        for number, rate in enumerate(rates):
            outputs = said.copy()
            if number == follower:
                follows = noise.random(rows) < 0.4
                outputs[follows] = references[follows]
            spoilt = noise.random(outputs.shape) < rate
            outputs = np.where(spoilt, noise.choice(WORDS, outputs.shape), outputs)
            table = pd.DataFrame(
                {"text": map(" ".join, references), "hypothesis": map(" ".join, outputs), **more}
            )
            if leaderboard:
                table = table.rename(columns={"hypothesis": "pred_text"})
                lines = table.assign(audio_filepath=[f"s{at}" for at in range(rows)]).to_json(
                    orient="records", lines=True
                )
                (folder / f"MODEL_org-m{number}_DATASET_org-{name}_test.jsonl").write_text(lines)
            else:
                (folder / f"m{number}").mkdir(exist_ok=True)
                table.to_csv(folder / f"m{number}" / f"{name}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rates = [0.01, 0.01, 0.2, 0.2, 0.2, 0.5]
    return evaluate.audit(publish(tmp_path_factory.mktemp("audit"), rates, sets=("read", "said")))


@pytest.mark.slow
def test_groups_and_chance_are_the_first_sentence_of_each_set(report):
    assert report.answer.startswith("m0 and m1 lead and cannot be told apart; the other four are worse.")
    summary, sets, differences = report.summary, report.tables["sets"], report.differences
    assert summary["group"].tolist() == [*"aabbbc"]
    assert summary[["rank_low", "rank_high"]].to_numpy().tolist() == [[1, 2]] * 2 + [[3, 5]] * 3 + [[6, 6]]
    assert summary["needed"].dropna().min() > 300
    assert summary["needed"].isna()[[0, 2, 5]].all()
    assert sets.groupby("set")["group"].max().to_dict() == {"read": "c", "said": "c"}
    assert differences["condition"].value_counts().to_dict() == {"all sets": 15, "read": 15, "said": 15}


@pytest.mark.slow
def test_who_follows_wrong_references_is_found_and_no_other(tmp_path):
    report = evaluate.audit(publish(tmp_path, [0.01] * 5, rows=400, wrong=0.5, follower=2))
    assert report.summary.loc[report.summary["follows"], "system"].tolist() == ["m2"]
    row = report.summary[report.summary["follows"]].iloc[0]
    assert row["followed_low"] < 0.4 < row["followed_high"]
    assert set(report.tables["suspects"]["reference"]) == {"zz"}
    assert "“zz”, where they have “w" in str(report.findings[0])


def test_a_place_is_suspected_where_most_others_agree(tmp_path):
    said, other = "the color of 20 old hats is red", "the colour of twenty old cats is red"
    texts = {"a": said, "b": said, "c": said, "d": other}
    rows = pd.DataFrame(
        {"system": list(texts), "text": other, "hypothesis": list(texts.values()), "set": "one"}
    )
    rows.to_csv(tmp_path / "all.csv")
    report = evaluate.audit(tmp_path / "all.csv", normalize="basic")
    (place,) = report.tables["suspects"].to_dict("records")
    assert (place["reference"], place["others"], place["agreeing"]) == ("cats", "hats", 3)
    assert report.summary.set_index("system")["followed"].to_dict() == {"a": 0, "b": 0, "c": 0, "d": 1}
    assert not report.summary["follows"].any()  # one place is too few


def write_lines(folder, **outputs):
    """A file of JSON lines for each system; an output of None is absent."""
    for name, texts in outputs.items():
        (folder / name).mkdir(parents=True)
        rows = [
            {"text": said} | ({} if text is None else {"pred_text": text})
            for said, text in zip(SAID[:40], texts, strict=True)
        ]
        (folder / name / "read.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def test_an_absent_prediction_is_no_empty_one(tmp_path):
    outputs = slip("a", SAID[:40])
    report = evaluate.audit(write_lines(tmp_path / "absent", a=outputs, b=[*[None] * 10, *outputs[10:]]))
    assert report.answer.startswith("None of 2 systems can be told apart.")
    assert report.answer.endswith("b has no prediction for 10 of 40 utterances.")
    assert report.summary["utterances"].tolist() == [30, 30]
    report = evaluate.audit(write_lines(tmp_path / "empty", a=outputs, b=[*[""] * 10, *outputs[10:]]))
    assert report.answer.startswith("a leads; b is worse.")
    assert "b, English: 10 of 40 recordings came back empty" in str(report.findings)
    write(tmp_path / "cells", "ab", SAID[:40], lambda name, _: outputs if name == "a" else [None] * 40)
    with pytest.raises(InvalidRequestError, match="\nb has no prediction for 40 of 40 utterances"):
        evaluate.audit(tmp_path / "cells")


def test_one_runaway_is_said_with_the_ranks_without_it(tmp_path):
    worse = [f"x{text[1:]}" if row % 2 else text for row, text in enumerate(SAID[:40])]
    report = evaluate.audit(write_lines(tmp_path, a=["zo " * 900, *SAID[1:40]], b=worse))
    assert "One utterance makes 900 of 900 errors of a; without it, a leads; b is worse." in report.answer


def test_few_places_of_wrong_references_are_counted(tmp_path):
    others = [f"w299 {text}" for text in SAID[:40]]
    systems = dict.fromkeys("abcd", others) | {"e": SAID[:40]}
    report = evaluate.audit(write_lines(tmp_path, **systems))
    assert not report.summary["follows"].any()
    assert "It takes 50 wrong references" in report.build_views()[0].note


def test_repeats_and_speakers_count_once(tmp_path):
    speakers = np.repeat([f"p{number}" for number in range(15)], 10)
    report = evaluate.audit(publish(tmp_path, [0.1, 0.2], speaker=speakers))
    assert "on 150 utterances, which count as 15 " in report.answer
    rows = pd.DataFrame({"id": ["a"] * 30, "text": "one text", "hypothesis": "one text"})
    for name in ("m0", "m1"):
        rows.to_csv(tmp_path / name / "read.csv", index=False)
    assert "which count as 1 " in evaluate.audit(tmp_path).answer


@pytest.mark.slow
def test_reports_are_audited_in_their_language(tmp_path):
    frame = pd.DataFrame({"text": ["guten Tag"] * 2 + ["gute Nacht"], "language": "de", "one": "guten Tag"})
    study = evaluate.recognition(
        None, frame.assign(two=frame["text"]), hypotheses=["one", "two"], progress=False
    )
    folder = study.save(tmp_path / "reports" / "one")
    report = evaluate.audit(tmp_path / "reports")
    assert evaluate.audit(folder / "report.html").answer == report.answer
    assert report.table["signature"].str.contains(r"lang:de\|").all()
    assert report.summary.set_index("system")["errors"].to_dict() == {"two": 0, "one": 2}


def write(folder, names, texts, hypothesis, **columns):
    """A file for each system, whose hypotheses are those of a function of the system and the texts."""
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        table = pd.DataFrame({"text": texts, "hypothesis": hypothesis(name, texts), **columns})
        table.to_csv(folder / name / "read.csv", index=False)


def slip(name, texts):
    """Slips of a system of its own: of the first words of every seventh text, another seventh for each name."""
    return [f"{name}{text}" if row % 7 == ord(name[0]) % 7 else text for row, text in enumerate(texts)]


SAID = [" ".join(WORDS[row : row + 6]) for row in range(140)]


@pytest.mark.slow
def test_rows_without_common_names_are_joined_by_references(tmp_path):
    write(tmp_path, "ab", SAID, slip)
    part = [*range(52), *range(53, 140)][::-1]  # without a row that is right
    outputs = slip("c", SAID)
    write(tmp_path, "c", [SAID[row] for row in part], lambda *_: [outputs[row] for row in part])
    report = evaluate.audit(tmp_path)
    assert set(report.summary["utterances"]) == {139}
    assert set(report.summary["errors"]) == {20}
    assert report.notes[-1].endswith("left out, which c lacks, or has with another reference.")
    for name in "abc":
        path = tmp_path / name / "read.csv"
        rows = pd.read_csv(path)
        rows.assign(id=range(len(rows))).to_csv(path, index=False)
    assert evaluate.audit(tmp_path).answer == report.answer


def test_a_system_with_few_rows_or_own_references_is_left_out(tmp_path):
    write(tmp_path, "ab", SAID, slip)
    write(tmp_path, "c", SAID[:3], slip)
    write(tmp_path, "d", [f"zz {text}" for text in SAID], slip)
    report = evaluate.audit(tmp_path)
    assert report.conclusion.text == "None of 2 systems can be told apart."
    assert set(report.summary["utterances"]) == {140}
    assert list(report.notes[:2]) == [
        "d is left out, as it has 0 of the others' 140 utterances with their reference.",
        "c is left out, as it has 3 of the others' 140 utterances with their reference.",
    ]
    assert report.answer.endswith("d and c are left out; 2 of 4 systems are compared.")


def test_one_system_under_two_names_makes_no_other_a_follower(tmp_path):
    words = [" ".join(WORDS[row % 280 : row % 280 + 6]) for row in range(700)]
    write(tmp_path, "abc", words, slip)
    write(tmp_path, ["twin of c"], words, lambda _, texts: slip("c", texts))
    report = evaluate.audit(tmp_path)
    assert not report.summary["follows"].any()
    assert str(report.findings[0]).startswith("c and “twin of c” make mostly the same errors")
    assert not len(report.tables["suspects"])


@pytest.mark.slow
def test_the_language_is_that_of_the_texts(tmp_path):
    texts = {"ja": "今日は朝から雨が降っています", "zh": "今天早上下雨了所以在家"}
    for code, text in texts.items():
        rows = [f"{text}{row}" for row in range(8)]
        write(tmp_path / code, "ab", rows, lambda _, texts: [text[1:] for text in texts])
        report = evaluate.audit(tmp_path / code)
        assert report.record["settings"]["language"] == code
        assert report.summary["errors"].tolist() == [8, 8]
        assert report.notes[0].startswith("The texts are taken as ")
        for name in "ab":
            (tmp_path / code / name / "read.csv").rename(tmp_path / code / name / f"{code}.csv")
    with pytest.raises(InvalidRequestError, match="of ja and zh"):
        evaluate.audit([tmp_path / code / name for code in texts for name in "ab"])


@pytest.mark.slow
def test_files_of_one_folder_are_systems(tmp_path):
    folder = tmp_path / "talks"
    folder.mkdir()
    rows = pd.DataFrame({" Reference ": SAID, "Prediction": slip("a", SAID)})
    rows.to_csv(folder / "a.csv.gz", index=False, sep=";")
    rows.rename(columns=str.strip).to_json(folder / "b.json", orient="records")
    rows.to_csv(folder / "c.tsv", index=False, sep="\t", encoding="utf-16")
    (folder / ".checkpoints").mkdir()
    rows.to_csv(folder / ".checkpoints" / "d.csv")
    (folder / "scores.txt").write_text("1")
    report = evaluate.audit(folder)
    assert report.summary.set_index("system")["errors"].to_dict() == {"a": 20, "b": 20, "c": 20}
    assert list(report.notes[:2]) == [
        "1 file of other kinds not read: scores.txt.",
        "Each file of talks is taken as a system.",
    ]
    broken = {
        "d.csv": b"",
        "e.csv": "text,hypothesis\ncaf\u00e9,y".encode("latin-1"),
        "g.parquet": bytes(range(256)),
    }
    for name, content in broken.items():
        (folder / name).write_bytes(content)
    (folder / "i.jsonl").symlink_to("gone.jsonl")
    whole = evaluate.audit(folder)
    assert whole.conclusion.text == report.conclusion.text
    assert whole.answer.endswith("d.csv and 3 others could not be read; 3 of 7 systems are compared.")
    assert [note.split()[0] for note in whole.notes[:4]] == [*broken, "there"]


def test_ties_and_a_malformed_line_of_the_leaderboard(tmp_path):
    publish(tmp_path, [0.1] * 3, leaderboard=True)
    path = tmp_path / "MODEL_org-m1_DATASET_org-read_test.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], "{", *lines[3:]]))
    report = evaluate.audit(tmp_path, normalize="open-asr")
    assert report.conclusion.text == "None of 3 systems can be told apart."
    assert set(report.summary["system"]) == {"org-m0", "org-m1", "org-m2"}
    assert set(report.table["set"]) == {"org-read_test"}
    assert report.summary["utterances"].tolist() == [149] * 3
    assert report.notes[0].startswith(f"{path.name}, line 3: ")


@pytest.mark.slow
def test_the_command_saves_an_audit_that_proves_itself(tmp_path):
    publish(tmp_path, [0.1, 0.2], rows=20, sets=("read", "said"))
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["audit", str(tmp_path), "--out", str(page), "--title", "Who is first?"])
    assert done.exit_code == 0, done.output
    report = evaluate.audit([tmp_path / "m0", tmp_path / "m1"])
    assert report.answer in done.output
    proof = evaluate.verify(page)
    assert proof.answer.endswith("all equal.")
    assert proof.title == "Who is first?"


def slips(share, seed):
    """Utterances with a slip for each word that all systems share."""
    made = random.Random(seed)
    texts = plant(400, a=right)["text"]
    return [
        " ".join(f"{word}s" if made.random() < share else word for word in text.split()) for text in texts
    ]


@pytest.mark.slow
def test_who_errs_often_is_no_follower_where_slips_coincide(tmp_path):
    references = slips(0.05, 1)
    rates = {"first": 0.02, "second": 0.03, "third": 0.06, "fourth": 0.1, "tiny": 0.3}
    rows = [
        pd.DataFrame({"system": name, "text": references, "hypothesis": slips(share, seed)}).assign(
            id=range(400)
        )
        for seed, (name, share) in enumerate(rates.items(), 2)
    ]
    pd.concat(rows).to_csv(tmp_path / "set.csv")
    summary = evaluate.audit(tmp_path / "set.csv").summary.set_index("system")
    assert not summary["follows"].any()
    tiny = summary.loc["tiny"]
    assert tiny["suspects"] > 100
    assert tiny["followed_low"] > max(2 * tiny["usual"], 0.02)  # which would accuse it
    assert tiny["chance"] == pytest.approx(0.3, abs=0.06)
