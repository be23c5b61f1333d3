"""What all operations share: strict and tolerant models, strict parsing of JSON, the paths of section 4, and keys."""

from __future__ import annotations

import hashlib
import json
import math
from codecs import BOM_UTF8
from typing import Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from speechlab._untrusted import load_json
from speechlab.errors import ContractError, InvalidRequestError


def parse_json_object(data: bytes) -> dict[str, Any]:
    """Read a JSON object strictly.

    It refuses a byte-order mark, invalid UTF-8, lone surrogates, NaN and Infinity, and nesting deeper than 1,024. The
    last value of a repeated key counts.
    """
    try:
        value = orjson.loads(data)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise InvalidRequestError("the body is not valid JSON; send one JSON object in UTF-8") from error
    if not isinstance(value, dict):
        names = {list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
        kind = names.get(type(value), "null")
        raise InvalidRequestError(f"the body is a JSON {kind}, but must be a JSON object")
    return value


def parse_lenient_json(data: bytes | str) -> Any:
    """Read a JSON value from a service, as tolerantly as other writers are loose.

    NaN and Infinity, as written by Python, become None; half a surrogate pair, as by JavaScript, becomes U+FFFD.

    Raises:
        ValueError: The data is no JSON by these rules either.
    """
    if isinstance(data, bytes):
        data = data.removeprefix(BOM_UTF8)
    try:
        return load_json(data)
    except orjson.JSONDecodeError as error:
        strict = error
    try:
        text = data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")
        return _replace_surrogates(
            json.loads(text, parse_constant=_parse_constant_as_none, parse_float=_parse_finite_float)
        )
    except (ValueError, RecursionError):
        raise strict from None


def _parse_constant_as_none(_: str) -> None:
    """Return the value of NaN and Infinity."""


def _parse_finite_float(digits: str) -> float | None:
    return number if math.isfinite(number := float(digits)) else None


def _replace_surrogates(value: Any) -> Any:
    """Return a JSON value with pairs of surrogates joined, and lone ones replaced."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(name): _replace_surrogates(item) for name, item in value.items()}
    return value


class ReplyModel(BaseModel):
    """Data from the service. Missing and null optional fields, and unknown fields and values, are accepted."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=(), defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict) or all(item is not None for item in value.values()):
            return value
        fields = cls.model_fields
        return {
            name: item
            for name, item in value.items()
            if item is not None or name not in fields or fields[name].is_required()
        }

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read a decoded JSON value."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the reply"
            text = f"the service's reply is not a {cls.__name__}: {where}: {first['msg']}"
            raise ContractError(text, body=repr(value)[:2000]) from None


class RequestModel(BaseModel):
    """Data from a client: types are exact, numbers finite, unknown fields ignored."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        defer_build=True,
        hide_input_in_errors=True,
    )

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Read the fields of a request; null counts as absent."""
        try:
            return cls.model_validate({name: value for name, value in fields.items() if value is not None})
        except ValidationError as error:
            raise _to_request_error(error) from None


def _to_request_error(error: ValidationError) -> InvalidRequestError:
    first = error.errors(include_url=False, include_input=False)[0]
    parameter = str(first["loc"][0]) if first["loc"] else None
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidRequestError):
        cause.parameter = cause.parameter or parameter
        return cause
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return InvalidRequestError(f"{where} is required", parameter=parameter)
    return InvalidRequestError(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}", parameter=parameter)


# Text to speech, by POST.
SPEECH_PATH = "/tts"
# The catalogue of voices, by GET.
VOICES_PATH = "/tts/voices"
# Realtime speech, a WebSocket.
REALTIME_PATH = "/ws/tts/realtime"
# Recognition, by POST.
RECOGNITION_PATH = "/asr/srt/audio_llm"
# Translation, by POST.
TRANSLATION_PATH = "/translate/"


def join_url(base_url: str, path: str) -> str:
    """Join a path of section 4 to a base URL, which may have its own path and trailing slashes."""
    return base_url.rstrip("/") + path


def to_realtime_url(base_url: str) -> str:
    """Return the WebSocket base URL for an HTTP base URL, for use without a configured one."""
    scheme, separator, rest = base_url.partition("://")
    if not separator:
        return f"ws://{base_url}"
    return f"{'wss' if scheme.lower() == 'https' else 'ws'}://{rest}"


# Increased when the meaning of a stored reply changes. The service's own paths carry no version (section 9).
CONTRACT_VERSION = "1"

# Name of an operation in a key.
OperationName = Literal["synthesize", "transcribe", "translate"]


def compute_request_key(
    operation: OperationName, parameters: dict[str, Any], *, service: str, repeat: int = 0
) -> str:
    """Return the key of a request: a SHA-256 in hexadecimal."""
    request = {"operation": operation, "parameters": parameters, "service": service, "repeat": repeat}
    canonical = orjson.dumps({"contract": CONTRACT_VERSION, **request}, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()
