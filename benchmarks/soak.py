"""Fifty clients for a minute: every reply belongs to its request, and nothing is left behind.

    python benchmarks/soak.py [--clients 50] [--seconds 60] [--strangers 0]

The clients ask one service for different texts, over HTTP, as streams and over WebSockets; some leave in the middle,
and one has a long text spoken all the time. A text is spoken once before; what comes must be the same, byte for byte.
With ``--strangers N`` there are as many who read streams and whole replies slowly or not at all, send pings and read
no answers, break off uploads or let them drip, and open connections to say nothing, with a key and without.
Afterwards the files, threads, processes and memory of the service are compared with those before: memory with that
after a first third of the load, by when models and allocators have taken what they take once. Exit status 1 if
anything is wrong. Takes up to two and a half minutes,
or an hour with ``--clients 6 --strangers 24 --seconds 2700``.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import http.client
import json
import random
import socket
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from websockets.sync.client import connect

from speechlab.service import Database, Ledger, RunningService, ServiceConfig, run_service, voice_uuid

if TYPE_CHECKING:
    from collections.abc import Callable

VOICE = voice_uuid("hibari", "heart")
TEXTS = [f"This is text number {number}, spoken for client {number * 7}." for number in range(24)]
LONG = "A long text is spoken here, sentence by sentence, and nobody has to wait for its end. " * 55
QUIET_S = 34.0  # idle threads leave after thirty seconds
MEMORY_MB = 40.0


class Soak:
    """The clients and what they saw."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self._host, _, port = service.base_url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._headers = {"Authorization": f"Bearer {service.api_key}", "Content-Type": "application/json"}
        self._expected: dict[str, str] = {}
        self.counts: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.short_s: list[float] = []

    def learn(self) -> None:
        """Have each text spoken once, with nobody else there."""
        for text in TEXTS:
            self._expected[text] = digest(self._post(text, stream=False))

    def load(self, clients: int, seconds: float, look: Callable[[], Any] = lambda: None) -> Any:
        """Have all clients ask for some seconds, and return what somebody sees who looks in the middle of it."""
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=self.client, args=(number, until)) for number in range(clients)]
        threads.append(threading.Thread(target=self.long, args=(until,)))
        for thread in threads:
            thread.start()
        time.sleep(seconds / 2)
        seen = look()
        for thread in threads:
            thread.join()
        return seen

    def client(self, number: int, until: float) -> None:
        """Be one client."""
        chance = random.Random(number)
        ways = [self._whole, self._streamed, self._realtime, self._leave]
        while time.monotonic() < until:
            way = chance.choices(ways, weights=[5, 4, 3, 1])[0]
            text = chance.choice(TEXTS)
            started = time.monotonic()
            try:
                came = way(text)
            except Exception as error:  # noqa: BLE001 - whatever happens to a client is a finding
                self.wrong.append(f"{way.__name__}: {type(error).__name__}: {error}")
                continue
            self.counts[way.__name__.strip("_")] += 1
            if came is None:
                continue
            self.short_s.append(time.monotonic() - started)
            if digest(came) != self._expected[text]:
                self.wrong.append(f"{way.__name__}: other audio than that of its text, {len(came)} bytes")

    def long(self, until: float) -> None:
        """Have a long text spoken, again and again."""
        while time.monotonic() < until:
            self._post(LONG, stream=True, until=until)
            self.counts["long"] += 1

    def _whole(self, text: str) -> bytes:
        return self._post(text, stream=False)

    def _streamed(self, text: str) -> bytes:
        return self._post(text, stream=True)

    def _leave(self, text: str) -> None:
        with closing(self._asked(text + " " + LONG, stream=True)) as connection:
            connection.getresponse().read(1000)

    def _realtime(self, text: str) -> bytes:
        address = f"{self._service.ws_base_url}/ws/tts/realtime"
        headers = {"Authorization": self._headers["Authorization"]}
        with connect(address, additional_headers=headers, compression=None, open_timeout=60) as socket:
            session = {"voice_id": VOICE, "format": "pcm"}
            socket.send(json.dumps({"type": "session.update", "session": session}))
            socket.send(json.dumps({"type": "tts.speak", "id": text, "text": text}))
            audio = b""
            while True:
                message = socket.recv(timeout=120)
                if isinstance(message, bytes):
                    audio += message
                    continue
                event = json.loads(message)
                if event.get("id", text) != text:
                    self.wrong.append("realtime: an event of somebody else")
                if event["type"].endswith("error"):
                    raise RuntimeError(message)
                if event["type"] == "tts.usage":
                    return audio

    def _post(self, text: str, *, stream: bool, until: float = float("inf")) -> bytes:
        with closing(self._asked(text, stream=stream)) as connection:
            reply = connection.getresponse()
            if reply.status != 200:
                raise RuntimeError(f"status {reply.status}: {reply.read(200)!r}")
            data = b""
            while time.monotonic() < until and (piece := reply.read(65_536)):
                data += piece
            return data

    def _asked(self, text: str, *, stream: bool) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=120)
        fields = {"voice_id": VOICE, "text": text, "format": "pcm", "stream": stream}
        connection.request("POST", "/tts", json.dumps(fields), self._headers)
        return connection


class Strangers:
    """Those who use a service badly, each in one way at a time."""

    def __init__(self, service: RunningService) -> None:
        host, _, port = service.base_url.removeprefix("http://").partition(":")
        self._address = (host, int(port))
        self._key = f"Authorization: Bearer {service.api_key}\r\n"
        self.counts: collections.Counter[str] = collections.Counter()

    def begin(self, number: int, seconds: float) -> list[threading.Thread]:
        """Start as many of them for some seconds."""
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=self._stranger, args=(which, until)) for which in range(number)]
        for thread in threads:
            thread.start()
        return threads

    def _stranger(self, number: int, until: float) -> None:
        chance = random.Random(-number)
        ways = [
            self._silent,
            self._unread,
            self._upload,
            self._drip,
            self._ping,
            self._slow,
            self._slow_whole,
        ]
        while time.monotonic() < until:
            way = chance.choice(ways)
            with (
                contextlib.suppress(OSError),
                socket.create_connection(self._address, timeout=30) as connection,
            ):
                way(connection, min(until, time.monotonic() + chance.uniform(1, 20)))
            self.counts[way.__name__.strip("_")] += 1
            time.sleep(chance.uniform(0, 1))

    def _silent(self, _connection: socket.socket, until: float) -> None:
        while time.monotonic() < until:
            time.sleep(0.5)

    def _unread(self, connection: socket.socket, until: float) -> None:
        connection.sendall(b"POST /tts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        while time.monotonic() < until:
            connection.sendall(b"x")
            time.sleep(0.5)

    def _upload(self, connection: socket.socket, _until: float) -> None:
        head = f"POST /asr/srt/audio_llm HTTP/1.1\r\nHost: localhost\r\n{self._key}Content-Length: 30000000\r\n\r\n"
        connection.sendall(head.encode() + b'{"audio": "')
        for _ in range(100):
            connection.sendall(b"A" * 100_000)

    def _drip(self, connection: socket.socket, until: float) -> None:
        self._upload(connection, until)
        while time.monotonic() < until:
            connection.sendall(b"A")
            time.sleep(0.5)

    def _ping(self, connection: socket.socket, until: float) -> None:
        head = (
            f"GET /ws/tts/realtime HTTP/1.1\r\nHost: localhost\r\n{self._key}Connection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
        )
        connection.sendall(head.encode())
        connection.recv(100)
        while time.monotonic() < until:
            connection.sendall((b"\x89\xe4\0\0\0\0" + b"p" * 100) * 200)
            time.sleep(0.2)

    def _slow_whole(self, connection: socket.socket, until: float) -> None:
        self._slow(connection, until, stream=False)

    def _slow(self, connection: socket.socket, until: float, *, stream: bool = True) -> None:
        body = json.dumps({"voice_id": VOICE, "text": LONG, "format": "wav", "stream": stream}).encode()
        head = f"POST /tts HTTP/1.1\r\nHost: localhost\r\n{self._key}Content-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        while time.monotonic() < until:
            connection.recv(1000)
            time.sleep(0.2)


def digest(data: bytes) -> str:
    """Return what two equal pieces of audio have in common."""
    return hashlib.sha256(data).hexdigest()


def state(process: psutil.Process) -> dict[str, float]:
    """What a process holds."""
    return {
        "files": process.num_fds(),
        "threads": process.num_threads(),
        "processes": len(process.children(recursive=True)),
        "memory MB": process.memory_info().rss / 1e6,
    }


class Series:
    """What a process holds, from time to time."""

    def __init__(self, process: psutil.Process, every_s: float) -> None:
        self.seen: list[str] = []
        self.over = threading.Event()
        self._process, self._every_s = process, every_s
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self.over.wait(self._every_s):
            now = state(self._process)
            self.seen.append(f"{now['memory MB']:.0f}/{now['files']:.0f}/{now['threads']:.0f}")


def main() -> int:
    """Run, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--strangers", type=int, default=0)
    options = parser.parse_args()
    places = options.clients + options.strangers
    settings = {"queue_limit": 2 * places + 8, "ws_connections": places}
    with tempfile.TemporaryDirectory() as folder:
        config = ServiceConfig(port=0, data_dir=Path(folder), translator="", **settings)
        with run_service(config, process=True) as service:
            soak, process = Soak(service), psutil.Process(service.pid)
            soak.learn()
            before = state(process)
            soak.load(1, 6.0)
            alone, soak.short_s = soak.short_s, []
            strangers = Strangers(service)
            guests = strangers.begin(options.strangers, options.seconds * 4 / 3)
            soak.load(options.clients, options.seconds / 3)
            before["memory MB"] = state(process)["memory MB"]
            series = Series(process, options.seconds / 10)
            during = soak.load(options.clients, options.seconds, lambda: state(process))
            for thread in guests:
                thread.join()
            series.over.set()
            time.sleep(QUIET_S)
            after = state(process)
        with closing(Database(Path(folder))) as database:
            rows = len(Ledger(database).list_rows())
    print(
        "strangers:", ", ".join(f"{count} {name}" for name, count in strangers.counts.most_common()) or "none"
    )
    print("memory in MB, files, threads, from beginning to end:", *series.seen)
    return report(soak, [before, during, after], alone, rows)


def report(soak: Soak, states: list[dict[str, float]], alone: list[float], rows: int) -> int:
    """Print what was found, and return 1 if something is wrong."""
    before, during, after = states
    print("operations:", ", ".join(f"{count} {name}" for name, count in soak.counts.most_common()))
    print(f"rows in the ledger: {rows}, the {len(TEXTS)} before included")
    for who, seconds in (("one client", alone), ("all clients", soak.short_s)):
        took = sorted(seconds)
        p50, p95 = took[len(took) // 2], took[len(took) * 95 // 100]
        print(f"a short text while a long one is spoken, {who}: p50 {p50:.2f} s, p95 {p95:.2f} s")
    print(f"{'':<12}{'before':>9}{'during':>9}{'after':>9}")
    for name, first in before.items():
        print(f"{name:<12}{first:>9.0f}{during[name]:>9.0f}{after[name]:>9.0f}")
    left = [name for name in ("files", "threads", "processes") if after[name] > before[name] + 1]
    if after["memory MB"] > before["memory MB"] + MEMORY_MB:
        left.append("memory MB")
    for text, count in collections.Counter(soak.wrong).most_common(10):
        print(f"WRONG {count} x {text}")
    for name in left:
        print(f"LEFT BEHIND: {name}")
    print("all replies belonged to their requests" if not soak.wrong else f"{len(soak.wrong)} were wrong")
    return 1 if soak.wrong or left else 0


if __name__ == "__main__":
    sys.exit(main())
