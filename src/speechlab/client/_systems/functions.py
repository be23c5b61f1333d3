"""Functions in place of a service: what they take, the identity of their results, and clips as they are spoken."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from speechlab.audio import AudioClip, measure_sound_span_s
from speechlab.client._operations.call import ServiceCall
from speechlab.client._operations.recognition import OPTIONS
from speechlab.contract import DEFAULT_SAMPLE_RATE
from speechlab.errors import ConfigurationError, InvalidRequestError

if TYPE_CHECKING:
    from speechlab.client._clock import Clock


class PacedClips:
    """The pieces of a recording, each once it has been spoken: for ``for``, and in async functions ``async for``."""

    def __init__(self, clip: AudioClip, rate: float | None, piece_s: float, clock: Clock) -> None:
        self._clip, self._rate, self._clock = clip, rate, clock
        self._step = max(1, round(piece_s * clip.sample_rate))
        self._place, self._began, self.waited_s = 0, clock.monotonic(), 0.0

    def __iter__(self) -> PacedClips:
        return self

    def __aiter__(self) -> PacedClips:
        return self

    def __next__(self) -> AudioClip:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise TypeError(
                "an async function reads its clips with `async for`, as `for` would stop the others"
            )
        if (wait_s := self._compute_wait()) is None:
            raise StopIteration
        if wait_s > 0:
            self._clock.wait(wait_s)
        return self._cut_piece(wait_s)

    async def __anext__(self) -> AudioClip:
        if (wait_s := self._compute_wait()) is None:
            raise StopAsyncIteration
        if wait_s > 0:
            await self._clock.sleep(wait_s)
        return self._cut_piece(wait_s)

    def _compute_wait(self) -> float | None:
        """Seconds until the end of the next piece has been spoken; None if there is none."""
        if self._place >= self._clip.frames:
            return None
        if self._rate is None:
            return 0.0
        end = min(self._place + self._step, self._clip.frames) / self._clip.sample_rate
        return max(0.0, self._began + end / self._rate - self._clock.monotonic())

    def _cut_piece(self, waited_s: float) -> AudioClip:
        self.waited_s += waited_s
        first, self._place = self._place, self._place + self._step
        return AudioClip(self._clip.samples[first : self._place], self._clip.sample_rate)


def build_streamed_transcript(
    call: FunctionCall, recognized: Sequence[tuple[float, str, bool]], ended_s: float
) -> dict[str, Any]:
    """The fields of a transcript that came in pieces: (seconds since the first sample, text, whether it is final)."""
    from speechlab.text import join_texts

    texts: list[dict[str, Any]] = []
    for time_s, text, final in recognized:
        if final or not texts or (text, False) != (texts[-1]["text"], texts[-1]["final"]):
            texts.append({"time_s": time_s, "text": text, "final": final})
    if texts and not texts[-1]["final"] and texts[-1]["text"].strip():
        texts.append({**texts[-1], "time_s": ended_s, "final": True})
    worded = [entry for entry in texts if any(map(str.isalnum, entry["text"]))]
    finals = [entry for entry in worded if entry["final"]]
    language, rate = call.fields.get("language"), call.pace[0] if call.pace is not None else None
    span = measure_sound_span_s(call.content.samples, call.content.sample_rate)
    times: dict[str, float] = {}
    if worded and span is not None and rate is not None:
        times["first_partial_s"] = worded[0]["time_s"] - span[0] / rate
        if finals:
            times["finalization_s"] = finals[-1]["time_s"] - span[1] / rate
    text = join_texts([entry["text"] for entry in texts if entry["final"]], language or "")
    return {"text": text, "language": language, "partials": texts, **times}


FIELDS: dict[str, frozenset[str]] = {
    "synthesize": frozenset({"voice", "sample_rate", "temperature"}),
    "transcribe": frozenset(OPTIONS),
    "translate": frozenset({"source_lang", "target_lang", "keywords", "context", "model"}),
}
# Fields that a function of each operation may take by name, in addition to the text or recording.
FIELDS["transcribe_stream"] = FIELDS["transcribe"]
# Name of the function of an object that performs operations of every kind.
PERFORM = "perform"
# What such an object is asked for.
PERFORMED = frozenset({"synthesize", "transcribe", "translate"})
# Fields that say what is asked for: a function that does not take them is made for one value of each.
_OPTIONAL_FIELDS = frozenset({"voice", "language", "source_lang", "target_lang"})
# Batches of calls that may wait for each worker: calls are sorted over all of them, so that those of one are alike.
WAITING_BATCHES = 3
# What follows the name of an operation in that of a function of many texts or clips.
BATCH_SUFFIX = "_batch"
# Namespace for the ids of voices, which have only names outside the contract.
_NAMESPACE = uuid.UUID("5c7d3f0e-2f0a-4d57-9a2e-6b7f6d1c0a11")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def to_voice_languages(voices: Iterable[str] | Mapping[str, str], language: str) -> dict[str, str]:
    """Return the languages of voices by their names."""
    listing: object = voices
    if isinstance(listing, str) or not isinstance(listing, Iterable):
        message = f"voices is {listing!r:.40}; give a list of names, or a dict from names to languages"
        raise ConfigurationError(message)
    languages = dict(listing) if isinstance(listing, Mapping) else dict.fromkeys(listing, language)
    for name, value in languages.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ConfigurationError(f"the voice {name!r:.40} is {value!r:.40}; both must be texts")
    return cast("dict[str, str]", languages)


def build_voice_id(name: str) -> str:
    """Return the id of a voice that has only a name."""
    return str(uuid.uuid5(_NAMESPACE, name))


def build_catalogue(voices: Mapping[str, str], model: str = "") -> list[dict[str, Any]]:
    """Voices in the form of the contract's catalogue."""
    whose = f"{model}: " if model else ""
    return [
        {
            "id": build_voice_id(name),
            "description": f"{name} ({whose}{name})",
            "language": language,
            "gender": "Neutral",
            "formats": ["wav", "mp3", "ogg", "flac", "pcm"],
            "sample_rates": [DEFAULT_SAMPLE_RATE],
            "streaming": True,
        }
        for name, language in voices.items()
    ]


@dataclass(frozen=True)
class SystemFunction:
    """A function, or a factory of one: a class, or a function without parameters, called once where it runs."""

    given: Callable[..., Any] = field(repr=False)
    makes: bool
    takes: frozenset[str] | None  # names of its fields; None while they are not known
    many: bool = False  # it takes a list of texts or clips, and returns a list of results

    @classmethod
    def from_callable(cls, operation: str, given: object, *, many: bool = False) -> SystemFunction:
        """Read the signature of a function."""
        if operation == PERFORM and callable(given):
            return cls(given, makes=False, takes=None)
        if not callable(given):
            name = f"{operation}{BATCH_SUFFIX}" if many else operation
            message = f"{name} is {given!r:.60}; give a function, a class with __call__, or None"
            raise ConfigurationError(message)
        parameters = _list_parameters(given)
        makes = isinstance(given, type) or (parameters is not None and not parameters)
        if makes and not isinstance(given, type):
            return cls(given, makes=True, takes=None, many=many)
        if makes:
            inner = getattr(given, "__call__", None)  # noqa: B004 - of the class's objects
            if not inspect.isfunction(inner):
                raise ConfigurationError(
                    f"{operation} is the class {given!r:.60}, whose objects are not callable"
                )
            parameters = (_list_parameters(inner) or [])[1:]
        return cls(given, makes, list_accepted_fields(operation, parameters), many)

    @property
    def is_async(self) -> bool:
        """Whether it is an async function, which runs on the client's event loop."""
        call = getattr(self.given, "__call__", None)  # noqa: B004 - of an object
        return not self.makes and any(
            inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
            for function in (self.given, call)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_function, (_pickle_function(self.given), self.makes, self.takes, self.many)


def _unpickle_function(given: bytes, makes: bool, takes: frozenset[str] | None, many: bool) -> SystemFunction:
    return SystemFunction(pickle.loads(given), makes, takes, many)  # noqa: S301 - of our own process


def _pickle_function(function: Callable[..., Any]) -> bytes:
    """Return a function for another process."""
    try:
        if getattr(function, "__module__", None) != "__main__":
            return pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    try:
        data: bytes = import_module("cloudpickle").dumps(function)
    except ImportError:
        message = (
            "functions of a notebook or a script cannot be sent to another process; put them into a module, or: pip "
            "install cloudpickle"
        )
    except Exception as error:  # noqa: BLE001 - of any object that the function holds
        message = f"the functions cannot be sent to another process ({error}); load the model in a factory"
    else:
        return data
    raise ConfigurationError(message)


def list_accepted_fields(operation: str, parameters: list[inspect.Parameter] | None) -> frozenset[str]:
    """Names of the fields that a function takes."""
    if parameters is None:
        return frozenset()
    allowed = FIELDS[operation]
    if not parameters or parameters[0].kind not in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL):
        raise ConfigurationError(
            f"the function of {operation} takes no text or recording as its first argument"
        )
    further = [
        parameter for parameter in parameters[1:] if parameter.kind is not inspect.Parameter.VAR_POSITIONAL
    ]
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in further):
        return allowed
    for parameter in further:
        if parameter.default is inspect.Parameter.empty and parameter.name not in allowed:
            message = (
                f"the function of {operation} requires {parameter.name!r}, which no call has; name it as one of "
                f"{', '.join(sorted(allowed))}, or give it a default"
            )
            raise ConfigurationError(message)
    return allowed & {parameter.name for parameter in further}


def _list_parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True)
class FunctionCall:
    """A call of a function."""

    operation: str
    content: Any = field(repr=False)  # the text, or the clip; a list of them for a function of many
    fields: dict[str, Any]
    format: str = ""  # of speech
    stream: bool = False
    pace: tuple[float | None, float] | None = None
    """For clips as they are spoken: how many times real time (None: at once), and the seconds of one."""
    many: bool = False  # a batch of calls


@dataclass(frozen=True)
class SystemCall(ServiceCall):
    """A call of a system: the operation as its function gets it."""

    function_call: FunctionCall

    def describe_target(self, place: str) -> str:
        return f"{self.operation} of {place}"


def check_fields(operation: str, fields: Mapping[str, Any], takes: frozenset[str]) -> None:
    """Refuse fields that a function does not take; those that only say what is asked for are left out."""
    lacking = next((name for name in fields if name not in takes | _OPTIONAL_FIELDS), None)
    if lacking is not None:
        has = ", ".join(sorted(takes)) or "none"
        message = (
            f"the function of {operation} takes no {lacking}; leave it out, or give the function a parameter "
            f"{lacking!r} (it takes {has})"
        )
        raise InvalidRequestError(message, parameter=lacking)


def format_batch_size(batch_size: int) -> str:
    """Return the end of an identity: the size may change results, as of a model that fills up what is shorter."""
    return f" in batches of {batch_size}"


@dataclass(frozen=True, eq=False, kw_only=True)
class FunctionSystem:
    """Functions that take the place of a service."""

    name: str
    functions: Mapping[str, SystemFunction]
    voices: Mapping[str, str]  # their languages by their names
    places: int  # threads or processes: functions that run at once
    processes: int  # 0 for threads of this one
    batch_size: int  # most calls that a function of many gets at once
    max_wait_s: float  # the wait for them
    sample_rate: int | None  # in Hz, to which recordings are resampled
    pace: tuple[float | None, float]
    identity: str  # for the keys of results

    def resolve_function(self, operation: str) -> SystemFunction:
        """Return the function of an operation."""
        function = self.functions.get(operation)
        if function is None and operation in PERFORMED:
            function = self.functions.get(PERFORM)
        if function is None:
            have = ", ".join(self.functions)
            message = f"the system {self.name!r} has no function for {operation}, only for {have}; give {operation}="
            if operation == "transcribe" and "transcribe_stream" in self.functions:
                message += ", or ask with stream=True"
            raise InvalidRequestError(message, parameter=operation)
        return function

    @property
    def calls_at_once(self) -> int:
        """The calls that may be under way: those of functions of many wait for their batch."""
        return self.places * (self.batch_size * (1 + WAITING_BATCHES) if self.takes_many else 1)

    def copy_with_batch_size(self, batch_size: int) -> FunctionSystem:
        """Return the system with another size of its batches."""
        identity = self.identity.removesuffix(format_batch_size(self.batch_size))
        return replace(self, batch_size=batch_size, identity=identity + format_batch_size(batch_size))

    @property
    def takes_many(self) -> bool:
        """Whether a function takes many texts or clips at once."""
        return any(function.many for function in self.functions.values())

    def extend_time(self, operation: str, expected_s: float) -> float:
        """Return the seconds that a call may take: that of a function of many waits for those of its batch."""
        return expected_s * (self.batch_size if self.resolve_function(operation).many else 1)

    def resolve_voice_name(self, id: str) -> str:  # noqa: A002 - the contract's name
        """Return the name of a voice."""
        for name in self.voices:
            if build_voice_id(name) == id:
                return name
        message = f"voice {id!r} is none of {self.name!r}, which has {', '.join(self.voices) or 'none'}"
        raise InvalidRequestError(message, parameter="voice_id")
