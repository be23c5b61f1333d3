"""Metrics other than BLEU and chrF, options, scorers of the user, and paired tests, against sacrebleu."""

import random

import numpy as np
import pandas as pd
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import compare_translations, score_translations

WORDS = ["cat", "dog", "house", "sees", "finds", "Red", "old", "today"]


def corpus(seed, n=40):
    random_ = random.Random(seed)
    said = [" ".join(random_.choices(WORDS, k=random_.randrange(3, 12))) for _ in range(n)]

    def system(hard):
        return [
            " ".join(random_.choice(WORDS) if random_.random() < hard else w for w in s.split()) for s in said
        ]

    return said, {"base": system(0.4), "good": system(0.1), "like": system(0.4)}


ALIKE = "no difference shown"

OPTIONS = {
    "bleu": {"lowercase": True, "smooth_method": "floor", "max_ngram_order": 3},
    "chrf": {"beta": 3, "char_order": 4},
    "ter": {"case_sensitive": True, "normalized": True},
}


@pytest.mark.parametrize("options", [None, OPTIONS])
def test_metrics_and_options_are_sacrebleus(options):
    said, systems = corpus(1)
    heard = systems["base"]
    score = score_translations(said, heard, metrics=["ter", "chrf++", "chrf", "bleu"], options=options)
    given = options or {}
    theirs = {
        "ter": sacrebleu.TER(**given.get("ter", {})),
        "chrf++": sacrebleu.CHRF(word_order=2),
        "chrf": sacrebleu.CHRF(**given.get("chrf", {})),
        "bleu": sacrebleu.BLEU(**given.get("bleu", {})),
    }
    for name, metric in theirs.items():
        assert score.scores[name] == metric.corpus_score(heard, [said]).score, name
        assert score.signatures[name] == str(metric.get_signature())
        low, high = score.confidence_interval(name, draws=100)
        assert low < score.scores[name] < high
    assert score.frame(draws=50)["metric"].tolist() == list(score.scores)
    frame = pd.DataFrame({"reference": said, "translation": heard})
    of_ter = options and {"ter": options["ter"]}
    table = score_translations(frame, by=(), language="en", metrics=["ter"], draws=50, options=of_ter)
    assert table["ter"][0] == score.scores["ter"]
    assert table["ter_signature"][0] == score.signatures["ter"]


@pytest.mark.parametrize(("test", "short", "draws"), [("bootstrap", "bs", 200), ("randomization", "ar", 300)])
def test_paired_tests_are_sacrebleus(test, short, draws):
    said, systems = corpus(2)
    table = compare_translations(said, systems, test=test, draws=draws, metrics=["bleu", "chrf"])
    metrics = {"BLEU": sacrebleu.BLEU(), "chrF2": sacrebleu.CHRF()}
    signatures, found = PairedTest(list(systems.items()), metrics, [said], short, n_samples=draws)()
    for metric, key in (("bleu", "BLEU"), ("chrf", "chrF2")):
        rows = table[table["measure"] == metric]
        assert [rows["a"].iloc[0], *rows["b"]] == list(systems)
        assert [rows["value_a"].iloc[0], *rows["value_b"]] == [result.score for result in found[key]]
        assert [None, *rows["p_sacrebleu"]] == [r.p_value for r in found[key]]
        assert (rows["p"] >= rows["p_sacrebleu"]).all()
        assert rows["signature"].iloc[0] == str(signatures[key])
    good = table[table["b"] == "good"]
    assert (good["verdict"] == "better").all() if short == "ar" else good["verdict"].isna().all()
    frame = pd.DataFrame({"reference": said, **systems})
    columns = {name: name for name in systems}
    of_frame = compare_translations(frame, columns, test=test, draws=draws, metrics=["bleu", "chrf"])
    pd.testing.assert_frame_equal(of_frame, table)


def numbers(_sources, translations, _references):
    """A scorer of translations that are numbers."""
    return [float(text) for text in translations]


def test_three_utterances_show_no_difference():
    """sacrebleu leaves out draws that equal the observed difference: with three utterances, one draw in four."""
    said = ["a b c d", "e f g h", "i j k l"]
    table = compare_translations(said, {"old": ["x"] * 3, "new": said}, metrics=["chrf"], draws=400)
    new = table.iloc[0]
    assert new["p_sacrebleu"] < 0.05
    assert new["p"] == pytest.approx(0.25, abs=0.05)
    assert new["verdict"] == ALIKE


def test_blocks_decide_the_verdict():
    """The effect of one document on one system is no evidence for other documents."""
    documents = [number // 10 for number in range(40)]
    frame = pd.DataFrame({"reference": "x", "old": "1", "document": documents, "text": "?"})
    frame["new"] = ["2" if document == 2 else "1" for document in documents]
    frame.loc[40] = ["x", "1", 2, "?", None]
    how = {"metrics": ["chrf"], "scorers": {"numbers": numbers}, "draws": 300}
    systems = {"old": "old", "new": "new"}
    plain = compare_translations(frame, systems, **how).set_index(["b", "measure"])
    blocked = compare_translations(frame, systems, groups="document", **how).set_index(["b", "measure"])
    row, block = ("new", "numbers"), blocked.loc["new", "numbers"]
    assert plain.loc[row, "verdict"] == "better"
    assert (plain.loc[row, "n"], plain.loc[row, "blocks"], block["blocks"]) == (40, 40, 4)
    assert (block["difference"], block["p"], block["verdict"]) == (0.25, 1.0, ALIKE)
    assert block["signature"].endswith("|seed:12345|ar:300|blocks:4")
    assert blocked["p_sacrebleu"].isna().all()
    of_bootstrap = compare_translations(frame, systems, groups="document", test="bootstrap", **how)
    assert of_bootstrap["p"].between(0, 1).sum() == 2
    assert of_bootstrap["verdict"].isna().all()


def test_scorers_get_all_texts_and_intervals():
    seen = []

    def comet(sources, translations, references):
        seen.append((sources, translations, references))
        return np.array([len(text) for text in translations]) / 10

    said, heard = ["a b", "c", "d e f"], ["a", "c d", "x y z"]
    score = score_translations(said, heard, sources=["1", "2", "3"], scorers={"comet": comet})
    assert seen == [(["1", "2", "3"], heard, said)]
    assert score.scores["comet"] == pytest.approx(0.3)
    low, high = score.confidence_interval("comet", draws=200, groups=["x", "y", "y"])
    assert low <= 0.3 <= high
    frame = pd.DataFrame({"reference": said, "translation": heard, "text": ["1", "2", "3"]})
    table = score_translations(frame, by=(), language="en", scorers={"comet": comet}, draws=20)
    assert table["comet"][0] == pytest.approx(0.3)
    assert "comet" in table["comet_signature"][0]


def test_refusals():
    for how, hint in [
        ({"options": {"bleu": {"smooth_method": "x"}}}, "does not take"),
        ({"scorers": {"x": lambda *_: [1, 2]}}, "one finite number for each"),
        ({"scorers": {"bleu": lambda *_: [1]}}, "another"),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            score_translations(["a"], ["a"], **how)
    with pytest.raises(InvalidRequestError, match="'y'"):
        compare_translations(["a"], {"x": ["a"], "y": ["a", "b"]})


def test_verdicts_on_several_systems_are_corrected_by_metric():
    said = ["the cat sat on the mat"] * 6
    systems = {"old": said, **{f"new{i}": ["the cat sat"] * 6 for i in range(3)}, "same": said}
    table = compare_translations(said, systems, metrics=["chrf", "ter"], draws=999)
    for _, part in table.groupby("measure"):
        p, corrected = part["p"].tolist()[:3], part["p_holm"].tolist()[:3]
        assert p[0] == pytest.approx(1 / 32, abs=0.015)
        assert corrected == pytest.approx([4 * value for value in p])
        assert set(part["verdict"]) == {ALIKE}
        assert part["p_holm"].iloc[3] == 1.0
    two = compare_translations(said, dict(list(systems.items())[:2]), metrics=["chrf"], draws=999)
    assert two["p_holm"].tolist() == two["p"].tolist()
    assert two["verdict"].tolist() == ["worse"]
    missed = compare_translations(said, dict(list(systems.items())[:2]), metrics=["ter"], draws=999)
    assert (missed["difference"][0] > 0, missed["verdict"][0]) == (True, "worse")  # of TER, less is better


def test_the_interval_of_a_difference_is_paired_and_covers_it():
    said, systems = corpus(5)
    table = compare_translations(said, systems, metrics=["chrf", "bleu"], draws=300)
    ends = table.set_index(["b", "measure"])[["difference", "low", "high"]]
    for metric in ("chrf", "bleu"):
        difference, low, high = ends.loc[("good", metric)]
        assert 0 < low < difference < high
        low, high = ends.loc[("like", metric), ["low", "high"]]
        assert low < 0 < high
    # Two systems with the same errors have the same difference in every draw, unlike intervals of each system.
    twins = {"one": systems["base"], "two": [f"{text} x" for text in systems["base"]]}
    row = compare_translations(said, twins, metrics=["chrf"], draws=300).iloc[0]
    alone = score_translations(said, twins["one"]).confidence_interval("chrf", draws=300)
    assert row["high"] - row["low"] < (alone.high - alone.low) / 4


def test_equal_translations_leave_room_for_what_a_sample_lacks():
    """As the difference of the error rates of equal systems: 97.5% of Beta(1/3, n), of 100 points."""
    said = [f"a text with the number {row}" for row in range(50)]
    scorers = {"half": lambda texts, *_: [0.5] * len(texts)}
    table = compare_translations(said, {"old": said, "new": said}, metrics=["chrf", "ter"], scorers=scorers)
    lines = table.set_index("measure")
    for name in ("chrf", "ter"):
        low, high = lines.loc[name, ["low", "high"]]
        assert -low == high == pytest.approx(3.97, rel=0.1)
    assert lines.loc["half", ["low", "high"]].isna().all()
