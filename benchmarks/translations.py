"""A translation-like service on loopback, in a process of its own, for benchmarks that ask it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LANGS = {"source_lang": "en", "target_lang": "ja"}
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def texts(count: int) -> list[str]:
    """Sentences that are told apart by their number."""
    return [f"This is sentence number {number}, of about the usual length." for number in range(count)]


def packed(status: int, body: bytes, retry_after_s: float | None = None) -> bytes:
    """A reply of HTTP/1.1."""
    asks = "" if retry_after_s is None else f"Retry-After: {retry_after_s:g}\r\n"
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{asks}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


TRANSLATED = packed(
    200,
    b'{"id":"trans_1","model":"re/verse","choices":[{"index":0,"message":{"role":"assistant","content":"translated"},'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}',
)
NO_VOICES = packed(200, b'{"voices":[]}')


async def serve(reply: Callable[[bytes, bytes], Awaitable[bytes]]) -> None:
    """Serve until the process ends; the first line of standard output is the port.

    Args:
        reply: Makes a reply of the head and the body of a request; an empty one hangs up.
    """

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                found = _LENGTH.search(head)
                answer = await reply(head, await reader.readexactly(int(found[1])) if found else b"")
                if not answer:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Serving:
    """A service in a process of its own, which ends with the block; the block is given its address.

    Args:
        *arguments: Those with which the benchmark calls itself to serve.
    """

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, sys.argv[0], *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> str:
        assert self._process.stdout is not None
        return f"http://127.0.0.1:{self._process.stdout.readline().strip()}"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
