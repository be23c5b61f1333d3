"""JupyterLab and Notebook 7 themselves, and the notebooks that one page of a browser shows in them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path

from support.sockets import free_port

OPEN = """async ([path, kernel]) => {
  const app = window.jupyterapp;
  await app.restored;
  const others = [...app.shell.widgets("main")];
  for (const other of others) {
    if (other.context) other.context.model.dirty = false;
    other.close();
  }
  while (others.some((other) => !other.isDisposed)) await new Promise((done) => setTimeout(done, 20));
  const widget = await app.commands.execute("docmanager:open", { path, kernel });
  await widget.context.ready;
  await widget.sessionContext.ready;
  await widget.sessionContext.session.kernel.info;
}"""
RUN = "async () => window.jupyterapp.commands.execute('notebook:run-all-cells')"
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"
ASK = """async (code) => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const future = kernel.requestExecute({ code: "", user_expressions: { asked: code } });
  const reply = await future.done;
  return reply.content.user_expressions.asked.data["text/plain"];
}"""
TRUSTED = "() => window.jupyterapp.shell.currentWidget.content.widgets.map((cell) => cell.model.trusted)"
START = """async () => {
  const kernel = await window.jupyterapp.serviceManager.kernels.startNew({ name: "python3" });
  const { id, name } = kernel;
  kernel.dispose();
  return { id, name };
}"""
SESSION = """async ([path, kernel]) => {
  const { sessions } = window.jupyterapp.serviceManager;
  const session = await sessions.startNew({ path, kernel, name: path, type: "notebook" });
  session.dispose();
}"""
CLEAR = """async (model) => {
  const code = `
import ipywidgets
ipywidgets.Widget.close_all()
get_ipython().run_line_magic("reset", "-sf")
`;
  const kernels = window.jupyterapp.serviceManager.kernels;
  await kernels.refreshRunning();
  const kernel = kernels.connectTo({ model });
  const reply = await kernel.requestExecute({ code, silent: true }).done;
  kernel.dispose();
  if (reply.content.status !== "ok") throw new Error(reply.content.evalue);
}"""


@contextlib.contextmanager
def jupyterlab(root):
    """Run a JupyterLab, which has Notebook 7 too; give its address and the folder that it serves."""
    settings = root / "settings" / "@jupyterlab"
    written = {
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
        # cells that are out of sight stay in the page
        "notebook-extension/tracker": {"windowingMode": "none"},
    }
    for name, values in written.items():
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(values))
    (root / "work").mkdir()
    port = free_port()
    folders = {"CONFIG": "config", "DATA": "data", "RUNTIME": "runtime"}
    environment = {f"JUPYTER_{name}_DIR": str(root / folder) for name, folder in folders.items()}
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(root / "settings")
    # Where it finds Node.js, it asks yarn for its settings with each page: half a second of processor time.
    environment["PATH"] = str(Path(sys.executable).parent)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.token=test"]
    command += [f"--port={port}", f"--ServerApp.root_dir={root / 'work'}"]
    # both have their application as ``jupyterapp`` of their page
    command += [f"--{name}.expose_app_in_browser=True" for name in ("LabApp", "JupyterNotebookApp")]
    url = f"http://127.0.0.1:{port}"
    with server(command, f"{url}/api?token=test", environment):
        yield url, root / "work"


@contextlib.contextmanager
def server(command, url, environment):
    """Run a server with its kernels, from when an address answers until it is left."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(url, timeout=2).close()
                break
            except OSError:
                time.sleep(0.5)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


class LabVisit:
    """A page of a browser in JupyterLab, and a kernel for all of its notebooks.

    A page of JupyterLab takes three seconds of processor time, a kernel that has imported the package two.
    """

    def __init__(self, context, address):
        self.context = context
        self.url, self.folder = address
        self.page = self._kernel = None

    def load(self):
        """Load JupyterLab anew, without a notebook."""
        if self.page is None:
            self.page = self.context.new_page()
            self.page.set_default_timeout(60_000)
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/lab?token=test&reset")
        self.page.wait_for_function("() => window.jupyterapp")

    def kernel(self):
        """The kernel, with no variables and no widgets."""
        if self._kernel is None:
            self._kernel = self.page.evaluate(START)
        self.page.evaluate(CLEAR, self._kernel)
        return self._kernel

    def leave(self):
        """Close the page, and let the kernel be: the next notebook has new ones."""
        if self.page is not None:
            self.page.close()
        self.page = self._kernel = None


class LabNotebook:
    """A notebook in JupyterLab, as the page of a browser shows it."""

    def __init__(self, visit, name):
        self.visit = visit
        self.name = name

    @property
    def page(self):
        return self.visit.page

    @property
    def output(self):
        return self.page.locator(".jp-OutputArea-output")

    def outputs_of(self, cell):
        """The outputs of a cell, by its number from 0, in view: JupyterLab may leave others hidden for long."""
        shown = self.page.locator(".jp-CodeCell").nth(cell)
        shown.evaluate("cell => cell.scrollIntoView()")
        return shown.locator(".jp-OutputArea-output")

    @property
    def cells(self):
        return self.page.locator(".jp-CodeCell").count()

    def run(self, *codes):
        """Write the notebook with these cells, open it, and run it."""
        self._write(codes)
        self._open(self.name, self.visit.kernel())
        self.page.evaluate(RUN)

    def run_in_notebook_7(self, code):
        """Write the notebook with this cell, open it in Notebook 7, and run it."""
        self._write([code])
        self.page.evaluate(SESSION, [self.name, self.visit.kernel()])
        self.page.goto("about:blank")
        self.page.goto(f"{self.visit.url}/notebooks/{self.name}?token=test")
        self.page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel")
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.info")
        self.page.evaluate(RUN)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def ask(self, code):
        """What an expression is in the kernel, as its repr."""
        return self.page.evaluate(ASK, code)

    def becomes(self, code, expected):
        """Wait until an expression is what it should be in the kernel."""
        deadline = time.monotonic() + 20
        while self.ask(code) != expected and time.monotonic() < deadline:
            time.sleep(0.2)
        assert self.ask(code) == expected

    def show_again(self, name):
        """Have a widget's plain HTML made anew, and wait until it is."""
        place = f".{self.ask(f'{name}._place')[1:-1]}"
        self.page.evaluate("(place) => { document.querySelector(place).dataset.old = 'yes'; }", place)
        self.ask(f"{name}._refresh_output()")
        self.page.wait_for_function(
            "(place) => document.querySelector(`${place}:not([data-old])`)", arg=place
        )

    def save(self):
        """Save the notebook, and return what its file holds."""
        self.page.evaluate(SAVE)
        return (self.visit.folder / self.name).read_text()

    def file_with(self, text):
        """What its file holds, once it holds a text."""
        file = self.visit.folder / self.name
        deadline = time.monotonic() + 60
        while text not in file.read_text() and time.monotonic() < deadline:
            self.page.wait_for_timeout(200)
        assert text in file.read_text()
        return file.read_text()

    def open_again(self):
        """Close the notebook and open it again, with nothing of its widgets in the kernel."""
        self._open(self.name, self.visit.kernel())

    def open_as_stranger(self):
        """Open a copy of the saved notebook, which nobody trusts."""
        copy = f"stranger-{self.name}"
        notebook = json.loads((self.visit.folder / self.name).read_text())
        notebook["metadata"]["title"] = "a copy"  # the server trusts what it has signed, wherever it lies
        (self.visit.folder / copy).write_text(json.dumps(notebook))
        self._open(copy, self.visit.kernel())
        assert not any(self.page.evaluate(TRUSTED))

    def _write(self, codes):
        if self.page is None:
            self.visit.load()
        cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
        cells = [{**cell, "id": uuid.uuid4().hex[:8], "source": code} for code in codes]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
        (self.visit.folder / self.name).write_text(json.dumps(notebook))

    def _open(self, name, kernel):
        # a server that is told to end while a kernel starts waits for ever: the page waits for the kernel
        self.page.evaluate(OPEN, [name, kernel])
