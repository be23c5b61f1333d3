"""A call of a function, where it runs: the function loaded once, its pieces, and its errors with their traceback."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab.client._systems.functions import SystemFunction, fields_taken
from speechlab.client._systems.results import pieces_of
from speechlab.errors import EngineError, SpeechLabError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from speechlab.client._systems.functions import FunctionCall


class Loaded:
    """The functions of a system in one process; a factory is called at the first call, once.

    Args:
        name: Name of the system, for messages.
        functions: The functions by operation.
    """

    def __init__(self, name: str, functions: Mapping[str, SystemFunction]) -> None:
        self._name, self._functions = name, functions
        self._made: dict[str, tuple[Callable[..., Any], frozenset[str]]] = {}
        self._lock = threading.Lock()

    def pieces(self, call: FunctionCall) -> Iterator[Any]:
        """The pieces of a result, as the function makes them; then its seconds.

        Raises:
            SpeechLabError: The function failed.
        """
        try:
            function, takes = self._function(call.operation)
            fields = call.fitted(takes)
            began = time.perf_counter()
            result = function(call.content, **fields)
            if inspect.isawaitable(result):
                result = asyncio.run(_awaited(result))
            elif hasattr(result, "__aiter__"):
                result = asyncio.run(_gathered(result))
            yield from pieces_of(call.operation, result)
            yield time.perf_counter() - began
        except Exception as error:
            raise self._failed(call, error) from error

    async def pieces_on_loop(self, call: FunctionCall) -> AsyncIterator[Any]:
        """The same for an async function, on the running event loop.

        Raises:
            SpeechLabError: The function failed.
        """
        try:
            function, takes = self._function(call.operation)
            fields = call.fitted(takes)
            began = time.perf_counter()
            result = function(call.content, **fields)
            result = await result if inspect.isawaitable(result) else result
            if hasattr(result, "__aiter__"):
                if call.operation == "transcribe":
                    result = [piece async for piece in result]
                else:
                    async for each in result:
                        for piece in pieces_of(call.operation, each):
                            yield piece
                    result = iter(())
            for piece in pieces_of(call.operation, result):
                yield piece
            yield time.perf_counter() - began
        except Exception as error:
            raise self._failed(call, error) from error

    def _function(self, operation: str) -> tuple[Callable[..., Any], frozenset[str]]:
        with self._lock:
            if operation not in self._made:
                one = self._functions[operation]
                function = one.given() if one.makes else one.given
                known = SystemFunction.of(operation, function) if one.takes is None else one
                self._made[operation] = function, known.takes or fields_taken(operation, None)
            return self._made[operation]

    def _failed(self, call: FunctionCall, error: Exception) -> SpeechLabError:
        if isinstance(error, SpeechLabError):
            return error
        return function_error(self._name, call.operation, error)


def function_error(name: str, operation: str, error: Exception) -> EngineError:
    """The error of a call whose function failed, with the traceback from the function on."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).parent != Path(__file__).parent] or frames
    at = f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""
    text = f"the function of {operation} of {name!r} failed: {type(error).__name__}: {error}{at}"
    failed = EngineError(text)
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(own)]
    failed.traceback = "".join([*lines, *traceback.format_exception_only(error)])
    return failed


async def _awaited(result: Any) -> Any:
    result = await result
    return [piece async for piece in result] if hasattr(result, "__aiter__") else result


async def _gathered(result: Any) -> Any:
    return iter([piece async for piece in result])
