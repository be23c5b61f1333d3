"""What synthesis gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from speechlab.audio import AudioClip
from speechlab.client._events import Timing
from speechlab.contract import AudioFormat
from speechlab.errors import AudioError, ContractError

if TYPE_CHECKING:
    from speechlab.client._operations.call import RawResponse

_TITLE_CHARS = 60


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class SpeechClip(AudioClip):
    """A clip that a service spoke: an :class:`~speechlab.audio.AudioClip` that also knows how it came.

    Attributes:
        encoded: The bytes as the service sent them.
        content_type: Their media type, as the service named it.
        voice_id: The voice that spoke.
        text: What was to be said.
        timing: How long it took, and how many attempts.
    """

    encoded: bytes = field(default=b"")
    content_type: str = ""
    voice_id: str = ""
    text: str = ""
    timing: Timing = field(default_factory=Timing)

    @property
    def format(self) -> str:
        """Format of ``encoded``: mp3, wav, ogg, pcm or flac."""
        return str(self.source_format or "")

    def __repr__(self) -> str:
        return f"SpeechClip{AudioClip.__repr__(self).removeprefix('AudioClip')}"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.samples, self.sample_rate, self.title, self.source_format, self.encoded)
        return SpeechClip, (*fields, self.content_type, self.voice_id, self.text, self.timing)


@dataclass(frozen=True, slots=True)
class SpeechFacts:
    """What is known of a synthesis before its answer.

    Attributes:
        text: What to say.
        voice_id: Who says it.
        format: Output format.
        sample_rate: Rate that was asked for or is the default, in Hz.
    """

    text: str
    voice_id: str
    format: AudioFormat
    sample_rate: int

    @property
    def title(self) -> str:
        """The text, shortened for display."""
        line = " ".join(self.text.split())
        return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1] + "…"

    def decode(self, data: bytes, content_type: str, timing: Timing) -> SpeechClip:
        """Make a clip of the bytes.

        Raises:
            ContractError: They are not audio, or of another kind than the one asked for.
        """
        if not data:
            raise ContractError("the service says that the speech is whole, and sent not a byte of it")
        try:
            if self.format is AudioFormat.PCM and data[:4] != b"RIFF":
                clip = AudioClip.from_pcm(data, pcm_rate(content_type, self.sample_rate))
            else:
                clip = AudioClip.from_bytes(data)
        except AudioError as error:
            message = (
                f"the service answered with {content_type or 'untyped'} that is not usable sound: {error}"
            )
        else:
            facts = (data, content_type, self.voice_id, self.text, timing)
            return SpeechClip(clip.samples, clip.sample_rate, self.title, clip.source_format, *facts)
        raise ContractError(message)


def pcm_rate(content_type: str, default: int) -> int:
    """The rate of raw PCM: that of the media type (``audio/L16; rate=16000``), or the one asked for."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "rate" and value.strip('"').isdecimal():
            return int(value.strip('"'))
    return default


def check_audio_type(content_type: str, start: str = "") -> None:
    """Refuse a success that is not audio.

    Args:
        content_type: Media type of the reply, without parameters.
        start: Start of the body as text, for the message.

    Raises:
        ContractError: JSON, HTML or other text with a status of 200.
    """
    if content_type.endswith(("json", "xml")) or content_type.startswith("text/"):
        text = f"the service answered 200 with {content_type} in place of audio: {start[:200]!r}"
        raise ContractError(text, body=start[:2000])


def read_speech(reply: RawResponse, facts: SpeechFacts) -> SpeechClip:
    """Read the reply to ``POST /tts``.

    Raises:
        ContractError: It is not audio.
    """
    check_audio_type(reply.content_type, "" if reply.content_type.startswith("audio/") else reply.text[:2000])
    if not reply.content:
        raise ContractError("the service answered 200 without a single byte of audio")
    return facts.decode(reply.content, reply.headers.get("content-type", ""), reply.timing)
