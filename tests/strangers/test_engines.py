"""Engines and texts as they come: whatever an engine raises ends its own request, and ordinary texts are read."""

import asyncio
import math

import numpy as np
import orjson
import pytest

from speechlab.audio import encode
from speechlab.engines import EngineVoice, ReadHere, Recognition, RecognitionSegment, TranslationDelta
from speechlab.service import OnceAMinuteFilter, Provider, ServedEngine, run_service, voice_uuid
from support.clients import Http
from support.clock import eventually
from support.staged import staged_config

RECORDING = encode(np.zeros(1_600, np.float32), "wav", 16_000)
RAISES = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), StopIteration()]
RAISES += [MemoryError()]


class Wild:
    """An engine of every kind that raises what a test wants, or returns it."""

    model, sample_rate, languages = "wild", 24_000, ("en", "ja")
    voices = (EngineVoice("wild", ("en",), "Neutral", "raises"),)

    def __init__(self):
        self.error = None
        self.recognition = Recognition("", "en", 0.5, ())

    def synthesize(self, text, voice, *, temperature=None):
        if self.error is not None:
            raise self.error
        return iter([np.zeros(2_400, np.float32)])

    def translate(self, job):
        if self.error is not None:
            raise self.error
        yield TranslationDelta("ok")

    def recognize(self, samples, options):
        if self.error is not None:
            raise self.error
        return self.recognition


@pytest.fixture(scope="module")
def wild():
    engine = Wild()
    engines = (
        ServedEngine("wild", "synthesizer", lambda: engine, Provider("wild", heavy=False)),
        ServedEngine("ears", "recognizer", lambda: engine, heavy=False),
        ServedEngine("echo", "translator", lambda: engine, heavy=False),
    )
    with run_service(staged_config(*engines)) as service:
        yield engine, Http(service.base_url)


@pytest.mark.parametrize("error", RAISES, ids=lambda error: type(error).__name__)
def test_what_an_engine_raises_is_a_500_of_its_request(error, wild):
    engine, http = wild
    voice = voice_uuid("wild", "wild")
    engine.error = error
    replies = [
        http.speak(voice_id=voice, text="Hello.", format="wav"),
        http.speak(voice_id=voice, text="Hello.", format="wav", stream=True),
        http.recognize(RECORDING),
        http.translate(text="Hello.", source_lang="en", target_lang="ja"),
    ]
    engine.error = None
    assert [reply.status for reply in replies] == [500] * 4
    assert http.speak(voice_id=voice, text="Hello.", format="wav").status == 200


def test_a_confidence_is_a_number_and_a_segment_has_times(wild):
    engine, http = wild
    for confidence, reported in ((math.nan, 0.0), (math.inf, 1.0), (-1.0, 0.0), (0.5, 0.5)):
        engine.recognition = Recognition("ten cats", "en", confidence, ())
        assert orjson.loads(http.recognize(RECORDING).body)["confidence"] == reported
    for time in (math.nan, math.inf):
        engine.recognition = Recognition("ten", "en", 0.5, (RecognitionSegment(0.0, time, "ten"),))
        assert http.recognize(RECORDING, vad="segments").status == 500


def test_numbers_of_any_length_are_read():
    pytest.importorskip(
        "hibari", reason="needs the package hibari-tts"
    )  # which has words for 33 figures at most
    for unit in ("9,", "9", "12,", "9,9 ", "1,000,"):
        for count in (1, 40, 400):
            assert ReadHere().english(unit * count), unit


def test_refusals_are_logged_once_a_minute(wild, caplog):
    _, http = wild
    caplog.set_level("INFO", logger="speechlab.service")
    passing = OnceAMinuteFilter()
    stranger = Http(http.base_url, "sl:no-key-of-this-service")
    for _ in range(20):
        assert stranger.request("GET", "/tts/voices").status == 401
        assert http.speak(text=5).status == 400
    for _ in range(2):
        assert http.request("GET", "/tts/voices").status == 200

    def find_requests():
        return [record for record in caplog.records if record.msg == "request"]

    eventually(lambda: len(find_requests()) >= 42)  # a line is logged once its reply is on its way
    passed = [record.fields["status"] for record in find_requests() if passing.filter(record)]
    assert sorted(status for status in passed if status != 401) == [200, 200, 400]
    assert passed.count(401) <= 1  # none after another request without a key in the same minute
