"""The rules of operations that functions perform: values as given, in any language and of any length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from speechlab._arguments import to_int_if_whole_rate
from speechlab.client._operations.operation import (
    Operation,
    build_timeouts,
    check_and_build_content,
    to_encodable_fields,
    to_term_list,
)
from speechlab.client._operations.recognition import OPTIONS, Transcribe
from speechlab.client._operations.speech import Synthesize
from speechlab.client._operations.translation import Translate
from speechlab.client._systems.functions import (
    PERFORM,
    FunctionCall,
    FunctionSystem,
    SystemCall,
    check_fields,
)
from speechlab.contract import DEFAULT_SAMPLE_RATE, AudioFormat, Voice, check_format, check_text
from speechlab.errors import InvalidRequestError

# Characters of the longest text: a function has no limit of its own.
_MAX_TEXT_CHARS = 10**9
_S_PER_CHAR, _S_PER_S = 0.3, 2.5
_TEXTS = {"language", "source_lang", "target_lang", "context", "model", "keywords", "hotwords", "session_id"}


def name_function(operation: Operation[Any]) -> str:
    """Return the name of the function that performs an operation."""
    if isinstance(operation, Transcribe):
        return "transcribe_stream" if operation.streams else "transcribe"
    return "synthesize" if isinstance(operation, Synthesize) else "translate"


def collect_fields(system: FunctionSystem, operation: Operation[Any]) -> dict[str, Any]:
    """Return the fields of an operation that were given, which its function must take."""
    what = name_function(operation)
    fields: dict[str, Any] = {}
    if isinstance(operation, Synthesize):
        fields["sample_rate"] = to_int_if_whole_rate(operation.sample_rate)
        fields["temperature"] = operation.temperature
    elif isinstance(operation, Transcribe):
        fields = {name: getattr(operation, name) for name in OPTIONS}
        if str(operation.vad) in {"off", "0"}:
            del fields["vad"]
        if operation.hotwords is not None:
            fields["hotwords"] = to_term_list("hotwords", operation.hotwords, rule="2.3")
    elif isinstance(operation, Translate):
        names = ("source_lang", "target_lang", "context", "model")
        fields = {name: getattr(operation, name) for name in names}
        fields["keywords"] = to_term_list("keywords", operation.keywords, rule="2.5") or None
    values = {name: value for name, value in to_encodable_fields(fields).items() if value is not None}
    for name, value in values.items():
        kinds, allowed = ((str,), "text") if name in _TEXTS else ((str, int, float), "a number or text")
        for term in value if isinstance(value, list) else (value,):
            if not isinstance(term, kinds):
                message = f"{name} holds a {type(term).__name__}; give {allowed}"
                raise InvalidRequestError(message, parameter=name)
    takes = system.resolve_function(what).takes
    if takes is not None:
        check_fields(what, values, takes)
    return values


def build_content(operation: Operation[Any]) -> dict[str, Any]:
    """Return the text, or the digest of the recording."""
    if isinstance(operation, Synthesize | Translate):
        text = operation.sent_text if isinstance(operation, Synthesize) else operation.text
        return check_and_build_content(text, _check_text)
    return operation.content


def _check_text(text: str) -> None:
    check_text(text, limit=_MAX_TEXT_CHARS)


def build_parameters(system: FunctionSystem, operation: Operation[Any]) -> dict[str, Any]:
    """Return all parameters of an operation, as they are kept with its result."""
    if isinstance(operation, Synthesize):
        content, fields = build_content(operation), collect_fields(system, operation)
        check_format(str(operation.format))
        rate = fields.get("sample_rate") or DEFAULT_SAMPLE_RATE
        voice = {"voice_id": _get_voice_id(operation), "format": str(AudioFormat(operation.format))}
        return {**voice, **content, "sample_rate": rate, "temperature": fields.get("temperature")}
    values = {**collect_fields(system, operation), **build_content(operation)}
    if name_function(operation) == "transcribe_stream":
        rate, piece_s = system.pace
        values |= {"stream": True, "playback_rate": rate, "piece_s": piece_s}
    return values


def _get_voice_id(operation: Synthesize) -> str:
    return operation.voice.id if isinstance(operation.voice, Voice) else operation.voice


def build_call(system: FunctionSystem, operation: Operation[Any], timeout: float | None) -> SystemCall:
    """Check an operation, and return it as the call of a function."""
    what, fields, pace, kind = name_function(operation), collect_fields(system, operation), None, ""
    content: Any
    if isinstance(operation, Transcribe):
        content = operation.to_clip()
        if system.sample_rate is not None:
            content = content.resample(system.sample_rate)
        if not content.frames:
            raise InvalidRequestError("the recording has no sound", parameter="audio")
        queue, expected_s = "asr", _S_PER_S * content.duration_s
        if what == "transcribe_stream":
            pace = system.pace
            expected_s += content.duration_s / pace[0] if pace[0] is not None else 0.0
    else:
        content = build_content(operation)["text"]
        queue, expected_s = "translate", _S_PER_CHAR * len(content)
    if isinstance(operation, Synthesize):
        queue, kind = "tts", str(operation.expected.format)
        fields["voice"] = system.resolve_voice_name(_get_voice_id(operation))
    streams = operation.stream and not isinstance(operation, Transcribe)
    expected_s = system.extend_time(what, expected_s)
    limits = build_timeouts(operation.resolve_timeout(timeout), expected_s, stream=streams)
    if PERFORM in system.functions:
        what = PERFORM
        if isinstance(operation, Synthesize):
            operation = replace(operation, text=content, respell=None, voice=fields["voice"])
        elif isinstance(operation, Transcribe):
            operation = replace(operation, audio=content)
        content = operation
    function_call = FunctionCall(what, content, fields, kind, streams, pace)
    return SystemCall(operation.name, queue, limits, function_call)
