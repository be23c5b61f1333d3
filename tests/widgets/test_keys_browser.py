"""Who has the keys: after a click anywhere in a widget it has them, and after a click elsewhere the notebook."""

import pandas as pd
import pytest

from speechlab.batch import Counts, Outcome
from speechlab.widgets import AudioTable, BatchPreview, ListeningTest, Player, Recorder, SegmentEditor
from support.browser import press
from support.samples import tone

pytestmark = pytest.mark.browser

KEYS = [*"abcdefghijklmnopqrstuvwxyz0123456789", *"ABCDMXYZ", " ", "Enter", "Escape", "Delete", "Backspace"]
KEYS += [*(f"Arrow{way}" for way in ("Up", "Down", "Left", "Right")), "Home", "End", "PageUp", "PageDown"]
KEYS += ["Shift+Enter", *(f"Control+{key}" for key in ("z", "a", "x", "v", "Enter")), "Shift+ArrowDown"]
FEW = ["m", "ArrowDown", "Enter"]
"""Keys that change a notebook, pressed at each place."""
DISPATCH = """(keys) => {
  for (const name of keys) {
    const [key, ...held] = name === " " ? [name] : name.split("+").reverse();
    const shiftKey = held.includes("Shift") || /^[A-Z]$/.test(key);
    const options = { key, shiftKey, ctrlKey: held.includes("Control"), bubbles: true, cancelable: true };
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", options));
  }
}"""
"""Has the element with the focus get many keys, which takes a tenth of pressing each."""
LEAKED = "leaked.splice(0).filter((key) => !['Control', 'Shift'].includes(key))"
PLACES = """() => {
  const root = document.querySelector(".speechlab-live");
  const box = root.getBoundingClientRect();
  const places = [];
  for (let y = 3; y < Math.min(box.height, 560); y += 17) {
    for (const share of [0.01, 0.5, 0.985]) {
      const at = [box.left + share * box.width, box.top + y];
      const node = document.elementFromPoint(...at);
      const acts = node?.closest("button, input, select, textarea, canvas, summary, label, .sl-seek");
      if (node && root.contains(node) && !acts) places.push([node.className || node.tagName, at]);
    }
  }
  return Object.values(Object.fromEntries(places));
}"""


def rows(count=6):
    return pd.DataFrame(
        {"audio": [tone(0.4)] * count, "text": "said", "hypothesis": "heard", "rate": range(count)}
    )


def show_by_name(request, shown, name):
    if name == "table":
        return request.getfixturevalue("show_table")(AudioTable(rows()))
    if name == "player":
        return request.getfixturevalue("show_player")(Player(tone(2), [(0.2, 0.5, "one")]))
    if name == "editor":
        return request.getfixturevalue("show_player")(SegmentEditor(tone(2), [(0.2, 0.5, "one")]))
    if name == "test":
        systems = pd.DataFrame(
            {"item": [*"aabb"], "system": ["one", "two"] * 2, "audio": [tone(0.4), tone(0.5)] * 2}
        )
        return request.getfixturevalue("show_test")(ListeningTest(systems, "ab", training=0, checks=0))
    if name == "recorder":
        recorder = Recorder()
        shown.answer(recorder)
        return shown.show_widget("recorder", recorder, "title max_s processing _outlines takes recording")
    preview = BatchPreview()
    preview.begin("synthesize")
    preview.update([Outcome("error", error_text="no")], Counts(1, 2, 1, 0, 1.0))
    return request.getfixturevalue("show_preview")(preview)


@pytest.mark.parametrize("name", ["table", "player", "editor", "test", "recorder", "preview"])
def test_a_click_in_a_widget_gives_it_the_keys(request, shown, name):
    page = show_by_name(request, shown, name)
    root = page.locator(".speechlab-live")
    outside = "getComputedStyle(document.querySelector('.speechlab-live')).boxShadow"
    page.locator("main").evaluate(
        "main => main.insertAdjacentHTML('afterend', '<p id=elsewhere>The notebook</p>')"
    )
    assert page.evaluate(outside) == "none"
    places = page.evaluate(PLACES)
    assert len(places) >= 1
    had_all_keys = set()
    for x, y in places:
        page.locator("#elsewhere").click()
        page.mouse.click(x, y)
        page.wait_for_function("document.querySelector('.speechlab-live').contains(document.activeElement)")
        assert page.evaluate(outside) != "none"
        control = page.evaluate("`${document.activeElement.tagName} ${document.activeElement.className}`")
        for key in FEW:
            page.keyboard.press(key)
        if control not in had_all_keys:
            page.evaluate(DISPATCH, KEYS)
        had_all_keys.add(control)
        assert page.evaluate(LEAKED) == []
    page.keyboard.press("Control+s")  # the notebook's own
    assert page.evaluate(LEAKED) == ["s"]
    page.locator("#elsewhere").click()
    assert root.evaluate("root => root.contains(document.activeElement)") is False
    assert page.evaluate(outside) == "none"
    page.evaluate(DISPATCH, KEYS[:44])
    for key in FEW:
        page.keyboard.press(key)
    assert page.evaluate(LEAKED) == [*KEYS[:44], *FEW]


def test_keys_stay_in_the_table_when_the_focus_goes(show_table):
    table = AudioTable(rows())
    page = show_table(table)
    page.evaluate("document.getElementById('cell').tabIndex = -1")
    page.get_by_role("button", name="Mark row 1").click()
    page.evaluate("document.getElementById('cell').focus()")  # as a notebook does
    page.wait_for_function("document.querySelector('.speechlab-live').contains(document.activeElement)")
    page.keyboard.press("5")
    page.get_by_role("button", name="Marked").click()
    page.get_by_role("button", name="Show all").click()  # hides itself
    press(page, "ArrowDown", "m")
    page.wait_for_function("document.querySelectorAll('.sl-star[aria-pressed=true]').length === 2")
    page.get_by_label("Note on row 2").click()
    page.evaluate("document.activeElement.disabled = true")
    page.wait_for_function("document.activeElement === document.body")
    press(page, "4", "ArrowDown")
    page.wait_for_function("document.querySelector('.sl-on')?.dataset.row === '2'")
    assert page.evaluate("leaked") == []
    assert table.frame["rating"].tolist()[:2] == [5, 4]


def test_the_keys_of_a_table_work_wherever_it_was_clicked(show_table):
    table = AudioTable(rows())
    page = show_table(table)
    page.locator(".sl-heard").click()  # the caption
    press(page, "m", "ArrowDown", "5")
    page.get_by_role("button", name="Columns").click()
    page.keyboard.press("3")
    page.locator(".sl-panel").get_by_label("rate").click()
    page.keyboard.press("m")
    page.keyboard.press(" ")  # presses the box
    page.locator(".sl-status").click()
    press(page, "End", "2")
    page.wait_for_function("document.querySelector('.sl-on')?.dataset.row === '5'")
    page.evaluate("model.answered()")
    assert page.evaluate("leaked") == []
    assert (table.marked, table.frame["rating"].tolist()) == ([0, 1], [pd.NA, 3, pd.NA, pd.NA, pd.NA, 2])
    assert page.locator(".sl-panel").get_by_label("rate").is_checked()
