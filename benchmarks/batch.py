"""What a batch's bookkeeping costs, beside the bare client and other ways to do the same.

    python benchmarks/batch.py [--rows 20000] [--large 100000] [--only gather,batch,…] [--pairs 5]

A translation-like service answers on loopback from a process of its own, as fast as it can. Each way runs in a fresh
process, so that its peak memory is its own. Ratios tell something on any machine; seconds only on one.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import translations
from translations import LANGS, NO_VOICES, TRANSLATED, Serving, packed, texts

REFUSALS = {
    429: b'{"code":7,"name":"ErrRateLimited","message":"slow down"}',
    500: b'{"code":8,"name":"E","message":"x"}',
}


async def serve(rough: bool) -> None:
    """Answer; if rough, 30% of calls by 429, 5% by 500, and close 2% of the connections."""
    chance = random.Random(1)

    async def reply(_: bytes, body: bytes) -> bytes:
        if not body:
            return NO_VOICES
        drawn = chance.random() if rough else 1.0
        if drawn < 0.02:
            return b""
        if drawn < 0.37:
            status = 429 if drawn < 0.32 else 500
            return packed(status, REFUSALS[status])
        return TRANSLATED

    await translations.serve(reply)


def gather(url: str, count: int, _: Path) -> int:
    from speechlab.client import AsyncClient

    async def work() -> int:
        async with AsyncClient(base_url=url) as lab:
            done = await asyncio.gather(*(lab.translate(text, **LANGS) for text in texts(count)))
        return len([one.text for one in done])

    return asyncio.run(work())


def batch(url: str, count: int, folder: Path) -> int:
    import pandas as pd

    from speechlab import batch as sl_batch
    from speechlab.client import Client

    with Client(base_url=url) as lab:
        frame = pd.DataFrame({"text": texts(count)})
        table = sl_batch.translate(
            frame, lab, store=folder / "store", concurrency=16, progress=False, **LANGS
        )
    return int(table["translation"].notna().sum())


def from_file(url: str, count: int, folder: Path) -> int:
    from speechlab import batch as sl_batch
    from speechlab.client import Client

    path = folder / f"rows-{count}.csv"
    if not path.exists():
        with path.open("w") as file:
            file.write("text\n")
            file.writelines(f'"{text}"\n' for text in texts(count))
    with Client(base_url=url) as lab:
        plan = sl_batch.plan_translation(path, lab, store=folder / f"file-{count}", **LANGS)
        run = sl_batch.run(plan, lab, concurrency=16, progress=False)
    return int(run.manifest["rows"] - run.manifest["statuses"].get("error", 0))


def openai(url: str, count: int, _: Path) -> int:
    from concurrent.futures import ThreadPoolExecutor

    from openai import OpenAI

    client = OpenAI(base_url=url, api_key="none")

    def one(text: str) -> str | None:
        message = {"role": "user", "content": text}
        return client.chat.completions.create(model="re/verse", messages=[message]).choices[0].message.content

    with ThreadPoolExecutor(16) as pool:
        return len(list(pool.map(one, texts(count))))


def datasets(url: str, count: int, _: Path) -> int:
    from datasets import Dataset
    from speechlab.client import AsyncClient

    lab = AsyncClient(base_url=url)

    async def one(row: dict[str, str]) -> dict[str, str]:
        return {"translation": (await lab.translate(row["text"], **LANGS)).text}

    return len(Dataset.from_dict({"text": texts(count)}).map(one))


NEEDS = {
    "gather": ["speechlab.client", "httpx2"],
    "batch": ["speechlab.batch", "speechlab.client", "httpx2", "pyarrow.parquet", "pandas"],
    "file": ["speechlab.batch", "speechlab.client", "httpx2", "pyarrow.parquet", "pandas"],
    "openai": ["openai"],
    "datasets": ["datasets", "speechlab.client"],
}
WAYS = {"gather": gather, "batch": batch, "file": from_file, "openai": openai, "datasets": datasets}


def measure(way: str, url: str, count: int, folder: Path) -> dict[str, float] | None:
    """Run one way in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--way",
        way,
        "--url",
        url,
        "--rows",
        str(count),
        "--folder",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{way}: {done.stderr.strip().splitlines()[-1]}")
        return None
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def told(name: str, measured: dict[str, float] | None, base: float | None = None) -> None:
    if measured:
        ratio = f"{measured['seconds'] / base:6.2f} x" if base else " " * 8
        rate = measured["rows"] / measured["seconds"]
        print(
            f"{name:34} {rate:8.0f} rows/s {ratio} {measured['peak_mb']:7.0f} MB  {measured['cpu_s']:6.1f} s CPU"
        )


def cpu_s(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--only", default="gather,batch,openai,datasets,rough,large")
    parser.add_argument("--pairs", type=int, default=0, help="only gather and batch, in turns, so many times")
    for hidden in ("--way", "--url", "--folder", "--serve"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve == "rough"))
    elif given.way:
        for module in NEEDS[given.way]:  # what a program imports once is no part of what a row costs
            importlib.import_module(module)
        before = resource.getrusage(resource.RUSAGE_SELF)
        began = time.perf_counter()
        done = WAYS[given.way](given.url, given.rows, Path(given.folder))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        seconds = time.perf_counter() - began
        facts = {"peak_mb": usage.ru_maxrss / 1024, "cpu_s": cpu_s(usage) - cpu_s(before)}
        print(json.dumps({"rows": done, "seconds": seconds, **facts}))
    else:
        compare(given.rows, given.large, set(given.only.split(",")), given.pairs)


def in_turns(url: str, count: int, pairs: int, folder: Path) -> None:
    """The median of ratios of neighbors in time, which other work on the machine bends least."""
    ratios = []
    for number in range(pairs):
        base = measure("gather", url, count, folder)
        work = measure("batch", url, count, folder / str(number))
        if base and work:
            ratios.append(work["cpu_s"] / base["cpu_s"])
    shown = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
    print(f"processor time of batch by that of gather: median {statistics.median(ratios):.2f} of {shown}")


def compare(count: int, large: int, only: set[str], pairs: int) -> None:
    with (
        Serving("--serve", "calm") as url,
        Serving("--serve", "rough") as rough_url,
        tempfile.TemporaryDirectory() as name,
    ):
        folder = Path(name)
        if pairs:
            in_turns(url, count, pairs, folder)
            return
        base = measure("gather", url, count, folder) if "gather" in only else None
        per = base["seconds"] if base else None
        told(f"gather over the client, {count:,}", base)
        if "batch" in only:
            told(f"speechlab.batch, {count:,}", measure("batch", url, count, folder), per)
            told("  the same again", measure("batch", url, count, folder), per)
        for way in ("openai", "datasets"):
            if way in only and importlib.util.find_spec(way):
                told(f"{way}, {count:,}", measure(way, url, count, folder), per)
        if "rough" in only:
            few = count // 10
            calm = measure("batch", url, few, folder / "a")
            told(f"well behaved, {few:,}", calm)
            rough = measure("batch", rough_url, few, folder / "b")
            told("  30% 429, 5% 500, 2% hung up", rough, calm["seconds"] if calm else None)
        if "large" in only:
            told(f"from a file, {count:,}", measure("file", url, count, folder))
            first = measure("file", url, large, folder)
            told(f"from a file, {large:,}", first)
            told(
                "  the same again",
                measure("file", url, large, folder),
                first["seconds"] if first else None,
            )


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main()
