"""What a system of functions costs: rows a second of a batch, beside the bare loop over the same batches.

    python benchmarks/systems.py [--rows 1600] [--pairs 5]

The function costs what a model on a GPU does: a fixed time for each call, and a small one for each row, in which the
interpreter is free. Both ways are measured in turns, after one run of each that is not counted, with the results in a
store and without one asked twice. A ratio of 1 is that of the bare loop. Ratios tell something; seconds belong to one
machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time

import numpy as np
import pandas as pd

import speechlab as sl

BATCH_SIZE = 32
CALL_S, ROW_S = 0.2, 0.005


def work(rows: list) -> list[str]:
    """Take the time of a model."""
    time.sleep(CALL_S + ROW_S * len(rows))
    return [f"a text of {len(getattr(row, 'samples', row))}" for row in rows]


def run_bare_loop(rows: list) -> None:
    """Call the function batch by batch."""
    for start in range(0, len(rows), BATCH_SIZE):
        work(rows[start : start + BATCH_SIZE])


def measure(operation: str, rows: list, pairs: int) -> None:
    """Run both ways in turns, and print the ratios."""
    function = {f"{operation}_batch": work}
    column = "audio" if operation == "transcribe" else "text"
    languages = {} if column == "audio" else {"source_lang": "en", "target_lang": "ja"}
    ratios = []
    with sl.system("model", **function, batch_size=BATCH_SIZE, version="1") as lab:
        for number in range(pairs + 1):
            began = time.perf_counter()
            run_bare_loop(rows)
            bare_s = time.perf_counter() - began
            with tempfile.TemporaryDirectory() as folder:
                frame = pd.DataFrame({column: pd.Series(rows, dtype=object)})
                began = time.perf_counter()
                table = getattr(sl.batch, operation)(frame, lab, **languages, store=folder, progress=False)
                took_s = time.perf_counter() - began
            assert (table["status"] == "ok").all(), table["error"].dropna().tolist()
            if number:
                ratios.append(bare_s / took_s)
                print(f"{operation}: {len(rows) / bare_s:,.0f} and {len(rows) / took_s:,.0f} rows a second")
    print(
        f"{operation}, {len(rows):,} rows in batches of {BATCH_SIZE}: median {statistics.median(ratios):.2f}\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_600)
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    chance = np.random.default_rng(20261128)
    lengths = chance.integers(1_600, 16_000, arguments.rows)
    sounds = [sl.AudioClip(chance.normal(0, 0.1, length).astype("float32"), 16_000) for length in lengths]
    measure("translate", [f"text number {number}" for number in range(arguments.rows)], arguments.pairs)
    measure("transcribe", sounds, arguments.pairs)
