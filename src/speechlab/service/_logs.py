"""Structured log lines: one JSON object each, without keys, texts and audio."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

from speechlab.errors import SpeechLabError

_logger = logging.getLogger("speechlab.service")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def log(event: str, *, level: str = "info", once_a_minute: bool | str = False, **fields: Any) -> None:
    """Log an event; pass only fields that are safe to keep.

    Args:
        event: What happened.
        level: Its level.
        once_a_minute: Whether events of this text are logged once a minute; a text: those of this text too.
        **fields: Facts of it.
    """
    _logger.log(_LEVELS[level], event, extra={"fields": fields, "once_a_minute": once_a_minute})


class OnceAMinuteFilter(logging.Filter):
    """Passes an event once a minute, with the number of those suppressed since.

    It applies to events that request it, and to all events of other libraries.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        group = getattr(record, "once_a_minute", not record.name.startswith("speechlab"))
        if not group:
            return True
        name = (record.name, str(record.msg).partition("\n")[0], str(group))
        since, held = self._seen.get(name, (float("-inf"), 0))
        now = time.monotonic()
        if now - since < 60.0:
            self._seen[name] = (since, held + 1)
            return False
        if len(self._seen) >= 1_000:
            self._seen.clear()
        self._seen[name] = (now, 0)
        if held:
            record.fields = {**getattr(record, "fields", {}), "repeated": held}
        return True


def build_error_fields(error: BaseException) -> dict[str, Any]:
    """Fields of a log line about a failure.

    Messages of speechlab's errors never contain a text or a key. Those of other errors may, so only their type and
    place are logged.
    """
    fields: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, SpeechLabError):
        fields["detail"] = error.message
    if not isinstance(error, SpeechLabError) or error.__cause__ is not None:
        root = error.__cause__ or error
        frames = traceback.extract_tb(root.__traceback__)[-8:]
        fields["cause"] = type(root).__name__
        fields["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return fields


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            # Tracebacks of other libraries end with the exception, which may quote a text.
            "event": record.getMessage().partition("\n")[0],
            **getattr(record, "fields", {}),
        }
        return orjson.dumps(line, default=str).decode()


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what is ``sys.stderr`` at the time; a program may replace it, and close the one before."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def log_to_stderr(level: str = "info") -> None:
    """Send the service's log to stderr, with the critical messages of uvicorn and the errors of asyncio."""
    handler = _StderrHandler()
    handler.setFormatter(JsonFormatter())
    handler.addFilter(OnceAMinuteFilter())
    levels = {"speechlab": _LEVELS[level], "uvicorn": logging.CRITICAL, "asyncio": logging.ERROR}
    for name, least in levels.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(least)
        logger.propagate = False
