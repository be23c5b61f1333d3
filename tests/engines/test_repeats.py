"""Repetition in what was decoded: which windows are looked at again, and which piece of each is decoded alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from speechlab.engines._recognition.decoding import Span, has_repetition
from speechlab.engines._recognition.gaps import Decoded
from speechlab.engines._recognition.repeats import (
    choose_tested_piece,
    find_repeating_windows,
    is_alike,
    replace_window,
)

STORY = [
    "The council met to discuss the bridge.",
    "Nobody agreed on who should pay.",
    "A farmer sold his land to the city.",
    "The river rises every spring, and the old bridge leaks.",
    "My sister works in a bakery near the station.",
]
LATE = "The train is late again. "


def decode(*texts, window_s=30.0):
    """What was decoded in windows of 30 seconds, with one segment each."""
    segments = [
        SimpleNamespace(
            seek=round(number * window_s * 100),
            start=number * window_s,
            end=(number + 1) * window_s,
            text=text,
            words=None,
        )
        for number, text in enumerate(texts)
    ]
    return Decoded(tuple(segments), ("en",) * len(segments), "en", 1.0)


@pytest.mark.parametrize(
    ("texts", "windows"),
    [
        (STORY, []),
        ([f"{line} {LATE}" for line in STORY], []),  # said once in each window, as an announcement is
        ([STORY[0], LATE * 6, STORY[1]], [1]),
        ([STORY[0], *[" ".join(STORY[1:])] * 2, STORY[0]], [1, 2]),
        (["Thank you."] * 3 + STORY[:2], [0, 1, 2]),
    ],
)
def test_windows_whose_words_repeat_are_looked_at_again(texts, windows):
    found = find_repeating_windows(decode(*texts), 30.0 * len(texts))
    assert [window.span for window in found] == [Span(30.0 * n, 30.0 * (n + 1)) for n in windows]


def test_the_last_piece_that_repeats_is_decoded_alone():
    (window,) = find_repeating_windows(decode(LATE * 6), 30.0)
    pieces = [(0.0, 10.0), (10.0, 20.0), (20.0, 30.0)]
    number, text = choose_tested_piece(window, pieces)
    assert number == 2
    assert is_alike(text, LATE * 2)
    assert not is_alike(text, STORY[1])
    assert not is_alike(text, "")


def test_a_window_is_replaced_and_the_others_stay():
    looped = decode(STORY[0], LATE * 6, STORY[2])
    (window,) = find_repeating_windows(looped, 90.0)
    mended = replace_window(looped, window, decode(STORY[1]))
    assert mended.text == "".join(STORY[:3])
    assert len(mended.languages) == 3


def test_what_counts_as_saying_the_same_again():
    for text in (
        "",
        "The train is late again. Please bring your own lunch.",
        "はい、はい、はい。わかりました。",
        "It cost 1,000,000 yen, no, 10,000,000.",
    ):
        assert not has_repetition(text), text
    for text in (
        "Come on, I'm, I'm, I'm, I'm, I'm, I'm...",
        "8-0-0-0-0-0-0-0-0-0",
        "会議は三時に始まります。" * 4,
        "so I said that it was fine. So I said that it was fine, so I said that it was fine",
        "あ" * 130,
    ):
        assert has_repetition(text), text
