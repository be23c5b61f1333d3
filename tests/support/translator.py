"""A small service for batches that can be told to misbehave, and one that is in the way of the real one."""

import asyncio
import json
import random
import re
import threading
from collections import Counter
from contextlib import contextmanager
from urllib.parse import urlsplit

from speechlab.client import Client
from support.sockets import dechunked


class Wire:
    """An HTTP server on a thread, as thin as can be: one function answers each request."""

    def __init__(self, answer):
        self.answer = answer
        self.loop = asyncio.new_event_loop()
        self.port = None
        self.writers = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self._talk, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        self._ready.set()
        self.loop.run_forever()

    async def _talk(self, reader, writer):
        self.writers.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(found[1])) if found else b""
                reply = await self.answer(head, body)
                if reply is None:
                    break
                writer.write(reply)
                await writer.drain()
                if b"connection: close" in head.lower():
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    def __enter__(self):
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_):
        async def stop():
            self.server.close()
            for writer in self.writers:
                writer.transport.abort()
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others, timeout=5)
            self.loop.stop()

        asyncio.run_coroutine_threadsafe(stop(), self.loop)
        self._thread.join(10)
        self.loop.close()


@contextmanager
def reached(service, **options):
    """A client of a service that answers on a wire."""
    answer = service.answer if hasattr(service, "answer") else service
    with Wire(answer) as wire, Client(f"http://127.0.0.1:{wire.port}", **options) as lab:
        yield lab


def reply(status, body, *headers):
    content = json.dumps(body).encode() if not isinstance(body, bytes) else body
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + content


def field(body, name):
    found = re.search(rb'name="%s"\r\n\r\n(.*?)\r\n--' % name.encode(), body, re.DOTALL)
    return found[1].decode() if found else None


class Translator:
    """Translates by reversing. Texts decide what happens: see ``faults``."""

    def __init__(self):
        self.calls = Counter()
        self.delay_s = 0.002
        self.under_way = 0
        self.most = 0
        self.began = []
        self.faults = {}
        self.translates = ""
        self.base_url = ""

    async def answer(self, head, body):
        if b"GET /tts/voices" in head:
            told = [f"X-Speechlab-Translates: {self.translates}"] if self.translates else []
            return reply(200, {"voices": []}, "X-Speechlab-Service: reverser/1", *told)
        text = field(body, "text")
        self.calls[text] += 1
        self.began.append(asyncio.get_running_loop().time())
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.delay_s)
        finally:
            self.under_way -= 1
        for pattern, status in self.faults.items():
            if re.search(pattern, text):
                return reply(status, {"code": 1, "name": "Err", "message": f"no: {status}", "context": []})
        choice = {"message": {"content": text[::-1]}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(text), "completion_tokens": 1, "total_tokens": len(text) + 1}
        return reply(200, {"model": "re/verse", "choices": [choice], "usage": usage})


@contextmanager
def in_the_way(service, seed, refuse=0.30, fail=0.05, drop=0.05):
    """Stand before a service: refuse some calls, fail some, and close some connections without a word.

    No call fails or is cut off more often than twice, which is as often as the client repeats a 500.
    """
    there = urlsplit(service.base_url)
    chance = random.Random(seed)
    counts, failed = Counter(), Counter()

    async def answer(head, body):
        if head.startswith(b"POST"):
            drawn = chance.random()
            if drawn < refuse:
                counts[429] += 1
                return reply(
                    429, {"code": 7, "name": "ErrRateLimited", "message": "slow down", "context": []}
                )
            if drawn < refuse + fail + drop and failed[body] < 2:
                failed[body] += 1
                if drawn < refuse + fail:
                    counts[500] += 1
                    return reply(500, {"code": 8, "name": "ErrInternal", "message": "oops", "context": []})
                counts["dropped"] += 1
                return None
        counts["passed"] += 1
        reader, writer = await asyncio.open_connection(there.hostname, there.port)
        plain = re.sub(rb"(?i)\r\n(connection|host): [^\r]*", b"", head)
        extra = f"\r\nHost: {there.netloc}\r\nConnection: close\r\n\r\n".encode()
        writer.write(plain[:-4] + extra + body)
        raw = await reader.read()
        writer.close()
        start, _, content = raw.partition(b"\r\n\r\n")
        if b"chunked" in start.lower():
            content = dechunked(content)
        start = re.sub(rb"(?i)\r\n(connection|transfer-encoding|content-length): [^\r]*", b"", start)
        return start + f"\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content

    with Wire(answer) as wire:
        yield f"http://127.0.0.1:{wire.port}", counts
