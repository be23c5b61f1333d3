"""The study of translations: scores, settings, terms, the way back and the first word."""

from __future__ import annotations

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.client import Client, OpenAIAdapter
from speechlab.store import Store
from support.openai_server import KEY, openai_server
from support.studies import serving

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>"
GLOSSARY = {"会議室": ["meeting room", "conference room"]}


def study(**outputs):
    """A study of outputs, of texts of which each other one has the term of the glossary."""
    count = len(next(iter(outputs.values())))
    frame = pd.DataFrame(
        {
            "text": [f"{'会議室' if row % 2 else '駅'}は{row}番です。" for row in range(count)],
            "reference": [right(row) for row in range(count)],
            "source_lang": "ja",
            "target_lang": "en",
        }
    )
    kept = {name: outputs.pop(name) for name in ("text", "reference") if name in outputs}
    frame = frame.assign(**outputs, **kept)
    return evaluate.translation(None, frame, hypotheses=list(outputs), glossary=GLOSSARY, progress=False)


def right(row):
    return f"The {'meeting room' if row % 2 else 'station'} is number {row}."


def lost(row):
    return right(row).replace("meeting room", "assembly hall")


def clumsy(row):
    return right(row) if row % 2 else f"Station? It has got the {row}."


# What is measured, on constructed cases


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_measures_of_rows():
    report = study(a=[right(0), lost(1), "駅は2番です", None])
    found = report.table
    assert found["terms_expected"].tolist()[:3] == [0, 1, 0]
    assert found["terms_found"].tolist()[:3] == [0, 0, 0]
    assert found["copied"].tolist()[:3] == [False, False, True]
    assert found["length_ratio"][0] == pytest.approx(len(right(0)) / 7)
    assert found["chrf"][0] == 100
    assert found.loc[3, ["chrf", "length_ratio", "copied", "terms_found"]].isna().all()
    counts = ["utterances", "copies", "terms_expected", "terms_found", "terms_kept"]
    assert report.summary[counts].to_numpy().tolist() == [[3, 1, 1, 0, 0]]


def test_translations_that_loop():
    loop = "no exit, no exit, no exit, no exit"
    report = study(a=[loop, "no exit, no exit"] + ["no exit" * 4] * 2)
    assert report.table["loop"].tolist() == [True, False, True, True]
    assert report.summary["loops"].tolist() == [3]
    # the text does so itself, or the reference
    texts = ["駅は一番です駅は一番です駅は一番です", "駅"]
    assert (
        not study(a=["no exit " * 4] * 2, text=texts, reference=["no exit", "no exit " * 4])
        .table["loop"]
        .any()
    )


def test_what_a_glossary_helps_and_what_it_costs_elsewhere():
    says = {"plain": lost, "keywords": clumsy, "context": right}
    report = study(**{name: [say(row) for row in range(24)] for name, say in says.items()})
    found = report.differences
    verdicts = found[found["a"] == "plain"].set_index(["b", "condition", "measure"])["verdict"]
    assert verdicts["keywords", "texts with terms", "terms kept"] == "better"
    assert verdicts["keywords", "texts with terms", "chrF"] == "better"
    assert verdicts["keywords", "texts without terms", "chrF"] == "worse"
    assert verdicts["context", "texts without terms", "chrF"] == "no difference shown"
    assert found["n"].tolist() == [12, 12, 12, 24] * 3
    assert (found["p_holm"] >= found["p"]).all()
    told = (
        "keywords instead of plain, ja → en: texts with terms, terms kept 0.0% to 100.0%, +100.0 points, p = "
    )
    assert str(report.findings[0]).startswith(told)


def test_few_texts_and_one_text_many_times_show_no_difference():
    outputs = {name: [say(row) for row in range(8)] for name, say in (("plain", lost), ("keywords", right))}
    same = {"text": ["会議室です。"] * 8, "reference": [right(1)] * 8}
    for report in (study(**outputs), study(**outputs, **same)):
        assert set(report.differences["verdict"]) == {"no difference shown"}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_texts_that_one_setting_lacks_are_left_out():
    full = [right(row) for row in range(24)]
    assert study(plain=full, b=[None] * 2 + full[2:]).differences["n"].tolist() == [11, 11, 11, 22]


def test_differences_have_intervals_from_twenty_texts_on():
    says = {"ours": right, "theirs": clumsy}
    report, few = (
        study(**{name: [say(row) for row in range(count)] for name, say in says.items()})
        for count in (44, 20)
    )
    without = report.differences.set_index(["condition", "measure"]).loc["texts without terms", "chrF"]
    assert without["low"] < without["difference"] < without["high"] < 0
    told = f"95% interval {without['low']:+.1f} to ".replace("-", "−")
    assert told in str(report.findings[0])
    assert few.differences["low"].isna().tolist() == [True, True, True, False]


# The study on a service whose translator knows one sentence, and repeats the terms that it gets


def interpreted(job):
    sentence = {"en": "The meeting room is upstairs.", "ja": "会議室は上です。"}[job.target]
    return " ".join([sentence, *(term for term in ("Kubernetes", HOSTILE) if term in job.text)])


@pytest.fixture(scope="module")
def staged():
    with serving(languages=("ja", "en")) as found:
        found.translator.says = interpreted
        yield found


@pytest.fixture(scope="module")
def lab(staged):
    return staged.lab


@pytest.fixture(scope="module")
def report(lab, tmp_path_factory):
    frame = pd.DataFrame(
        {
            "text": ["会議室は三階です。", f"Kubernetesを使います。{HOSTILE}", None],
            "source_lang": "ja",
            "target_lang": "en",
        }
    )
    with (
        Store(tmp_path_factory.mktemp("translations")) as store,
        pytest.warns(UserWarning, match="2 of 6 rows failed"),
    ):
        yield evaluate.translation(
            lab,
            frame,
            settings={"plain": {}, "keywords": {"keywords": ["Kubernetes"]}},
            glossary={**GLOSSARY, "Kubernetes": "Kubernetes"},
            back=True,
            speed=1,
            store=store,
            progress=False,
        )


def test_a_study_without_references(report, staged):
    table = report.table
    assert table["system"].tolist() == ["plain"] * 3 + ["keywords"] * 3
    assert table["status"].tolist()[2::3] == ["error", "error"]
    answered = table[table["status"] != "error"]
    assert answered["back_translation"].map(type).eq(str).all()
    assert answered["back_chrf"].between(0, 100).all()
    assert table["chrf"].isna().all()
    assert answered["terms_expected"].tolist() == [1, 1] * 2
    kept = report.summary.set_index("system")
    assert kept.loc["keywords", "terms_found"] >= 1
    assert {tuple(job.keywords) for job in staged.translator.jobs} == {(), ("Kubernetes",)}
    assert set(report.differences["measure"]) == {"terms kept", "chrF of the translation back"}
    assert report.differences["verdict"].eq("no difference shown").all()
    assert report.tables["terms"]["term"].tolist() == ["会議室", "Kubernetes"] * 2


def test_the_first_word_is_timed_warmed_up_and_in_turns(report):
    calls = report.speed
    assert calls["system"].tolist() == ["plain", "keywords"]
    assert (calls["first_word_s"] <= calls["total_s"]).all()
    assert calls["concurrency"].eq(1).all()
    assert report.summary["timed_calls"].eq(1).all()


def test_a_study_of_settings_is_saved_read_and_compared(report, tmp_path):
    again = evaluate.Report.load(report.save(tmp_path / "out"))
    pd.testing.assert_frame_equal(again.differences, report.differences)
    assert again.findings == report.findings
    assert again.columns == report.columns
    assert again.compare(report).paired
    assert HOSTILE not in (tmp_path / "out" / "report.html").read_text("utf-8")
    titles = [drawing.title for drawing in report.drawings]
    assert titles == ["Scores", "Differences of systems", "Time to the first word"]
    said = str(report.methods())
    assert "translated back" in said
    assert "Riezler" in said
    assert len(report.record["runs"]) == 4


def test_several_services_stand_in_one_table(lab, staged, tmp_path):
    texts = ["Good night.", "See you."]
    frame = pd.DataFrame({"text": texts, "source_lang": "en", "target_lang": "ja"})
    adapter = OpenAIAdapter(translation="gpt-x")
    with (
        openai_server(staged) as (server, address),
        Client(address, api_key=KEY, adapter=adapter) as theirs,
        Store(tmp_path) as store,
    ):
        both = {"ours": lab, "theirs": theirs}
        report = evaluate.translation(both, frame, back=True, speed=1, store=store, progress=False)
        asked = [one["messages"][-1]["content"] for one in server.asked]
    assert set(texts) <= set(asked)
    assert report.table["system"].tolist() == ["ours"] * 2 + ["theirs"] * 2
    assert report.summary["system"].tolist() == ["ours", "theirs"]
    assert report.speed["system"].tolist() == ["ours", "theirs"]
    assert report.differences[["b", "a"]].to_numpy().tolist() == [["theirs", "ours"]]
    assert str(report.findings[0]).startswith("theirs instead of ours, en → ja: ")
    assert "Each service translated its own translations back" in report.notes[0]
    assert report.record["settings"]["systems"] == ["ours", "theirs"]
    models = {run["service"] for run in report.record["runs"]}
    assert len(models) == 2


def test_a_service_that_cannot_be_asked_stops_no_other(lab, tmp_path):
    frame = pd.DataFrame({"text": ["Good night."], "source_lang": "en", "target_lang": "ja"})
    adapter = OpenAIAdapter(translation="gpt-x")
    with (
        Client("http://127.0.0.1:9/v1", api_key=KEY, adapter=adapter, max_retries=0) as gone,
        Store(tmp_path) as store,
    ):
        how = {"store": store, "progress": False, "glossary": ["night"]}
        with pytest.warns(UserWarning, match="1 of 2 rows failed"):
            report = evaluate.translation({"ours": lab, "theirs": gone}, frame, **how)
    assert report.table["system"].tolist() == ["ours", "theirs"]
    assert report.table["status"].tolist()[1] == "error"
    assert report.summary["system"].tolist() == ["ours", "theirs"]  # a line without a score
