"""docs/contract.md: its examples run, and docs/readings.csv has every point that ``conform`` takes for a reading."""

import csv
import doctest
from pathlib import Path

from speechlab.conform import list_checks

PAGE = Path(__file__).parents[2] / "docs" / "contract.md"
READINGS = PAGE.with_name("readings.csv")


def readings() -> list[dict[str, str]]:
    with READINGS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_examples():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0


def test_every_reading_that_is_tried_is_told():
    told = {int(number) for row in readings() for number in row["statement"].split(", ")}
    tried = {check.id: check.statements[0] for check in list_checks() if not check.binding}
    assert len(tried) > 50
    assert {name: number for name, number in tried.items() if number not in told} == {}
