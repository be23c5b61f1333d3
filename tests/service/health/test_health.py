"""Readiness, metrics and idle models."""

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from speechlab.engines import EngineVoice, TranslationDelta
from speechlab.errors import ConfigurationError, ModelError
from speechlab.service import Database, Provider, ServedEngine, run_service, voice_uuid
from support.clients import KEY, Http
from support.clock import eventually
from support.staged import CANARY, NO_ENGINES, staged_config, used


def test_readiness_asks_once_in_a_while_and_only_light_engines(stage):
    with stage(operator_keys=(KEY,)) as service:
        for _ in range(5):
            assert service.http.request("GET", "/readyz").json()["engine"] == "staged"
        assert len(service.speaker.calls) == 1
        assert service.speaker.closed == 1
        assert service.q.calls == []


@dataclass
class Mute:
    """A light engine that fails in some way, or answers too late."""

    fault: Exception | None = None
    sample_rate: int = 24_000
    model: str = "mute"
    voices: tuple[EngineVoice, ...] = (EngineVoice("one", ("en",), "Neutral", "mute"),)

    def synthesize(self, text: str, voice: str, *, temperature: float | None = None) -> Any:
        if self.fault is not None:
            raise self.fault
        return iter(())


@pytest.mark.parametrize("fault", [None, OSError("/home/x/secret")])
def test_an_engine_that_does_not_work_is_not_ready(error_body, fault):
    engine = ServedEngine("mute", "synthesizer", lambda: Mute(fault), Provider("mute", heavy=False))
    with run_service(staged_config(engine)) as service:
        http = Http(service.base_url)
        reply = http.request("GET", "/readyz")
        error_body(reply, 503, "ErrOverloaded")
        assert reply.headers["retry-after"]
        assert b"secret" not in reply.body
        assert http.request("GET", "/healthz").status == 200


def test_a_data_folder_that_fails_is_not_ready(stage, error_body, tmp_path):
    with stage(data_dir=tmp_path) as service:
        with contextlib.closing(Database(tmp_path)) as database:
            database.write("DROP TABLE keys")
        reply = service.http.request("GET", "/readyz")
        error_body(reply, 503, "ErrOverloaded")
        assert str(tmp_path) not in reply.body.decode()


class Weighty:
    """A large engine whose weights may be missing."""

    model, languages = "weighty", ("ja", "en")

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.done: list[str] = []

    def find_model(self) -> None:
        self.done.append("found")
        if self.fault is not None:
            raise self.fault

    def load(self) -> None:
        self.done.append("loaded")
        self.find_model()

    def translate(self, job: Any) -> Any:
        self.done.append("translated")
        yield TranslationDelta("x", 1, 1)


@pytest.mark.parametrize("options", [{"model": "/nowhere/ct2"}, {"device": "cuda:9"}])
def test_a_model_or_device_that_is_not_there_stops_the_start(options):
    config = staged_config(engines=NO_ENGINES | {"whisper": options}, recognizer="whisper")
    reason = "'whisper' cannot be used: there is no model" if "model" in options else "no device 'cuda:9'"
    with pytest.raises(ConfigurationError, match=reason), run_service(config):
        pass


@pytest.mark.slow
def test_preload_makes_models_warm_before_it_is_ready(error_body):
    good, bad = Weighty(), Weighty(ModelError("the hash is wrong"))
    for engine, status in ((good, 200), (bad, 503)):
        entry = ServedEngine("weighty", "translator", lambda engine=engine: engine, heavy=True)
        with run_service(staged_config(entry, preload=True, unload_idle_s=0.2)) as service:
            http = Http(service.base_url)
            assert eventually(
                lambda http=http: b"being loaded" not in http.request("GET", "/readyz").body, 30
            )
            assert http.request("GET", "/readyz").status == status
            time.sleep(0.5)
            assert engine.done[:2] == ["loaded", "found"]
            assert ("translated" in engine.done) == (status == 200)
            found = read_metrics(http)
            assert found["speechlab_engine_created weighty"] == 1


@pytest.mark.slow
def test_what_is_preloaded_has_its_decoder_too(stage):
    with stage(preload=True) as service:
        assert eventually(lambda: read_metrics(service.http)["speechlab_decoders"] == 1)


def test_readiness_loads_no_large_engine_and_needs_one(error_body, tmp_path):
    engine = Weighty()
    with run_service(staged_config()) as service:
        error_body(Http(service.base_url).request("GET", "/readyz"), 503, "ErrOverloaded")
    config = staged_config(ServedEngine("large", "translator", lambda: engine, heavy=True))
    with run_service(config) as service:
        reply = Http(service.base_url).request("GET", "/readyz")
        assert (reply.status, reply.json()["engine"]) == (200, None)
        assert engine.done == ["found"]
    engine.fault = ModelError(f"there is no file {tmp_path}")
    with run_service(config) as service:
        reply = Http(service.base_url).request("GET", "/readyz")
        told = error_body(reply, 503, "ErrOverloaded")["error"]
        assert ("large" in told, str(tmp_path) in told) == (True, False)


def read_metrics(http: Http) -> dict[str, float]:
    """Samples by their name, and the values of their labels in the order of the names of these."""
    reply = http.request("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = [each for one in text_string_to_metric_families(reply.body.decode()) for each in one.samples]
    return {
        " ".join([each.name, *(value for _, value in sorted(each.labels.items()))]): each.value
        for each in samples
    }


def test_metrics_count_and_name_keys_by_their_id(stage, tmp_path):
    with stage(data_dir=tmp_path, key_requests_per_minute=4, operator_keys=(KEY,)) as service:
        http, key = service.http, service.http.key
        assert service.speak(text=CANARY).status == service.translate().status == 200
        assert service.speak("broken").status == 500
        assert service.speak(text="").status == 400
        assert service.speak().status == 429
        http.request("GET", f"/{key}")
        http.request("PROPFIND", "/tts")
        found = read_metrics(http)
        text = str(found)
    (owner,) = {row.key_id for row in used(tmp_path)}
    assert [secret for secret in (key, key.removeprefix("sl:"), CANARY) if secret in text] == []
    expected = {
        "speechlab_requests_total POST /tts 200": 1,
        "speechlab_requests_total (other) /tts 405": 1,
        "speechlab_requests_total GET (other) 404": 1,
        "speechlab_refused_total key": 1,
        f"speechlab_operations_total {owner} tts staged completed http": 1,
        f"speechlab_operations_total {owner} tts staged backend_error http": 1,
        f"speechlab_characters_total {owner} tts staged": len(CANARY) + 3,
        "speechlab_request_seconds_count /tts": 5,
        "speechlab_engine_requests staged": 0,
        "speechlab_first_audio_seconds_count staged": 1,
        "speechlab_requests_running": 0,
    }
    assert {name: found.get(name) for name in expected} == expected


@dataclass
class Large(Mute):
    """A large engine that notes when it is let go."""

    model: str = "large"
    closed: list[float] = field(default_factory=list)

    def synthesize(self, text: str, voice: str, *, temperature: float | None = None) -> Any:
        if text == "Long.":
            time.sleep(1.2)
        assert not self.closed  # one that is used is kept
        return iter([np.zeros(2400, dtype=np.float32)])

    def close(self) -> None:
        self.closed.append(time.monotonic())


@pytest.mark.slow
def test_idle_models_are_let_go_though_looked_at():
    made, light = [], Large()

    def make() -> Large:
        made.append(Large())
        return made[-1]

    engines = (
        ServedEngine("large", "synthesizer", make, Provider("large")),
        ServedEngine("light", "synthesizer", lambda: light, Provider("light", heavy=False)),
    )
    with run_service(staged_config(*engines, unload_idle_s=0.8)) as service:
        http = Http(service.base_url)
        fields = {"voice_id": voice_uuid("large", "one"), "text": "Long.", "format": "wav"}
        listed = http.request("GET", "/tts/voices").json()
        time.sleep(1.2)
        assert not made[0].closed  # it was never used
        assert http.speak(**fields).status == 200
        used_at = time.monotonic()
        while not made[0].closed and time.monotonic() - used_at < 10:
            for path in ("/healthz", "/readyz", "/metrics"):
                assert http.request("GET", path).status == 200
            time.sleep(0.05)
        assert made[0].closed[0] - used_at >= 0.7
        assert http.request("GET", "/tts/voices").json() == listed
        assert read_metrics(http)["speechlab_engine_created large"] == 0
        assert len(made) == 1
        assert http.speak(**fields | {"text": "Hi."}).status == 200
        assert (len(made), light.closed) == (2, [])
