"""Tables with columns of every kind come through: to the table, to the run in its store, and to files."""

import json
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from speechlab import batch
from support.batches import quiet
from support.zoo import zoo

KEPT = {
    *("Float64", "Int8", "arrow_days", "arrow_half", "arrow_nothing", "arrow_spans", "arrow_texts"),
    *("arrow_times_there", "boolean", "half", "intervals", "odd_periods", "periods"),
    *("spans", "spans_ns", "str", "time_intervals", "times", "times_offset", "times_there"),
    "unsigned",
}
"""Kinds that keep their type in the store."""


def frame_with(column):
    frame = pd.DataFrame({"text": list("abcd")[: len(column)]})
    frame["mine"] = column
    return frame


def read(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.name.endswith(".tsv.gz"):
        return pd.read_csv(path, sep="\t")
    return pd.DataFrame([json.loads(line) for line in path.read_text("utf-8").splitlines()])


FILES = ("t.parquet", "t.tsv.gz", "t.jsonl")


def comes_through(frame, lab, folder, source=None, files=FILES):
    """Translate a table, and look for its rows wherever they should be."""
    store = folder / "store"
    table = batch.translate(frame if source is None else source, lab, **quiet(store))
    assert table["translation"].tolist() == [text[::-1] for text in frame["text"]]
    run = batch.load(table, store)
    kept = run.table()
    assert run.verify()
    assert kept["translation"].tolist() == table["translation"].tolist()
    assert kept["mine"].isna().sum() >= (0 if frame["mine"].dtype == object else frame["mine"].isna().sum())
    for name in files:
        again = read(run.export(folder / name))
        assert again["translation"].tolist() == table["translation"].tolist()
        assert "mine" in again
    return table, kept


def whole_zoo():  # with a cell that no file can hold
    return pd.DataFrame({"text": list("abcd"), **zoo(), "mine": range(4)})


@pytest.mark.slow
def test_columns_of_every_kind_come_through(reverser, tmp_path):
    frame = whole_zoo()
    table, kept = comes_through(frame, reverser, tmp_path, files=FILES[:2])
    for name in frame:
        assert table[name].dtype == frame[name].dtype, name
        assert len(kept[name]) == 4, name
        if name in KEPT:
            pd.testing.assert_series_equal(kept[name], frame[name])


@pytest.mark.slow
def test_columns_of_every_kind_come_through_in_pieces(reverser, tmp_path):
    frame = whole_zoo()
    pieces = [frame.iloc[:1], frame.iloc[1:3], frame.iloc[3:]]
    table, kept = comes_through(frame, reverser, tmp_path, pieces, FILES[2:])
    assert table.columns.equals(kept.columns)


def test_bins_stay_in_their_order(reverser, tmp_path):
    frame = pd.DataFrame({"text": list("abcd"), "mine": pd.cut([10, 1, 5, 1], [0, 2, 6, 20])})
    _, kept = comes_through(frame, reverser, tmp_path, files=[])
    assert kept["mine"].cat.ordered
    assert kept["mine"].cat.categories.tolist() == ["(0, 2]", "(2, 6]", "(6, 20]"]
    assert kept.groupby("mine", observed=True)["text"].agg("".join).tolist() == ["bd", "c", "a"]


@pytest.mark.slow
def test_numbers_lose_no_digit(reverser, tmp_path):
    cells = pd.Series([2**60 + 1, None, 1, 2], dtype=object)
    _, kept = comes_through(frame_with(cells), reverser, tmp_path, files=[])
    assert kept["mine"].tolist()[0] == 2**60 + 1
    _, kept = comes_through(frame_with(zoo()["longdouble"]), reverser, tmp_path, files=[])
    assert kept["mine"].tolist()[1] == "0.33333333333333333334"


INDEXES = {
    "intervals": pd.interval_range(0, 4),
    "periods": pd.period_range("2026-01", periods=4, freq="M"),
    "bins": pd.CategoricalIndex(pd.cut([1, 2, 3, 4], 2)),
    "mixed": pd.Index([1, "1", None, 2.5], dtype=object),
    "twice": pd.Index(["a", "a", "b", None]),
    "huge": pd.Index([10**30, 1, 2, 3], dtype=object),
    "named as a column": pd.Index([1, 2, 3, 4], name="text"),
    "levels": pd.MultiIndex.from_arrays(
        [pd.cut([1, 2, 3, 4], 2), [1, "a", None, 10**30]], names=["bin", None]
    ),
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_of_any_kind_comes_through(reverser, tmp_path, name):
    frame = frame_with(pd.Series(range(4))).set_axis(INDEXES[name])
    table, kept = comes_through(frame, reverser, tmp_path, files=[FILES[len(name) % 3]])
    assert table.index.equals(frame.index)
    assert kept["text"].tolist() == list("abcd")
    assert kept.index.names == frame.index.names


LABELS = {
    "numbers and texts": [0, "0"],
    "a pair": ["text", ("mine", "too")],
    "nothing": [None, "mine"],
    "half a pair": ["\ud800", "mine"],
    "a file's own": ["__index_level_0__", "mine"],
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_any_kind_come_through(reverser, tmp_path, name):
    labels = LABELS[name]
    frame = pd.DataFrame([["a", 1], ["b", 2]])
    frame.columns = pd.Index(labels, dtype=object, tupleize_cols=False)
    table = batch.translate(frame, reverser, text=batch.Column(labels[0]), **quiet(tmp_path / "s"))
    assert table.columns.tolist()[:3] == [*labels, "translation"]
    run = batch.load(table, tmp_path / "s")
    assert run.verify()
    assert run.table()["translation"].tolist() == ["a", "b"]
    assert run.export(tmp_path / "t.parquet")
    if name in {"numbers and texts", "a pair", "nothing"}:
        assert run.table().columns.tolist() == table.columns.tolist()


@pytest.mark.slow
def test_columns_of_several_levels(reverser, tmp_path):
    frame = pd.DataFrame([["a", 1], ["b", 2]], columns=pd.MultiIndex.from_tuples([("en", "text"), ("n", "")]))
    pieces = [frame.iloc[:1], frame.iloc[1:]]
    table = batch.translate(pieces, reverser, text=("en", "text"), **quiet(tmp_path / "s"))
    assert table.columns.tolist()[:3] == [("en", "text"), ("n", ""), ("translation", "")]
    assert table["translation"].tolist() == ["a", "b"]
    run = batch.load(table, tmp_path / "s")
    assert run.verify()
    assert run.table().columns.equals(table.columns)
    slim = batch.translate(pieces, reverser, text=("en", "text"), columns="result", **quiet(tmp_path / "s"))
    assert slim.columns.tolist() == table.columns.tolist()[:6]


@pytest.mark.slow
def test_notes_of_any_kind_come_through(reverser, tmp_path):
    frame = frame_with(pd.Series(range(4)))
    frame.attrs = {"array": np.zeros(2), "name": "corpus", 5: "five"}
    pieces = [frame.iloc[:2], frame.iloc[2:]]
    table, kept = comes_through(frame, reverser, tmp_path, pieces, FILES[:1])
    assert table.attrs["name"] == kept.attrs["name"] == "corpus"
    assert "array" in table.attrs


CELLS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=3)
    | st.decimals()
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.complex_numbers()
    | st.fractions()
    | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3)
    ),
    max_leaves=4,
)


@pytest.mark.slow
@given(
    cells=st.lists(CELLS, min_size=1, max_size=4),
    cut=st.integers(0, 4),
    category=st.booleans(),
    file=st.sampled_from(FILES),
)
@example(cells=[(None,), False], cut=0, category=True, file="t.parquet")
@example(cells=[([None, None],)], cut=0, category=False, file="t.parquet")
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.filterwarnings("ignore")
def test_cells_of_any_kind_come_through(reverser, tmp_path_factory, cells, cut, category, file):
    column = pd.Series([None] * len(cells), dtype=object)
    for at, cell in enumerate(cells):
        column.iat[at] = cell
    if category:
        with suppress(
            TypeError, ValueError, OverflowError
        ):  # lists have no hash, and pandas no order for all
            column = column.astype("category")
    frame = frame_with(column)
    pieces = [frame.iloc[:cut], frame.iloc[cut:]] if cut < len(cells) else None
    comes_through(frame, reverser, tmp_path_factory.mktemp("zoo"), pieces, [file])
