"""The preview of a batch in a real browser."""

import pytest

from speechlab.batch import Counts, Outcome
from speechlab.errors import SpeechLabError
from speechlab.store import StoredResult
from speechlab.widgets import BatchPreview
from support.browser import FAKE_MODEL, assert_readable, needs_axe

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror='window.fired=1'>"


def heard(text, language="en", latency_s=0.42):
    stored = StoredResult("k", "transcribe", {"audio": "sha256"}, {"text": text, "language": language})
    return Outcome("ok", stored, attempts=1, latency_s=latency_s)


@pytest.fixture
def preview():
    made = BatchPreview(rows=4)
    made.begin("transcribe")
    busy = SpeechLabError("the service is busy: <b>wait</b>")
    rows = [heard("gone"), heard("聞き取れてますか", "ja"), heard(HOSTILE), heard("The last of them.")]
    rows.insert(3, Outcome("error", error=busy, attempts=3, latency_s=9.1))
    made.update(rows, Counts(17, 40, 1, 1200, 12.0))
    return made


def test_preview_shows_rows_and_line_as_text(show_preview, preview):
    page = show_preview(preview)
    assert page.get_by_role("group", name="Batch: Recognition").count() == 1
    assert page.locator("tbody tr").count() == 4
    assert page.get_by_text("聞き取れてますか").get_attribute("lang") == "ja"
    line = "17 of 40 calls · 1 failed · 1,200 cached · 1.4 calls/s · 16 s left"
    line += " · most often: the service is busy: <b>wait</b>"
    assert page.locator(".sl-summary").text_content() == line
    assert page.locator("[aria-live]").all_text_contents() == [line]
    failed = page.locator("tbody tr").nth(2).text_content()
    assert failed == "errorthe service is busy: <b>wait</b>9.10 s, 3 tries"
    assert page.get_by_text("<img src=x").count() == 1
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
    assert page.get_by_role("progressbar", name="Progress").evaluate("node => node.value / node.max") == 1
    assert page.locator(".sl-summary").text_content() == "soon"
    assert page.locator("[aria-live]").text_content() != "soon"  # not at every step
    page.evaluate("model.set('running', false)")
    assert page.locator("[aria-live]").text_content() == "soon"
    # a bar that would say nothing is not there
    assert page.get_by_role("progressbar").is_visible()
    page.evaluate("model.set('total', 0)")
    assert not page.get_by_role("progressbar").is_visible()
    page.evaluate("cleanup()")
    assert page.evaluate("model.listeners.length") == 0


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


def test_the_live_view_replaces_the_html_and_gives_it_back(shown):
    preview = BatchPreview()
    shown.files["/preview.js"] = ("text/javascript", preview._esm)
    html = preview._repr_mimebundle_()["text/html"]
    page = shown.show(
        f"<!DOCTYPE html><script>{FAKE_MODEL}</script><body><div id=one>{html}</div><div id=two></div>"
    )
    names = "_place title summary running done total recent earlier"
    page.evaluate(
        """async (state) => {
          const widget = (await import("/preview.js")).default;
          window.model = new FakeModel(state);
          window.end = widget.initialize({ model });
        }""",
        {name: getattr(preview, name) for name in names.split()},
    )
    live, place = page.locator(".speechlab-preview"), page.locator(f".{preview._place}")
    assert (live.count(), place.is_visible()) == (1, False)
    # a second view of the same output, as notebooks offer them
    page.evaluate(
        "two.append(one.firstElementChild.cloneNode(true)); two.firstElementChild.style.display = ''"
    )
    live.nth(1).wait_for()
    # other HTML in the same place: the view goes on, and is not made anew
    page.evaluate("live = one.querySelector('.speechlab-preview')")
    page.evaluate("html => { one.innerHTML = html; }", html)
    page.wait_for_function("one.querySelector('.speechlab-preview') === live")
    assert live.count() == 2
    page.evaluate("end()")
    assert (live.count(), place.first.is_visible()) == (0, True)


@needs_axe
def test_axe_finds_nothing_serious(show_preview, preview):
    preview.begin("transcribe")
    preview.update([heard(HOSTILE), heard("聞き取れてますか", "ja")], Counts(2, 5, 0, 0, 1.0))
    preview.end()
    page = show_preview(preview)
    assert_readable(page, ("light", 820), ("dark", 240))
