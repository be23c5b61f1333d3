"""Columns of every kind that pandas can hold, four cells each."""

import datetime as dt
import decimal
import enum
from collections import OrderedDict
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from speechlab.audio import AudioClip


class Color(enum.Enum):
    RED = 1


class Mute:
    """An object that cannot be written as text."""

    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class Unequal:
    """An object that cannot be compared."""

    def __eq__(self, other):
        raise RuntimeError("not comparable")

    def __hash__(self):
        return 1

    def __bool__(self):
        raise RuntimeError("neither")

    def __repr__(self):
        return "Unequal()"


class Point(NamedTuple):
    x: Any
    y: Any


LOOP: list = []
LOOP.append(LOOP)


def objects(*cells):
    column = pd.Series([None] * len(cells), dtype=object)
    for at, cell in enumerate(cells):
        column.iat[at] = cell
    return column


def arrow(cells, kind):
    return pd.Series(pd.array(cells, dtype=pd.ArrowDtype(kind)))


def zoo():
    """The columns by name; new ones at each call."""
    time = pd.to_datetime(["2026-01-01 00:00", "2026-03-29 01:30", None, "2026-12-31 12:00"])
    whole = {
        "cut": pd.Series(pd.cut([1, 2, 3, np.nan], 3)),
        "intervals": pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1, 2, 3, 4])),
        "time_intervals": pd.Series(pd.interval_range(pd.Timestamp("2026-01-01"), periods=4)),
        "mixed_categories": pd.Series(pd.Categorical([1, "1", None, 2.5])),
        "ordered_mixed_categories": pd.Series(pd.Categorical([1, "a", None, 1], ["a", 1], ordered=True)),
        "tuple_categories": pd.Series(pd.Categorical([(1, 2), (3, 4), None, (1, 2)])),
        "time_categories": pd.Series(pd.Categorical(time.tz_localize("UTC"))),
        "no_categories": pd.Series(pd.Categorical([None] * 4)),
        "sparse": pd.Series(pd.arrays.SparseArray([0.0, 0.0, 1.0, np.nan])),
        "sparse_objects": pd.Series(pd.arrays.SparseArray(np.array(["a", None, "b", None], dtype=object))),
        "longdouble": pd.Series(np.array([1, np.longdouble(1) / 3, np.nan, 4], dtype=np.longdouble)),
        "half": pd.Series(np.array([1, 0.5, np.nan, 4], dtype=np.float16)),
        "complex": pd.Series([1 + 2j, 0j, complex(np.nan, 1), -1j]),
        "unsigned": pd.Series(np.array([0, 2**64 - 1, 1, 2], dtype=np.uint64)),
        "periods": pd.Series(pd.period_range("2026-01", periods=4, freq="M")),
        "odd_periods": pd.Series(pd.period_range("2026-01-01", periods=4, freq="3D")),
        "times": pd.Series(time),
        "times_there": pd.Series(time.tz_localize("Europe/Berlin", ambiguous="NaT", nonexistent="NaT")),
        "times_offset": pd.Series(time.tz_localize(dt.timezone(dt.timedelta(hours=5, minutes=30)))),
        "times_far": pd.Series(np.array(["1000-01-01", "9999-01-01"] * 2, dtype="datetime64[s]")),
        "spans": pd.Series(pd.to_timedelta([1, 2, None, 4], unit="h")),
        "spans_ns": pd.Series(np.array([1, 2, 3, 4], dtype="timedelta64[ns]")),
        "Int8": pd.Series(pd.array([1, None, 3, 4], dtype="Int8")),
        "Float64": pd.Series(pd.array([1.5, None, 3, 4], dtype="Float64")),
        "boolean": pd.Series(pd.array([True, None, False, True], dtype="boolean")),
        "string_python": pd.Series(pd.array(["a", None, "c", "d"], dtype="string[python]")),
        "str": pd.Series(["a", None, "c", "d"], dtype="str"),
    }
    return {
        **whole,
        **{f"arrow_{name}": column for name, column in arrows().items()},
        **{f"cells_{name}": column for name, column in cells().items()},
    }


def arrows():
    struct = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    made = {
        "lists": ([[1, 2], None, [], [3]], pa.list_(pa.int64())),
        "structs": ([{"a": 1, "b": ["x"]}, None, {"a": None, "b": []}, {"a": 2, "b": None}], struct),
        "maps": ([[("k", 1)], None, [], [("l", 2)]], pa.map_(pa.string(), pa.int64())),
        "decimals": (
            [decimal.Decimal("1.10"), None, decimal.Decimal(3), decimal.Decimal(4)],
            pa.decimal128(5, 2),
        ),
        "days": ([dt.date(2026, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)], pa.date32()),
        "spans": ([dt.timedelta(1), None, dt.timedelta(0), dt.timedelta(2)], pa.duration("ms")),
        "bytes": ([b"a", None, b"", b"\xff"], pa.binary()),
        "texts": (["a", None, "c", "d"], pa.large_string()),
        "dictionary": (["a", None, "c", "a"], pa.dictionary(pa.int8(), pa.string())),
        "nothing": ([None] * 4, pa.null()),
        "half": ([1.0, None, 2.0, 3.0], pa.float16()),
        "times_there": (
            [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, None, None],
            pa.timestamp("s", "Asia/Tokyo"),
        ),
    }
    return {name: arrow(*given) for name, given in made.items()}


def cells():
    """Columns of objects, by name."""
    return {
        "huge": objects(10**30, 1, None, -(10**40)),
        "beyond_int64": objects(2**63, 1, 2, 3),
        "numbers_and_texts": objects(1, "1", 2.5, None),
        "decimals": objects(decimal.Decimal("1.1"), None, decimal.Decimal("NaN"), decimal.Decimal("1e50")),
        "days": objects(dt.date(2026, 1, 1), None, dt.date(1, 1, 1), pd.NaT),
        "moments": objects(pd.Timestamp("2026-01-01"), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), pd.NaT, None),
        "spans": objects(pd.Timedelta(1), dt.timedelta(2), np.timedelta64(3, "D"), None),
        "intervals": objects(pd.Interval(0, 1), None, pd.Interval(1.5, 2), "x"),
        "periods": objects(pd.Period("2026-01"), None, pd.Period("2026-01-01", "D"), pd.NaT),
        "lists": objects([1, 2], [], None, ["a"]),
        "dicts": objects({"a": 1}, {}, None, {"b": [1, {"c": 2}]}),
        "dicts_of_numbers": objects({1: "a"}, None, {(1, 2): 3}, {None: 1}),
        "sets": objects({1}, frozenset({2}), set(), None),
        "arrays": objects(np.zeros(3), np.zeros((2, 2)), None, np.array(["a", None], dtype=object)),
        "bytes": objects(b"a", bytearray(b"b"), memoryview(b"c"), None),
        "clips": objects(AudioClip(np.zeros(8, dtype=np.float32), 8000), b"a", "path", None),
        "paths": objects(PurePosixPath("/a"), "b", None, PurePosixPath("c")),
        "enums": objects(Color.RED, None, Color.RED, Color.RED),
        "points": objects(Point(1, 2), None, Point(3, "x"), OrderedDict(a=1)),
        "tables": objects(pd.DataFrame({"a": [1]}), pd.Series([1]), None, pd.Index([1])),
        "functions": objects(len, print, None, lambda: 1),
        "surrogates": objects("\ud800", "a", None, "\x00"),
        "nothing": objects(None, float("nan"), pd.NA, pd.NaT),
        "mute": objects(Mute(), None, Mute(), 1),
        "unequal": objects(Unequal(), None, Unequal(), 1),
        "loops": objects(LOOP, None, LOOP, 1),
    }
