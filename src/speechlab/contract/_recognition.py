"""Speech recognition: requests (section 2.3), the legacy shape (4.4) and replies (2.4)."""

from __future__ import annotations

import binascii
import math
import re
from typing import Any, Self

import pybase64
from pydantic import Field, field_validator, model_validator

from speechlab.contract._base import ReplyModel, RequestModel
from speechlab.contract._formats import LIMITS, Range, VadMode
from speechlab.errors import InvalidRequestError

# Message of a 400: the request contains no sound.
NO_AUDIO = "No audio data provided"
# Message of a 400: the sound is not base64.
INVALID_BASE64 = "Invalid base64 audio data"
# Message of a 400: the sound has an unsupported format.
UNSUPPORTED_AUDIO = "Unsupported audio format"

# Fields with an effect only for ``vad="segments"``; otherwise they are ignored.
SEGMENT_FIELDS = (
    "min_silence_gap",
    "segment_padding",
    "initial_segment_padding_ms",
    "speech_pad_ms",
    "min_segment_duration",
)

_VAD_MODES = {0: VadMode.OFF, 1: VadMode.ON, "0": VadMode.OFF, "1": VadMode.ON} | {
    mode.value: mode for mode in VadMode
}


def _build_bounded_field(limits: Range, default: float) -> Any:
    return Field(default=default, ge=limits.low, le=limits.high)


class RecognitionRequest(RequestModel):
    """Body of ``POST /asr/srt/audio_llm`` (section 2.3), with its defaults.

    Attributes:
        audio: Plain base64 of the bytes of a WAV, OGG, MP3 or FLAC file.
        language: Code of a language, such as ``ja``; each service has its own. None identifies the language.
        hotwords: Words or phrases to boost.
        temperature: 0 to 2.
        top_p: 0 to 1.
        frequency_penalty: -2 to 2.
        repetition_penalty: 1 to 2.
        vad: ``off``, ``on`` or ``segments``; 0 and 1 are read as ``off`` and ``on``.
        min_silence_gap: Milliseconds of silence that separate segments.
        segment_padding: Milliseconds at the edges of segments, 0 to 5,000.
        initial_segment_padding_ms: Milliseconds before the first segment, 0 to 5,000.
        speech_pad_ms: Milliseconds added to detected speech.
        min_segment_duration: Minimum in seconds; shorter segments are merged.
        session_id: Optional label, at most 128 characters.

    Example:
        >>> request = RecognitionRequest.parse({"audio": "AAAA", "language": "ja-JP", "vad": 1})
        >>> request.body()
        {'audio': 'AAAA', 'language': 'ja', 'vad': 'on'}
    """

    audio: str
    language: str | None = None
    hotwords: list[str] = Field(default_factory=list, max_length=1_000)
    temperature: float = _build_bounded_field(LIMITS.temperature, 0.0)
    top_p: float = _build_bounded_field(LIMITS.top_p, 0.85)
    frequency_penalty: float = _build_bounded_field(LIMITS.frequency_penalty, 0.5)
    repetition_penalty: float = _build_bounded_field(LIMITS.repetition_penalty, 1.05)
    vad: VadMode = Field(default=VadMode.OFF, strict=False)
    min_silence_gap: int = Field(default=400, ge=0)
    segment_padding: int = _build_bounded_field(LIMITS.segment_padding_ms, 100)
    initial_segment_padding_ms: int = _build_bounded_field(LIMITS.segment_padding_ms, 1500)
    speech_pad_ms: int = Field(default=200, ge=0)
    min_segment_duration: float = Field(default=1.5, ge=0)
    session_id: str | None = Field(default=None, max_length=128)

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Read a body in either shape; a missing recording is reported before all other faults.

        Raises:
            InvalidRequestError: A field is missing or breaks its rule; the messages about the recording are those of
                section 7.1.
        """
        if fields.get("audio") is None and fields.get("messages") is not None:
            fields = convert_legacy_fields(fields)
        audio = fields.get("audio")
        if audio is None or audio == "":
            raise InvalidRequestError(NO_AUDIO, parameter="audio", rule="7.1")
        fields = dict(fields)
        if not isinstance(audio, str):  # reported after the other fields, as invalid base64
            fields["audio"] = "\N{REPLACEMENT CHARACTER}"
        return super().parse(fields)

    @model_validator(mode="before")
    @classmethod
    def _parse_language_and_vad(cls, value: dict[str, Any]) -> dict[str, Any]:
        fields = dict(value)
        fields["language"] = _parse_language(fields.get("language"))
        fields["vad"] = _parse_vad(fields.get("vad"))
        if fields["vad"] is not VadMode.SEGMENTS:
            for name in SEGMENT_FIELDS:
                fields.pop(name, None)
        return {name: item for name, item in fields.items() if item is not None}

    def body(self) -> dict[str, Any]:
        """Return the JSON body: the recording, and the options that were set."""
        fields = self.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        return {"audio": fields.pop("audio"), **fields}


_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}")


def _parse_language(value: object) -> str | None:
    if value is None or (isinstance(value, str) and not value):
        return None
    if isinstance(value, str):
        code = value.replace("_", "-").partition("-")[0].lower()
        if _LANGUAGE_CODE.fullmatch(code):
            return code
    message = f"language {str(value)[:20]!r} is not a code such as ja, en or zh; give one, or leave it out"
    raise InvalidRequestError(message, parameter="language", rule="2.3")


def _parse_vad(value: object) -> VadMode | None:
    if value is None or isinstance(value, VadMode):
        return value
    if isinstance(value, (int, str)) and not isinstance(value, bool) and value in _VAD_MODES:
        return _VAD_MODES[value]
    message = f"vad {str(value)[:20]!r} is not supported; it must be 0, 1, off, on or segments"
    raise InvalidRequestError(message, parameter="vad", rule="2.3")


def convert_legacy_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert the legacy ``messages`` shape of section 4.4 to the fields of section 2.3.

    The contract does not show the legacy fields. This function reads OpenAI-style messages whose content parts
    contain the recording as ``input_audio.data`` or as a data URI in ``audio_url``. ``vad`` is 1 by default;
    ``model`` is ignored.
    """
    plain = {name: value for name, value in fields.items() if name not in {"messages", "model", "audio"}}
    plain.setdefault("vad", 1)
    audio = _find_legacy_audio(fields["messages"])
    return plain if audio is None else {"audio": audio, **plain}


def _find_legacy_audio(messages: object) -> str | None:
    for message in messages if isinstance(messages, list) else []:
        parts = message.get("content") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else []:
            if not isinstance(part, dict):
                continue
            inline = part.get("input_audio")
            if isinstance(inline, dict) and isinstance(inline.get("data"), str):
                return str(inline["data"])
            link = part.get("audio_url")
            url = link.get("url") if isinstance(link, dict) else link
            if isinstance(url, str) and url.startswith("data:"):
                return url.partition(",")[2]
    return None


def decode_audio_field(audio: str) -> bytes:
    """Decode the ``audio`` field strictly: the standard alphabet with its padding, and nothing else."""
    try:
        data = pybase64.b64decode(audio, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequestError(INVALID_BASE64, parameter="audio", rule="7.1") from None
    if not data:
        raise InvalidRequestError(NO_AUDIO, parameter="audio", rule="7.1")
    return data


class ReplySegment(ReplyModel):
    """A timed segment: ``start`` and ``end`` in seconds, and its ``text`` (section 2.4)."""

    start: float
    end: float
    text: str = ""


class RecognitionReply(ReplyModel):
    """Reply of recognition in either form (section 2.4); ``segments`` distinguishes them.

    Attributes:
        text: The transcript, or None in the segments form.
        language: Code.
        confidence: 0 to 1, or None if the service leaves it out.
        segments: Timed segments, or None in the default form.
    """

    text: str | None = None
    language: str = ""
    confidence: float | None = None
    segments: tuple[ReplySegment, ...] | None = None

    @field_validator("confidence")
    @classmethod
    def _drop_non_finite(cls, value: float | None) -> float | None:
        return value if value is None or math.isfinite(value) else None

    @model_validator(mode="after")
    def _check_text_or_segments(self) -> Self:
        if self.text is None and self.segments is None:
            raise ValueError("it has neither text nor segments")
        return self
