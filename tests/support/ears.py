"""A recognizer of a few lines: it hears one word in each recording, and goes wrong where it is told to."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Ears(BaseHTTPRequestHandler):
    """A recognizer that hears one word a second into each piece, and fails where it is told to.

    Attributes:
        asked: How many requests came.
        failing: Numbers of the requests that are refused.
        backwards: Numbers of those that are answered with an end before its start.
    """

    asked = 0
    failing = backwards = frozenset()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Ears.asked += 1
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
    Ears.asked = 0
    Ears.failing = Ears.backwards = frozenset()
    with ThreadingHTTPServer(("127.0.0.1", 0), Ears) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
