"""The chunker loses nothing, keeps its limits and begins short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.engines._chunks import chunk_text, estimate_spoken_length, split_sentences, split_to_limit

texts = st.text(
    alphabet=st.one_of(
        st.sampled_from("。、！？.,!? \n　「」（）あいう漢字ABCabc019'’…—:;😀"), st.characters(codec="utf-8")
    ),
    max_size=300,
)


@given(texts)
def test_chunks_joined_are_the_text(text):
    assert "".join(piece.text for piece in chunk_text(text)) == text


@given(texts)
def test_sentences_joined_are_the_text(text):
    assert "".join(split_sentences(text)) == text


@given(texts, st.floats(1, 60), st.floats(5, 100))
def test_no_chunk_is_heavier_than_the_limit(text, first, limit):
    pieces = chunk_text(text, first=first, limit=limit)
    assert "".join(piece.text for piece in pieces) == text
    assert all(estimate_spoken_length(piece.text) <= limit + 1e-6 for piece in pieces)
    assert all(piece.text for piece in pieces)


@given(texts, st.integers(1, 40))
def test_split_to_limit_is_a_partition(text, limit):
    parts = split_to_limit(text, limit)
    assert "".join(parts) == text
    assert all(0 < len(part) <= limit for part in parts)


@pytest.mark.timeout(100)  # in linear time it takes a moment; otherwise longer than anybody waits
def test_long_texts_are_cut_in_linear_time():
    for unit in ("あ", "a", "a ", "あ、", "1", "\n", "。"):
        text = unit * 50_000
        assert "".join(piece.text for piece in chunk_text(text)) == text


def test_where_texts_are_cut():
    for expected in (
        [],
        ["はい。"],
        ["はい。", "そうです、今日はいい天気です。"],
        ["おはようございます、", "今日は三つの話題を順番にお伝えします。", "最初は天気です。"],
        ["Dr. Smith paid 3.50 dollars. ", "He left."],
        ["「はい。」", "と言った。次です。"],
    ):
        assert [piece.text for piece in chunk_text("".join(expected))] == expected


def test_the_pause_follows_the_kind_of_cut():
    pieces = chunk_text(
        "おはようございます、今日は三つの話題を順番にお伝えします。最初は天気と交通です。\n次です。"
    )
    assert [piece.pause_s for piece in pieces] == [0.15, 0.3, 0.35, 0.3]
