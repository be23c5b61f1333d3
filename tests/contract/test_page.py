"""docs/contract.md: its examples run, and it has every point that ``conform`` takes for a reading."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from speechlab.conform import list_checks

PAGE = Path(__file__).parents[2] / "docs" / "contract.md"
ROW = re.compile(r"^\| (\d+(?:, \d+)*) \|(.*)\|$", re.MULTILINE)


def test_examples():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0


def test_every_reading_that_is_tried_is_told():
    told = {int(n) for numbers, _ in ROW.findall(PAGE.read_text("utf-8")) for n in numbers.split(", ")}
    tried = {check.id: check.statements[0] for check in list_checks() if not check.binding}
    assert len(tried) > 50
    assert {name: number for name, number in tried.items() if number not in told} == {}


def test_each_row_says_who_reads_it_how():
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert len(rows) > 80
    for numbers, cells in rows:
        section, left_open, service, client = (cell.strip() for cell in cells.split(" | "))
        assert re.match(r"\d(\.\d)?", section), numbers
        assert all((left_open, service, client)), numbers
        assert {service, client} != {"–"}, numbers
