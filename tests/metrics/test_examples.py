"""The examples in the docstrings and in its pages run."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import speechlab.metrics
import speechlab.text

for package in ("pyopenjtalk", "whisper_normalizer", "opencc"):
    pytest.importorskip(package)

MODULES = [
    module.name
    for room in (speechlab.text, speechlab.metrics)
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module):
    result = doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_modules_of_sub_rooms_are_among_them():
    assert {"speechlab.text._languages.pinyin", "speechlab.metrics._rates.score"} <= set(MODULES)


@pytest.mark.parametrize(("page", "examples"), [("metrics", 60), ("error-rates", 10), ("statistics", 1)])
def test_pages(page, examples):
    path = Path(__file__).parents[2] / "docs" / f"{page}.md"
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > examples
    assert result.failed == 0
