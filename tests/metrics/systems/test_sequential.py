"""The test of many runs: its false alarms, and how soon it finds a change that was planted."""

import numpy as np
import pytest

from speechlab.metrics import sequential_test


def unchanged(random, runs=50, rows=12):
    hard = random.gamma(0.5, 2, size=rows)  # some rows are hard in every run
    values = random.poisson(hard, size=(runs, rows)).astype(float)
    values[random.random(values.shape) < 0.03] = np.nan
    return values


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_alpha_says():
    random = np.random.default_rng(5)
    alarms = [
        sequential_test(unchanged(random, 25), alpha=0.2, seed=seed)["changed"].any() for seed in range(40)
    ]
    assert np.mean(alarms) <= 0.325  # of at most 0.2; more than 13 of 40 has a probability of 2%


def test_p_values_of_runs_that_did_not_change_are_uniform():
    random = np.random.default_rng(6)
    p = np.concatenate(
        [sequential_test(unchanged(random, 40, 6), seed=seed)["p"].dropna() for seed in range(10)]
    )
    shares = np.array([(p <= level).mean() for level in (0.05, 0.25, 0.5, 0.75)])
    assert np.abs(shares - [0.05, 0.25, 0.5, 0.75]).max() < 0.08


@pytest.mark.parametrize("before", [5, 30])
def test_a_doubling_of_errors_is_found_within_a_few_runs(before):
    random = np.random.default_rng(7)
    hard = random.gamma(0.5, 0.6, size=60)
    values = random.poisson(hard, size=(before + 8, 60)).astype(float)
    values[before:] = random.poisson(2 * hard, size=(8, 60))
    changed = sequential_test(values)["changed"].to_numpy()
    assert not changed[:before].any()
    assert changed[before + 5]


def test_an_alarm_stays_and_earlier_runs_keep_their_results():
    random = np.random.default_rng(8)
    values = np.vstack([random.poisson(1, (6, 40)), random.poisson(4, (3, 40)), random.poisson(1, (9, 40))])
    whole = sequential_test(values)
    first = int(whole["changed"].to_numpy().argmax())
    assert whole["changed"].iloc[first:].all()
    assert sequential_test(values[:7]).equals(whole.iloc[:7])


def test_fewer_errors_are_no_alarm_unless_the_sign_is_turned():
    random = np.random.default_rng(9)
    values = np.vstack([random.poisson(3, (8, 40)), random.poisson(1, (4, 40))])
    assert not sequential_test(values)["changed"].any()
    assert sequential_test(-values)["changed"].iloc[-1]


def test_rows_of_a_block_change_places_together():
    random = np.random.default_rng(10)
    of_speaker = random.normal(size=(12, 4)).repeat(10, axis=1)  # forty rows, four independent values a run
    of_speaker[-1] += 1.0
    speakers = np.arange(4).repeat(10).tolist()
    apart = sequential_test(of_speaker)["p"].iloc[-1]
    together = sequential_test(of_speaker, groups=speakers)["p"].iloc[-1]
    assert apart < together


def test_the_first_run_has_nothing_to_be_compared_with():
    table = sequential_test([[1.0, np.nan, 3.0]])
    assert table["n"].tolist() == [2]
    assert table["mean"].tolist() == [2.0]
    assert table["p"].isna().all()
    assert table["evidence"].tolist() == [1.0]
    assert sequential_test([[1.0, np.nan], [np.nan, 2.0]])["p"].isna().all()  # no row is in both
