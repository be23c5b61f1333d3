"""How engines are shared: between keys, and between the requests of one key."""

import asyncio
import base64
import contextlib
import statistics
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.audio import encode
from speechlab.engines import EngineVoice, Recognition, TranslationDelta, checkpoint
from speechlab.service import EngineUse, FairTurns, Places, Provider, ServedEngine, run_service, voice_uuid
from support.clients import KEY, Http, talking
from support.clock import eventually
from support.staged import staged_config

GREEDY = "sl:the-key-of-somebody-greedy"
LONG, SHORT = "A sentence. " * 40, "A short text."


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def worked(
    jobs: dict[str, list[list[float]]], *, start_s: dict[str, float]
) -> list[tuple[str, float, float]]:
    """Requests as lists of pieces, by key, at one engine: who had it, from when to when. Time is made of pieces."""
    clock, history = Clock(), []

    async def main() -> None:
        turns = FairTurns(clock=clock)

        async def request(owner: str, pieces: list[float]) -> None:
            claim = EngineUse(owner)
            while clock.now < start_s[owner]:  # noqa: ASYNC110 - the test's own time
                await asyncio.sleep(0)
            for piece in pieces:
                await turns.wait_for_turn(claim)
                await asyncio.sleep(0)
                began, clock.now = clock.now, clock.now + piece
                history.append((owner, began, clock.now))
                turns.end_turn(claim)

        async def idle() -> None:
            while True:  # time passes while nobody works, too
                await asyncio.sleep(0)
                clock.now += 0.0 if turns._running or turns._waiting else 0.5

        passing = asyncio.create_task(idle())
        await asyncio.gather(*(request(owner, job) for owner, all_ in jobs.items() for job in all_))
        passing.cancel()

    asyncio.run(main())
    return history


pieces = st.lists(st.floats(0.1, 3.0), min_size=1, max_size=12)


@settings(max_examples=40)
@given(
    jobs=st.fixed_dictionaries({name: st.lists(pieces, min_size=1, max_size=5) for name in "abc"}),
    start_s=st.fixed_dictionaries({name: st.floats(0, 10) for name in "abc"}),
)
def test_two_keys_with_work_get_equal_time(jobs, start_s):
    history = worked(jobs, start_s=start_s)
    longest = max(piece for all_ in jobs.values() for job in all_ for piece in job)
    ends = {owner: max(end for who, _, end in history if who == owner) for owner in jobs}
    begins = {owner: min(begin for who, begin, _ in history if who == owner) for owner in jobs}
    for one, other in ("ab", "bc", "ca"):
        first, last = max(begins[one], begins[other]), min(ends[one], ends[other])
        had = Counter({one: 0.0, other: 0.0})
        for who, begin, end in history:
            if begin >= first and end <= last:
                had[who] += end - begin
        assert abs(had[one] - had[other]) <= 2 * longest + 0.01
    assert sum(end - begin for _, begin, end in history) == pytest.approx(
        sum(piece for all_ in jobs.values() for job in all_ for piece in job)
    )


def test_quiet_time_is_neither_saved_up_nor_paid_for():
    history = worked({"a": [[1.0] * 40], "b": [[1.0] * 10]}, start_s={"a": 0.0, "b": 20.0})
    turns = [who for who, begin, _ in history if begin >= 21.0]
    assert turns[:16].count("b") in {7, 8, 9}


def test_places_are_of_each_key_and_the_shortest_waits_least():
    async def main() -> list[str]:
        places, clock, order = Places(1, clock=Clock()), Clock(), []
        places._clock = clock
        first = EngineUse("a", 5.0)
        await places.wait_for_place(first)
        await places.wait_for_place(EngineUse("b", 100.0))

        async def wait(name: str, size_s: float) -> None:
            claim = EngineUse("a", size_s)
            await places.wait_for_place(claim)
            order.append(name)
            places.release_place(claim)

        old = asyncio.create_task(wait("old and long", 50.0))
        await asyncio.sleep(0)
        clock.now = 30.0
        tasks = [asyncio.create_task(wait(f"{size:g}", size)) for size in (40.0, 10.0, 30.0)]
        await asyncio.sleep(0)
        gone = asyncio.create_task(wait("gone", 1.0))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        places.release_place(first)
        await asyncio.gather(old, *tasks)
        return order

    assert asyncio.run(main()) == ["10", "old and long", "30", "40"]


@dataclass
class Steady:
    """A voice that takes the same time for each sentence, and keeps whose texts it spoke, piece by piece."""

    spoken: list[str] = field(default_factory=list)
    model: str = "steady"
    sample_rate: int = 24_000
    voices: tuple[EngineVoice, ...] = (EngineVoice("one", ("en",), "Neutral", "steady"),)

    def synthesize(self, text: str, voice: str, *, temperature: float | None = None) -> Any:
        for _ in range(max(1, text.count("."))):
            self.spoken.append("long" if text == LONG else "short")
            time.sleep(0.05)
            yield np.full(12_000, 0.1, dtype=np.float32)


VOICE = voice_uuid("steady", "one")


@contextlib.contextmanager
def greed(client: Http, count: int):
    """One key that asks for long texts again and again, more of them than the queue holds."""
    over, statuses = threading.Event(), Counter[int]()

    def ask() -> None:
        while not over.is_set():
            statuses[client.speak(voice_id=VOICE, text=LONG, format="pcm").status] += 1
            over.wait(0.05)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        assert eventually(lambda: statuses[429] > 3, 20)  # the queue is full
        yield statuses
    finally:
        over.set()
    for thread in threads:
        thread.join(0.01)  # the end of the service ends what they wait for


@pytest.mark.slow
def test_s16_s152_a_greedy_key_does_not_keep_another_out():
    """Counted in pieces of eight texts of forty each: in turn, and not after any of these."""
    voice, waited, between = Steady(), [], []
    engine = ServedEngine("steady", "synthesizer", lambda: voice, Provider("steady", heavy=False))
    config = staged_config(engine, api_keys=(KEY, GREEDY), queue_limit=8, drain_s=0)
    with (
        run_service(config) as service,
        greed(greedy := Http(service.base_url, GREEDY), 16),
    ):
        client = Http(service.base_url)
        for _ in range(5):
            asked = len(voice.spoken)
            assert client.speak(voice_id=VOICE, text=SHORT * 3, format="pcm").status == 200
            pieces = voice.spoken[asked:]
            first, second, third = (place for place, whose in enumerate(pieces) if whose == "short")
            waited.append(first)
            between += [second - first, third - second]
        # Neither does it in a stream, nor on a WebSocket.
        assert client.speak(voice_id=VOICE, text=SHORT, format="wav", stream=True).status == 200
        with talking(client) as talk:
            talk.configure(voice_id=VOICE, format="pcm")
            assert talk.speak(SHORT)[-1]["type"] == "tts.usage"
        with talking(greedy) as talk:
            talk.configure(voice_id=VOICE, format="pcm")
            assert talk.refusal(LONG)["code"] == "backend_unavailable"
    assert statistics.median(waited) < 20, waited  # a busy machine takes a while to bring a request there
    assert statistics.median(between) <= 2, between  # less where the other has nothing ready
    assert max(between) <= 4, between


@dataclass
class Windows:
    """A recognizer and translator in one that works in steps, between which it can be interrupted."""

    model: str = "windows"
    languages: tuple[str, ...] = ("ja", "en", "zh")
    steps: int = 0
    running: int = 0
    most: int = 0

    def _work(self, count: int) -> None:
        for _ in range(count):
            checkpoint()
            self.running += 1
            self.most = max(self.most, self.running)
            time.sleep(0.03)
            self.running -= 1
            self.steps += 1

    def recognize(self, samples: np.ndarray, options: Any) -> Recognition:
        self._work(max(1, len(samples) // 16_000))
        return Recognition("heard", "en", 0.5, ())

    def translate(self, job: Any) -> Any:
        self._work(max(1, job.text.count(".")))
        yield TranslationDelta(job.text)
        yield TranslationDelta("", 1, 1)


@pytest.fixture
def windows():
    engine = Windows()
    both = (
        ServedEngine(name, kind, lambda: engine, heavy=True)
        for name, kind in (("ears", "recognizer"), ("echo", "translator"))
    )
    config = staged_config(*both, api_keys=(KEY, GREEDY), drain_s=0)
    with run_service(config) as service:
        yield engine, Http(service.base_url), Http(service.base_url, GREEDY)


def recording(seconds: int) -> bytes:
    return encode(np.zeros(16_000 * seconds, dtype=np.float32), "wav", 16_000)


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["asr", "translate"])
def test_long_work_of_one_key_lets_the_short_of_another_in(windows, operation):
    """Counted in steps: the long work has a hundred, and the short one each."""
    engine, client, greedy = windows

    def ask(asking: Http, *, much: bool) -> None:
        count = 100 if much else 1
        fields = {"text": "One. " * count, "source_lang": "en", "target_lang": "ja"}
        reply = asking.recognize(recording(count)) if operation == "asr" else asking.translate(**fields)
        assert reply.status == 200

    with ThreadPoolExecutor(1) as pool:
        longest = pool.submit(ask, greedy, much=True)
        assert eventually(lambda: engine.steps > 2)
        taken = []
        for _ in range(3):
            before = engine.steps
            ask(client, much=False)
            taken.append(engine.steps - before)
        longest.result()
    assert engine.steps == 100 + len(taken)
    assert statistics.median(taken) < 20, taken  # two, and what a busy machine takes to bring a request there


@pytest.mark.slow
def test_heavy_engines_work_one_at_a_time(windows):
    engine, client, greedy = windows
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(client.recognize, recording(30))
        assert eventually(lambda: engine.steps > 2)
        assert greedy.translate(text="One. " * 5, source_lang="en", target_lang="ja").status == 200
        assert heard.result().status == 200
    assert engine.most == 1


@pytest.mark.slow
def test_s50_work_of_a_client_that_left_ends_at_a_checkpoint(windows):
    engine, client, greedy = windows
    fields = {"audio": base64.b64encode(recording(100)).decode()}
    with greedy.raw_json("/asr/srt/audio_llm", fields):
        assert eventually(lambda: engine.steps > 2)
    time.sleep(0.5)
    stopped = engine.steps
    assert stopped < 50
    assert client.recognize(recording(1)).status == 200
    assert engine.steps == stopped + 1
