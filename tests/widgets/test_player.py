"""The player as Python sees it: what it takes, what it refuses, what it says of itself."""

from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from speechlab.audio import AudioClip, decode, detect_format
from speechlab.widgets import Player

ROWS = [(0.0, 0.5, "a"), (0.5, 1.02, "b")]


@pytest.fixture
def clip():
    return AudioClip(0.5 * np.sin(np.arange(24_000) / 20), 24_000, "tone")


def asked(player, **content):
    """What a player answers to its browser's side."""
    answers = []
    player.send = lambda told, buffers=(): answers.append((told, *buffers))
    player._answer_message(player, content, [])
    return answers


@pytest.mark.parametrize("form", ["flac", "mp3"])
def test_player_sends_exact_pieces_of_each_format(form):
    sound = AudioClip(0.5 * np.sin(np.arange(25 * 8_000) / 20), 8_000)
    player = Player(sound, format=form)
    for piece, (start, end) in enumerate([(0, 10), (10, 20), (20, 25)]):
        [(told, data)] = asked(player, type="sound", clip=0, piece=piece)
        assert told["start"] == start
        assert detect_format(data) == form
        if form == "flac":
            assert "lossy" not in player.clips[0]["facts"]
            expected = sound.samples[start * 8_000 : end * 8_000]
            assert np.abs(decode(data).samples - expected).max() <= 1 / 65536
        else:
            assert "lossy" in player.clips[0]["facts"]
            assert told["lead"] == min(0.1, start)
            assert len(data) < 50_000


def test_a_file_that_is_gone_later_is_words(tmp_path):
    path = AudioClip(np.zeros(2_200_000), 8_000).save(tmp_path / "long.wav")
    player = Player({"one": path, "other": AudioClip(np.ones(8_000), 8_000)})
    player._sounds[0]._clip = None  # as if it were too long to be kept
    path.unlink()
    for content in ({"piece": 0}, {"start": 0, "end": 1, "count": 9}):
        kind = "sound" if "piece" in content else "spectrogram"
        [(told,)] = asked(player, type=kind, clip=0, **content)
        assert told["error"] == "the file is gone"
    assert "no sound" in str(player.static_html())


def test_player_draws_zoomed_waveform_and_spectrogram(clip):
    player = Player(clip)
    [(told, data)] = asked(player, type="peaks", clip=0, start=0.25, end=0.5, count=100)
    assert len(data) == 200
    [(told, data)] = asked(player, type="spectrogram", clip=0, start=0.0, end=1.0, count=64)
    with Image.open(BytesIO(data)) as image:
        assert image.size[0] == 64
        loudest = np.array(image.convert("RGBA"))[:, :, 3].sum(axis=1).argmax()
        height = image.size[1]
    # the tone has 24,000 / (40 pi) = 191 Hz
    assert (1 - (loudest + 0.5) / height) * told["top"] == pytest.approx(191, abs=100)
    long = Player(AudioClip(np.zeros(8_000 * 301), 8_000))
    [(told,)] = asked(long, type="spectrogram", clip=0, start=0.0, end=301.0, count=64)
    assert "zoom in" in told["error"]


def test_several_clips_have_names_and_one_level(clip):
    quiet = AudioClip(clip.samples / 4, 24_000)
    player = Player({"loud": clip, "quiet": quiet, "silent": AudioClip(np.zeros(48_000), 24_000)})
    assert [round(one["gain"], 3) for one in player.clips] == [0.25, 1.0, 1.0]
    assert player.duration == 2.0
    assert "silent" in player.clips[2]["facts"]


def test_what_python_sets_stays_within_the_recording(clip):
    player = Player(clip)
    assert (player.view, player.selection) == ((0.0, 1.0), ())
    for name, given, taken in [
        ("view", (0.25, 0.5), (0.25, 0.5)),
        ("view", (0.5, 9), (0.5, 1.0)),
        ("selection", (0.75, 9), (0.75, 1.0)),
        ("current_time", -5, 0.0),
    ]:
        setattr(player, name, given)
        assert getattr(player, name) == taken
    player.seek(9)
    assert player.current_time == 1.0


def test_recordings_and_segments_come_in_every_form(clip, tmp_path):
    for segments in [
        ROWS,
        pd.DataFrame(ROWS, columns=["start", "end", "text"]),
        [{"start": s, "end": e, "text": t, "speaker": "x"} for s, e, t in ROWS],
        [SimpleNamespace(start=s, end=e, text=t) for s, e, t in ROWS],
    ]:
        expected = [{"start": 0.0, "end": 0.5, "text": "a"}, {"start": 0.5, "end": 1.0, "text": "b"}]
        assert Player(clip, segments).segments == expected
    player = Player(SimpleNamespace(audio=clip, segments=ROWS, language="ja"))
    assert (len(player.segments), player.layers[0]["lang"], player.title) == (2, "ja", "tone")
    path = clip.save(tmp_path / "tone.wav")
    assert (Player(path).title, Player(path.read_bytes()).duration) == ("tone.wav", 1.0)


def test_words_in_time_are_a_tier_of_their_own(clip):
    words = pd.DataFrame(
        {"word": ["a", "<b>"], "start": [0.0, 0.6], "end": [0.4, 0.9], "confidence": [1.0, None]}
    )
    said = SimpleNamespace(audio=clip, segments=ROWS, words=words, language="en")
    player = Player(said)
    assert [(tier["name"], tier["lang"], len(tier["segments"])) for tier in player.layers] == [
        ("segments", "en", 2),
        ("words", "en", 2),
    ]
    assert player.tiers["words"]["text"].tolist() == ["a", "<b>"]
    assert "&lt;b&gt;" in str(player.static_html())
