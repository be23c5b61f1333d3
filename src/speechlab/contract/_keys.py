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
    """Return the SHA-256 of a recording's bytes in hexadecimal; it represents the recording in a key.

    Example:
        >>> audio_digest(b"RIFF")[:16]
        'a40ff3d5900fb769'
    """
    return hashlib.sha256(data).hexdigest()


def request_key(
    operation: OperationName, parameters: dict[str, Any], *, service: str, repeat: int = 0
) -> str:
    """Return the key of a request: a SHA-256 in hexadecimal.

    Args:
        operation: The operation.
        parameters: All parameters that can change the result, defaults included; recordings as
            :func:`audio_digest`, texts exactly as sent.
        service: Identity of the service. Never a credential.
        repeat: Number of a deliberate repetition.

    Example:
        >>> key = request_key("translate", {"text": "Hello."}, service="a")
        >>> key == request_key("translate", {"text": "Hello."}, service="a")
        True
        >>> key == request_key("translate", {"text": "Hello."}, service="b")
        False
    """
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
