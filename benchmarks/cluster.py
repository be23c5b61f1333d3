"""What a Dask cluster costs where a tenth of the calls are slow: two workers of 8 beside one process of 16.

    python benchmarks/cluster.py [--rows 160] [--pairs 5]

A translation-like service answers in a process of its own: in 0.2 s, or in 2 s for every tenth text. Both ways are
measured in turns, after one run of each that is not counted. Ratios tell something; seconds belong to one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import tempfile
import time

import translations
from translations import LANGS, NO_VOICES, TRANSLATED, Serving

QUICK_S, SLOW_S = 0.2, 2.0


async def serve() -> None:
    """Answer, every tenth text slowly."""

    async def reply(_: bytes, body: bytes) -> bytes:
        if not body:
            return NO_VOICES
        await asyncio.sleep(SLOW_S if re.search(rb"number \d*3\b", body) else QUICK_S)
        return TRANSLATED

    await translations.serve(reply)


def measure(rows: int, pairs: int) -> None:
    """Run both ways in turns, and print the ratios."""
    import pandas as pd
    from distributed import Client as Executor
    from distributed import LocalCluster

    from speechlab import batch
    from speechlab.client import Client

    frame = pd.DataFrame({"text": [f"number {number}" for number in range(rows)]})
    given = {**LANGS, "progress": False}
    best_s = (rows // 10 * SLOW_S + (rows - rows // 10) * QUICK_S) / 16
    ratios = []
    with (
        Serving("--serve") as url,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Executor(cluster) as executor,
        Client(url) as lab,
    ):
        ways = {"one": {"concurrency": 16}, "two": {"concurrency": 8, "executor": executor}}
        for number in range(pairs + 1):
            took = {}
            for name, options in ways.items():
                with tempfile.TemporaryDirectory() as folder:
                    began = time.perf_counter()
                    table = batch.translate(frame, lab, store=folder, **given, **options)
                    took[name] = time.perf_counter() - began
                    assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
            if number:
                ratios.append(took["two"] / took["one"])
                print(f"one process {took['one']:.2f} s, two workers {took['two']:.2f} s: {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}; no way can be faster than {best_s:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=160)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--serve", action="store_true")
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve())
    else:
        measure(arguments.rows, arguments.pairs)
