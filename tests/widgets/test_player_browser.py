"""The player in a real browser, driven by real clicks and keys."""

from __future__ import annotations

import re

import numpy as np
import pytest

from speechlab.audio import AudioClip
from speechlab.widgets import Player

pytestmark = pytest.mark.browser

RATE = 24_000
SEGMENTS = [
    (0.25, 0.75, "聞き取れてますか"),
    (1.0, 1.5, "<img src=x onerror='window.fired=1'>"),
    (3.0, 3.9, "end"),
]


@pytest.fixture
def player():
    time = np.arange(4 * RATE) / RATE
    sound = 0.5 * np.sin(2 * np.pi * 220 * time) * np.abs(np.sin(np.pi * time))
    return Player(AudioClip(sound, RATE, "a <b>clip</b>"), SEGMENTS, lang="ja")


def state(page, name):
    return page.evaluate(f"model.get('{name}')")


def slider(page):
    return page.get_by_role("slider", name="Position")


def test_names_roles_and_values_are_there_for_those_who_cannot_see_it(show_player, player):
    page = show_player(player)
    assert page.get_by_role("group", name="Player: a <b>clip</b>").count() == 1
    assert slider(page).get_attribute("aria-valuemin") == "0"
    assert slider(page).get_attribute("aria-valuemax") == "4.00"
    assert slider(page).get_attribute("aria-valuetext") == "0.0 seconds of 4.0 seconds"
    assert page.get_by_role("listitem").count() == 3
    assert page.get_by_text("聞き取れてますか").get_attribute("lang") == "ja"


def test_text_from_outside_stays_text(show_player, player):
    page = show_player(player)
    assert page.get_by_text("<img src=x").count() == 1
    page.evaluate("model.set('title', '<svg onload=window.fired=1>')")
    assert page.get_by_text("<svg onload").count() == 1
    assert page.locator("img, svg, b").count() == 0
    assert page.evaluate("window.fired") is None


def test_a_segment_plays_exactly_its_samples_and_reports_the_end(show_player, player):
    page = show_player(player)
    page.get_by_role("button", name=re.compile("聞き取れてますか")).click()
    page.wait_for_function("model.get('playing')")
    page.wait_for_function("!model.get('playing')")
    [[offset, duration, rate, length]] = page.evaluate("starts")
    assert (round(offset * rate), round(duration * rate)) == (6_000, 12_000)
    assert (rate, length) == (RATE, 4 * RATE)
    assert state(page, "current_time") == 0.75
    assert state(page, "selected") == 0
    assert state(page, "selection") == [0.25, 0.75]
    assert page.locator("[aria-current=true]").count() == 1


def test_play_and_pause_by_button_and_by_space(show_player, player):
    page = show_player(player)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("model.get('playing')")
    page.wait_for_timeout(300)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_function("!model.get('playing')")
    stopped = state(page, "current_time")
    assert 0 < stopped < 4
    slider(page).press("Space")
    page.wait_for_function("model.get('playing')")
    assert page.evaluate("starts")[1][0] == pytest.approx(stopped)
    slider(page).press("Space")
    page.wait_for_function("!model.get('playing')")


def test_keys_move_and_none_of_them_reaches_the_notebook(show_player, player):
    page = show_player(player)
    slider(page).focus()
    for key, expected in [
        ("End", 4),
        ("ArrowLeft", 3),
        ("ArrowDown", 2),
        ("ArrowUp", 3),
        ("Home", 0),
        ("PageUp", 4),
    ]:
        page.keyboard.press(key)
        assert state(page, "current_time") == expected
        assert slider(page).get_attribute("aria-valuenow") == f"{expected:.2f}"
    page.keyboard.press("x")
    page.keyboard.press("Shift+M")
    page.get_by_role("button", name="Play", exact=True).focus()
    page.keyboard.press("a")
    assert page.evaluate("leaked") == []


def test_tab_walks_through_and_out(show_player, player):
    page = show_player(player)
    seen = []
    for _ in range(6):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.className"))
    assert seen == ["sl-slider", "sl-toggle", "sl-segment", "sl-segment", "sl-segment", ""]


def test_focus_can_be_seen(show_player, player):
    page = show_player(player)
    page.keyboard.press("Tab")
    assert slider(page).evaluate("node => getComputedStyle(node).outlineWidth") == "3px"


def test_a_click_seeks_and_a_drag_selects(show_player, player):
    page = show_player(player)
    box = slider(page).bounding_box()
    at = lambda part: (box["x"] + 1 + part * (box["width"] - 2), box["y"] + 40)  # noqa: E731
    page.mouse.click(*at(0.5))
    assert state(page, "current_time") == pytest.approx(2.0, abs=0.02)
    page.mouse.move(*at(0.75))
    page.mouse.down()
    page.mouse.move(*at(0.6), steps=3)
    page.mouse.move(*at(0.5), steps=3)
    page.mouse.up()
    assert state(page, "selection") == pytest.approx([2.0, 3.0], abs=0.03)
    assert any("selection" in saved for saved in page.evaluate("model.saved"))
    page.get_by_role("button", name=re.compile(r"Play 0:0")).click()
    page.wait_for_function("model.get('playing')")
    offset, duration, *_ = page.evaluate("starts")[0]
    assert [offset, offset + duration] == pytest.approx([2.0, 3.0], abs=0.03)
    slider(page).press("Escape")
    assert state(page, "selection") == []


def test_the_kernel_seeks_plays_and_changes_segments(show_player, player):
    page = show_player(player)
    page.evaluate("model.set('current_time', 1.25)")
    assert slider(page).get_attribute("aria-valuenow") == "1.25"
    page.evaluate("model.emit('msg:custom', {type: 'play', start: 0.5, end: 0.6})")
    page.wait_for_function("starts.length === 1 && !model.get('playing')")
    assert state(page, "current_time") == pytest.approx(0.6)
    page.evaluate("model.set('segments', [{start: 0, end: 1, text: 'new'}])")
    assert page.get_by_role("listitem").count() == 1


def test_removing_it_ends_the_sound_and_the_listening(show_player, player):
    page = show_player(player)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("model.get('playing')")
    page.evaluate("cleanup()")
    assert state(page, "playing") is False
    assert page.evaluate("model.listeners.length") == 0


@pytest.mark.parametrize("shown", ["light", "dark"], indirect=True)
def test_text_has_contrast_in_both_schemes(request, show_player, player):
    page = show_player(player)
    root = page.locator(".speechlab-player")
    ink, paper = root.evaluate(
        "node => [getComputedStyle(node).color, getComputedStyle(node).backgroundColor]"
    )
    light, dark = sorted((_luminance(ink), _luminance(paper)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) > 7


def _luminance(color):
    values = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
