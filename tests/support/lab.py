"""JupyterLab itself, and a notebook that a browser shows in it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

from support.sockets import free_port

READY = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  const widget = app.shell.currentWidget;
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


@contextlib.contextmanager
def jupyterlab(root):
    """Run a JupyterLab with folders of its own; give its address and the folder that it serves."""
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


class LabNotebook:
    """A notebook of one cell in JupyterLab, as the page of a browser shows it."""

    def __init__(self, page, address, name):
        self.page = page
        self.url, self.folder = address
        self.name = name
        self.page.set_default_timeout(60_000)

    @property
    def output(self):
        return self.page.locator(".jp-OutputArea-output")

    @property
    def cells(self):
        return self.page.locator(".jp-CodeCell").count()

    def open(self, code, outputs=()):
        """Write the notebook and open it; nothing runs."""
        import nbformat  # its import takes seconds, and every worker collects the tests

        cell = nbformat.v4.new_code_cell(code, outputs=list(outputs))
        notebook = nbformat.v4.new_notebook(cells=[cell])
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        nbformat.write(notebook, self.folder / self.name)
        self._open(self.name)

    def run(self, code):
        """Write the notebook, open it, and run its cell."""
        self.open(code)
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
        return (self.folder / self.name).read_text()

    def end_kernel(self):
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    def open_again(self):
        self._open(self.name)

    def open_as_stranger(self):
        """Open a copy of the saved notebook, which nobody trusts."""
        copy = f"stranger-{self.name}"
        (self.folder / copy).write_text((self.folder / self.name).read_text())
        self._open(copy)

    def _open(self, name):
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/lab/tree/{name}?token=test&reset")
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        self.page.evaluate(READY)  # a server that is told to end while a kernel starts waits for ever
