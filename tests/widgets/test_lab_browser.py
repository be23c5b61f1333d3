"""JupyterLab itself, in a real browser: what a user sees live, and after the notebook is opened again untrusted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from speechlab.audio import AudioClip
from support.browser import FLAGS, MICROPHONE, chromium_path
from support.clients import KEY
from support.lab import LabNotebook, LabVisit, jupyterlab
from support.staged_voices import voices_service

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CELL = """
import numpy as np
import speechlab as sl
t = np.arange(24000) / 24000
clip = sl.AudioClip((np.sin(2 * np.pi * 440 * t) * 0.2).astype("float32"), 24000, title="<b>tone</b>")
player = sl.widgets.Player(clip, segments=[{"start": 0.25, "end": 0.5, "text": "<img src=x onerror=alert(1)>"}])
display(clip)
player
"""
PREVIEW = """
from speechlab import widgets
from speechlab.batch import Counts, Outcome
sent = []
hook = lambda message: sent.append(message["msg_type"]) or message
get_ipython().display_pub.register_hook(hook)
preview = widgets.BatchPreview()
display(preview)
display(preview)
preview.begin("synthesize")
preview.update([Outcome("error", error_text="<img src=x onerror=alert(1)>", latency_s=0.5)], Counts(1, 2, 1, 0, 1.0))
"""


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory):
    """Address and folder of a JupyterLab."""
    with jupyterlab(tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture(scope="module")
def visit(jupyter, chromium):
    """One page in it for all notebooks, in a browser whose microphone beeps each second."""
    browser = chromium.browser_type.launch(executable_path=chromium_path(), args=[*FLAGS, *MICROPHONE])
    context = browser.new_context(permissions=["microphone"], viewport={"width": 1100, "height": 800})
    yield LabVisit(context, jupyter)
    browser.close()


@pytest.fixture
def notebook(visit, request):
    """An empty notebook in it."""
    failed = request.session.testsfailed
    yield LabNotebook(visit, f"{request.node.name}.ipynb")
    if request.session.testsfailed > failed:
        visit.leave()


def test_the_player_lives_in_jupyterlab(notebook):
    notebook.run(CELL)
    segment = notebook.page.get_by_role("button", name="<img src=x onerror=alert(1)>")
    segment.wait_for()
    # the clip's own figure; that of the player's plain HTML has made room for the player
    figures = notebook.output.locator("figure audio")
    assert figures.filter(visible=True).count() == 1
    assert figures.count() == 2
    segment.click()
    # the sound was asked for, came, and played to the end of the segment
    notebook.becomes("(player.selected, player.current_time, player.playing)", "(0, 0.5, False)")


def test_a_clip_still_plays_in_a_notebook_that_nobody_trusts(notebook):
    clip = AudioClip(np.zeros(12000, np.float32), 24000, title="<b>quiet</b>")
    data = {"text/html": clip._repr_html_(), "text/plain": repr(clip)}
    notebook.open("clip", [{"output_type": "display_data", "data": data, "metadata": {}}])
    audio = notebook.output.locator("audio")
    audio.wait_for()
    assert audio.get_attribute("src").startswith("data:audio/ogg;base64,")
    duration = audio.evaluate("async (a) => { await a.play(); return a.duration; }")
    assert duration == pytest.approx(0.5, abs=0.1)
    assert notebook.output.get_by_text("<b>quiet</b>").count() == 1
    assert notebook.output.locator("img").count() == 1


def test_a_preview_is_live_and_still_there_when_the_notebook_is_opened_again(notebook):
    notebook.run(PREVIEW)
    live = notebook.page.locator(".speechlab-preview")
    live.nth(1).get_by_text("1 of 2 calls").first.wait_for()
    notebook.ask("preview.end()")
    output = notebook.output
    output.get_by_text("stopped after 1 s").nth(1).wait_for()
    assert live.count() == 0
    assert notebook.ask("sent.count('update_display_data')") == "1"  # for both of its outputs
    assert notebook.ask("get_ipython().display_pub.unregister_hook(hook)") == "True"
    notebook.save()
    for again in (notebook.open_again, notebook.open_as_stranger):
        again()
        line = "1 of 2 calls · 1 failed · 0 cached · 1.0 calls/s · stopped after 1 s"
        output.get_by_text(line).nth(1).wait_for()
        assert output.get_by_text("<img src=x onerror=alert(1)>").count() == 4  # in the line, and in the row
        assert output.locator("img").count() == 0


ERRORS = """
import pandas as pd
import speechlab as sl
said = ["costs $5 in Tokyo and $6 in Osaka", "<img src=x onerror=alert(1)> was said", "the last one"]
frame = pd.DataFrame({"text": said, "large": said, "small": [said[0].replace("6", "7"), "was said", said[2]]})
errors = sl.widgets.ErrorBrowser(frame, hypothesis=["small", "large"], language="en")
errors
"""


def test_errors_of_two_systems_are_narrowed_and_marked_and_stay_when_the_notebook_is_opened_again(notebook):
    notebook.run(ERRORS)
    table = notebook.page.locator(".speechlab-table")
    table.locator(".sl-row del").first.wait_for()
    table.get_by_role("button", name="Filter").click()
    table.get_by_role("group", name="Error classes small").get_by_label("substitution").check()
    table.get_by_text("1 of 3 rows").wait_for()
    notebook.press("Escape")
    table.locator(".sl-row .sl-text").first.click()
    notebook.press("m", "x")  # "x" cuts no cell
    notebook.becomes("(errors.marked, errors.frame.fewer_errors[0], errors.sound)", "([0], 'large', False)")
    assert notebook.cells == 1
    notebook.save()
    notebook.open_as_stranger()
    output = notebook.output
    output.get_by_text("3 rows").wait_for()
    assert output.get_by_text("<img src=x onerror=alert(1)> was said").count() == 2
    assert output.locator("del").first.inner_text() == "$6"
    assert output.locator("audio, img, mjx-container").count() == 0


STREAMS = """
import speechlab as sl
lab = sl.Client({url!r}, api_key={key!r})
voice = lab.voices()[0]
players = [lab.stream_speech(text, voice=voice, format="wav").play() for text in ("$5 and $6", "<img src=x>")]
players[1]
"""


def test_speech_is_heard_in_jupyterlab_while_it_is_made_and_stays_in_the_notebook(notebook):
    with voices_service() as client:
        notebook.run(STREAMS.format(url=client.base_url, key=KEY))
        live = notebook.page.locator(".speechlab-stream")
        live.nth(1).wait_for()
        notebook.page.wait_for_function("[...window.speechlabOutputs.values()][0].currentTime > 2.2")
        asked = "[(player.state, player.clip.duration_s, player._heard) for player in players]"
        notebook.becomes(asked, "[('ended', 2.0, True), ('ended', 2.0, True)]")
        assert live.count() == 2  # as the last line of its cell, the second is not shown again
        turns = notebook.page.evaluate("[...speechlabQueue.turns.values()].map((turn) => turn.until)")
        assert turns[1] == pytest.approx(turns[0] + 2.0)
        live.first.get_by_text("first byte after").wait_for()
    notebook.save()
    notebook.open_as_stranger()
    output = notebook.output
    output.locator("audio").nth(1).wait_for()
    assert output.get_by_text("first byte after").count() == 2


VOICES = """
import speechlab as sl
lab = sl.Client({url!r}, api_key={key!r})
explorer = sl.widgets.VoiceExplorer(lab)
explorer
"""


def test_voices_speak_in_jupyterlab_and_are_heard_when_the_notebook_is_opened_again(notebook):
    with voices_service() as client:
        notebook.run(VOICES.format(url=client.base_url, key=KEY))
        table = notebook.page.locator(".speechlab-table")
        table.get_by_label("Sentence").fill("costs $5 and $6")
        table.get_by_role("button", name="Mark row 1").click()
        notebook.press("x")  # cuts no cell
        table.get_by_role("button", name="Play row 2", exact=True).click()
        # A busy machine looks when the short sound has ended; its waveform stays.
        notebook.page.wait_for_selector(".sl-row.sl-playing, .sl-row svg")
        table.get_by_role("button", name="Speak: 1 voice, 15 characters").hover()
        notebook.page.mouse.down()
        notebook.show_again("explorer")
        notebook.page.mouse.up()
        table.get_by_text("2 spoken. 30 characters in all.").wait_for()
        table.locator(".sl-row svg").nth(1).wait_for()
        assert notebook.ask("explorer.voices[0].short_name") == "'tones: quiet'"
        notebook.ask("explorer.stop()")
        assert notebook.cells == 1
    notebook.save()
    notebook.open_as_stranger()
    output = notebook.output
    output.locator("audio").nth(1).wait_for()
    assert output.get_by_text("Voices: costs $5 and $6").count() == 1
    assert output.locator("audio").count() == 2
    assert output.locator("img:not([alt^='waveform']), mjx-container").count() == 0


EDITOR = """
import numpy as np
import speechlab as sl
t = np.arange(48000) / 24000
clip = sl.AudioClip((np.sin(2 * np.pi * 440 * t) * 0.2).astype("float32"), 24000, title="talk")
given = [(0.25, 0.5, "first"), (1.0, 1.5, "costs $5 in Tokyo and $6 in Osaka <img src=x onerror=alert(1)>")]
editor = sl.widgets.SegmentEditor(clip, given)
editor
"""


def test_segments_are_edited_in_jupyterlab_and_stay_when_the_notebook_is_opened_again(notebook):
    notebook.run(EDITOR)
    output = notebook.output
    live = notebook.page.locator(".speechlab-editor")
    live.locator(".sl-segment").first.click()
    assert live.locator("ol").evaluate("list => getComputedStyle(list).paddingLeft") == "0px"
    live.get_by_label("Text").fill("the first $1 and $2")
    notebook.press("Enter")
    # none of them cuts or deletes the cell
    notebook.press("x", "d", "d", "n", "Delete", "Control+z", "Shift+ArrowLeft")
    asked = "(editor.frame.start.round(2).tolist(), editor.frame.text[0], editor.selected)"
    notebook.becomes(asked, "([0.25, 0.99], 'the first $1 and $2', 1)")
    assert notebook.cells == 1
    # a drag goes on while the plain HTML is made anew
    box = live.locator("canvas").first.bounding_box()
    notebook.page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 20)
    notebook.page.mouse.down()
    notebook.page.mouse.move(box["x"] + box["width"] * 0.85, box["y"] + 20)
    notebook.show_again("editor")
    notebook.page.mouse.move(box["x"] + box["width"] * 0.8, 5)
    notebook.page.mouse.up()
    notebook.becomes("tuple(round(end, 1) for end in editor.selection)", "(1.6, 1.8)")
    # the plain HTML has the segments as they were edited
    output.locator("table").get_by_text("the first $1 and $2").wait_for(state="attached")
    assert live.count() == 1
    notebook.ask("setattr(editor, 'frame', editor.frame.iloc[:1].assign(speaker='Python'))")
    live.get_by_text("Python", exact=True).wait_for()
    output.locator("table").get_by_text("Python").wait_for(state="attached")
    notebook.save()
    notebook.open_as_stranger()
    output.get_by_text("the first $1 and $2").wait_for()
    assert output.get_by_text("Python", exact=True).count() == 1
    assert output.locator("mjx-container").count() == 0


RECORDER = """
import speechlab as sl
recorder = sl.widgets.Recorder(title="costs $5 and $6 <img src=x onerror=alert(1)>")
recorder
"""


def test_a_microphone_records_in_jupyterlab_and_its_takes_stay_when_the_notebook_is_opened_again(notebook):
    notebook.run(RECORDER)
    output = notebook.output
    live = notebook.page.locator(".speechlab-recorder")
    live.get_by_role("button", name="Record").click()
    notebook.page.wait_for_function(
        "Number(document.querySelector('.sl-time').textContent.slice(2, 7)) >= 1.2"
    )
    live.get_by_role("button", name="Stop").click()
    live.locator(".sl-take").wait_for()
    assert live.locator("ol").evaluate("list => getComputedStyle(list).paddingLeft") == "0px"
    seconds, peak = json.loads(notebook.ask("[recorder.clip.duration_s, float(recorder.clip.samples.max())]"))
    assert 1.2 <= seconds < 10
    assert peak > 0.01
    output.locator("audio").wait_for(state="attached")
    notebook.save()
    notebook.open_as_stranger()
    output.locator("audio").wait_for()
    assert output.get_by_text("costs $5 and $6 <img src=x onerror=alert(1)> 1").count() == 1
    assert output.locator("mjx-container").count() == 0


TEST = """
import numpy as np, pandas as pd
import speechlab as sl
t = np.arange(12000) / 24000
clips = [sl.AudioClip((0.2 * np.sin(2 * np.pi * hz * t)).astype("float32"), 24000) for hz in (200, 250, 300, 350)]
frame = pd.DataFrame({"item": ["a", "a", "b", "b"], "system": ["one", "two"] * 2, "audio": clips})
title = "costs $5 in Tokyo and $6 in Osaka <img src=x onerror=alert(1)>"
test = sl.widgets.ListeningTest(frame, "ab", training=0, checks=0, title=title)
test
"""


def test_a_listening_test_is_answered_in_jupyterlab_and_unblinds_nobody(notebook):
    notebook.run(TEST)
    test = notebook.page.locator(".speechlab-listening")
    test.get_by_label("Your name or number").fill("xxdd")  # cuts no cell
    notebook.press("Enter")
    test.get_by_role("heading", name="Question 1 of 2").wait_for()
    for name in ("Sound A", "Sound B"):
        test.get_by_role("button", name=name).click()
        test.get_by_role("button", name=name).and_(test.locator(".sl-heard")).wait_for()
    test.get_by_label("A", exact=True).check()
    test.get_by_role("button", name="Next").click()
    test.get_by_role("heading", name="Question 2 of 2").wait_for()
    notebook.becomes("(test.answers.listener.tolist(), test.answers.position.tolist())", "(['xxdd'], [1])")
    assert notebook.cells == 1
    outputs = json.dumps(json.loads(notebook.save())["cells"][0]["outputs"])
    assert "two" not in outputs
    notebook.open_as_stranger()
    output = notebook.output
    output.get_by_text("costs $5 in Tokyo and $6 in Osaka <img src=x onerror=alert(1)>").wait_for()
    assert output.locator("img:not([alt^='waveform']), mjx-container").count() == 0


TABLE = """
import numpy as np
import pandas as pd
import speechlab as sl
t = np.arange(12000) / 24000
clip = sl.AudioClip((np.sin(2 * np.pi * 440 * t) * 0.2).astype("float32"), 24000)
text = "costs $5 in Tokyo and $6 in Osaka <img src=x onerror=alert(1)>"
table = sl.show(pd.DataFrame({"audio": [clip] * 300, "text": text, "hypothesis": text.replace("6", "7")}))
table
"""


def test_a_table_is_heard_and_marked_and_its_rows_stay_when_the_notebook_is_opened_again(notebook):
    notebook.run(TABLE)
    page, output = notebook.page, notebook.output
    table = page.locator(".speechlab-table")
    table.get_by_role("button", name="Play row 2", exact=True).click()
    page.wait_for_selector(".sl-row.sl-playing")
    table.locator(".sl-row del").first.wait_for()
    # none of these keys reaches the notebook, where "x" would cut the cell
    notebook.press("x", "m", "3", "a", "d", "d")
    notebook.becomes("table.selected, table.marked, int(table.frame.rating[1])", "(1, [1], 3)")
    assert notebook.cells == 1
    # the saved notebook's HTML follows what is done in the table
    output.locator("details pre").get_by_text("1,1,3,").wait_for(state="attached")
    notebook.ask("setattr(table, 'selected', 250)")
    page.wait_for_selector(".sl-row.sl-on[data-row='250']")
    for theme, scheme in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
        page.evaluate(change, theme)
        page.wait_for_function(
            f"getComputedStyle(document.querySelector('.sl-search')).colorScheme === '{scheme}'"
        )
    saved = notebook.save()
    notebook.visit.end_kernel()  # so that nothing but the file is shown
    assert "widget-view" not in saved
    assert len(saved) < 120_000
    for again in (notebook.open_again, notebook.open_as_stranger):
        again()
        output.get_by_text("8 of them here").wait_for()
        output.get_by_text("★ marked · rated 3").wait_for()
        assert output.get_by_text("model not found").count() == 0
        assert output.locator("audio").filter(visible=True).count() == 8
        assert output.locator("img:not([alt^='waveform']), mjx-container").count() == 0
        assert (
            output.get_by_text("costs $5 in Tokyo and $6 in Osaka <img src=x onerror=alert(1)>").count() == 8
        )


EVERY = """
import numpy as np, pandas as pd
import speechlab as sl
t = np.arange(12000) / 24000
clip = sl.AudioClip((0.2 * np.sin(2 * np.pi * 300 * t)).astype("float32"), 24000)
frame = pd.DataFrame({"audio": [clip] * 4, "text": "said", "item": [*"aabb"], "system": ["one", "two"] * 2})
table = sl.show(frame)
display(table, sl.widgets.Player(clip, [(0.1, 0.2, "one")]))
display(sl.widgets.ListeningTest(frame, "ab", training=0, checks=0))
display(sl.widgets.SegmentEditor(clip, [(0.1, 0.2, "one")]), sl.widgets.Recorder(), sl.widgets.BatchPreview())
class Tape:
    def clips(self):
        return iter([clip])
    def collect(self):
        return clip
    def close(self):
        pass
display(sl.widgets.StreamPlayer(Tape()))
"""
CLICKED = {
    "table": ".sl-heard",
    "player": ".sl-time",
    "listening": ".sl-stage",
    "editor": ".sl-time",
    "recorder": ".sl-bar",
    "preview": ".sl-title",
    "stream": ".sl-facts",
}
CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets.map((cell) =>
  [cell.model.type, cell.model.sharedModel.getSource(), cell.outputHidden, cell.inputHidden])"""
COMMANDS = [
    *"abcdefhjklmnopqrstuvwxyz0123456789",
    *"ABCDFGHJKLMNOPQRSTUVWXYZ",
    "Enter",
    "Escape",
    " ",
    "Delete",
]
COMMANDS += ["ArrowUp", "ArrowDown", "Shift+Enter", "Alt+Enter", "Control+Enter", "Control+a", "Control+z"]


@pytest.mark.parametrize("mode", ["command", "edit"])
def test_no_key_of_a_widget_reaches_the_notebook_after_a_click_on_its_words(notebook, mode):
    notebook.run(EVERY)
    page = notebook.page
    page.locator(".speechlab-preview").wait_for()
    before = page.evaluate(CELLS)
    for name, part in CLICKED.items():
        page.evaluate(f"() => window.jupyterapp.commands.execute('notebook:enter-{mode}-mode')")
        page.locator(f".speechlab-{name}").locator(part).first.click(position={"x": 2, "y": 2})
        page.wait_for_function(
            "name => document.querySelector(`.speechlab-${name}`).contains(document.activeElement)", arg=name
        )
        notebook.press(*COMMANDS)
        assert page.evaluate(CELLS) == before, name
    # outside a widget, the notebook has its keys
    page.locator(".jp-InputPrompt").first.click()
    page.wait_for_function("document.activeElement.classList.contains('jp-Cell')")
    notebook.press("b")
    page.wait_for_function(f"() => ({CELLS})().length === {len(before) + 1}")
