"""The explorer of voices in a real browser: chosen, spoken, heard; errors as words; keys, themes, narrow cells."""

import pytest

from speechlab.widgets import VoiceExplorer
from support.browser import assert_readable, needs_axe, press, told
from support.staged_voices import HOSTILE

pytestmark = pytest.mark.browser


@pytest.fixture
def explorer(voices_lab):
    return VoiceExplorer(voices_lab)


def row(page, name):
    return page.get_by_role("row").filter(has_text=name).first


def test_voices_are_chosen_and_say_the_sentence(show_table, explorer):
    page = show_table(explorer)
    # names of columns break between words but not before a unit
    shown = page.locator(".sl-sort").evaluate_all("all => all.map((one) => one.firstChild.textContent)")
    assert {"First \u200baudible (s)", "Characters"} <= set(shown)
    page.get_by_label("Sentence").fill("Good morning.")
    page.get_by_role("button", name="Mark row 1").click()
    page.get_by_role("button", name="Mark row 2").click()
    page.get_by_role("button", name="Speak: 2 voices, 26 characters").click()
    page.get_by_text("2 spoken. 26 characters in all.").wait_for()
    page.wait_for_function("document.querySelectorAll('.sl-row svg').length === 2")
    assert row(page, "tones: quiet").locator("[data-label=characters]").inner_text() == "13"
    assert float(row(page, "tones: loud").locator("[data-label=first_audible_s]").inner_text()) >= 0
    assert page.get_by_role("button", name="Spoken already").is_disabled()
    assert [voice.short_name for voice in explorer.voices] == ["tones: quiet", "tones: loud"]
    assert page.evaluate("leaked") == []


def test_only_who_presses_play_has_a_voice_speak_and_hears_it(show_table, explorer, voices_lab):
    before = voices_lab.usage.synthesized_chars
    page = show_table(explorer)
    page.locator(".sl-row .sl-thumb").first.hover()
    page.locator(".sl-grid").focus()
    press(page, *["j"] * 3)
    page.get_by_role("button", name="Next row").click()
    page.wait_for_timeout(250)
    assert page.evaluate("sent.filter((one) => one.type === 'make').length") == 0
    assert voices_lab.usage.synthesized_chars == before
    assert row(page, "tones: quiet").locator(".sl-error").inner_text() == "not spoken yet"
    page.get_by_role("button", name="Play row 2", exact=True).click()
    page.wait_for_selector(".sl-row.sl-playing")
    assert page.evaluate("sent.filter((one) => one.type === 'make').length") == 1
    assert explorer.voice == explorer.catalogue[1]
    assert explorer.frame["text"].iloc[1].startswith("Excuse me")


WATCH_PLAY = """
() => { window.played = [];
const play = HTMLMediaElement.prototype.play;
const levelOf = async (url) => {
  const data = await (await fetch(url)).arrayBuffer();
  const sound = (await new OfflineAudioContext(1, 1, 24000).decodeAudioData(data)).getChannelData(0);
  return Math.sqrt(sound.reduce((sum, one) => sum + one * one, 0) / sound.length);
};
HTMLMediaElement.prototype.play = function () {
  window.listened = this;
  const from = this.currentTime;
  played.push(levelOf(this.src).then((level) => ({ level, from })));
  return play.call(this);
}; }
"""


def test_two_marked_voices_are_heard_in_turn(show_table, explorer, voices_lab):
    explorer.speak("Hello.", voices=["quiet", "tones: loud", "broken"])
    explorer.voices = ["tones: loud", "quiet", "broken", "endless"]
    before = voices_lab.usage.synthesized_chars
    page = show_table(explorer)
    switch = page.get_by_role("button", name="A/B")
    page.wait_for_function("document.querySelectorAll('.sl-row svg').length === 2")
    page.evaluate(WATCH_PLAY)
    page.locator(".sl-grid").focus()
    for row, following in ((1, 0), (0, 1), (1, 0)):  # neither the failed one nor the unspoken one
        page.keyboard.press("b")
        page.wait_for_selector(f".sl-row.sl-playing[data-row='{row}']")
        name = explorer.catalogue[following].description
        page.get_by_role("button", name=f"A/B: hear {following + 1}: {name}").wait_for()
        page.wait_for_function("listened.currentTime > 0.2")
    assert explorer.voice == explorer.catalogue[1]
    switch.click()
    page.wait_for_selector(".sl-row.sl-playing[data-row='0']")
    played = page.evaluate("Promise.all(played)")
    assert [one["from"] for one in played] == [0, 0, 0, 0]
    assert played[0]["level"] == pytest.approx(played[1]["level"], rel=0.02)  # 0.02 and 0.6 as they came
    assert voices_lab.usage.synthesized_chars == before
    assert page.evaluate("leaked") == []


def test_two_voices_heard_last_are_compared_by_keys(show_table, explorer):
    explorer.speak("Hello.", voices=["quiet", "tones: loud"])
    page = show_table(explorer)
    plays = lambda row: page.wait_for_selector(f".sl-row.sl-playing[data-row='{row}']")  # noqa: E731 - one line
    switch = page.get_by_role("button", name="A/B")
    assert switch.is_disabled()
    said = "A/B: Mark two rows with a sound, or hear two, to switch between them"
    assert switch.get_attribute("title") == said
    page.locator(".sl-grid").focus()
    page.keyboard.press("b")
    page.get_by_text("Mark two rows with a sound").wait_for()
    for key, row in ((" ", 0), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        plays(row)
    for row in (1, 0):
        switch.click()
        plays(row)
    page.keyboard.press("b")  # the button has the focus
    plays(1)
    page.keyboard.press("ArrowUp")
    plays(0)
    page.keyboard.press("m")
    assert told(page, explorer).voices == [explorer.catalogue[0]]
    assert page.evaluate("leaked") == []


def test_voices_say_that_voice_or_kernel_failed(show_table, explorer):
    page = show_table(explorer)
    page.get_by_role("button", name="Play row 4", exact=True).click()
    error = row(page, "tones: broken").locator(".sl-error")
    page.wait_for_function("document.querySelector('.sl-failed')?.textContent.includes('no sound today')")
    assert "<img src=x" in error.text_content()
    assert row(page, HOSTILE[:20]).count() == 1
    assert page.locator("#cell img, #cell script").count() == 0
    assert page.evaluate("window.fired") is None
    page.get_by_role("button", name="Play row 1", exact=True).click()  # the others go on
    page.wait_for_selector(".sl-row.sl-playing[data-row='0']")
    page.evaluate("() => { clearInterval(standing); model.send = () => { throw new Error('closed'); }; }")
    page.get_by_role("button", name="Play row 2", exact=True).click()
    page.get_by_text("No answer: the kernel is gone").wait_for()


@needs_axe
def test_axe_finds_nothing_serious_and_nothing_is_cut_off(show_table, explorer):
    explorer.speak("Hello.", voices=["quiet", "broken"])
    page = show_table(explorer, "margin:0")
    page.wait_for_selector(".sl-row svg")
    page.get_by_role("status").first.wait_for()
    page.evaluate("clearInterval(standing)")  # the controls ask for nothing more
    page.locator(".sl-row").first.click()
    page.get_by_role("button", name="Filter").click()
    assert_readable(page, ("light", 1020), ("dark", 380))
