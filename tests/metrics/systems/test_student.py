"""Student's t: quantiles of printed tables, and p-values of closed forms."""

import math

import pytest

from speechlab import metrics


def test_quantiles_are_those_of_printed_tables():
    quantiles = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 10: 2.2281, 30: 2.0423, 1_000_000: 1.95997}
    for freedom, quantile in quantiles.items():
        t = metrics.compute_student_quantile(0.05, freedom)
        assert t == pytest.approx(quantile, abs=6e-5)
        assert metrics.compute_student_p(-t, freedom) == pytest.approx(0.05, rel=1e-9)


def test_p_values_are_those_of_closed_forms():
    for t in [0.0, 0.01, 1.0, 7.0, 1e5]:
        assert metrics.compute_student_p(t, 1) == pytest.approx(1 - 2 * math.atan(t) / math.pi, abs=1e-12)
        assert metrics.compute_student_p(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-12)
        assert metrics.compute_student_p(t, 1e9) == pytest.approx(math.erfc(t / math.sqrt(2)), abs=1e-6)
        assert metrics.compute_student_p(math.inf, 3) == 0
