"""Glossary terms with sources and without references."""

from __future__ import annotations

import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import glossary_terms

SOURCES = ["会議室は三階です。", "会議室を予約した。", "明日は雨です。"]
HEARD = ["The meeting room is on the third floor.", "I booked a room.", "It will rain."]
GLOSSARY = {"会議室": ["meeting room", "conference room"], "雨": "rain"}


def test_sources_and_a_glossary_need_no_references():
    of_lists = glossary_terms(None, HEARD, GLOSSARY, sources=SOURCES, language="en", source_language="ja")
    assert of_lists[["term", "expected", "found"]].values.tolist() == [["会議室", 2, 1], ["雨", 1, 1]]
    table = pd.DataFrame({"text": SOURCES, "translation": HEARD}, index=["a", "b", "c"])
    of_table = glossary_terms(table, glossary=GLOSSARY, language="en", source_language="ja")
    assert of_table["missed_in"].tolist() == [["b"], []]
    both = glossary_terms(table.assign(reference=""), glossary=GLOSSARY, language="en", source_language="ja")
    pd.testing.assert_frame_equal(both, of_table)


def test_without_references_and_sources_the_error_names_both():
    for given in [{}, {"sources": SOURCES}, {"glossary": GLOSSARY}]:
        with pytest.raises(InvalidRequestError, match=r"no references; give them, or sources="):
            glossary_terms(None, HEARD, **{"glossary": ["rain"], **given})
        with pytest.raises(InvalidRequestError, match="no column 'reference'"):
            glossary_terms(pd.DataFrame({"text": SOURCES, "translation": HEARD}), glossary=["rain"])
