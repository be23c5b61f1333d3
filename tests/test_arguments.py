"""The checks of arguments that the rooms share."""

import numpy as np
import pandas as pd
import pytest

from speechlab._arguments import (
    describe_missing_columns,
    is_missing,
    is_number,
    is_whole_number,
    to_python_number,
)


@pytest.mark.parametrize("cell", [None, float("nan"), np.float32("nan"), np.float64("nan"), pd.NA, pd.NaT])
def test_cells_that_hold_nothing(cell):
    assert is_missing(cell)


@pytest.mark.parametrize("cell", ["", "nan", 0, 0.0, False, b"", [], {}, np.zeros(3), np.array([1, np.nan])])
def test_cells_that_hold_something(cell):
    assert not is_missing(cell)


@pytest.mark.parametrize("value", [0, 1.5, np.float32(1.5), np.int64(3), float("inf")])
def test_numbers(value):
    assert is_number(value)
    assert is_whole_number(value) == (value in {0, 3})


@pytest.mark.parametrize("value", [True, np.True_, "1", None, 1j, np.zeros(1)])
def test_what_is_no_number(value):
    assert not is_number(value)
    assert not is_whole_number(value)


@pytest.mark.parametrize("value", [np.int64(3), np.float32(0.5), -0.0, 7, True, None, "3"])
def test_numbers_become_pythons_own(value):
    plain = to_python_number(value)
    assert type(plain) in {int, float, bool, str, type(None)}
    assert plain == value
    assert str(plain) != "-0.0"


def test_a_missing_column_is_told_with_those_that_are_there():
    words = "the table has no column 'txt'; it has 'text', 1; did you mean 'text' for 'txt'?"
    assert describe_missing_columns(["text", 1], "txt") == words
    assert (
        describe_missing_columns([], "a", "b", table="scored") == "scored has no column 'a', 'b'; it has none"
    )
