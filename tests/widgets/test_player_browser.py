"""The player in a real browser, driven by real clicks and keys."""

import re

import numpy as np
import pandas as pd
import pytest
import soundfile as sf

from speechlab.audio import AudioClip
from speechlab.widgets import Player
from support.browser import assert_readable, looks, needs_axe, press

pytestmark = pytest.mark.browser

RATE = 24_000
SEGMENTS = [
    (0.25, 0.75, "聞き取れてますか"),
    (1.0, 1.5, "<img src=x onerror='window.fired=1'> costs $5 in Tokyo and $6 in Osaka"),
    (3.0, 3.9, "end"),
]


def tone(seconds, hz=220, rate=RATE, level=0.5):
    return level * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)


@pytest.fixture
def player():
    sound = tone(4) * np.abs(np.sin(np.pi * np.arange(4 * RATE) / RATE))
    return Player(AudioClip(sound, RATE, "a <b>clip</b>"), SEGMENTS, lang="ja")


def state(page, name):
    return page.evaluate(f"model.get('{name}')")


def slider(page):
    return page.get_by_role("slider", name="Position")


def played(page):
    page.wait_for_function("starts.length > 0 && !model.get('playing')")
    return page.evaluate("starts.map(({ offset, duration, rate }) => [offset, duration, rate])")


def test_player_has_names_roles_values_and_contrast(show_player, player):
    page = show_player(player)
    seen = []
    for _ in range(11):
        page.keyboard.press("Tab")
        named = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.className"
        seen.append(page.evaluate(named))
    assert seen[:6] == ["Position", "sl-toggle", "sl-small", "Speed", "Zoom in", "sl-small"]
    assert seen[6:] == [*["sl-segment"] * 3, "", ""]
    slider(page).focus()
    assert slider(page).evaluate("node => getComputedStyle(node).outlineWidth") == "3px"  # the focus is seen
    assert page.get_by_role("group", name="Player: a <b>clip</b>").count() == 1
    assert slider(page).get_attribute("aria-valuetext") == "0.0 seconds of 4.0 seconds"
    assert page.get_by_role("list", name="Segments").get_by_role("listitem").count() == 3
    assert page.get_by_text("聞き取れてますか").get_attribute("lang") == "ja"
    loop = page.get_by_role("button", name="Loop")
    assert loop.get_attribute("aria-pressed") == "false"
    loop.click()
    assert loop.get_attribute("aria-pressed") == "true"
    # text is text, and has contrast
    assert page.get_by_text("<img src=x").count() == 1
    page.evaluate("model.set('title', '<svg onload=window.fired=1>')")
    assert (page.get_by_text("<svg onload").count(), page.locator("img, svg, b").count()) == (1, 0)
    assert page.evaluate("window.fired") is None
    root = page.locator(".speechlab-player")
    assert "mathjax_ignore" in root.get_attribute("class")
    paper = "node => getComputedStyle(node).backgroundColor"
    light, dark = (root.evaluate(paper) for _ in looks(page, ("light", 820), ("dark", 820)))
    assert light != dark


def test_a_segment_plays_exactly_its_samples(show_player, player):
    page = show_player(player)
    segment = page.get_by_role("button", name=re.compile("聞き取れてますか"))
    segment.click()
    assert (state(page, "selected"), state(page, "current_time")) == (0, 0.25)
    assert page.evaluate("starts.length") == 0
    segment.click()
    [[offset, duration, rate]] = played(page)
    assert (round(offset * rate), round(duration * rate), rate) == (6_000, 12_000, RATE)
    assert page.evaluate("starts[0].length") == 4 * RATE
    assert (state(page, "current_time"), state(page, "selected")) == (0.75, 0)
    assert state(page, "selection") == [0.25, 0.75]
    assert page.locator("[aria-current=true]").count() == 1
    page.keyboard.press("p")
    assert page.get_by_role("status").text_content() == "There is no previous segment"
    # the kernel seeks, plays and changes segments
    page.evaluate("model.set('current_time', 1.25)")
    assert slider(page).get_attribute("aria-valuenow") == "1.25"
    page.evaluate("starts.length = 0; model.emit('msg:custom', {type: 'play', start: 0.5, end: 0.6})")
    played(page)
    assert state(page, "current_time") == pytest.approx(0.6)
    page.evaluate("model.set('layers', [{name: '', lang: '', segments: [{start: 0, end: 1, text: 'new'}]}])")
    assert page.get_by_role("list", name="Segments").get_by_role("listitem").count() == 1


def test_play_and_pause_by_button_key_and_removal(show_player, player):
    page = show_player(player)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("starts.length && Number(document.querySelector('.sl-slider').ariaValueNow) > 0")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_function("!model.get('playing')")
    stopped = state(page, "current_time")
    assert 0 < stopped < 4
    slider(page).press("Space")
    page.wait_for_function("starts.length === 2")
    assert page.evaluate("starts[1].offset") == pytest.approx(stopped)
    slider(page).press("Space")
    page.wait_for_function("!model.get('playing')")
    slider(page).press("Space")
    page.wait_for_function("starts.length === 3")
    page.evaluate("cleanup()")
    assert state(page, "playing") is False
    assert page.evaluate("model.listeners.length") == 0


def test_keys_move_and_none_of_them_reaches_the_notebook(show_player, player):
    page = show_player(player)
    slider(page).focus()
    arrows = ("ArrowLeft", 3), ("ArrowDown", 2), ("ArrowUp", 3)
    for key, expected in [("End", 4), *arrows, ("Home", 0), (".", 0.01), (",", 0), ("PageUp", 4)]:
        page.keyboard.press(key)
        assert state(page, "current_time") == pytest.approx(expected)
        assert slider(page).get_attribute("aria-valuenow") == f"{expected:.2f}"
    press(page, "x", "Shift+M")
    page.get_by_role("button", name="Play", exact=True).focus()
    for key, name, expected in [("l", "loop", True), ("s", "spectrogram", True), ("L", "loop", False)]:
        page.keyboard.press(key)
        assert state(page, name) is expected
    press(page, "a", "s")
    # a selection is made, zoomed and dropped
    slider(page).focus()
    press(page, "Home", "ArrowRight", "[", "ArrowRight", "]")
    assert state(page, "selection") == [1, 2]
    page.keyboard.press("+")
    assert state(page, "view") == [0.75, 2.75]
    page.keyboard.press("+")
    assert state(page, "view") == [1.125, 2.125]
    page.get_by_role("slider", name="Visible range").wait_for()
    page.keyboard.press("End")
    assert state(page, "view") == pytest.approx([3, 4])
    page.keyboard.press("0")
    assert state(page, "view") == [0, 4]
    page.keyboard.press("Escape")
    assert state(page, "selection") == []
    assert page.evaluate("leaked") == []


def test_a_click_seeks_and_a_drag_selects(show_player, player):
    page = show_player(player)
    box = slider(page).bounding_box()
    at = lambda part: (box["x"] + 1 + part * (box["width"] - 2), box["y"] + 40)  # noqa: E731 - shorter than a function here
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
    page.wait_for_function("starts.length")
    offset, duration = page.evaluate("[starts[0].offset, starts[0].duration]")
    assert [offset, offset + duration] == pytest.approx([2.0, 3.0], abs=0.03)
    slider(page).press("Escape")
    assert state(page, "selection") == []


def test_a_selection_repeats_without_a_gap(show_player, player):
    page = show_player(player)
    page.evaluate("model.set('selection', [1, 1.2]); model.set('loop', true)")
    slider(page).press("Enter")
    page.wait_for_function("starts.length > 4")
    starts = page.evaluate("starts.map(({ when, offset, duration }) => [when, offset, duration])")
    assert [start[1:] for start in starts] == [pytest.approx([1, 0.2])] * len(starts)
    assert np.diff([start[0] for start in starts]) == pytest.approx(0.2)
    page.wait_for_timeout(400)
    assert 1 <= float(slider(page).get_attribute("aria-valuenow")) <= 1.2
    page.keyboard.press("l")
    page.wait_for_function("starts.at(-1).duration > 2")
    slider(page).press("Space")


def test_another_speed_keeps_the_pitch(show_player):
    page = show_player(Player(AudioClip(tone(2, 300), RATE)))
    for speed in (0.5, 2):
        page.evaluate(f"starts.length = 0; model.set('speed', {speed})")
        page.evaluate("model.emit('msg:custom', {type: 'play', start: 0.5, end: 1.0})")
        durations = [duration for _, duration, _ in played(page)]
        assert sum(durations) == pytest.approx(0.5 / speed, abs=0.001)
        assert state(page, "current_time") == 1.0
        sound = np.array(page.evaluate("starts.flatMap(({ sound }) => [...sound.getChannelData(0)])"))
        crossings = np.count_nonzero((sound[:-1] < 0) & (sound[1:] >= 0))
        assert crossings / (len(sound) / RATE) == pytest.approx(300, rel=0.03)
        assert np.abs(sound).max() == pytest.approx(0.5, abs=0.03)
        assert np.abs(np.diff(sound)).max() < 0.06  # without a click; the tone itself moves by 0.04


def test_pieces_of_sound_follow_to_the_sample(show_player):
    page = show_player(Player(AudioClip(tone(25), RATE)))
    page.evaluate("model.emit('msg:custom', {type: 'play', start: 9.9, end: 10.2})")
    starts = played(page)
    frames = [tuple(round(value * RATE) for value in start[:2]) for start in starts]
    assert frames == [(237_600, 2_400), (0, 4_800)]
    whens = page.evaluate("starts.map(({ when }) => when)")
    assert whens[1] - whens[0] == pytest.approx(0.1)
    assert {asked["piece"] for asked in page.evaluate("sent") if asked["type"] == "sound"} == {0, 1}


def test_the_end_of_three_hours_plays_at_once(show_player, tmp_path):
    file = tmp_path / "talk.wav"
    sf.write(file, np.zeros(0, np.int16), 8_000, "PCM_16")
    header = bytearray(file.read_bytes())
    size = 3 * 3_600 * 8_000 * 2
    for place, value in ((header.index(b"data") + 4, size), (4, len(header) - 8 + size)):
        header[place : place + 4] = value.to_bytes(4, "little")
    with file.open("wb") as sparse:  # silence that takes no room on the disk
        sparse.write(header)
        sparse.truncate(len(header) + size)
    player = Player(file, [(10_790.0, 10_791.0, "the end")])
    page = show_player(player)
    assert page.locator(".sl-facts").text_content() == "3 h 00 min · 8000 Hz · silent"
    assert page.locator(".sl-time").text_content() == "0:00.00 / 3:00:00.00"
    page.get_by_role("button", name="the end").dblclick()
    page.wait_for_function("starts.length && model.get('current_time') > 10790.1")
    assert page.evaluate("[starts[0].offset, starts[0].duration]") == pytest.approx([0, 1])
    assert slider(page).get_attribute("aria-valuetext").startswith("2 h 59 min 5")
    asked = page.evaluate("sent.filter((one) => one.type === 'sound').map((one) => one.piece)")
    assert set(asked) <= {0, 1_079}
    view = page.evaluate("model.get('view')")
    assert view[0] < 10_790 < 10_791 < view[1]


def test_clips_play_in_step_and_one_of_them_is_heard(show_player):
    quiet, loud = AudioClip(tone(3, level=0.1), RATE), AudioClip(tone(2, level=0.8), 16_000)
    page = show_player(Player({"quiet": quiet, "<b>loud</b>": loud}))
    quiet, loud = (clip["gain"] for clip in state(page, "clips"))
    assert (quiet, loud) == (1, pytest.approx(0.125, rel=0.02))
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("starts.length === 2")
    assert page.evaluate("starts[0].when === starts[1].when")
    page.get_by_role("button", name="<b>loud</b>").click()
    assert state(page, "active_clip") == 1
    assert state(page, "playing")
    slider(page).press("1")
    assert state(page, "active_clip") == 0
    assert page.get_by_role("button", name="quiet").get_attribute("aria-pressed") == "true"
    page.get_by_label("equal level").uncheck()
    assert state(page, "equal_level") is False
    assert len(page.evaluate("starts")) == 2


def test_tiers_are_seen_listed_and_played(show_player):
    tiers = {"reference": SEGMENTS, "VAD": [(0.2, 0.8), (2.9, 4.0)]}
    page = show_player(Player(AudioClip(tone(4), RATE), tiers))
    page.get_by_label("Listed:").select_option("VAD")
    assert page.get_by_role("list", name="Segments: VAD").get_by_role("listitem").count() == 2
    box = slider(page).bounding_box()
    page.mouse.dblclick(box["x"] + box["width"] * 0.12, box["y"] + 18 + 88 + 15 + 12)  # the reference's first
    assert (state(page, "tier"), state(page, "selected")) == (0, 0)
    assert played(page)[0][:2] == pytest.approx([0.25, 0.5])
    page.keyboard.press("n")
    assert state(page, "selected") == 1


def test_segments_of_a_tier_that_overlap_stand_below_each_other(show_player):
    overlapping = [(2.0, 3.0, "later"), (0.5, 2.5, "long"), (1.0, 1.5, "within")]
    tiers = {"one": overlapping, "other": [(0, 3, "below")]}
    page = show_player(Player(AudioClip(tone(3), RATE), tiers))
    box = page.locator("canvas").bounding_box()
    first = 18 + 88 + 15 + 12  # the middle of the first lane, below the time axis, the waveform and the name
    for seconds, lane, index in ((1.2, 0, 1), (1.2, 1, 2), (2.2, 1, 0), (1.2, 2, 0)):
        y = box["y"] + first + 24 * lane + 15 * (lane == 2)
        page.mouse.click(box["x"] + box["width"] * seconds / 3, y)
        assert (state(page, "tier"), state(page, "selected")) == (int(lane == 2), index)
    assert "lane" not in page.evaluate("JSON.stringify(model.get('layers'))")


def test_zoomed_waveform_and_spectrogram_are_asked_for(show_player):
    page = show_player(Player(AudioClip(tone(60), RATE), spectrogram=True))
    asked = "window.sent && sent.some(({ type, end }) => type === '{}' && end === 30.05)"
    page.evaluate("model.set('view', [29.95, 30.05])")
    for kind in ("peaks", "spectrogram"):
        page.wait_for_function(asked.replace("{}", kind))
    assert not [one for one in page.evaluate("sent") if one["type"] == "sound"]


@pytest.mark.parametrize(
    ("clip", "facts"),
    [(AudioClip(np.array([0.5]), RATE), "1 sample"), (AudioClip(np.zeros(RATE // 8), RATE), "silent")],
    ids=["one sample", "silence"],
)
def test_clips_of_one_sample_and_of_silence_say_so_and_play(show_player, clip, facts):
    page = show_player(Player(clip, spectrogram=True))
    assert page.get_by_text(facts).count() == 1
    page.get_by_role("button", name="Play", exact=True).click()
    played(page)
    page.keyboard.press("+")


def test_player_says_that_file_or_kernel_is_gone(show_player, player):
    page = show_player(player)
    page.evaluate("void (model.send = () => { throw new Error('closed') })")
    page.get_by_role("button", name="Play", exact=True).click()
    page.get_by_text("No answer: the kernel is gone").wait_for()
    assert not state(page, "playing")
    page.get_by_role("button", name="Spectrogram").click()
    page.wait_for_function("words.includes('No answer: the kernel is gone')")
    answer = "{ ask: content.ask, error: 'the file is gone' }"
    page.evaluate(
        f"void (model.send = (content) => void setTimeout(() => model.emit('msg:custom', {answer}, [])))"
    )
    page.get_by_role("button", name="Play", exact=True).click()
    page.get_by_text("the file is gone").wait_for()


@needs_axe
def test_axe_finds_nothing_serious_and_nothing_is_cut_off(show_player):
    clips = {"one": AudioClip(tone(4), RATE), "other <i>": AudioClip(tone(3), RATE)}
    page = show_player(Player(clips, {"reference": SEGMENTS, "VAD": SEGMENTS}, lang="ja", spectrogram=True))
    page.evaluate("model.set('selection', [1, 2]); model.set('view', [0, 3])")
    page.locator("summary").click()
    assert_readable(page, ("light", 820), ("dark", 380))


def test_words_light_up_as_they_are_spoken(show_player):
    words = pd.DataFrame({"word": ["good", "morning"], "start": [0.1, 0.5], "end": [0.4, 3.9]})
    page = show_player(Player(AudioClip(tone(4), RATE), {"words": words}))
    listed = page.get_by_role("list", name="Segments: words")
    assert listed.evaluate("list => getComputedStyle(list).display") == "flex"
    # the times are read, not seen
    assert listed.get_by_role("button", name="0:00.10 – 0:00.40 good").count() == 1
    page.evaluate("model.set('current_time', 1.0)")
    slider(page).press(" ")
    page.wait_for_function("model.get('playing')")
    page.wait_for_selector(".sl-words [aria-current]")
    assert page.locator(".sl-words [aria-current]").inner_text().endswith("morning")
