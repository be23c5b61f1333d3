"""Translation between the contract and OpenAI's API, for requests and replies.

It covers ``POST /audio/speech``, ``POST /audio/transcriptions`` and ``POST /chat/completions``, as OpenAI documents
them and other services offer them. A parameter without a counterpart is refused, never dropped.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, cast

import orjson

from speechlab.client._operations.call import HttpCall, build_json_body
from speechlab.client._operations.recording import RecordingBody
from speechlab.client._systems.functions import build_catalogue, build_voice_id, to_voice_languages
from speechlab.contract import (
    DEFAULT_SAMPLE_RATE,
    RECOGNITION_PATH,
    SPEECH_PATH,
    encode_form,
    parse_lenient_json,
)
from speechlab.errors import ConfigurationError, InvalidRequestError

TRANSCRIPTION_PATH = "/audio/transcriptions"
# Formats with another name in OpenAI's API.
_FORMATS = {"ogg": "opus"}
# Bytes at the start of a recording that show its format.
_HEAD = 4_096
_LANGUAGES = "Japanese, English, Chinese"
_ADVICE = "; leave it out, or ask a service of the contract"


@dataclass(frozen=True, kw_only=True)
class OpenAIAdapter:
    """Adapter for services that speak OpenAI's API instead of the contract.

    >>> adapter = OpenAIAdapter(speech="tts-1", voices=["alloy", "nova"])
    >>> [voice["description"] for voice in adapter.catalogue]
    ['alloy (tts-1: alloy)', 'nova (tts-1: nova)']

    Args:
        speech: Model of ``/audio/speech``; None if the service has none.
        transcription: Model of ``/audio/transcriptions``; None if the service has none.
        translation: Model of ``/chat/completions`` for translations, unless a call names another.
        voices: Names of the voices, or a dict from each name to its languages; the API has no catalogue. A voice may
            have options, under any name: ``{"calm": {"voice": "alloy", "instructions": "Speak calmly.", "speed": 0.9,
            "language": "English"}}``, each of which may be left out.

    Raises:
        ConfigurationError: A model or a voice is not text, or an option of a voice is not known.
    """

    speech: str | None = None
    transcription: str | None = None
    translation: str | None = None
    voices: Iterable[str] | Mapping[str, str | Mapping[str, Any]] = ()
    _options: Mapping[str, dict[str, Any]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name in _MODELS:
            if not isinstance(getattr(self, name) or "-", str):
                raise ConfigurationError(
                    f"{name} of the adapter is {getattr(self, name)!r:.40}; it must be a text"
                )
        languages = cast("Any", self.voices)
        if isinstance(languages, Mapping):
            options = {
                name: _check_voice_options(name, value)
                for name, value in languages.items()
                if isinstance(value, Mapping)
            }
            object.__setattr__(self, "_options", options)
            languages = {
                name: options.get(name, {}).pop("language", _LANGUAGES) if name in options else value
                for name, value in languages.items()
            }
        object.__setattr__(self, "voices", to_voice_languages(languages, _LANGUAGES))

    @property
    def _languages(self) -> dict[str, str]:
        return dict(cast("Mapping[str, str]", self.voices))

    def _build_voice_id(self, name: str) -> str:
        """Return the id of a voice, which is another one with other options."""
        options = self._options.get(name)
        return build_voice_id(
            f"{name} {orjson.dumps(options, option=orjson.OPT_SORT_KEYS).decode()}" if options else name
        )

    @property
    def catalogue(self) -> list[dict[str, Any]]:
        """The voices in the form of the contract's catalogue."""
        voices = build_catalogue(self._languages, str(self.speech))
        return [
            {**voice, "id": self._build_voice_id(name)}
            for voice, name in zip(voices, self._languages, strict=True)
        ]

    @property
    def identity(self) -> str:
        """Identity of the models, which keeps results of different models apart."""
        return "openai " + ", ".join(f"{name} {getattr(self, name) or 'none'}" for name in _MODELS)

    def to_openai_call(self, call: HttpCall) -> HttpCall:
        """Return the call of an operation in the form of OpenAI's API."""
        if call.path == RECOGNITION_PATH:
            return self._to_transcription_call(call)
        return self._to_speech_call(call) if call.path == SPEECH_PATH else self._to_chat_call(call)

    def _to_speech_call(self, call: HttpCall) -> HttpCall:
        fields = call.fields
        _check_fields_not_given({"temperature": fields.get("temperature")})
        rate = fields.get("sample_rate")
        _check_fields_not_given({"sample_rate": None if rate in {None, DEFAULT_SAMPLE_RATE} else rate})
        names = {self._build_voice_id(name): name for name in self._languages}
        if fields["voice_id"] not in names:
            listing = ", ".join(names.values()) or "none"
            message = f"voice {fields['voice_id']!r} is none of the adapter's, which has {listing}"
            raise InvalidRequestError(message, parameter="voice_id")
        request = {
            "model": self._require_model("speech"),
            "input": fields["text"],
            "voice": names[fields["voice_id"]],
            "response_format": _FORMATS.get(fields["format"], fields["format"]),
            **self._options.get(names[fields["voice_id"]], {}),
        }
        return replace(call, path="/audio/speech", body=build_json_body(request))

    def _to_transcription_call(self, call: HttpCall) -> HttpCall:
        from speechlab.audio import detect_format  # slow to import, and most calls do not need it

        recording, fields = cast("RecordingBody", call.body).recording, dict(call.fields)
        with closing(recording.open()) as file:
            kind = detect_format(file.read(_HEAD))
        segments = fields.pop("vad", "off")
        if segments not in {"off", "segments"}:
            _check_fields_not_given({"vad": segments})
        model = self._require_model("transcription")
        # the verbose form, which has the language, is not offered by all models
        verbose = segments == "segments" or ("language" not in fields and "whisper" in model.lower())
        pairs = [("model", model)]
        pairs += [(name, str(fields.pop(name))) for name in ("language", "temperature") if name in fields]
        if words := fields.pop("hotwords", None):
            pairs.append(("prompt", ", ".join(words)))
        _check_fields_not_given(fields)
        pairs.append(("response_format", "verbose_json" if verbose else "json"))
        if segments == "segments":
            pairs += [("timestamp_granularities[]", unit) for unit in ("segment", "word")]
        boundary = secrets.token_hex(16)
        tail, form = encode_form(pairs, boundary)
        disposition = f'name="file"; filename="audio.{kind}"'
        about = f"Content-Disposition: form-data; {disposition}\r\nContent-Type: application/octet-stream"
        head = f"--{boundary}\r\n{about}\r\n\r\n".encode()
        return replace(
            call, path=TRANSCRIPTION_PATH, body=RecordingBody(recording, head, b"\r\n" + tail, form)
        )

    def _to_chat_call(self, call: HttpCall) -> HttpCall:
        from speechlab.text import get_language_name

        fields: dict[str, list[str]] = {}
        for name, value in call.fields:
            fields.setdefault(name, []).append(value)
        source, target = (get_language_name(fields[name][0]) for name in ("source_lang", "target_lang"))
        rules = [f"Translate the user's text from {source} into {target}. Reply with the translation alone."]
        if words := fields.get("keywords"):
            rules.append(f"Keep these terms exactly as they are: {'; '.join(words)}.")
        if context := fields.get("context"):
            rules.append(f"Context, which is not to be translated: {context[0]}")
        stream = fields.get("stream") == ["true"]
        request = {
            "model": fields["model"][0] if "model" in fields else self._require_model("translation"),
            "messages": [
                {"role": "system", "content": "\n".join(rules)},
                {"role": "user", "content": fields["text"][0]},
            ],
            **({"stream": True, "stream_options": {"include_usage": True}} if stream else {}),
        }
        return replace(call, path="/chat/completions", body=build_json_body(request))

    def _require_model(self, name: str) -> str:
        model: str | None = getattr(self, name)
        if model is None:
            message = f"the adapter has no model for {name}; give one, as in OpenAIAdapter({name}='…')"
            raise InvalidRequestError(message, parameter="model")
        return model

    @staticmethod
    def to_contract_reply(call: HttpCall, status: int, content: bytes) -> tuple[int, bytes]:
        """Status and body of a complete reply in the form of the contract."""
        try:
            streamed = status == 200 and content.lstrip()[:6] in {b"data: ", b"event:"}
            fields = _parse_transcript_events(content) if streamed else parse_lenient_json(content)
        except ValueError:
            return status, content
        if not isinstance(fields, dict):
            return status, content
        error = fields.get("error")
        if status == 429 and isinstance(error, dict) and error.get("code") == "insufficient_quota":
            return 403, content  # a retry does not help
        if status == 200 and call.path == TRANSCRIPTION_PATH:
            fields["language"] = _to_language_code(fields.get("language"))
            if (call.fields or {}).get("vad") != "segments":
                fields.pop("segments", None)  # part of the verbose form that has the language
            segments = fields.get("segments")
            for segment in segments if isinstance(segments, list) else ():
                if isinstance(segment, dict):
                    segment["text"] = str(segment.get("text", "")).strip()
                    _convert_nanoseconds(segment)
            return status, orjson.dumps(fields)
        return status, content


# No recording has so many seconds, and no segment is shorter in nanoseconds.
_NANOSECONDS = 10_000_000
_MODELS = ("speech", "transcription", "translation")


def _check_voice_options(name: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a voice."""
    kinds: dict[str, tuple[type, ...]] = {
        "voice": (str,),
        "language": (str,),
        "instructions": (str,),
        "speed": (int, float),
    }
    for option, value in given.items():
        if option not in kinds or not isinstance(value, kinds[option]) or isinstance(value, bool):
            allowed = "give voice, language, instructions (texts), speed"
            raise ConfigurationError(f"the voice {name!r:.40} has {option}={value!r:.40}; {allowed}")
    return dict(given)


def _parse_transcript_events(content: bytes) -> dict[str, Any]:
    """Return a streamed transcript (``transcript.text.delta``, ``transcript.text.done``) as one reply."""
    lines = [line[5:].strip() for line in content.splitlines() if line.startswith(b"data:")]
    values = [parse_lenient_json(line) for line in lines if line != b"[DONE]"]
    events = [event for event in values if isinstance(event, dict)]
    last = next((event for event in events if event.get("type") == "transcript.text.done"), {})
    deltas = [event.get("delta") for event in events if event.get("type") == "transcript.text.delta"]
    return {"text": "".join(delta for delta in deltas if isinstance(delta, str)), **last}


def _convert_nanoseconds(segment: dict[str, Any]) -> None:
    """Convert the times of a segment to seconds if they are in nanoseconds, as LocalAI sends them."""
    start, end = segment.get("start"), segment.get("end")
    if isinstance(start, (int, float)) and isinstance(end, (int, float)) and end >= _NANOSECONDS:
        segment |= {"start": start / 1e9, "end": end / 1e9}


def _check_fields_not_given(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if value is not None:
            message = f"{name}={value!r:.40} has no counterpart in OpenAI's API{_ADVICE}"
            raise InvalidRequestError(message, parameter=name)


def _to_language_code(language: object) -> str:
    """Return the code of a language, given as a code or as its English name."""
    from speechlab.text import language_code

    try:
        return language_code(language) if isinstance(language, str) else str(language or "")
    except InvalidRequestError:
        return str(language or "")
