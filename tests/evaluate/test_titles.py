"""Titles that their own tables do not deny: who is taken, in which language and noise, and on how few texts."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.evaluate._advice.advice import Advice, Lead
from speechlab.evaluate._advice.conclusions import build_choice_conclusion
from speechlab.store import Store
from support.planted import check_budget, plant, right, spoil, study


def wrong(*rows, words=1):
    """Spoil the first words of these rows."""
    return lambda row, text, noise: " ".join(["x"] * words + text.split()[words:]) if row in rows else text


def test_a_title_says_whom_to_take_and_who_may_be_as_good():
    plants = {"ours": right, "theirs": wrong(*range(4)), "cloud": wrong(*range(2, 12))}
    report = study(plant(40, **plants), "ours", "theirs", "cloud")
    verdicts = report.differences.set_index(["a", "b"])["verdict"].to_dict()
    assert [verdict for pair, verdict in verdicts.items() if set(pair) == {"theirs", "cloud"}] == [
        "no difference shown"
    ]
    assert report.conclusion.text == "Take ours for now; theirs may be as good, cloud is worse."
    assert report.conclusion.certainty == (
        "ours 0.0%, theirs 0.9% on 40 recordings, which may be chance (p = 0.219); significantly worse: "
        "cloud (2.3%); about 57 more recordings would settle it."
    )
    check_budget(report)
    clear = study(plant(40, **plants | {"cloud": wrong(*range(2, 40))}), "ours", "theirs", "cloud")
    assert clear.conclusion.text == "Take ours for now; theirs may be as good, cloud is worse."
    empty = plant(
        40,
        **plants | {"cloud": wrong(*range(2, 40), words=6), "theirs": lambda row, text, _: text * (row > 1)},
    )
    assert study(empty, "ours", "theirs", "cloud").conclusion.text == "Take ours, not cloud."


def test_a_title_of_several_languages_has_whom_to_take_in_each():
    names = ["one: a b", "two: c d", "three: e"]
    frame = plant(80, **{names[0]: right, names[1]: right, names[2]: spoil(0.3)})
    frame = frame.assign(language=["en", "de"] * 40)
    german = frame["language"] == "de"
    frame.loc[german, names[1:]] = frame.loc[german, names[:0:-1]].to_numpy()
    report = study(frame, *names)
    assert report.conclusion.text == (
        "Take “one: a b” or “two: c d” for English and “one: a b” or “three: e” for German."
    )
    lines = report.conclusion.certainty.split("\n")
    assert lines[0].startswith("English: no difference seen between them; both 0.0% on 40 recordings, ")
    assert "; significantly worse: “two: c d” (" in lines[1]


def test_languages_in_which_a_choice_is_for_now_are_told_from_those_where_it_is_settled():
    def take(name, *remarks):
        return Advice(name, Lead("take", (name,), remarks, is_provisional=bool(remarks)), ("figures",))

    open_lead = Lead(remarks=("a is ahead of b, not yet for sure",), is_undecided=True)
    sure, later = take("a"), take("a", "b may be as good", "c is worse")
    titles = {
        "Take a for German, for now also for French.": {"German": sure, "French": later},
        "Take a for German and for now d for French.": {
            "German": sure,
            "French": take("d", "b may be as good"),
        },
        "Take a for now; b may be as good, c is worse.": {"German": later, "French": later},
        "Take a for German; which is best in French is open.": {
            "German": sure,
            "French": Advice("a", open_lead, ("figures",)),
        },
        "1 of 9 languages are decided.": {"a b": sure, **{f"{n} to {n}": take(n, "x") for n in "cdefghij"}},
    }
    assert {title: build_choice_conclusion(advice).text for title, advice in titles.items()} == {
        title: title for title in titles
    }


def test_a_line_with_long_names_says_who_is_worse():
    level, worse = ["kokoro: a", "kokoro: b", "q: c", "mei: d"], ["q: e", "kokoro: f", "kokoro: g"]
    frame = plant(20, **dict.fromkeys(level, spoil(0.03)), **dict.fromkeys(worse, spoil(0.3)))
    (line,) = study(frame, *level, *worse).conclusion.certainty.split("\n")
    assert "%, 3 others may be as good; worse: “" in line
    assert all(f"“{name}”" in line.partition("worse: ")[2] for name in worse)


def test_many_recordings_of_few_texts_settle_nothing():
    frame = pd.concat([plant(3, a=right)] * 8, ignore_index=True)
    frame = frame.assign(b=plant(24, b=spoil(0.3))["b"], speaker=[f"s{row // 3}" for row in range(24)])
    report = study(frame, "a", "b", groups=None)
    assert report.conclusion.text == "a makes fewer errors with these three texts."
    assert report.conclusion.certainty.endswith(
        "on 24 recordings; this says nothing about other texts: test 6 or more for that."
    )
    assert report.differences["verdict"].tolist() == ["differs with these few texts"]
    many = pd.concat([plant(8, a=right)] * 3, ignore_index=True).assign(b=plant(24, b=spoil(0.3))["b"])
    assert "on 24 recordings of 8 texts (" in study(many, "a", "b", groups=None).answer


def test_a_lead_at_a_p_value_of_one_is_none():
    report = study(plant(20, plain=wrong(1), robust=wrong(2, words=2)), "plain", "robust")
    assert report.conclusion.text == "No difference shown between plain and robust."
    assert report.answer.endswith("which may be chance (p = 1.000).")


def test_a_change_that_few_speakers_cannot_settle_is_told():
    frame = plant(27, before=wrong(1, 2), now=wrong(1, 2, 3)).assign(
        speaker=[f"s{row % 3}" for row in range(27)]
    )
    changes = study(frame, "now").compare(study(frame, "before"))
    assert (
        changes.answer
        == "Errors went from 0.7% to 1.0%; three speakers cannot settle whether by chance. German 0.7% → 1.0% "
        "(27 rows)."
    )
    same = study(frame, "now").compare(study(frame, "now"))
    assert same.conclusion.text == "Three speakers cannot settle whether anything changed."


@pytest.fixture(scope="module")
def slips():
    """Utterances, and a slip for each word, which all systems share."""
    texts = plant(400, a=right)["text"].tolist()
    return lambda share, seed: [
        " ".join(f"{word}s" if made.random() < share else word for word in text.split())
        for made in [random.Random(seed)]
        for text in texts
    ]


def test_who_errs_often_is_no_follower_where_slips_coincide(slips, tmp_path):
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


def test_noise_in_which_a_choice_holds_is_in_the_title(tmp_path):
    texts = plant(10, a=right)["text"].tolist()
    tone = 0.1 * np.sin(np.arange(4_800) / 4).astype(np.float32)
    tone[-1_600:] = 0  # where noise alone is heard
    sounds = [AudioClip(np.append(tone, np.zeros(160 * row, np.float32)), 16_000) for row in range(10)]

    def transcribe(clip, hotwords=None, **_):
        samples = clip.samples.reshape(-1)
        is_noisy = float(np.sqrt(np.mean(samples[-1_200:] ** 2))) > 0.3 * float(
            np.abs(samples[:3_200]).mean()
        )
        text = texts[round((len(samples) - 4_800) / 160)]
        return f"x y {text.split(maxsplit=2)[2]}" if is_noisy and not hotwords else text

    frame = pd.DataFrame({"audio": sounds, "text": texts, "language": "de"})
    settings = {"plain": {}, "robust": {"hotwords": ["train"]}}
    with sl.system("ears", transcribe=transcribe, version="1") as lab, Store(tmp_path) as store:
        options = {
            "settings": settings,
            "noise_db": [30, 5, 0],
            "noise": "white",
            "speed": 0,
            "progress": False,
        }
        report = evaluate.recognition(lab, frame, store=store, **options)
    title = "In loud noise (5 and 0 dB), take robust; otherwise no difference is shown."
    assert report.conclusion.text == title
    assert report.conclusion.certainty.startswith("At 0 dB, it makes significantly fewer errors than plain")
    assert "\nAs recorded: no difference seen between plain and robust; " in report.conclusion.certainty
    assert "Hotwords" not in [view.title for view in report.views]  # none is spoken


def test_copies_of_the_source_are_in_the_answer():
    texts = plant(20, a=right)["text"]
    frame = pd.DataFrame({"text": texts, "source_lang": "de", "target_lang": "en"})
    frame["reference"] = [f"word {row} of the day" for row in range(20)]
    frame["plain"] = frame["reference"]
    frame["other"] = frame["reference"].where(frame.index >= 6, frame["text"])
    report = evaluate.translation(None, frame, hypotheses=["plain", "other"], progress=False)
    assert "other copied 6 of 20 texts" in report.answer


def test_a_name_that_stays_as_it_is_is_no_copy_of_the_source():
    frame = pd.DataFrame(
        {"text": [f"Siemens {row}" for row in range(20)], "source_lang": "de", "target_lang": "en"}
    )
    frame["reference"] = frame["plain"] = frame["text"]
    frame["other"] = [f"Seamen {row}" for row in range(20)]
    report = evaluate.translation(None, frame, hypotheses=["plain", "other"], progress=False)
    assert report.summary["copies"].sum() == 0
    assert "copied" not in report.answer
