"""Classes of differences, on pairs that were written down with their class (tests/metrics/rates/pairs)."""

import pytest

from support import differences

pytest.importorskip("pyopenjtalk")
pytest.importorskip("pypinyin")
pytest.importorskip("opencc")


@pytest.mark.slow
@pytest.mark.parametrize("name", differences.HEARD)
def test_the_confusion_table_is_the_one_in_the_docs(name):
    assert differences.tables()[name] == differences.table(name), "`poe classes` writes the tables anew"


@pytest.mark.slow
def test_the_number_of_right_classes_of_each_file_is_that_of_right_md():
    right = differences.RIGHT.read_text(encoding="utf-8")
    assert right == differences.sets_table(), "`poe classes` writes the tables anew"


@pytest.mark.slow
@pytest.mark.parametrize("name", differences.SETS)
def test_nearly_all_classes_are_right_and_none_depends_on_the_side(name):
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
