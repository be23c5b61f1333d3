"""A call of a function, where it runs: its result made plain piece by piece, its errors with their traceback."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._require import import_lazily
from speechlab.audio import AudioClip, unify_recording
from speechlab.client._clock import SystemClock
from speechlab.client._operations.call import Reply
from speechlab.client._operations.recognition import Transcript, to_contract_fields
from speechlab.client._operations.translation import Translation
from speechlab.client._systems.functions import (
    BATCH_SUFFIX,
    PERFORM,
    PacedClips,
    SystemFunction,
    check_fields,
)
from speechlab.datasets import transcript_of
from speechlab.errors import ContractError, EngineError, SpeechLabError

if TYPE_CHECKING:
    import numpy as np

    from speechlab.client._clock import Clock
    from speechlab.client._systems.functions import FunctionCall
else:
    np = import_lazily("numpy")

_SOUND = "an AudioClip, (samples, rate), the bytes of a file, or an iterator of them"
_PARTIAL = "an iterator of (text, final), as in ('good mor', False)"
_MOST_PARTIALS = 100_000
_TRANSCRIPT = "a text, a Transcript, segments, (segments, info), or a dict with 'text' or 'segments'"


def _iterate_speech(result: Any) -> Iterator[AudioClip | bytes]:
    if isinstance(result, Iterator):
        for piece in result:
            yield _to_sound(piece)
    else:
        yield _to_sound(result)


def _to_sound(value: Any) -> AudioClip | bytes:
    if (found := _find_sound(value)) is not None:
        return found
    raise _build_result_error("synthesize", value, _SOUND)


def _find_sound(value: Any) -> AudioClip | bytes | None:
    found = unify_recording(tuple(value) if isinstance(value, list) else value)
    return found if isinstance(found, AudioClip | bytes) else None


def _iterate_transcript(result: Any) -> Iterator[dict[str, Any]]:
    if isinstance(result, str):
        yield {"text": result}
    elif isinstance(result, Transcript):
        words = result.words
        yield to_contract_fields(result) | ({} if words is None else {"words": words.to_dict("records")})
    elif isinstance(result, Mapping):
        yield _add_language_if_given(_fill_segment_ends(transcript_of(result)), result.get("language"))
    elif isinstance(result, tuple) and len(result) == 2 and hasattr(result[1], "language"):
        yield _add_language_if_given(
            _to_transcript(result[0]), result[1].language
        )  # as faster-whisper gives them
    elif isinstance(result, Iterable):
        yield _to_transcript(result)
    else:
        raise _build_result_error("transcribe", result, _TRANSCRIPT)


def _iterate_partials(result: Any) -> Iterator[tuple[str, bool]]:
    pieces = (result,) if isinstance(result, tuple) and result and isinstance(result[0], str) else result
    if not isinstance(pieces, Iterable) or isinstance(pieces, str | Mapping):
        raise _build_result_error("transcribe_stream", result, _PARTIAL)
    for number, piece in enumerate(pieces):
        if not (isinstance(piece, tuple | list) and len(piece) == 2 and isinstance(piece[0], str)):
            raise _build_result_error("transcribe_stream", piece, _PARTIAL)
        if number >= _MOST_PARTIALS:
            raise ContractError(
                f"the function of transcribe_stream yielded more than {_MOST_PARTIALS:,} texts of one recording; "
                "end when the clips end"
            )
        yield piece[0], bool(piece[1])


def _add_language_if_given(found: dict[str, Any], language: object) -> dict[str, Any]:
    return {**found, "language": str(language)} if language else found


def _to_transcript(segments: Any) -> dict[str, Any]:
    rows = []
    for segment in segments:
        if isinstance(segment, tuple | list) and len(segment) == 3:
            segment = {"start": segment[0], "end": segment[1], "text": segment[2]}  # noqa: PLW2901 - the same in another form
        elif not isinstance(segment, Mapping) and not hasattr(segment, "text"):
            raise _build_result_error("transcribe", segment, _TRANSCRIPT)
        rows.append(segment)
    return _fill_segment_ends(transcript_of({"segments": rows}))


def _fill_segment_ends(found: dict[str, Any]) -> dict[str, Any]:
    """A transcript whose segments without an end are instants; those without a start are in its text alone."""
    if "segments" not in found:
        return found
    timed = [segment for segment in found["segments"] if segment["start"] is not None]
    return {
        **found,
        "segments": [
            {**segment, "end": segment["start"] if segment["end"] is None else segment["end"]}
            for segment in timed
        ],
    }


def _iterate_translation(result: Any) -> Iterator[str]:
    pieces = (result,) if isinstance(result, str | Translation) else result
    if not isinstance(pieces, Iterable):
        raise _build_result_error("translate", result, "a text, a Translation, or an iterator of texts")
    for piece in pieces:
        if not isinstance(piece, str | Translation):
            raise _build_result_error("translate", piece, "a text, a Translation, or an iterator of texts")
        yield str(piece)


def _iterate_reply(result: Any) -> Iterator[Reply]:
    if not isinstance(result, Reply):
        raise ContractError(
            f"perform returned {result!r:.60} ({type(result).__name__}); return a sl.client.Reply, such as "
            "Reply({'text': '…'}) or Reply(audio=clip)"
        )
    if not isinstance(result.fields, Mapping):
        raise ContractError(
            f"perform returned a Reply of {result.fields!r:.60}; return one of a dict, such as Reply({{'text': '…'}})"
        )
    if isinstance(result.audio, bytes):
        yield result
        return
    if (sound := _find_sound(result.audio)) is None:
        raise ContractError(
            f"perform returned a Reply whose audio is {result.audio!r:.60}; give an AudioClip, (samples, rate), or "
            "the bytes of a file"
        )
    yield replace(result, audio=sound)


def _build_result_error(operation: str, value: object, allowed: str) -> ContractError:
    return ContractError(
        f"the function of {operation} returned {value!r:.60} ({type(value).__name__}); return {allowed}"
    )


# The pieces of a result: AudioClip or bytes of speech, a transcript, texts of a translation, (text, final).
_ITERATORS: dict[str, Callable[[Any], Iterator[Any]]] = {
    "synthesize": _iterate_speech,
    "transcribe": _iterate_transcript,
    "transcribe_stream": _iterate_partials,
    "translate": _iterate_translation,
    PERFORM: _iterate_reply,
}


def _to_rows(call: FunctionCall, results: Any) -> list[Any]:
    """Return the results of a batch as a list with one for each call."""
    plain = isinstance(results, Iterable) and not isinstance(
        results, str | bytes | Mapping | AbstractSet | AudioClip
    )
    rows = list(results) if plain else None
    if rows is not None and len(rows) == len(call.content):
        return rows
    given = f"{results!r:.60} ({type(results).__name__})" if rows is None else f"{len(rows):,} results"
    what = "clips" if call.operation == "transcribe" else "texts"
    raise ContractError(
        f"the function of {call.operation}{BATCH_SUFFIX} returned {given} for {len(call.content):,} {what}; return a "
        "list with one result for each, in their order"
    )


class FunctionRunner:
    """The functions of a system in one process; a factory is called at the first call, once."""

    def __init__(
        self, name: str, functions: Mapping[str, SystemFunction], clock: Clock | None = None
    ) -> None:
        self._name, self._functions, self._clock = name, functions, clock or SystemClock()
        self._made: dict[str, tuple[Callable[..., Any], frozenset[str]]] = {}
        self._lock = threading.Lock()

    def iterate_pieces(self, call: FunctionCall) -> Iterator[Any]:
        """Yield the pieces of a result, as the function makes them; then its seconds."""
        with self._convert_errors(call):
            result, timed = self._call_function(call)
            if inspect.isawaitable(result) or hasattr(result, "__aiter__"):
                with asyncio.Runner() as runner:
                    later = self._iterate_async_pieces(call, result)
                    while (piece := runner.run(_fetch_next_piece(later))) is not None:
                        yield timed(piece)
            else:
                yield from map(timed, self._iterate_pieces_of(call, result))
            yield timed(None)

    async def iterate_pieces_on_loop(self, call: FunctionCall) -> AsyncIterator[Any]:
        """Yield the same for an async function, on the running event loop."""
        with self._convert_errors(call):
            result, timed = self._call_function(call)
            async with aclosing(self._iterate_async_pieces(call, result)) as later:
                async for piece in later:
                    yield timed(piece)
            yield timed(None)

    def _iterate_pieces_of(self, call: FunctionCall, result: Any) -> Iterator[Any]:
        """Yield the pieces of a result; of a batch, a list of them for each call, and its error, one of them None."""
        if not call.many:
            yield from _ITERATORS[call.operation](result)
            return
        for row in _to_rows(call, result):
            try:
                with self._convert_errors(call):
                    if isinstance(row, Exception):
                        raise row
                    pieces = list(_ITERATORS[call.operation](row))
            except SpeechLabError as error:
                yield None, error.with_traceback(None)
            else:
                yield pieces, None

    async def _iterate_async_pieces(self, call: FunctionCall, result: Any) -> AsyncGenerator[Any, None]:
        """Yield the pieces of what an async function returns, or of what it yields."""
        result = await result if inspect.isawaitable(result) else result
        if hasattr(result, "__aiter__") and (call.operation == "transcribe" or call.many):
            result = [piece async for piece in result]
        if not hasattr(result, "__aiter__"):
            for piece in self._iterate_pieces_of(call, result):
                yield piece
            return
        async for each in result:
            for piece in _ITERATORS[call.operation](each):
                yield piece

    def _call_function(self, call: FunctionCall) -> tuple[Any, Callable[[Any], Any]]:
        """Call a function; return its result, and a callback that adds times to pieces, or returns the seconds."""
        with self._lock:
            if call.operation not in self._made:
                registered = self._functions[call.operation]
                function = registered.given() if registered.makes else registered.given
                if registered.takes is None:
                    registered = SystemFunction.from_callable(call.operation, function, many=registered.many)
                self._made[call.operation] = function, registered.takes or frozenset()
            function, takes = self._made[call.operation]
        fields: dict[str, Any] = {}
        if call.operation != PERFORM:
            check_fields(call.operation, call.fields, takes)
            fields = {name: value for name, value in call.fields.items() if name in takes}
        clips = None if call.pace is None else PacedClips(call.content, *call.pace, self._clock)
        began = self._clock.monotonic()

        def add_time_or_return_total(piece: Any) -> Any:
            seconds = self._clock.monotonic() - began
            if piece is None:
                return seconds - (0.0 if clips is None else clips.waited_s)
            return piece if clips is None else (seconds, *piece)

        content = list(call.content) if call.many else call.content  # the function may empty its list
        return function(content if clips is None else clips, **fields), add_time_or_return_total

    @contextmanager
    def _convert_errors(self, call: FunctionCall) -> Iterator[None]:
        """Make what a function raises an error of ours, with the traceback from the function on."""
        try:
            yield
        except (SpeechLabError, GeneratorExit):
            raise
        except BaseException as error:  # also SystemExit, and the panic of a library in Rust
            if isinstance(error, asyncio.CancelledError) and _is_task_canceled():
                raise
            frames = traceback.extract_tb(error.__traceback__)
            own = Path(__file__).parent
            outside = [frame for frame in frames if Path(frame.filename).parent != own]
            at = ""
            if outside:
                last = outside[-1]
                at = f" ({Path(last.filename).name}, line {last.lineno}, in {last.name})"
            what = ": ".join(filter(None, (type(error).__name__, str(error))))
            who = PERFORM if call.operation == PERFORM else f"the function of {call.operation}"
            failed = EngineError(f"{who} of {self._name!r} failed: {what}{at}")
            lines = ["Traceback (most recent call last):\n", *traceback.format_list(outside)]
            failed.traceback = "".join([*lines, *traceback.format_exception_only(error)])
            raise failed from error


def _is_task_canceled() -> bool:
    """Return whether the running task is asked to end, rather than its function having said so itself."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without a loop
        return False
    return task is not None and task.cancelling() > 0


async def _fetch_next_piece(pieces: AsyncIterator[Any]) -> Any:
    return await anext(pieces, None)
