"""Random tables of segments, on a coarse grid so that edges meet often."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

FILES = ("a.wav", "b.wav", "ü 3.wav")


def segment_rows(files=FILES, latest=40, step=0.1, most=12, instants=True):
    """Rows ``(file, start, end)``, their times in steps made seconds."""
    lengths = st.integers(0 if instants else 1, latest // 2)
    row = st.builds(
        lambda file, start, length: (file, start * step, (start + length) * step),
        st.sampled_from(files),
        st.integers(0, latest),
        lengths,
    )
    return st.lists(row, max_size=most)


def table(rows):
    """A table of rows ``(file, start, end)``, made by columns: by rows, pandas takes longer than what is tested."""
    files, starts, ends = zip(*rows, strict=True) if rows else ((), (), ())
    times = {"start": np.array(starts, dtype=np.float64), "end": np.array(ends, dtype=np.float64)}
    return pd.DataFrame({"file": pd.array(files, dtype="str"), **times})


def lines(table):
    """The rows of a table as tuples of file, start and end, times in tenths of a second."""
    starts, ends = (np.rint(table[name].to_numpy() * 10).astype(int).tolist() for name in ("start", "end"))
    return list(zip(table["file"].tolist(), starts, ends, strict=True))


def tables(**options):
    return segment_rows(**options).map(table)


def us(seconds):
    return round(seconds * 1e6)
