"""JupyterLab and Notebook 7 themselves, in a real browser: live, and after a notebook is opened again."""

import json

import pytest

from support.browser import MICROPHONE
from support.clients import KEY
from support.lab import LabNotebook, LabVisit, jupyterlab
from support.staged_voices import voices_service

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory):
    """Address and folder of a JupyterLab."""
    with jupyterlab(tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture(scope="module")
def visit(jupyter, launch):
    """One page in it for all notebooks, with a microphone that beeps each second."""
    context = launch(*MICROPHONE).new_context(
        permissions=["microphone"], viewport={"width": 1100, "height": 800}
    )
    yield LabVisit(context, jupyter)
    context.close()


@pytest.fixture
def notebook(visit, request):
    """An empty notebook in it."""
    failed = request.session.testsfailed
    yield LabNotebook(visit, f"{request.node.name}.ipynb")
    if request.session.testsfailed > failed:
        visit.leave()


SOUNDS = """
import numpy as np
import pandas as pd
import speechlab as sl
from speechlab.batch import Counts, Outcome
def tone(seconds, title=None):
    wave = 0.2 * np.sin(2 * np.pi * 440 * np.arange(round(24000 * seconds)) / 24000)
    return sl.AudioClip(wave.astype("float32"), 24000, title=title)
image = "<img src=x onerror=alert(1)>"
prices = f"costs $5 in Tokyo and $6 in Osaka {image}"
"""
IMAGE = "<img src=x onerror=alert(1)>"
PRICES = f"costs $5 in Tokyo and $6 in Osaka {IMAGE}"


CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets.map(
  (cell) => [cell.model.type, cell.model.sharedModel.getSource(), cell.outputHidden, cell.inputHidden])"""


def press_commands(notebook, output, name, part):
    """Click somewhere in a widget, and press keys that cut, delete, run or change cells. No other key leaves a widget
    either: ``test_keys_browser.py``.
    """
    before = notebook.page.evaluate(CELLS)
    output.locator(f".speechlab-{name}").locator(part).first.click(position={"x": 2, "y": 2})
    notebook.page.wait_for_function(f"document.activeElement.closest('.speechlab-{name}')")
    notebook.press("x", "m", "d", "d", "Enter", "ArrowDown", "Shift+Enter")
    assert notebook.page.evaluate(CELLS) == before


# Each widget in a cell of its own: its code, what a user does with it, what is seen of it in the saved notebook.

PLAYER = """
player = sl.widgets.Player(tone(1), segments=[{"start": 0.25, "end": 0.5, "text": image}])
display(tone(1, "<b>tone</b>"))
player
"""


def play_a_segment(notebook, output):
    segment = output.get_by_role("button", name=IMAGE)
    segment.wait_for()
    # the clip's own figure; that of the player's plain HTML has made room for the player
    figures = output.locator("figure audio")
    assert (figures.filter(visible=True).count(), figures.count()) == (1, 2)
    segment.dblclick()
    # the sound was asked for, came, and played to the end of the segment
    notebook.becomes("(player.selected, player.current_time, player.playing)", "(0, 0.5, False)")
    press_commands(notebook, output, "player", ".sl-time")


def clip_and_player_sound(output):
    audio = output.locator("audio").first
    audio.wait_for()
    assert audio.get_attribute("src").startswith("data:audio/ogg;base64,")
    duration = audio.evaluate("async (a) => { await a.play(); return a.duration; }")
    assert duration == pytest.approx(1, abs=0.1)
    assert output.get_by_text("<b>tone</b>").count() == 1
    assert output.locator("audio").filter(visible=True).count() == 2


PREVIEW = """
sent = []
hook = lambda message: sent.append(message["msg_type"]) or message
get_ipython().display_pub.register_hook(hook)
preview = sl.widgets.BatchPreview()
display(preview)
display(preview)
preview.begin("synthesize")
preview.update([Outcome("error", error_text=image, latency_s=0.5)], Counts(1, 2, 1, 0, 1.0))
"""


def follow_a_batch(notebook, output):
    live = output.locator(".speechlab-preview")
    live.nth(1).get_by_text("1 of 2 calls").first.wait_for()
    press_commands(notebook, output, "preview", ".sl-title")
    notebook.ask("[sent.clear(), preview.end()]")
    output.get_by_text("stopped after 1 s").nth(1).wait_for()
    assert live.count() == 0
    assert notebook.ask("sent.count('update_display_data')") == "1"  # for both of its outputs
    assert notebook.ask("get_ipython().display_pub.unregister_hook(hook)") == "True"


def batch_has_ended(output):
    line = "1 of 2 calls · 1 failed · 0 cached · 1.0 calls/s · stopped after 1 s"
    output.get_by_text(line).nth(1).wait_for()
    assert output.get_by_text(IMAGE).count() == 4  # in the line, and in the row


ERRORS = """
said = ["good morning", f"{image} costs $5 and $6", "the last one"]
small = ["good mourning", "costs $5 and $7", said[2]]
frame = pd.DataFrame({"text": said, "large": said, "small": small})
errors = sl.widgets.ErrorBrowser(frame, hypothesis=["small", "large"], language="en")
display(frame[["large"]])
errors
"""


def narrow_and_mark_errors(notebook, output):
    output.locator(".sl-row del").first.wait_for()
    output.get_by_role("button", name="Filter").click()
    output.get_by_role("group", name="Error classes small").get_by_label("recognition").check()
    output.get_by_text("1 of 3 rows").wait_for()
    notebook.press("Escape")
    output.locator(".sl-row .sl-text").first.click()
    notebook.press("m", "x")  # "x" cuts no cell
    notebook.becomes("(errors.marked, errors.frame.fewer_errors[1], errors.sound)", "([1], 'large', False)")
    output.locator("details pre").get_by_text("1,1,").wait_for(state="attached")


def errors_are_listed(output):
    output.get_by_text("1 of 3 rows").wait_for()
    assert output.get_by_text(f"{IMAGE} costs $5 and $6").count() == 3  # one is in the table of pandas
    assert output.locator("del").all_inner_texts() == ["$6", "missing"]  # with the legend
    assert output.locator("audio").count() == 0


STREAMS = """
voice = lab.voices()[0]
players = [lab.stream_speech(text, voice=voice, format="wav").play() for text in ("$5 and $6", image)]
players[1]
"""


def hear_speech_while_it_is_made(notebook, output):
    live = output.locator(".speechlab-stream")
    live.nth(1).wait_for()
    asked = "[(player.state, player.clip.duration_s, player._heard) for player in players]"
    notebook.becomes(asked, "[('ended', 2.0, True), ('ended', 2.0, True)]")
    assert live.count() == 2  # as the last line of its cell, the second is not shown again
    turns = "[...speechlabQueue.turns.values()].slice(-2).map((turn) => turn.until)"
    first, second = notebook.page.evaluate(turns)
    assert second == pytest.approx(first + 2.0)
    heard = "(until) => [...speechlabOutputs.values()].some((output) => output.currentTime > until)"
    notebook.page.wait_for_function(heard, arg=first)
    live.first.get_by_text("first byte after").wait_for()
    press_commands(notebook, output, "stream", ".sl-facts")


def speech_sounds(output):
    output.locator("audio").nth(1).wait_for()
    assert output.get_by_text("first byte after").count() == 2


VOICES = """
explorer = sl.widgets.VoiceExplorer(lab)
explorer
"""


def have_voices_speak(notebook, output):
    output.get_by_label("Sentence").fill("costs $5 and $6")
    output.get_by_role("button", name="Mark row 1").click()
    notebook.press("x")  # cuts no cell
    output.get_by_role("button", name="Play row 2", exact=True).click()
    # A busy machine looks when the short sound has ended; its waveform stays.
    output.locator(".sl-row.sl-playing, .sl-row svg").first.wait_for()
    output.get_by_role("button", name="Speak: 1 voice, 15 characters").hover()
    notebook.page.mouse.down()
    notebook.show_again("explorer")
    notebook.page.mouse.up()
    output.get_by_text("2 spoken. 30 characters in all.").wait_for()
    output.locator(".sl-row svg").nth(1).wait_for()
    assert notebook.ask("explorer.voices[0].short_name") == "'tones: quiet'"
    notebook.ask("explorer.stop()")


def voices_sound(output):
    output.locator("audio").nth(1).wait_for()
    assert output.get_by_text("Voices: costs $5 and $6").count() == 1
    assert output.locator("audio").count() == 2


EDITOR = """
editor = sl.widgets.SegmentEditor(tone(2, "talk"), [(0.25, 0.5, "first"), (1.0, 1.5, prices)])
editor
"""


def edit_segments(notebook, output):
    live = output.locator(".speechlab-editor")
    live.locator(".sl-segment").first.click()
    assert live.locator("ol").evaluate("list => getComputedStyle(list).paddingLeft") == "0px"
    live.get_by_label("Text").fill("the first $1 and $2")
    notebook.press("Enter")
    # none of them cuts or deletes the cell
    notebook.press("x", "d", "d", "n", "Delete", "Control+z", "Shift+ArrowLeft")
    asked = "(editor.frame.start.round(2).tolist(), editor.frame.text[0], editor.selected)"
    notebook.becomes(asked, "([0.25, 0.99], 'the first $1 and $2', 1)")
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


def segments_are_as_they_were_edited(output):
    output.get_by_text("the first $1 and $2").wait_for()
    assert output.get_by_text("Python", exact=True).count() == 1


RECORDER = """
recorder = sl.widgets.Recorder(title=prices)
recorder
"""


def record_a_take(notebook, output):
    output.get_by_role("button", name="Record").click()
    time = output.locator(".sl-time").element_handle()
    notebook.page.wait_for_function("time => Number(time.textContent.slice(2, 7)) >= 1.2", arg=time)
    output.get_by_role("button", name="Stop").click()
    output.locator(".sl-take").wait_for()
    takes = output.locator(".speechlab-recorder ol")
    assert takes.evaluate("list => getComputedStyle(list).paddingLeft") == "0px"
    seconds, peak = json.loads(notebook.ask("[recorder.clip.duration_s, float(recorder.clip.samples.max())]"))
    assert 1.2 <= seconds < 10
    assert peak > 0.01
    output.locator("audio").wait_for(state="attached")
    press_commands(notebook, output, "recorder", ".sl-bar")


def take_sounds(output):
    output.locator("audio").wait_for()
    assert output.get_by_text(f"{PRICES} 1").count() == 1


TEST = """
frame = pd.DataFrame({"item": ["a", "a", "b", "b"], "system": ["one", "two"] * 2, "audio": [tone(0.5)] * 4})
test = sl.widgets.ListeningTest(frame, "ab", training=0, checks=0, title=prices)
test
"""


def answer_a_listening_test(notebook, output):
    output.get_by_label("Your name or number").fill("xxdd")  # cuts no cell
    notebook.press("Enter")
    output.get_by_role("heading", name="Question 1 of 2").wait_for()
    for name in ("Sound A", "Sound B"):
        output.get_by_role("button", name=name).click()
        output.get_by_role("button", name=name).and_(output.locator(".sl-heard")).wait_for()
    output.get_by_label("A", exact=True).check()
    output.get_by_role("button", name="Next").click()
    output.get_by_role("heading", name="Question 2 of 2").wait_for()
    notebook.becomes("(test.answers.listener.tolist(), test.answers.position.tolist())", "(['xxdd'], [1])")


def nobody_is_unblinded(output):
    output.get_by_text(PRICES).wait_for()
    assert output.get_by_text("two").count() == 0


TABLE = """
frame = pd.DataFrame({"audio": [tone(0.5)] * 300, "text": prices, "hypothesis": prices.replace("6", "7")})
table = sl.show(frame)
table
"""


def hear_and_mark_rows(notebook, output):
    page = notebook.page
    page.evaluate("window.jupyterapp.commands.execute('notebook:enter-edit-mode')")
    output.get_by_role("button", name="Play row 2", exact=True).click()
    output.locator(".sl-row.sl-playing").wait_for()
    output.locator(".sl-row del").first.wait_for()
    # none of these keys reaches the notebook, where "x" would cut the cell
    notebook.press("x", "m", "3", "a", "d", "d")
    notebook.becomes("table.selected, table.marked, int(table.frame.rating[1])", "(1, [1], 3)")
    # the saved notebook's HTML follows what is done in the table
    output.locator("details pre").get_by_text("1,1,3,").wait_for(state="attached")
    notebook.ask("setattr(table, 'selected', 250)")
    output.locator(".sl-row.sl-on[data-row='250']").wait_for()
    for theme, scheme in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
        page.evaluate(change, theme)
        page.wait_for_function(
            f"getComputedStyle(document.querySelector('.sl-search')).colorScheme === '{scheme}'"
        )


def rows_are_marked(output):
    output.get_by_text("8 of them here").wait_for()
    output.get_by_text("★ marked · rated 3").wait_for()
    assert output.locator("audio").filter(visible=True).count() == 8
    assert output.get_by_text(PRICES).count() == 8


WIDGETS = [
    (PLAYER, play_a_segment, clip_and_player_sound),
    (PREVIEW, follow_a_batch, batch_has_ended),
    (ERRORS, narrow_and_mark_errors, errors_are_listed),
    (STREAMS, hear_speech_while_it_is_made, speech_sounds),
    (VOICES, have_voices_speak, voices_sound),
    (EDITOR, edit_segments, segments_are_as_they_were_edited),
    (RECORDER, record_a_take, take_sounds),
    (TEST, answer_a_listening_test, nobody_is_unblinded),
    (TABLE, hear_and_mark_rows, rows_are_marked),
]


def test_widgets_work_in_jupyterlab_and_stay_in_notebooks(notebook):
    codes = [code for code, *_ in WIDGETS]
    with voices_service() as client:
        notebook.run(f"{SOUNDS}lab = sl.Client({client.base_url!r}, api_key={KEY!r})", *codes)
        for number, (_, use, _) in enumerate(WIDGETS, 1):
            use(notebook, notebook.outputs_of(number))
            assert notebook.cells == 1 + len(WIDGETS)
    saved = notebook.save()
    assert "widget-view" not in saved
    # outside a widget, the notebook has its keys
    notebook.page.locator(".jp-InputPrompt").first.click()
    notebook.page.wait_for_function("document.activeElement.classList.contains('jp-Cell')")
    notebook.press("b")
    notebook.page.locator(".jp-CodeCell").nth(1 + len(WIDGETS)).wait_for()
    outputs = [json.dumps(cell["outputs"]) for cell in json.loads(saved)["cells"]]
    assert "two" not in outputs[1 + codes.index(TEST)]
    assert len(outputs[1 + codes.index(TABLE)]) < 120_000
    for again in (notebook.open_again, notebook.open_as_stranger):
        again()
        for number, (_, _, stays) in enumerate(WIDGETS, 1):
            stays(notebook.outputs_of(number))
        assert notebook.output.get_by_text("model not found").count() == 0
        assert notebook.output.locator("img:not([alt^='waveform' i]), mjx-container").count() == 0


def test_a_table_lives_in_notebook_7_and_stays_in_its_file(notebook):
    pytest.importorskip("notebook")
    notebook.run_in_notebook_7(f"{SOUNDS}{TABLE}")
    hear_and_mark_rows(notebook, notebook.output)
    assert notebook.cells == 1
    notebook.press("Control+s")  # which is the notebook's, also in a widget
    assert "widget-view" not in notebook.file_with("1,1,3,")
