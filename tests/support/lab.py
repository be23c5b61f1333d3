"""JupyterLab itself, and the notebooks that one page of a browser shows in it."""

from __future__ import annotations

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
  const widget = await app.commands.execute("docmanager:open", { path, kernel });
  for (const other of others) {
    if (other.context) other.context.model.dirty = false;
    other.close();
  }
  await widget.context.ready;
  await widget.sessionContext.ready;
  await widget.sessionContext.session.kernel.info;
  while (others.some((other) => !other.isDisposed)) await new Promise((done) => setTimeout(done, 20));
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
    """Run a JupyterLab with folders of its own; give its address and the folder that it serves."""
    settings = root / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    with jupyter_server(root, "jupyterlab", "LabApp") as address:
        yield address


@contextlib.contextmanager
def jupyter_server(root, module, application):
    """Run JupyterLab or Notebook 7, whose page has its application as ``jupyterapp``."""
    (root / "work").mkdir()
    port = free_port()
    folders = {"CONFIG": "config", "DATA": "data", "RUNTIME": "runtime"}
    environment = {f"JUPYTER_{name}_DIR": str(root / folder) for name, folder in folders.items()}
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(root / "settings")
    # Where it finds Node.js, it asks yarn for its settings with each page: half a second of processor time.
    environment["PATH"] = str(Path(sys.executable).parent)
    command = [sys.executable, "-m", module, "--no-browser", "--allow-root", "--ServerApp.token=test"]
    command += [
        f"--port={port}",
        f"--ServerApp.root_dir={root / 'work'}",
        f"--{application}.expose_app_in_browser=True",
    ]
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
    """A page of a browser in JupyterLab, a kernel for the cells of its notebooks, and one that runs nothing.

    A page of JupyterLab takes three seconds of processor time, a kernel that has imported the package two.
    """

    def __init__(self, context, address):
        self.context = context
        self.url, self.folder = address
        self.page = self._working = self._idle = None

    def load(self):
        """Load JupyterLab anew, without a notebook."""
        if self.page is None:
            self.page = self.context.new_page()
            self.page.set_default_timeout(60_000)
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/lab?token=test&reset")
        self.page.wait_for_function("() => window.jupyterapp")

    def working(self):
        """The kernel for cells, with no variables and no widgets."""
        if self._working is None:
            self._working = self._start_kernel()
        self.page.evaluate(CLEAR, self._working)
        return self._working

    def idle(self):
        """The kernel that has run nothing."""
        if self._idle is None:
            self._idle = self._start_kernel()
        return self._idle

    def end_kernel(self):
        """End the kernel for cells; the next notebook has a new one."""
        self._working = None
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    def leave(self):
        """Close the page, and let the kernel for cells be: the next notebook has new ones."""
        if self.page is not None:
            self.page.close()
        self.page = self._working = None

    def _start_kernel(self):
        return self.page.evaluate(START)


class LabNotebook:
    """A notebook of one cell in JupyterLab, as the page of a browser shows it."""

    def __init__(self, visit, name):
        self.visit = visit
        self.name = name

    @property
    def page(self):
        return self.visit.page

    @property
    def output(self):
        return self.page.locator(".jp-OutputArea-output")

    @property
    def cells(self):
        return self.page.locator(".jp-CodeCell").count()

    def open(self, code, outputs=()):
        """Write the notebook and open it; nothing runs."""
        self._write(code, outputs)
        self._open(self.name, self.visit.idle())

    def run(self, code):
        """Write the notebook, open it, and run its cell."""
        self._write(code)
        self._open(self.name, self.visit.working())
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
        self.page.evaluate("() => document.querySelector('[class*=speechlab-place-]').dataset.old = 'yes'")
        self.ask(f"{name}._show_again()")
        self.page.wait_for_function(
            "() => document.querySelector('[class*=speechlab-place-]:not([data-old])')"
        )

    def save(self):
        """Save the notebook, and return what its file holds."""
        self.page.evaluate(SAVE)
        return (self.visit.folder / self.name).read_text()

    def open_again(self):
        self.visit.load()
        self._open(self.name, None)

    def open_as_stranger(self):
        """Open a copy of the saved notebook, which nobody trusts."""
        copy = f"stranger-{self.name}"
        notebook = json.loads((self.visit.folder / self.name).read_text())
        notebook["metadata"]["title"] = "a copy"  # the server trusts what it has signed, wherever it lies
        (self.visit.folder / copy).write_text(json.dumps(notebook))
        self.visit.load()
        self._open(copy, self.visit.idle())
        assert self.page.evaluate(TRUSTED) == [False]

    def _write(self, code, outputs=()):
        if self.page is None:
            self.visit.load()
        cell = {
            "cell_type": "code",
            "id": uuid.uuid4().hex[:8],
            "execution_count": None,
            "metadata": {},
            "outputs": list(outputs),
            "source": code,
        }
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": [cell]}
        (self.visit.folder / self.name).write_text(json.dumps(notebook))

    def _open(self, name, kernel):
        # a server that is told to end while a kernel starts waits for ever: the page waits for the kernel
        self.page.evaluate(OPEN, [name, kernel])
