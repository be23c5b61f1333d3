"""Speech that is played while it is made: its sound, its times and its end, of a real service."""

import asyncio
import threading

import numpy as np
import pytest

from speechlab.client import AsyncClient
from speechlab.errors import InvalidRequestError, SpeechLabError
from support.clients import KEY
from support.staged_voices import HOSTILE, voices_service


@pytest.fixture(scope="module")
def lab():
    with voices_service() as client:
        yield client


def voice(lab, name):
    return next(one for one in lab.voices() if name in one.description)


def test_a_stream_is_played_and_is_a_clip_at_the_end(lab):
    player = lab.stream_speech("Good morning.", voice=voice(lab, "quiet"), format="wav").play()
    clip = player.wait()
    assert player.state == "ended"
    assert clip.duration_s == pytest.approx(2.0)
    whole = lab.synthesize("Good morning.", voice=voice(lab, "quiet"), format="wav")
    assert np.array_equal(clip.samples, whole.samples)
    times = player.times
    assert 0 < times["first_byte_s"] <= times["first_audible_s"] <= times["total_s"]
    assert "first byte after" in player.facts
    assert "first sound after" in player.facts
    assert "audio" in player.static_html()


def test_the_browser_gets_all_of_the_sound_once(lab):
    player = lab.stream_speech("Good morning.", voice=voice(lab, "quiet"), format="pcm").play()
    clip = player.wait()
    sent = []
    player.send = lambda content, buffers=(): sent.append((content, [bytes(one) for one in buffers]))
    player._answer_message(player, {"type": "missing", "start": 100}, [])
    (content, (data,)) = sent[0]
    assert content == {"ask": None, "start": 100}
    samples = np.frombuffer(data, "<i2") / 32_767
    assert np.allclose(samples, clip.samples.reshape(-1)[100:], atol=1e-4)


def test_stop_closes_the_stream_and_keeps_what_came(lab):
    player = lab.stream_speech("Go on.", voice=voice(lab, "endless"), format="wav").play()
    began = threading.Event()
    player.observe(lambda change: change["new"] == "speaking" and began.set(), "state")
    if player.state == "waiting":
        assert began.wait(20)
    player._answer_message(player, {"type": "stop"}, [])
    clip = player.wait()
    assert player.state == "stopped"
    assert player.error is None
    assert clip.duration_s > 0.4
    # the service speaks again at once: the endless text is not in its way
    assert lab.stream_speech("Next.", voice=voice(lab, "quiet"), format="wav").play().wait().duration_s == 2.0


def test_a_stream_that_fails_keeps_what_came(lab):
    player = lab.stream_speech("Bad.", voice=voice(lab, "fails later"), format="wav").play()
    with pytest.raises(SpeechLabError):
        player.wait()
    assert player.state == "failed"
    assert str(player.error) in player.facts
    assert player.clip.duration_s == pytest.approx(0.5)
    broken = lab.stream_speech("Bad.", voice=voice(lab, "that fails"), format="wav").play()
    with pytest.raises(SpeechLabError):
        broken.wait()
    assert "<img src=x" not in broken.static_html()
    mp3 = lab.stream_speech("No pieces.", voice=voice(lab, "quiet"), format="mp3").play()
    with pytest.raises(InvalidRequestError, match="cannot be decoded in pieces"):
        mp3.wait()


def test_a_session_plays_texts_one_after_the_other(lab):
    with lab.realtime(voice=voice(lab, "quiet"), format="pcm") as session:
        players = [session.play("One."), session.play(HOSTILE)]
        assert [player.wait().duration_s for player in players] == [2.0, 2.0]
        with pytest.raises(InvalidRequestError, match="there is no text to play; give one"):
            session.play()
    assert [player.title for player in players] == ["One.", HOSTILE]
    assert players[1]._after == players[0]._place
    assert "<img src=x" not in players[1].static_html()


def test_streams_and_sessions_play_in_a_running_loop(lab):
    chosen = voice(lab, "quiet")
    endless = voice(lab, "endless")

    async def main():
        async with AsyncClient(base_url=lab.base_url, api_key=KEY) as alab:
            clip = await alab.stream_speech("Good morning.", voice=chosen, format="wav").play()
            async with alab.realtime(voice=chosen, format="pcm") as session:
                said = await session.play("One.")
            # a synchronous stream beside the running loop
            beside = await lab.stream_speech("Beside.", voice=chosen, format="wav").play()
            player = alab.stream_speech("Go on.", voice=endless, format="wav").play()
            began = asyncio.Event()
            player.observe(lambda _: began.set(), "state")
            await began.wait()
            player.stop()
            part = await player
            return clip, said, beside, part, player.state

    *clips, part, state = asyncio.run(main())
    assert [clip.duration_s for clip in clips] == [2.0, 2.0, 2.0]
    assert part.duration_s > 0
    assert state == "stopped"
