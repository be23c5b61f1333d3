"""Recognition while a recording is spoken: the pace of its pieces, the times of its texts, and what goes wrong."""

import itertools
import threading

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import batch
from speechlab.errors import APITimeoutError, ContractError, EngineError, InvalidRequestError
from support.clock import FakeClock
from support.functions import counted_aloud

RATE = 8_000
SPOKEN = sl.AudioClip(np.repeat(np.float32([0, 0.5, 0]), [4_000, 8_000, 4_000]), RATE)
"""Sound from 0.5 s to 1.5 s, of 2 s."""


def planted(clock: FakeClock, form: str = "generator"):
    """A function whose first text takes 50 ms, and whose last one takes 300 ms."""

    def texts(frames):
        if frames == RATE:
            clock.now += 0.05
            yield "good", False
        if frames == 1.5 * RATE:
            yield "good mourning", False
            yield "good mourning", False
        if frames == 2 * RATE:
            clock.now += 0.3
            yield "good morning", True

    def generator(clips, language=None):
        frames = 0
        for clip in clips:
            frames += clip.frames
            yield from texts(frames)

    async def later(clips, language=None):
        frames = 0
        async for clip in clips:
            frames += clip.frames
            for text in texts(frames):
                yield text

    return {"generator": generator, "async": later, "factory": lambda: later}[form]


def streaming(function, clock=None, **options):
    options = {"version": "1", **({"clock": clock} if clock else {"playback_rate": None}), **options}
    return sl.system("stream", transcribe_stream=function, **options)


def test_texts_have_the_times_at_which_they_came():
    for form in ("generator", "async", "factory"):
        clock = FakeClock()
        with streaming(planted(clock, form), clock) as lab:
            found = lab.transcribe(SPOKEN, stream=True, language="en")
        assert (found.text, found.language) == ("good morning", "en")
        assert found.partials.to_dict("list") == {
            "time_s": pytest.approx([1.05, 1.5, 2.3]),
            "text": ["good", "good mourning", "good morning"],
            "final": [False, False, True],
        }
        assert found.first_partial_s == pytest.approx(0.55)  # after the first sound
        assert found.finalization_s == pytest.approx(0.8)  # after the last sound
        assert found.timing.processing_s == pytest.approx(0.35)  # the waits for speech are no work
        assert sum(clock.slept) == pytest.approx(2 - 0.05)  # it was behind once, and did not wait then


def test_a_faster_pace_and_longer_pieces():
    clock, seen = FakeClock(), []

    def one(clips):
        seen.extend((clip.channels, clip.sample_rate, clip.frames) for clip in clips)
        yield "done", True

    with streaming(one, clock, playback_rate=4, piece_s=0.75) as lab:
        found = lab.transcribe(SPOKEN, stream=True)
    assert [frames for _, _, frames in seen] == [6_000, 6_000, 4_000]
    assert sum(clock.slept) == pytest.approx(0.5)
    assert found.finalization_s == pytest.approx(0.5 - 1.5 / 4)
    seen.clear()
    stereo = sl.AudioClip(np.full((900, 2), 0.1, np.float32), RATE)
    with streaming(one, sample_rate=16_000) as lab:
        lab.transcribe(stereo, stream=True)
    assert seen == [(1, 16_000, 1_600), (1, 16_000, 200)]


def test_what_comes_after_a_final_text_is_of_the_next_segment():
    def two(clips, language=None):
        yield "three", False
        yield "三時に", True
        yield "", False
        yield "会議", False

    def spaced(clips):
        list(clips)
        yield from (("one", True), ("two", True), ("", True))

    with streaming(two) as lab:
        found = lab.transcribe(SPOKEN, stream=True, language="ja")
    assert found.text == "三時に会議"  # what is not final at the end becomes so
    assert found.partials["final"].tolist() == [False, True, False, False, True]
    assert found.first_partial_s is None  # at no pace there is no time
    with streaming(spaced) as lab:
        assert lab.transcribe(SPOKEN, stream=True).text == "one two"
    clock = FakeClock()
    with streaming(lambda clips, language=None: iter(()), clock) as lab:
        found = lab.transcribe(SPOKEN, stream=True)
        assert (found.text, len(found.partials), found.finalization_s) == ("", 0, None)
    with streaming(planted(clock), clock) as lab:  # silence
        assert lab.transcribe(sl.AudioClip(np.zeros(16_000), RATE), stream=True).first_partial_s is None


def test_other_results_are_refused_in_words():
    async def blocking(clips):
        for _ in clips:
            yield "a", False

    returned = r"transcribe_stream returned .*; return an iterator of \(text"
    wrong = ("text", 3, [("a",)], [(1, True)])
    for function, error, told in (
        *((lambda clips, value=value: value, ContractError, returned) for value in wrong),
        (blocking, EngineError, "reads its clips with `async for`"),
    ):
        with streaming(function) as lab, pytest.raises(error, match=told):
            lab.transcribe(SPOKEN, stream=True)


@pytest.mark.slow
def test_a_stream_that_never_ends(monkeypatch):
    free = threading.Event()

    def hanging(clips):
        yield "a", False
        free.wait(600)

    try:
        with streaming(hanging, timeout=0.3) as lab, pytest.raises(APITimeoutError):
            lab.transcribe(SPOKEN, stream=True)
    finally:
        free.set()
    monkeypatch.setattr("speechlab.client._systems.performing._MOST_PARTIALS", 1_000)
    endless = lambda clips: itertools.repeat(("a", False))  # noqa: E731
    with streaming(endless) as lab, pytest.raises(ContractError, match="more than 1,000 texts"):
        lab.transcribe(SPOKEN, stream=True)


def test_who_cannot_stream_says_so_before_the_first_row():
    table = pd.DataFrame({"audio": [SPOKEN]})
    service = sl.Client("http://127.0.0.1:9", api_key="k", max_retries=0)
    whole = sl.system("whole", transcribe=lambda clip: "a", version="1")
    alone = streaming(planted(FakeClock()))
    for lab, how, told in (
        (whole, {"stream": True}, "has no function for transcribe_stream, only for transcribe"),
        (alone, {"stream": True, "hotwords": ["a"]}, "transcribe_stream takes no hotwords"),
    ):
        with pytest.raises(InvalidRequestError, match=told):
            lab.transcribe(SPOKEN, **how)
        with pytest.raises(InvalidRequestError, match=told):
            batch.transcribe(table, lab, progress=False, **how)
    with pytest.raises(InvalidRequestError, match="stream=True is for a system"):
        service.transcribe(SPOKEN, stream=True)
    for lab in (service, whole, alone):
        lab.close()


def test_a_stream_is_kept_with_its_times_and_replayed(tmp_path):
    clock, calls = FakeClock(), []

    def counted(clips, language=None):
        calls.append(1)
        yield from planted(clock)(clips)

    how = {"store": tmp_path, "transcribe": lambda clip: "whole"}
    with streaming(counted, clock, **how) as lab:
        first = lab.transcribe(SPOKEN, stream=True)
        assert lab.transcribe(SPOKEN).text == "whole"  # another call
    with streaming(counted, clock, mode="replay", **how) as lab:
        again = lab.transcribe(SPOKEN, stream=True)
        assert lab.transcribe(SPOKEN).partials is None
    assert len(calls) == 1
    assert again.partials.equals(first.partials)
    assert (again.first_partial_s, again.finalization_s) == (first.first_partial_s, first.finalization_s)
    told = pytest.raises(sl.ReplayMiss)
    with streaming(counted, clock, playback_rate=2, mode="replay", **how) as lab, told:
        lab.transcribe(SPOKEN, stream=True)


@pytest.mark.slow
def test_processes_stream_too():
    with streaming(counted_aloud, processes=1, piece_s=0.5) as lab:
        found = lab.transcribe(SPOKEN, stream=True)
    assert found.text == "4 pieces"
    assert found.partials["text"].tolist() == ["1", "2", "3", "4", "4 pieces"]
