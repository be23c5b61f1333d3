"""Every error that speechlab raises, in one tree.

SpeechLabError
├── ConfigurationError             something on this machine is set wrongly, or missing
│   ├── MissingDependencyError     an optional package is not installed (also an ImportError)
│   └── ServiceStartError          the embedded service could not be started
├── InvalidRequestError            a request breaks a rule of the contract (also a ValueError)
├── AudioError                     sound that cannot be used (also a ValueError)
│   ├── UnsupportedAudioError      not WAV, OGG, MP3 or FLAC
│   ├── AudioDecodeError           the right kind of file, but damaged
│   └── AudioLimitError            larger than the limits in force
├── SegmentError                   a table of segments that cannot be right (also a ValueError)
│   └── SegmentFileError           a file of segments that cannot be read or written
├── APIError                       the service answered with an error
│   ├── BadRequestError            400
│   ├── AuthenticationError        401
│   ├── PermissionDeniedError      403
│   ├── NotFoundError              404
│   ├── RateLimitError             429, with retry_after_s
│   └── ServerError                500 and above
├── APIConnectionError             no answer came
│   └── APITimeoutError            ... in time
├── RunStoppedError                a call was not sent, because its batch was stopped
├── ContractError                  the answer breaks the contract
├── StreamTruncatedError           a stream ended early; .partial holds what had come
├── RealtimeError                  an error event of the realtime session
├── EngineError                    an engine failed
│   └── ModelError                 weights are missing, damaged or not allowed to be fetched
├── StoreError                     results could not be read or written (a full disk, say)
└── ReplayMiss                     replaying, and this call is not in the store

Errors carry their facts as attributes, survive pickling, and never hold an API key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """The root of the tree: ``except SpeechLabError`` catches everything that speechlab raises on purpose.

    The text is the only positional argument; facts are keyword attributes with defaults. That is what lets
    pickle and copy rebuild any error from ``args`` and ``__dict__``.

    Attributes:
        timing: How long the call that failed took and how often it was sent, a ``Timing``; None where no call was
            made.
        advice: What to do about it, where that stands beside the message; ``str(error)`` has both.
        headers: Headers of the reply that it is about, names in lower case, without cookies; None where none came.
        request_id: The service's name for the request, where it told one: what its operator needs to find it.
        service_lost: True if not this call alone was given up but the service, which said "later" or was not there
            for as long as the call's patience lasts.
        possibly_metered: True if a request of the call had been sent in full and was not answered, so that the
            service may have done, and counted, the work; also where a later attempt was refused.

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
        super().__init__(message)

    @property
    def message(self) -> str:
        """What was wrong; of an :class:`APIError`, in the service's own words."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        return f"{self.message.rstrip('.')}; {self.advice}" if self.advice else super().__str__()


class ConfigurationError(SpeechLabError):
    """Something on this machine is set wrongly, or missing."""


class MissingDependencyError(ConfigurationError, ImportError):
    """An optional package is not installed; the text holds the command that installs it."""


class ServiceStartError(ConfigurationError):
    """The embedded service could not be started; the text says why."""


class InvalidRequestError(SpeechLabError, ValueError):
    """A request breaks a rule of the contract, and was refused before anything was sent.

    Attributes:
        parameter: Name of the offending parameter, as the contract writes it.
        rule: Section of the contract that states the rule, for example ``"2.2"``.
        code: Error code of section 7.2 that the realtime endpoint gives for the same fault, if there is one.

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
    ) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.rule = rule
        self.code = code


class AudioError(SpeechLabError, ValueError):
    """Sound that cannot be used."""


class UnsupportedAudioError(AudioError):
    """The bytes are not WAV, OGG, MP3 or FLAC, or the format cannot do what was asked."""


class AudioDecodeError(AudioError):
    """The header is right, but the rest cannot be decoded."""


class AudioLimitError(AudioError):
    """More seconds, frames, channels or bytes than the limits in force allow."""


class SegmentError(SpeechLabError, ValueError):
    """A table of segments that cannot be right, or that an operation cannot use.

    Attributes:
        column: The column at fault, or None.
        rows: Positions (from 0) of the rows at fault, at most ten.
    """

    def __init__(self, message: str = "", *, column: str | None = None, rows: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.column = column
        self.rows = rows


class SegmentFileError(SegmentError):
    """A file of segments that cannot be read, or a table that the format of a file cannot hold.

    Attributes:
        path: The file.
        line: Number of the line at fault, from 1; None where the format has no lines.
    """

    def __init__(
        self, message: str = "", *, path: str | None = None, line: int | None = None, **facts: Any
    ) -> None:
        super().__init__(message, **facts)
        self.path = path
        self.line = line


class APIError(SpeechLabError):
    """The service answered with an error.

    Attributes:
        status: HTTP status.
        code: Integer code of the error body, or None.
        name: Name in the error body, such as ``"ErrAuthenticationFailed"``, or None.
        context: Where the error arose, as the service tells it.
        retryable: Whether the same call may succeed later.
        attempts: How often the call was made, this one included.
        retry_after_s: Seconds to wait, if the service said so.
        body: The body as text, at most 2,000 characters, for those errors that are not in the agreed form.

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
        self.status = status
        self.code = code
        self.name = name
        self.context = context
        self.retryable = self.default_retryable if retryable is None else retryable
        self.attempts = attempts
        self.retry_after_s = retry_after_s
        self.body = body

    def __str__(self) -> str:
        label = f" {self.name}" if self.name else ""
        facts = [f"after {self.attempts} attempts"] if self.attempts > 1 else []
        if self.retry_after_s:
            facts.append(f"the service asked to wait {round(self.retry_after_s, 1):g} s")
        told = f" ({'; '.join(facts)})" if facts else ""
        return f"HTTP {self.status}{label}: {super().__str__()}{told}"


class BadRequestError(APIError):
    """400: the request is not acceptable as it is."""


class AuthenticationError(APIError):
    """401: the API key is missing, malformed, unknown or expired."""


class PermissionDeniedError(APIError):
    """403: the key is valid, but not for this."""


class NotFoundError(APIError):
    """404: the service does not offer this here."""


class RateLimitError(APIError):
    """429: too much at once, or a quota is used up.

    Example:
        >>> sl.RateLimitError("too many requests", status=429, retry_after_s=2.0).retryable
        True
    """

    default_retryable = True


class ServerError(APIError):
    """500 and above: the service failed."""

    default_retryable = True


class APIConnectionError(SpeechLabError):
    """No answer came from the service.

    Attributes:
        retryable: Whether the same call may succeed later.
        attempts: How often the call was made.
        possibly_metered: True if a request had been sent in full, so that the service may have done, and
            counted, the work.
    """

    retryable = True

    def __init__(self, message: str = "", *, attempts: int = 1, possibly_metered: bool = False) -> None:
        super().__init__(message)
        self.attempts = attempts
        self.possibly_metered = possibly_metered


class APITimeoutError(APIConnectionError):
    """No answer came in time."""


class RunStoppedError(SpeechLabError):
    """A call was not sent, or not again, because the batch that it belongs to was stopped."""


class ContractError(SpeechLabError):
    """The service's answer breaks the contract.

    Attributes:
        body: The start of the answer as text, at most 2,000 characters, or None.
    """

    def __init__(self, message: str = "", *, body: str | None = None) -> None:
        super().__init__(message)
        self.body = body


class StreamTruncatedError(SpeechLabError):
    """A stream ended before its end.

    Attributes:
        partial: What had come: bytes of audio, or the text so far.
        close_code: Code with which a realtime connection was closed (1006: without a word); None for HTTP.

    Example:
        >>> sl.StreamTruncatedError("the stream ended early", partial=b"RIFF").partial
        b'RIFF'
    """

    def __init__(
        self, message: str = "", *, partial: bytes | str | None = None, close_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.partial = partial
        self.close_code = close_code


class RealtimeError(SpeechLabError):
    """An error event of the realtime session (sections 4.3 and 7.2).

    Attributes:
        code: The code of section 7.2, such as ``"rate_limited"``.
        retryable: Whether the same text may succeed later.
        partial: The audio that had come.
        status: Status of the usage record that followed: ``"backend_error"`` or ``"partial_backend_error"``; None
            if no backend was reached, so that nothing was counted.
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
        self.code = code
        self.retryable = retryable
        self.partial = partial
        self.status = status


class EngineError(SpeechLabError):
    """An engine failed while it worked."""


class ModelError(EngineError):
    """Weights are missing or damaged, or would have to be fetched without leave."""


class StoreError(SpeechLabError):
    """Results could not be read or written."""


class ReplayMiss(SpeechLabError):  # noqa: N818 - named as what it is: no fault, but a result that is not there
    """A client that only replays was asked for something that is not in its store; nothing was sent.

    Attributes:
        operation: What was asked for.
        parameter: The parameter that differs from the nearest stored call; ``"service"`` if it is another service;
            None if nothing like it is stored.
    """

    def __init__(
        self, message: str = "", *, operation: str | None = None, parameter: str | None = None
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.parameter = parameter
