"""The process of a system: reads calls from its input, and writes pieces to its output."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from typing import Any

from speechlab.client._systems.performing import Loaded
from speechlab.client._systems.workers import read_message, write_message
from speechlab.errors import ConfigurationError, SpeechLabError


def main() -> None:
    """Answer calls until the input ends; what functions print goes to the error output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches all processes of a terminal; ours ends us
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[:] = read_message(sys.stdin.buffer)
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
    loaded: Loaded | None = None
    fault = ""
    try:
        loaded = Loaded(*pickle.loads(read_message(sys.stdin.buffer)))  # noqa: S301 - from our own process
    except Exception as error:  # noqa: BLE001 - the module of the function does not load here
        fault = f"the functions cannot be loaded in another process: {type(error).__name__}: {error}"
    threading.Thread(target=_listen, args=(calls,), daemon=True).start()
    while True:
        call = calls.get()
        try:
            if loaded is None:
                raise ConfigurationError(fault)
            seconds = 0.0
            for piece in loaded.pieces(call):
                if isinstance(piece, float):
                    seconds = piece
                else:
                    write_message(answers, ("piece", piece))
            write_message(answers, ("end", seconds))
        except SpeechLabError as error:
            write_message(answers, ("error", error.with_traceback(None)))


def _listen(calls: queue.SimpleQueue[Any]) -> None:
    """Read calls; the end of the input ends the process, also during a call."""
    try:
        while True:
            calls.put(read_message(sys.stdin.buffer))
    except (EOFError, OSError, pickle.UnpicklingError):
        os._exit(0)
