"""Operations as functions get them: with the values as given, and without the rules of a wire."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

from speechlab._arguments import to_int_if_whole_rate
from speechlab.audio import AudioClip, unify_recording
from speechlab.client._operations.call import HttpCall
from speechlab.client._operations.operation import (
    Operation,
    build_timeouts,
    check_and_build_content,
    to_encodable_fields,
    to_term_list,
)
from speechlab.client._operations.recognition import OPTIONS, Transcribe, Transcript
from speechlab.client._operations.speech import StreamSpeech, Synthesize
from speechlab.client._operations.translation import StreamTranslation, Translate
from speechlab.client._systems.functions import FunctionCall, FunctionSystem, check_fields
from speechlab.contract import (
    DEFAULT_SAMPLE_RATE,
    RECOGNITION_PATH,
    SPEECH_PATH,
    TRANSLATION_PATH,
    AudioFormat,
    SpeechRequest,
    Voice,
    check_format,
    check_text,
)
from speechlab.errors import InvalidRequestError

O = TypeVar("O", bound=Operation[Any])  # noqa: E741 - an operation
# Characters of the longest text: a function has no limit of its own.
_MAX_TEXT_CHARS = 10**9
_S_PER_CHAR, _S_PER_S = 0.3, 2.5
_TEXTS = {"language", "source_lang", "target_lang", "context", "model", "keywords", "hotwords", "session_id"}


def adapt_to_functions(operation: O, system: FunctionSystem) -> O:
    """Return an operation for the functions of a system; one that was fitted is returned unchanged."""
    kind: Any = _KINDS.get(type(operation))
    if kind is None:
        return operation
    arguments = {
        each.name: getattr(operation, each.name) for each in fields(cast("Any", operation)) if each.init
    }
    return cast("O", kind(**arguments, system=system))


def _collect_and_check_fields(system: FunctionSystem, operation: str, **fields: Any) -> dict[str, Any]:
    """Return the fields of a call that were given, which the function must take."""
    values = {name: value for name, value in to_encodable_fields(fields).items() if value is not None}
    for name, value in values.items():
        kinds, allowed = ((str,), "text") if name in _TEXTS else ((str, int, float), "a number or text")
        for term in value if isinstance(value, list) else (value,):
            if not isinstance(term, kinds):
                message = f"{name} holds a {type(term).__name__}; give {allowed}"
                raise InvalidRequestError(message, parameter=name)
    takes = system.resolve_function(operation).takes
    if takes is not None:
        check_fields(operation, values, takes)
    return values


def _check_text(text: str) -> None:
    check_text(text, limit=_MAX_TEXT_CHARS)


@dataclass(frozen=True, eq=False, slots=True)
class FunctionSpeech(Synthesize):
    """Speak a text by a function."""

    system: FunctionSystem = field(kw_only=True, repr=False)

    @property
    def _fields(self) -> dict[str, Any]:
        rate = to_int_if_whole_rate(self.sample_rate)
        return _collect_and_check_fields(
            self.system, "synthesize", sample_rate=rate, temperature=self.temperature
        )

    @property
    def _request_and_rate(self) -> tuple[SpeechRequest, int]:
        text, values = self.content["text"], self._fields
        check_format(str(self.format))
        voice = self.voice.id if isinstance(self.voice, Voice) else self.voice
        kind = AudioFormat(self.format)
        request = SpeechRequest.model_construct(voice_id=voice, text=text, format=kind, **values)
        return request, values.get("sample_rate") or DEFAULT_SAMPLE_RATE

    @property
    def content(self) -> dict[str, Any]:
        return check_and_build_content(self.text, _check_text)

    def call(self, timeout: float | None) -> HttpCall:
        request, _ = self._request_and_rate
        values = {"voice": self.system.resolve_voice_name(request.voice_id), **self._fields}
        limits = build_timeouts(
            self.resolve_timeout(timeout), _S_PER_CHAR * len(self.text), stream=self.stream
        )
        function_call = FunctionCall("synthesize", self.text, values, str(request.format), self.stream)
        return HttpCall(self.name, "tts", "POST", SPEECH_PATH, limits, asked=function_call)


class FunctionSpeechStream(FunctionSpeech):
    """Speak a text by a function, and use its pieces while they come."""

    __slots__ = ()
    name = "stream_speech"
    stream = True


@dataclass(frozen=True, eq=False)
class FunctionRecognition(Transcribe):
    """Transcribe a recording by a function."""

    system: FunctionSystem = field(kw_only=True, repr=False)

    @property
    def options(self) -> Any:
        """The fields that were given, as they were given."""
        values = {name: getattr(self, name) for name in OPTIONS}
        if str(self.vad) in {"off", "0"}:
            del values["vad"]
        if self.hotwords is not None:
            values["hotwords"] = to_term_list("hotwords", self.hotwords, rule="2.3")
        return _collect_and_check_fields(self.system, self._function, **values)

    @property
    def _function(self) -> str:
        return "transcribe_stream" if self.streams else "transcribe"

    @property
    def parameters(self) -> dict[str, Any]:
        values = {**self.options, **self.content}
        if self.streams:
            rate, piece_s = self.system.pace
            values |= {"stream": True, "playback_rate": rate, "piece_s": piece_s}
        return values

    def call(self, timeout: float | None) -> HttpCall:
        values = self.options
        if (samples := self._samples) is not None:
            clip = AudioClip(samples.samples, samples.sample_rate, samples.title)
        else:
            with closing(self.recording.open()) as file:
                clip = AudioClip.from_bytes(file.read())
        clip = clip.to_mono()
        if self.system.sample_rate is not None:
            clip = clip.resample(self.system.sample_rate)
        if not clip.frames:
            raise InvalidRequestError("the recording has no sound", parameter="audio")
        expected_s, pace = _S_PER_S * clip.duration_s, self.system.pace if self.streams else None
        if pace is not None and pace[0] is not None:
            expected_s += clip.duration_s / pace[0]
        limits = build_timeouts(self.resolve_timeout(timeout), expected_s)
        function_call = FunctionCall(self._function, clip, values, pace=pace)
        return HttpCall(self.name, "asr", "POST", RECOGNITION_PATH, limits, asked=function_call)

    def count_usage(self, result: Transcript) -> dict[str, float]:
        if (clip := self._samples) is not None:  # which are not encoded for their length
            return {"calls": 1, "recognized_s": clip.duration_s}
        return super().count_usage(result)

    @property
    def _samples(self) -> AudioClip | None:
        """The recording, if it was given as samples."""
        audio = None if callable(getattr(self.audio, "read", None)) else unify_recording(self.audio)
        return audio if isinstance(audio, AudioClip) else None


@dataclass(frozen=True, eq=False, slots=True)
class FunctionTranslation(Translate):
    """Translate a text by a function."""

    system: FunctionSystem = field(kw_only=True, repr=False)

    @property
    def _fields(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in ("source_lang", "target_lang", "context", "model")}
        terms = to_term_list("keywords", self.keywords, rule="2.5") or None
        return _collect_and_check_fields(self.system, "translate", **values, keywords=terms)

    @property
    def parameters(self) -> dict[str, Any]:
        return {**self._fields, **self.content}

    @property
    def content(self) -> dict[str, Any]:
        return check_and_build_content(self.text, _check_text)

    def call(self, timeout: float | None) -> HttpCall:
        text = self.content["text"]
        limits = build_timeouts(self.resolve_timeout(timeout), _S_PER_CHAR * len(text), stream=self.stream)
        function_call = FunctionCall("translate", text, self._fields, stream=self.stream)
        return HttpCall(self.name, "translate", "POST", TRANSLATION_PATH, limits, asked=function_call)


class FunctionTranslationStream(FunctionTranslation):
    """Translate a text by a function, and use its pieces while they come."""

    __slots__ = ()
    name = "stream_translation"
    stream = True


_KINDS: dict[type, type] = {
    Synthesize: FunctionSpeech,
    StreamSpeech: FunctionSpeechStream,
    Transcribe: FunctionRecognition,
    Translate: FunctionTranslation,
    StreamTranslation: FunctionTranslationStream,
}
