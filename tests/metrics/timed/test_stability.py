"""Texts that change while they are shown, against texts that are built from their changes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import partial_stability

WORDS = st.sampled_from(["a", "b", "c", "dd"])
STEPS = st.lists(st.tuples(st.integers(0, 3), st.lists(WORDS, max_size=3), st.booleans()), max_size=12)


@given(STEPS)
def test_what_is_withdrawn_is_what_is_counted(steps):
    """Each step withdraws words, puts others there that differ from them at the first place, and may be final."""
    shown, texts, withdrawn, revisions, final = [], [], 0, 0, 0
    for count, new, ends in steps:
        count = min(count, len(shown))  # noqa: PLW2901 - of those that are there
        kept, gone = shown[: len(shown) - count], shown[len(shown) - count :]
        if gone and new and gone[0] == new[0]:
            new = ["other", *new[1:]]  # noqa: PLW2901
        shown = [*kept, *new]
        withdrawn, revisions = withdrawn + len(gone), revisions + bool(gone)
        texts.append((" ".join(shown), ends))
        if ends:
            final, shown = final + len(shown), []
    found = partial_stability(texts, language="en")
    assert (found.unstable_words, found.revisions, found.words) == (withdrawn, revisions, final)
    if final:
        assert found.unstable_partial_word_ratio == withdrawn / final
    else:
        assert math.isnan(found.unstable_partial_word_ratio)


@given(st.lists(WORDS, min_size=1, max_size=8))
def test_a_text_that_only_grows_is_stable(words):
    texts = [(" ".join(words[:n]), n == len(words)) for n in range(1, len(words) + 1)]
    found = partial_stability(texts)
    assert (found.unstable_words, found.words) == (0, len(words))
    repeated = partial_stability([one for text, final in texts for one in [(text, False), (text, final)]])
    assert repeated == found


def test_partial_stability_counts_characters_and_notation():
    assert partial_stability([("三 十", False), ("三時に", True)], language="ja").unstable_words == 1
    assert partial_stability([("good morning", False), ("Good morning.", True)]).unstable_words == 2
    assert partial_stability([("some", False), ("something", True)]).revisions == 1


def test_other_values_are_refused():
    for wrong in ["text", [1], [("a",)], [(1, True)], None]:
        with pytest.raises(
            InvalidRequestError, match=r"partials is .*pairs of a text and whether it is final"
        ):
            partial_stability(wrong)
