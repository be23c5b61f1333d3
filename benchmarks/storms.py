"""How much longer a batch takes than the best possible while its service refuses and fails, beside other ways.

    python benchmarks/storms.py [--only once,quota,…] [--ways batch,batch64,gather,openai] [--long] [--seeds 3]

A translation-like service in a process of its own plays a storm: it answers a call in 0.25 s and refuses at once.
Each way runs in a fresh process, once without a storm and then in it; only the second run counts. The best possible
is the time of a client that knows the service from the start: it is refused nothing that can be known, and spends no
processor time. So the first line, without a storm, says what this machine adds.

With ``L`` seconds a call, ``n`` rows, ``w`` calls at once, and no time for a refusal, the best possible is

===================  =====================================================================================
at most N at once    ``n / min(N, w) * L``
a bucket             ``(n - size) / rate + L``: it is full at first, and never again
a quota              ``(ceil(n / quota) - 1) * window + L``: the windows before the last one must be over
an outage            ``n / w * L + outage``: nothing is answered meanwhile
failures at random   ``n / w * L / (1 - p)``: ``1 / (1 - p)`` calls a row, and a failure takes as long as a reply
refusals at random   ``n / w * L``, or the waits of the row that is refused most often, whichever is longer: of n rows
                     one is refused ``log(n) / log(1 / p)`` times, and waits for ``Retry-After`` each time
===================  =====================================================================================

Peers: ``gather`` is aiohttp under a semaphore of 16, with up to ten tries, waits that double up to a minute and are
random, and ``Retry-After`` kept to, as people write with tenacity; ``openai`` is its SDK in 16 threads, with
``max_retries=10`` (2 if nobody asks for more).
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import importlib.util
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import translations
from translations import LANGS, NO_VOICES, TRANSLATED, Serving, packed, texts

if TYPE_CHECKING:
    from collections.abc import Callable

CALL_S = 0.25
ROUNDS = 32
NUMBER = re.compile(rb"sentence number (\d+)")
REFUSAL = b'{"code":7,"name":"ErrRateLimited","message":"not now"}'
WIDTHS = {"batch": 16, "batch64": 64, "gather": 16, "openai": 16}


@dataclass
class Refused:
    """A reply that is no translation.

    Attributes:
        status: Of HTTP.
        retry_after_s: What the header asks for, in seconds.
        after_s: How long it takes.
    """

    status: int
    retry_after_s: float | None = None
    after_s: float = 0.0


@dataclass
class Service:
    """What a service knows when it judges a call."""

    now: float = 0.0
    under_way: int = 0
    level: float | None = None
    filled: float = 0.0
    used: Counter[int] = field(default_factory=Counter)
    chance: random.Random = field(default_factory=random.Random)


@dataclass(frozen=True)
class Storm:
    """A storm: how a service judges a call, how many rows are sent into it, and the best possible time."""

    told: str
    rows: int
    judge: Callable[[Service], Refused | None]
    best_s: Callable[[int, int], float]
    wide: bool = False
    """Whether the calls at once are all that bounds it: then ``rows`` is of each of them."""
    long: bool = False
    """Whether it is measured on request only."""

    def rows_of(self, width: int) -> int:
        return self.rows * width if self.wide else self.rows


def calm() -> Storm:
    return Storm("no storm", ROUNDS, lambda _: None, lambda n, w: n / w * CALL_S, wide=True)


def at_once(most: int, header: float | None) -> Storm:
    def judge(service: Service) -> Refused | None:
        return Refused(429, header) if service.under_way >= most else None

    return Storm(
        f"{most} at once, {asked(header)}", ROUNDS * most, judge, lambda n, w: n / min(most, w) * CALL_S
    )


def bucket(rate: float, size: int, rows: int, header: bool) -> Storm:
    def judge(service: Service) -> Refused | None:
        level = size if service.level is None else service.level
        level = min(size, level + (service.now - service.filled) * rate)
        service.filled = service.now
        service.level = level - 1 if level >= 1 else level
        if level >= 1:
            return None
        return Refused(429, math.ceil((1 - level) / rate) if header else None)

    told = f"bucket of {size}, {rate:g}/s, {'Retry-After in whole seconds' if header else 'no header'}"
    return Storm(told, rows, judge, lambda n, _: (n - size) / rate + CALL_S, long=size == 1)


def quota(calls: int, window_s: float, rows: int, header: bool) -> Storm:
    def judge(service: Service) -> Refused | None:
        window = int(service.now // window_s)
        service.used[window] += 1
        if service.used[window] <= calls:
            return None
        return Refused(429, math.ceil((window + 1) * window_s - service.now) if header else None)

    told = f"{calls} in {window_s:g} s, {'Retry-After in whole seconds' if header else 'no header'}"
    windows = math.ceil(rows / calls) - 1
    return Storm(told, rows, judge, lambda *_: windows * window_s + CALL_S, long=window_s > 15)


def outage(seconds: float) -> Storm:
    def judge(service: Service) -> Refused | None:
        return Refused(503) if 1.0 <= service.now < 1.0 + seconds else None

    return Storm(
        f"an outage of {seconds:g} s",
        ROUNDS,
        judge,
        lambda n, w: n / w * CALL_S + seconds,
        wide=True,
        long=seconds > 5,
    )


def at_random(status: int, share: float, header: float | None, after_s: float) -> Storm:
    def judge(service: Service) -> Refused | None:
        return Refused(status, header, after_s) if service.chance.random() < share else None

    def best_s(n: int, w: int) -> float:
        waits = math.log(n) / math.log(1 / share) * (header or 0.0) + CALL_S
        return max(n / w * (CALL_S + after_s * share / (1 - share)), waits)

    return Storm(f"{status} at random, {share:.0%}, {asked(header)}", ROUNDS, judge, best_s, wide=True)


def asked(header: float | None) -> str:
    return "no header" if header is None else f"Retry-After: {header:g}"


STORMS = {
    "calm": calm(),
    **{f"once-{most}": at_once(most, None) for most in (1, 4, 16)},
    **{f"once-{most}-header": at_once(most, 1) for most in (1, 4, 16)},
    **{f"bucket{'-header' * header}": bucket(10, 10, 110, header) for header in (False, True)},
    **{f"single{'-header' * header}": bucket(10, 1, 101, header) for header in (False, True)},
    **{f"quota{'-header' * header}": quota(30, 12.0, 75, header) for header in (False, True)},
    **{f"minute{'-header' * header}": quota(30, 60.0, 75, header) for header in (False, True)},
    "outage-2": outage(2.0),
    "outage-30": outage(30.0),
    "random-503": at_random(503, 0.25, None, CALL_S),
    "random-429": at_random(429, 0.30, None, 0.0),
    "random-429-header": at_random(429, 0.30, 1, 0.0),
}


async def serve(storm: Storm, seed: int) -> None:
    """Play a storm from the first call on; what is not a call is asked for the books."""
    service, began = Service(chance=random.Random(seed)), math.inf
    done: Counter[bytes] = Counter()
    statuses: Counter[int] = Counter()

    async def reply(head: bytes, body: bytes) -> bytes:
        nonlocal began
        if not body:
            books = {
                "done": len(done),
                "twice": len([n for n in done.values() if n > 1]),
                "refused": statuses.total() - statuses[200],
            }
            return packed(200, json.dumps(books).encode()) if b"/books" in head else NO_VOICES
        began = min(began, time.monotonic())
        service.now = time.monotonic() - began
        refused = storm.judge(service)
        statuses[200 if refused is None else refused.status] += 1
        if refused is not None:
            await asyncio.sleep(refused.after_s)
            return packed(refused.status, REFUSAL, refused.retry_after_s)
        service.under_way += 1
        await asyncio.sleep(CALL_S)
        service.under_way -= 1
        found = NUMBER.search(body)
        done[found[1] if found else b""] += 1
        return TRANSLATED

    await translations.serve(reply)


def batch(url: str, count: int, concurrency: int | None = None) -> int:
    """``sl.batch.translate``; returns the rows that came through, as all ways do."""
    import pandas as pd

    from speechlab import batch as sl_batch
    from speechlab.client import Client

    options = {} if concurrency is None else {"concurrency": concurrency}
    with tempfile.TemporaryDirectory() as folder, Client(base_url=url) as lab:
        frame = pd.DataFrame({"text": texts(count)})
        table = sl_batch.translate(frame, lab, store=folder, progress=False, **LANGS, **options)
    return int(table["translation"].notna().sum())


def gather(url: str, count: int) -> int:
    import aiohttp

    chance = random.Random(1)

    async def ask(session: aiohttp.ClientSession, at_once: asyncio.Semaphore, text: str) -> str | None:
        body = {"model": "re/verse", "messages": [{"role": "user", "content": text}]}
        async with at_once:
            for tried in range(10):
                wait_s = chance.uniform(0, min(60.0, 2.0**tried))
                try:
                    async with session.post("/chat/completions", json=body) as reply:
                        if reply.status == 200:
                            return str((await reply.json())["choices"][0]["message"]["content"])
                        if "Retry-After" in reply.headers:
                            wait_s = float(reply.headers["Retry-After"]) + chance.uniform(0, 0.25)
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(wait_s)
        return None

    async def work() -> int:
        at_once = asyncio.Semaphore(16)
        async with aiohttp.ClientSession(url) as session:
            done = await asyncio.gather(*(ask(session, at_once, text) for text in texts(count)))
        return len([one for one in done if one is not None])

    return asyncio.run(work())


def openai(url: str, count: int) -> int:
    from openai import OpenAI, OpenAIError

    client = OpenAI(base_url=url, api_key="none", max_retries=10)

    def one(text: str) -> str | None:
        message = {"role": "user", "content": text}
        try:
            found = client.chat.completions.create(model="re/verse", messages=[message])
        except OpenAIError:
            return None
        return found.choices[0].message.content

    with ThreadPoolExecutor(16) as pool:
        return len([one for one in pool.map(one, texts(count)) if one is not None])


WAYS = {
    "batch": batch,
    "batch64": functools.partial(batch, concurrency=64),
    "gather": gather,
    "openai": openai,
}


def measure(storm: str, way: str, seed: int) -> dict[str, float] | None:
    """Run one way in a storm, in a process of its own."""
    rows = STORMS[storm].rows_of(WIDTHS[way])

    def serving(kind: str) -> Serving:
        return Serving("--serve", kind, "--seeds", str(seed))

    with serving("calm") as before, serving(storm) as url:
        command = [sys.executable, __file__, "--way", way, "--urls", before, url, "--rows", str(rows)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{storm}, {way}: {done.stderr.strip().splitlines()[-1]}")
        return None
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {**measured, "ratio": measured["seconds"] / STORMS[storm].best_s(rows, WIDTHS[way])}


def run(way: str, before: str, url: str, rows: int) -> None:
    """One way: a few rows that load what a program loads once, then those that count."""
    import urllib.request

    WAYS[way](before, 20)
    began = time.perf_counter()
    ok = WAYS[way](url, rows)
    seconds = time.perf_counter() - began
    with urllib.request.urlopen(f"{url}/books") as reply:
        books = json.load(reply)
    print(json.dumps({"seconds": seconds, "ok": ok, "errors": rows - ok, **books}))


def compare(storms: list[str], ways: list[str], seeds: int, jobs: int) -> None:
    """Measure all ways in all storms, and print each as soon as it is known."""
    heads = f"{'best':>7} {'took':>7} {'ratio':>6} {'ok':>5} {'errors':>6} {'twice':>5} {'refused':>7}"
    print(f"{'storm':44} {'way':8} {heads}")
    with ThreadPoolExecutor(jobs) as pool:
        runs = [(name, way) for name in storms for way in ways]
        parts = {one: [pool.submit(measure, *one, seed) for seed in range(seeds)] for one in runs}
        for (name, way), some in parts.items():
            found = [measured for part in some if (measured := part.result())]
            if not found:
                continue
            middle = {key: statistics.median(one[key] for one in found) for key in found[0]}
            errors, twice = (max(one[key] for one in found) for key in ("errors", "twice"))
            print(
                f"{STORMS[name].told:44} {way:8} {middle['seconds'] / middle['ratio']:7.2f} "
                f"{middle['seconds']:7.2f} {middle['ratio']:6.2f} {middle['ok']:5.0f} {errors:6.0f} {twice:5.0f} "
                f"{middle['refused']:7.0f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="storms whose names begin so, between commas")
    parser.add_argument("--ways", default="batch,batch64,gather")
    parser.add_argument(
        "--seeds", type=int, default=1, help="runs of each; told is the median, and the most errors"
    )
    parser.add_argument(
        "--long", action="store_true", help="also quotas of a real minute, and an outage of 30 s"
    )
    parser.add_argument(
        "--jobs", type=int, default=4, help="storms at once: they wait for most of their time"
    )
    for hidden in ("--serve", "--way"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--urls", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(STORMS[given.serve], given.seeds))
    elif given.way:
        run(given.way, *given.urls, given.rows)
    else:
        begins = tuple(given.only.split(","))
        storms = [
            name
            for name, storm in STORMS.items()
            if name.startswith(begins) and (given.long or not storm.long)
        ]
        ways = [way for way in given.ways.split(",") if way != "openai" or importlib.util.find_spec("openai")]
        compare(storms, ways, given.seeds, given.jobs)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main()
