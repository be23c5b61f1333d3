"""Systems of the user's own functions, as clients."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack

from speechlab._arguments import is_whole_number
from speechlab._brief import shorten_tracebacks
from speechlab._traces import warn_user
from speechlab.client._api.sync_client import Client
from speechlab.client._settings.settings import (
    ClientOptions,
    Settings,
    check_number,
    check_option_names,
    fill_mode_and_store,
)
from speechlab.client._systems.functions import (
    BATCH_SUFFIX,
    PERFORM,
    FunctionSystem,
    SystemFunction,
    format_batch_size,
    to_voice_languages,
)
from speechlab.errors import ConfigurationError

_SERVICE_OPTIONS = ("transport", "adapter", "engines", "max_concurrency", "default_headers", "allow_insecure")


@shorten_tracebacks
def system(
    name: str,
    *,
    transcribe: Callable[..., Any] | None = None,
    transcribe_stream: Callable[..., Any] | None = None,
    synthesize: Callable[..., Any] | None = None,
    translate: Callable[..., Any] | None = None,
    transcribe_batch: Callable[..., Any] | None = None,
    synthesize_batch: Callable[..., Any] | None = None,
    translate_batch: Callable[..., Any] | None = None,
    batch_size: int = 32,
    max_wait_s: float = 0.05,
    service: object | None = None,
    voices: Iterable[str] | Mapping[str, str] | None = None,
    version: str | None = None,
    concurrency: int = 1,
    processes: int = 0,
    sample_rate: int | None = None,
    playback_rate: float | None = 1.0,
    piece_s: float = 0.1,
    **options: Unpack[ClientOptions],
) -> Client:
    """Make a client of your own functions, for everything that takes the client of a service.

    A function gets the text or recording first, and by name the fields of the call that it takes. The recording is an
    ``AudioClip`` in one channel. A field that changes results and that the function lacks is refused; ``voice``,
    ``language``, ``source_lang`` and ``target_lang`` are left out for functions without them. Async functions run on
    the client's event loop. The limits of the contract (lengths, languages) do not hold.

    A class, or a function without parameters, is a factory: it is called once in each process, and returns the
    function. So a model is loaded at the first call, and once.

    Args:
        name: Name of the system.
        transcribe: ``transcribe(clip, language=None, …)``; returns a text, a ``Transcript``, segments (dicts, tuples
            or objects with start, end, text), segments with an info, or a dict, also the reply of a vendor.
        transcribe_stream: ``transcribe_stream(clips, language=None, …)``; takes an iterator of clips that come as
            they are spoken (an async function: ``async for``), and yields ``(text, final)``: what is recognized of a
            segment so far, and whether that is final; the text after it is of the next segment. It is called by
            ``transcribe(…, stream=True)``.
        synthesize: ``synthesize(text, voice)``; returns an ``AudioClip``, ``(samples, rate)``, the bytes of a file,
            or an iterator of them, whose pieces are streamed.
        translate: ``translate(text, source_lang, target_lang)``; returns a text, or an iterator of its pieces.
        transcribe_batch: ``transcribe_batch(clips, language=None, …)``, in place of ``transcribe``: takes a list of
            clips, and returns a list with the result of each, or an exception for one that failed. The calls that
            wait are gathered: those with equal fields and similar lengths, the longest first.
        synthesize_batch: ``synthesize_batch(texts, voice)``, in place of ``synthesize``.
        translate_batch: ``translate_batch(texts, source_lang, target_lang)``, in place of ``translate``.
        batch_size: Most texts or clips that a function of many gets at once. It is part of the keys of kept results.
        max_wait_s: Seconds that a call waits for others before a batch begins that is not full.
        service: In place of functions, an object that performs operations: its ``perform(operation)``, which may be
            async, is called with a ``Synthesize`` (``voice`` is a name), a ``Transcribe`` (``audio`` is a clip) or a
            ``Translate``, and returns a :class:`Reply`.
        voices: Names of the voices, or a dict from names to languages (``{"anna": "de"}``); None for one voice named
            ``default``.
        version: Version of what the functions do. It is part of the keys of kept results. None takes a hash of the
            functions' code and values; a warning names the values that it cannot contain, such as models.
        concurrency: Calls at once, each in a thread; 1 for functions that are not safe in threads.
        processes: Number of processes that run the functions, one call at a time each; 0 for threads.
        sample_rate: Rate in Hz to which recordings are resampled; None leaves them as they are.
        playback_rate: How many times faster than real time ``transcribe_stream`` gets its clips; None for all at
            once, without times.
        piece_s: Length of these clips, in seconds.
        **options: Options of a client: ``timeout``, ``store``, ``mode``, ``max_retries``, ``on_event`` and others.

    Returns:
        The client. Its rows and calls fail with an ``EngineError`` where the function fails (``traceback`` says
        where), and with an ``APITimeoutError`` after ``timeout``.

    Raises:
        ConfigurationError: An argument is not usable, a function requires a field that no call has, or it cannot be
            sent to processes.

    Example:
        >>> loud = system("loud", transcribe=lambda clip: "loud" if clip.peak > 0.5 else "quiet", version="1")
        >>> loud.transcribe(([0.0, 0.9], 8_000)).text
        'loud'
    """
    check_option_names(options)
    if option := next((each for each in _SERVICE_OPTIONS if each in options), None):
        raise ConfigurationError(f"{option} is for services; a system of functions has none, so leave it out")
    functions = _build_functions(
        {
            "synthesize": (synthesize, synthesize_batch),
            "transcribe": (transcribe, transcribe_batch),
            "translate": (translate, translate_batch),
            "transcribe_stream": (transcribe_stream, None),
        },
        service,
    )
    numbers = {"concurrency": concurrency, "processes": processes, "batch_size": batch_size}
    _check_arguments(name, functions, **numbers, sample_rate=sample_rate)
    check_number("max_wait_s", max_wait_s, least=0)
    if voices is None:
        voices = ["default"] if functions.keys() & {"synthesize", PERFORM} else []
    made = FunctionSystem(
        name=name,
        functions=functions,
        voices=to_voice_languages(voices, "any language"),
        places=processes or concurrency,
        processes=processes,
        batch_size=batch_size,
        max_wait_s=max_wait_s,
        sample_rate=sample_rate,
        pace=(playback_rate, piece_s),
        identity=_build_identity(name, functions, version, sample_rate, batch_size),
    )
    if playback_rate is not None:
        check_number("playback_rate", playback_rate, least=0, advice="give a number above 0")
    check_number("piece_s", piece_s, least=0, advice="give a number above 0")
    if processes:
        pickle.dumps(functions)  # what cannot be sent raises now
    most: Any = {"max_concurrency": made.calls_at_once, **fill_mode_and_store(dict(options))}
    return Client.from_settings(Settings(functions=made, **most))


def _build_functions(
    given: Mapping[str, tuple[object, object]], service: object
) -> dict[str, SystemFunction]:
    """Return the function of each operation, of one call or of many; or that of an object that performs all."""
    functions: dict[str, SystemFunction] = {}
    for operation, (single, batched) in given.items():
        if single is not None and batched is not None:
            message = f"both {operation} and {operation}{BATCH_SUFFIX} are given; a system has one of them"
            raise ConfigurationError(message)
        if single is not None or batched is not None:
            function = batched if single is None else single
            functions[operation] = SystemFunction.from_callable(operation, function, many=single is None)
    if service is None:
        return functions
    if functions:
        raise ConfigurationError("service takes the place of all functions; leave one of them out")
    if not callable(perform := getattr(service, PERFORM, None)):
        raise ConfigurationError(
            f"service is {service!r:.60}, which has no perform(); give an object with it"
        )
    return {PERFORM: SystemFunction.from_callable(PERFORM, perform)}


def _check_arguments(name: object, functions: Mapping[str, object], **numbers: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"name is {name!r:.60}; give a text that names the system in reports")
    if not functions:
        raise ConfigurationError(
            "a system needs a function; give transcribe=, transcribe_stream=, synthesize= or translate=, one of them "
            "with _batch, or service="
        )
    for what, value in numbers.items():
        least = {"concurrency": 1, "processes": 0, "batch_size": 1, "sample_rate": 1_000}[what]
        if (value is not None or what != "sample_rate") and not (is_whole_number(value) and value >= least):
            raise ConfigurationError(f"{what} is {value!r:.60}; give a whole number of at least {least}")
    if numbers["processes"] and numbers["concurrency"] != 1:
        raise ConfigurationError(
            "concurrency counts threads, and each process runs one call at a time; leave one of them out"
        )


def _build_identity(
    name: str,
    functions: Mapping[str, SystemFunction],
    version: object,
    sample_rate: int | None,
    batch_size: int,
) -> str:
    at = f" at {sample_rate} Hz" if sample_rate is not None else ""
    if any(function.many for function in functions.values()):
        at += format_batch_size(batch_size)
    if version is not None:
        return f"{name} {version}{at}"
    from speechlab.text import hash_function, list_unhashed_value_types

    unseen = {
        what: kind
        for function in functions.values()
        for what, kind in list_unhashed_value_types(function.given).items()
    }
    if unseen:
        values = ", ".join(f"{what} ({kind})" for what, kind in unseen.items())
        warn_user(
            f"the version of {name!r} is a hash of its code, which does not change with {values}; give version= to "
            "keep results of another model apart",
            stacklevel=4,
        )
    hashes = (f"{kind} {hash_function(function.given, module=True)}" for kind, function in functions.items())
    return f"{name} ({', '.join(hashes)}){at}"
