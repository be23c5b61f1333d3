"""Random tables of segments of many recordings, on a coarse grid so that edges meet often."""

import numpy as np
import pandas as pd


def make_table(seed, *, recordings=40, latest=40, most=12, instants=True):
    """Return a table with up to ``most`` segments of each recording, in any order, times in tenths of a second."""
    random = np.random.default_rng(seed)
    files = np.repeat(np.arange(recordings), random.integers(0, most + 1, recordings))
    random.shuffle(files)
    starts = random.integers(0, latest + 1, len(files))
    ends = starts + random.integers(0 if instants else 1, latest // 2 + 1, len(files))
    names = pd.array([f"ü {number}.wav" for number in files.tolist()], dtype="str")
    return pd.DataFrame({"file": names, "start": starts * 0.1, "end": ends * 0.1})


def list_lines(table):
    """Return the rows of a table as tuples of file, start and end, times in tenths of a second."""
    starts, ends = (np.rint(table[name].to_numpy() * 10).astype(int).tolist() for name in ("start", "end"))
    return list(zip(table["file"].tolist(), starts, ends, strict=True))


def to_us(seconds):
    return round(seconds * 1e6)
