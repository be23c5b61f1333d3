"""An HTTP server that misbehaves on purpose: it sends exactly the bytes that a test scripts, when it scripts them."""

import asyncio
import contextlib
import json
import socket
import struct
import threading
from dataclasses import dataclass, field

RESET, CLOSE = "reset", "close"


def reply(status=200, body=b"", content_type="application/json", **headers):
    """A whole HTTP reply, as bytes."""
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*pieces, content_type="audio/wav", end=True):
    """The steps of a chunked HTTP reply: bytes are chunks, everything else is a step as it is."""
    steps = [f"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\nContent-Type: {content_type}\r\n\r\n".encode()]
    for piece in pieces:
        steps.append(b"%x\r\n%s\r\n" % (len(piece), piece) if isinstance(piece, bytes) else piece)
    if end:
        steps.append(b"0\r\n\r\n")
    return steps


def events(*data, end=b"data: [DONE]\n\n"):
    """A stream of events with this data."""
    return b"".join(b"data: " + json.dumps(item).encode() + b"\n\n" for item in data) + end


def delta(text, **fields):
    return {"id": "trans_1", "choices": [{"index": 0, "delta": {"content": text}}], **fields}


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class FaultServer:
    """Answers each request with the next script; the last one is repeated."""

    scripts: list = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    closed_early: threading.Event = field(default_factory=threading.Event)
    port: int = 0
    active: int = 0
    most_active: int = 0
    connections: int = 0

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self.port}"

    def script(self, *scripts):
        self.scripts[:] = scripts
        self.requests.clear()

    async def handle(self, reader, writer):
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.closed_early.set()
        except asyncio.CancelledError:
            pass
        finally:
            with contextlib.suppress(Exception):
                writer.close()

    async def _one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines if x)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(method, path, headers, body)
        self.requests.append(request)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            steps = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
            if callable(steps):
                steps = steps(request)
            return await self._play(steps if isinstance(steps, list) else [steps], reader, writer)
        finally:
            self.active -= 1

    async def _play(self, steps, reader, writer):
        for step in steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, float):
                gone = asyncio.ensure_future(reader.read(1))
                done, _ = await asyncio.wait({gone}, timeout=step)
                if done:
                    self.closed_early.set()
                    return False
                gone.cancel()
                await asyncio.wait({gone})
            elif step == RESET:
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
                return False
            elif step == CLOSE:
                return False
        return True
