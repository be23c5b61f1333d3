"""Text-to-speech requests (section 2.2), and the requests that a voice supports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field

from speechlab._arguments import check_text as check_is_text
from speechlab._formats import DEFAULT_SAMPLE_RATE, AudioFormat
from speechlab.contract._base import ReplyModel, RequestModel
from speechlab.contract._formats import LIMITS
from speechlab.errors import InvalidRequestError


class Voice(ReplyModel):
    """A voice of the catalogue (section 2.1).

    Attributes:
        id: UUID, the value of ``voice_id``.
        description: Free text for people.
        language: Supported language or languages, as free text.
        gender: ``Male``, ``Female`` or ``Neutral``; other values are kept unchanged.
        formats: Supported output formats.
        sample_rates: Supported output rates in Hz, or None if the catalogue lists none, which means unknown.
        streaming: True if at least one format can stream; False means that none can.

    Example:
        >>> Voice(id="53d1acf3-1ef1-5583-bcf8-dda6184fe486", description="Calm: reads books").short_name
        'Calm'
    """

    id: str
    description: str = ""
    language: str = ""
    gender: str = ""
    formats: tuple[str, ...] = ()
    sample_rates: tuple[int, ...] | None = None
    streaming: bool = False

    @property
    def short_name(self) -> str:
        """Short name for people: the last or first part of the description, or else the id."""
        if match := re.search(r"\(([^()]+)\)\s*$", self.description):
            return match[1][:40]
        return re.split(r"[:;,.—]", self.description, maxsplit=1)[0].strip()[:40] or self.id[:8]


class VoiceList(ReplyModel):
    """Reply of ``GET /tts/voices`` (section 4.2).

    Example:
        >>> len(VoiceList.parse({"voices": []}).voices), len(VoiceList.parse([]).voices)
        (0, 0)
    """

    voices: tuple[Voice, ...] = Field()

    @classmethod
    def parse(cls, value: object) -> VoiceList:
        """Read the catalogue in either documented form: an object with ``voices``, or a bare array.

        Raises:
            ContractError: The value has neither form.
        """
        return super().parse({"voices": value} if isinstance(value, list) else value)


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def parse_uuid(value: str) -> str | None:
    """Return the UUID in lower case, or None if it is not one in the 8-4-4-4-12 form."""
    return value.lower() if _UUID.fullmatch(value) else None


def check_format(name: str) -> None:
    """Refuse the name of a format that does not exist."""
    if name not in frozenset(AudioFormat):
        message = f"format {name[:20]!r} is unknown; the formats are {', '.join(AudioFormat)}"
        raise InvalidRequestError(message, parameter="format", rule="2.2", code="unsupported_audio_format")


def check_text(text: str, *, limit: int = LIMITS.tts_text_chars) -> None:
    """Refuse a text that cannot be spoken."""
    check_is_text(text)
    if not text.strip():
        message = "text is empty; it must hold something to say"
        raise InvalidRequestError(message, parameter="text", rule="2.2", code="empty_text")
    if len(text) > limit:
        message = f"text has {len(text):,} characters, and at most {limit:,} are allowed; split it into shorter texts"
        raise InvalidRequestError(message, parameter="text", rule="8", code="tts_text_too_long")


class SpeechRequest(RequestModel):
    """Body of ``POST /tts`` (section 2.2).

    Attributes:
        voice_id: UUID from the catalogue.
        text: Text to speak, at most 5,000 code points by default.
        format: One of the five formats; must be one of the voice's.
        stream: Whether the audio comes as a chunked stream.
        sample_rate: Hz; 0 means the default of 24,000.
        temperature: Variation, at least 0, for voices of provider Q (default there 0.5); None leaves it out.

    Example:
        >>> fields = {"voice_id": "53d1acf3-1ef1-5583-bcf8-dda6184fe486", "text": "Hello.", "format": "wav"}
        >>> SpeechRequest.parse(fields | {"temperature": 0.0}).body()["temperature"]
        0.0
    """

    voice_id: str
    text: str
    format: Annotated[AudioFormat, Field(strict=False)]
    stream: bool = False
    sample_rate: int = Field(default=0, ge=0)
    temperature: float | None = Field(default=None, ge=0)

    @classmethod
    def parse(cls, fields: dict[str, Any], *, text_limit: int = LIMITS.tts_text_chars) -> Self:
        """Read a body, with all checks that do not need the voice.

        Raises:
            InvalidRequestError: A field is missing or breaks its rule.
        """
        if isinstance(name := fields.get("format"), str):
            check_format(name)
        request = super().parse(fields)
        voice_id = parse_uuid(request.voice_id)
        if voice_id is None:
            message = f"voice_id {request.voice_id[:60]!r} is not a UUID; take one from GET /tts/voices"
            raise InvalidRequestError(message, parameter="voice_id", rule="2.2", code="unknown_voice_id")
        check_text(request.text, limit=text_limit)
        return request if voice_id == request.voice_id else request.model_copy(update={"voice_id": voice_id})

    def body(self) -> dict[str, Any]:
        """Return the JSON body: required fields, and the options that were set."""
        fields = self.model_dump(mode="json", exclude_none=True)
        if not self.stream:
            del fields["stream"]
        if not self.sample_rate:
            del fields["sample_rate"]
        return fields


@dataclass(frozen=True, slots=True)
class VoiceRules:
    """Settings that a voice and its provider accept, as completely as they are known.

    Attributes:
        formats: Output formats of the voice.
        sample_rates: Rates in Hz, or None if unknown, which accepts all.
        streaming: False if no format streams.
        streamable: Formats that stream, or None if unknown, which accepts all.
        ogg_rate_override: False for provider Q, which accepts no rate together with ogg.
        single_rate_override: True to accept the rate of a voice with exactly one rate.

    Example:
        >>> rules = VoiceRules(
        ...     frozenset({"wav", "ogg"}), sample_rates=(16_000, 24_000), ogg_rate_override=False
        ... )
        >>> rules.check(format="wav"), rules.check(format="wav", sample_rate=16_000)
        (24000, 16000)
        >>> try:
        ...     rules.check(format="ogg", sample_rate=16_000)
        ... except sl.InvalidRequestError as error:
        ...     print(error.code)
        unsupported_sample_rate
    """

    formats: frozenset[str]
    sample_rates: tuple[int, ...] | None = None
    streaming: bool = True
    streamable: frozenset[str] | None = None
    ogg_rate_override: bool = True
    single_rate_override: bool = False

    @classmethod
    def from_voice(cls, voice: Voice) -> VoiceRules:
        """Return the rules in a catalogue entry."""
        return cls(frozenset(voice.formats), voice.sample_rates, voice.streaming)

    def check(self, *, format: str, sample_rate: int = 0, stream: bool = False) -> int:  # noqa: A002 - the contract's name
        """Check output settings in the order of the contract: format, streaming, rate.

        Args:
            format: Output format.
            sample_rate: Hz, or 0 for the default.
            stream: Whether the audio is to be streamed.

        Returns:
            The rate of the audio in Hz.

        Raises:
            InvalidRequestError: The voice does not support the settings; ``code`` is the code of section 7.2.
        """
        if format not in self.formats:
            offered = ", ".join(sorted(self.formats))
            text = f"format {str(format)!r} is not offered by this voice; it offers {offered}"
            raise InvalidRequestError(text, parameter="format", rule="2.2", code="unsupported_audio_format")
        message = None
        if stream and not self.streaming:
            message = "this voice does not stream; leave stream out"
        elif stream and self.streamable is not None and format not in self.streamable:
            message = f"format {str(format)!r} cannot stream on this voice; {', '.join(sorted(self.streamable))} can"
        if message is not None:
            raise InvalidRequestError(
                message, parameter="stream", rule="2.2", code="unsupported_streaming_format"
            )
        return self._resolve_sample_rate(format, sample_rate)

    def _resolve_sample_rate(self, format: str, rate: int) -> int:  # noqa: A002 - the contract's name
        if rate == 0:
            return DEFAULT_SAMPLE_RATE
        message = None
        if self.sample_rates is not None:
            if len(self.sample_rates) < 2 and not (self.single_rate_override and rate in self.sample_rates):
                message = (
                    f"sample_rate {rate:,} cannot be set: this voice has one rate; leave sample_rate out"
                )
            elif rate not in self.sample_rates:
                offered = ", ".join(f"{hz:,}" for hz in self.sample_rates)
                message = f"sample_rate {rate:,} is not offered by this voice; it offers {offered}"
        if message is None and format == AudioFormat.OGG and not self.ogg_rate_override:
            message = "this voice takes no sample_rate together with ogg; leave sample_rate out"
        if message is not None:
            raise InvalidRequestError(
                message, parameter="sample_rate", rule="2.2", code="unsupported_sample_rate"
            )
        return rate
