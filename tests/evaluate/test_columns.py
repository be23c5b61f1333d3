"""Columns of a table that a study is made of: those that it makes itself are refused, all others carried over."""

from __future__ import annotations

import csv
from contextlib import suppress

import pandas as pd
import pytest

from speechlab import datasets, evaluate
from speechlab.contract import Voice
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.store import Store
from support.studies import serving

pytestmark = pytest.mark.slow

TEXTS = pd.DataFrame({"text": ["Good morning.", "今日は三時です。", "今天很好。"], "language": "en"})
KIND = ["first", "second", "second"]


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Each study as a function of what it adds to its table; and the table."""
    folder = tmp_path_factory.mktemp("columns")
    with serving() as staged, Store(folder / "store") as store:
        staged.ears.hears = lambda duration_s: "good 三時"
        lab, how = staged.lab, {"store": store, "progress": False}
        sound = str(lab.synthesize("Good morning.", voice="low").save(folder / "one.wav"))
        heard = TEXTS.assign(audio=sound, language=["en", "ja", "zh"])
        mixed = {"noise_db": [10], "settings": {"plain": {}, "names": {"hotwords": ["good"]}}}
        directed = TEXTS.assign(source_lang="en", target_lang="ja")
        both = {"ours": lab, "theirs": lab.with_options()}
        yield {
            "round_trip": (TEXTS, lambda table: evaluate.round_trip(both, table, "low", **how)),
            "voices": (TEXTS, lambda table: evaluate.voices(both, table, "low", speed=0, dnsmos=0, **how)),
            "recognition": (heard, lambda table: evaluate.recognition(lab, table, **how)),
            "compared": (heard, lambda table: evaluate.recognition(lab, table, **mixed, **how)),
            "translation": (
                directed,
                lambda table: evaluate.translation(both, table, back=True, glossary=["good"], **how),
            ),
        }


NAMES = ("voices", "compared", "translation")
"""A study of each kind; a round trip is the first half of that of voices, and "compared" has all of recognition."""


@pytest.mark.parametrize("name", NAMES)
def test_own_columns_are_carried_over_and_results_refused(studies, name):
    table, study = studies[name]
    own = {"why": KIND, "kind": KIND, "tts_status": KIND, "asr_error": KIND}
    if name == "translation":
        own["condition"] = KIND
    report = study(table.assign(**own))
    assert not set(own) & set(report.summary)
    for column in own:
        rows = report.table.groupby("text")[column].agg(set).reindex(table["text"])
        assert rows.tolist() == [{"first"}, {"second"}, {"second"}], column
    made = {"speechlab: why", *report.table.columns} - set(table.columns) - set(own)
    made -= {"audio", "voice", "duration_s", "sample_rate", "gender", "file"} if name == "compared" else set()
    assert "status" in made
    for column in made:
        told = f"the column '{column}', which is a result of the study"
        with pytest.raises(InvalidRequestError, match=told):
            study(table.assign(**{column: KIND}))


def test_recordings_may_say_who_speaks_and_at_which_rate(studies):
    table, study = studies["recognition"]
    said = {"speaker": "S1", "gender": "female", "sample_rate": 48_000, "file": ["a", "b", "c"]}
    report = study(table.assign(**said))
    assert report.table[list(said)].to_dict("records") == [{**said, "file": name} for name in "abc"]
    assert set(report.summary["gender"]) == {"female"}


def test_no_text_of_a_saved_table_is_a_formula(studies, tmp_path):
    table, study = studies["recognition"]
    signs = ["=HYPERLINK(0)", "'=1", "-kun"]
    report = study(table.assign(text=signs, **{"=1+1": ["@a", "＝1", "it's"]}))
    folder = report.save(tmp_path / "out")
    raw = pd.read_csv(folder / "results.csv")
    assert raw["text"].tolist() == ["'=HYPERLINK(0)", "''=1", "'-kun"]
    assert raw["'=1+1"].tolist() == ["'@a", "'＝1", "it's"]
    for name in ("results.csv", "summary.csv"):
        with (folder / name).open(newline="", encoding="utf-8") as lines:
            cells = [cell for row in csv.reader(lines) for cell in row]
        assert not [cell for cell in cells if cell[:1] in {*"=+@＝＋－＠"}]
    again = datasets.read(folder / "results.csv")
    assert again["text"].tolist() == signs
    assert again["=1+1"].tolist() == ["@a", "＝1", "it's"]
    assert evaluate.Report.load(folder).table["text"].tolist() == signs


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["round_trip", "compared", "translation"])
def test_texts_that_are_none_fail_alone(studies, name, tmp_path):
    table, study = studies[name]
    report = study(table.assign(text=pd.Series(["Good morning.", ["a"], 3], dtype=object)))
    why = [name for name in ("error", "score_error") if name in report.table]
    told = report.table[why].notna().any(axis=1)
    assert told.groupby(report.table["text"].map(repr)).all().to_dict() == {
        "'Good morning.'": False,
        "3": True,
        "['a']": True,
    }
    with pytest.raises(StoreError, match="'results', column 'text' holds what Parquet cannot"):
        report.save(tmp_path / "out")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["round_trip", "compared", "translation"])
def test_rows_that_all_fail_make_a_report(studies, name, tmp_path):
    table, study = studies[name]
    codes = ["language"] if name != "translation" else ["source_lang", "target_lang"]
    wrong = table.assign(**dict.fromkeys(codes, pd.Categorical(["en", None, "klingon"])))
    report = study(wrong.assign(text=["\N{GRINNING FACE}", None, " "]).set_axis([1, 1, 1]))
    assert report.table["status"].isin(["error", "skipped"]).any()
    assert report.table.loc[report.table["status"].isin(["error", "skipped"]), "error"].notna().all()
    again = evaluate.Report.load(report.save(tmp_path / "out"))
    with suppress(InvalidRequestError):  # nothing was scored
        assert not again.compare(report).worse


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_speed_is_measured_with_texts_alone(tmp_path):
    with serving() as staged:
        texts = TEXTS.assign(text=[None, " ", "Good morning."])
        found = evaluate.voices(
            staged.lab, texts, "low", speed=3, dnsmos=0, store=str(tmp_path), progress=False
        )
    assert found.speed["text"].tolist() == ["Good morning."]
    assert not any("Speed" in note for note in found.notes)


def test_names_and_languages_of_voices():
    for language, code, yes in (
        ("ja", "ja", True),
        ("ja, en", "en", True),
        ("ja-JP/en-US", "ja", True),
        ("Japanese", "ja", True),
        ("Japanese", "se", False),
        ("Java", "ja", False),
        ("en", "ja", False),
    ):
        assert evaluate.speaks(Voice(id="v", language=language), code) is yes, language
    for description, name in (
        ("Bright (kokoro: jf_alpha)", "kokoro: jf_alpha"),
        ("Anna: a warm voice", "Anna"),
        ("", "12345678"),
    ):
        assert evaluate.voice_name(Voice(id="12345678-rest", description=description)) == name


def test_rows_that_are_left_out_are_told(studies):
    table, study = studies["recognition"]
    report = study(table.assign(language=["en", "jp", "jp"]))
    told = "'jp' is no code of a language; give one, such as 'ja' or 'en'."
    assert report.notes[:1] == (f"2 of 3 rows were left out; mostly: {told}",)
    assert report.table["status"].tolist()[1:] == ["skipped", "skipped"]
    notes = study(table.assign(text=["Good morning.", None, "…"])).notes
    assert "2 of 3 recognized rows have no reference, and no score." in notes
    table, study = studies["round_trip"]
    strange = {"snr_db": 10.0, "loudness_lufs": -20.0, "chrf": 50.0, "dnsmos_overall": 3.0, "rtf": 0.5}
    table = table.assign(language=["en", "ja", None])
    report = study(table.assign(**strange))
    assert report.table["sample_rate"].dtype == "Int64"  # though some was not spoken
    for service in ("ours", "theirs"):
        skipped = f"{service}: 1 row was skipped, because "
        assert f"{skipped}none of the voices speaks the language: ja." in report.notes
        assert f"{skipped}the language code is missing or not known." in report.notes
    assert report.methods() == study(table).methods()  # of what was measured, and not of own columns
