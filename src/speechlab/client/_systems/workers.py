"""Where functions run: threads of this process, or processes of their own, with the whole of such a process."""

from __future__ import annotations

import asyncio
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, suppress
from typing import IO, TYPE_CHECKING, Any

from speechlab.client._systems.gathering import CallGatherer
from speechlab.client._systems.performing import FunctionRunner
from speechlab.errors import ConfigurationError, EngineError, SpeechLabError

if TYPE_CHECKING:
    from speechlab.client._clock import Clock
    from speechlab.client._systems.functions import FunctionCall, FunctionSystem

_CHILD = "from speechlab.client._systems.workers import main; main()"
_END = object()


def write_message(file: IO[bytes], message: object) -> None:
    """Write a message to a process."""
    pickle.dump(message, file)
    file.flush()


def read_message(file: IO[bytes]) -> Any:
    """Read a message of a process; an EOFError or UnpicklingError where it has ended."""
    return pickle.load(file)  # noqa: S301 - from our own process


class _Process:
    """A process with the functions of a system, started at its first call."""

    def __init__(self, system: FunctionSystem) -> None:
        self._system = system
        self._child: subprocess.Popen[bytes] | None = None

    def iterate_pieces(self, call: FunctionCall) -> Iterator[Any]:
        """Yield the pieces of a result, and then its seconds."""
        child = self._child
        try:
            if child is None:
                payload = pickle.dumps((self._system.name, dict(self._system.functions)))
                child = self._child = subprocess.Popen(
                    [sys.executable, "-P", "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
                assert child.stdin is not None
                write_message(child.stdin, sys.path)
                write_message(child.stdin, payload)  # as bytes, which are read where an error can be reported
            assert child.stdin is not None
            assert child.stdout is not None
            write_message(child.stdin, call)
            while True:
                kind, value = read_message(child.stdout)
                if kind == "error":
                    raise value
                yield value
                if kind == "end":
                    return
        except SpeechLabError:  # of the function; some are a ValueError
            raise
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):  # ended, or closed meanwhile
            code = None if child is None else child.wait()
            self.close()
            text = f"the process of {self._system.name!r} ended during {call.operation} (exit code {code})"
            raise EngineError(f"{text}; its output says why, and the next call starts another") from None

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()


class _Runner:
    """A thread that runs one call at a time, or waits for its process to do so."""

    def __init__(self, pieces: Callable[[FunctionCall], Iterator[Any]], close: Callable[[], None]) -> None:
        self._pieces, self._close = pieces, close
        self._calls: queue.SimpleQueue[tuple[FunctionCall, Callable[[Any], object]] | None] = (
            queue.SimpleQueue()
        )
        self._left = threading.Event()
        threading.Thread(target=self._run_calls, name="speechlab function", daemon=True).start()

    def submit(self, call: FunctionCall, receive: Callable[[Any], object]) -> None:
        """Begin a call; ``receive`` gets its pieces, an error, and ``_END`` last."""
        self._calls.put((call, receive))

    def stop(self) -> None:
        """End: a process at once, a thread at the next piece."""
        self._left.set()
        self._close()
        self._calls.put(None)

    def _run_calls(self) -> None:
        while (task := self._calls.get()) is not None and not self._left.is_set():
            call, receive = task
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                try:
                    for piece in self._pieces(call):
                        if self._left.is_set():
                            return
                        receive(piece)
                except SpeechLabError as error:
                    receive(error)
                except BaseException as error:  # noqa: BLE001 - its caller would wait for ever for a thread that ended
                    receive(EngineError(f"{call.operation} failed: {type(error).__name__}: {error}"))
                receive(_END)


def _stop_all(workers: Iterable[_Runner]) -> None:
    for worker in workers:
        worker.stop()


class Workers:
    """The workers of a system on one event loop."""

    def __init__(self, system: FunctionSystem, clock: Clock) -> None:
        self._system = system
        self._loaded = FunctionRunner(system.name, system.functions, clock)
        self._places = asyncio.Semaphore(system.places)
        self._idle: list[_Runner] = []
        self._all: set[_Runner] = set()
        self._gatherers = {
            operation: CallGatherer(
                self._run_call,
                batch_size=system.batch_size,
                max_wait_s=system.max_wait_s,
                workers=system.places,
            )
            for operation, function in system.functions.items()
            if function.many
        }

    async def iterate_pieces(self, call: FunctionCall) -> AsyncGenerator[Any, None]:
        """Yield the pieces of a result as they come, and then its seconds."""
        gatherer = self._gatherers.get(call.operation)
        if gatherer is None:
            async with aclosing(self._run_call(call)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        row, seconds = await gatherer.call(call)
        for piece in row:
            yield piece
        yield seconds

    async def _run_call(self, call: FunctionCall) -> AsyncGenerator[Any, None]:
        """Yield the same for a call, or a batch of calls, of a worker."""
        async with self._places:
            if not self._system.processes and self._system.resolve_function(call.operation).is_async:
                async for piece in self._loaded.iterate_pieces_on_loop(call):
                    yield piece
                return
            worker = self._idle.pop() if self._idle else self._start_runner()
            answers: asyncio.Queue[Any] = asyncio.Queue()
            loop = asyncio.get_running_loop()
            worker.submit(call, lambda piece: loop.call_soon_threadsafe(answers.put_nowait, piece))
            ended, error = False, None
            try:
                while (piece := await answers.get()) is not _END:
                    if isinstance(piece, SpeechLabError):
                        error = piece
                    else:
                        yield piece
                ended = True
            finally:
                if ended:
                    self._idle.append(worker)
                else:
                    self._all.discard(worker)
                    worker.stop()
            if error is not None:
                raise error

    def _start_runner(self) -> _Runner:
        if self._system.processes:
            process = _Process(self._system)
            worker = _Runner(process.iterate_pieces, process.close)
        else:
            worker = _Runner(self._loaded.iterate_pieces, lambda: None)
        self._all.add(worker)
        return worker

    async def close(self) -> None:
        """End all threads and processes."""
        for gatherer in self._gatherers.values():
            gatherer.close()
        workers, self._all = self._all, set()
        self._idle.clear()
        await asyncio.to_thread(_stop_all, workers)


def main() -> None:
    """Answer calls until the input ends; what functions print goes to the error output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches all processes of a terminal; ours ends us
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[:] = read_message(sys.stdin.buffer)
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
    loaded: FunctionRunner | None = None
    fault = ""
    try:
        loaded = FunctionRunner(*pickle.loads(read_message(sys.stdin.buffer)))  # noqa: S301 - from our own process
    except Exception as error:  # noqa: BLE001 - the module of the function does not load here
        fault = f"the functions cannot be loaded in another process: {type(error).__name__}: {error}"
    threading.Thread(target=_queue_calls_from_input, args=(calls,), daemon=True).start()
    while True:
        call = calls.get()
        try:
            if loaded is None:
                raise ConfigurationError(fault)
            seconds = 0.0
            for piece in loaded.iterate_pieces(call):
                if isinstance(piece, float):
                    seconds = piece
                    continue
                if call.many:
                    result, fault = piece
                    piece = result, fault and _to_sendable_error(fault)  # noqa: PLW2901 - the same, to be sent
                write_message(answers, ("piece", piece))
            write_message(answers, ("end", seconds))
        except SpeechLabError as error:
            write_message(answers, ("error", _to_sendable_error(error)))


def _to_sendable_error(error: SpeechLabError) -> SpeechLabError:
    """Return an error, or one in its place if it is of the user's own class that cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error.with_traceback(None)))  # noqa: S301 - as just made
    except Exception as problem:  # noqa: BLE001 - of a user's class
        made = EngineError(f"{type(error).__name__}: {error}")
        made.advice = f"it cannot be sent from its process as it is ({problem})"
        return made
    return error


def _queue_calls_from_input(calls: queue.SimpleQueue[Any]) -> None:
    """Read calls; the end of the input ends the process, also during a call."""
    try:
        while True:
            calls.put(read_message(sys.stdin.buffer))
    except (EOFError, OSError, pickle.UnpicklingError):
        os._exit(0)
