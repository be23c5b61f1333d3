"""Synthesis: the operation and its result, also read piece by piece."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import build_argument_error, is_whole_number, to_int_if_whole_rate
from speechlab._arguments import check_text as check_text_type
from speechlab.audio import AudioClip, render_clip_figure
from speechlab.client._events import Timing
from speechlab.client._operations.call import HttpCall, RawResponse, Reply, build_json_body
from speechlab.client._operations.operation import (
    Operation,
    build_timeouts,
    check_and_build_content,
    to_encodable_fields,
)
from speechlab.client._operations.voices import list_lexicon_names
from speechlab.contract import (
    CONTENT_TYPES,
    DEFAULT_SAMPLE_RATE,
    SPEECH_PATH,
    AudioFormat,
    SpeechRequest,
    Voice,
    VoiceRules,
    check_format,
    check_text,
    parse_uuid,
)
from speechlab.errors import AudioError, ContractError

if TYPE_CHECKING:
    from speechlab.store import StoredResult
    from speechlab.text import Lexicon

_TITLE_CHARS = 60
_S_PER_CHAR = 0.3
_MAX_TEXT = 1 << 16
# Bytes of a reply to the shortest text, which may still be minutes of sound.
_LEAST_LIMIT = 32 << 20


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class SpeechClip(AudioClip):
    """A clip of synthesized speech: an :class:`~speechlab.audio.AudioClip` with the facts of its reply.

    Attributes:
        encoded: The encoded bytes as sent by the service.
        content_type: Their media type, as sent by the service.
        voice_id: Id of the voice.
        text: The spoken text.
        timing: Duration and attempts.
        voice: Short name of the voice, if known.
        language: Language code of the text, if the voice has exactly one language.
    """

    encoded: bytes = field(default=b"")
    content_type: str = ""
    voice_id: str = ""
    text: str = ""
    timing: Timing = field(default_factory=Timing)
    voice: str = ""
    language: str = ""

    @property
    def format(self) -> str:
        """Format of ``encoded``: mp3, wav, ogg, pcm or flac."""
        return str(self.source_format or "")

    def __repr__(self) -> str:
        return f"SpeechClip{AudioClip.__repr__(self).removeprefix('AudioClip')}"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.samples, self.sample_rate, self.title, self.source_format, self.encoded)
        facts = (self.content_type, self.voice_id, self.text, self.timing, self.voice, self.language)
        return SpeechClip, (*fields, *facts)

    def _repr_html_(self) -> str:
        voice = self.voice or (f"voice {self.voice_id[:8]}" if self.voice_id else None)
        lang = self.language or None
        return str(render_clip_figure(self, title=voice or self.title, text=self.text or None, lang=lang))


@dataclass(frozen=True, slots=True)
class ExpectedSpeech:
    """The expected speech of a reply, as needed to decode it."""

    text: str
    voice_id: str
    format: AudioFormat
    sample_rate: int
    voice: Voice | None = None

    def decode(self, data: bytes, content_type: str, timing: Timing) -> SpeechClip:
        """Make a clip from the bytes."""
        if not data:
            raise ContractError("the service ended the speech as complete, but sent no byte of it")
        try:
            if self.format is AudioFormat.PCM and data[:4] != b"RIFF":
                if not content_type.startswith("audio/") and _is_json_object(data):
                    raise build_not_audio_error(
                        content_type or "a JSON text", data[:2000].decode("utf-8", "replace")
                    )
                clip = AudioClip.from_pcm(data, parse_pcm_rate(content_type, self.sample_rate))
            else:
                clip = AudioClip.from_bytes(data)
        except AudioError as error:
            kind = content_type or "a reply without a type"
            message = f"the service answered with {kind}, which is not usable audio: {error}"
        else:
            if clip.duration_s:
                return self._describe_clip(clip, data, content_type, timing)
            message = "the reply is audio of zero length"
        raise ContractError(message)

    def _describe_clip(self, clip: AudioClip, data: bytes, content_type: str, timing: Timing) -> SpeechClip:
        """Return the sound with what is known of it."""
        from speechlab.text import list_language_codes  # slow to import, and most calls do not need it

        languages = list_language_codes(self.voice.language) if self.voice else set()
        name = self.voice.short_name if self.voice else ""
        language = next(iter(languages)) if len(languages) == 1 else ""
        line = " ".join(self.text.split())
        title = line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1] + "…"
        came = (data, content_type, self.voice_id, self.text, timing, name, language)
        return SpeechClip(clip.samples, clip.sample_rate, title, clip.source_format, *came)


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class SpeechOptions:
    """Options of speech, the same for texts spoken whole, streamed and in a realtime session.

    Args:
        voice: A voice of the catalogue, its id, or an unambiguous part of its description.
        format: ``"wav"``, ``"mp3"``, ``"ogg"``, ``"flac"`` or ``"pcm"``; for streams, one that the voice streams.
        sample_rate: Rate in Hz, for voices with several rates; None is the service's default, 24,000.
        temperature: Variation, 0 or more, for voices of provider Q; None is the service's default.
        respell: A :class:`speechlab.text.Lexicon` of words that the voice misreads: the text is sent with its
            spellings, and kept as it is. None sends it as it is.
    """

    voice: Voice | str
    format: AudioFormat | str = "wav"
    sample_rate: int | None = None
    temperature: float | None = None
    respell: Lexicon | None = None

    def respell_text(self, text: str) -> str:
        """Return a text as it is sent; a described voice has to be looked up first."""
        if self.respell is None:
            return text
        from speechlab.text import Lexicon, guess_language, list_language_codes  # slow to import

        given: object = self.respell
        if not isinstance(given, Lexicon) or not isinstance(self.voice, Voice):
            allowed = "a Lexicon, as sl.text.Lexicon.read gives it, with a voice of the catalogue"
            raise build_argument_error("respell", given, allowed)
        codes = list_language_codes(self.voice.language) & {entry.language for entry in given}
        check_text_type(text)
        guess = guess_language([text])
        codes = {guess} if guess in codes else codes
        return given.respell(text, codes, list_lexicon_names(self.voice))

    def build_request_and_rate(self, text: str, *, stream: bool) -> tuple[SpeechRequest, int]:
        """Return the checked request for a text, and its rate in Hz; a described voice has to be looked up first."""
        listed = self.voice if isinstance(self.voice, Voice) else None
        values = {
            "voice_id": self.voice if listed is None else listed.id,
            "text": text,
            "format": self.format,
            "sample_rate": to_int_if_whole_rate(self.sample_rate),
            "temperature": self.temperature,
        }
        request = SpeechRequest.parse({**to_encodable_fields(values), "stream": stream})
        rate = request.sample_rate or DEFAULT_SAMPLE_RATE
        if listed is not None and listed.formats:
            rules = VoiceRules.from_voice(listed)
            rate = rules.check(format=request.format, sample_rate=request.sample_rate, stream=stream)
        return request, rate


@dataclass(frozen=True, eq=False, slots=True)
class Synthesize(SpeechOptions, Operation[SpeechClip]):
    """Speak a text (section 4.1 of the contract).

    Args:
        text: Text to speak, at most 5,000 characters.
        timeout: Seconds for this call with its retries; None is the client's.

    Example:
        >>> voice = "53d1acf3-1ef1-5583-bcf8-dda6184fe486"
        >>> Synthesize("Hello.", voice=voice, format="mp3").parameters["sample_rate"]
        24000
        >>> try:
        ...     Synthesize("", voice=voice).parameters
        ... except sl.InvalidRequestError as error:
        ...     print(error.parameter, error.rule)
        text 2.2
    """

    name = "synthesize"
    text: str = field(kw_only=False)
    timeout: float | None = None

    @property
    def sent_text(self) -> str:
        """The text as it is sent."""
        return self.respell_text(self.text)

    @property
    def parameters(self) -> dict[str, Any]:
        request, rate = self.build_request_and_rate(self.sent_text, stream=self.stream)
        # Arguments that were not given are left out, so that new fields change no key; temperature is older.
        values = request.model_dump(mode="json", exclude={"stream"}, exclude_none=True)
        return {**values, "sample_rate": rate, "temperature": request.temperature}

    @property
    def content(self) -> dict[str, Any]:
        return check_and_build_content(self.sent_text, check_text)

    @property
    def expected(self) -> ExpectedSpeech:
        """The expected speech of the reply; the text and the values are checked by the call."""
        check_format(str(self.format))
        kind = AudioFormat(self.format)
        listed = self.voice if isinstance(self.voice, Voice) else None
        voice_id = self.voice if listed is None else listed.id
        given: object = to_int_if_whole_rate(self.sample_rate)
        rate = given if is_whole_number(given) and given > 0 else DEFAULT_SAMPLE_RATE
        if rate is not given and listed is not None and listed.formats:
            rate = VoiceRules.from_voice(listed).check(format=kind, stream=self.stream)
        return ExpectedSpeech(self.text, parse_uuid(str(voice_id)) or str(voice_id), kind, rate, listed)

    def call(self, timeout: float | None) -> HttpCall:
        request, rate = self.build_request_and_rate(self.sent_text, stream=self.stream)
        limits = build_timeouts(
            self.resolve_timeout(timeout), _S_PER_CHAR * len(request.text), stream=self.stream
        )
        fields = request.body()
        body = build_json_body(fields)
        largest = compute_max_speech_bytes(len(request.text), rate)
        return HttpCall(
            self.name,
            "tts",
            limits,
            "POST",
            SPEECH_PATH,
            body,
            accept="audio/*",
            reply_limit=largest,
            fields=fields,
        )

    def read(self, reply: Reply | RawResponse) -> SpeechClip:
        kind = reply.content_type
        if isinstance(reply, RawResponse):
            if not can_be_audio_type(kind):
                raise build_not_audio_error(kind, reply.text[:2000])
            if not reply.content:
                raise ContractError("the service answered 200 without a single byte of audio")
            kind = reply.headers.get("content-type", "")
        return self.expected.decode(reply.audio, kind, reply.timing)

    def count_usage(self, result: SpeechClip) -> dict[str, float]:
        return count_speech_usage(self.sent_text, len(result.encoded))

    def build_record(self, result: SpeechClip) -> dict[str, Any]:
        return {
            "duration_s": result.duration_s,
            "sample_rate": result.sample_rate,
            "processing_s": result.timing.processing_s,
        }

    def collect_files(self, result: SpeechClip) -> dict[str, tuple[bytes, str]]:
        return {"audio": (result.encoded, f".{AudioFormat(self.format)}")}

    def restore_reply(self, stored: StoredResult, facts: Mapping[str, Any]) -> RawResponse:
        kind = CONTENT_TYPES[AudioFormat(stored.request["format"])]
        headers = {"content-type": kind, **facts.get("headers", {})}
        return RawResponse(200, headers, stored.files["audio"].read_bytes())


class StreamSpeech(Synthesize):
    """Speak a text, and stream the audio while it is made."""

    __slots__ = ()
    name = "stream_speech"
    stream = True


def compute_max_speech_bytes(chars: int, rate: int) -> int:
    """Return the maximum of bytes of a text's speech: more than its slowest voice needs, in two channels."""
    return max(_LEAST_LIMIT, round(2 * _S_PER_CHAR * chars) * rate * 4)


def count_speech_usage(text: str, audio_bytes: int) -> dict[str, float]:
    """Amounts for ``Client.usage``."""
    return {"calls": 1, "synthesized_chars": len(text), "audio_bytes": audio_bytes}


_RATE = re.compile(r"[0-9]{1,6}")


def parse_pcm_rate(content_type: str, default: int) -> int:
    """Return the rate of raw PCM: that of the media type (``audio/L16; rate=16000``), or else the requested one."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "rate" and _RATE.fullmatch(number := value.strip('"')):
            return int(number)
    return default


def _is_json_object(data: bytes) -> bool:
    """Return whether bytes of no stated type, which could be PCM of any kind, are a JSON object, such as an error."""
    if data[:1] != b"{" or len(data) > _MAX_TEXT:
        return False
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def can_be_audio_type(content_type: str) -> bool:
    """Return whether a successful reply of this media type may be audio; services also send other types, or none."""
    return not content_type.endswith(("json", "xml")) and not content_type.startswith("text/")


def build_not_audio_error(content_type: str, start: str) -> ContractError:
    """Return the error for a successful reply that is a text."""
    text = f"the service answered 200 with {content_type} instead of audio: {start[:200]!r}"
    return ContractError(text, body=start[:2000])
