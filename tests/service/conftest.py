"""Real servers on real sockets, and engines that fail on purpose for what no real engine does when asked."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from speechlab.engines import (
    EngineVoice,
    Recognition,
    RecognitionSegment,
    TranslationDelta,
)
from speechlab.errors import EngineError, InvalidRequestError, MissingDependencyError, ModelError
from speechlab.service import Provider, ServedEngine, ServiceConfig, running, voice_uuid

KEY = "sl:test-key-of-the-suite"
CANARY = "kanarienvogel"


@dataclass
class Reply:
    """What came back: status, headers (lower case), body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        assert self.headers["content-type"].partition(";")[0] == "application/json", self.headers
        return json.loads(self.body)


@dataclass
class Http:
    """A plain client that sends exactly what it is told."""

    base_url: str
    key: str = KEY

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.base_url.removeprefix("http://").partition(":")
        return host, int(port)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        key: str | None = "",
    ) -> Reply:
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        sent = dict(headers or {})
        if key is not None:
            sent.setdefault("Authorization", f"Bearer {key or self.key}")
        try:
            connection.request(method, path, body, sent)
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def post_json(self, path: str, fields: Any, **options: Any) -> Reply:
        body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        return self.request("POST", path, body, {"Content-Type": "application/json"}, **options)

    def speak(self, **fields: Any) -> Reply:
        return self.post_json("/tts", fields)

    def recognise(self, audio: Any = None, **fields: Any) -> Reply:
        if isinstance(audio, bytes):
            audio = base64.b64encode(audio).decode()
        return self.post_json("/asr/srt/audio_llm", fields if audio is None else {"audio": audio, **fields})

    def translate(self, *pairs: tuple[str, str], path: str = "/translate/", **fields: str) -> Reply:
        return self.form([*pairs, *fields.items()], path=path)

    def form(self, pairs: list[tuple[str, str]], *, path: str = "/translate/") -> Reply:
        body, kind = form_body(pairs)
        return self.request("POST", path, body, {"Content-Type": kind})

    @contextmanager
    def raw(self, head: str, body: bytes = b""):
        """A socket on which a request has been sent; {key} in the head is filled in."""
        with socket.create_connection(self.address, timeout=30) as connection:
            text = head.replace("{key}", self.key).replace("\n", "\r\n")
            connection.sendall(text.encode("latin-1") + b"\r\n" + body)
            yield connection

    @contextmanager
    def raw_json(self, path: str, fields: Any):
        body = json.dumps(fields).encode()
        head = (
            f"POST {path} HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {{key}}\n"
            f"Content-Length: {len(body)}\nConnection: close\n"
        )
        with self.raw(head, body) as connection:
            yield connection


def form_body(pairs: list[tuple[str, str]], boundary: str = "b0undary") -> tuple[bytes, str]:
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in pairs
    ]
    return ("".join(parts) + f"--{boundary}--\r\n").encode(), f"multipart/form-data; boundary={boundary}"


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while chunk := connection.recv(65_536):
        data += chunk
    return data


def read_until(connection: socket.socket, mark: bytes, limit: int = 1_000_000) -> bytes:
    data = b""
    while mark not in data and len(data) < limit:
        chunk = connection.recv(4096)
        if not chunk:
            break
        data += chunk
    return data


def eventually(condition: Any, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


@dataclass
class StagedVoice:
    """A synthesiser that does what the test needs: waits, fails, counts."""

    model: str = "staged-1"
    sample_rate: int = 24_000
    piece_s: float = 0.5
    calls: list[dict[str, Any]] = field(default_factory=list)
    closed: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    voices: tuple[EngineVoice, ...] = tuple(
        EngineVoice(name, ("en",), "Neutral", f"staged to be {name}")
        for name in ("plain", "gated", "broken", "breaks-later", "no-model", "bug", "endless", "picky")
    )

    def synthesise(self, text: str, voice: str, *, temperature: float | None = None) -> Any:
        self.calls.append({"text": text, "voice": voice, "temperature": temperature})
        if voice == "no-model":
            raise ModelError(f"the weights at /home/{CANARY}/model.bin are damaged; reinstall them")
        if voice == "bug":
            raise KeyError(text)
        if voice == "picky":
            raise InvalidRequestError("this voice does not read such a text", parameter="text", rule="2.2")
        return self._pieces(voice)

    def _pieces(self, voice: str) -> Any:
        piece = np.full(round(self.sample_rate * self.piece_s), 0.1, dtype=np.float32)
        try:
            if voice == "broken":
                raise EngineError("the engine failed before its first sound")
            yield piece
            if voice == "gated":
                assert self.gate.wait(20)
            if voice == "breaks-later":
                raise EngineError("the engine failed after its first sound")
            while voice == "endless":
                yield piece
            yield piece
        finally:
            self.closed += 1


@dataclass
class StagedRecogniser:
    """A recogniser that records how it was asked; a loud first sample stands for a failure."""

    model: str = "staged-ears"
    languages: tuple[str, ...] = ("ja", "en", "zh")
    calls: list[tuple[np.ndarray, Any]] = field(default_factory=list)
    fault: Exception | None = None

    def recognise(self, samples: np.ndarray, options: Any) -> Recognition:
        self.calls.append((samples, options))
        if self.fault is not None:
            raise self.fault
        duration = len(samples) / 16_000
        pieces = (RecognitionSegment(0.0, duration, "heard"),) if options.vad == "segments" else ()
        return Recognition("heard", options.language or "en", 0.5, pieces)


@dataclass
class StagedTranslator:
    """A translator that echoes, so that what goes through the service can be followed."""

    model: str = "staged/echo"
    languages: tuple[str, ...] = ("ja", "en", "zh")
    jobs: list[Any] = field(default_factory=list)
    closed: int = 0
    gate: threading.Event = field(default_factory=threading.Event)

    def translate(self, job: Any) -> Any:
        self.jobs.append(job)
        try:
            if job.text.startswith("broken"):
                raise EngineError("the engine failed before its first word")
            yield TranslationDelta("«")
            if job.text.startswith("gated"):
                assert self.gate.wait(20)
            if job.text.startswith("breaks later"):
                raise EngineError("the engine failed after its first word")
            yield TranslationDelta(job.text)
            yield TranslationDelta("»", len(job.text), 3)
        finally:
            self.closed += 1


class Talk:
    """A client of the realtime endpoint that sends exactly what it is told."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    def raw(self, data: str | bytes) -> None:
        self.socket.send(data)

    def send(self, **message: Any) -> None:
        self.raw(json.dumps(message))

    def event(self, seconds: float = 20.0) -> Any:
        """The next message: a dictionary, or bytes of audio."""
        message = self.socket.recv(seconds)
        return message if isinstance(message, bytes) else json.loads(message)

    def silent(self, seconds: float) -> bool:
        try:
            self.socket.recv(seconds)
        except TimeoutError:
            return True
        return False

    def closed(self, seconds: float = 20.0) -> int:
        """Read to the end; returns the close code."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(ConnectionClosed):
            while True:
                self.socket.recv(max(0.0, deadline - time.monotonic()))
        return self.socket.close_code

    def configure(self, **session: Any) -> Any:
        self.send(type="session.update", id="configuring", session=session)
        created = self.event()
        assert created["type"] == "session.created", created
        return created

    def speak(self, text: str, **fields: Any) -> list[Any]:
        self.send(type="tts.speak", text=text, **fields)
        return self.until_usage()

    def until_usage(self) -> list[Any]:
        events = [self.event()]
        while not (isinstance(events[-1], dict) and events[-1]["type"] == "tts.usage"):
            events.append(self.event())
        return events


@contextmanager
def talking(http: Http, key: str | None = None, *, headers: Any = None, **options: Any):
    """A realtime connection for as long as the block lasts."""
    sent = {"Authorization": f"Bearer {key or http.key}"} | (headers or {})
    address = http.base_url.replace("http", "ws", 1) + "/ws/tts/realtime"
    options = {"proxy": None, "max_size": None, "close_timeout": 2} | options
    with connect(address, additional_headers=sent, **options) as socket:
        yield Talk(socket)


NO_ENGINES = {
    name: {"enabled": False}
    for name in ("kokoro", "q", "hibari", "openjtalk", "whisper", "gemma", "qwen", "llama")
}


@dataclass
class Staged:
    """A service whose engines are staged."""

    http: Http
    speaker: StagedVoice
    q: StagedVoice
    ears: StagedRecogniser
    translator: StagedTranslator

    def voice(self, name: str, provider: str = "staged") -> str:
        return voice_uuid(provider, name)


@contextmanager
def staged_service(*, with_engines: bool = True, **settings: Any):
    speaker, q, ears, translator = StagedVoice(), StagedVoice(), StagedRecogniser(), StagedTranslator()
    config = ServiceConfig(
        port=0,
        api_keys=(KEY,),
        engines=NO_ENGINES,
        recogniser="ears" if with_engines else "",
        translator="echo" if with_engines else "",
        extra_engines=()
        if not with_engines
        else (
            ServedEngine("staged", "synthesiser", lambda: speaker, Provider("staged", heavy=False)),
            ServedEngine("q", "synthesiser", lambda: q, heavy=False),
            ServedEngine(
                "mono-rate", "synthesiser", lambda: q, Provider("mono-rate", sample_rates=(24_000,))
            ),
            ServedEngine("silent", "synthesiser", StagedVoice, Provider("silent", streamable=frozenset())),
            ServedEngine("ears", "recogniser", lambda: ears, heavy=False),
            ServedEngine("echo", "translator", lambda: translator, heavy=False),
        ),
        **settings,
    )
    with running(config) as service:
        yield Staged(Http(service.base_url), speaker, q, ears, translator)
        speaker.gate.set()
        translator.gate.set()


@pytest.fixture(scope="session")
def live():
    """The service as a user has it, with all its engines, in its own process."""
    with running(ServiceConfig(port=0, api_keys=(KEY,)), process=True) as service:
        yield Http(service.base_url)


@pytest.fixture
def staged():
    """A service whose engines do what a test needs."""
    with staged_service() as service:
        yield service


@pytest.fixture(scope="session")
def stage():
    """Makes staged services with settings: ``with stage(queue_limit=1) as service``."""
    return staged_service


@pytest.fixture(scope="session")
def talk():
    """Opens realtime connections: ``with talk(service.http) as client``."""
    return talking


@pytest.fixture(scope="session")
def tools():
    """Functions that test modules share."""

    class Tools:
        read_all = staticmethod(read_all)
        read_until = staticmethod(read_until)
        eventually = staticmethod(eventually)
        form_body = staticmethod(form_body)
        http = Http
        missing = MissingDependencyError
        key = KEY
        canary = CANARY

    return Tools


@pytest.fixture(scope="session")
def hibari() -> str:
    return voice_uuid("hibari", "heart")


@pytest.fixture(scope="session")
def error_body():
    """Checks the long error body (statement 9) and returns it."""

    def check(reply: Reply, status: int, name: str) -> dict[str, Any]:
        body = reply.json()
        assert reply.status == status, body
        assert set(body) == {"context", "code", "name", "error"}
        assert isinstance(body["context"], list)
        assert body["context"]
        assert all(isinstance(item, str) for item in body["context"])
        assert type(body["code"]) is int
        assert (body["name"], bool(body["error"])) == (name, True)
        assert (body["code"] == 104) == (name == "ErrAuthenticationFailed")
        return body

    return check
