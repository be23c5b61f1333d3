"""``speechlab lab``: JupyterLab with the example notebooks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from speechlab._require import require
from speechlab.cli._console import console
from speechlab.cli._options import Command
from speechlab.errors import ConfigurationError

_POLL_S = 0.2


def list_notebooks() -> list[Path]:
    """Return the notebooks that come with speechlab, in order."""
    installed = Path(str(files("speechlab"))) / "cli" / "_notebooks"
    checkout = Path(__file__).parents[4] / "notebooks"
    return sorted((installed if installed.is_dir() else checkout).glob("*.ipynb"))


class PassingCommand(Command):
    """A command that passes on the words behind ``--``, whatever comes before."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own, sign, others = args, "", []
        if "--" in args:
            at = args.index("--")
            own, sign, others = args[:at], args[at], args[at + 1 :]
        rest = super().parse_args(ctx, own)
        if sign:
            ctx.params["arguments"] = others
        return rest


def lab(
    folder: Annotated[Path, typer.Argument(help="Working folder; the notebooks are copied into it.")] = Path(
        "speechlab-notebooks"
    ),
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Further arguments for JupyterLab, after --, with full paths.")
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
            if not os.path.lexists(folder / path.name):  # through a link, it would be written elsewhere
                shutil.copyfile(path, folder / path.name)
    except OSError as error:
        raise ConfigurationError(f"cannot write into {folder}: {error.strerror or error}") from error
    console.print(f"JupyterLab in [bold]{escape(str(folder))}[/]; Ctrl-C twice ends it", soft_wrap=True)
    command = [
        sys.executable,
        "-P",  # the kernels alone import from the folder
        "-m",
        "jupyterlab",
        *(() if browser else ("--no-browser",)),
        f"--ServerApp.root_dir={folder.resolve()}",
        *(arguments or ()),
        str(folder.resolve() / paths[0].name),
    ]
    raise typer.Exit(_run_jupyterlab(command))


def _run_jupyterlab(command: list[str]) -> int:
    """Wait for the end of JupyterLab, and return its exit code. A request to end is passed on to it."""
    # JupyterLab looks for programs in its working folder too (language servers, in node_modules).
    place = sys.prefix
    ending = threading.Event()
    handler = signal.signal(signal.SIGTERM, lambda *_: ending.set())
    try:
        with subprocess.Popen(command, cwd=place) as server:
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
