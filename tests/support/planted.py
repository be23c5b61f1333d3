"""Outputs of systems with planted errors, and the study of them."""

import random
from dataclasses import replace

import pandas as pd

from speechlab import evaluate
from speechlab.metrics import score

WORDS = ["the", "old", "brown", "dog", "runs", "over", "green", "hills", "while", "small", "birds", "sing"]
WORDS += ["near", "quiet", "rivers", "under", "tall", "trees"]


def plant(count, **systems):
    """Rows of ten words and a number, and what each system makes of them: of (row, text, random)."""
    made = random.Random(1)
    texts = [" ".join(made.choices(WORDS, k=10)) + f" {row + 100}" for row in range(count)]
    frame = pd.DataFrame({"text": texts, "language": "de"})  # the notation of English takes time
    for name, make in systems.items():
        noise = random.Random(name)
        frame[name] = pd.array([make(row, text, noise) for row, text in enumerate(texts)], dtype="string")
    return frame


def spoil(share):
    """Spoil a share of the words."""
    return lambda row, text, noise: " ".join(
        f"x{noise.random():.6f}" if noise.random() < share else word for word in text.split()
    )


def right(row, text, noise):
    return text


def study(frame, *names, **options):
    return evaluate.recognition(None, frame, hypotheses=list(names), progress=False, **options)


def hear_anew(report, heard):
    """The report with other outputs in its rows, scored anew; this costs a tenth of another study."""
    table = report.table.assign(hypothesis=pd.array(heard, dtype="string"))
    return replace(report, table=score(table))


def check_budget(report):
    """Check that the conclusion and each line of its certainty are short."""
    assert len(report.conclusion.text.split()) <= 14, report.conclusion.text
    for line in report.conclusion.certainty.split("\n"):
        assert len(line.split()) <= 25, line
