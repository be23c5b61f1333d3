"""Texts sent in another spelling than they are kept in: calls, streams, batches, the store and studies."""

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import batch
from speechlab.errors import InvalidRequestError, ReplayMiss
from speechlab.text import Lexicon

LEXICON = Lexicon([("ja", "鬼滅", "キメツ"), ("en", "Nguyen", "win", "joe"), ("ja", "上手", "")])
VOICES = {"mei": "Japanese", "joe": "English", "any": "any language"}


@pytest.fixture
def spoken():
    return []


@pytest.fixture
def mine(spoken):
    def speak(text, voice):
        spoken.append(text)
        return np.full(800 * len(text), 0.1), 8_000

    functions = {"synthesize": speak, "transcribe": lambda audio: "この鬼滅は"}
    with sl.system("mine", **functions, voices=VOICES, version="1") as lab:
        yield lab


def test_calls_and_streams_send_the_spelling_and_keep_the_text(mine, spoken):
    for voice, text, sent in (
        ("mei", "この鬼滅は", "このキメツは"),
        ("joe", "I know Nguyen.", "I know win."),
        ("any", "この鬼滅は", "このキメツは"),
        ("any", "I know Nguyen.", "I know Nguyen."),  # the entry is of joe
    ):
        assert mine.synthesize(text, voice=voice, respell=LEXICON).text == text
        assert spoken.pop() == sent
        with mine.stream_speech(text, voice=mine.voices()[voice].id, respell=LEXICON) as stream:
            assert stream.collect().text == text
        assert spoken.pop() == sent
    assert mine.usage.synthesized_chars == 2 * (len("このキメツは") * 2 + len("I know win.I know Nguyen."))


def test_an_undecided_word_and_no_lexicon_are_refused(mine, spoken):
    with pytest.raises(InvalidRequestError, match="上手"):
        mine.synthesize("上手だ", voice="mei", respell=LEXICON)
    with pytest.raises(InvalidRequestError, match=r"sl\.text\.Lexicon"):
        mine.synthesize("鬼滅", voice="mei", respell="lexicon.csv")
    assert not spoken


def test_the_key_is_that_of_the_text_that_is_sent(mine, spoken, tmp_path):
    frame = pd.DataFrame({"text": ["鬼滅", "上手", "キメツ", "雨"]})
    options = {"voice": "mei", "store": tmp_path, "progress": False}
    with pytest.warns(UserWarning, match="1 of 4 rows failed"):
        table = batch.synthesize(frame, mine, respell=LEXICON, **options)
    assert table["text"].tolist() == frame["text"].tolist()
    assert table["status"].tolist() == ["ok", "error", "ok", "ok"]
    assert sorted(spoken) == ["キメツ", "雨"]
    assert table["key"][0] == table["key"][2]
    assert table["usage_characters"][0] == 3
    plain = batch.synthesize(frame[["text"]], mine, **options)
    assert [*(plain["key"] == table["key"])] == [False, False, True, True]

    replay = mine.with_options(store=tmp_path, mode="replay")
    assert replay.synthesize("鬼滅", voice="mei", format="flac", respell=LEXICON).text == "鬼滅"
    with pytest.raises(ReplayMiss):
        replay.synthesize("鬼滅だ", voice="mei", format="flac", respell=LEXICON)


def test_a_realtime_text_is_sent_in_the_spelling(realtime, http):
    lexicon = Lexicon([("ja", "鬼滅", "キメツ")])
    voice = sl.Voice(id=http.VOICE_ID, language="Japanese")
    with (
        sl.Client(f"http://127.0.0.1:{realtime.port}", api_key=http.KEY, timeout=5.0) as client,
        client.realtime(voice=voice, format="pcm", respell=lexicon) as session,
    ):
        assert session.say("この鬼滅").text == "この鬼滅"
    assert [said["text"] for said in realtime.sent if said["type"] == "tts.speak"] == ["このキメツ"]
