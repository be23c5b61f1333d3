"""The examples in docstrings run (tests/test_rooms.py holds that every public callable has one, or a reason)."""

import doctest

import pytest

from support.examples import HIDDEN, SHOWN, examples, hidden_examples


def run(tests: list[doctest.DocTest]) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        assert runner.run(test).failed == 0, test.name
    assert runner.tries


@pytest.fixture(autouse=True)
def _at_work(tmp_path, monkeypatch):
    for package in ("pyopenjtalk", "whisper_normalizer", "opencc", "pypinyin", "sacrebleu", "audformat"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_public(name):
    run(examples(name))


@pytest.mark.parametrize("module", HIDDEN)
def test_other_examples_of_a_module(module):
    run(hidden_examples(module))
