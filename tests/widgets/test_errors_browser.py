"""The table of errors in a real browser: filters of lists, two systems, no sound, hostile texts."""

import pandas as pd
import pytest

from speechlab.widgets import AudioTable, ErrorBrowser, ReferenceBrowser, TableView
from support.browser import assert_readable, needs_axe, press, told
from support.samples import tone

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror='window.fired=1'> $5 and $6 \u202egnp </script>"
SAID = ["good morning", "this is a test", "明日の精度", "a long day"]
SMALL = ["good mourning", "this was test", "明日の制度", HOSTILE]
LARGE = ["good morning", "this is test", "明日の精度は", "a long day"]


def made(count=24, *, sound=True, two=True):
    texts = pd.DataFrame({"text": SAID, "small": SMALL, "large": LARGE, "language": ["en", "en", "ja", "en"]})
    frame = pd.concat([texts] * (count // 4), ignore_index=True)
    frame["voice"] = [f"voice-{one}" for one in range(count)]
    if sound:
        frame.insert(0, "audio", [tone(0.4)] * count)
    return ErrorBrowser(frame, hypothesis=["small", "large"] if two else "small")


def status(page):
    return page.get_by_role("status").inner_text()


def test_a_click_on_a_class_or_confusion_filters_rows(show_table):
    page = show_table(made(two=False))
    page.locator(".sl-row .sl-tag").filter(has_text="substitution").first.click()
    assert status(page) == "24 of 24 rows"  # each has one
    assert page.get_by_role("button", name="Filter · 1").is_visible()
    page.locator(".sl-row .sl-tag").filter(has_text="substitution").first.click()
    assert status(page) == "24 rows"
    # a confusion, once its column is shown
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("group", name="Columns").get_by_label("Confusions", exact=True).check()
    page.keyboard.press("Escape")
    page.wait_for_selector(".sl-row del")
    assert page.evaluate("window.fired") is None
    assert page.locator("#cell img, #cell script").count() == 0
    tag = page.locator(".sl-tag bdi").first
    assert tag.evaluate("node => getComputedStyle(node).unicodeBidi") == "isolate"
    page.locator("[data-label=confusions] .sl-tag").first.click()
    assert status(page) == "6 of 24 rows"
    page.locator("[data-label=confusions] .sl-tag").first.click()
    assert page.evaluate("leaked") == []
    page.get_by_role("button", name="Filter").click()
    confusions = page.get_by_role("group", name="confusions")
    confusions.get_by_label("精 → 制").check()
    assert status(page) == "6 of 24 rows"
    confusions.get_by_label("is → was").check()  # any of them
    assert status(page) == "12 of 24 rows"
    page.get_by_role("group", name="Error classes").get_by_label("homophone").check()  # and this
    assert status(page) == "6 of 24 rows"
    assert page.locator(".sl-row .sl-tag").first.inner_text() == "substitution"


def test_filters_open_close_and_find_categories(show_table):
    page = show_table(made())
    top = page.locator(".sl-grid").bounding_box()["y"]
    panel = page.get_by_role("group", name="Filter")
    page.get_by_role("button", name="Filter").click()
    box = panel.bounding_box()
    assert page.locator(".sl-grid").bounding_box()["y"] == top
    assert box["y"] < top + 20 < box["y"] + box["height"]
    panel.get_by_role("checkbox").first.focus()
    page.keyboard.press("Escape")
    assert panel.is_hidden()
    assert page.get_by_role("button", name="Filter").evaluate("node => node === document.activeElement")
    page.keyboard.press("Enter")
    assert panel.is_visible()
    page.locator(".sl-status").click()
    assert panel.is_hidden()
    # many categories are found by typing
    page.get_by_role("button", name="Filter").click()
    voices = page.get_by_role("group", name="voice")
    assert voices.get_by_role("checkbox").count() == 16
    assert voices.get_by_text("and 8 more").is_visible()
    voices.get_by_role("searchbox", name="Find in voice").fill("VOICE-23")
    only = voices.get_by_role("checkbox")
    assert only.count() == 1
    only.focus()
    page.keyboard.press("Space")
    assert status(page) == "1 of 24 rows"
    assert page.evaluate("document.activeElement.type") == "checkbox"
    voices.get_by_role("searchbox").fill("none such")
    assert only.is_checked()  # what is chosen stays to be taken back
    only.uncheck()
    assert status(page) == "24 rows"
    assert page.evaluate("leaked") == []


def test_two_systems_are_compared_sorted_and_filtered(show_table):
    page = show_table(made())
    page.wait_for_selector(".sl-row del")
    first = page.locator(".sl-row").first
    assert first.locator("[data-label=fewer_errors]").inner_text() == "large"
    sort = page.get_by_role("columnheader", name="Error difference").get_by_role("button")
    sort.click()
    sort.click()
    second = page.locator(".sl-row").first
    assert second.locator("[data-label=error_difference]").inner_text() == "0"
    assert second.locator("[data-label=small] ins").inner_text() == "制"
    assert second.locator("[data-label=large] ins").inner_text() == "は"
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("group", name="Fewer errors").get_by_label("neither").check()
    assert status(page) == "6 of 24 rows"


def test_a_table_without_sound_has_no_player_and_its_other_keys(show_table):
    table = made(sound=False)
    page = show_table(table)
    assert page.get_by_role("button", name="Play", exact=False).count() == 0
    page.locator(".sl-grid").focus()
    press(page, "j", " ", "a", "m", "3")
    page.wait_for_timeout(50)
    assert (table.marked, table.frame["rating"].iloc[1]) == ([table.frame.index[1]], 3)
    assert page.locator(".sl-error, .sl-failed").count() == 0
    assert page.evaluate("sent.filter(one => one.type === 'sound').length") == 0


def test_the_keys_of_suspected_references_decide_on_each(show_table):
    rows = ["a", "b", "c", "d"]
    texts = {"text": [f"{row} cats" for row in rows], "suggestion": [f"{row} hats" for row in rows]}
    browser = ReferenceBrowser(pd.DataFrame({"row": rows, **texts}))
    page = show_table(browser)
    page.locator(".sl-grid").focus()
    press(page, "y", "j", "x", "j", "n")
    page.keyboard.type("c bats")
    press(page, "Enter", "j", "y", "u")
    decided = told(page, browser).corrections(by="Ada")
    assert decided[["row", "old", "new"]].to_numpy().tolist() == [
        ["a", "a cats", "a hats"],
        ["b", "b cats", "b cats"],
        ["c", "c cats", "c bats"],
    ]
    assert set(decided["by"]) == {"Ada"}
    assert page.evaluate("leaked") == []
    keys = page.locator(".sl-keys kbd").all_text_contents()
    assert keys[:3] == ["y", "x", "n"]
    assert not any(key.startswith("1") for key in keys)  # there is nothing to rate
    # x means the reference: no other column can take its place
    page.get_by_role("button", name="Columns").click()
    assert page.get_by_role("group", name="Differences").count() == 0


def test_the_keys_of_a_sample_say_right_and_wrong(show_table):
    lines = pd.DataFrame({"text": ["a cat", "a dog", "a cow"]})
    table = AudioTable(TableView(lines, answers=("right", "wrong"), max_rating=0))
    page = show_table(table)
    page.locator(".sl-grid").focus()
    press(page, "y", "j", "x", "j", "x", "u")
    assert told(page, table).frame["note"].fillna("").tolist() == ["right", "wrong", ""]
    assert page.locator(".sl-keys kbd").all_text_contents()[:2] == ["y", "x"]


@needs_axe
@pytest.mark.parametrize("sound", [True, False])
def test_axe_finds_nothing_serious_and_nothing_is_cut_off(show_table, sound):
    page = show_table(made(4, sound=sound), "margin:0")
    page.wait_for_selector(".sl-row del")
    page.locator(".sl-row").nth(1).click()
    page.get_by_role("button", name="Filter").click()
    assert_readable(page, *([("light", 1300), ("dark", 380)] if sound else [("dark", 1300)]))
