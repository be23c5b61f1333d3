"""Attribution on constructed cases with a known truth: causes and kinds of errors, and variance between takes."""

import random

import numpy as np
import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import attribute, score
from support.samples import SAID

ENGINES = {"a1": "A", "a2": "A", "a3": "A", "b1": "B", "b2": "B"}
WRONG = SAID[3].replace("happened", "hopped").replace("letter", "ladder")


def mispronounced(voice, text):
    """Engine A mispronounces one sentence."""
    return WRONG if ENGINES[voice] == "A" and text == SAID[3] else text


def swallowed(voice, text):
    """Voice b2 swallows endings."""
    return text.rsplit(" ", 1)[0] if voice == "b2" else text


def swallowed_of(texts):
    return lambda voice, text: swallowed(voice, text) if text in texts else text


def dropped(voice, text):
    """The recognizer drops a word of every voice."""
    return text.replace("really ", "").replace("bright ", "")


def table(*faults, voices=tuple(ENGINES), texts=SAID, takes=1):
    rows = []
    for voice in voices:
        for text in texts:
            for _ in range(takes):
                heard = text
                for fault in faults:
                    heard = fault(voice, heard)
                rows.append({"voice": voice, "engine": ENGINES[voice], "text": text, "hypothesis": heard})
    return pd.DataFrame(rows)


def parts(found):
    columns = ["shared_errors", "engine_errors", "own_errors"]
    return {voice: tuple(counts) for voice, *counts in found.voices[["voice", *columns]].values.tolist()}


def test_an_engine_that_mispronounces_one_sentence():
    found = attribute(table(mispronounced), engine="engine", language="en")
    assert parts(found) == dict.fromkeys(["a1", "a2", "a3"], (0, 2, 0)) | dict.fromkeys(
        ["b1", "b2"], (0, 0, 0)
    )
    errors = found.errors.query("voice == 'a1'")
    assert errors[["utterance", "reference", "hypothesis", "cause"]].values.tolist() == [
        [SAID[3], "happened", "hopped", "engine"],
        [SAID[3], "letter", "ladder", "engine"],
    ]
    assert len(found.findings) == 1
    assert found.findings[0].startswith("All or most voices of A err at 'happened' of")
    # With one engine, errors of all its voices cannot be separated from errors of the recognizer.
    alone = attribute(table(mispronounced, voices=["a1", "a2", "a3"]), engine="engine", language="en")
    assert parts(alone) == dict.fromkeys(["a1", "a2", "a3"], (2, 0, 0))


def test_a_voice_that_swallows_endings():
    found = attribute(table(swallowed), engine="engine", language="en")
    assert parts(found) == dict.fromkeys(["a1", "a2", "a3", "b1"], (0, 0, 0)) | {"b2": (0, 0, 10)}
    worst = found.voices.iloc[-1]
    assert worst[["voice", "endings_lost", "utterances_with_own"]].tolist() == ["b2", 10, 10]
    assert worst["worst_share"] == pytest.approx(0.1)
    assert worst["own_rate"] == worst["error_rate"] > 0
    assert found.findings == ["b2 loses the end of 10 of 10 utterances, and other voices do not."]


def test_a_recognizer_that_drops_a_word_whatever_the_voice():
    found = attribute(table(dropped), engine="engine", language="en")
    assert parts(found) == dict.fromkeys(ENGINES, (2, 0, 0))
    assert found.voices["own_rate"].eq(0).all()
    assert found.utterances["utterance"].head(2).tolist() == [SAID[1], SAID[8]]
    assert found.utterances["shared_errors"].tolist() == [5, 5, *[0] * 8]
    assert [text.split(" of ")[0] for text in found.findings] == [
        "Whatever the voice, 'really'",
        "Whatever the voice, 'bright'",
    ]


def test_all_three_together():
    found = attribute(table(mispronounced, dropped, swallowed), engine="engine", language="en")
    assert parts(found) == dict.fromkeys(["a1", "a2", "a3"], (2, 2, 0)) | {"b1": (2, 0, 0), "b2": (2, 0, 10)}
    # An ending that the recognizer drops for every voice is no own error of a voice.
    ends = attribute(table(lambda _, text: text.rsplit(" ", 1)[0]), engine="engine", language="en")
    assert parts(ends) == dict.fromkeys(ENGINES, (10, 0, 0))
    assert ends.voices["endings_lost"].sum() == 0


def test_errors_of_two_of_three_engines_are_shared():
    """The errors of a recognizer that mishears all voices but one belong to neither of two engines."""
    engines = {"a1": "A", "a2": "A", "b1": "B", "b2": "B", "c1": "C"}
    rows = table(dropped, voices=["a1", "a2", "b1", "b2"]).assign(
        engine=lambda rows: rows["voice"].map(engines)
    )
    clear = pd.DataFrame({"voice": "c1", "engine": "C", "text": SAID, "hypothesis": SAID})
    found = attribute(pd.concat([rows, clear]), engine="engine", language="en")
    assert parts(found) == dict.fromkeys(["a1", "a2", "b1", "b2"], (2, 0, 0)) | {"c1": (0, 0, 0)}


def heard_as(said, heard, clean=(), **how):
    """The attribution of one sentence, from one hypothesis or several takes, and of others without errors."""
    rows = [
        {"voice": voice, "text": said, "hypothesis": take}
        for voice, takes in heard.items()
        for take in ([takes] if isinstance(takes, str) else takes)
    ]
    rows += [{"voice": voice, "text": text, "hypothesis": text} for voice in heard for text in clean]
    return attribute(pd.DataFrame(rows), **{"language": "en", "normalize": None} | how)


def test_errors_that_an_alignment_may_shift_are_at_one_place():
    words = heard_as("the old market", {"x": "the odd market", "y": "the very old market"})
    assert parts(words) == {"x": (1, 0, 0), "y": (1, 0, 0)}
    apart = heard_as("the old market", {"x": "the odd market", "y": "the old marked"})
    assert parts(apart) == {"x": (0, 0, 1), "y": (0, 0, 1)}
    for second, expected in (("abXdef", (1, 0, 0)), ("abcXef", (0, 0, 1))):
        found = heard_as("abcdef", {"x": "aXcdef", "y": second}, unit="char")
        assert parts(found) == {"x": expected, "y": expected}


def test_a_voice_has_an_error_where_half_of_its_takes_have_one():
    said, wrong = "we met at noon", "we met at night"
    assert parts(heard_as(said, {"x": wrong, "y": [said, wrong]}))["x"] == (1, 0, 0)
    assert parts(heard_as(said, {"x": wrong, "y": [said, said, wrong]}))["x"] == (0, 0, 1)
    lost = {"x": ["we met at", said, said], "y": ["we met at", said], "z": [said] * 4}
    assert heard_as(said, lost).voices.set_index("voice")["endings_lost"].to_dict() == {
        "x": 0,
        "y": 1,
        "z": 0,
    }


def test_findings_are_limited_to_notable_patterns():
    # Three endings of twenty sentences are few; a quarter is not.
    texts = [f"this is the sentence that has number {number}" for number in range(20)]
    few, many = (table(swallowed_of(texts[:most]), texts=texts) for most in (3, 5))
    assert attribute(few, language="en").findings == []
    assert len(attribute(many, language="en").findings) == 1
    # One sentence is too little to tell a place from chance.
    said, wrong = "we met at noon in the park", "we met of moon in the park"
    heard = {"w": wrong, "x": wrong, "y": wrong, "z": "we met at moon in the park"}
    assert heard_as(said, heard).findings == []
    # One place, although one voice has an error at its end only, and there are two hypotheses.
    found = heard_as(said, heard, clean=texts)
    assert found.findings == [
        f"Whatever the voice, 'at noon' of {said!r} becomes 'of moon' or another: 4 of 4 voices."
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("engines", "rate"), [("AAABB", 0.08), ("AABBCC", 0.02)])
def test_random_slips_are_no_finding(engines, rate):
    """Voices that err independently: a table in twenty may have a finding; one in three would be seen here."""
    random_ = np.random.default_rng(0)
    numbered = [" ".join(f"w{random_.integers(100)}" for _ in range(10)) for _ in range(20)]
    tables = [
        pd.DataFrame(
            {"table": number, "voice": f"v{at}", "engine": engine, "id": place, "text": text}
            | {"hypothesis": " ".join("x" if random_.random() < rate else word for word in text.split())}
            for at, engine in enumerate(engines)
            for place, text in enumerate(numbered)
        )
        for number in range(10)
    ]
    scored = score(pd.concat(tables, ignore_index=True), language="en", normalize=None)
    found = [attribute(one, utterance="id", engine="engine") for _, one in scored.groupby("table")]
    assert sum(bool(one.findings) for one in found) <= 1
    assert any(one.errors["p_holm"].notna().any() for one in found)
    assert all(one.errors.loc[one.errors["cause"] == "own", "p_holm"].isna().all() for one in found)


@pytest.mark.slow
def test_variance_components_agree_with_a_simulation():
    """The components of simulated rates (of voices, utterances and takes) are found again."""
    random_ = np.random.default_rng(3)
    words = [f"w{number}" for number in range(100)]
    of_voice, of_text = random_.normal(0, 0.04, 9), random_.normal(0, 0.06, 24)
    rates = 0.4 + of_voice[:, None] + of_text + random_.normal(0, 0.05, (9, 24))
    rows = [
        {
            "voice": voice,
            "text": " ".join(words),
            "id": text,
            "hypothesis": " ".join(words[round(100 * rate) :]),
        }
        for (voice, text), mean in np.ndenumerate(rates)
        for rate in mean + random_.normal(0, 0.04, 3)
    ]
    whole = attribute(pd.DataFrame(rows), utterance="id", language="en", normalize=None)
    assert whole.voices["take_sd"].tolist() == pytest.approx([0.04 / 24**0.5] * 9, rel=0.35)
    found = whole.variance.iloc[0]
    assert found["sd_voice"] == pytest.approx(np.std(of_voice, ddof=1), abs=0.01)
    assert found["sd_utterance"] == pytest.approx(np.std(of_text, ddof=1), abs=0.01)
    assert found["sd_take"] == pytest.approx(0.04, abs=0.003)
    assert found["sd_both"] == pytest.approx(0.05, abs=0.005)


def test_kinds_of_english_errors():
    for said, heard, kind in [
        ("gate 12 at 10:35 p.m.", "gate 12 at 1035 pm", "number"),
        ("goodbye to all", "good bye to all", "spelling"),
        ("wave good bye", "wave goodbye", "spelling"),
        ("the train is at 10:35", "the train is at 1035", "number"),
        ("it costs $10 now", "it costs €10 now", "sound"),
        ("at 3 o'clock", "at 4 o'clock", "sound"),
    ]:
        found = heard_as(said, {"x": heard}, normalize="auto")
        assert found.errors["kind"].astype(str).unique().tolist() == [kind]
        row = found.voices.iloc[0]
        assert row["own_errors" if kind == "sound" else f"{kind}_errors"] == row["errors"] > 0
        assert row["endings_lost"] == 0  # a word that is spelled differently is no lost ending


def test_utterances_of_two_languages_may_have_the_same_name():
    said = {"en": ("she really wants", "she wants"), "de": ("er will nach hause", "er will nach haus")}
    rows = [(voice, 1, language, *said[language]) for voice in "abc" for language in said]
    table = pd.DataFrame(rows, columns=["voice", "id", "language", "text", "hypothesis"])
    found = attribute(score(table), utterance="id")
    assert found.utterances[["language", "voices", "shared_errors"]].values.tolist() == [
        ["en", 3, 3],
        ["de", 3, 3],
    ]


def test_english_homophones():
    pytest.importorskip("hibari")
    said = "their weight is one pie"
    found = heard_as(said, {"x": "there wait is one pie", "y": "there weight is one tie"}, normalize="auto")
    assert found.voices[["voice", "homophones", "homophone_errors", "own_errors"]].values.tolist() == [
        ["x", 1, 2, 0],  # two words, and one place
        ["y", 1, 1, 1],
    ]


def test_japanese_homophones():
    pytest.importorskip("pyopenjtalk")
    said = ["午後から精度を測る", "三時に東京都へ行く"]
    heard = {
        "x": ["午後から制度を測る", "3時に東京へ行く"],
        "y": ["午後から制度を測る", "三時に東京とへ行く"],
    }
    frame = pd.DataFrame(
        [{"voice": v, "text": s, "hypothesis": h} for v in heard for s, h in zip(said, heard[v], strict=True)]
    )
    read = attribute(frame, language="ja", unit="reading")
    columns = ["voice", "errors", "own_errors", "homophone_errors", "homophones"]
    # 東京と is "Tokyo and".
    assert read.voices[columns].values.tolist() == [["y", 0, 0, 0, 2], ["x", 1, 1, 0, 1]]
    written = attribute(frame, language="ja").voices.set_index("voice")
    assert written.loc["y", ["own_errors", "homophone_errors", "spelling_errors"]].tolist() == [0, 2, 0]
    assert written.loc["x", ["own_errors", "homophone_errors", "spelling_errors"]].tolist() == [1, 1, 0]


def test_chinese_homophones():
    pytest.importorskip("pypinyin")
    heard = {"x": "她的权力很大", "y": "他的权利很打", "z": "他的权力非大"}
    found = heard_as("他的权利很大", heard, language="zh", normalize="auto").voices.set_index("voice")
    counts = found.loc[[*"xyz"], ["own_errors", "homophone_errors"]]
    assert counts.values.tolist() == [[0, 2], [1, 0], [1, 1]]


def test_the_parts_add_up_to_all_errors():
    chance = random.Random(1)
    said = {"1": "a b c", "2": "b 10 a"}
    for count in (1, 2, 4, 8, 8, 20):
        rows = []
        for _ in range(count):
            heard = " ".join(chance.choices(["a", "b", "c", "10"], k=chance.randrange(7)))
            rows.append(
                {"voice": chance.choice("xyz"), "text": said[chance.choice("12")], "hypothesis": heard}
            )
        scored = score(pd.DataFrame(rows), language="en", normalize=None)
        found = attribute(scored)
        whole = int(scored["errors"].sum())
        counts = [name for name in found.voices if name.endswith("_errors")]
        for one in (found.voices, found.utterances):
            assert int(one["errors"].sum()) == int(one[counts].sum().sum()) == whole, rows
        assert int(found.errors["errors"].sum()) == whole, rows
        assert "<table" in found._repr_html_()


def test_tables_that_cannot_be_attributed_are_refused():
    frame = table()
    for wrong, how, hint in [
        (frame.assign(hypothesis=None), {}, "no row has scores"),
        (frame.assign(engine=["A", "B"] * 25), {"engine": "engine"}, "has the engines 'A' and 'B'"),
        (frame.assign(id="1"), {"utterance": "id"}, "has two references"),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            attribute(wrong, language="en", **how)
    one = attribute(frame.head(1), language="en")
    assert one.voices["error_rate"].tolist() == [0]
    assert len(one.variance) == len(one.errors) == len(one.findings) == 0
