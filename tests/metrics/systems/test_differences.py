"""One table of differences, corrected by families and judged by what more of a measure means; Student's t."""

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.metrics import compute_student_p, compute_student_quantile, holm, judge


def row(difference, p, **facts):
    return {"a": "old", "b": "new", "n": 9, "unit": "word", "difference": difference, "p": p, **facts}


def test_a_verdict_is_on_the_second():
    for more, verdicts in [
        ("worse", ["worse", "better", "no difference shown"]),
        ("better", ["better", "worse", "no difference shown"]),
        ("slower", ["slower", "faster", "no difference shown"]),
        ("told apart", ["told apart", "no difference shown", "no difference shown"]),
    ]:
        table = judge([row(0.1, 0.001), row(-0.1, 0.001), row(0.1, 0.9)], more=more)
        assert table["verdict"].tolist() == verdicts
        assert judge([row(0.1, 0.001, more=more)])["verdict"].tolist() == verdicts[:1]


def test_what_is_not_paired_or_not_tested_is_told_apart():
    table = judge([row(0.1, None), row(0.1, None, n=0), row(0.0, 0.001), row(0.1, None, n=None)])
    shown = "no difference shown"
    assert table["verdict"].tolist() == [shown, "not paired", shown, shown]
    times = judge([row(0.9, 0.001, unit="ratio"), row(1.1, 0.001, unit="ratio")], more="slower")
    assert times["verdict"].tolist() == ["faster", "slower"]  # 1 is no difference


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from("xy"), st.floats(0, 1) | st.none()), max_size=8))
def test_each_family_is_corrected_by_itself(tests):
    rows = [row(0.1, p, measure=measure) for measure, p in tests]
    table, whole = judge(rows, by="measure"), judge(rows)
    for measure, part in table.groupby("measure"):
        chances = [p for name, p in tests if name == measure]
        expected = holm([float("nan") if p is None else p for p in chances])
        assert part["p_holm"].tolist() == pytest.approx(expected.tolist(), nan_ok=True)
    both = pd.concat([table["p_holm"], whole["p_holm"]], axis=1).dropna()
    assert (both.iloc[:, 0] <= both.iloc[:, 1] + 1e-12).all()


def test_quantiles_of_student_are_those_of_printed_tables():
    quantiles = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 10: 2.2281, 30: 2.0423, 1_000_000: 1.95997}
    for freedom, quantile in quantiles.items():
        t = compute_student_quantile(0.05, freedom)
        assert t == pytest.approx(quantile, abs=6e-5)
        assert compute_student_p(-t, freedom) == pytest.approx(0.05, rel=1e-9)


def test_p_values_of_student_are_those_of_closed_forms():
    for t in [0.0, 0.01, 1.0, 7.0, 1e5]:
        assert compute_student_p(t, 1) == pytest.approx(1 - 2 * math.atan(t) / math.pi, abs=1e-12)
        assert compute_student_p(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-12)
        assert compute_student_p(t, 1e9) == pytest.approx(math.erfc(t / math.sqrt(2)), abs=1e-6)
        assert compute_student_p(math.inf, 3) == 0
