"""Pairs that were written down with their class before the code was, and the classes that they are told to be."""

import csv
from collections import Counter
from pathlib import Path

from speechlab.metrics import compare_texts

TESTS = Path(__file__).parents[1]
PAIRS = TESTS / "metrics" / "rates"
GUIDE = TESTS.parent / "docs" / "error-rates.md"


class Written:
    """The written pairs of a language.

    Args:
        language: The language of the pairs.
        kinds: The classes, the mildest first.
        sets: For each file of pairs what the page says: (written down as, told apart as) -> pairs. "equal": alike
            after normalisation.
    """

    def __init__(self, language, kinds, sets):
        self.language, self.kinds, self.sets = language, ("equal", *kinds), sets

    def told(self, reference, hypothesis):
        """The worst class among the differences of a pair."""
        found = compare_texts(reference, hypothesis, self.language).differences
        return max((difference.kind for difference in found), key=self.kinds.index, default="equal")

    def check_matrix(self, name):
        """The confusion matrix of a file is the one in the page; it is returned."""
        pairs = self.pairs(name)
        matrix = Counter((pair["class"], self.told(pair["reference"], pair["hypothesis"])) for pair in pairs)
        assert matrix == self.sets[name]
        guide = GUIDE.read_text(encoding="utf-8")
        for written in {"notation", *self.kinds[1:]}:
            cells = " | ".join(str(matrix.get((written, kind), 0)) for kind in self.kinds)
            assert f"| {written} | {cells} |" in guide
        return matrix

    def check_sides(self, name):
        """A class does not depend on which side is the reference."""
        for pair in self.pairs(name):
            sides = pair["reference"], pair["hypothesis"]
            assert self.told(*sides) == self.told(*reversed(sides)), pair

    def pairs(self, name):
        """The pairs of a file, as dicts."""
        with (PAIRS / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t"))
