"""Classes of differences, on pairs that were written down with their class."""

import csv
import re

import pytest

from support import differences

pytest.importorskip("pyopenjtalk")
pytest.importorskip("pypinyin")
pytest.importorskip("opencc")


@pytest.mark.slow
def test_right_classes_are_those_of_right_md_and_docs():
    right = differences.page()
    assert right == differences.RIGHT.read_text(encoding="utf-8"), "`poe classes` writes it anew"
    guide = differences.GUIDE.read_text(encoding="utf-8")
    for share in re.findall(r"^\| (\d+ of \d+) right \|", right, re.MULTILINE):
        assert share in guide


@pytest.mark.slow
@pytest.mark.parametrize("name", differences.SETS)
def test_nearly_all_classes_are_right_from_both_sides(name):
    language = name.partition("-")[0]
    pairs = differences.pairs(name)
    right = 0
    for pair in pairs:
        sides = pair["reference"], pair["hypothesis"]
        found = differences.class_of(*sides, language)
        assert found == differences.class_of(*reversed(sides), language), pair
        right += differences.is_right(pair["class"], found)
    assert right / len(pairs) >= differences.FLOOR


@pytest.mark.parametrize(("language", "least"), [("en", 40), ("ja", 160), ("zh", 140)])
def test_nearly_all_classes_of_real_transcripts_are_right(language, least):
    rows = differences.spoken(language)
    assert len(rows) >= least
    right = sum(row["class"] == row["found"] for row in rows)
    assert right / len(rows) >= 0.9
    assert all(row["reason"] for row in rows if row["class"] != row["found"])


@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_numbers_words_and_readings_have_their_class_on_both_sides(language):
    """Numbers, units, fractions, years, spellings and readings as the world writes them."""
    path = differences.PAIRS.with_name("numbers_and_words.tsv")
    wrong = [
        (kind, *sides, found)
        for code, kind, *sides in csv.reader(path.read_text("utf-8").splitlines(), delimiter="\t")
        if code == language
        for found in {differences.class_of(*order, language) for order in (sides, sides[::-1])}
        if not differences.is_right(kind, found)
    ]
    assert not wrong
