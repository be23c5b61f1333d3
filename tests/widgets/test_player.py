"""The player as Python sees it: what it takes, what it refuses, what it says of itself."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from traitlets import TraitError

from speechlab import widgets
from speechlab.audio import AudioClip, decode, sniff
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.widgets import Player

ROWS = [(0.0, 0.5, "a"), (0.5, 1.02, "b")]


@pytest.fixture
def clip():
    return AudioClip(0.5 * np.sin(np.arange(24_000) / 20), 24_000, "tone")


def test_the_sound_travels_exactly_unless_mp3_is_asked_for(clip):
    assert np.abs(decode(Player(clip).audio).samples - clip.samples).max() <= 1 / 65536
    lossy = Player(clip, format="mp3")
    assert sniff(lossy.audio) == "mp3"
    assert "lossy" in lossy.facts


@pytest.mark.parametrize(
    "segments",
    [
        ROWS,
        pd.DataFrame(ROWS, columns=["start", "end", "text"]),
        [{"start": s, "end": e, "text": t, "speaker": "x"} for s, e, t in ROWS],
        [SimpleNamespace(start=s, end=e, text=t) for s, e, t in ROWS],
        SimpleNamespace(segments=pd.DataFrame(ROWS, columns=["start", "end", "text"]), language=None),
    ],
)
def test_segments_in_every_form_are_the_same_and_end_with_the_clip(clip, segments):
    expected = [{"start": 0.0, "end": 0.5, "text": "a"}, {"start": 0.5, "end": 1.0, "text": "b"}]
    assert Player(clip, segments).segments == expected


def test_missing_text_is_no_text(clip):
    frame = pd.DataFrame({"start": [0.0], "end": [0.5], "text": [float("nan")]})
    assert Player(clip, frame).segments[0]["text"] == ""


def test_a_transcript_with_its_audio_needs_nothing_else(clip):
    transcript = SimpleNamespace(audio=clip, segments=ROWS, language="ja")
    player = Player(transcript)
    assert (len(player.segments), player.lang, player.title) == (2, "ja", "tone")


def test_files_and_bytes_will_do(clip, tmp_path):
    path = clip.save(tmp_path / "tone.wav")
    assert Player(path).title == "tone.wav"
    assert Player(path.read_bytes()).duration == 1.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"audio": 5}, "a int is no sound; give an AudioClip"),
        ({"format": "ogg"}, "'flac', 'wav' or 'mp3'"),
        ({"audio": AudioClip(np.zeros(0), 24_000)}, "is empty"),
        ({"segments": [(1.0, 0.5, "x")]}, "0 <= start <= end"),
        ({"segments": {"start": 0.0, "end": 0.5}}, "segments are a dict"),
        ({"segments": b"0 0.5"}, "segments are a bytes"),
        ({"segments": [(0.0, float("inf"), "x")]}, "0 <= start <= end"),
        ({"segments": [{"text": "x"}]}, "needs start and end"),
        ({"segments": "text"}, "give a DataFrame"),
    ],
)
def test_what_cannot_be_played_is_refused_with_a_remedy(clip, arguments, said):
    with pytest.raises(AudioError, match=re.escape(said)):
        Player(**{"audio": clip, **arguments})


def test_selection_is_a_span_or_nothing(clip):
    player = Player(clip)
    assert player.selection == ()
    player.selection = (0.25, 0.5)
    with pytest.raises(TraitError, match="start, end"):
        player.selection = (0.5, 0.25)


def test_seek_stays_within_the_clip(clip):
    player = Player(clip)
    player.seek(9)
    assert player.current_time == 1.0


def test_repr_is_short_and_holds_no_sound(clip):
    assert repr(Player(clip, ROWS)) == "Player('tone', 1.00 s, 2 segments)"


def test_the_module_never_writes_markup():
    source = (
        widgets.Player._esm if isinstance(widgets.Player._esm, str) else str(widgets.Player._esm)
    ).lower()
    for name in ("innerhtml", "outerhtml", "insertadjacenthtml", "document.write", "eval("):
        assert name not in source
    assert "textcontent" in source


@pytest.mark.parametrize("wrong", [5, True, ["x"], float("nan"), object()])
def test_a_name_that_is_no_text_is_refused(clip, wrong):
    with pytest.raises(InvalidRequestError, match=r"title .* must be a text"):
        Player(clip, title=wrong)
    with pytest.raises(InvalidRequestError, match=r"lang .* must be a text"):
        Player(clip, lang=wrong)


@pytest.mark.parametrize("wrong", ["1", True, [1], float("nan"), object()])
def test_a_time_that_is_no_number_is_refused(clip, wrong):
    player = Player(clip)
    for call in (player.seek, player.play, lambda time: player.play(0, time)):
        with pytest.raises(InvalidRequestError, match="must be a time in seconds"):
            call(wrong)
    with pytest.raises(InvalidRequestError):
        player.seek(None)
    player.seek(np.float32(0.5))
    assert player.current_time == 0.5
    player.seek(float("inf"))
    assert player.current_time == 1.0
