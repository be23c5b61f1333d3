"""Keys of requests: equal requests to the same service have the same key, and all others have different keys."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import orjson

CONTRACT_VERSION = "1"
"""Increased when the meaning of a stored reply changes. The service's own paths carry no version (section 9)."""

OperationName = Literal["synthesize", "transcribe", "translate"]
"""Name of an operation in a key."""


def audio_digest(data: bytes) -> str:
    """Return the SHA-256 of a recording's bytes in hexadecimal; it represents the recording in a key."""
    return hashlib.sha256(data).hexdigest()


def request_key(
    operation: OperationName, parameters: dict[str, Any], *, service: str, repeat: int = 0
) -> str:
    """Return the key of a request: a SHA-256 in hexadecimal."""
    canonical = orjson.dumps(
        {
            "contract": CONTRACT_VERSION,
            "operation": operation,
            "parameters": parameters,
            "repeat": repeat,
            "service": service,
        },
        option=orjson.OPT_SORT_KEYS,
    )
    return hashlib.sha256(canonical).hexdigest()
