"""What a call costs, beside other clients.

    python benchmarks/client.py [--rounds 5] [--seconds 0.3] [--only speechlab,aiohttp] [--calls translate]

One fast server on loopback answers a recognizer-like call (300 kB of base64 up, a line down), a translation (small,
a form up, JSON down) and a synthesis (300 kB down; as bytes, and as samples). All clients send the same encoding and
begin with the same: audio as bytes, text as text. Some peers come twice: as people write them, and with what
speechlab encodes with (orjson, pybase64, a form written by hand). `raw` writes ready-made bytes into a socket:
nothing can be cheaper. speechlab does all that it always does: it checks, limits, measures, parses, and decodes
sound. A name that begins with "sync" is a blocking client in as many threads as there are calls at once.

Each client is a process of its own, and only its CPU counts. The clients take turns, in an order that changes from
round to round, so that what else the machine does falls on all of them. Told is the median of the rounds' ratios to
the reference, and the smallest and largest. Numbers of different machines cannot be compared, ratios can.
Peers that are not installed are said to be so; `pip install --group bench` brings them.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import importlib.util
import inspect
import io
import json
import os
import random
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

AUDIO = b"RIFF" + (225_000).to_bytes(4, "little") + b"WAVEfmt " + bytes(224_984)
VOICE = "0f8fad5b-d9cb-469f-a165-70867728950e"
TEXT = "今日はいい天気ですね。"
FORM = [("text", TEXT), ("source_lang", "ja"), ("target_lang", "en")]
SPEECH = {"text": TEXT, "voice_id": VOICE, "format": "wav"}
PATHS = {
    "recognize": "/asr/srt/audio_llm",
    "translate": "/translate/",
    "synthesize": "/tts",
    "samples": "/tts",
}
CALLS = {
    "recognize": "recognize: 225 kB of audio up",
    "translate": "translate a sentence",
    "synthesize": "synthesize: 300 kB of WAV down, as bytes",
    "samples": "the same, as samples",
}
WIDTHS = (1, 16, 64)
REFERENCE = "aiohttp, same encoding"
STORM_CALLS, STORM_WIDTH, STORM_WORK_S = 400, 8, 0.1
ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": "268435456", "MALLOC_TRIM_THRESHOLD_": "268435456"}
"""Without it a process keeps large buffers or gives them back by what it did before, which is half of the cost."""
Call = Callable[[], Any]
"""Makes one call; what it gives is awaited if it can be."""


# The server


def wave(size: int) -> bytes:
    """A WAV file of so many bytes."""
    rate, data = 24_000, size - 44
    head = b"RIFF" + (size - 8).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    head += (1).to_bytes(2, "little") * 2 + rate.to_bytes(4, "little") + (2 * rate).to_bytes(4, "little")
    tail = (2).to_bytes(2, "little") + (16).to_bytes(2, "little") + b"data" + data.to_bytes(4, "little")
    return head + tail + bytes(data)


def packed(body: bytes, kind: str = "application/json", status: int = 200) -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


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
                lines = head.lower().split(b"\r\n")
                length = next((line for line in lines if line.startswith(b"content-length")), b":0")
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


# The clients: each takes the server's address, the kind of call and how many there are at once


def encoded(fast: bool) -> bytes:
    """The JSON body of recognition."""
    if fast:
        import orjson
        import pybase64

        return orjson.dumps({"audio": pybase64.b64encode(AUDIO).decode()})
    return json.dumps({"audio": base64.b64encode(AUDIO).decode()}).encode()


def form() -> tuple[bytes, str]:
    """The form of a translation, and its type, as speechlab writes it."""
    from speechlab.contract import encode_form

    return encode_form(FORM, secrets.token_hex(16))


def decoded(content: bytes, workload: str, fast: bool) -> Any:
    """What a user makes of a reply."""
    if workload == "synthesize":
        return content
    if workload == "samples":
        import soundfile

        return soundfile.read(io.BytesIO(content), dtype="float32")
    if fast:
        import orjson

        return orjson.loads(content)
    return json.loads(content)


def raw(base: str, workload: str, _width: int) -> Call:
    port = int(base.rpartition(":")[2])
    body = encoded(True) if workload == "recognize" else json.dumps(SPEECH).encode()
    head = f"POST {PATHS[workload]} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    request = head.encode() + body
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call() -> None:
        pair = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        pair[1].write(request)
        head = await pair[0].readuntil(b"\r\n\r\n")
        await pair[0].readexactly(int(head.rpartition(b":")[2]))
        idle.append(pair)

    return call


def by_aiohttp(base: str, workload: str, _width: int, *, fast: bool) -> Call:
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    headers = {"Authorization": "Bearer x", "Content-Type": "application/json"}

    async def call() -> None:
        data: Any
        if workload == "translate" and not fast:
            data = aiohttp.FormData(FORM, default_to_multipart=True)
            given = {"Authorization": "Bearer x"}
        elif workload == "translate":
            data, kind = form()
            given = {**headers, "Content-Type": kind}
        else:
            data, given = encoded(fast) if workload == "recognize" else json.dumps(SPEECH).encode(), headers
        async with session.post(base + PATHS[workload], data=data, headers=given) as reply:
            decoded(await reply.read(), workload, fast)

    return call


def httpx2_options(workload: str, fast: bool) -> dict[str, Any]:
    if workload == "translate" and not fast:
        return {"files": [(name, (None, value)) for name, value in FORM]}
    if workload == "translate":
        data, kind = form()
        return {"content": data, "headers": {"Content-Type": kind}}
    if workload == "recognize":
        if not fast:
            return {"json": {"audio": base64.b64encode(AUDIO).decode()}}
        return {"content": encoded(True), "headers": {"Content-Type": "application/json"}}
    return {"json": SPEECH}


def by_httpx2(base: str, workload: str, _width: int, *, fast: bool, sync: bool = False) -> Call:
    import httpx2

    limits = httpx2.Limits(max_connections=None)
    kind = httpx2.Client if sync else httpx2.AsyncClient
    client: Any = kind(limits=limits, timeout=60, trust_env=False, headers={"Authorization": "Bearer x"})

    async def call() -> None:
        reply = await client.post(base + PATHS[workload], **httpx2_options(workload, fast))
        decoded(reply.content, workload, fast)

    def call_sync() -> None:
        reply = client.post(base + PATHS[workload], **httpx2_options(workload, fast))
        decoded(reply.content, workload, fast)

    return call_sync if sync else call


def by_openai(base: str, workload: str, _width: int, *, sync: bool = False) -> Call:
    """The OpenAI SDK, whose own method speaks; the other calls go by its ``post``, which sends what it is given."""
    from openai import AsyncOpenAI, OpenAI

    # The path of its speech is /audio/speech.
    base = f"{base}/tts" if PATHS[workload] == "/tts" else base
    client: Any = (OpenAI if sync else AsyncOpenAI)(base_url=base, api_key="x", max_retries=0, timeout=60)

    def post() -> Any:
        if workload == "recognize":
            body = {"audio": base64.b64encode(AUDIO).decode()}
            return client.post(PATHS[workload], body=body, cast_to=object)
        if workload == "translate":
            files = [(name, (None, value.encode())) for name, value in FORM]
            options = {"headers": {"Content-Type": "multipart/form-data"}}
            return client.post(PATHS[workload], files=files, cast_to=object, options=options)
        return client.audio.speech.create(model="m", voice="v", input=TEXT, response_format="wav")

    async def call() -> None:
        reply = await post()
        if PATHS[workload] == "/tts":
            decoded(await reply.aread(), workload, False)

    def call_sync() -> None:
        reply = post()
        if PATHS[workload] == "/tts":
            decoded(reply.read(), workload, False)

    return call_sync if sync else call


def by_speechlab(base: str, workload: str, width: int, *, sync: bool = False, **options: Any) -> Call:
    from speechlab.client import AsyncClient, Client

    lab: Any = (Client if sync else AsyncClient)(base, api_key="benchmark", max_concurrency=width, **options)
    raw = lab.with_raw_response
    calls: dict[str, Call] = {
        "recognize": lambda: lab.transcribe(AUDIO),
        "translate": lambda: lab.translate(TEXT, source_lang="ja", target_lang="en"),
        "synthesize": lambda: raw.synthesize(TEXT, voice=VOICE),
        "samples": lambda: lab.synthesize(TEXT, voice=VOICE),
    }
    return calls[workload]


MAKERS: dict[str, tuple[str, Callable[[str, str, int], Call]]] = {
    "raw": ("json", raw),
    "aiohttp": ("aiohttp", partial(by_aiohttp, fast=False)),
    REFERENCE: ("aiohttp", partial(by_aiohttp, fast=True)),
    "httpx2": ("httpx2", partial(by_httpx2, fast=False)),
    "httpx2, same encoding": ("httpx2", partial(by_httpx2, fast=True)),
    "OpenAI SDK": ("openai", by_openai),
    "speechlab": ("speechlab", by_speechlab),
    "speechlab on httpx2": ("speechlab", partial(by_speechlab, transport="httpx2")),
    "sync httpx2, same encoding": ("httpx2", partial(by_httpx2, fast=True, sync=True)),
    "sync OpenAI SDK": ("openai", partial(by_openai, sync=True)),
    "sync speechlab": ("speechlab", partial(by_speechlab, sync=True)),
    "sync speechlab on httpx2": ("speechlab", partial(by_speechlab, sync=True, transport="httpx2")),
}
"""Name, the package that it needs, and how its call is made."""


# One client, in a process of its own


def blocks(name: str, base: str) -> None:
    """Measure as often as the parent asks: a line in is a block, a line out is its CPU for a call in µs."""
    make = MAKERS[name][1]
    calls: dict[tuple[str, int], Call] = {}
    with asyncio.Runner() as runner, ThreadPoolExecutor(max(WIDTHS)) as threads:
        for line in sys.stdin:
            job = json.loads(line)
            key = (job["workload"], job["width"])

            async def block(key: tuple[str, int] = key, seconds: float = job["seconds"]) -> float:
                if key not in calls:
                    calls[key] = make(base, *key)
                    await many(calls[key], key[1], 0.1, threads)
                return await many(calls[key], key[1], seconds, threads)

            print(runner.run(block()), flush=True)
        os._exit(0)  # the peers complain of what is not closed


async def many(call: Call, width: int, seconds: float, threads: ThreadPoolExecutor) -> float:
    done, busy, until = 0, time.process_time(), time.perf_counter() + seconds
    if inspect.iscoroutinefunction(call) or inspect.isawaitable(first := call()):

        async def worker() -> int:
            count = 0
            while time.perf_counter() < until:
                await call()
                count += 1
            return count

        if not inspect.iscoroutinefunction(call):
            await first
            done = 1
        done += sum(await asyncio.gather(*(worker() for _ in range(width))))
    else:

        def blocking() -> int:
            count = 0
            while time.perf_counter() < until:
                call()
                count += 1
            return count

        loop = asyncio.get_running_loop()
        jobs = [loop.run_in_executor(threads, blocking) for _ in range(width)]
        done = 1 + sum(await asyncio.gather(*jobs))
    return 1e6 * (time.process_time() - busy) / max(1, done)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def large(base: str, path: str) -> dict[str, float]:
    """Peak memory for a recording of 60 MB in a file, as a share of it."""
    from speechlab.client import AsyncClient

    shares = {}
    for name, transport in (("httpx2", "httpx2"), ("aiohttp", "aiohttp")):
        async with AsyncClient(base, transport=transport) as lab:
            await lab.transcribe(AUDIO)
            before = peak_mb()
            await lab.transcribe(path)
            shares[name] = (peak_mb() - before) / 60.0
    return shares


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
    await lab.close()
    return {"lost": sum(isinstance(o, SpeechLabError) for o in outcomes), "refused": refused, "s": took}


# All of them, in turns


def started(*options: str) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, __file__, "--as", "server", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    return server, f"http://127.0.0.1:{int(server.stdout.readline())}"


def child(*arguments: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout)


def asked(client: subprocess.Popen[str], **job: Any) -> float:
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(json.dumps(job) + "\n")
    client.stdin.flush()
    answer = client.stdout.readline()
    if not answer:
        raise SystemExit(f"{client.args} ended")
    return float(answer)


def told(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def compare(only: list[str], workloads: list[str], rounds: int, seconds: float) -> None:
    names = [name for name in MAKERS if not only or name in only or name == REFERENCE]
    there = [name for name in names if importlib.util.find_spec(MAKERS[name][0])]
    if REFERENCE not in there:
        raise SystemExit("the reference is aiohttp: pip install --group bench")
    server, base = started()
    clients = {
        name: subprocess.Popen(
            [sys.executable, __file__, "--as", "client", "--name", name, "--base", base],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ALLOCATION},
        )
        for name in there
    }
    try:
        for workload in workloads:
            print(f"\n| {CALLS[workload]} | " + " | ".join(f"{width} at once" for width in WIDTHS) + " |")
            print("|---|" + "---|" * len(WIDTHS))
            costs = {width: measured(clients, workload, width, rounds, seconds) for width in WIDTHS}
            for name in names:
                cells = [told_of(costs[width], name) for width in WIDTHS]
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    finally:
        for process in (*clients.values(), server):
            process.kill()
            process.wait()


def measured(
    clients: dict[str, subprocess.Popen[str]], workload: str, width: int, rounds: int, seconds: float
) -> dict[str, list[float]]:
    """CPU of each client in each round, in µs for a call."""
    costs: dict[str, list[float]] = {name: [] for name in clients}
    for _ in range(rounds):
        for name in random.sample(list(clients), len(clients)):
            costs[name].append(asked(clients[name], workload=workload, width=width, seconds=seconds))
    return costs


def told_of(costs: dict[str, list[float]], name: str) -> str:
    if name not in costs:
        return "not installed"
    reference = costs[REFERENCE]
    if name == REFERENCE:
        return f"{statistics.median(reference):,.0f} µs ({min(reference):,.0f}–{max(reference):,.0f}) = 1"
    return told([own / other for own, other in zip(costs[name], reference, strict=True)])


def compare_storms() -> None:
    results = {}
    for label, width in (("oracle", STORM_WIDTH), ("adaptive", 64)):
        server, base = started("--storm")
        results[label] = child("--as", "storm", "--base", base, "--width", str(width))
        server.kill()
        server.wait()
    ratio, found = results["adaptive"]["s"] / results["oracle"]["s"], results["adaptive"]
    print(
        f"storm of {STORM_CALLS} calls, {STORM_WIDTH} borne at once: {found['lost']:.0f} lost, "
        f"{found['refused']:.0f} refused, {ratio:.2f} times the time of an oracle that knows the limit"
    )


def compare_large() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.wav"
        path.write_bytes(wave(60_000_000))
        server, base = started()
        shares = child("--as", "large", "--base", base, "--path", str(path))
        server.kill()
        server.wait()
    listed = ", ".join(f"{share:.2f} ({name})" for name, share in shares.items())
    print(f"\na recording of 60 MB: peak memory grows by this share of the file: {listed}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each client has its turn")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long a turn is")
    parser.add_argument("--only", default="", help=f"which clients, between semicolons: {'; '.join(MAKERS)}")
    parser.add_argument("--calls", default=",".join(CALLS), help="which calls")
    for hidden in ("--as", "--name", "--width", "--base", "--path"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    parser.add_argument("--storm", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    role = getattr(given, "as")
    os.environ.pop("SPEECHLAB_MODE", None)
    if role == "server":
        asyncio.run(serve(given.storm))
    elif role == "client":
        blocks(given.name, given.base)
    elif role == "large":
        print(json.dumps(asyncio.run(large(given.base, given.path))))
    elif role == "storm":
        print(json.dumps(asyncio.run(storm(given.base, int(given.width)))))
    else:
        only = [name.strip() for name in given.only.split(";") if name.strip()]
        compare(only, given.calls.split(","), given.rounds, given.seconds)
        compare_large()
        compare_storms()


if __name__ == "__main__":
    main()
