"""Texts of strangers: no function of text takes the square of their length."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab import text
from speechlab.datasets._places import resolve_recordings
from speechlab.engines._chunks import chunk_text
from speechlab.metrics._sound.clip_measures import _has_end_twice
from speechlab.text._languages.english import APOSTROPHES, BRACKETS

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
def test_other_functions_are_linear():
    for function in (
        text.words,
        text.loops,
        chunk_text,
        lambda long: resolve_recordings([long], Path()),
        lambda long: _has_end_twice(long + "y"),
    ):
        function("one two")
        assert not find_slow(function)


@given(st.text("ab <>[]()' \n", max_size=30))
def test_brackets_and_apostrophes_are_as_in_whispers_rules(words):
    brackets, parentheses = BRACKETS
    assert brackets.apply(words) == re.sub(r"[<\[][^>\]]*[>\]]", "", words)
    assert parentheses.apply(words) == re.sub(r"\(([^)]+?)\)", "", words)
    assert APOSTROPHES.apply(words) == re.sub(r"\s+'", "'", words)
