"""The operations of the contract as calls: arguments in, a checked request out. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from speechlab.client._operations.call import Call, Timeouts, form_body, json_body
from speechlab.client._operations.recording import Recording, recognition_body
from speechlab.client._operations.speech import SpeechFacts
from speechlab.contract import (
    DEFAULT_SAMPLE_RATE,
    RECOGNITION_PATH,
    SPEECH_PATH,
    TRANSLATION_PATH,
    VOICES_PATH,
    RecognitionRequest,
    SpeechRequest,
    TranslationRequest,
    Voice,
    VoiceRules,
)
from speechlab.errors import InvalidRequestError

_SLACK_S = 120.0
"""A service that has been idle may first have to load its models."""
_TTS_S_PER_CHAR = 0.3
_ASR_S_PER_S = 2.5
_MT_S_PER_CHAR = 0.05
_STREAM_GAP_S = 120.0


def _timeouts(timeout: float | None, expected_s: float, *, stream: bool = False) -> Timeouts:
    """How long to wait.

    Args:
        timeout: What the user set for the whole call, in seconds, or None.
        expected_s: What the work may take on a slow machine, in seconds.
        stream: Whether the reply comes in pieces; then the time between two counts, and the whole has no end.
    """
    read = max(_SLACK_S, expected_s)
    if timeout is not None:
        return Timeouts(read=min(read, timeout), total=timeout, connect=min(5.0, timeout))
    if stream:
        return Timeouts(read=_STREAM_GAP_S, total=None)
    return Timeouts(read=read, total=3 * read)


def sendable(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with NumPy's numbers as Python's, after a check that the texts can be written as UTF-8.

    Raises:
        InvalidRequestError: A text holds half of a surrogate pair, as damaged files and cut strings do.
    """
    plain = {name: _plain(value) for name, value in fields.items()}
    for name, value in plain.items():
        for text in value if isinstance(value, (list, tuple)) else [value]:
            try:
                _ = text.encode() if isinstance(text, str) else b""
            except UnicodeEncodeError as error:
                message = f"{name} holds half a surrogate pair at position {error.start}; remove or mend it"
                raise InvalidRequestError(message, parameter=name, rule="2") from None
    return plain


def words(name: str, value: object, *, rule: str) -> list[Any]:
    """The terms of a list; a single text is one term, and not its characters.

    Args:
        name: Name of the parameter.
        value: Texts; None is none.
        rule: Section of the contract that asks for them.

    Raises:
        InvalidRequestError: It is no list of texts.
    """
    if value is None or isinstance(value, str):
        return [] if value is None else [value]
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, dict)):
        return list(value)
    message = f"{name} is a {type(value).__name__}; give a list of texts"
    raise InvalidRequestError(message, parameter=name, rule=rule)


def _plain(value: Any) -> Any:
    # NumPy's scalars come out of tables; a check of types would refuse them.
    return value.item() if isinstance(value, (Integral, Real)) and hasattr(value, "item") else value


def voices_call(timeout: float | None) -> Call:
    """``GET /tts/voices`` (section 4.2)."""
    # Nothing is computed for a catalogue; what takes longer than this has failed.
    limits = Timeouts(read=30.0, total=90.0) if timeout is None else _timeouts(timeout, 0.0)
    return Call("voices", "tts", "GET", VOICES_PATH, limits, accept="application/json", free=True)


def checked_speech(fields: dict[str, Any], voice: Voice | None, *, stream: bool) -> tuple[SpeechRequest, int]:
    """Check what is to be spoken, and how.

    Args:
        fields: Fields of section 2.2; None stands for absent.
        voice: What the catalogue says of the voice, if it is known.
        stream: Whether the audio is to come as it is made.

    Returns:
        The request, and the rate that the audio will have, in Hz.

    Raises:
        InvalidRequestError: The request breaks a rule of the contract, or the voice cannot do it.
    """
    request = SpeechRequest.parse({**sendable(fields), "stream": stream})
    rate = request.sample_rate or DEFAULT_SAMPLE_RATE
    if voice is not None and voice.formats:
        rules = VoiceRules.of(voice)
        rate = rules.check(format=request.format, sample_rate=request.sample_rate, stream=stream)
    return request, rate


def speech_call(
    fields: dict[str, Any], voice: Voice | None, *, stream: bool, timeout: float | None
) -> tuple[Call, SpeechFacts]:
    """``POST /tts`` (section 4.1).

    Args:
        fields: Fields of section 2.2; None stands for absent.
        voice: What the catalogue says of the voice, if it is known.
        stream: Whether the audio is to come as it is made.
        timeout: Seconds, or None.

    Raises:
        InvalidRequestError: The request breaks a rule of the contract, or the voice cannot do it.
    """
    request, rate = checked_speech(fields, voice, stream=stream)
    facts = SpeechFacts(request.text, request.voice_id, request.format, rate)
    limits = _timeouts(timeout, _TTS_S_PER_CHAR * len(request.text), stream=stream)
    name = "stream_speech" if stream else "synthesize"
    asked = {
        "voice_id": request.voice_id if voice is None else voice.id,
        "text": request.text,
        "format": str(request.format),
        "sample_rate": rate,
        "temperature": sendable(fields)["temperature"],
    }
    body = json_body(request.body())
    call = Call(name, "tts", "POST", SPEECH_PATH, limits, body, accept="audio/*", parameters=asked)
    return call, facts


def recognition_call(recording: Recording, fields: dict[str, Any], timeout: float | None) -> Call:
    """``POST /asr/srt/audio_llm`` (section 4.4).

    Args:
        recording: What to transcribe.
        fields: The other fields of section 2.3; None stands for absent.
        timeout: Seconds, or None.

    Raises:
        InvalidRequestError: A field breaks its rule.
    """
    given = {name: value for name, value in sendable(fields).items() if value is not None}
    # The recording is encoded while it is sent; the model only has to see that there is one.
    request = RecognitionRequest.parse({"audio": "AAAA", **given})
    asked = request.model_dump(mode="json", exclude={"audio", "session_id"})
    checked = request.body()
    del checked["audio"]
    limits = _timeouts(timeout, _ASR_S_PER_S * recording.duration_s)
    body = recognition_body(recording, checked)
    kind = "application/json"
    return Call("transcribe", "asr", "POST", RECOGNITION_PATH, limits, body, accept=kind, parameters=asked)


def translation_call(
    fields: dict[str, Any], keywords: Iterable[str], *, stream: bool, timeout: float | None
) -> Call:
    """``POST /translate/`` (section 4.5).

    Args:
        fields: Fields of section 2.5 but the keywords; None stands for absent.
        keywords: Terms to preserve.
        stream: Whether the translation is to come in chunks.
        timeout: Seconds, or None.

    Raises:
        InvalidRequestError: A field breaks its rule.
    """
    checked = sendable({**fields, "keywords": tuple(words("keywords", keywords, rule="2.5"))})
    request = TranslationRequest.parse({**checked, "stream": stream})
    limits = _timeouts(timeout, _MT_S_PER_CHAR * len(request.text), stream=stream)
    return Call(
        "stream_translation" if stream else "translate",
        "translate",
        "POST",
        TRANSLATION_PATH,
        limits,
        form_body(request.form()),
        accept="text/event-stream" if stream else "application/json",
        parameters=request.model_dump(mode="json", exclude={"stream"}),
    )
