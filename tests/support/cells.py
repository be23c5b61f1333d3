"""Cells of a notebook: IPython runs them, and what it prints is read."""

import contextlib
import io
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell


@contextlib.contextmanager
def cells(folder, **names):
    """Give a function that runs a cell and returns what was printed and the error.

    Args:
        folder: Where IPython keeps its own things.
        **names: What the cells know.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder))
        for name in ("ps1", "ps2", "ps3"):  # which the shell sets for the process
            patch.setattr(sys, name, "", raising=False)
        shell = InteractiveShell()
        shell.user_ns.update(names)

        def run(cell, mode="Context"):
            shell.InteractiveTB.set_mode(mode)
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
                result = shell.run_cell(cell)
            return shown.getvalue(), result.error_in_exec

        try:
            yield run
        finally:
            shell.history_manager.end_session()
