"""How often a comparison of two reports finds a change: ``nice python benchmarks/changes.py [NAME…]``.

Each line simulates two runs of a study of two voices, and compares their reports by ``report.compare``. It prints the
share of comparisons that call a voice worse or better, slower or faster, where nothing has changed (5% would be
right), and the share that call one worse or slower where both voices have become so by 10, 20 and 50%. All lines
take about half an hour of one core; names choose lines by their beginning.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from speechlab.evaluate import Report
from speechlab.metrics import score

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.evaluate import Changes

Random = np.random.Generator
VOICES = ("anna", "ben")
WORDS = [f"w{number}" for number in range(20)]
RATE = 0.08
"""Share of the words that are wrong before a change."""
LONGER = (1.0, 1.1, 1.2, 1.5)
"""How many times as many errors, or as much time, there are after a change."""

# Scored once: a call of ``score`` for each report would take most of the time.
SCORED = score(
    pd.DataFrame(
        {
            "text": " ".join(WORDS),
            "hypothesis": [" ".join(["x"] * wrong + WORDS[wrong:]) for wrong in range(len(WORDS) + 1)],
            "language": "en",
        }
    ),
    normalize=None,
)


# -- errors: of 20 words in each row of both voices, shape (voices, rows)


def alike(random: Random, rows: int, factor: float) -> np.ndarray:
    """Words that go wrong one by one."""
    return random.binomial(len(WORDS), RATE * factor, (len(VOICES), rows))


def suited(random: Random, rows: int, factor: float) -> np.ndarray:
    """Rows that suit the runs differently."""
    rates = RATE * factor * np.exp(random.normal(0, 0.6, (len(VOICES), rows)))
    return random.binomial(len(WORDS), rates.clip(0, 0.9))


def bursts(random: Random, rows: int, factor: float) -> np.ndarray:
    """Now and then a whole row."""
    whole = random.random((len(VOICES), rows)) < 0.05 * factor
    return np.where(whole, len(WORDS), random.binomial(len(WORDS), 0.03 * factor, whole.shape))


def report_of(errors: np.ndarray) -> Report:
    """The report of a run with so many errors."""
    rows = SCORED.iloc[errors.ravel()].reset_index(drop=True)
    count = errors.shape[1]
    names = np.repeat(VOICES, count)
    ids = [f"row {row}" for row in range(count)] * len(VOICES)
    made = {"id": ids, "voice": names, "voice_name": names, "gender": "", "audio": None, "duration_s": 6.0}
    return Report.of_scores("Run", rows.assign(**made, status="ok", error=None, loop=False))


def of_errors(
    make: Callable[[Random, int, float], np.ndarray], rows: int
) -> Callable[[Random, float], Changes]:
    def run(random: Random, factor: float) -> Changes:
        return report_of(make(random, rows, factor)).compare(report_of(make(random, rows, 1.0)))

    return run


# -- times of calls


NO_ERRORS = np.zeros((len(VOICES), 1), dtype=int)


def timed(random: Random, calls: int, factor: float, correlation: float) -> Report:
    """The report of a run whose calls differ by 15%, each as the call before it to some extent."""
    noise = random.normal(0, 0.15, calls * len(VOICES))
    for call in range(1, len(noise)):
        noise[call] = correlation * noise[call - 1] + math.sqrt(1 - correlation**2) * noise[call]
    times = factor * np.exp(noise)
    speed = pd.DataFrame(
        {
            "voice": VOICES * calls,
            "voice_name": VOICES * calls,
            "language": "en",
            "text": [f"text {call // len(VOICES)}" for call in range(len(times))],
            "turn": [call // len(VOICES) for call in range(len(times))],
            "total_s": times,
            "duration_s": 2.0,
            "rtf": times / 2,
            "concurrency": 1,
            "error": None,
        }
    )
    base = report_of(NO_ERRORS)
    return Report.of_scores("Run", base.table, speed=speed)


def of_times(calls: int, correlation: float = 0.0) -> Callable[[Random, float], Changes]:
    def run(random: Random, factor: float) -> Changes:
        return timed(random, calls, factor, correlation).compare(timed(random, calls, 1.0, correlation))

    return run


LINES: dict[str, Callable[[Random, float], Changes]] = {
    "errors, 50 rows, 8% wrong": of_errors(alike, 50),
    "errors, 50 rows that suit the runs differently (log sd 0.6)": of_errors(suited, 50),
    "errors, 50 rows, one in twenty wholly wrong": of_errors(bursts, 50),
    "errors, 200 rows, 8% wrong": of_errors(alike, 200),
    "times of 6 calls of each voice, which differ by 15%": of_times(6),
    "times of 20 calls": of_times(20),
    "times of 6 calls, correlation 0.5": of_times(6, 0.5),
    "times of 20 calls, correlation 0.5": of_times(20, 0.5),
    "times of 6 calls, correlation 0.9": of_times(6, 0.9),
    "times of 20 calls, correlation 0.9": of_times(20, 0.9),
}


def found(changes: Changes, *, changed: bool) -> bool:
    """Whether a comparison says what it is counted for."""
    if changed:
        return changes.worse or changes.slower
    verdicts = [*changes.summary["verdict"], *(changes.speed["verdict"] if len(changes.speed) else ())]
    return bool({"worse", "better", "slower", "faster"} & set(verdicts))


def main() -> int:
    """Run the lines that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of lines; all without")
    parser.add_argument("--simulations", type=int, default=500)
    asked = parser.parse_args()
    for title, run in LINES.items():
        if asked.names and not title.startswith(tuple(asked.names)):
            continue
        shares = []
        for factor in LONGER if "correlation" not in title else LONGER[:1]:
            changes = (run(np.random.default_rng(seed), factor) for seed in range(asked.simulations))
            said = sum(found(one, changed=factor > 1) for one in changes)
            what = "no change" if factor == 1 else f"{factor - 1:.0%} more"
            shares.append(f"{what} {100 * said / asked.simulations:.1f}%")
        print(f"{title}: {', '.join(shares)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
