"""Titles of several languages, and what is no copy of a wrong reference."""

from __future__ import annotations

import random
from dataclasses import replace

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.evaluate._advice.advice import Advice, Lead
from speechlab.evaluate._advice.conclusions import build_choice_conclusion
from support.planted import plant, right


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


def slips(share, seed):
    """Utterances with a slip for each word that all systems share."""
    made = random.Random(seed)
    texts = plant(400, a=right)["text"]
    return [
        " ".join(f"{word}s" if made.random() < share else word for word in text.split()) for text in texts
    ]


@pytest.mark.slow
def test_who_errs_often_is_no_follower_where_slips_coincide(tmp_path):
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
