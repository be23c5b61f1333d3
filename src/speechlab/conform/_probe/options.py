"""Options of a run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ProbeOptions:
    """Address of the deployment, keys for it, and what one may know about it beforehand.

    Attributes:
        base_url: Base of its HTTP paths.
        api_key: A key that may use everything.
        ws_base_url: Base of its WebSocket path; None for the same host.
        voice: Id of the voice to try with; None for the first that speaks WAV.
        q_voice: Id of a voice whose provider is "provider Q".
        restricted_key: A key that may not use that voice.
        no_asr_key: A key that may not use recognition.
        expired_key: A key that was good once.
        legacy_key: A key of a form that is not accepted any more.
        text_limit: Most code points of a text to speak, if that is not the contract's default.
        timeout_s: Patience with a reply.

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
            raise ValueError("an API key has printable ASCII characters only")

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that were given."""
        further = (self.restricted_key, self.no_asr_key, self.expired_key, self.legacy_key)
        return (self.api_key, *(key for key in further if key))
