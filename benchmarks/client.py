"""What a call costs, beside other clients.

    python benchmarks/client.py [--seconds 0.8] [--only speechlab,aiohttp]

One fast server on loopback answers a recogniser-like call (300 kB of base64 up, a line down), a translation (small
both ways) and a synthesis (300 kB down). Each client sends the same for a fixed time, in a process of its own, with
1, 16 and 64 calls at once. `raw` writes ready-made bytes into a socket: nothing can be cheaper. The others begin
with the audio as bytes, as a user does. speechlab does all that it always does: it checks, limits, measures, parses,
and decodes the sound. CPU and memory are the client's alone. Numbers of different machines cannot be compared,
ratios can. Clients that are not installed are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

AUDIO = b"RIFF" + (225_000).to_bytes(4, "little") + b"WAVEfmt " + bytes(224_984)
VOICE = "0f8fad5b-d9cb-469f-a165-70867728950e"
TEXT = "今日はいい天気ですね。"
Call = Callable[[], Awaitable[None]]
WIDTHS = (1, 16, 64)
CLIENTS = ("raw", "speechlab", "speechlab_fast", "aiohttp", "httpx2", "openai")
PACKAGES = {"speechlab_fast": "httpx_aiohttp"}
WORKLOADS = ("recognise", "translate", "synthesise")
PATHS = {"recognise": "/asr/srt/audio_llm", "translate": "/translate/", "synthesise": "/tts"}
STORM_CALLS, STORM_WIDTH, STORM_WORK_S = 400, 8, 0.1


def wave(size: int) -> bytes:
    """A WAV file of so many bytes."""
    rate, data = 24_000, size - 44
    head = b"RIFF" + (size - 8).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    head += (1).to_bytes(2, "little") * 2 + rate.to_bytes(4, "little") + (2 * rate).to_bytes(4, "little")
    return (
        head
        + (2).to_bytes(2, "little")
        + (16).to_bytes(2, "little")
        + b"data"
        + data.to_bytes(4, "little")
        + bytes(data)
    )


def packed(body: bytes, kind: str = "application/json", status: int = 200) -> bytes:
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )


async def serve(storm: bool) -> None:
    replies = {
        "/asr": packed(json.dumps({"text": TEXT, "language": "ja", "confidence": 0.9}).encode()),
        "/tra": packed(json.dumps({"choices": [{"message": {"content": "It is a fine day."}}]}).encode()),
        "/tts": packed(wave(300_000), "audio/wav"),
    }
    refusal = packed(b'{"code":107,"name":"ErrRateLimited","error":"slow down"}', status=429)
    counts = {"running": 0, "refused": 0}

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                length = next(
                    (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")),
                    b":0",
                )
                await reader.readexactly(int(length.partition(b":")[2]))
                if path == "/refused":
                    writer.write(packed(str(counts["refused"]).encode()))
                elif storm and counts["running"] >= STORM_WIDTH:
                    counts["refused"] += 1
                    writer.write(refusal)
                else:
                    counts["running"] += 1
                    if storm:
                        await asyncio.sleep(STORM_WORK_S)
                    writer.write(replies[path[:4]])
                    counts["running"] -= 1
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def raw(base: str, workload: str, _width: int) -> Call:
    port = int(base.rpartition(":")[2])
    body = {
        "recognise": json.dumps({"audio": base64.b64encode(AUDIO).decode()}).encode(),
        "translate": json.dumps({"text": TEXT}).encode(),
        "synthesise": json.dumps({"text": TEXT}).encode(),
    }[workload]
    request = (
        f"POST {PATHS[workload]} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call() -> None:
        reader, writer = (
            idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        )
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.rpartition(b":")[2]))
        idle.append((reader, writer))

    return call


def fields(workload: str) -> dict[str, str]:
    if workload == "recognise":
        return {"audio": base64.b64encode(AUDIO).decode()}
    return {"text": TEXT, "voice_id": VOICE, "format": "wav", "source_lang": "ja", "target_lang": "en"}


def by_aiohttp(base: str, workload: str, width: int) -> Call:
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=width))

    async def call() -> None:
        async with session.post(base + PATHS[workload], json=fields(workload)) as reply:
            await (reply.read() if workload == "synthesise" else reply.json())

    return call


def by_httpx2(base: str, workload: str, width: int) -> Call:
    import httpx2

    client = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=width), timeout=60, trust_env=False)

    async def call() -> None:
        reply = await client.post(base + PATHS[workload], json=fields(workload))
        _ = reply.content if workload == "synthesise" else reply.json()

    return call


def by_openai(base: str, workload: str, _width: int) -> Call:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=base, api_key="x", max_retries=0)

    async def call() -> None:
        kind = bytes if workload == "synthesise" else object
        if workload == "synthesise":
            reply = await client.audio.speech.with_raw_response.create(model="m", voice="v", input=TEXT)
            _ = reply.content
        else:
            await client.post(PATHS[workload], body=fields(workload), cast_to=kind)

    return call


def by_speechlab(base: str, workload: str, width: int, **options: Any) -> Call:
    from speechlab.client import AsyncClient

    lab = AsyncClient(base, max_concurrency=width, **options)

    async def call() -> None:
        if workload == "recognise":
            await lab.transcribe(AUDIO)
        elif workload == "translate":
            await lab.translate(TEXT, source_lang="ja", target_lang="en")
        else:
            await lab.synthesize(TEXT, voice=VOICE)

    return call


def by_speechlab_fast(base: str, workload: str, width: int) -> Call:
    return by_speechlab(base, workload, width, transport="aiohttp")


MAKERS = {
    "raw": raw,
    "aiohttp": by_aiohttp,
    "httpx2": by_httpx2,
    "openai": by_openai,
    "speechlab": by_speechlab,
    "speechlab_fast": by_speechlab_fast,
}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def measure(name: str, base: str, workload: str, width: int, seconds: float) -> dict[str, float]:
    if name == "openai" and workload == "synthesise":
        base += "/tts"  # its path is /audio/speech
    call = MAKERS[name](base, workload, width)
    for _ in range(5):
        await call()
    before, began, busy, calls = peak_mb(), time.perf_counter(), time.process_time(), 0
    until = began + seconds

    async def worker() -> None:
        nonlocal calls
        while time.perf_counter() < until:
            await call()
            calls += 1

    await asyncio.gather(*(worker() for _ in range(width)))
    took = time.perf_counter() - began
    return {
        "rps": calls / took,
        "cpu_us": 1e6 * (time.process_time() - busy) / calls,
        "mb": peak_mb() - before,
    }


async def large(base: str, path: str) -> dict[str, float]:
    """Peak memory for a recording of 60 MB in a file, as a share of it."""
    from speechlab.client import AsyncClient

    lab = AsyncClient(base)
    await lab.transcribe(AUDIO)
    before = peak_mb()
    await lab.transcribe(path)
    return {"share": (peak_mb() - before) / 60.0}


async def storm(base: str, width: int) -> dict[str, float]:
    """Many calls at once against a service that bears eight."""
    from speechlab.client import AsyncClient
    from speechlab.errors import SpeechLabError

    lab = AsyncClient(base, max_concurrency=width)
    began = time.perf_counter()
    calls = [lab.translate(TEXT, source_lang="ja", target_lang="en") for _ in range(STORM_CALLS)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    took = time.perf_counter() - began
    refused = int((await lab.request("GET", "/refused")).text)
    return {"lost": sum(isinstance(o, SpeechLabError) for o in outcomes), "refused": refused, "s": took}


def started(*options: str) -> tuple[subprocess.Popen[str], str]:
    server = subprocess.Popen(
        [sys.executable, __file__, "--as", "server", *options], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    return server, f"http://127.0.0.1:{int(server.stdout.readline())}"


def child(*arguments: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout)


def compare(only: list[str], seconds: float) -> None:
    names = [name for name in only if name == "raw" or importlib.util.find_spec(PACKAGES.get(name, name))]
    server, base = started()
    print("| call | at once | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names), sep="\n")
    for workload in WORKLOADS:
        for width in WIDTHS:
            cells = []
            for name in names:
                job = ("--as", "client", "--name", name, "--workload", workload, "--width", str(width))
                got = child(*job, "--base", base, "--seconds", str(seconds))
                cells.append(f"{got['cpu_us']:,.0f} µs, {got['rps']:,.0f}/s, {got['mb']:.0f} MB")
            print(f"| {workload} | {width} | " + " | ".join(cells) + " |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.wav"
        path.write_bytes(wave(60_000_000))
        share = child("--as", "large", "--base", base, "--path", str(path))["share"]
    server.kill()
    server.wait()
    print(f"\na recording of 60 MB: peak memory grows by {share:.2f} of the file")
    results = {}
    for label, width in (("oracle", STORM_WIDTH), ("adaptive", 64)):
        server, base = started("--storm")
        results[label] = child("--as", "storm", "--base", base, "--width", str(width))
        server.kill()
        server.wait()
    ratio = results["adaptive"]["s"] / results["oracle"]["s"]
    found = results["adaptive"]
    print(
        f"storm of {STORM_CALLS} calls, {STORM_WIDTH} borne at once: {found['lost']:.0f} lost, "
        f"{found['refused']:.0f} refused, {ratio:.2f} times the time of an oracle that knows the limit"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=0.8, help="how long each client sends, for each cell"
    )
    parser.add_argument("--only", default=",".join(CLIENTS), help="which clients")
    for hidden in ("--as", "--name", "--workload", "--width", "--base", "--path"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    parser.add_argument("--storm", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    role = getattr(given, "as")
    os.environ.pop("SPEECHLAB_MODE", None)
    if role == "server":
        asyncio.run(serve(given.storm))
    elif role == "client":
        work = measure(given.name, given.base, given.workload, int(given.width), given.seconds)
        print(json.dumps(asyncio.run(work)))
    elif role == "large":
        print(json.dumps(asyncio.run(large(given.base, given.path))))
    elif role == "storm":
        print(json.dumps(asyncio.run(storm(given.base, int(given.width)))))
    else:
        compare(given.only.split(","), given.seconds)


if __name__ == "__main__":
    main()
