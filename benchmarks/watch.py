"""How often a watched set raises a false alarm, and how soon a change: ``nice python benchmarks/watch.py``.

Each line simulates many runs of one set and tests after each of them (``metrics.sequential_test``). It prints the
share of series with an alarm in 200 runs in which nothing changes (5% would be right), and after how many runs a
doubling is found (median, and the latest of nine series in ten) that comes after 5, 20 and 100 runs. It takes about
five minutes of one core.
"""

from __future__ import annotations

import argparse

import numpy as np

from speechlab.metrics import sequential_test

Random = np.random.Generator
RUNS, AFTER, LATER = 200, (5, 20, 100), 40


def errors(random: Random, runs: int, rows: int, factor: np.ndarray) -> np.ndarray:
    """Errors of sentences of ten words, some of which are hard in every run; about 6% of the words."""
    hard = random.gamma(0.5, 1.2, rows)
    return random.poisson(hard * factor[:, None], (runs, rows)).clip(0, 10).astype(float)


def fixed(random: Random, runs: int, rows: int, factor: np.ndarray) -> np.ndarray:
    """The same with a system that answers a sentence alike in nine runs of ten."""
    values = errors(random, runs, rows, np.ones(runs))
    usual = errors(random, 1, rows, np.ones(1))
    alike = random.random((runs, rows)) < 0.9
    values = np.where(alike, usual, values)
    return np.where(factor[:, None] > 1, values + errors(random, runs, rows, np.ones(runs)), values)


def failures(random: Random, runs: int, rows: int, factor: np.ndarray) -> np.ndarray:
    """Rows without an answer, 5% of them."""
    return (random.random((runs, rows)) < 0.05 * factor[:, None]).astype(float)


def times(random: Random, runs: int, rows: int, factor: np.ndarray) -> np.ndarray:
    """One number for each run, its median time; whole runs are slower or faster by a quarter."""
    del rows
    return (random.lognormal(0, 0.25, runs) * factor)[:, None]


LINES = {
    "errors, 20 sentences": (errors, 20),
    "errors, 60 sentences": (errors, 60),
    "errors, 200 sentences": (errors, 200),
    "answers mostly alike, 60 sentences": (fixed, 60),
    "failed rows, 60 sentences": (failures, 60),
    "median time of a run": (times, 1),
}


def main() -> None:
    """Print one line for each kind of value."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=200, help="number of simulated series without a change")
    series = parser.parse_args().series
    print(
        "| values | series with a false alarm | doubling after 5 runs | after 20 | after 100 |\n|---|---|---|---|---|"
    )
    for name, (draw, rows) in LINES.items():
        random = np.random.default_rng(1)
        alarms = sum(
            bool(sequential_test(draw(random, RUNS, rows, np.ones(RUNS)), seed=number)["changed"].iloc[-1])
            for number in range(series)
        )
        cells = [f"{alarms / series:.1%}"]
        for before in AFTER:
            delays = []
            for number in range(max(10, series // 10)):
                factor = np.where(np.arange(before + LATER) < before, 1.0, 2.0)
                changed = sequential_test(draw(random, len(factor), rows, factor), seed=number)["changed"]
                found = changed.to_numpy()[before:]
                delays.append(int(found.argmax()) + 1 if found.any() else LATER + 1)
            middle, late = np.quantile(delays, [0.5, 0.9], method="higher")
            cells.append(" to ".join(f"> {LATER}" if run > LATER else f"{run}" for run in (middle, late)))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
