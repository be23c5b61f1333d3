"""Each numbered statement of the contract is held by a check of conform, or by a test that is named after it."""

import re
from pathlib import Path

from speechlab.conform import list_checks

TESTS = Path(__file__).parent
STATEMENTS = range(1, 165)
NAMED = re.compile(r"^\s*(?:async )?def test_((?:s?\d{1,3}_(?:to_)?)+)", re.MULTILINE)


def cited(numbers: str) -> set[int]:
    """The statements of the first part of a name: ``s3_``, ``041_064_``, ``140_to_146_``."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)_(?:to_s?(\d+)_)?", numbers):
        found.update(range(int(first), int(last or first) + 1))
    return found


def test_each_statement_has_its_test():
    assert cited("s3_") == {3}
    assert cited("041_s64_") == {41, 64}
    assert cited("s1_140_to_142_") == {1, 140, 141, 142}
    # tests/service/test_contract.py runs all checks.
    found = {number for check in list_checks() for number in check.statements}
    for path in TESTS.rglob("test_*.py"):
        for numbers in NAMED.findall(path.read_text("utf-8")):
            found |= cited(numbers)
    assert found == set(STATEMENTS)
