"""Numbers, units, fractions, years, spellings and readings as the world writes them, each with its class."""

import csv
from pathlib import Path

import pytest

from support import differences

ROWS = [
    tuple(row.values())
    for row in csv.DictReader(
        Path(__file__).with_name("numbers_and_words.tsv").read_text(encoding="utf-8").splitlines(),
        delimiter="\t",
    )
]


@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_each_pair_has_its_class_on_both_sides(language):
    for package in ("pyopenjtalk", "pypinyin", "opencc"):
        pytest.importorskip(package)
    wrong = [
        (kind, *sides, found)
        for code, kind, *sides in ROWS
        if code == language
        for found in {
            differences.class_of(*sides, language),
            differences.class_of(*reversed(sides), language),
        }
        if not differences.is_right(kind, found)
    ]
    assert not wrong
