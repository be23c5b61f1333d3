"""The page of a report in a real browser: rows sort and play, text stays text, light and dark, narrow."""

import socket
import threading

import numpy as np
import pandas as pd
import pytest

from speechlab.audio import AudioClip
from speechlab.evaluate import Report, translation
from speechlab.metrics import score
from speechlab.widgets import TableView
from support.browser import looks, needs_axe, press, violations

pytestmark = pytest.mark.browser

HOSTILE = "</script><img src=x onerror='window.fired=1'>"


def report(title, rows, **columns):
    frame = pd.DataFrame({"id": [f"r{row}" for row in range(rows)], "text": "a b c d", **columns})
    frame = frame.assign(language="en", gender="", duration_s=5.0, status="ok", error=None)
    return Report.of_scores(
        title, score(frame).assign(loop=False), record={"study": title, "runs": []}
    ).to_html()


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sounds")
    tone = AudioClip((0.3 * np.sin(np.arange(80_000) / 5)).astype(np.float32), 16_000)
    heard = ["a b c d", "a x c d", "x y c d"] * 7 + ["a b c d", "a b c d", f"{HOSTILE} x y"]
    return report(
        HOSTILE, 24,
        text=["a b c d"] * 23 + [HOSTILE], hypothesis=heard, voice="53d1acf3-1ef1", voice_name=HOSTILE,
        audio=[str(tone.save(folder / f"{row}.wav")) for row in range(24)],
    )  # fmt: skip


@pytest.fixture(scope="module")
def many():
    voices = [f"voice {row}" for row in range(12)]
    heard = ["a b c d", "a x c d"] * 6
    return report("Many voices", 12, hypothesis=heard, voice=voices, voice_name=voices, audio=None)


def test_a_report_is_read_sorted_and_heard(shown, html):
    page = shown.show(html)
    page.locator(".sl-row").first.wait_for()
    assert page.locator(".sl-row", has_text=HOSTILE).count()  # rows tell voices by their names
    assert not page.get_by_text("53d1acf3").count()
    answer = f"25.0 errors in 100 English words of “{HOSTILE}”."
    assert page.get_by_role("heading", level=1).inner_text() == answer
    assert page.locator(".kicker").inner_text() == f"{HOSTILE} · 2 texts · English"
    assert page.locator(".sure").inner_text().startswith("15.6 to 36.4 with 95% confidence")
    assert page.get_by_role("heading", level=2).all_inner_texts() == ["Rows", "Method"]
    # chart and numbers are one table
    assert page.locator("td .bar").evaluate("node => node.offsetWidth") > 100
    page.get_by_role("button", name=f"Hear {HOSTILE}").click()
    page.locator(".sl-row.sl-playing").wait_for()
    page.get_by_role("link", name="24").click()
    page.get_by_role("status").get_by_text("24 of 24 rows").wait_for()
    page.get_by_role("button", name="Show all").click()
    assert page.evaluate("getComputedStyle(document.querySelector('td')).paddingLeft") == "0px"
    page.locator("summary", has_text="How this was found").click()
    assert page.locator("li", has_text="Levenshtein").is_visible()
    assert page.get_by_text("Sounds are previews (Opus).").is_visible()
    page.get_by_role("button", name="Error rate").click()
    page.locator("[aria-sort=ascending]", has_text="Error rate").wait_for()
    page.locator(".sl-row .sl-play").first.click()
    page.locator(".sl-row.sl-playing").wait_for()
    page.locator("summary", has_text="Record of the run").click()
    assert HOSTILE in page.locator("pre").inner_text()
    assert page.evaluate("window.fired") is None
    assert page.locator("img").count() == 0
    for scheme, width in looks(page, ("light", 1200), ("dark", 380)):
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(20, 23, 29)") is (scheme == "dark")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert "&" not in page.locator("style").first.inner_text()
    heights = page.locator(".sl-sort").evaluate_all("all => all.map((one) => one.offsetHeight)")
    assert min(heights) >= 24


FOCUSED = """() => {
  const one = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  const seen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  const scrolls = one.scrollWidth > one.clientWidth;
  return [one.tagName, one.getAttribute("aria-label") || one.textContent.slice(0, 40), seen, scrolls];
}"""


def stops(page):
    """All stops of the Tab key from the top of a page: element, name, whether it is seen, whether it scrolls."""
    page.evaluate("document.activeElement.blur()")
    found = []
    while len(found) < 80:
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            return found
        found.append(page.evaluate(FOCUSED))
    raise AssertionError(f"the keys do not come out of the page again: {found[-5:]}")


def test_keys_alone_reach_sort_and_play(shown, html):
    page = shown.show(html)
    page.locator(".sl-row").first.wait_for()
    found = stops(page)
    assert [stop for stop in found if not stop[2]] == []
    names = [name for _, name, *_ in found]
    order = [names.index(name) for name in ("Play", "Search texts and notes", "Filter", HOSTILE)]
    assert order == sorted(order)
    assert order[-1] < names.index("Play row 1") < names.index("Keys") < names.index("Record of the run")
    boxes = [stop for stop in found if stop[0] in {"DIV", "FIGURE"} and stop[1] != HOSTILE and not stop[3]]
    assert boxes == [["DIV", "Position", True, False]]
    page.get_by_role("button", name="Error rate").focus()
    for order in ("ascending", "descending"):
        page.keyboard.press("Enter")
        page.locator(f"[aria-sort={order}]", has_text="Error rate").wait_for()
        assert page.evaluate("document.activeElement.textContent").replace("\u200b", "")[:10] == "Error rate"
    page.get_by_role("grid").focus()
    press(page, "ArrowDown", "Space")
    page.locator(".sl-row.sl-playing").wait_for()
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED)[1] == "Columns"


def test_a_table_is_short_on_a_phone_and_nothing_of_it_is_lost(shown, many):
    shown.page.set_viewport_size({"width": 380, "height": 700})
    page = shown.show(many)
    page.locator(".sl-row").first.wait_for()
    cards = page.get_by_role("group", name="Error rates").locator("tbody tr")
    rates = [page.locator("td[data-label='error rate']").nth(card) for card in range(2)]
    places = [rate.evaluate("node => node.getBoundingClientRect().right") for rate in rates]
    assert places[0] == places[1]  # figures stand below each other
    assert max(cards.nth(card).evaluate("node => node.offsetHeight") for card in range(2)) < 80
    assert not cards.first.locator("td[data-label=gender]").is_visible()
    more = page.get_by_role("button", name="Show all 12 rows")
    heights = page.evaluate("document.documentElement.scrollHeight")
    more.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.scrollHeight") > heights + 200
    page.get_by_role("button", name="Show the first 6 rows alone").click()
    assert page.evaluate("document.documentElement.scrollHeight") == heights
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.get_by_role("button", name="Show the first 6 rows alone").is_visible()
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 800, "height": 700})
    assert [cards.nth(card).is_visible() for card in (0, 11)] == [True, True]
    assert not page.get_by_role("button", name="Show").is_visible()


@pytest.mark.parametrize("shown", ["dark"], indirect=True)
def test_on_paper_no_table_is_cut_off_and_ink_is_dark(shown, html, many):
    for report in (html, many):
        page = shown.show(report)
        page.locator(".sl-row").first.wait_for()
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 690, "height": 900})  # A4 with its margins
        edges = page.locator("main [role=group] > table").evaluate_all(
            "all => all.map((one) => one.getBoundingClientRect().right)"
        )
        assert max(edges) <= 690
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 34, 48)"
        assert not page.get_by_role("searchbox").is_visible()
        page.emulate_media(media="screen")


def test_paper_has_the_first_rows_and_says_of_how_many(shown):
    frame = pd.DataFrame({"text": [f"row {number}" for number in range(40)], "audio": None})
    page = shown.show(TableView(frame).render_page("Rows"))
    page.locator(".sl-row").first.wait_for()
    page.locator(".sl-grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight }")
    page.get_by_text("row 39").wait_for()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator(".sl-row .sl-text").all_inner_texts() == [f"row {number}" for number in range(12)]
    below = "grid => getComputedStyle(grid, '::after').content"
    assert page.locator(".sl-grid").evaluate(below) == '"The first 12 of 40 rows."'
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".sl-grid").evaluate(below) == "none"
    page.get_by_text("row 39").wait_for()


def test_a_search_finds_a_row_that_is_folded(chromium, many, tmp_path):
    (tmp_path / "report.html").write_text(many, "utf-8")
    page = chromium.new_page(viewport={"width": 380, "height": 700})
    address = (tmp_path / "report.html").as_uri()
    page.goto(address)
    page.get_by_role("button", name="Show all 12 rows").wait_for()
    page.goto(f"{address}#:~:text=voice%C2%A011")  # as one who searches for it
    page.get_by_role("button", name="Show the first 6 rows alone").wait_for(timeout=10_000)
    page.close()


def test_rows_are_there_before_the_sounds(chromium, html):
    data = html.encode()
    sounds = data.index(b'id="sounds"')
    rest = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(data)}\r\n\r\n"
                connection.sendall(head.encode() + data[: sounds + 10_000])
                rest.wait(20)
                connection.sendall(data[sounds + 10_000 :])

        thread = threading.Thread(target=serve)
        thread.start()
        page = chromium.new_page()
        page.goto(f"http://127.0.0.1:{server.getsockname()[1]}/", wait_until="commit")
        page.locator(".sl-row").first.wait_for()
        assert page.evaluate("document.readyState") == "loading"
        page.get_by_role("button", name="Error rate").click()
        page.locator("[aria-sort]:not([aria-sort=none])", has_text="Error rate").wait_for()
        page.locator(".sl-row .sl-play").first.click()
        rest.set()
        page.locator(".sl-row.sl-playing").wait_for()
        thread.join()
        page.close()


@needs_axe
def test_axe_finds_nothing(chromium, html, tmp_path):
    (tmp_path / "report.html").write_text(html, "utf-8")
    context = chromium.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    page.locator(".sl-row").first.wait_for()
    for look in looks(page, ("light", 1280), ("dark", 1280)):
        assert violations(page) == [], look
    context.close()


def test_what_was_found_is_read_without_scripts(chromium, html, tmp_path):
    (tmp_path / "report.html").write_text(html, "utf-8")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    assert page.locator("noscript").inner_text() == "The rows need JavaScript, which this page holds itself."
    assert page.locator("td .bar").is_visible()
    assert page.get_by_role("cell", name="24").is_visible()
    context.close()


def test_translations_have_such_a_page_without_sound(shown):
    texts = {
        "text": [HOSTILE, "さようなら。"],
        "reference": ["Hello there.", "Good bye."],
        "theirs": ["Hi there.", None],
    }
    of = {"source_lang": "ja", "target_lang": "en", "progress": False}
    page = shown.show(translation(None, pd.DataFrame(texts), hypotheses="theirs", **of).to_html())
    page.locator(".sl-row ins").first.wait_for()
    assert (page.locator(".sl-row").count(), page.get_by_role("button", name="Play").count()) == (2, 0)
    assert page.get_by_text("Opus").count() == 0
    assert page.evaluate("window.fired") is None
