"""Markup that text cannot get into unescaped."""

import html
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab import display
from speechlab.display import (
    Html,
    audio_figure,
    data_url,
    diff,
    document,
    element,
    escape,
    join,
    render_details,
)
from support.texts import check_refusals

SAFE = {"div", "a", "audio", "br", "caption", "del", "details", "figcaption", "figure", "img", "ins", "p"}
SAFE |= {"span", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr"}


class Reader(HTMLParser):
    def __init__(self, markup):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@given(st.text())
def test_any_text_comes_out_as_it_went_in_and_as_text(text):
    reader = Reader(element("span", text, lang=text))
    assert reader.tags == ["span"]
    if "\r" not in text and "\0" not in text:
        assert html.unescape(escape(text)) == text or not text.isprintable()


@given(st.text())
def test_no_text_adds_an_element_anywhere(text):
    whole = (
        audio_figure(None, title=text, facts=[text], text=text, lang=text)
        + display.table([text], [[text]], caption=text, langs=[text])
        + render_details(text, text)
        + diff([(kind, text, text) for kind in ("substitute", "equal", "insert")], lang=text, separator=text)
        + text
    )
    reader = Reader(whole)
    assert set(reader.tags) <= SAFE
    assert not [name for name, _ in reader.attributes if name.startswith("on")]


def test_markup_is_escaped_once_and_text_always():
    assert ("<" + Html("<br>"), Html("<br>") + "<") == ("&lt;<br>", "<br>&lt;")
    assert join("<", ["&", Html("&amp;"), None, 5]) == "&amp;&lt;&amp;&lt;&lt;5"
    assert element("p", Html("<br>").lower()) == "<p>&lt;br&gt;</p>"


def test_refusals_of_what_could_run_or_fetch():
    check_refusals(Path(__file__).with_name("refusals.md"), "markup", data_url=data_url, element=element)
    assert element("p", class_="a", hidden=True, open=False, data_x=None) == '<p class="a" hidden></p>'
    assert data_url(b"abc", "audio/mpeg") == "data:audio/mpeg;base64,YWJj"


def test_numbers_stand_to_the_right_with_equal_decimals():
    rows = [["a", 0.0312345, 12], ["b", np.float32(0.11), np.int64(3)], ["c", None, 0]]
    markup = display.table(["text", "rate", "n"], rows)
    assert all(cell in markup for cell in (">0.0312<", ">0.1100<", ">–<"))
    assert markup.count("text-align:right") == 2 * 4
    assert ">6<" in display.table(["matched"], [[6.0], [None]])  # a count, where one is missing


def test_a_diff_marks_by_more_than_color():
    markup = diff([("equal", "it", "it"), ("delete", "was", ""), ("insert", "", "is")], lang="en")
    assert all(mark in markup for mark in ("line-through", "underline"))
    assert Reader(markup).text == "it was is"
    assert Reader(diff([("equal", "日", ""), ("insert", "", "本")], separator="")).text == "日本"


def test_a_document_is_whole_and_fetches_nothing():
    page = document("A & B", "text", footer="made here", lang="ja")
    assert page.startswith("<!DOCTYPE html>")
    for part in ('<html lang="ja">', "default-src &#x27;none&#x27;", "<title>A &amp; B</title>"):
        assert part in page
    assert not re.search(r"https?://|url\(", page)


def test_percentages_and_numbers_with_their_nouns():
    shares = [(0.1234, "12.3%"), (1, "100.0%"), (float("nan"), "–"), (None, "–"), ("0.5", "–"), (True, "–")]
    assert [display.format_percent(rate) for rate, _ in shares] == [text for _, text in shares]
    counts = {0: "0 rows", 1: "1 row", 2: "2 rows", 1_000: "1,000 rows"}
    assert {count: display.format_count(count, "row") for count in counts} == counts
    in_words = {0: "no rows", 1: "one row", 5: "five rows", 6: "6 rows"}
    assert {count: display.format_count(count, "row", in_words=True) for count in in_words} == in_words


def test_no_root_lets_its_text_be_taken_for_mathematics():
    for part in (
        display.audio_figure(None, title="$5 and $6"),
        display.table(["$5"], [["$6"]]),
        display.render_details("$5", "$6"),
        display.diff([("substitute", "$5", "$6")]),
        display.notebook_output("$5 and $6", class_="further"),
    ):
        assert 'class="tex2jax_ignore mathjax_ignore' in part[: part.index(">")]


def test_a_text_ends_the_directions_that_it_begins():
    for text, ends in (
        ("a voice", ""),
        ("evil\u202egnp.exe", "\u202c"),
        ("\u202e\u2067x", "\u2069\u202c"),
        ("\u202ex\u202c", ""),
        ("\u2066\u202c", "\u2069"),
    ):
        assert escape(text) == text + ends
        assert str(element("strong", text, "!")) == f"<strong>{text}{ends}!</strong>"
    assert escape("a\ud800b").encode("utf-8") == b"a?b"  # half of a surrogate pair can be written to a file


@pytest.fixture
def jupyter(monkeypatch):
    """What IPython is in a kernel of Jupyter, as far as it shows tables; the switch of pandas is as it was after."""
    formatters = pytest.importorskip("IPython.core.formatters")
    shell = SimpleNamespace(kernel=None, display_formatter=formatters.DisplayFormatter())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with pd.option_context("display.html.use_mathjax", True):
        yield shell.display_formatter


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_has_dollars_in_jupyter(jupyter, library):
    table = pytest.importorskip(library).DataFrame({"text": ["costs $5", "and $6"]})
    before = jupyter.format(table)[0]["text/html"]
    for one in ("pandas", library):
        display.keep_dollars(one)
    shown = jupyter.format(table)[0]["text/html"]
    assert shown.startswith('<div class="tex2jax_ignore mathjax_ignore">')
    assert Reader(shown).text == Reader(before).text
