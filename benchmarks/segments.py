"""How fast overlap joins are, against other libraries, in one run: ``python benchmarks/segments.py [--quick]``.

All candidates get the same two tables of recordings, starts and ends, and have to say which rows share time. They run
in turn, several times, and the best time of each counts (several use more than one core, so it is time on the wall).
Times of different machines cannot be compared, so what is printed are ratios to speechlab: above 1 is slower. Each
must find as many pairs as speechlab does. Candidates that are not installed are named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from speechlab.segments import overlap_join

Candidate = Callable[[pd.DataFrame, pd.DataFrame], int]
WITHIN = 1.2
"""Speechlab is to take at most this many times the fastest one's time."""


def table(rows: int, files: int, seed: int, *, ordered: bool, long: float = 0.0) -> pd.DataFrame:
    """Segments of 0.2 to 6 s, so that each shares time with one or two of another table.

    Args:
        rows: How many there are in all.
        files: How many recordings they are in.
        seed: Of the dice.
        ordered: Whether they come by file and start.
        long: Share of segments that are a hundred times as long.
    """
    dice = np.random.default_rng(seed)
    code = dice.integers(0, files, rows)
    start = np.round(dice.uniform(0, rows / files * 4, rows), 6)
    length = dice.uniform(0.2, 6, rows) * np.where(dice.random(rows) < long, 100, 1)
    names = pd.Series([f"corpus/recording-{number:05d}.wav" for number in code], dtype="str")
    made = pd.DataFrame({"file": names, "start": start, "end": np.round(start + length, 6)})
    return made.sort_values(["file", "start"], ignore_index=True) if ordered else made


def keyed(a: pd.DataFrame, b: pd.DataFrame) -> list[np.ndarray]:
    """One whole number for file and time, as a careful user would make it."""
    codes = pd.factorize(pd.concat([a["file"], b["file"]], ignore_index=True))[0].astype(np.int64)
    times = [
        np.rint(one[name].to_numpy() * 1e6).astype(np.int64) for one in (a, b) for name in ("start", "end")
    ]
    span = max(int(time_.max()) for time_ in times) + 1
    first, second = codes[: len(a)] * span, codes[len(a) :] * span
    return [first + times[0], first + times[1], second + times[2], second + times[3]]


# -- the same work by each


def speechlab(a: pd.DataFrame, b: pd.DataFrame) -> int:
    return len(overlap_join(a, b))


def ncls(a: pd.DataFrame, b: pd.DataFrame) -> int:
    from ncls import NCLS

    a_start, a_end, b_start, b_end = keyed(a, b)
    tree = NCLS(b_start, b_end, np.arange(len(b_start)))
    left, _ = tree.all_overlaps_both(a_start, a_end, np.arange(len(a_start)))
    return len(left)


def bioframe(a: pd.DataFrame, b: pd.DataFrame) -> int:
    from bioframe import overlap

    names = ("file", "start", "end")
    whole = [
        one.assign(**{name: np.rint(one[name] * 1e6).astype(np.int64) for name in ("start", "end")})
        for one in (a, b)
    ]
    found = overlap(*whole, how="inner", cols1=names, cols2=names, return_input=False, return_index=True)
    return len(found)


def duckdb_equality(a: pd.DataFrame, b: pd.DataFrame) -> int:
    return _duckdb(a, b, 'a.file = b.file AND a.start < b."end" AND b.start < a."end"')


def duckdb_key(a: pd.DataFrame, b: pd.DataFrame) -> int:
    keys = keyed(a, b)
    one, other = (pd.DataFrame({"start": keys[at], "end": keys[at + 1]}) for at in (0, 2))
    return _duckdb(one, other, 'a.start < b."end" AND b.start < a."end"')


def _duckdb(a: pd.DataFrame, b: pd.DataFrame, condition: str) -> int:
    import duckdb

    connection = duckdb.connect()
    try:
        for name, one in (("a", a), ("b", b)):
            connection.register(name, one.reset_index(names="row"))
        query = f"SELECT a.row AS left_row, b.row AS right_row FROM a JOIN b ON {condition}"
        return len(connection.execute(query).fetchnumpy()["left_row"])
    finally:
        connection.close()


def polars_key(a: pd.DataFrame, b: pd.DataFrame) -> int:
    import polars

    keys = keyed(a, b)
    one = polars.DataFrame({"start": keys[0], "end": keys[1]}).with_row_index("left")
    other = polars.DataFrame({"start_b": keys[2], "end_b": keys[3]}).with_row_index("right")
    column = polars.col
    found = one.join_where(other, column("start") < column("end_b"), column("start_b") < column("end"))
    return found.height


def polars_equality(a: pd.DataFrame, b: pd.DataFrame) -> int:
    import polars

    one, other = (polars.from_pandas(table_).with_row_index("row") for table_ in (a, b))
    column = polars.col
    found = one.join_where(
        other,
        column("file") == column("file_right"),
        column("start") < column("end_right"),
        column("start_right") < column("end"),
    )
    return found.height


def pandas_merge(a: pd.DataFrame, b: pd.DataFrame) -> int:
    both = a.merge(b, on="file", suffixes=("", "_b"))
    return len(both[(both["start"] < both["end_b"]) & (both["start_b"] < both["end"])])


CANDIDATES: dict[str, tuple[Candidate, str]] = {
    "speechlab": (speechlab, "speechlab"),
    "NCLS on one key": (ncls, "ncls"),
    "bioframe": (bioframe, "bioframe"),
    "DuckDB, file equal": (duckdb_equality, "duckdb"),
    "DuckDB on one key": (duckdb_key, "duckdb"),
    "Polars, file equal": (polars_equality, "polars"),
    "Polars on one key": (polars_key, "polars"),
    "pandas merge": (pandas_merge, "pandas"),
}
CROSSING = {"DuckDB, file equal", "Polars, file equal", "pandas merge"}
"""Candidates that form every pair of rows of a recording: hopeless within one recording."""


def measure(a: pd.DataFrame, b: pd.DataFrame, names: list[str], rounds: int) -> dict[str, float]:
    """Best seconds of each candidate; all have to find the same number of pairs."""
    best: dict[str, float] = {}
    wanted = speechlab(a, b)
    for _ in range(rounds):
        for name in names:
            begin = time.perf_counter()
            found = CANDIDATES[name][0](a, b)
            spent = time.perf_counter() - begin
            if found != wanted:
                message = f"{name} found {found:,} pairs, speechlab {wanted:,}"
                raise AssertionError(message)
            best[name] = min(best.get(name, spent), spent)
            if spent > 20 * best["speechlab"] and rounds > 2:  # no need to see that again
                names = [other for other in names if other != name]
    return best


def main() -> None:
    options: Any = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="20,000 rows instead of 200,000")
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    rows = 20_000 if chosen.quick else 200_000
    present = [name for name, (_, package) in CANDIDATES.items() if find_spec(package)]
    absent = [name for name in CANDIDATES if name not in present]
    if absent:
        print(f"not installed, so not compared: {', '.join(absent)}")
    for files in (rows // 100, 1):
        for ordered in (True, False):
            for long in (0.0, 0.01):
                a, b = (table(rows, files, seed, ordered=ordered, long=long) for seed in (1, 2))
                names = [name for name in present if files > 1 or name not in CROSSING]
                best = measure(a, b, names, chosen.rounds)
                pairs = speechlab(a, b)
                order = "sorted" if ordered else "in random order"
                mixed = "one in a hundred long" if long else "all short"
                print(
                    f"\n{rows:,} x {rows:,} rows in {files:,} recordings, {order}, {mixed}: {pairs:,} pairs"
                )
                for name, seconds in sorted(best.items(), key=lambda item: item[1]):
                    print(f"  {name:22} {seconds / best['speechlab']:8.2f}")
                fastest = best["speechlab"] / min(best.values())
                print(f"  speechlab takes {fastest:.2f} times the fastest one's time (aim: at most {WITHIN})")


if __name__ == "__main__":
    main()
