"""The table of sound in a real browser, driven by real clicks and keys, and answered by the real table."""

import numpy as np
import pandas as pd
import pytest

from speechlab import widgets
from speechlab.audio import AudioClip
from speechlab.widgets import AudioTable
from support.browser import assert_readable, looks, needs_axe, press
from support.samples import tone

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror='window.fired=1'> $5 and $6 \u202egnp"
TEXTS = ["this is a test", "明日の精度", HOSTILE, "会議は三時です"]
HEARD = ["this was test", "あすの制度", "<script>window.fired=1</script>", "会議は四時です"]


def made(count=40, **options):
    clips = [tone(0.4), tone(0.8)]
    rows = [
        (clips[one % 2], ("en", "ja")[one % 2], TEXTS[one % 4], HEARD[one % 4], (one * 7) % count / count)
        for one in range(count)
    ]
    return AudioTable(
        pd.DataFrame(rows, columns=["audio", "language", "text", "hypothesis", "rate"]), **options
    )


def heard(page):
    """Wait until something plays, and say which row."""
    page.wait_for_function("document.querySelector('.sl-row.sl-playing')")
    return int(page.locator(".sl-row.sl-playing").get_attribute("data-row"))


def shown_rows(page):
    return page.eval_on_selector_all(".sl-row", "rows => rows.map(row => Number(row.dataset.row))")


def test_rows_have_waveforms_and_differences(show_table):
    page = show_table(made())
    page.wait_for_selector(".sl-row svg")
    page.wait_for_selector(".sl-row del")
    first = page.locator(".sl-row").first
    assert first.locator("del").all_inner_texts() == ["is a"]
    assert first.locator("ins").all_inner_texts() == ["was"]
    second = page.locator(".sl-row").nth(1)
    assert second.locator("ins.sl-homophone").all_inner_texts() == ["制"]
    assert second.locator(".sl-words[lang=ja]").count() == 2
    assert page.evaluate("window.fired") is None
    assert page.locator("#cell img, #cell script, #cell iframe").count() == 0
    # a mark that turns the direction around ends with the text that holds it
    page.locator(".sl-row").nth(2).click()
    # of which Firefox's innerText has no sign
    text = page.locator(".sl-heard bdi").inner_text().replace("\u202e", "")
    assert text == f"3: {HOSTILE}".replace("\u202e", "")
    assert page.locator(".sl-words").first.evaluate("node => getComputedStyle(node).unicodeBidi") == "isolate"
    root = page.locator(".speechlab-table")
    assert "mathjax_ignore" in root.get_attribute("class")


def test_a_click_plays_a_row_and_another_pauses(show_table):
    page = show_table(made())
    page.get_by_role("button", name="Play row 1", exact=True).click()
    assert heard(page) == 0
    # the sound of the next row is there before it is asked for
    page.wait_for_function("sent.filter(one => one.type === 'sound').length === 2")
    assert page.evaluate("sent.filter(one => one.type === 'sound').map(one => one.row)") == [0, 1]
    page.get_by_role("button", name="Play row 2", exact=True).click()
    page.locator(".sl-row.sl-playing[data-row='1']").wait_for()
    page.get_by_role("button", name="Pause row 2").click()
    page.wait_for_function("!document.querySelector('.sl-row.sl-playing')")
    assert page.evaluate("model.get('chosen')") == 1


def test_a_sound_of_many_messages_is_put_together(show_table, monkeypatch):
    monkeypatch.setattr("speechlab.widgets._shared.live._MAX_MESSAGE_BYTES", 3_000)
    page = show_table(made(300))  # rows come in parts, too
    page.get_by_text("300 rows", exact=True).wait_for()
    page.wait_for_selector(".sl-row svg")
    page.get_by_role("button", name="Play row 2", exact=True).click()
    assert heard(page) == 1
    page.get_by_text("/ 0:00.8").wait_for()


def test_sound_is_asked_for_before_the_click_ends(shown, show_table):
    shown.page.add_init_script(
        "window.made = []; const Native = Audio;"
        "window.Audio = function (url) { const one = new Native(url); made.push(one); return one; };"
    )
    page = show_table(made())
    page.mouse.move(0, 0)
    assert page.evaluate("made.length") == 1
    page.locator(".sl-search").hover()
    page.wait_for_function("made.length === 2 && made[1].readyState === 4 && made[1].paused")
    page.locator(".sl-tools").hover()
    assert page.evaluate("made.length") == 2
    play = page.get_by_role("button", name="Play row 4", exact=True)
    play.dispatch_event("pointerdown")
    page.wait_for_function("sent.some((one) => one.type === 'sound' && one.row === 3)")
    assert page.locator(".sl-on").count() == 0
    play.click()
    assert heard(page) == 3


def test_keys_choose_play_mark_rate_and_write(show_table):
    table = made()
    page = show_table(table)
    page.locator(".sl-grid").focus()
    press(page, "ArrowDown", "j", "k", "m", "4", " ")
    assert heard(page) == 1
    page.keyboard.press("j")  # what plays goes on with the row that was chosen
    page.wait_for_function("document.querySelector('.sl-row.sl-playing')?.dataset.row === '2'")
    press(page, "Escape", "n", "x", "y", "Enter", "a")
    assert heard(page) == 2
    page.keyboard.press("/")
    page.keyboard.type("jmx")
    page.wait_for_timeout(50)
    assert page.evaluate("leaked") == []
    assert (table.marked, table.frame.loc[1, "rating"], table.frame.loc[2, "note"]) == ([1], 4, "xy")
    assert page.locator(".sl-search").input_value() == "jmx"


def test_table_has_roles_names_and_an_order_of_tab(show_table):
    page = show_table(made())
    grid = page.get_by_role("grid", name="Sounds")
    page.keyboard.press("Tab")
    grid.focus()
    chosen = page.locator(f"[id='{grid.get_attribute('aria-activedescendant')}']")
    assert (chosen.get_attribute("aria-selected"), chosen.get_attribute("role")) == ("true", "row")
    assert page.get_by_role("slider", name="Position").get_attribute("aria-valuetext").endswith("seconds")
    assert page.locator("[role=row] > :not([role=gridcell], [role=columnheader])").count() == 0
    page.locator(".sl-row").nth(1).locator(".sl-text").first.click()
    names = []
    for _ in range(17):
        page.keyboard.press("Tab")
        named = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName"
        names.append(page.evaluate(named))
    # names of columns to sort by, then what is in the row: two buttons, five ratings, the note; then what follows
    first = names.index("Play row 2")
    assert (names[:3], names[first + 1]) == (["Sort by Mark", "Sort by Rating", "BUTTON"], "Mark row 2")
    assert names[first + 7 : first + 9] == ["Note on row 2", "SUMMARY"]


def test_rows_are_sorted_searched_and_filtered(show_table):
    page = show_table(made())
    rate = page.get_by_role("columnheader", name="rate")
    orders = []
    for _ in range(3):
        rate.get_by_role("button").click()
        orders.append((rate.get_attribute("aria-sort"), shown_rows(page)[:2]))
    assert orders == [("ascending", [0, 23]), ("descending", [17, 34]), ("none", [0, 1])]
    status = page.get_by_role("status")
    page.get_by_role("searchbox").fill("TEST this")
    page.wait_for_function("document.querySelector('.sl-status').textContent.startsWith('10 of 40')")
    page.get_by_role("button", name="Show all").click()
    assert status.inner_text() == "40 rows"
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("checkbox", name="ja 20").check()
    assert status.inner_text() == "20 of 40 rows"
    box = page.locator(".sl-histogram").bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.up()
    seen = shown_rows(page)
    assert 0 < len(seen) < 20
    assert all(row % 2 == 1 and (row * 7 % 40) / 40 <= 0.5 for row in seen)
    assert page.get_by_role("button", name="Filter").inner_text() == "Filter · 2"
    page.get_by_label("Greatest rate").select_text()
    page.keyboard.type("0.1")  # what a script sets is no change in Firefox
    page.keyboard.press("Enter")
    page.get_by_label("Greatest rate").blur()
    assert all((row * 7 % 40) / 40 <= 0.1 for row in shown_rows(page))
    page.get_by_role("button", name="Show all").click()
    page.get_by_role("button", name="Marked").click()
    assert page.get_by_text("No matching rows.").is_visible()


def test_infinite_numbers_are_sorted_and_in_no_histogram(show_table):
    frame = made(5).frame.assign(rate=[0.5, float("inf"), None, float("-inf"), 0.25])
    page = show_table(AudioTable(frame))
    rate = page.get_by_role("columnheader", name="rate")
    rate.get_by_role("button").click()
    assert shown_rows(page) == [3, 4, 0, 1, 2]
    cells = page.locator(".sl-row .sl-number .sl-words, .sl-row .sl-missing.sl-number span")
    assert cells.all_inner_texts() == ["−∞", "0.250", "0.500", "∞", "–"]
    page.get_by_role("button", name="Filter").click()
    assert page.get_by_label("Least rate").input_value() == "0.250"
    assert page.get_by_label("Greatest rate").input_value() == "0.500"


def test_what_python_changes_shows(show_table):
    table = made()
    page = show_table(table)
    told = []
    answer, table.send = table.send, lambda content, buffers=(): told.append(content)
    table.marked = [0]
    table.note(0, "from Python")
    table.send = answer  # what the page asks for meanwhile is answered as ever
    for content in told:
        page.evaluate("message => model.emit('msg:custom', message, [])", content)
    assert page.get_by_role("button", name="Mark row 1", exact=True).get_attribute("aria-pressed") == "true"
    assert page.get_by_label("Note on row 1", exact=True).input_value() == "from Python"
    page.evaluate("model.set('chosen', 30)")
    assert page.locator(".sl-row.sl-on").get_attribute("data-row") == "30"
    assert page.locator(".sl-row.sl-on").evaluate(
        "row => { const box = row.getBoundingClientRect(), grid = row.closest('.sl-grid').getBoundingClientRect();"
        " return box.top >= grid.top && box.bottom <= grid.bottom + 1; }"
    )


def test_another_reference_makes_other_differences(show_table):
    table = made(hypotheses=[])
    page = show_table(table)
    assert page.locator(".sl-row del").count() == 0
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("show in text").check()
    page.get_by_role("combobox", name="from").select_option("hypothesis")
    page.wait_for_selector(".sl-row del")
    assert page.locator(".sl-row").first.locator("del").all_inner_texts() == ["was"]


def test_of_ten_thousand_rows_only_those_exist_that_are_seen(show_table):
    table = made(10_000)
    table.selected = 7_000
    page = show_table(table)
    page.wait_for_function(
        "document.querySelector('.sl-status').textContent === '10,000 rows'", timeout=20_000
    )
    page.locator(".sl-row.sl-on[data-row='7000']").wait_for()  # it was chosen before
    assert page.locator(".sl-row").count() < 60
    page.locator(".sl-grid").focus()
    page.keyboard.press("End")
    page.wait_for_selector(".sl-row[data-row='9999']")
    assert page.locator(".sl-row").count() < 60
    assert page.locator(".sl-grid").get_attribute("aria-rowcount") == "10001"


def test_rows_say_that_sound_or_kernel_is_gone(show_table):
    table = made(4)
    table.frame = table.frame.assign(audio=[tone(0.4), "gone.wav", None, b"0123456789 is no sound"])
    page = show_table(table)
    page.get_by_text("the file is gone").first.wait_for()
    page.locator(".sl-row[data-row='3'] .sl-error").wait_for()
    row, judge = (page.locator(f".sl-row[data-row='3'] {part}").bounding_box() for part in ("", ".sl-judge"))
    assert judge["y"] + judge["height"] <= row["y"] + row["height"]  # however long the reason is
    page.get_by_role("button", name="Play row 3").click()
    page.locator(".sl-heard.sl-failed", has_text="no sound").wait_for()
    page.evaluate("() => { model.send = () => { throw new Error('Kernel is dead'); }; }")
    page.get_by_role("button", name="Play row 4").click()
    page.locator(".sl-heard.sl-failed", has_text="the kernel is gone").wait_for()


@needs_axe
def test_axe_finds_nothing_serious(show_table):
    page = show_table(made(4))
    page.wait_for_selector(".sl-row del")
    page.locator(".sl-row").nth(1).click()
    for name in ("Filter", "Columns"):
        page.get_by_role("button", name=name).click()
    page.get_by_text("Keys").click()
    assert_readable(page, ("light", 1300), ("dark", 780), ("dark", 380))


def test_narrow_cells_and_high_contrast_show_all(show_table):
    page = show_table(made(6), "margin:0;width:380px")
    page.wait_for_selector(".sl-narrow .sl-row del")
    wide = page.evaluate(
        """() => [...document.querySelectorAll(".sl-row *, .sl-tools *")].filter((node) =>
          node.getBoundingClientRect().right > 380.5 && !node.closest("svg")).length"""
    )
    assert wide == 0
    for scheme, _ in looks(page, ("dark", 820), ("light", 820)):
        paper = page.evaluate("getComputedStyle(document.querySelector('.speechlab-table')).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") is (scheme == "light")
    seek, onwards = (page.locator(part).bounding_box() for part in (".sl-seek", ".sl-onwards"))
    assert seek["y"] <= onwards["y"] < seek["y"] + seek["height"]  # no line is empty before a row is chosen
    page.locator(".sl-row").first.click()
    page.keyboard.press("m")
    page.emulate_media(forced_colors="active")
    ink = "node => getComputedStyle(node).backgroundColor"
    forced = page.locator(".speechlab-table").evaluate(ink)
    assert page.locator(".sl-play .sl-icon").first.evaluate(ink) != forced
    assert page.locator(".sl-star[aria-pressed=true]").evaluate(ink) != forced
    assert page.locator(".sl-row.sl-on").evaluate("node => getComputedStyle(node).outlineStyle") == "solid"


def assert_names_stand_above_cells(page):
    names, cells = page.evaluate(
        """() => ["header", "row"].map((name) => [...document.querySelector(`.sl-${name}`).children].map(
          (cell) => Math.round(cell.getBoundingClientRect().left)))"""
    )
    assert names == cells
    assert page.locator(".sl-header").evaluate("node => getComputedStyle(node, '::before').content") == "none"


def test_the_saved_page_plays_under_its_own_policy(shown, tmp_path):
    shown.page.set_viewport_size({"width": 1300, "height": 700})
    text = made(6).save(tmp_path / "page.html").read_text("utf-8")
    page = shown.show(text)
    page.locator(".sl-row del").first.wait_for()
    assert_names_stand_above_cells(page)
    page.get_by_role("button", name="Play row 2").click()
    page.locator(".sl-row.sl-playing").wait_for()
    assert page.locator(".sl-row.sl-playing").get_attribute("data-row") == "1"
    assert page.evaluate("window.fired") is None
    assert page.get_by_role("button", name="Save marks").count() == 1
    assert page.get_by_role("heading", level=1).all_inner_texts() == ["Sounds"]


def test_names_of_many_columns_stand_above_their_cells(shown, tmp_path):
    shown.page.set_viewport_size({"width": 1300, "height": 700})
    frame = made(6).frame.drop(columns=["mark", "rating", "note"])
    frame = frame.assign(**{f"measure_{one}": np.arange(6) / 7 for one in range(13)})
    page = shown.show(AudioTable(frame).save(tmp_path / "page.html").read_text("utf-8"))
    page.locator(".sl-row del").first.wait_for()
    header = page.locator(".sl-header")
    # a wide table has columns: what has no room is one click away
    assert_names_stand_above_cells(page)
    assert header.evaluate("node => node.scrollWidth <= node.clientWidth")
    assert page.locator(".sl-header [role=columnheader]").count() < 18
    page.get_by_role("button", name="Columns").click()
    columns = page.get_by_role("group", name="Columns")
    assert not columns.get_by_label("Measure 12").is_checked()
    columns.get_by_label("Measure 12").check()  # in place of another one
    page.get_by_role("columnheader", name="Measure 12").wait_for()
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 820, "height": 700})
    page.locator(".sl-cards").wait_for()
    said = header.evaluate("node => getComputedStyle(node, '::before').content")
    assert said == '"Sort by"'
    assert header.bounding_box()["height"] < 50  # one line, which scrolls, and the page does not
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Measure 12").click()
    page.wait_for_selector(".sl-header [aria-sort=ascending]")
    sound = header.get_by_text("Sound", exact=True)  # read by those who do not see
    assert sound.evaluate("node => node.getBoundingClientRect().width") <= 1


def test_texts_of_many_rows_sort_with_missing_ones_last(show_table):
    texts = [f"text {(one * 7_919) % 4_993}" for one in range(5_000)]  # some twice, in the order of the table
    silence = AudioClip(np.zeros(80, np.float32), 8_000)
    frame = pd.DataFrame({"audio": [silence] * 5_000, "text": [None, *texts[1:]]})
    page = show_table(AudioTable(frame, columns=["text"]))
    page.wait_for_function("document.querySelector('.sl-status').textContent === '5,000 rows'")
    order = sorted(range(1, 5_000), key=lambda one: (int(texts[one].split()[1]), one))
    down = sorted(range(1, 5_000), key=lambda one: (-int(texts[one].split()[1]), one))
    button = page.get_by_role("columnheader", name="Text").get_by_role("button")
    for expected, last in ((order, order[-1]), (down, down[-1])):
        button.click()
        page.wait_for_function(f"document.querySelector('.sl-row').dataset.row === '{expected[0]}'")
        assert shown_rows(page)[:8] == expected[:8]
        page.locator(".sl-grid").focus()
        page.keyboard.press("End")
        page.wait_for_function("document.querySelector('.sl-row.sl-on').dataset.row === '0'")
        assert last in shown_rows(page)
        page.keyboard.press("Home")


COMPUTED = """() => [...document.querySelectorAll(".speechlab-live, .speechlab-live *")].map((node) => {
  const style = getComputedStyle(node);
  const sizes = ["maxWidth", "width", "minHeight", "padding", "margin", "gap", "borderRadius", "display", "font"];
  const looks = ["cursor", "opacity", "background", "color", "textAlign"];
  return `${node.className} ${[...sizes, ...looks].map((name) => style[name])}`;
})"""


@pytest.mark.parametrize("maker", ["show_table", "show_test", "show_player"])
def test_no_rule_depends_on_the_widget_that_came_last(show_table, show_test, show_player, maker):
    frame = made(3).frame.assign(system=["a", "b", "c"], item="one")
    page = {
        "show_table": lambda: show_table(AudioTable(frame)),
        "show_test": lambda: show_test(
            widgets.ListeningTest(frame, "mos", item="item", training=0, checks=0)
        ),
        "show_player": lambda: show_player(widgets.Player(tone(1), [(0.2, 0.5, "text")])),
    }[maker]()
    page.set_viewport_size({"width": 1920, "height": 900})
    page.wait_for_timeout(200)
    before = page.evaluate(COMPUTED)
    others = (AudioTable, widgets.Player, widgets.SegmentEditor, widgets.Recorder, widgets.ListeningTest)
    for other in (*others, widgets.StreamPlayer, widgets.BatchPreview):
        page.add_style_tag(content=other._css)
    page.wait_for_timeout(100)
    assert page.evaluate(COMPUTED) == before
    if maker != "show_test":  # the width of the window is used
        assert page.locator(".speechlab-live").bounding_box()["width"] > 1850
