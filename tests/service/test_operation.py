"""Operation: what is open, readiness, metrics, idle models, slow clients, and the kept descriptions."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route, WebSocketRoute

from speechlab.contract import ERRORS, REALTIME_PATH, SERVICE_MESSAGES, RealtimeCode
from speechlab.engines import EngineVoice
from speechlab.service import Database, ServedEngine, ServiceConfig, create_app, running
from speechlab.service._engines.lanes import EngineLane, Threads
from speechlab.service._providers import Provider

ROOT = Path(__file__).parents[2]
APP = create_app(ServiceConfig(api_keys=("sl:test-key-of-the-suite",), engines={}))
ROUTES = [
    (method, route.path)
    for route in APP.routes
    if isinstance(route, Route)
    for method in sorted(route.methods - {"HEAD"})
]


def test_all_routes_are_known():
    assert {path for _, path in ROUTES} >= {"/tts", "/tts/voices", "/healthz", "/readyz", "/metrics"}
    assert all(isinstance(route, Route | WebSocketRoute) for route in APP.routes)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_s1_every_route_but_liveness_is_closed_without_a_key(live, error_body, method, path):
    reply = live.request(method, path, b"{}" if method == "POST" else None, key=None)
    if path == "/healthz":
        assert reply.status == 200
    else:
        error_body(reply, 401, "ErrAuthenticationFailed")


def test_ready_when_an_engine_answers(live):
    reply = live.request("GET", "/readyz")
    assert reply.status == 200
    assert reply.json()["status"] == "ready"
    assert reply.json()["engine"] in {"hibari", "openjtalk"}


def test_readiness_asks_once_in_a_while_and_only_light_engines(stage):
    with stage() as service:
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

    def synthesise(self, text: str, voice: str, *, temperature: float | None = None) -> Any:
        if self.fault is not None:
            raise self.fault
        return iter(())


def only(*engines: ServedEngine, **settings: Any) -> ServiceConfig:
    off = {name: {"enabled": False} for name in ("kokoro", "q", "hibari", "openjtalk")}
    return ServiceConfig(
        port=0,
        api_keys=("sl:test-key-of-the-suite",),
        engines=off,
        recogniser="",
        translator="",
        extra_engines=engines,
        **settings,
    )


@pytest.mark.parametrize("fault", [None, KeyError("secret"), OSError("/home/x/secret")])
def test_an_engine_that_does_not_work_is_not_ready(tools, error_body, fault):
    engine = ServedEngine("mute", "synthesiser", lambda: Mute(fault), Provider("mute", heavy=False))
    with running(only(engine)) as service:
        http = tools.http(service.base_url)
        reply = http.request("GET", "/readyz")
        error_body(reply, 503, "ErrOverloaded")
        assert reply.headers["retry-after"]
        assert b"secret" not in reply.body
        assert http.request("GET", "/healthz").status == 200


def test_no_engine_is_not_ready_and_a_large_one_is_not_loaded_for_it(tools, error_body):
    def explode() -> Any:
        raise AssertionError("a large model must not be loaded for a probe")

    with running(only()) as service:
        error_body(tools.http(service.base_url).request("GET", "/readyz"), 503, "ErrOverloaded")
    with running(only(ServedEngine("large", "translator", explode, heavy=True))) as service:
        reply = tools.http(service.base_url).request("GET", "/readyz")
        assert (reply.status, reply.json()["engine"]) == (200, None)


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


def read_metrics(text: str) -> dict[str, float]:
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP [a-z_]+ .+|TYPE [a-z_]+ (counter|gauge|histogram))", line)
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        found[match[1] + (match[2] or "")] = float(match[3])
    return found


def test_metrics_count_and_name_keys_by_their_id(stage, tools, tmp_path):
    with stage(data_dir=tmp_path, key_requests_per_minute=4) as service:
        http, key = service.http, service.http.key
        assert http.speak(voice_id=service.voice("plain"), text=tools.canary, format="wav").status == 200
        assert http.speak(voice_id=service.voice("broken"), text="Hi.", format="wav").status == 500
        assert http.translate(text="Hi.", source_lang="en", target_lang="ja").status == 200
        assert http.speak(voice_id=service.voice("plain"), text="", format="wav").status == 400
        assert http.speak(voice_id=service.voice("plain"), text="Hi.", format="wav").status == 429
        http.request("GET", f"/{key}")
        http.request("PROPFIND", "/tts")
        reply = http.request("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = reply.body.decode()
    assert key not in text
    assert key.removeprefix("sl:") not in text
    assert tools.canary not in text
    found = read_metrics(text)
    assert found['speechlab_requests_total{route="/tts",method="POST",status="200"}'] == 1
    assert found['speechlab_requests_total{route="/tts",method="POST",status="429"}'] == 1
    assert found['speechlab_requests_total{route="/tts",method="(other)",status="405"}'] == 1
    assert found['speechlab_requests_total{route="(other)",method="GET",status="404"}'] == 1
    assert found['speechlab_refused_total{scope="key"}'] == 1
    whose = 'operation="tts",provider="staged",key="key-1"'
    assert found[f'speechlab_operations_total{{{whose},transport="http",status="completed"}}'] == 1
    assert found[f'speechlab_operations_total{{{whose},transport="http",status="backend_error"}}'] == 1
    assert found[f"speechlab_characters_total{{{whose}}}"] == len(tools.canary) + 3
    assert found['speechlab_request_seconds_bucket{route="/tts",le="+Inf"}'] == 5
    assert found['speechlab_request_seconds_count{route="/tts"}'] == 5
    assert found['speechlab_engine_requests{engine="staged"}'] == 0
    assert found["process_resident_memory_bytes"] > 1e6
    assert found["speechlab_ledger_lost_rows_total"] == 0
    buckets = [
        value
        for name, value in found.items()
        if name.startswith('speechlab_request_seconds_bucket{route="/tts"')
    ]
    assert buckets == sorted(buckets)


@dataclass
class Large(Mute):
    """A large engine that notes when it is let go."""

    model: str = "large"
    closed: list[float] = field(default_factory=list)

    def synthesise(self, text: str, voice: str, *, temperature: float | None = None) -> Any:
        import numpy as np

        return iter([np.zeros(2400, dtype=np.float32)])

    def close(self) -> None:
        self.closed.append(time.monotonic())


def test_idle_models_are_let_go_and_looking_does_not_count_as_use(tools):
    from speechlab.service import voice_uuid

    large, light = Large(), Large()
    engines = (
        ServedEngine("large", "synthesiser", lambda: large, Provider("large")),
        ServedEngine("light", "synthesiser", lambda: light, Provider("light", heavy=False)),
    )
    with running(only(*engines, unload_idle_s=0.8)) as service:
        http = tools.http(service.base_url)
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


def test_an_engine_in_use_is_not_let_go():
    async def main() -> None:
        engine = Large()
        lane = EngineLane(
            ServedEngine("one", "synthesiser", lambda: engine, heavy=True),
            Threads(),
            asyncio.Semaphore(1),
            concurrency=1,
            queue_limit=2,
        )
        assert not await lane.unload(0)
        lane.engine()
        async with lane.admit("tts"):
            assert not await lane.unload(0)
        assert not await lane.unload(60)
        assert await lane.unload(0)
        assert not lane.created
        assert len(engine.closed) == 1
        assert not await lane.unload(0)

    asyncio.run(main())


def sent_slowly(address: tuple[str, int], pieces: list[bytes], pause_s: float) -> tuple[bytes, float]:
    """Send pieces with pauses until the other side ends; what came back, and after how many seconds."""
    begun = time.monotonic()
    with socket.create_connection(address, timeout=20) as connection:
        connection.settimeout(pause_s)
        came = b""
        for piece in pieces:
            try:
                connection.sendall(piece)
                if not (data := connection.recv(65_536)):
                    break
                came += data
            except TimeoutError:
                continue
            except OSError:
                break
        connection.settimeout(20)
        try:
            while data := connection.recv(65_536):
                came += data
        except OSError:
            pass
        return came, time.monotonic() - begun


@pytest.fixture(scope="module")
def hasty(stage):
    with stage(header_timeout_s=0.6, body_timeout_s=0.6) as service:
        yield service


def test_a_head_that_comes_too_slowly_is_408(hasty):
    head = b"GET /tts/voices HTTP/1.1\r\n" + b"X-A: b\r\n" * 200
    came, seconds = sent_slowly(hasty.http.address, [head[i : i + 1] for i in range(1000)], 0.02)
    assert came.startswith(b"HTTP/1.1 408 ")
    body = json.loads(came.partition(b"\r\n\r\n")[2])
    assert (body["name"], body["code"]) == ("ErrRequestTimeout", ERRORS["ErrRequestTimeout"].code)
    assert seconds < 15  # of twenty


@pytest.fixture(scope="module")
def terse(stage):
    with stage(header_bytes=4096) as service:
        yield service


LONG_HEADS = {
    "one header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 5000 + b"\r\n\r\n",
    "a header without end": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 5000,
    "many headers": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 1200 + b"\r\n",
    "a URL": b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a URL without end": b"GET /" + b"a" * 5000,
    "headers after the body": (
        b"POST /tts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + b"KEY" + b"\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + b"X-A: b\r\n" * 1200
    ),
}


@pytest.mark.parametrize("head", LONG_HEADS.values(), ids=LONG_HEADS)
def test_a_head_that_is_too_long_is_431(terse, tools, head):
    with socket.create_connection(terse.http.address, timeout=20) as connection:
        connection.sendall(head.replace(b"KEY", tools.key.encode()))
        came = tools.read_all(connection)
    assert came.startswith(b"HTTP/1.1 431 ")
    body = json.loads(came.partition(b"\r\n\r\n")[2])
    assert (body["name"], body["code"]) == ("ErrHeadTooLarge", ERRORS["ErrHeadTooLarge"].code)
    assert "4,096" in body["error"]


def test_s115_a_head_that_is_too_long_for_a_handshake_is_no_handshake(terse, tools):
    with socket.create_connection(terse.http.address, timeout=20) as connection:
        connection.sendall(b"GET /ws/tts/realtime HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 5000)
        came = tools.read_all(connection)
    assert came.startswith(b"HTTP/1.1 400 ")
    assert json.loads(came.partition(b"\r\n\r\n")[2])["name"] == "invalid_websocket_upgrade"


def test_bodies_and_the_requests_before_do_not_count_as_head(terse, tools):
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 3000 + b"\r\n\r\n"
    with socket.create_connection(terse.http.address, timeout=20) as connection:
        for _ in range(3):
            connection.sendall(head)
            assert tools.read_until(connection, b'"ok"}').startswith(b"HTTP/1.1 200 ")
    text = "One two three. " * 300
    fields = {"voice_id": terse.voice("plain"), "text": text, "format": "wav", "x": "y" * 100_000}
    assert terse.http.speak(**fields).status == 200


def test_a_connection_that_says_nothing_is_closed(hasty):
    came, seconds = sent_slowly(hasty.http.address, [], 0.1)
    assert came == b""
    assert 0.3 < seconds < 15  # of twenty


def test_the_second_request_of_a_connection_is_timed_as_well(hasty, tools):
    with socket.create_connection(hasty.http.address, timeout=20) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert tools.read_until(connection, b'"ok"}').startswith(b"HTTP/1.1 200 ")
        time.sleep(0.8)  # idle between requests is something else
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert tools.read_until(connection, b'"ok"}').startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /healthz HTT")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408 ")


def head(path: str, length: int, key: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {key}")
    return "\r\n".join((*lines, f"Content-Length: {length}", "", "")).encode()


@pytest.mark.parametrize("path", ["/tts", "/asr/srt/audio_llm", "/translate/"])
def test_a_body_that_stops_is_408(hasty, path):
    pieces = [head(path, 100, hasty.http.key) + b"{"]
    came, seconds = sent_slowly(hasty.http.address, pieces, 0.05)
    assert came.startswith(b"HTTP/1.1 408 ")
    assert b'"ErrRequestTimeout"' in came
    assert b"connection: close" in came.lower()
    assert seconds < 15  # of twenty


def test_a_body_that_trickles_is_408_and_one_that_flows_is_not(hasty):
    pieces = [head("/tts", 5000, hasty.http.key), *[b" "] * 1000]
    came, seconds = sent_slowly(hasty.http.address, pieces, 0.02)
    assert came.startswith(b"HTTP/1.1 408 ")
    assert seconds < 15  # of twenty
    body = json.dumps({"voice_id": hasty.voice("plain"), "text": "Hi.", "format": "wav"}).encode()
    body += b" " * (20_000 - len(body))
    pieces = [head("/tts", len(body), hasty.http.key)]
    pieces += [body[start : start + 1000] for start in range(0, len(body), 1000)]
    with socket.create_connection(hasty.http.address, timeout=20) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.06)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_s9_what_is_not_http_gets_the_error_body(hasty):
    came, _ = sent_slowly(hasty.http.address, [b"\x16\x03\x01\x02\x00 hello\r\n\r\n"], 0.1)
    assert came.startswith(b"HTTP/1.1 400 ")
    body = json.loads(came.partition(b"\r\n\r\n")[2])
    assert set(body) == {"context", "code", "name", "error"}


@pytest.mark.parametrize("kind", ["openapi", "asyncapi"])
def test_the_kept_descriptions_say_what_the_code_says(kind):
    made = runpy.run_path(str(ROOT / "tools" / "describe_api.py"))[kind]()
    kept = (ROOT / "docs" / f"{kind}.json").read_text(encoding="utf-8")
    assert json.loads(json.dumps(made, default=str)) == json.loads(kept), "stale; run: poe describe"


def test_the_description_names_every_route():
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert described == {(method, path) for method, path in ROUTES if path != "/translate"}


def test_the_description_names_every_message_and_code():
    document = json.loads((ROOT / "docs" / "asyncapi.json").read_text())
    assert document["channels"]["realtime"]["address"] == REALTIME_PATH
    assert set(document["components"]["messages"]) == {
        *SERVICE_MESSAGES,
        "session.update",
        "tts.speak",
        "audio",
    }
    codes = document["components"]["schemas"]["TtsError"]["properties"]["code"]["enum"]
    assert codes == list(RealtimeCode)


@pytest.mark.parametrize("kind", ["openapi", "asyncapi"])
def test_every_reference_leads_somewhere(kind):
    document = json.loads((ROOT / "docs" / f"{kind}.json").read_text())

    def references(value: Any):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    found = list(references(document))
    assert found
    for reference in found:
        at = document
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
        assert at


def test_replies_fit_the_description(live, hibari):
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())

    def check(name: str, value: Any) -> None:
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(value)

    check("VoiceList", live.request("GET", "/tts/voices").json())
    check("ErrorBody", live.speak(voice_id=hibari, text="", format="wav").json())
    check("ErrorBody", live.recognise(b"x").json())
    request = {"voice_id": hibari, "text": "Hi.", "format": "wav"}
    check("SpeechRequest", request)
    with pytest.raises(jsonschema.ValidationError):
        check("SpeechRequest", {**request, "format": "aac"})
