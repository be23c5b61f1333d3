"""The recorder as Python sees it: chunks in any order become clips, and what makes no sense does not."""

import numpy as np
import pytest

from speechlab.widgets import Recorder

RATE = 48_000


def told(recorder, content, *buffers):
    """What a recorder answers to its browser's side."""
    answers = []
    recorder.send = lambda content, buffers=(): answers.append((content, *buffers))
    recorder._answer_message(recorder, content, [memoryview(data) for data in buffers])
    return answers


def chunk(recorder, number, samples, take="a", rate=RATE):
    content = {"type": "chunk", "take": take, "number": number, "rate": rate, "ask": 7}
    return told(recorder, content, np.asarray(samples, "<i2").tobytes())


def end(recorder, count, take="a", rate=RATE, device="<b>Mic</b>"):
    content = {"type": "end", "take": take, "count": count, "rate": rate, "device": device, "ask": 7}
    return told(recorder, content)


def test_chunks_come_in_any_order_and_twice():
    recorder = Recorder(title="take")
    assert chunk(recorder, 1, [3, 4]) == [({"ask": 7},)]
    assert end(recorder, 2) == [({"ask": 7, "missing": True},)]
    chunk(recorder, 0, [1, 2])
    chunk(recorder, 1, [9, 9])
    assert end(recorder, 2) == end(recorder, 2) == [({"ask": 7, "missing": False},)]
    assert (recorder.clip.samples * 32_768).tolist() == [1, 2, 3, 4]
    assert (recorder.clip.sample_rate, recorder.clip.title) == (RATE, "take 1")
    assert chunk(recorder, 0, [1, 2]) == [({"ask": 7},)]
    assert len(recorder.takes) == 1


def test_a_take_becomes_a_wav_of_the_rate_asked_for(tmp_path):
    recorder = Recorder(sample_rate=16_000)
    tone = np.clip(np.sin(np.arange(RATE) / 20) * 33_500, -32_768, 32_767)
    chunk(recorder, 0, tone)
    end(recorder, 1)
    [take] = recorder.takes
    assert (take["seconds"], take["rate"], take["device"]) == (1.0, 16_000, "<b>Mic</b>")
    assert take["clipped"] > 5_000
    assert take["peak_dbfs"] == pytest.approx(0, abs=0.01)
    assert take["level_dbfs"] == pytest.approx(-3, abs=0.3)
    assert (recorder.clip.sample_rate, recorder.clip.frames) == (16_000, 16_000)
    assert recorder.clip.save(tmp_path / "take.wav").stat().st_size == 32_044
    [(_, data)] = told(recorder, {"type": "sound", "take": "a"})
    assert data[:4] == b"fLaC"


def test_what_fails_at_a_take_is_seen_and_the_take_is_kept():
    recorder = Recorder()
    recorder.observe(lambda change: change["no such thing"], "takes")
    chunk(recorder, 0, [1, 2])
    with pytest.raises(KeyError, match="no such thing"):
        end(recorder, 1)
    assert recorder.clip.frames == 2
    assert end(recorder, 1) == [({"ask": 7, "missing": False},)]  # the browser asks again


def test_silence_and_a_single_sample_are_takes_too():
    recorder = Recorder()
    for take, samples in (("one", [0]), ("silent", np.zeros(RATE))):
        chunk(recorder, 0, samples, take=take)
        end(recorder, 1, take=take)
    assert [(take["peak_dbfs"], take["level_dbfs"]) for take in recorder.takes] == [(None, None)] * 2
    assert str(recorder.static_html()).count("<audio") == 2


def test_a_take_has_a_longest_length():
    recorder = Recorder(max_s=1)
    sent = [bool(chunk(recorder, number, np.zeros(RATE))) for number in range(3)]
    assert sent == [True, True, False]
    for take in "bcde":
        chunk(recorder, 0, [1], take=take)
    assert [end(recorder, 1, take=take)[0][0]["missing"] for take in "abc"] == [True, False, False]


def test_takes_are_cleared_and_their_numbers_go_on():
    recorder = Recorder()
    for take in "ab":
        chunk(recorder, 0, [1, 2], take=take)
        end(recorder, 1, take=take)
    recorder.clear()
    assert (recorder.clips, recorder.takes) == ([], [])
    chunk(recorder, 0, [1], take="c")
    end(recorder, 1, take="c")
    assert recorder.clip.title == "Recording 3"
