"""JupyterLab itself, in a real browser: what a user sees live, and after the notebook is opened again untrusted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

from support.browser import FLAGS, chromium_path
from support.clients import KEY
from support.sockets import free_port
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
preview = widgets.BatchPreview()
display(preview)
preview.begin("synthesize")
preview.update([Outcome("error", error_text="<img src=x onerror=alert(1)>", latency_s=0.5)], Counts(1, 2, 1, 0, 1.0))
"""
READY = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  const widget = app.shell.currentWidget;
  await widget.context.ready;
  await widget.sessionContext.ready;
  await widget.sessionContext.session.kernel.info;
}"""
RUN = "async () => window.jupyterapp.commands.execute('notebook:run-all-cells')"
ASK = """async (code) => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const future = kernel.requestExecute({ code: "", user_expressions: { asked: code } });
  const reply = await future.done;
  return reply.content.user_expressions.asked.data["text/plain"];
}"""


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory):
    """A JupyterLab with folders of its own; gives its address and the folder that it serves."""
    root = tmp_path_factory.mktemp("lab")
    settings = root / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    (root / "work").mkdir()
    port = free_port()
    folders = {"CONFIG": "config", "DATA": "data", "RUNTIME": "runtime"}
    environment = {f"JUPYTER_{name}_DIR": str(root / folder) for name, folder in folders.items()}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.token=test"]
    command += [
        f"--port={port}",
        f"--ServerApp.root_dir={root / 'work'}",
        "--LabApp.expose_app_in_browser=True",
    ]
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment, "JUPYTERLAB_SETTINGS_DIR": str(root / "settings")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{url}/api?token=test", timeout=2).close()
                break
            except OSError:
                time.sleep(0.5)
        yield url, root / "work"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


@pytest.fixture
def lab_page(chromium):
    context = chromium.new_context(viewport={"width": 1100, "height": 800})
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def open_notebook(page, url, name):
    page.goto(f"{url}/lab/tree/{name}?token=test&reset")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")


def test_the_player_lives_in_jupyterlab(jupyterlab, lab_page):
    url, folder = jupyterlab
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "live.ipynb")
    open_notebook(lab_page, url, "live.ipynb")
    lab_page.evaluate(READY)
    lab_page.evaluate(RUN)
    segment = lab_page.get_by_role("button", name="<img src=x onerror=alert(1)>")
    segment.wait_for()
    # the clip's own figure; that of the player's plain HTML has made room for the player
    assert lab_page.locator(".jp-OutputArea-output figure audio").filter(visible=True).count() == 1
    assert lab_page.locator(".jp-OutputArea-output figure audio").count() == 2
    segment.click()
    deadline = time.monotonic() + 20
    # the sound was asked for, came, and played to the end of the segment
    heard = "(player.selected, player.current_time, player.playing)"
    while lab_page.evaluate(ASK, heard) != "(0, 0.5, False)" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert lab_page.evaluate(ASK, heard) == "(0, 0.5, False)"


def test_a_clip_still_plays_in_a_notebook_that_nobody_trusts(jupyterlab, lab_page):
    url, folder = jupyterlab
    import numpy as np

    from speechlab.audio import AudioClip

    clip = AudioClip(np.zeros(12000, np.float32), 24000, title="<b>quiet</b>")
    shown = nbformat.v4.new_output(
        "display_data", {"text/html": clip._repr_html_(), "text/plain": repr(clip)}
    )
    cell = nbformat.v4.new_code_cell("clip", outputs=[shown], execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "stranger.ipynb")
    open_notebook(lab_page, url, "stranger.ipynb")
    audio = lab_page.locator(".jp-OutputArea-output audio")
    audio.wait_for()
    assert audio.get_attribute("src").startswith("data:audio/ogg;base64,")
    duration = audio.evaluate("async (a) => { await a.play(); return a.duration; }")
    assert duration == pytest.approx(0.5, abs=0.1)
    assert lab_page.locator(".jp-OutputArea-output").get_by_text("<b>quiet</b>").count() == 1
    assert lab_page.locator(".jp-OutputArea-output img").count() == 1


def test_a_preview_is_live_and_still_there_when_the_notebook_is_opened_again(jupyterlab, lab_page):
    url, folder = jupyterlab
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(PREVIEW)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "preview.ipynb")
    open_notebook(lab_page, url, "preview.ipynb")
    lab_page.evaluate(READY)
    lab_page.evaluate(RUN)
    lab_page.locator(".speechlab-preview").get_by_text("1 of 2 calls").first.wait_for()
    lab_page.evaluate(ASK, "preview.end()")
    output = lab_page.locator(".jp-OutputArea-output")
    output.get_by_text("stopped after 1 s").wait_for()
    assert lab_page.locator(".speechlab-preview").count() == 0
    lab_page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    lab_page.goto("about:blank")
    (folder / "stranger2.ipynb").write_text((folder / "preview.ipynb").read_text())  # nobody trusts this one
    for name in ("preview.ipynb", "stranger2.ipynb"):
        open_notebook(lab_page, url, name)
        lab_page.evaluate(READY)  # a server that is told to end while a kernel starts waits for ever
        output.get_by_text("1 of 2 calls · 1 error · 0 cached · 1.0 calls/s · stopped after 1 s").wait_for()
        assert output.get_by_text("<img src=x onerror=alert(1)>").count() == 1
        assert output.locator("img").count() == 0


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


def test_a_table_is_heard_and_marked_and_its_rows_stay_when_the_notebook_is_opened_again(
    jupyterlab, lab_page
):
    url, folder = jupyterlab
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(TABLE)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "table.ipynb")
    open_notebook(lab_page, url, "table.ipynb")
    lab_page.evaluate(READY)
    lab_page.evaluate(RUN)
    table = lab_page.locator(".speechlab-table")
    table.get_by_role("button", name="Play row 2", exact=True).click()
    lab_page.wait_for_selector(".sl-row.sl-playing")
    table.locator(".sl-row del").first.wait_for()
    # none of these keys reaches the notebook, where "x" would cut the cell
    for key in ("x", "m", "3", "a", "d", "d"):
        lab_page.keyboard.press(key)
    asked = "table.selected, table.marked, int(table.frame.rating[1])"
    deadline = time.monotonic() + 20
    while lab_page.evaluate(ASK, asked) != "(1, [1], 3)" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert lab_page.evaluate(ASK, asked) == "(1, [1], 3)"
    assert lab_page.locator(".jp-CodeCell").count() == 1
    lab_page.evaluate(ASK, "setattr(table, 'selected', 250)")
    lab_page.wait_for_selector(".sl-row.sl-on[data-row='250']")
    for theme, scheme in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
        lab_page.evaluate(change, theme)
        lab_page.wait_for_function(
            f"getComputedStyle(document.querySelector('.sl-search')).colorScheme === '{scheme}'"
        )
    lab_page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    lab_page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    lab_page.goto("about:blank")
    saved = (folder / "table.ipynb").read_text()
    assert "widget-view" not in saved
    assert len(saved) < 120_000
    (folder / "stranger3.ipynb").write_text(saved)  # nobody trusts this one
    for name in ("table.ipynb", "stranger3.ipynb"):
        open_notebook(lab_page, url, name)
        lab_page.evaluate(READY)
        output = lab_page.locator(".jp-OutputArea-output")
        output.get_by_text("the first 8 of them here").wait_for()
        assert output.get_by_text("model not found").count() == 0
        assert output.locator("audio").filter(visible=True).count() == 8
        assert output.locator("img, mjx-container").count() == 0
        assert (
            output.get_by_text("costs $5 in Tokyo and $6 in Osaka <img src=x onerror=alert(1)>").count() == 8
        )


VOICES = """
import speechlab as sl
lab = sl.Client({url!r}, api_key={key!r})
explorer = sl.widgets.VoiceExplorer(lab)
explorer
"""


def test_voices_speak_in_jupyterlab_and_are_heard_when_the_notebook_is_opened_again(jupyterlab, lab_page):
    url, folder = jupyterlab
    with voices_service() as client:
        cell = nbformat.v4.new_code_cell(VOICES.format(url=client.base_url, key=KEY))
        notebook = nbformat.v4.new_notebook(cells=[cell])
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        nbformat.write(notebook, folder / "voices.ipynb")
        open_notebook(lab_page, url, "voices.ipynb")
        lab_page.evaluate(READY)
        lab_page.evaluate(RUN)
        table = lab_page.locator(".speechlab-table")
        table.get_by_label("Sentence").fill("costs $5 and $6")
        table.get_by_role("button", name="Mark row 1").click()
        lab_page.keyboard.press("x")  # cuts no cell
        table.get_by_role("button", name="Play row 2", exact=True).click()
        lab_page.wait_for_selector(".sl-row.sl-playing")
        table.get_by_role("button", name="Speak: 1 voice, 15 characters").click()
        table.get_by_text("2 spoken. 30 characters in all.").wait_for()
        table.locator(".sl-row svg").nth(1).wait_for()
        assert lab_page.evaluate(ASK, "explorer.voices[0].short_name") == "'tones: quiet'"
        lab_page.evaluate(ASK, "explorer.stop()")
        assert lab_page.locator(".jp-CodeCell").count() == 1
    lab_page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    lab_page.goto("about:blank")
    (folder / "stranger4.ipynb").write_text((folder / "voices.ipynb").read_text())  # nobody trusts this one
    open_notebook(lab_page, url, "stranger4.ipynb")
    lab_page.evaluate(READY)
    output = lab_page.locator(".jp-OutputArea-output")
    output.locator("audio").nth(1).wait_for()
    assert output.get_by_text("Voices: costs $5 and $6").count() == 1
    assert output.locator("audio").count() == 2
    assert output.locator("img, mjx-container").count() == 0


EDITOR = """
import numpy as np
import speechlab as sl
t = np.arange(48000) / 24000
clip = sl.AudioClip((np.sin(2 * np.pi * 440 * t) * 0.2).astype("float32"), 24000, title="talk")
given = [(0.25, 0.5, "first"), (1.0, 1.5, "costs $5 in Tokyo and $6 in Osaka <img src=x onerror=alert(1)>")]
editor = sl.widgets.SegmentEditor(clip, given)
editor
"""


def test_segments_are_edited_in_jupyterlab_and_stay_when_the_notebook_is_opened_again(jupyterlab, lab_page):
    url, folder = jupyterlab
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(EDITOR)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "editor.ipynb")
    open_notebook(lab_page, url, "editor.ipynb")
    lab_page.evaluate(READY)
    lab_page.evaluate(RUN)
    live = lab_page.locator(".speechlab-editor")
    live.locator(".sl-segment").first.click()
    assert live.locator("ol").evaluate("list => getComputedStyle(list).paddingLeft") == "0px"
    live.get_by_label("Text").fill("the first $1 and $2")
    lab_page.keyboard.press("Enter")
    # none of them cuts or deletes the cell
    for key in ("x", "d", "d", "n", "Delete", "Control+z", "Shift+ArrowLeft"):
        lab_page.keyboard.press(key)
    deadline = time.monotonic() + 20
    asked = "(editor.frame.start.round(2).tolist(), editor.frame.text[0], editor.selected)"
    expected = "([0.25, 0.99], 'the first $1 and $2', 1)"
    while lab_page.evaluate(ASK, asked) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    assert lab_page.evaluate(ASK, asked) == expected
    assert lab_page.locator(".jp-CodeCell").count() == 1
    # the plain HTML has the segments as they were edited
    lab_page.locator(".jp-OutputArea-output table").get_by_text("the first $1 and $2").wait_for(
        state="attached"
    )
    assert live.count() == 1
    lab_page.evaluate(ASK, "setattr(editor, 'frame', editor.frame.iloc[:1].assign(speaker='Python'))")
    live.get_by_text("Python", exact=True).wait_for()
    lab_page.locator(".jp-OutputArea-output table").get_by_text("Python").wait_for(state="attached")
    lab_page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    lab_page.goto("about:blank")
    (folder / "stranger5.ipynb").write_text((folder / "editor.ipynb").read_text())  # nobody trusts this one
    open_notebook(lab_page, url, "stranger5.ipynb")
    lab_page.evaluate(READY)
    output = lab_page.locator(".jp-OutputArea-output")
    output.get_by_text("the first $1 and $2").wait_for()
    assert output.get_by_text("Python", exact=True).count() == 1
    assert output.locator("mjx-container").count() == 0


RECORDER = """
import speechlab as sl
recorder = sl.widgets.Recorder(title="costs $5 and $6 <img src=x onerror=alert(1)>")
recorder
"""


def test_a_microphone_records_in_jupyterlab_and_its_takes_stay_when_the_notebook_is_opened_again(
    jupyterlab, chromium
):
    url, folder = jupyterlab
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(RECORDER)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "recorder.ipynb")
    browser = chromium.browser_type.launch(
        executable_path=chromium_path(), args=[*FLAGS, "--use-fake-device-for-media-stream"]
    )
    page = browser.new_context(permissions=["microphone"], viewport={"width": 1100, "height": 800}).new_page()
    page.set_default_timeout(60_000)
    open_notebook(page, url, "recorder.ipynb")
    page.evaluate(READY)
    page.evaluate(RUN)
    live = page.locator(".speechlab-recorder")
    live.get_by_role("button", name="Record").click()
    page.wait_for_function("Number(document.querySelector('.sl-time').textContent.slice(2, 7)) >= 1.2")
    live.get_by_role("button", name="Stop").click()
    live.locator(".sl-take").wait_for()
    assert live.locator("ol").evaluate("list => getComputedStyle(list).paddingLeft") == "0px"
    seconds, peak = json.loads(
        page.evaluate(ASK, "[recorder.clip.duration_s, float(recorder.clip.samples.max())]")
    )
    assert 1.2 <= seconds < 10
    assert peak > 0.01  # it beeps each second
    page.locator(".jp-OutputArea-output audio").wait_for(state="attached")
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.goto("about:blank")
    (folder / "stranger6.ipynb").write_text((folder / "recorder.ipynb").read_text())  # nobody trusts this one
    open_notebook(page, url, "stranger6.ipynb")
    page.evaluate(READY)
    output = page.locator(".jp-OutputArea-output")
    output.locator("audio").wait_for()
    assert output.get_by_text("costs $5 and $6 <img src=x onerror=alert(1)> 1").count() == 1
    assert output.locator("mjx-container").count() == 0
    browser.close()


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


def test_a_listening_test_is_answered_in_jupyterlab_and_unblinds_nobody(jupyterlab, lab_page):
    url, folder = jupyterlab
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(TEST)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "test.ipynb")
    open_notebook(lab_page, url, "test.ipynb")
    lab_page.evaluate(READY)
    lab_page.evaluate(RUN)
    test = lab_page.locator(".speechlab-listening")
    test.get_by_label("Your name or number").fill("xxdd")  # cuts no cell
    lab_page.keyboard.press("Enter")
    test.get_by_role("heading", name="Question 1 of 2").wait_for()
    for name in ("Sound A", "Sound B"):
        test.get_by_role("button", name=name).click()
        test.get_by_role("button", name=name).and_(test.locator(".sl-heard")).wait_for()
    test.get_by_label("A", exact=True).check()
    test.get_by_role("button", name="Next").click()
    test.get_by_role("heading", name="Question 2 of 2").wait_for()
    asked = "(test.answers.listener.tolist(), test.answers.position.tolist())"
    deadline = time.monotonic() + 20
    while lab_page.evaluate(ASK, asked) != "(['xxdd'], [1])" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert lab_page.evaluate(ASK, asked) == "(['xxdd'], [1])"
    assert lab_page.locator(".jp-CodeCell").count() == 1
    lab_page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    lab_page.goto("about:blank")
    saved = (folder / "test.ipynb").read_text()
    outputs = json.dumps(json.loads(saved)["cells"][0]["outputs"])
    assert "two" not in outputs
    (folder / "stranger5.ipynb").write_text(saved)  # nobody trusts this one
    open_notebook(lab_page, url, "stranger5.ipynb")
    lab_page.evaluate(READY)
    output = lab_page.locator(".jp-OutputArea-output")
    output.get_by_text("costs $5 in Tokyo and $6 in Osaka <img src=x onerror=alert(1)>").wait_for()
    assert output.locator("img, mjx-container").count() == 0
