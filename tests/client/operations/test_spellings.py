"""What people have in their hands: SciPy's pairs, rates that are floats, homes, catalogues without a fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab.audio import AudioClip
from speechlab.client import Synthesize, Transcribe, VoiceCatalogue
from speechlab.contract import Voice
from speechlab.errors import AudioError, InvalidRequestError

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
        ({"format": "ogg", "language": "ja"}, "no voice fits format='ogg'; format is one of 'wav'"),
        (
            {"gender": "Male", "language": "en"},
            "no voice fits language='en' and gender='Male', though each by itself",
        ),
    ):
        found = VOICES.find(**asked)
        assert list(found) == []
        for catalogue, index in ((found, 0), (found, -1), (found.find(gender="Female"), 0)):
            with pytest.raises(IndexError) as caught:
                catalogue[index]
            assert isinstance(caught.value, InvalidRequestError)
            assert str(caught.value) == said
        assert said in repr(found)
    assert VOICES[-2] is EN
    with pytest.raises(IndexError, match="there are 2 voices, at the positions 0 to 1"):
        VOICES[2]
    with pytest.raises(IndexError, match="the catalogue is empty"):
        VoiceCatalogue([])[0]
    with pytest.raises(ValueError) as caught:
        VOICES.index("nobody")
    assert not isinstance(caught.value, IndexError)
    pd.testing.assert_frame_equal(VOICES.to_frame(), VOICES.frame())


def test_rates_are_whole_numbers_on_either_side():
    samples = np.zeros(1_600, np.int16)
    wanted = Transcribe(AudioClip(samples, 16_000)).compute_key("s")
    spoken = Synthesize("a", voice=EN.id, sample_rate=16_000).compute_key("s")
    for rate in (16_000, np.int32(16_000), 16_000.0, np.float32(16_000)):
        assert AudioClip(samples, rate).sample_rate == 16_000
        assert type(AudioClip(samples, rate).sample_rate) is int
        assert Transcribe((samples, rate)).compute_key("s") == wanted
        if not isinstance(rate, float):
            assert Transcribe((rate, samples)).compute_key("s") == wanted
        assert Synthesize("a", voice=EN.id, sample_rate=rate).compute_key("s") == spoken
    for rate in (24_000.5, float("nan"), float("inf"), "24000", True):
        with pytest.raises(AudioError, match="sample_rate is"):
            AudioClip(np.zeros(8), rate)
        with pytest.raises(InvalidRequestError, match="sample_rate"):
            _ = Synthesize("a", voice=EN.id, sample_rate=rate).parameters


def test_a_path_may_begin_with_the_home_folder(server, lab, http, clip, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    clip.save("~/a.wav")
    assert (tmp_path / "a.wav").is_file()
    assert AudioClip.from_file("~/a.wav") == clip
    server.script(http.reply(body={"text": "Hello", "language": "en"}))
    assert lab.transcribe("~/a.wav").text == "Hello"
    frame = pd.DataFrame({"audio": ["~/a.wav"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    lab = lab.with_options(store=None)
    server.script(
        lambda asked: http.reply(404) if "voices" in asked.path else http.reply(body={"text": "Hello"})
    )
    for source in (frame, "~/rows.csv"):
        table = sl.batch.transcribe(source, lab, store=tmp_path / "store")
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
