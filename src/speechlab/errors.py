"""The tree of all errors that speechlab raises.

SpeechLabError
├── ConfigurationError             a setting of this machine is wrong or missing
│   ├── MissingDependencyError     an optional package is not installed (also an ImportError)
│   └── ServiceStartError          the embedded service could not be started
├── InvalidRequestError            a request breaks a rule of the contract (also a ValueError)
├── AudioError                     unusable audio (also a ValueError)
│   ├── UnsupportedAudioError      not WAV, OGG, MP3 or FLAC
│   ├── AudioDecodeError           a damaged file of a supported format
│   └── AudioLimitError            audio above the limits in force
├── SegmentError                   an invalid table of segments (also a ValueError)
│   └── SegmentFileError           a file of segments that cannot be read or written
├── APIError                       the service answered with an error
│   ├── BadRequestError            400
│   ├── AuthenticationError        401
│   ├── PermissionDeniedError      403
│   ├── NotFoundError              404
│   ├── RateLimitError             429, with retry_after_s
│   └── ServerError                500 and above
├── APIConnectionError             no answer arrived
│   └── APITimeoutError            no answer arrived in time
├── RunStoppedError                a call was not sent, because its batch was stopped
├── ContractError                  the answer breaks the contract
├── StreamTruncatedError           a stream ended early; .partial has the data received
├── RealtimeError                  an error event of the realtime session
├── EngineError                    an engine failed
│   └── ModelError                 weights are missing, damaged or not allowed to be downloaded
├── StoreError                     results could not be read or written, for example on a full disk
└── ReplayMiss                     a replaying client's call is not in the store

Errors can be pickled, and never contain an API key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speechlab._traces import format_traceback, install_excepthook, to_printable

__all__ = [
    "APIConnectionError",
    "APIError",
    "APITimeoutError",
    "AudioDecodeError",
    "AudioError",
    "AudioLimitError",
    "AuthenticationError",
    "BadRequestError",
    "ConfigurationError",
    "ContractError",
    "EngineError",
    "InvalidRequestError",
    "MissingDependencyError",
    "ModelError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "RealtimeError",
    "ReplayMiss",
    "RunStoppedError",
    "SegmentError",
    "SegmentFileError",
    "ServerError",
    "ServiceStartError",
    "SpeechLabError",
    "StoreError",
    "StreamTruncatedError",
    "UnsupportedAudioError",
]


class SpeechLabError(Exception):
    """Base class of all errors that speechlab raises on purpose.

    Facts are keyword attributes with defaults, so that pickle can rebuild any error from ``args`` and ``__dict__``.

    Attributes:
        timing: Duration and attempts of the failed call, a ``Timing``; None if no call was made.
        advice: What to do about the failure, if the message does not say it; ``str(error)`` has both.
        headers: Headers of the reply, names in lower case, without cookies; None if no reply arrived.
        request_id: The service's id of the request, or None. Give it to the operator of the service.
        service_lost: True if the client gave up the service, not only this call. The service asked to wait, or
            could not be reached, for longer than the call's patience.
        possibly_metered: True if a request of the call was sent in full and not answered, so that the service may
            have done the work and metered it. This also holds if a later attempt was refused.

    Example:
        >>> issubclass(sl.RateLimitError, sl.APIError), issubclass(sl.InvalidRequestError, ValueError)
        (True, True)
    """

    timing: Any = None
    possibly_metered: bool = False
    service_lost: bool = False
    advice: str = ""
    headers: Mapping[str, str] | None = None
    request_id: str | None = None

    def __init__(self, message: str = "") -> None:
        super().__init__(to_printable(str(message)))
        install_excepthook()

    def _render_traceback_(self) -> list[str]:
        return format_traceback(self)

    @property
    def message(self) -> str:
        """What was wrong. For an :class:`APIError`, this is the message of the service."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        return f"{self.message.rstrip('.')}; {self.advice}" if self.advice else super().__str__()


class ConfigurationError(SpeechLabError):
    """A setting of this machine is wrong or missing."""


class MissingDependencyError(ConfigurationError, ImportError):
    """An optional package is not installed. The message contains the command that installs it."""


class ServiceStartError(ConfigurationError):
    """The embedded service could not be started. The message gives the reason."""


class InvalidRequestError(SpeechLabError, ValueError):
    """An argument or a request is not allowed. Nothing was sent.

    Attributes:
        parameter: Name of the parameter at fault, as the contract or the function writes it.
        rule: Section of the contract that has the rule, for example ``"2.2"``; None for a rule of speechlab.
        code: Error code of section 7.2 that the realtime endpoint sends for the same fault, or None.
        example: A value of the parameter that would do, or None; ``str(error)`` has it.

    Example:
        >>> try:
        ...     sl.contract.check_text("")
        ... except sl.InvalidRequestError as error:
        ...     print(error.parameter, error.rule, error.code)
        text 2.2 empty_text
    """

    def __init__(
        self,
        message: str = "",
        *,
        parameter: str | None = None,
        rule: str | None = None,
        code: str | None = None,
        example: Any = None,
    ) -> None:
        super().__init__(message)
        self.parameter, self.rule, self.code, self.example = parameter, rule, code, example

    def __str__(self) -> str:
        message = super().__str__()
        return message if self.example is None else f"{message}, as in {self.parameter}={self.example!r}"


class AudioError(SpeechLabError, ValueError):
    """Audio that cannot be used."""


class UnsupportedAudioError(AudioError):
    """The bytes are not WAV, OGG, MP3 or FLAC, or the format does not support the operation."""


class AudioDecodeError(AudioError):
    """The header is valid, but the audio cannot be decoded."""


class AudioLimitError(AudioError):
    """More seconds, frames, channels or bytes than the limits in force allow."""


class SegmentError(SpeechLabError, ValueError):
    """A table of segments is invalid, or unsuitable for the operation.

    Attributes:
        column: The column at fault, or None.
        rows: Positions of the rows at fault, from 0, at most ten.
    """

    def __init__(self, message: str = "", *, column: str | None = None, rows: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.column, self.rows = column, rows


class SegmentFileError(SegmentError):
    """A file of segments cannot be read, or a format of files cannot hold a table.

    Attributes:
        path: The file.
        line: Number of the line at fault, from 1; None if the format has no lines.
    """

    def __init__(
        self, message: str = "", *, path: str | None = None, line: int | None = None, **facts: Any
    ) -> None:
        super().__init__(message, **facts)
        self.path, self.line = path, line


class APIError(SpeechLabError):
    """The service answered with an error.

    Attributes:
        status: HTTP status.
        code: Integer code in the error body, or None.
        name: Name in the error body, such as ``"ErrAuthenticationFailed"``, or None.
        context: The field ``context`` of the error body: where the error arose.
        retryable: Whether the same call may succeed later.
        attempts: How often the call was sent.
        retry_after_s: Seconds to wait, as the service asked, or None.
        body: The body as text, at most 2,000 characters, if it does not have the form of the contract.

    Example:
        >>> from speechlab.errors import APIError
        >>> error = APIError("text is empty", status=400, name="ErrInvalidRequest")
        >>> error.status, error.retryable, str(error)
        (400, False, 'HTTP 400 ErrInvalidRequest: text is empty')
    """

    default_retryable = False

    def __init__(
        self,
        message: str = "",
        *,
        status: int = 0,
        code: int | None = None,
        name: str | None = None,
        context: tuple[str, ...] = (),
        retryable: bool | None = None,
        attempts: int = 1,
        retry_after_s: float | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.name, self.context, self.body = status, code, name, context, body
        self.retryable = self.default_retryable if retryable is None else retryable
        self.attempts, self.retry_after_s = attempts, retry_after_s

    def __str__(self) -> str:
        label = f" {self.name}" if self.name else ""
        facts = [f"after {self.attempts} attempts"] if self.attempts > 1 else []
        if self.retry_after_s:
            facts.append(f"the service asked to wait {round(self.retry_after_s, 1):g} s")
        remarks = f" ({'; '.join(facts)})" if facts else ""
        return f"HTTP {self.status}{label}: {super().__str__()}{remarks}"


class BadRequestError(APIError):
    """400: the request is invalid."""


class AuthenticationError(APIError):
    """401: the API key is missing, malformed, unknown or expired."""


class PermissionDeniedError(APIError):
    """403: the API key is valid, but does not permit this request."""


class NotFoundError(APIError):
    """404: the service has no such resource at this address."""


class RateLimitError(APIError):
    """429: too many requests at a time, or a used-up quota.

    Example:
        >>> sl.RateLimitError("too many requests", status=429, retry_after_s=2.0).retryable
        True
    """

    default_retryable = True


class ServerError(APIError):
    """500 and above: the service failed."""

    default_retryable = True


class APIConnectionError(SpeechLabError):
    """No answer arrived from the service.

    Attributes:
        retryable: Whether the same call may succeed later.
        attempts: How often the call was sent.
    """

    retryable = True

    def __init__(self, message: str = "", *, attempts: int = 1, possibly_metered: bool = False) -> None:
        super().__init__(message)
        self.attempts, self.possibly_metered = attempts, possibly_metered


class APITimeoutError(APIConnectionError):
    """No answer arrived within the timeout."""


class RunStoppedError(SpeechLabError):
    """A call was not sent, or not sent again, because its batch was stopped."""


class ContractError(SpeechLabError):
    """The service's answer breaks the contract.

    Attributes:
        body: The beginning of the answer as text, at most 2,000 characters, or None.
    """

    def __init__(self, message: str = "", *, body: str | None = None) -> None:
        super().__init__(message)
        self.body = body


class StreamTruncatedError(SpeechLabError):
    """A stream ended before it was complete.

    Attributes:
        partial: The data received: bytes of audio, or text.
        close_code: Close code of a realtime connection (1006: closed without a close frame); None for HTTP.

    Example:
        >>> sl.StreamTruncatedError("the stream ended early", partial=b"RIFF").partial
        b'RIFF'
    """

    def __init__(
        self, message: str = "", *, partial: bytes | str | None = None, close_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.partial, self.close_code = partial, close_code


class RealtimeError(SpeechLabError):
    """An error event of the realtime session (sections 4.3 and 7.2).

    Attributes:
        code: The code of section 7.2, such as ``"rate_limited"``.
        retryable: Whether the same text may succeed later.
        partial: The audio received.
        status: Status of the usage record that followed: ``"backend_error"`` or ``"partial_backend_error"``; None
            if no backend was reached, so that nothing was metered.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        retryable: bool = False,
        partial: bytes = b"",
        status: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.retryable, self.partial, self.status = code, retryable, partial, status


class EngineError(SpeechLabError):
    """An engine failed during its work.

    Attributes:
        traceback: Where a function of a system failed, as Python prints it; empty for other engines.
    """

    traceback: str = ""


class ModelError(EngineError):
    """Weights are missing or damaged, or need a download that is not allowed."""


class StoreError(SpeechLabError):
    """Results could not be read or written."""


class ReplayMiss(SpeechLabError):  # noqa: N818 - a missing result, not a fault
    """A replaying client has no stored result for a call. Nothing was sent.

    Attributes:
        operation: Operation of the call.
        parameter: What differs from the most similar stored call, which may be ``"service"``; None without one.
    """

    def __init__(
        self, message: str = "", *, operation: str | None = None, parameter: str | None = None
    ) -> None:
        super().__init__(message)
        self.operation, self.parameter = operation, parameter
