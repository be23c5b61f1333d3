"""The study of translations: scores, settings, terms, the way back, the first word, and what changed."""

from functools import cache

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.store import Store
from support.studies import serving

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

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
    frame = frame.assign(**outputs)
    return evaluate.translation(None, frame, hypotheses=list(outputs), glossary=GLOSSARY, progress=False)


def right(row):
    return f"The {'meeting room' if row % 2 else 'station'} is number {row}."


def lost(row):
    return right(row).replace("meeting room", "assembly hall")


def clumsy(row):
    return right(row) if row % 2 else f"Station? It has got the {row}."


# What is measured, on constructed cases


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


def test_what_a_glossary_helps_and_what_it_costs_elsewhere():
    says = {"plain": lost, "keywords": clumsy}
    report = study(**{name: [say(row) for row in range(24)] for name, say in says.items()})
    found = report.differences
    verdicts = found.set_index(["condition", "measure"])["verdict"]
    assert verdicts["texts with terms", "terms kept"] == verdicts["texts with terms", "chrF"] == "better"
    assert verdicts["texts without terms", "chrF"] == "worse"
    assert found["n"].tolist() == [12, 12, 12, 24]
    assert (found["p_holm"] >= found["p"]).all()
    told = (
        "keywords instead of plain, ja → en: texts with terms, terms kept 0.0% to 100.0%, +100.0 points, p = "
    )
    assert str(report.findings[0]).startswith(told)


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


# What changed between two reports

GOOD = "The meeting room is on the third floor of the building."
BAD = "A room for the meeting can be found above."


def frame_of(translated, count, text):
    """Texts from Japanese to English and back, in turns; ``translated`` gives each translation."""
    rows = [
        (
            f"r{row}",
            text.format(row),
            f"{GOOD} {row}",
            *(("ja", "en"), ("en", "ja"))[row % 2],
            translated(row),
        )
        for row in range(2 * count)
    ]
    names = ["id", "text", "reference", "source_lang", "target_lang", "output"]
    return pd.DataFrame(rows, columns=names)


@cache
def made(translated, count=12, text="会議室は{}階です。"):
    return evaluate.translation(None, frame_of(translated, count, text), hypotheses="output")


def good(row):
    return f"{GOOD} {row}"


def worse_into_english(row):
    return good(row) if row % 2 else f"{BAD} {row}"


def verdicts(changes):
    return dict(zip(changes.summary["group"], changes.summary["verdict"], strict=True))


def tell(changes):
    return "\n".join(map(str, changes.findings))


def test_a_direction_that_became_worse_is_said():
    changes = made(worse_into_english, count=20).compare(made(good, count=20))
    assert verdicts(changes) == {"ja → en": "worse", "en → ja": "no difference shown"}
    row = changes.summary.set_index("group").loc["ja → en"]
    assert (row["value_a"], row["value_b"] < 60) == (100, True)
    assert row["difference"] == pytest.approx(row["value_b"] - row["value_a"])
    assert row["p_holm"] == pytest.approx(2 * row["p"])
    assert row["low"] < row["difference"] < row["high"] < 0
    told = f"95% interval {row['low']:+.1f} to {row['high']:+.1f}".replace("-", "−")
    assert "Worse: ja → en (chrF 100.0 to " in tell(changes)
    assert told in tell(changes)
    cited = ("paired bootstrap", "Koehn", "Riezler", "Bisani", "sign-flip")
    assert [words in str(changes.methods()) for words in cited] == [True] * 3 + [False] * 2
    assert changes.table["score_difference"].iloc[0] < 0 == changes.table["score_difference"].iloc[-1]
    assert (changes.worse, changes.better) == (True, False)
    assert not made(worse_into_english, count=4).compare(made(good, count=4)).worse


def test_rows_that_failed_and_rows_without_a_partner():
    changes = made(lambda row: None if row < 12 else good(row)).compare(made(good))
    assert verdicts(changes)["rows that failed"] == "worse"
    assert "rows that failed (0.0% to 50.0%" in tell(changes)
    other = made(worse_into_english, text="{}番です。").compare(made(good))
    assert set(verdicts(other).values()) == {"not paired"}
    assert (other.worse, other.figures()) == (False, {})
    assert "of other rows" in tell(other)
