"""A voice is found by the name that its description ends with, even when other descriptions contain it."""

from __future__ import annotations

import pytest

from speechlab.client import VoiceCatalogue
from speechlab.contract import Voice
from speechlab.errors import InvalidRequestError

VOICES = VoiceCatalogue(
    [
        Voice(id="1", description="Kokoro, American (kokoro: af_heart)"),
        Voice(id="2", description="hibari, very fast (hibari: heart)"),
        Voice(id="3", description="Calm and warm"),
        Voice(id="4", description="Calm and bright"),
    ]
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("heart", "2"), ("AF_Heart", "1"), ("hibari: heart", "2"), ("fast", "2"), ("warm", "3"), ("4", "4")],
)
def test_names(name, expected):
    assert VOICES[name].id == expected


@pytest.mark.parametrize("name", ["calm", "nobody", "", " "])
def test_names_that_fit_none_or_several(name):
    with pytest.raises(InvalidRequestError, match="fits"):
        VOICES[name]
