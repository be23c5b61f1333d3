"""Other hosts than JupyterLab and Notebook 7: marimo itself, and frames with the policies of two others."""

import sys
import time

import pandas as pd
import pytest

from speechlab.widgets import AudioTable, Recorder
from support.browser import FAKE_MODEL
from support.lab import server
from support.samples import tone
from support.sockets import free_port

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

TABLE = """import threading, time
import numpy as np, pandas as pd
import speechlab as sl
wave = 0.2 * np.sin(2 * np.pi * 300 * np.arange(12000) / 24000)
clip = sl.AudioClip(wave.astype("float32"), 24000)
table = sl.show(pd.DataFrame({"audio": [clip] * 3, "text": "<img src=x onerror=alert(1)>"}))
def tell():
    while True:
        with open("marks.txt", "w") as file:
            file.write(f"{table.marked} {table.frame['rating'].tolist()}")
        time.sleep(0.2)
threading.Thread(target=tell, daemon=True).start()
"""
MARIMO = """import marimo
app = marimo.App()
@app.cell
def _():
{cell}
    texts = pd.DataFrame({"text": ["one", "two"]})
    lab = sl.system("upper", translate=lambda text, **_: text.upper())
    # marimo shows the value of a cell in place of all that it showed before, so this cell has none
    done = sl.batch.translate(texts, lab, source_lang="en", target_lang="ja", store="results")
    return (table,)
@app.cell
def _(table):
    table
    return
if __name__ == "__main__":
    app.run()
"""
SOUND = "[...document.querySelectorAll('audio')].map((one) => one.play()).length"


def heard_and_marked(page, folder):
    """Play, mark and rate the second row by clicks and keys, until Python has it."""
    page.get_by_role("button", name="Play row 2", exact=True).click()
    page.wait_for_selector(".sl-row.sl-playing")
    page.locator(".sl-heard").click(position={"x": 2, "y": 2})
    for key in "xm3dd":  # with "m" a notebook makes a cell Markdown, with "x" it cuts it
        page.keyboard.press(key)
    until = time.monotonic() + 60
    while not (folder / "marks.txt").read_text().startswith("[1] [<NA>, 3,") and time.monotonic() < until:
        page.wait_for_timeout(200)
    assert (folder / "marks.txt").read_text() == "[1] [<NA>, 3, <NA>]"
    assert page.locator(".sl-star[aria-pressed=true]").count() == 1


def new_page(chromium):
    page = chromium.new_context(viewport={"width": 1100, "height": 900}).new_page()
    page.set_default_timeout(60_000)
    return page


def test_a_table_lives_in_marimo(chromium, tmp_path):
    pytest.importorskip("marimo")
    lines = "\n".join(f"    {line}" for line in TABLE.splitlines())
    code = MARIMO.replace("{cell}", lines)
    for name in ("marks.txt", "results"):
        code = code.replace(f'"{name}"', repr(str(tmp_path / name)))
    (tmp_path / "table.py").write_text(code)
    page = new_page(chromium)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "marimo", "-q", "run", str(tmp_path / "table.py"), "--headless"]
    with server([*command, "--no-token", f"--port={port}"], f"{url}/health", {}):
        page.goto(url)
        page.get_by_text("2 of 2 calls").first.wait_for()
        assert page.get_by_role("group", name="Batch: Translation").count() == 1
        heard_and_marked(page, tmp_path)
    page.context.close()


FRAMES = {
    "vscode": (
        "allow-same-origin allow-pointer-lock allow-scripts allow-downloads allow-forms",
        "cross-origin-isolated; autoplay; clipboard-read; clipboard-write",
    ),
    "colab": (
        "allow-downloads allow-forms allow-modals allow-popups allow-same-origin allow-scripts",
        "autoplay; microphone",
    ),
}
"""What the frame of an output may do: the attributes ``sandbox`` and ``allow``."""


@pytest.mark.parametrize("host", FRAMES)
def test_a_table_lives_in_the_frame_of_another_host(shown, host):
    table = AudioTable(pd.DataFrame({"audio": [tone()] * 3, "text": "<img src=x onerror=alert(1)>"}))
    shown.answer(table)
    shown.origin = "http://page.localhost"  # as secure as https
    url = "http://frame.localhost/"
    shown.files[url] = (
        "text/html; charset=utf-8",
        (
            f"<!DOCTYPE html><html lang=en><title>t</title><style>{table._css}</style><script>{FAKE_MODEL}</script>"
            f"<body><div id=cell></div>{table.static_html()}"
        ),
    )
    sandbox, allowed = FRAMES[host]
    page = shown.show(
        "<!DOCTYPE html><html lang=en><title>t</title><script>leaked = [];"
        "document.addEventListener('keydown', ({ key }) => leaked.push(key));</script>"
        f'<iframe title=t sandbox="{sandbox}" allow="{allowed}" src="{url}" style="width: 800px; height: 700px">'
    )
    frame = page.frame(url=url)
    assert frame.evaluate(SOUND) == 3  # the still form
    names = "columns count revision reference max_rating editable chosen sound title view"
    show = """async ([source, state]) => {
      // as anywidget loads modules
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      window.model = new AskingModel(state);
      (await import(url)).default.render({ model, el: document.getElementById("cell") });
    }"""
    frame.evaluate(
        show, [table._esm, {**{name: getattr(table, name) for name in names.split()}, "_controls": []}]
    )
    frame.get_by_role("button", name="Play row 2", exact=True).click()
    frame.wait_for_selector(".sl-row.sl-playing")
    frame.locator(".sl-heard").click(position={"x": 2, "y": 2})
    for key in "xm3":
        page.keyboard.press(key)
    frame.wait_for_function("model.asking.size === 0")
    assert (table.marked, table.frame["rating"].fillna(0).tolist()) == ([1], [0, 3, 0])
    assert page.evaluate("leaked") == []
    recorder = Recorder()
    state = {name: getattr(recorder, name) for name in ["title", "max_s", "processing", "takes", "recording"]}
    frame.evaluate(show, [recorder._esm, state])
    refused = frame.get_by_text("The program that shows this notebook keeps the microphone from it").count()
    assert refused == (host == "vscode")
