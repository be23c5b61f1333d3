"""``speechlab lab``: JupyterLab with the example notebooks."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from speechlab._require import require
from speechlab.cli._console import console
from speechlab.errors import ConfigurationError

_POLL_S = 0.2


def list_notebooks() -> list[Path]:
    """Return the notebooks that come with speechlab, in order."""
    installed = Path(str(files("speechlab"))) / "cli" / "_notebooks"
    checkout = Path(__file__).parents[4] / "notebooks"
    return sorted((installed if installed.is_dir() else checkout).glob("*.ipynb"))


def lab(
    folder: Annotated[Path, typer.Argument(help="Working folder; the notebooks are copied into it.")] = Path(
        "speechlab-notebooks"
    ),
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Further arguments for JupyterLab, after --.")
    ] = None,
) -> None:
    """Copy the example notebooks and start JupyterLab there. Existing notebooks are left unchanged."""
    require("jupyterlab")
    paths = list_notebooks()
    if not paths:
        raise ConfigurationError("this installation contains no notebooks; install speechlab again")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            if not (folder / path.name).exists():
                shutil.copyfile(path, folder / path.name)
    except OSError as error:
        raise ConfigurationError(f"cannot write into {folder}: {error.strerror or error}") from error
    console.print(f"JupyterLab in [bold]{folder}[/]; Ctrl-C twice ends it", soft_wrap=True)
    command = [
        sys.executable,
        "-P",  # the kernels alone import from the folder
        "-m",
        "jupyterlab",
        *(() if browser else ("--no-browser",)),
        *(arguments or ()),
    ]
    raise typer.Exit(_run_jupyterlab([*command, paths[0].name], folder))


def _run_jupyterlab(command: list[str], folder: Path) -> int:
    """Wait for the end of JupyterLab, and return its exit code. A request to end is passed on to it."""
    ending = threading.Event()
    handler = signal.signal(signal.SIGTERM, lambda *_: ending.set())
    try:
        with subprocess.Popen(command, cwd=folder) as server:
            while True:
                try:
                    while server.poll() is None:
                        if ending.wait(_POLL_S):
                            ending.clear()
                            server.terminate()  # it ends its kernels, and then itself
                    return server.wait()
                except KeyboardInterrupt:
                    continue  # JupyterLab gets the interrupt too: it asks first, and then ends its kernels
    finally:
        signal.signal(signal.SIGTERM, handler)
