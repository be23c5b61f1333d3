"""What a Dask cluster costs: two workers of 8 beside one process of 16, started as the docs say.

    python benchmarks/cluster.py [--slow 1600] [--quick 20000] [--pairs 5]
    python benchmarks/cluster.py --grow 200000

A translation-like service answers in a process of its own: in 0.2 s, or at once. Both ways are measured in turns,
after one run of each that is not counted. A ratio above 1 means that the cluster is slower. The processor time is
that of the driver and of the scheduler, as a share of that of one process without a cluster, which makes the calls.
``--grow`` runs files of so many rows, and of a tenth of them, and prints the memory of the driver.
Ratios tell something; seconds belong to one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import translations
from translations import LANGS, NO_VOICES, TRANSLATED, Serving

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOW_S = 0.2
_TICKS = os.sysconf("SC_CLK_TCK")


async def serve(delay_s: float) -> None:
    """Answer after a time."""

    async def reply(_: bytes, body: bytes) -> bytes:
        if not body:
            return NO_VOICES
        if delay_s:
            await asyncio.sleep(delay_s)
        return TRANSLATED

    await translations.serve(reply)


def processor_s(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def cluster(workers: int) -> Iterator[tuple[str, int]]:
    """A scheduler and workers as processes of their own: the scheduler's address, and its process id."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:

        def start(command: str, *arguments: str) -> subprocess.Popen[bytes]:
            line = [sys.executable, "-m", "dask", command, *arguments, "--no-dashboard"]
            made = subprocess.Popen(line, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(made.wait)
            stack.callback(made.kill)
            return made

        file = Path(folder, "scheduler.json")
        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        for _ in range(workers):
            start("worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny")
        yield str(file), scheduler.pid


def measure(delay_s: float, rows: int, pairs: int) -> None:
    """Run both ways in turns, and print the ratios."""
    import pandas as pd
    from distributed import Client as Executor

    from speechlab import batch
    from speechlab.client import Client

    frame = pd.DataFrame({"text": translations.texts(rows)})
    times, shares = [], []
    with (
        Serving("--serve", str(delay_s)) as url,
        cluster(2) as (file, scheduler),
        Executor(scheduler_file=file) as executor,
        Client(url) as lab,
    ):
        executor.wait_for_workers(2)
        ways = {"one": {"concurrency": 16}, "two": {"concurrency": 8, "executor": executor}}
        for number in range(pairs + 1):
            took, used = {}, {}
            for name, options in ways.items():
                with tempfile.TemporaryDirectory() as folder:
                    began, spent = time.perf_counter(), time.process_time() + processor_s(scheduler)
                    given = {**LANGS, **options, "store": folder, "progress": False}
                    table = batch.translate(frame, lab, **given)
                    took[name] = time.perf_counter() - began
                    used[name] = time.process_time() + processor_s(scheduler) - spent
                    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
            if number:
                times.append(took["two"] / took["one"])
                shares.append(used["two"] / used["one"])
                rates = {name: rows / seconds for name, seconds in took.items()}
                print(
                    f"{rates['one']:,.0f} and {rates['two']:,.0f} rows a second: {times[-1]:.2f} of the time, "
                    f"{shares[-1]:.2f} of the processor time ({used['two'] / rows * 1e6:.0f} µs a row)"
                )
    time_, share = statistics.median(times), statistics.median(shares)
    print(
        f"calls of {delay_s:g} s, {rows:,} rows: median {time_:.2f} of the time, {share:.2f} of the processor time\n"
    )


def grow(rows: int) -> None:
    """Run files in processes of their own, and print their memory."""
    for count in (rows // 10, rows):
        line = [sys.executable, sys.argv[0], "--drive", str(count)]
        print(subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip())


def drive(rows: int) -> None:
    """Run a folder of Parquet files on a cluster, and print the memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from distributed import Client as Executor

    from speechlab import batch
    from speechlab.client import Client

    with (
        tempfile.TemporaryDirectory() as folder,
        Serving("--serve", "0") as url,
        cluster(2) as (file, _),
        Executor(scheduler_file=file) as executor,
        Client(url) as lab,
    ):
        source = Path(folder, "in")
        source.mkdir()
        for start in range(0, rows, 10_000):
            texts = [
                f"This is sentence number {n}, of the usual length." for n in range(start, start + 10_000)
            ]
            pq.write_table(pa.table({"text": texts[: rows - start]}), source / f"{start:09}.parquet")
        executor.wait_for_workers(2)
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        plan = batch.plan_translation(source, lab, **LANGS, store=Path(folder, "store"), progress=False)
        run = batch.run(plan, lab, executor=executor, concurrency=8, progress=False)
        took = time.perf_counter() - began
        run.export(Path(folder, "out"))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert run.manifest["statuses"]["ok"] == rows, run.manifest
        print(
            f"{rows:,} rows: {before // 1024} MB before, at most {after // 1024} MB; {rows / took:,.0f} rows a second"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", type=int, default=1_600)
    parser.add_argument("--quick", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--grow", type=int, default=0)
    parser.add_argument("--drive", type=int, default=0)
    parser.add_argument("--serve", type=float)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        asyncio.run(serve(arguments.serve))
    elif arguments.drive:
        drive(arguments.drive)
    elif arguments.grow:
        grow(arguments.grow)
    else:
        for delay_s, rows in ((SLOW_S, arguments.slow), (0.0, arguments.quick)):
            if rows:
                measure(delay_s, rows, arguments.pairs)
