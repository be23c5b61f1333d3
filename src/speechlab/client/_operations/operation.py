"""The base of operations, and a decorator for methods that take the arguments of one.

An operation defines its checked request, the parameters of its key in a store, its HTTP call, the parsing of its
reply, and the values that a store keeps. Client, batch and store all use it, so that the same call has the same key
in all of them. Nothing here sends anything.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

import orjson

from speechlab._arguments import check_text, is_number, to_python_number
from speechlab._brief import rename_in_error
from speechlab.client._operations.call import HttpCall, RawResponse, Reply, Timeouts
from speechlab.contract import OperationName, compute_request_key
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.store import StoredResult

P = ParamSpec("P")
O = TypeVar("O")  # noqa: E741 - for the options of an operation
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")

# Seconds; a service that was idle may first have to load its models.
_SLACK_S = 120.0
_STREAM_GAP_S = 120.0
# Whole time of a call without a timeout, as a multiple of its longest silence.
_TOTAL_FACTOR = 10.0


class Operation(ABC, Generic[R]):
    """A call to be made, independent of any client or service.

    Subclasses are frozen dataclasses whose fields are the arguments as given. The constructor checks nothing;
    ``request``, ``parameters`` and ``call`` check. Values that are quick to compute are not cached, so that a long
    table of operations takes little more memory than its arguments.

    Attributes:
        name: Name in keys, events and the store.
        stream: Whether the reply is used while it arrives.
        effort: Bytes to be read, hashed or encoded before sending; large ones are processed in a thread.
        timeout: Seconds for this call with its retries; None is the client's.
    """

    __slots__ = ()
    name: ClassVar[str]
    stream: ClassVar[bool] = False
    effort: int = 0
    timeout: float | None

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """All parameters that can change the result, in canonical form, defaults included; part of the key."""

    @property
    @abstractmethod
    def content(self) -> dict[str, Any]:
        """The parameters with the content to process, checked by themselves; the others are the options."""

    def check_options(self) -> None:
        """Refuse values that no content could make valid."""
        _ = self.parameters

    def compute_key(self, service: str, repeat: int = 0) -> str:
        """Return the key under which a store keeps the result.

        Args:
            service: Identity of the service, from ``Client.identity``; never a credential.
            repeat: Number of a deliberate repetition.

        Raises:
            InvalidRequestError: An argument breaks a rule of the contract.
            OSError: A recording cannot be read.
        """
        return compute_key(self.name, self.parameters, service, repeat)

    def resolve_timeout(self, usual: float | None) -> float | None:
        """Seconds for the call: its own timeout, or else the client's."""
        return resolve_timeout(self.timeout, usual)

    @abstractmethod
    def call(self, timeout: float | None) -> HttpCall:
        """Return the HTTP request."""

    @abstractmethod
    def read(self, reply: Reply | RawResponse) -> R:
        """Read a successful reply."""

    @abstractmethod
    def count_usage(self, result: R) -> dict[str, float]:
        """Amounts by name, for ``Client.usage``."""

    @abstractmethod
    def build_record(self, result: R) -> dict[str, Any]:
        """Return the values that a store keeps of a result, and that a batch's table shows."""

    def collect_files(self, result: R) -> dict[str, tuple[bytes, str]]:  # noqa: ARG002 - other operations need it
        """Return the files that a store keeps of a result, by role: their bytes, and the suffix of their names."""
        return {}

    def restore_reply(self, stored: StoredResult, facts: Mapping[str, Any]) -> RawResponse:
        """Return the reply as it came, rebuilt from the store."""
        headers = {"content-type": "application/json", **facts.get("headers", {})}
        body = facts["body"] if "body" in facts else self.restore_body(stored.response)
        return RawResponse(200, headers, orjson.dumps(body))

    @staticmethod
    def restore_body(kept: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON body of a reply with these values, for results without a body in the store."""
        raise NotImplementedError("the store has the bodies of all replies to this operation")


def compute_key(name: str, parameters: dict[str, Any], service: str, repeat: int = 0) -> str:
    """Return the key of anything that a client keeps: an operation, a stream, a catalogue, a realtime text."""
    return compute_request_key(cast("OperationName", name), parameters, service=service, repeat=repeat)


class TimeLeft(float):
    """The rest of a call's timeout in seconds, at least a millisecond, after other waits of the call."""

    whole_s: float

    def __new__(cls, left_s: float, whole_s: float) -> Self:
        """Make one."""
        remaining = super().__new__(cls, max(0.001, left_s))
        remaining.whole_s = whole_s
        return remaining


def get_original_timeout(time_s: float) -> float:
    """Return the timeout of a call as given, in seconds."""
    return time_s.whole_s if isinstance(time_s, TimeLeft) else time_s


def resolve_timeout(given: object, usual: float | None) -> float | None:
    """Seconds for a call: its own timeout, or else the client's."""
    if given is None or isinstance(given, TimeLeft):
        return usual if given is None else given
    if not is_number(given) or not 0 < given < float("inf"):
        message = f"timeout is {given!r:.40}; give seconds above 0, or None for the client's own"
        raise InvalidRequestError(message, parameter="timeout")
    return float(given)


def build_timeouts(timeout: float | None, expected_s: float, *, stream: bool = False) -> Timeouts:
    """Timeouts for a call."""
    if timeout is not None:
        return Timeouts(read=timeout, total=timeout, given=True)
    if stream:
        return Timeouts(read=_STREAM_GAP_S, total=None)
    read = max(_SLACK_S, expected_s)
    return Timeouts(read=read, total=_TOTAL_FACTOR * read)


def to_encodable_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with NumPy's numbers converted to Python's, checked for text that UTF-8 cannot encode."""
    converted = dict(fields)
    for name, value in fields.items():
        if isinstance(value, str):
            _check_encodable(name, value)
        elif isinstance(value, (list, tuple)):
            for term in value:
                _check_encodable(name, term)
        elif value is not None:
            converted[name] = to_python_number(value)
    return converted


def _check_encodable(name: str, text: object) -> None:
    try:
        _ = text.encode() if isinstance(text, str) else b""
    except UnicodeEncodeError as error:
        message = f"{name} contains half of a surrogate pair at position {error.start}; remove or correct it"
        raise InvalidRequestError(message, parameter=name, rule="2") from None


def check_and_build_content(text: str, check: Callable[[str], None]) -> dict[str, Any]:
    """Return the content of an operation on a text."""
    check_text(text)
    _check_encodable("text", text)
    check(text)
    return {"text": text}


def to_term_list(name: str, value: object, *, rule: str) -> list[Any]:
    """Return the terms of a list; a single text counts as one term."""
    if value is None or isinstance(value, str):
        return [] if value is None else [value]
    is_table = hasattr(value, "columns")  # whose names would be the terms
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, dict)) and not is_table:
        return list(value)
    message = f"{name} is a {type(value).__name__}; give a list of texts"
    raise InvalidRequestError(message, parameter=name, rule=rule)


_CHOOSE_VOICE = (
    "choose a voice: voice='…', a name or id of lab.voices(), or lab.voices().find(language='en')[0]"
)


def build_missing_voice_error() -> InvalidRequestError:
    """Return the error of a call without a voice."""
    return InvalidRequestError(_CHOOSE_VOICE, parameter="voice")


def advise_on_voice(method: Callable[P, T]) -> Callable[P, T]:
    """Say how to choose a voice where none was given."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except TypeError as error:
            if not str(error).endswith("argument: 'voice'"):
                raise
        raise build_missing_voice_error()

    return call


def accept_arguments_of(
    kind: Callable[P, O],
) -> Callable[[Callable[[S, O], T]], Callable[Concatenate[S, P], T]]:
    """Make a method take the arguments of a class, with its signature and ``Args``, and pass it the object."""

    def decorate(method: Callable[[S, O], T]) -> Callable[Concatenate[S, P], T]:
        function: Any = method  # mypy recognizes coroutine functions by their return type

        def build_options(*args: P.args, **kwargs: P.kwargs) -> O:
            try:
                return kind(*args, **kwargs)
            except TypeError as error:  # an argument is missing, or unknown; the error names the method
                if str(error).endswith("argument: 'voice'"):
                    raise build_missing_voice_error() from None
                constructor: Any = kind.__init__
                rename_in_error(error, constructor.__qualname__, method.__qualname__)
                raise

        if inspect.iscoroutinefunction(method):

            @wraps(method)
            async def call(self: S, *args: P.args, **kwargs: P.kwargs) -> Any:
                return await function(self, build_options(*args, **kwargs))

        else:

            @wraps(method)
            def call(self: S, *args: P.args, **kwargs: P.kwargs) -> Any:
                return function(self, build_options(*args, **kwargs))

        signature = inspect.signature(method)
        this = next(iter(signature.parameters.values()))
        parameters = inspect.signature(kind).parameters.values()
        described: Any = call
        described.__signature__ = signature.replace(parameters=[this, *parameters])
        described.__doc__ = _insert_args_section(inspect.getdoc(method) or "", kind)
        return described  # type: ignore[no-any-return]  # call with another signature

    return decorate


def _insert_args_section(description: str, kind: Callable[..., Any]) -> str:
    """Insert the ``Args`` of a class and its bases into a docstring."""
    if "Args:" in description:
        return description
    documents = [
        inspect.cleandoc(vars(base).get("__doc__") or "") for base in inspect.getmro(cast("type", kind))
    ]
    blocks = [block for document in documents for block in document.split("\n\n")]
    args = [block.removeprefix("Args:\n") for block in blocks if block.startswith("Args:")]
    if not args:  # python -OO removes docstrings
        return description
    names = list(inspect.signature(kind).parameters)
    args.sort(key=lambda block: names.index(block.partition(":")[0].strip()))
    paragraphs = description.split("\n\n")
    at = next(
        (i for i, paragraph in enumerate(paragraphs) if paragraph.startswith(("Returns:", "Raises:"))),
        len(paragraphs),
    )
    return "\n\n".join([*paragraphs[:at], "\n".join(["Args:", *args]), *paragraphs[at:]])
