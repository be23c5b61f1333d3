"""Processes that are forked off one that has imported everything: a second of processor time less for each."""

import atexit
import logging
import multiprocessing
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

_FORKED = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
if hasattr(os, "fork"):
    # The modules of the command line itself are not among them: they look at the terminal when they are imported.
    _FORKED.set_forkserver_preload(
        [
            "distributed.cli.dask_scheduler",
            "distributed.cli.dask_worker",
            "pyarrow.pandas_compat",
            "rich.progress",
            "speechlab.datasets",
            "speechlab.evaluate",
            "speechlab.plots",
            "speechlab.widgets",
            "support.forked",
            "typer.core",
        ]
    )


def _new_file():
    file, name = tempfile.mkstemp(prefix="speechlab-")
    os.close(file)
    return name


class _Forked:
    """A process of its own, with the attributes of ``subprocess.Popen``."""

    def __init__(self, work, args, env=None, cwd=None, terminal=None):
        self._said = [Path(terminal or _new_file()) for _ in range(2)]
        self.args = list(map(str, args))
        given = (work, self.args, dict(env or os.environ), str(cwd or Path.cwd()), list(map(str, self._said)))
        self._process = _FORKED.Process(target=_begin, args=given, daemon=True)
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self._process.kill()
        self._process.join()

    def communicate(self, timeout=120):
        """Wait for the end, and return what was printed to the output and to the errors."""
        self._process.join(timeout)
        if self.returncode is None:
            self.kill()
            raise subprocess.TimeoutExpired(self.args, timeout)
        said = tuple(path.read_text("utf-8") for path in self._said)
        for path in self._said:
            path.unlink()
        return said


class Speechlab(_Forked):
    """The command ``speechlab``."""

    def __init__(self, *arguments, env=None, cwd=None):
        super().__init__(_command, ["speechlab", *arguments], env, cwd)


class Script(_Forked):
    """A text of Python with arguments, as ``python -c`` runs it, except that it ends without the work of ``atexit``.

    What it prints goes to the terminal, if one is given by its path.
    """

    def __init__(self, code, *arguments, **how):
        super().__init__(partial(_run, code), ["-c", *arguments], **how)


def speechlab(*arguments, env=None, cwd=None, timeout=120):
    """Run the command to its end, as ``subprocess.run`` does."""
    return _ended(Speechlab(*arguments, env=env, cwd=cwd), timeout)


def script(code, *arguments, timeout=120, **how):
    """Run a text of Python to its end, as ``subprocess.run`` does."""
    return _ended(Script(code, *arguments, **how), timeout)


def _ended(process, timeout):
    out, err = process.communicate(timeout)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _command():
    from speechlab.cli import main

    main()


def _run(code):
    exec(compile(code, "<script>", "exec"), {"__name__": "__main__"})


def _begin(work, arguments, environment, folder, said):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = arguments
    for number, (path, stream) in enumerate(zip(said, (sys.stdout, sys.stderr), strict=True), start=1):
        stream.reconfigure(encoding="utf-8")  # while its file has a place, which a terminal has not
        file = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        os.dup2(file, number)
        os.close(file)
    work()


def dask(command, *arguments):
    """Start ``dask scheduler`` or ``dask worker`` as a process of its own."""
    process = _FORKED.Process(target=_dask, args=(command, arguments), daemon=True)
    process.start()
    return process


def _dask(command, arguments):
    from importlib import import_module

    logging.disable(logging.CRITICAL)  # the ends of connections to killed processes
    try:
        import_module(f"distributed.cli.dask_{command}").main([*arguments, "--no-dashboard"])
    finally:
        atexit._run_exitfuncs()  # as at the end of a command, and not of a fork
