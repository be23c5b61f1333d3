"""Random tables of segments, on a coarse grid so that edges meet often."""

import pandas as pd
from hypothesis import strategies as st

FILES = ("a.wav", "b.wav", "ü 3.wav")


@st.composite
def segment_rows(draw, files=FILES, latest=40, step=0.1, most=12, instants=True, texts=False):
    count = draw(st.integers(0, most))
    rows = []
    for _ in range(count):
        start = draw(st.integers(0, latest))
        length = draw(st.integers(0 if instants else 1, latest // 2))
        row = {"file": draw(st.sampled_from(files)), "start": start * step, "end": (start + length) * step}
        if texts:
            row["text"] = draw(st.sampled_from(["", "one", "two words", "三時に"]))
        rows.append(row)
    return rows


def table(rows):
    columns = ["file", "start", "end", *({"text"} & {name for row in rows for name in row})]
    return pd.DataFrame(rows, columns=columns).astype({"file": "str", "start": "float64", "end": "float64"})


def tables(**options):
    return segment_rows(**options).map(table)


def us(seconds):
    return round(seconds * 1e6)
