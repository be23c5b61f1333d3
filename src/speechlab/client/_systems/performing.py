"""A call of a function, where it runs: the function loaded once, its pieces, and its errors with their traceback."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab.client._clock import SystemClock
from speechlab.client._systems.functions import SystemFunction, fields_taken
from speechlab.client._systems.results import pieces_of
from speechlab.errors import EngineError, SpeechLabError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping

    from speechlab.client._clock import Clock
    from speechlab.client._systems.functions import FunctionCall


class Loaded:
    """The functions of a system in one process; a factory is called at the first call, once.

    Args:
        name: Name of the system, for messages.
        functions: The functions by operation.
        clock: Source of time; None for that of the machine.
    """

    def __init__(
        self, name: str, functions: Mapping[str, SystemFunction], clock: Clock | None = None
    ) -> None:
        self._name, self._functions, self._clock = name, functions, clock or SystemClock()
        self._made: dict[str, tuple[Callable[..., Any], frozenset[str]]] = {}
        self._lock = threading.Lock()

    def pieces(self, call: FunctionCall) -> Iterator[Any]:
        """The pieces of a result, as the function makes them; then its seconds."""
        with self._failing(call):
            result, timed = self._called(call)
            if inspect.isawaitable(result) or hasattr(result, "__aiter__"):
                with asyncio.Runner() as runner:
                    later = _pieces_later(call.operation, result)
                    while (piece := runner.run(_next(later))) is not None:
                        yield timed(piece)
            else:
                yield from map(timed, pieces_of(call.operation, result))
            yield timed(None)

    async def pieces_on_loop(self, call: FunctionCall) -> AsyncIterator[Any]:
        """The same for an async function, on the running event loop."""
        with self._failing(call):
            result, timed = self._called(call)
            async with aclosing(_pieces_later(call.operation, result)) as later:
                async for piece in later:
                    yield timed(piece)
            yield timed(None)

    def _called(self, call: FunctionCall) -> tuple[Any, Callable[[Any], Any]]:
        """What a function returns, and a function that puts the time to its pieces; of None, its own seconds."""
        function, takes = self._function(call.operation)
        fields = call.fitted(takes)
        clips = call.spoken(self._clock)
        began = self._clock.monotonic()

        def timed(piece: Any) -> Any:
            seconds = self._clock.monotonic() - began
            if piece is None:
                return seconds - (0.0 if clips is None else clips.waited_s)
            return piece if clips is None else (seconds, *piece)

        return function(call.content if clips is None else clips, **fields), timed

    def _function(self, operation: str) -> tuple[Callable[..., Any], frozenset[str]]:
        with self._lock:
            if operation not in self._made:
                one = self._functions[operation]
                function = one.given() if one.makes else one.given
                known = SystemFunction.of(operation, function) if one.takes is None else one
                self._made[operation] = function, known.takes or fields_taken(operation, None)
            return self._made[operation]

    @contextmanager
    def _failing(self, call: FunctionCall) -> Iterator[None]:
        """Make what a function raises an error of ours."""
        try:
            yield
        except SpeechLabError:
            raise
        except (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            raise function_error(self._name, call.operation, error) from error


def function_error(name: str, operation: str, error: BaseException) -> EngineError:
    """The error of a call whose function failed, with the traceback from the function on."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).parent != Path(__file__).parent] or frames
    at = f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""
    what = ": ".join(filter(None, (type(error).__name__, str(error))))
    text = f"the function of {operation} of {name!r} failed: {what}{at}"
    failed = EngineError(text)
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(own)]
    failed.traceback = "".join([*lines, *traceback.format_exception_only(error)])
    return failed


def _is_cancelled() -> bool:
    """Whether the running task is asked to end, rather than its function having said so itself."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without a loop
        return False
    return task is not None and task.cancelling() > 0


async def _pieces_later(operation: str, result: Any) -> AsyncGenerator[Any, None]:
    """The pieces of what an async function returns, or of what it yields."""
    result = await result if inspect.isawaitable(result) else result
    if hasattr(result, "__aiter__") and operation == "transcribe":
        result = [piece async for piece in result]
    if not hasattr(result, "__aiter__"):
        for piece in pieces_of(operation, result):
            yield piece
        return
    async for each in result:
        for piece in pieces_of(operation, each):
            yield piece


async def _next(pieces: AsyncIterator[Any]) -> Any:
    return await anext(pieces, None)
