"""Prices in studies, and cheaper systems that are no worse: of plants with a known truth."""

import json
from contextlib import ExitStack

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import speechlab as sl
from evaluate.test_translation_answers import plant as plant_translations
from speechlab import evaluate
from speechlab.batch import Budget, Price
from speechlab.cli import app
from support.planted import WORDS, plant, spoil, study

DEAR, CHEAP = Price(per_hour=0.9, currency="EUR"), Price(per_hour=0.3, currency="EUR")
PRICES = {"dear": DEAR, "cheap": CHEAP}


def priced(count=60, cheap=0.05, **options):
    frame = plant(count, dear=spoil(0.05), cheap=spoil(cheap)).assign(duration_s=6.0)
    return study(frame, "dear", "cheap", **{"prices": PRICES, "margin": 6, **options})


def test_a_price_is_the_prices_of_a_budget():
    price = Price(per_hour=0.36, per_million_characters=15)
    assert dict(price) == pytest.approx({"characters": 15e-6, "audio_s": 0.0001})
    assert Budget(cost=1, prices=price).prices["audio_s"] == price["audio_s"]
    assert Price(**price.to_dict()) == price


@pytest.fixture(scope="module")
def report():
    return priced()


@pytest.mark.slow
def test_a_cheaper_system_that_is_no_worse_is_advised(report):
    assert report.conclusion.text == "Take cheap."
    assert (
        "makes at most 6 errors in 100 words more than dear (95%), at a third of the price" in report.answer
    )
    (row,) = report.tables["no_worse"].to_dict("records")
    assert row["no_worse"]
    assert row["difference"] < row["bound"] < 0.06
    assert "Hall" in str(report.methods())


def test_the_cost_is_that_of_the_rows(report):
    lines = report.summary.set_index("system")
    assert lines["cost"].to_dict() == pytest.approx({"dear": 0.09, "cheap": 0.03})  # 6 minutes
    assert lines["price_per_hour"].to_dict() == pytest.approx({"dear": 0.9, "cheap": 0.3})
    assert set(lines["currency"]) == {"EUR"}
    assert any("an hour (EUR)" in view.headings for view in report.build_views())
    assert report.plot("Errors, price and time").axes[0].get_xlabel() == "price of an hour (EUR)"


def test_the_front_has_what_no_other_system_dominates():
    costs = pd.DataFrame(
        [
            ("a", 1.0, 0.2, 5.0),
            ("b", 2.0, 0.1, 5.0),
            ("c", 2.0, 0.2, 1.0),
            ("d", 3.0, 0.2, 2.0),
            ("e", 3.0, 0.1, 5.0),
        ],
        columns=["system", "price", "error_rate", "time_s"],
    ).assign(language="en")
    for time, front in (
        ("time_s", [True, True, True, False, False]),
        (None, [True, True, False, False, False]),
    ):
        marks = sl.plots.trade_offs(costs, time=time).axes[0].collections
        assert [len(mark.get_facecolor()) > 0 for mark in marks] == front
    failed = costs.head(3).assign(error_rate=[0.0, 0.1, 0.1], failed=[200, 0, 0], utterances=400)
    axes = sl.plots.trade_offs(failed, time=None).axes[0]
    assert [len(mark.get_facecolor()) > 0 for mark in axes.collections] == [False, True, True]
    assert [note.get_text() for note in axes.texts] == ["a\n200 of 400 failed", "b", "c"]


def test_a_study_marks_failures_and_what_has_no_price():
    frame = plant(4, dear=spoil(0.05), cheap=spoil(0)).assign(duration_s=[6.0, None, 6.0, 6.0])
    frame.loc[2:, "cheap"] = None
    with pytest.warns(UserWarning, match="failed"):
        report = study(frame, "dear", "cheap", prices=PRICES, margin=3)
    assert report.tables["no_worse"]["untested"].tolist() == ["cheap failed on 2 of 4"]
    assert report.tables["rates"].set_index("system")["failed"].to_dict() == {"dear": 0, "cheap": 2}
    lines = report.summary.set_index("system")
    assert lines["cost"].to_dict() == pytest.approx({"dear": 18 * 0.9 / 3600, "cheap": 6 * 0.3 / 3600})
    assert report.notes == (
        "The cost is that of the rows with a length (duration_s): cheap 1 of 2 and dear 3 of 4.",
    )
    one = study(frame.iloc[[1]], "dear", "cheap", prices={"cheap": CHEAP})
    assert [note for note in one.notes if "no price of dear" in note]
    assert "No row with an output has a length (duration_s), so there is no cost." in one.notes


def run_study(folder, prices):
    """Run the command with a file of prices; gives its status and what it says."""
    command = ["study", "recognition", f"{folder / 'rows.csv'}", "--out", f"{folder / 'report'}"]
    command += ["--hypothesis", "dear=dear", "--hypothesis", "cheap=cheap", "--prices", f"{folder / prices}"]
    done = CliRunner().invoke(app, command)
    return done.exit_code, " ".join(f"{done.output}{done.exception}".split())


@pytest.mark.slow
def test_prices_are_read_from_a_file(report, tmp_path):
    plant(20, dear=spoil(0.05), cheap=spoil(0.05)).assign(duration_s=6.0).to_csv(tmp_path / "rows.csv")
    (tmp_path / "prices.json").write_text(json.dumps(report.record["settings"]["prices"]), "utf-8-sig")
    status, told = run_study(tmp_path, "prices.json")
    assert status == 0, told
    saved = evaluate.Report.load(tmp_path / "report")
    assert " ".join(saved.answer.split()) in told
    assert len(saved.tables["no_worse"]) == 1
    assert saved.summary.set_index("system")["cost"].to_dict() == pytest.approx({"dear": 0.03, "cheap": 0.01})


def test_a_file_of_prices_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "rows.csv").write_text("text,dear,cheap,language\nan owl,an owl,an owl,en\n")
    twice = '{"dear": {"per_hour": 1}, "cheap": {"per_hour": 1}, "dear": {"per_hour": 2}}'
    for name, written, why in (
        ("gone.json", "", "there is no file"),
        ("prices.json", '{"dear"', "cannot be read as JSON"),
        ("prices.json", twice, "'dear' stands 2 times in one object"),
    ):
        (tmp_path / "prices.json").write_text(written)
        status, told = run_study(tmp_path, name)
        assert (status != 0, why in told) == (True, True), told


@pytest.mark.slow
def test_translations_cost_by_the_characters_of_their_texts():
    frame = pd.DataFrame(
        {"text": ["guten Tag", "gute Nacht", "ja"], "reference": ["good day", "good night", "yes"]}
    )
    frame = frame.assign(
        source_lang="de", target_lang="en", dear=frame["reference"], cheap=["good day", None, "yes"]
    )
    prices = {name: Price(per_million_characters=cost) for name, cost in (("dear", 20.0), ("cheap", 5.0))}
    with pytest.warns(UserWarning, match="failed"):
        report = evaluate.translation(None, frame, hypotheses=["dear", "cheap"], prices=prices)
    lines = report.summary.set_index("system")
    assert lines["cost"].to_dict() == pytest.approx({"dear": 21 * 20e-6, "cheap": 11 * 5e-6})
    assert lines["price_per_million_characters"].to_dict() == pytest.approx({"dear": 20.0, "cheap": 5.0})
    (cost,) = (view for view in report.build_views() if view.title == "Cost")
    assert "this set (USD)" in cost.headings


def translate(count=40, cheap=0.05, **options):
    """A study of two planted translators, the second at a third of the price."""
    frame = plant_translations(count, dear=spoil(0.05), cheap=spoil(cheap))
    prices = {name: Price(per_million_characters=cost) for name, cost in (("dear", 30.0), ("cheap", 10.0))}
    options = {"hypotheses": ["dear", "cheap"], "prices": prices, "margin": 10, "progress": False} | options
    return evaluate.translation(None, options.pop("change", lambda rows: rows)(frame), **options)


@pytest.mark.slow
def test_a_cheaper_translator_that_is_no_worse_is_advised(tmp_path):
    report = translate()
    assert report.answer == (
        "Take cheap. It is at most 10 points of chrF below dear (95%), at a third of the price."
    )
    (row,) = report.tables["no_worse"].to_dict("records")
    (difference,) = report.differences.to_dict("records")
    assert row["difference"] == pytest.approx(-difference["difference"] / 100, abs=0.001)
    assert row["p_holm"] == pytest.approx(2 * row["p"])
    assert (row["unit"], row["blocks"], row["margin"]) == ("chrF", 40, 0.1)
    assert "jackknife" in str(report.methods())
    assert evaluate.verify(report.save(tmp_path / "page.html")).answer.endswith("all equal.")


@pytest.mark.slow
def test_a_translator_is_not_called_no_worse_without_evidence():
    worse = translate(20, cheap=0.3)
    assert worse.conclusion.text == "Take dear."
    assert (
        "That cheap is at most 10 points of chrF below dear (95%), at a third of the price, is not shown"
        in str(worse.findings[-1])
    )
    twice = lambda rows: pd.concat([rows] * 2)  # noqa: E731 - repeats are no evidence
    untested = {
        "10 blocks, and it takes 20": translate(10, change=twice),
        "there is no reference": translate(20, reference=None),
    }
    with pytest.warns(UserWarning, match="failed"):
        failed = translate(20, change=lambda rows: rows.assign(cheap=rows["cheap"].mask(rows.index == 3)))
    blank = lambda rows: rows.assign(cheap=rows["cheap"].mask(rows.index == 3, ""))  # noqa: E731
    untested["cheap came back empty on 1 of 20"] = translate(20, change=blank)
    for why, report in {**untested, "cheap failed on 1 of 20": failed}.items():
        assert report.tables["no_worse"]["untested"].tolist() == [why]
        assert "at most" not in report.conclusion.text


@pytest.mark.slow
def test_a_cheaper_translator_that_loses_terms_is_not_advised():
    terms = {f"satz {row}": f"{row + 100}" for row in range(40)}
    drop = lambda rows: rows.assign(cheap=rows["cheap"].str.replace(r" \S+$", "", regex=True))  # noqa: E731
    report = translate(glossary=terms, change=drop)
    assert report.tables["no_worse"]["no_worse"].tolist() == [True]
    assert not report.answer.startswith("Take cheap")


@pytest.fixture(scope="module")
def speakers():
    """Two services that speak alike, each text in a length of its own; their recognizer knows it, and slips once."""
    texts = [f"the {WORDS[number % 18]} and {WORDS[number * 7 % 18]} of {number}" for number in range(24)]
    speak = lambda text: (np.sin(np.arange(800 + 40 * texts.index(text))), 8_000)  # noqa: E731
    hear = lambda clip: texts[(len(clip.samples) - 800) // 40].replace("of 7", "off 7")  # noqa: E731
    with ExitStack() as opened:
        dear, cheap = (
            opened.enter_context(sl.system(name, synthesize=speak, transcribe=hear, version="1"))
            for name in ("dear", "cheap")
        )
        prices = {
            name: Price(per_million_characters=cost) for name, cost in (("dear", 30.0), ("cheap", 10.0))
        }
        frame = pd.DataFrame({"text": texts, "language": "de"})
        yield {"dear": dear, "cheap": cheap}, frame, {"prices": prices, "progress": False}


@pytest.mark.slow
def test_a_cheaper_voice_that_is_no_worse_is_advised(speakers, tmp_path):
    labs, frame, how = speakers
    report = evaluate.voices(labs, frame, margin=20, speed=0, dnsmos=0, store=str(tmp_path / "store"), **how)
    (row,) = report.tables["no_worse"].to_dict("records")
    assert (row["a"], row["b"], row["blocks"]) == ("default of dear", "default of cheap", 24)
    assert row["no_worse"]
    assert row["price_ratio"] == pytest.approx(1 / 3)
    assert report.conclusion.text == "Take “default of cheap”."
    assert "at a third of the price" in report.answer
    assert evaluate.verify(report.save(tmp_path / "page.html")).answer.endswith("all equal.")
