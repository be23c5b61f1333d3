"""The preview of a batch in a real browser."""

from __future__ import annotations

import pytest

from speechlab.batch import Counts, Outcome
from speechlab.errors import SpeechLabError
from speechlab.store import Stored
from speechlab.widgets import BatchPreview
from support.browser import needs_axe, violations

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror='window.fired=1'>"


def heard(text, language="en", latency_s=0.42):
    stored = Stored("k", "transcribe", {"audio": "sha256"}, {"text": text, "language": language})
    return Outcome("ok", stored, attempts=1, latency_s=latency_s)


@pytest.fixture
def preview():
    made = BatchPreview(rows=4)
    made.begin("transcribe")
    refused = Outcome(
        "error", error=SpeechLabError("the service is busy: <b>wait</b>"), attempts=3, latency_s=9.1
    )
    rows = [
        heard("gone"),
        heard("聞き取れてますか", "ja"),
        heard(HOSTILE),
        refused,
        heard("The last of them."),
    ]
    made.update(rows, Counts(17, 40, 1, 1200, 12.0))
    return made


@pytest.mark.parametrize("shown", ["light", "dark"], indirect=True)
def test_rows_and_the_line_are_there_and_hostile_text_stays_text(show_preview, preview):
    page = show_preview(preview)
    assert page.get_by_role("group", name="Batch: Recognition").count() == 1
    assert page.locator("tbody tr").count() == 4
    assert page.get_by_text("聞き取れてますか").get_attribute("lang") == "ja"
    line = "17 of 40 calls · 1 failed · 1,200 cached · 1.4 calls/s · 16 s left"
    line += " · most often: the service is busy: <b>wait</b>"
    assert page.locator(".sl-summary").text_content() == line
    assert page.locator("[aria-live]").all_text_contents() == [line]
    assert (
        page.locator("tbody tr").nth(2).text_content()
        == "errorthe service is busy: <b>wait</b>9.10 s, 3 tries"
    )
    assert page.get_by_text("<img src=x").count() == 1
    inks = page.locator("strong, tbody .sl-text").evaluate_all(
        "nodes => nodes.map((node) => getComputedStyle(node).color)"
    )
    assert len(inks) == 5
    assert len(set(inks)) == 1
    page.evaluate("model.set('title', '<svg onload=window.fired=1>')")
    page.evaluate("model.set('summary', '<svg onload=window.fired=1>')")
    assert page.locator("img, svg, b").count() == 0
    assert page.evaluate("window.fired") is None


def test_it_follows_the_model_says_the_end_and_lets_go(show_preview, preview):
    page = show_preview(preview)
    page.evaluate("model.set('recent', [{status: 'ok', text: 'new', lang: '', latency: '1.00 s'}])")
    page.evaluate("model.set('done', 40)")
    page.evaluate("model.set('summary', 'soon')")
    assert page.locator("tbody tr").all_text_contents() == ["oknew1.00 s"]
    assert page.get_by_role("progressbar", name="Calls done").evaluate("node => node.value / node.max") == 1
    assert page.locator(".sl-summary").text_content() == "soon"
    assert page.locator("[aria-live]").text_content() != "soon"  # not at every step
    page.evaluate("model.set('running', false)")
    assert page.locator("[aria-live]").text_content() == "soon"
    page.evaluate("cleanup()")
    assert page.evaluate("model.listeners.length") == 0


def test_a_bar_that_would_say_nothing_is_not_there(show_preview, preview):
    page = show_preview(preview)
    assert page.get_by_role("progressbar").is_visible()
    page.evaluate("model.set('total', 0)")
    assert not page.get_by_role("progressbar").is_visible()


@pytest.mark.parametrize("shown", ["light", "dark"], indirect=True)
def test_in_a_narrow_place_nothing_is_cut_off(show_preview, preview):
    page = show_preview(preview, body_style="width:240px")
    page.wait_for_selector(".sl-narrow")
    edge = page.locator(".speechlab-preview").bounding_box()
    for cell in page.locator("tbody td").all():
        box = cell.bounding_box()
        assert box["width"] > 0
        assert box["x"] + box["width"] <= edge["x"] + edge["width"]
    text, latency = page.locator("tbody .sl-text").last, page.locator("tbody .sl-latency").last
    assert text.bounding_box()["y"] > latency.bounding_box()["y"]
    page.evaluate("document.body.style.width = '600px'")
    page.wait_for_selector(".speechlab-preview:not(.sl-narrow)")
    assert text.bounding_box()["x"] < latency.bounding_box()["x"]


@needs_axe
@pytest.mark.parametrize(("shown", "width"), [("light", 820), ("dark", 240)], indirect=["shown"])
def test_axe_finds_nothing_serious(show_preview, preview, shown, width):
    preview.begin("transcribe")
    preview.update([heard(HOSTILE), heard("聞き取れてますか", "ja")], Counts(2, 5, 0, 0, 1.0))
    preview.end()
    page = show_preview(preview, body_style=f"width:{width}px")
    assert violations(page, "#cell") == []
