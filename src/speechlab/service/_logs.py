"""Structured log lines: one JSON object each, and never a key, a text or audio in one."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import Any

import orjson

from speechlab.errors import SpeechLabError

_logger = logging.getLogger("speechlab.service")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_FRAMES = 8


def log(event: str, *, level: str = "info", **fields: Any) -> None:
    """Log an event; only fields that are safe to keep may be passed."""
    _logger.log(_LEVELS[level], event, extra={"fields": fields})


def error_fields(error: BaseException) -> dict[str, Any]:
    """Fields of a log line that describe a failure.

    Messages of our own errors never hold a text or a key. Those of others may, so that of them only the kind and
    the place are kept.
    """
    fields: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, SpeechLabError):
        fields["detail"] = error.message
    if not isinstance(error, SpeechLabError) or error.__cause__ is not None:
        root = error.__cause__ or error
        frames = traceback.extract_tb(root.__traceback__)[-_FRAMES:]
        fields["cause"] = type(root).__name__
        fields["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return fields


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        return orjson.dumps(line, default=str).decode()


def to_stderr() -> None:
    """Send the service's log to stderr, with the critical messages of uvicorn."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("speechlab", logging.INFO), ("uvicorn", logging.CRITICAL)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
