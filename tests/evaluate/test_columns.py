"""Columns of a table that a study is made of: those that it makes itself are refused, all others carried over."""

from contextlib import suppress

import pandas as pd
import pytest

from speechlab import evaluate
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
        mixed = {"noise_db": [10], "hotwords": ["good"]}
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


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["recognition", "translation"])
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
@pytest.mark.parametrize("name", ["round_trip", "translation"])
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


def test_names_and_languages_of_voices():
    for language, code, yes in (
        ("ja", "ja", True),
        ("ja-JP/en-US", "en", True),
        ("Japanese", "ja", True),
        ("Java", "ja", False),
    ):
        assert evaluate.speaks(Voice(id="v", language=language), code) is yes, language
    for description, name in (
        ("Bright (kokoro: jf_alpha)", "kokoro: jf_alpha"),
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
    report = study(table.assign(language=["en", "ja", None]))
    assert report.table["sample_rate"].dtype == "Int64"  # though some was not spoken
    for service in ("ours", "theirs"):
        skipped = f"{service}: 1 row was skipped, because "
        assert f"{skipped}none of the voices speaks the language: ja." in report.notes
        assert f"{skipped}the language code is missing or not known." in report.notes
