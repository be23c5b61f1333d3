"""What a report says first: what to do or what was learned, and how sure that is; of studies with a planted truth."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._advice.choice import recommend_system
from speechlab.evaluate._advice.evidence import AnswerEvidence
from speechlab.metrics import rank, score
from support.studies import serving


def scored(heard, language="en", said="the old brown dog runs over green hills every morning"):
    """A report of sentences by voice, where None is a row that failed and a number is how many words are wrong."""
    rows = []
    for voice, wrong in heard.items():
        for number, count in enumerate(wrong):
            words = said.split()
            text = None if count is None else " ".join(["wrong"] * count + words[count:])
            rows.append(
                {
                    "text": f"{said} {number_word(number)}",
                    "hypothesis": None if text is None else f"{text} {number_word(number)}",
                    "status": "error" if count is None else "ok",
                    "error": "no answer" if count is None else None,
                    "voice": voice,
                }
            )
    frame = pd.DataFrame(rows).assign(
        voice_name=lambda rows: rows["voice"], language=language, gender="", audio=None, duration_s=1.0
    )
    return evaluate.Report.of_scores("Round trip", score(frame, language=language).assign(loop=False))


def number_word(number):
    return "abcdefghijklmnopqrstuvwxyz"[number] * 3


def test_rows_that_failed_flatter_nobody():
    hard = [0] * 6 + [5] * 6
    report = scored({"easy rows only": [1] * 6 + [None] * 6, "all rows": hard})
    summary = report.summary.set_index("voice")
    assert summary["ranking_rate"].round(3).to_dict() == {"all rows": 0.227, "easy rows only": 0.091}
    assert summary["common_rate"].round(3).to_dict() == {"all rows": 0.0, "easy rows only": 0.091}
    assert list(summary.index) == ["all rows", "easy rows only"]
    head = report.headline().set_index("voice")
    assert head["clips"].to_dict() == {"all rows": "12", "easy rows only": "6 of 12"}
    assert head["on the same clips"].to_dict() == {"all rows": "0.0% on 6", "easy rows only": "9.1% on 6"}
    assert report.conclusion.text == (
        "English: “all rows” is understood best; “easy rows only” failed on 6 of 12 sentences."
    )


def test_voices_of_one_rate_are_best_and_worst_together():
    report = scored({"a": [0] * 6, "b": [0] * 6, **{f"bad {place}": [1] * 6 for place in range(4)}})
    assert report.answer.startswith(
        "English: which of 6 voices is understood best is not settled. a 0.0, “bad "
    )
    report = scored({"a": [0] * 12, "b": [0] * 12, **{f"bad {place}": [2] * 12 for place in range(4)}})
    best = "English: a and b are understood best (0.0 errors in 100 words)"
    assert report.answer.startswith(f"{best}, “bad 0” and 3 others worst (18.2).")


@pytest.mark.slow
def test_recordings_of_no_voice_are_not_counted_as_one(tmp_path):
    report = scored({"a": [0, 0], "b": [0, 0], "all recordings": [0, 0]})
    page = report.save(tmp_path / "page.html").read_text("utf-8")
    assert "2 voices" in page


def test_more_errors_than_words_are_no_share_of_them():
    table = pd.DataFrame({"text": ["ten cats"], "language": "en", "a": "ten fat cats sat on all of the mats"})
    report = evaluate.recognition(None, table, hypotheses=["a"])
    assert report.answer.startswith("English: 7 words inserted where 2 were spoken.")


def test_recordings_without_references_are_no_failures():
    table = pd.DataFrame({"text": [None, None], "language": "en", "a": "ten cats", "b": "ten hats"})
    report = evaluate.recognition(None, table, hypotheses=["a", "b"])
    assert "a; b have no row that can be scored, and have no place in the order." in report.answer
    assert "failed" not in report.answer


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        (
            {"good": [0] * 12, "bad": [4, 5] * 6},
            "Best and worst differ by more than chance (p < 0.001, 12 sentences)",
        ),
        ({"one": [0, 3] * 6, "other": [3, 0, 0] * 4}, "he difference may be chance (p = "),
        (
            {"one": [0] * 5, "other": [4] * 5},
            "other is often misunderstood; 5 sentences each prove little. English: 0.0 to 36.4 errors",
        ),
        (
            {"one": [0, 1, 1], "other": [0, 0, None], "none": [None] * 3},
            "English: 0.0 to 4.5 errors in 100 words with 2 voices; other failed on 1 of 3; none failed on 3 of 3.",
        ),
        (
            {"one": [0] * 16 + [4] * 8, "other": [1] * 16 + [4] * 8, "easy": [0] * 16 + [None] * 8},
            "English: one is understood best; easy failed on 8 of 24 sentences. one 0.0, other 9.1 errors",
        ),
        (
            {"one": [0, 1] * 6, "other": [1, 0] * 6, "none": [None] * 12},
            "English: which is best is open; none failed on 12 of 12 sentences.",
        ),
        (
            {"one": [0] * 8, "two": [1, *[0] * 7], "three": [3, 2, 0, 0, 1, 0, 1, 0]},
            "he difference may be chance",  # the worst of three pairs: 4 of 4 is no proof
        ),
    ],
)
def test_a_round_trip_says_whether_its_best_and_worst_voice_differ(heard, told):
    assert told in scored(heard).answer


def test_voices_that_said_different_sentences_are_not_compared():
    report = scored({"one": [0] * 12, "other": [4] * 12})
    said = report.table.assign(text=report.table["text"] + report.table["voice"])
    other = evaluate.Report.of_scores("Round trip", said)
    assert "were not compared, because they said different sentences" in other.answer


@pytest.mark.slow
def test_voices_of_both_languages_say_texts_in_both(tmp_path):
    frame = pd.DataFrame({"text": ["Good morning 皆さん", "Good evening 皆さん"]})
    how = {"store": tmp_path / "store", "progress": False}
    with serving(languages=("ja", "en")) as staged:
        for study in (evaluate.round_trip, partial(evaluate.voices, dnsmos=0)):
            report = study(staged.lab, frame, language="ja+en", speed=0, **how)
            assert report.table["status"].isin(["ok", "cached"]).all(), report.table["error"].tolist()
            assert report.summary["language"].tolist() == ["ja+en"] * 2
            assert report.summary["ranking_rate"].notna().all()
        with pytest.raises(InvalidRequestError, match="no voice speaks"):
            evaluate.round_trip(staged.lab, frame, language="en+zh", **how)


def test_where_all_have_all_rows_there_is_no_second_rate():
    report = scored({"one": [0, 1], "other": [2, 3]})
    assert report.summary["common_utterances"].isna().all()
    assert "on the same clips" not in report.headline()


def test_notation_is_no_error_of_a_voice():
    said = ["Your code is 4 7 1 9.", "Meet me at 9:15."]
    rows = pd.DataFrame({"text": said, "hypothesis": ["Your code is 4719.", "Meet me at 915."]})
    frame = rows.assign(
        voice="heart", voice_name="heart", language="en", gender="", audio=None, duration_s=1.0, status="ok"
    )
    report = evaluate.Report.of_scores("Codes", score(frame, language="en").assign(loop=False, error=None))
    (row,) = report.summary.to_dict("records")
    assert (row["ranking_rate"], row["ranked_by"]) == (0, "tolerant_wer")
    assert row["error_rate"] > 0
    assert report.headline()["with notation"].notna().all()
    assert report.answer.startswith("0.0 errors in 100 English words of heart.")


def test_one_recognizer_without_an_interval_says_what_it_takes():
    assert "12 recordings; 20 would give an interval" in scored({"all recordings": [0] * 12}).answer
    sure = scored({"all recordings": [0] * 24}).answer
    assert sure.startswith("0.0 errors in 100 English words. 0.0 to ")
    assert not sure.startswith("0.0 errors in 100 English words. 0.0 to 0.0")


def test_nothing_scored_is_said():
    assert scored({"a": [None, None]}).answer == ("Nothing could be scored. 2 of 2 rows have no score.")


def answers_of(scores, listeners=8, items=8, method="mos"):
    """Ratings of systems: a mean for each, and what each listener and item adds."""
    rows = [
        {"listener": f"l{one}", "item": f"i{item}", "system": system, "other": None, "question": "?",
         "score": float(mean) + 0.5 * ((one + item) % 2), "choice": None, "order": 1, "position": 1, "time_s": 1.0,
         "plays": 1, "attention": None, "role": "test", "method": method, "test": "x",
         "trial": f"t{item}{system}", "session": "s", "finished": True}
        for one in range(listeners) for item in range(items) for system, mean in scores.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_preference_has_its_size_and_who_has_it():
    report = evaluate.listening(answers_of({"a": 3, "b": 4}), draws=100)
    assert report.answer == ("b is preferred to a. b 4.25, a 3.25: +1.00 points (p = 0.008, 8 listeners).")


def test_a_preference_of_pairs_is_a_share_and_its_page_counts_the_systems_of_both_sides():
    pairs = [
        answers_of({"a": 0}, method="ab").assign(other=other, score=lambda rows: 2 * rows["score"])
        for other in "bc"
    ]
    report = evaluate.listening(pd.concat(pairs, ignore_index=True), draws=100)
    assert report.answer.startswith(
        "Mostly no preference; otherwise a is preferred to b and c. a was chosen in 50% of the questions, b in 0%, "
        "neither in 50% (p"
    )
    assert "3 systems" in report.to_html()


@pytest.mark.parametrize(
    ("listeners", "who", "interval"), [(2, "Two", ""), (5, "Five", ", 95% interval 0.47 to 1.53")]
)
def test_few_listeners_cannot_tell(listeners, who, interval):
    answers = answers_of({"a": 3, "b": 4}, listeners=listeners)
    answers.loc[(answers["listener"] == "l4") & (answers["system"] == "a"), "score"] -= 0.6
    answers.loc[(answers["listener"] == "l3") & (answers["system"] == "a"), "score"] += 0.6
    report = evaluate.listening(answers, draws=100)
    assert report.answer == (
        f"{who} listeners are too few to tell b from a. b 4.25, a 3.25: +1.00 points{interval} ({listeners} "
        "listeners); a difference can show from 6 listeners and 6 items on."
    )


def test_one_who_always_says_the_same_is_named():
    answers = answers_of({"a": 3, "b": 4})
    answers.loc[answers["listener"] == "l7", "score"] = 5.0
    told = evaluate.listening(answers, draws=100).answer
    assert "l7 gave the same rating in 100% of the questions; without this one: b is preferred to a." in told


@pytest.mark.slow
def test_what_changed_is_said_first():
    good, bad = scored({"heart": [0] * 12}), scored({"heart": [4] * 12})
    assert bad.compare(good).answer == (
        "The error rate of heart in English rose from 0.0% to 36.4%. heart in English: p < 0.001, 12 rows."
    )
    assert good.compare(good).answer == "No significant change. heart in English 0.0% as before (12 rows)."
    against = bad.compare(good, names=("ours", "theirs"))
    assert against.conclusion.text == "theirs makes more errors with heart in English (36.4% against 0.0%)."
    assert [drawing.title for drawing in against.drawings] == ["Differences"]  # too few pairs for intervals


@pytest.mark.slow
def test_an_answer_says_how_many_rows_count_where_speakers_repeat():
    said = pd.Series([f"this is row number {row:02d} of {row + 30}" for row in range(24)])
    frame = pd.DataFrame({"text": said, "language": "en", "speaker": [f"s{row % 8}" for row in range(24)]})
    first, second = (
        evaluate.recognition(None, frame.assign(heard=texts), hypotheses="heard", progress=False)
        for texts in (said, "wrong " + said)
    )
    changed = second.compare(first)
    assert changed.answer == (
        "The error rate of English rose from 0.0% to 14.3%. English: p = 0.008, 24 rows that count as 8."
    )
    assert "those that are alike, such as those of one speaker, count as one" in changed.to_html()


def test_one_recognizer_has_the_rate_of_all_its_speakers_first():
    said = [f"the old brown dog runs over green hills {number_word(number)}" for number in range(24)]
    frame = pd.DataFrame({"text": said, "language": "en", "speaker": [f"s{row % 8}" for row in range(24)]})
    heard = frame["text"].where(frame["speaker"] != "s3", "wrong " + frame["text"])
    report = evaluate.recognition(None, frame.assign(heard=heard), hypotheses="heard", progress=False)
    assert report.answer == (
        "1.4 errors in 100 English words. 24 recordings of 8 speakers; 20 speakers would give an interval; "
        "speakers from 0.0% (s0) to 11.1% (s3)."
    )
    noted = replace(report, notes=("A note.",))
    assert "<strong>Notes</strong>" in "".join(map(str, noted.below()))  # nothing stands out


def test_the_best_two_of_three_that_nobody_can_tell_apart_are_said_to_be_better_than_the_third():
    answers = answers_of({"a": 3, "b": 4, "c": 4.02})
    answers["score"] += np.random.default_rng(1).normal(0, 0.4, len(answers))
    report = evaluate.listening(answers, draws=100)
    assert report.answer.startswith("b and c are preferred to a. ")
    means, tie = report.conclusion.certainty.split("\n")
    assert means == "b 4.26, c 4.17, a 3.27 (p = 0.023)."
    assert tie.startswith("The first two: +0.10 points, 95% interval ")


@pytest.mark.slow
def test_an_answer_is_first_everywhere(tmp_path):
    report = scored({"heart": [0, 1]})
    lead = report.answer.partition(". ")[0]
    assert repr(report).splitlines()[1] == report.answer
    assert report.to_markdown().split("\n\n")[1].startswith(lead)
    page = report.to_html()
    assert page.index("<h1") < page.index(lead) < page.index("Error rates")
    again = evaluate.Report.load(report.save(tmp_path / "study"))
    assert again.answer == report.answer


@pytest.mark.parametrize(("calls", "told"), [(3, False), (4, True)])
def test_who_starts_sooner_is_said_only_beyond_chance(calls, told):
    said = [f"the old brown dog runs {number_word(number)}" for number in range(10)]
    heard = {"a": said, "b": [*said[:-1], "the old brown"]}
    rows = [
        {"system": name, "text": text, "hypothesis": hypothesis}
        for name, texts in heard.items()
        for text, hypothesis in zip(said, texts, strict=True)
    ]
    evidence = AnswerEvidence(rank(pd.DataFrame(rows), system="system", language="en"))
    times = [("a", 0.1 + 0.01 * call) for call in range(calls)] + [("b", 2.0 + call) for call in range(calls)]
    speed = pd.DataFrame(times, columns=["system", "first_audible_s"]).assign(error=None)
    assert ("times sooner (" in str(recommend_system(evidence, speed).lead)) is told
