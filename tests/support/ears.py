"""A recognizer of a few lines: it hears one word in each recording, and goes wrong where it is told to."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest


class Ears(BaseHTTPRequestHandler):
    """A recognizer that hears one word a second into each piece, and fails where it is told to.

    Attributes:
        asked: How many requests came.
        heard: What each was, as a digest.
        failing: Numbers of the requests that are refused.
        backwards: Numbers of those that are answered with an end before its start.
        stuck_at: Number of the request that stays without an answer.
    """

    asked = 0
    heard: ClassVar[list[str]] = []
    failing = backwards = frozenset()
    stuck_at = None
    stuck, freed = threading.Event(), threading.Event()

    def do_POST(self):
        sound = self.rfile.read(int(self.headers["Content-Length"]))
        Ears.asked += 1
        Ears.heard.append(hashlib.sha256(sound).hexdigest())
        if Ears.asked == Ears.stuck_at:
            Ears.stuck.set()
            Ears.freed.wait(60)
            return
        start = 3.0 if Ears.asked in Ears.backwards else 1.0
        body = {"language": "en", "confidence": 1, "segments": [{"start": start, "end": 2.0, "text": "word"}]}
        status = 400 if Ears.asked in Ears.failing else 200
        self.reply(status, body if status == 200 else {"error": "no"})

    def do_GET(self):
        self.reply(200, {"voices": []})

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def ears():
    Ears.asked, Ears.heard, Ears.stuck_at = 0, [], None
    Ears.failing = Ears.backwards = frozenset()
    Ears.stuck.clear()
    Ears.freed.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Ears) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
