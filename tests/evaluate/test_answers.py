"""What a report of recognition says first, of studies with a planted truth: whom to take, and how sure that is."""

import random
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import evaluate
from speechlab.evaluate import Advice, Lead, build_choice_conclusion
from speechlab.metrics import score
from support.planted import check_budget, plant, right, spoil, study
from support.texts import check_texts, describe_report

TEXTS = Path(__file__).with_name("answers.md")


def wrong(*rows, words=1):
    """Spoil the first words of these rows."""
    return lambda row, text, noise: " ".join(["x"] * words + text.split()[words:]) if row in rows else text


def drop(*rows):
    """Fail on these rows."""
    return lambda row, text, noise: None if row in rows else text


def empty_two(row, text, noise):
    return text * (row > 1)


def number(row):
    return "abcdefghijklmnopqrstuvwxyz"[row] * 3


def spoil_words(count, text):
    return " ".join(["wrong"] * count + text.split()[count:])


def scored(heard, said="the old brown dog runs over green hills every morning"):
    """A report of sentences by voice, where None is a row that failed and a number is how many words are wrong."""
    rows = [
        {
            "text": f"{said} {number(row)}",
            "hypothesis": None if count is None else spoil_words(count, f"{said} {number(row)}"),
            "status": "error" if count is None else "ok",
            "error": "no answer" if count is None else None,
            "voice": voice,
        }
        for voice, counts in heard.items() for row, count in enumerate(counts)
    ]  # fmt: skip
    frame = pd.DataFrame(rows).assign(language="de", gender="", audio=None, duration_s=1.0)
    frame["voice_name"] = frame["voice"]
    return evaluate.Report.of_scores("Round trip", score(frame, language="de").assign(loop=False))


def of_languages():
    names = ["one: a b", "two: c d", "three: e"]
    frame = plant(80, **{names[0]: right, names[1]: right, names[2]: spoil(0.3)}).assign(
        language=["fr", "de"] * 40
    )
    german = frame["language"] == "de"
    frame.loc[german, names[1:]] = frame.loc[german, names[:0:-1]].to_numpy()
    return study(frame, *names)


def of_long_names():
    level, worse = ["kokoro: a", "kokoro: b", "q: c", "mei: d"], ["q: e", "kokoro: f", "kokoro: g"]
    frame = plant(20, **dict.fromkeys(level, spoil(0.03)), **dict.fromkeys(worse, spoil(0.3)))
    return study(frame, *level, *worse)


def of_few_texts(count, repeats):
    frame = pd.concat([plant(count, a=right)] * repeats, ignore_index=True)
    frame = frame.assign(b=plant(24, b=spoil(0.3))["b"], speaker=[f"s{row // 3}" for row in range(24)])
    return study(frame, "a", "b", groups=None)


def of_empty_outputs(*names):
    frame = plant(28, a=lambda row, text, noise: "" if row < 8 else spoil(0.02)(row, text, noise))
    frame["b"] = [spoil(0.3)(row, text, random.Random(row)) for row, text in enumerate(frame["text"])]
    return study(frame.assign(duration_s=[12.0] * 8 + [6.0] * 20), *names)


def of_speakers(count, speakers, a, b, **options):
    return study(plant(count, a=a, b=b).assign(**{speakers[0]: speakers[1]}), "a", "b", **options)


def of_a_third_system(*more):
    frame = plant(60, a=spoil(0.03), b=spoil(0.13))
    return study(frame.assign(c=frame["text"].where(frame.index < 6, None)), "a", "b", *more)


def of_margin(count, second, **options):
    frame = plant(200, a=spoil(0.01), b=spoil(0.01)).head(count)
    return study(frame if second is None else frame.assign(b=frame[second]), "a", "b", **options)


def of_wrong_references():
    frame = plant(60, a=spoil(0.03), b=spoil(0.03))
    frame.loc[:6, "text"] = frame["text"].iloc[20:27].tolist()
    return study(frame, "a", "b")


def of_names(*names):
    frame = plant(48, **{"my set": spoil(0.05), "iPhone": spoil(0.3)}).assign(language=["fr", "de"] * 24)
    return study(frame.assign(z=frame["iPhone"]), *names)


def of_rows(text, **outputs):
    return study(pd.DataFrame({"text": text, "language": "en", **outputs}), *outputs)


def of_one_recognizer():
    frame = plant(24, heard=wrong(*range(3, 24, 8))).assign(speaker=[f"s{row % 8}" for row in range(24)])
    return study(frame, "heard")


def of_other_sentences():
    table = scored({"one": [0] * 12, "other": [4] * 12}).table
    return evaluate.Report.of_scores("Round trip", table.assign(text=table["text"] + table["voice"]))


def of_notation():
    said = ["Your code is 4 7 1 9.", "Meet me at 9:15."]
    rows = pd.DataFrame({"text": said, "hypothesis": ["Your code is 4719.", "Meet me at 915."]})
    rows = rows.assign(
        voice="heart", voice_name="heart", language="en", gender="", audio=None, duration_s=1.0
    )
    table = score(rows.assign(status="ok"), language="en").assign(loop=False, error=None)
    return evaluate.Report.of_scores("Codes", table)


def loop(row, text, noise):
    return f"{text}{' yes' * 400}" if row == 3 else text


THREE = {"ours": right, "theirs": wrong(*range(4)), "cloud": wrong(*range(2, 12))}
MANY_OF_ONE = ("speaker", [f"s{who}" for who, rows in enumerate([100] + [5] * 7) for _ in range(rows)])
PLANTS = {
    "a lead for now": lambda: study(plant(40, **THREE), *THREE),
    "a lead over one whose outputs are empty": lambda: study(
        plant(40, **THREE | {"cloud": wrong(*range(2, 40), words=6), "theirs": empty_two}),
        *THREE,
    ),
    "whom to take in each language": of_languages,
    "long names": of_long_names,
    "three texts many times": partial(of_few_texts, 3, 8),
    "eight texts three times": partial(of_few_texts, 8, 3),
    "a lead at a p value of one": lambda: study(plant(20, a=wrong(1), b=wrong(2, words=2)), "a", "b"),
    "one of two failed often": lambda: study(plant(40, a=drop(*range(1, 40, 2)), b=spoil(0.06)), "a", "b"),
    "one of three failed": lambda: study(
        plant(72, a=drop(*range(0, 72, 6)), b=spoil(0.03), c=spoil(0.03)), *"abc"
    ),
    "a leader that failed, ahead by chance": lambda: study(
        plant(27, a=lambda *row: None if row[0] < 4 else spoil(0.03)(*row), b=spoil(0.06)), "a", "b"
    ),
    "two systems": of_a_third_system,
    "two systems and one that answered little": partial(of_a_third_system, "c"),
    "one is clearly worse": lambda: study(plant(60, a=spoil(0.055), b=spoil(0.057), c=spoil(0.26)), *"abc"),
    "two of three failed always": lambda: study(plant(12, a=right, b=drop(*range(12)), c=drop(*range(12))), *"abc"),
    "empty outputs": partial(of_empty_outputs, "a"),
    "empty outputs beside another system": partial(of_empty_outputs, "a", "b"),
    "one row has all errors": lambda: study(plant(40, a=loop), "a"),
    "one row turns the order": lambda: study(plant(30, a=loop, b=spoil(0.1)), "a", "b"),
    "eight speakers": lambda: of_speakers(
        80, ("speaker", [f"s{row % 8}" for row in range(80)]), spoil(0.06), spoil(0.09)
    ),
    "most speakers against the mean": lambda: of_speakers(
        135, MANY_OF_ONE, lambda *row: spoil(0.02 if row[0] < 100 else 0.3)(*row),
        lambda *row: spoil(0.14 if row[0] < 100 else 0.05)(*row),
    ),
    "four speakers": lambda: of_speakers(
        80, ("Client_ID", [f"s{row % 4}" for row in range(80)]), spoil(0.04), spoil(0.13)
    ),
    "level within a margin": lambda: of_margin(200, None, margin=3),
    "equal outputs within a small margin": lambda: of_margin(30, "a", margin=0.01),
    "a baseline that is better": lambda: of_margin(40, "text", baseline="b"),
    "a baseline that is not shown to be worse": lambda: of_margin(40, None, baseline="b", margin=0.01),
    "four recordings": lambda: study(plant(4, a=right, b=lambda *_: "banana"), "a", "b"),
    "references that carry the answer": of_wrong_references,
    "references of signs": lambda: of_rows(["...", "!", "ten cats"], a=["hello you there", "x", "ten cats"]),
    "a line for each language": partial(of_names, "my set", "iPhone"),
    "more errors than words": lambda: of_rows(["ten cats"], a=["ten fat cats sat on all of the mats"]),
    "no references": lambda: of_rows([None] * 2, a=["ten cats"] * 2, b=["ten hats"] * 2),
    "speakers of one recognizer": of_one_recognizer,
    "voices, some of one rate": lambda: scored({**dict.fromkeys("ab", [0] * 12), **dict.fromkeys("cdef", [2] * 12)}),
    "voices, six sentences": lambda: scored({**dict.fromkeys("ab", [0] * 6), **dict.fromkeys("cdef", [1] * 6)}),
    "voices, easy rows only": lambda: scored({"easy rows only": [1] * 6 + [None] * 6, "all rows": [0] * 6 + [5] * 6}),
    "voices, good and bad": lambda: scored({"good": [0] * 12, "bad": [4, 5] * 6}),
    "voices, by chance": lambda: scored({"one": [0, 3] * 6, "other": [3, 0, 0] * 4}),
    "voices, five sentences": lambda: scored({"one": [0] * 5, "other": [4] * 5}),
    "voices, few sentences and failures": lambda: scored(
        {"one": [0, 1, 1], "other": [0, 0, None], "none": [None] * 3}
    ),
    "voices, a worst sentence": lambda: scored({"one": [0, 3, 0], "other": [1, 0, 0]}),
    "voices, one failed often": lambda: scored(
        {"one": [0] * 16 + [4] * 8, "other": [1] * 16 + [4] * 8, "easy": [0] * 16 + [None] * 8}
    ),
    "voices, one failed always": lambda: scored({"one": [0, 1] * 6, "other": [1, 0] * 6, "none": [None] * 12}),
    "voices, the worst of three pairs": lambda: scored(
        {"one": [0] * 8, "two": [1, *[0] * 7], "three": [3, 2, 0, 0, 1, 0, 1, 0]}
    ),
    "voices, other sentences": of_other_sentences,
    "voices, notation": of_notation,
    "voices, all failed": lambda: scored({"a": [None, None]}),
    "no voice, 12 recordings": lambda: scored({"all recordings": [0] * 12}),
    "no voice, 24 recordings": lambda: scored({"all recordings": [0] * 24}),
}  # fmt: skip


LONG = {"whom to take in each language", "long names", "voices, some of one rate", "voices, easy rows only"}
"""Plants whose names do not fit into a short sentence."""


@cache
def report_of(name):
    return PLANTS[name]()


@pytest.mark.slow
def test_answers_to_plants():
    for name in PLANTS.keys() - LONG:
        check_budget(report_of(name))
    check_texts(TEXTS, "recognition", {name: describe_report(report_of(name)) for name in PLANTS})


@pytest.mark.slow
def test_rows_that_failed_flatter_nobody():
    report = report_of("voices, easy rows only")
    summary = report.summary.set_index("voice")
    assert summary["ranking_rate"].round(3).to_dict() == {"all rows": 0.227, "easy rows only": 0.091}
    assert summary["common_rate"].round(3).to_dict() == {"all rows": 0.0, "easy rows only": 0.091}
    head = report.headline().set_index("voice")
    assert head["clips"].to_dict() == {"all rows": "12", "easy rows only": "6 of 12"}
    assert head["on the same clips"].to_dict() == {"all rows": "0.0% on 6", "easy rows only": "9.1% on 6"}
    complete = report_of("voices, good and bad")
    assert complete.summary["common_utterances"].isna().all()
    assert "on the same clips" not in complete.headline()
    (row,) = report_of("voices, notation").summary.to_dict("records")
    assert (row["ranking_rate"], row["ranked_by"]) == (0, "tolerant_wer")
    assert report_of("voices, notation").headline()["with notation"].notna().all()
    both, third = (report_of(f"two systems{more}") for more in ("", " and one that answered little"))
    assert third.differences["p"].tolist() == both.differences["p"].tolist()  # of the rows that both have
    failed = report_of("one of two failed often").differences
    assert failed["verdict"].tolist() == ["not settled, as one failed on more rows"]


@pytest.mark.slow
def test_noise_in_which_a_choice_holds_is_in_the_title(tmp_path):
    texts = plant(10, a=right)["text"].tolist()
    tone = 0.1 * np.sin(np.arange(4_800) / 4).astype(np.float32)
    tone[-1_600:] = 0  # where noise alone is heard
    sounds = [sl.AudioClip(np.append(tone, np.zeros(160 * row, np.float32)), 16_000) for row in range(10)]

    def transcribe(clip, hotwords=None, **_):
        samples = clip.samples.reshape(-1)
        noise, speech = np.sqrt(np.mean(samples[-1_200:] ** 2)), np.abs(samples[:3_200]).mean()
        text = texts[round((len(samples) - 4_800) / 160)]
        return f"x y {text.split(maxsplit=2)[2]}" if noise > 0.3 * speech and not hotwords else text

    frame = pd.DataFrame({"audio": sounds, "text": texts, "language": "de"})
    how = {
        "settings": {"plain": {}, "robust": {"hotwords": ["train"]}},
        "noise_db": [30, 5, 0],
        "noise": "white",
    }
    with sl.system("ears", transcribe=transcribe, version="1") as lab:
        report = evaluate.recognition(lab, frame, store=tmp_path, progress=False, **how)
    assert (
        report.conclusion.text == "In loud noise (5 and 0 dB), take robust; otherwise no difference is shown."
    )
    assert report.conclusion.certainty.startswith("At 0 dB, it makes significantly fewer errors than plain")
    assert "\nAs recorded: no difference seen between plain and robust; " in report.conclusion.certainty
    assert "Hotwords" not in [view.title for view in report.views]  # none is spoken


def test_choice_conclusion_of_languages():
    def take(name, *remarks):
        return Advice(name, Lead("take", (name,), remarks, is_provisional=bool(remarks)), ("figures",))

    open_lead = Lead(remarks=("a is ahead of b, not yet for sure",), is_undecided=True)
    few_lead = replace(open_lead, few="3 texts, and 20 are needed")
    sure, later = take("a"), take("a", "b may be as good", "c is worse")
    titles = {
        "Take a for German, perhaps also for French.": {"German": sure, "French": later},
        "Take a for German and perhaps d for French.": {
            "German": sure,
            "French": take("d", "b may be as good"),
        },
        "Take a; b may be as good, c is worse.": {"German": later, "French": later},
        "Take a for German; which is best in French is open.": {
            "German": sure,
            "French": Advice("a", open_lead, ("figures",)),
        },
        "Take a for German; French and Dutch have 3 texts, and 20 are needed.": {
            "German": sure,
            "French": Advice("a", few_lead, ("figures",)),
            "Dutch": Advice("b", few_lead, ("figures",)),
        },
        "1 of 9 languages are decided.": {"a b": sure, **{f"{n} to {n}": take(n, "x") for n in "cdefghij"}},
    }
    assert {title: build_choice_conclusion(advice).text for title, advice in titles.items()} == {
        title: title for title in titles
    }
