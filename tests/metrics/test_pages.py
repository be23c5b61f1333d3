"""The examples in the pages about metrics run."""

import doctest
from pathlib import Path

import pytest

for package in ("pyopenjtalk", "whisper_normalizer", "opencc"):
    pytest.importorskip(package)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "examples"), [("metrics", 45), ("error-rates", 5), ("statistics", 1)])
def test_pages(page, examples):
    path = Path(__file__).parents[2] / "docs" / f"{page}.md"
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > examples
    assert result.failed == 0
