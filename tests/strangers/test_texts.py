"""Texts of strangers: no function of text takes the square of their length."""

import re
import time

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab import datasets, text
from speechlab.engines import chunk_text

LENGTH = 12_000
# A sign of which each begins what does not end; and what a match could begin or end with, before or behind them.
SIGNS = ["<", "[a", "(", "（", "「", '"', "1.", "½", "一", "、", "{", "...", "1,,", "Mr. "]
AROUND = {
    "'": ("", " "),
    "$": ("", "1,"),
    "十": ("1", ""),
    "€": ("1,,", ""),
    "‰": ("1,,", ""),
    "x": (".", ""),
}
TEXTS = [sign * (LENGTH // len(sign)) + "x" for sign in SIGNS] + [
    f"{before * (LENGTH // 2)}{sign}{behind * (LENGTH // 2)}" for sign, (before, behind) in AROUND.items()
]


def find_slow(function):
    """The beginnings and ends of texts for which a function takes the square of their length."""
    slow = []
    for long in TEXTS:
        for _ in range(2):
            begin = time.process_time()
            function(long)
            if time.process_time() - begin < 0.6:
                break
        else:
            slow.append(f"{long[:6]}…{long[-6:]}")
    return slow


@pytest.mark.slow
def test_normalizers_are_linear():
    for name in ("basic", "en", "ja", "zh"):
        rules = text.normalizer(name)
        rules("one <two> 1,000 二")  # what is loaded at first use
        assert not find_slow(rules)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_other_functions_are_linear(tmp_path):
    def read(long):
        (tmp_path / "a.jsonl").write_text(
            pd.DataFrame({"audio": [long]}).to_json(orient="records", lines=True)
        )
        datasets.read(tmp_path / "a.jsonl")

    for function in (text.words, text.loops, chunk_text, read):
        function("one two")
        assert not find_slow(function)


@given(st.text("ab <>[]()' \n", max_size=30))
def test_brackets_and_apostrophes_are_as_in_whispers_rules(words):
    rules = {step.name: step.apply for step in text.normalizer("en").steps}
    assert rules["brackets"](words) == re.sub(r"[<\[][^>\]]*[>\]]", "", words)
    assert rules["parentheses"](words) == re.sub(r"\(([^)]+?)\)", "", words)
    assert rules["space before apostrophe"](words) == re.sub(r"\s+'", "'", words)
