"""Errors from replies with any body: the documented JSON, part of it, HTML, or nothing."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from speechlab._traces import to_printable
from speechlab.client._secret import redact
from speechlab.contract import REASON_HEADER, RETRYABLE_STATUS, parse_lenient_json
from speechlab.errors import (
    APIError,
    AuthenticationError,
    BadRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    SpeechLabError,
)

_CLASSES: dict[int, type[APIError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    429: RateLimitError,
}
_ADVICE = {
    401: "give a valid key as api_key= or in SPEECHLAB_API_KEY",
    403: "the key is valid, but may not do this; ask for access, or choose another voice",
    404: "the service is not offered at this base_url",
}
# Advice on a 401 where no key was sent.
NO_KEY = (
    "no API key was given; give one as api_key= or in SPEECHLAB_API_KEY, or keep one by `speechlab login`"
)
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "x-correlation-id", "x-trace-id", "cf-ray")
_HIDDEN_HEADERS = {"set-cookie", "www-authenticate", "proxy-authenticate"}
_TAG = re.compile(r"(?is)<(script|style)\b.*?</\1\s*>|<[^>]*>")
_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")
_BODY_CHARS = 2_000
_MESSAGE_CHARS = 300
_MAX_WAIT_S = 86_400.0


def build_error_from_reply(status: int, headers: Mapping[str, str], content: bytes) -> APIError:
    """Make the error of a reply. No reply makes this function fail."""
    try:
        value = parse_lenient_json(content)
    except ValueError:
        value = None
    text = redact(content[: 4 * _BODY_CHARS].decode("utf-8", "replace"))[:_BODY_CHARS]
    return build_error_from_value(status, headers, value, text)


def build_error_from_value(
    status: int, headers: Mapping[str, str], value: object, text: str = ""
) -> APIError:
    """Make the error of a reply whose body is decoded already."""
    fields: dict[Any, Any] = value if isinstance(value, dict) else {}
    inner = fields.get("error")
    if isinstance(inner, dict):  # {"error": {"message": ..., "code": ...}}, as several gateways write it
        fields = {**fields, **inner, "error": inner.get("message")}
    message = _extract_message(fields, text) or "the service gave no reason (the body was empty)"
    code = fields.get("code")
    name = fields.get("name") or code  # services put the name of a refused handshake into either field
    context = fields.get("context")
    items = context if isinstance(context, list) else [context]
    facts: dict[str, Any] = {
        "status": status,
        "code": code if isinstance(code, int) and not isinstance(code, bool) else None,
        "name": to_printable(redact(name))[:200] if isinstance(name, str) and name else None,
        "context": tuple(
            to_printable(redact(item))[:200] for item in items[:20] if isinstance(item, str) and item
        ),
        "retry_after_s": parse_retry_after(headers),
        "body": text or None,
    }
    # OpenAI's services send it too.
    is_final = status >= 500 and headers.get("x-should-retry", "").strip().lower() == "false"
    facts["retryable"] = status in RETRYABLE_STATUS and not is_final
    kind = ServerError if status >= 500 else _CLASSES.get(status, APIError)
    error = kind(message, **facts)
    reason = _shorten_message(to_printable(redact(headers.get(REASON_HEADER, ""))))
    error.advice = _ADVICE.get(status, "" if reason in message else reason)
    if status in _REDIRECTIONS:
        place = _redact_location(headers.get("location", ""))
        to = f" to {place!r}" if place else ""
        error.advice = (
            f"the service redirects{to}, and redirections are not followed; set base_url to the final address"
        )
    attach_headers_and_redact(error, headers)
    return error


def attach_headers_and_redact(error: SpeechLabError, headers: Mapping[str, str]) -> None:
    """Attach the headers of a reply, without keys that it may echo, and the id of the request to an error."""
    error.args = tuple(redact(value) if isinstance(value, str) else value for value in error.args)
    if isinstance(body := getattr(error, "body", None), str):
        error.body = redact(body)  # type: ignore[attr-defined]  # read above
    error.headers = {name: redact(value) for name, value in headers.items() if name not in _HIDDEN_HEADERS}
    error.request_id = find_request_id(error.headers)


def find_request_id(headers: Mapping[str, str]) -> str | None:
    """Return the service's id of a request, from one of the headers in use for it."""
    return next((headers[name][:200] for name in _REQUEST_IDS if headers.get(name)), None)


def _extract_message(fields: dict[Any, Any], text: str) -> str:
    for name in ("error", "message", "detail"):
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return _shorten_message(redact(value))
    if "<" in text:  # of an HTML page the visible text
        title = _TITLE.search(text)
        text = html.unescape(_TAG.sub(" ", title.group(1) if title else text))
    return _shorten_message(text)


def _shorten_message(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE_CHARS else line[: _MESSAGE_CHARS - 1] + "…"


def _redact_location(location: str) -> str:
    """Target of a redirection; if the address could contain a secret, only its scheme and host."""
    try:
        address = urlsplit(redact(location).strip())
    except ValueError:
        return ""
    host = address.netloc.rpartition("@")[2]
    secret = "@" in address.netloc or address.query or address.fragment
    return urlunsplit((address.scheme, host, "" if secret else address.path, "", ""))[:200]


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait by the Retry-After header; None without one above 0: 0 is "later" and "now" at once."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError, TypeError, IndexError, OSError):
            return None
    return min(seconds, _MAX_WAIT_S) if seconds > 0 else None  # nor NaN
