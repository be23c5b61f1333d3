"""Readiness, metrics and idle models."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from speechlab.engines import EngineVoice, TranslationDelta
from speechlab.errors import ConfigurationError, ModelError
from speechlab.service import Database, Ledger, Provider, ServedEngine, run_service
from support.clients import KEY, Http
from support.clock import eventually
from support.staged import CANARY, NO_ENGINES, staged_config


@pytest.mark.slow
def test_ready_when_an_engine_answers(live):
    # Weights are joined and hashed the first time.
    assert eventually(lambda: live.request("GET", "/readyz").status == 200, 120)
    reply = live.request("GET", "/readyz")
    assert reply.status == 200
    assert reply.json()["status"] == "ready"
    assert reply.json()["engine"] in {"hibari", "openjtalk"}


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


@pytest.mark.parametrize("fault", [None, KeyError("secret"), OSError("/home/x/secret")])
def test_an_engine_that_does_not_work_is_not_ready(error_body, fault):
    engine = ServedEngine("mute", "synthesizer", lambda: Mute(fault), Provider("mute", heavy=False))
    with run_service(staged_config(engine)) as service:
        http = Http(service.base_url)
        reply = http.request("GET", "/readyz")
        error_body(reply, 503, "ErrOverloaded")
        assert reply.headers["retry-after"]
        assert b"secret" not in reply.body
        assert http.request("GET", "/healthz").status == 200


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


def test_a_model_that_does_not_exist_is_not_ready(error_body, tmp_path):
    engine = Weighty(ModelError(f"there is no file {tmp_path}"))
    with run_service(
        staged_config(ServedEngine("weighty", "translator", lambda: engine, heavy=True))
    ) as service:
        reply = Http(service.base_url).request("GET", "/readyz")
        told = error_body(reply, 503, "ErrOverloaded")["error"]
        assert "weighty" in told
        assert str(tmp_path) not in told
        assert Http(service.base_url).request("GET", "/readyz", key=None).status == 503


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
            found = read_metrics(http.request("GET", "/metrics").body.decode())
            assert found['speechlab_engine_created{engine="weighty"}'] == 1


@pytest.mark.slow
def test_what_is_preloaded_has_its_processes_too(stage):
    """The first recording would wait for half a second, and a text in Japanese for longer."""
    for settings, decoders in (({"preload": True, "unload_idle_s": 0.2}, 1), ({}, 0)):
        with stage(**settings) as service:
            assert eventually(lambda http=service.http: http.request("GET", "/readyz").status == 200)
            time.sleep(0.5)  # longer than idle processes are kept
            found = read_metrics(service.http.request("GET", "/metrics").body.decode())
            assert found["speechlab_decoders"] == decoders
            assert found["speechlab_readers"] == 0  # these voices read for themselves


@pytest.mark.slow
def test_listing_voices_makes_no_idle_engine_again(caplog):
    made = []

    def make() -> Any:
        made.append(Large())
        return made[-1]

    caplog.set_level("INFO", logger="speechlab")
    with run_service(
        staged_config(ServedEngine("large", "synthesizer", make, Provider("large")), unload_idle_s=0.4)
    ) as service:
        http = Http(service.base_url)
        listed = http.request("GET", "/tts/voices").json()
        time.sleep(1.2)
        assert not any(record.getMessage() == "idle engine unloaded" for record in caplog.records)
        fields = {"voice_id": listed["voices"][0]["id"], "text": "Hi.", "format": "wav"}
        assert http.speak(**fields).status == 200
        assert eventually(lambda: made[0].closed)
        assert http.request("GET", "/tts/voices").json() == listed
        assert len(made) == 1
        assert http.speak(**fields).status == 200
        assert len(made) == 2


def test_readiness_loads_no_large_engine_and_needs_one(error_body):
    engine = Weighty()

    with run_service(staged_config()) as service:
        error_body(Http(service.base_url).request("GET", "/readyz"), 503, "ErrOverloaded")
    with run_service(
        staged_config(ServedEngine("large", "translator", lambda: engine, heavy=True))
    ) as service:
        reply = Http(service.base_url).request("GET", "/readyz")
        assert (reply.status, reply.json()["engine"]) == (200, None)
        assert engine.done == ["found"]


@pytest.mark.slow
def test_a_data_folder_that_fails_is_not_ready(stage, error_body, tmp_path):
    with stage(data_dir=tmp_path) as service:
        assert service.http.request("GET", "/readyz").status == 200
        database = Database(tmp_path)
        database.write("DROP TABLE keys")
        database.close()
        time.sleep(3.1)  # the answer is remembered for three seconds
        reply = service.http.request("GET", "/readyz")
        error_body(reply, 503, "ErrOverloaded")
        assert str(tmp_path) not in reply.body.decode()


SAMPLE = re.compile(r'([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*\})? ([0-9.e+-]+|\+Inf)')


class Samples(dict):
    """Samples by name and labels, in whatever order the labels are."""

    def _sorted(self, name: str) -> str:
        start, _, labels = name.partition("{")
        return start + str(sorted(re.findall(r'[a-z_]+="(?:[^"\\]|\\.)*"', labels)))

    def __setitem__(self, name: str, value: float) -> None:
        super().__setitem__(self._sorted(name), value)

    def __getitem__(self, name: str) -> float:
        return super().__getitem__(self._sorted(name))


def read_metrics(text: str) -> Samples:
    found = Samples()
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP [a-z_]+ .+|TYPE [a-z_]+ (counter|gauge|histogram))", line)
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        found[match[1] + (match[2] or "")] = float(match[3])
    return found


def kept_rows(folder):
    with contextlib.closing(Database(folder)) as database:
        ledger = Ledger(database)
        assert eventually(ledger.list_rows)
        return ledger.list_rows()


def test_metrics_count_and_name_keys_by_their_id(stage, tmp_path):
    with stage(data_dir=tmp_path, key_requests_per_minute=4, operator_keys=(KEY,)) as service:
        http, key = service.http, service.http.key
        assert http.speak(voice_id=service.voice("plain"), text=CANARY, format="wav").status == 200
        assert http.speak(voice_id=service.voice("broken"), text="Hi.", format="wav").status == 500
        assert http.translate(text="Hi.", source_lang="en", target_lang="ja").status == 200
        assert http.speak(voice_id=service.voice("plain"), text="", format="wav").status == 400
        assert http.speak(voice_id=service.voice("plain"), text="Hi.", format="wav").status == 429
        http.request("GET", f"/{key}")
        http.request("PROPFIND", "/tts")
        reply = http.request("GET", "/metrics")
        (owner,) = {row.key_id for row in kept_rows(tmp_path)}
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = reply.body.decode()
    assert key not in text
    assert key.removeprefix("sl:") not in text
    assert CANARY not in text
    found = read_metrics(text)
    assert found['speechlab_requests_total{route="/tts",method="POST",status="200"}'] == 1
    assert found['speechlab_requests_total{route="/tts",method="POST",status="429"}'] == 1
    assert found['speechlab_requests_total{route="/tts",method="(other)",status="405"}'] == 1
    assert found['speechlab_requests_total{route="(other)",method="GET",status="404"}'] == 1
    assert found['speechlab_refused_total{scope="key"}'] == 1
    whose = f'key="{owner}",operation="tts",provider="staged"'
    assert found[f'speechlab_operations_total{{{whose},transport="http",status="completed"}}'] == 1
    assert found[f'speechlab_operations_total{{{whose},transport="http",status="backend_error"}}'] == 1
    assert found[f"speechlab_characters_total{{{whose}}}"] == len(CANARY) + 3
    assert found['speechlab_request_seconds_bucket{route="/tts",le="+Inf"}'] == 5
    assert found['speechlab_request_seconds_count{route="/tts"}'] == 5
    assert found['speechlab_engine_requests{engine="staged"}'] == 0
    assert found["process_resident_memory_bytes"] > 1e6
    assert found['speechlab_engine_waiting{engine="staged"}'] == found["speechlab_websockets_open"] == 0
    assert found['speechlab_first_audio_seconds_count{engine="staged"}'] == 1
    assert found["speechlab_requests_running"] == 0
    assert found["speechlab_ledger_lost_rows_total"] == 0
    buckets = [
        value
        for name, value in sorted(
            found.items(), key=lambda item: float((re.findall(r'le="([^"]+)"', item[0]) or ["0"])[0])
        )
        if name.startswith("speechlab_request_seconds_bucket") and 'route="/tts"' in name
    ]
    assert buckets == sorted(buckets)


@dataclass
class Large(Mute):
    """A large engine that notes when it is let go."""

    model: str = "large"
    closed: list[float] = field(default_factory=list)

    def synthesize(self, text: str, voice: str, *, temperature: float | None = None) -> Any:
        import numpy as np

        return iter([np.zeros(2400, dtype=np.float32)])

    def close(self) -> None:
        self.closed.append(time.monotonic())


@pytest.mark.slow
def test_idle_models_are_let_go_though_looked_at():
    from speechlab.service import voice_uuid

    large, light = Large(), Large()
    engines = (
        ServedEngine("large", "synthesizer", lambda: large, Provider("large")),
        ServedEngine("light", "synthesizer", lambda: light, Provider("light", heavy=False)),
    )
    with run_service(staged_config(*engines, unload_idle_s=0.8)) as service:
        http = Http(service.base_url)
        fields = {"voice_id": voice_uuid("large", "one"), "text": "Hi.", "format": "wav"}
        assert http.speak(**fields).status == 200
        used = time.monotonic()
        while not large.closed and time.monotonic() - used < 10:
            for path in ("/healthz", "/readyz", "/metrics"):
                assert http.request("GET", path).status == 200
            time.sleep(0.05)
        assert large.closed
        assert large.closed[0] - used >= 0.7
        found = read_metrics(http.request("GET", "/metrics").body.decode())
        assert found['speechlab_engine_created{engine="large"}'] == 0
        assert http.speak(**fields).status == 200
        assert light.closed == []
