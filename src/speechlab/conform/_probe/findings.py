"""What a run is given and what its checks find: options, findings, and two early ends of a check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class ProbeOptions:
    """Address and keys of a deployment, and facts about it.

    Attributes:
        base_url: Base of its HTTP paths.
        api_key: A key that may use everything.
        ws_base_url: Base of its WebSocket path; None for the same host.
        voice: Id of the voice for the checks; None for the first that offers WAV.
        q_voice: Id of a voice whose provider is "provider Q".
        restricted_key: A key that may not use that voice.
        no_asr_key: A key that may not use recognition.
        expired_key: A key that has expired.
        legacy_key: A key of a form that is not accepted any more.
        text_limit: Maximum code points of a text to speak, if it is not the contract's default.
        timeout_s: Timeout of a reply in seconds.

    Example:
        >>> ProbeOptions("http://127.0.0.1:8100", "sl:a-key-of-mine").text_limit
        5000
    """

    base_url: str
    api_key: str = field(repr=False)
    ws_base_url: str | None = None
    voice: str | None = None
    q_voice: str | None = None
    restricted_key: str | None = field(default=None, repr=False)
    no_asr_key: str | None = field(default=None, repr=False)
    expired_key: str | None = field(default=None, repr=False)
    legacy_key: str | None = field(default=None, repr=False)
    text_limit: int = 5_000
    timeout_s: float = 120.0

    def __post_init__(self) -> None:
        if any(not (key.isascii() and key.isprintable()) for key in self.keys):
            raise ValueError("an API key contains printable ASCII characters only")

    @property
    def keys(self) -> tuple[str, ...]:
        """All given keys."""
        further = (self.restricted_key, self.no_asr_key, self.expired_key, self.legacy_key)
        return (self.api_key, *(key for key in further if key))


class Evidence(Protocol):
    """A request and its reply as text, without keys."""

    @property
    def sent(self) -> str: ...

    @property
    def came(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Observation:
    """A broken expectation with its evidence, which never contains keys."""

    expected: str
    sent: str
    came: str


class ExpectationUnmet(Exception):  # noqa: N818 - not an error of this program but a finding about another
    """The service does not behave as expected, and the check cannot continue."""

    def __init__(self, expected: str, evidence: Evidence | None = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.evidence = evidence


class CheckSkipped(Exception):  # noqa: N818 - not an error of this program either
    """The check cannot run; the message names the missing requirement."""
