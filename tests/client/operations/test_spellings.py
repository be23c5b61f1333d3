"""What people have in their hands: SciPy's pairs, rates that are floats, homes, catalogues without a fit."""

from __future__ import annotations

import pandas as pd
import pytest

import speechlab as sl
from speechlab.audio import AudioClip
from speechlab.client import VoiceCatalogue
from speechlab.contract import Voice
from speechlab.errors import InvalidRequestError

EN, JA = (
    Voice.parse({"id": uuid, "description": name, "language": language, "gender": gender, "formats": ["wav"]})
    for uuid, name, language, gender in (
        ("0f8fad5b-d9cb-469f-a165-70867728950e", "calm", "English", "Female"),
        ("7c9e6679-7425-40de-944b-e07fc1f90ae7", "bright", "Japanese", "Male"),
    )
)
VOICES = VoiceCatalogue([EN, JA])


def test_where_no_voice_fits_the_first_is_told_why():
    for asked, said in (
        ({"language": "fr"}, "no voice fits language='fr'; language is one of 'en', 'ja'"),
        (
            {"gender": "Male", "language": "en"},
            "no voice fits language='en' and gender='Male', though each by itself",
        ),
    ):
        for found in (VOICES.find(**asked), VOICES.find(**asked).find(gender="Female")):
            with pytest.raises(IndexError) as caught:
                found[0]
            assert isinstance(caught.value, InvalidRequestError)
            assert str(caught.value) == said
    with pytest.raises(IndexError, match="there are 2 voices, at the positions 0 to 1"):
        VOICES[2]


def test_a_path_may_begin_with_the_home_folder(server, lab, http, clip, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    clip.save("~/a.wav")
    assert (tmp_path / "a.wav").is_file()
    assert AudioClip.from_file("~/a.wav") == clip
    server.script(http.reply(body={"text": "Hello", "language": "en"}))
    assert lab.transcribe("~/a.wav").text == "Hello"
    pd.DataFrame({"audio": ["~/a.wav"]}).to_csv(tmp_path / "rows.csv", index=False)
    server.script(
        lambda asked: http.reply(404) if "voices" in asked.path else http.reply(body={"text": "Hello"})
    )
    table = sl.batch.transcribe("~/rows.csv", lab.with_options(store=None), store=tmp_path / "store")
    assert list(table["hypothesis"]) == ["Hello"]


def test_a_voice_is_found_by_the_name_in_its_description():
    """Even where other descriptions contain it."""
    said = (
        "Kokoro, American (kokoro: af_heart)",
        "hibari, very fast (hibari: heart)",
        "Calm and warm",
        "Calm, bright",
    )
    voices = VoiceCatalogue([Voice(id=str(number), description=text) for number, text in enumerate(said, 1)])
    names = {"heart": "2", "AF_Heart": "1", "hibari: heart": "2", "fast": "2", "warm": "3", "4": "4"}
    assert {name: voices[name].id for name in names} == names
    for name in ("calm", "nobody", "", " "):
        with pytest.raises(InvalidRequestError, match="fits"):
            voices[name]
