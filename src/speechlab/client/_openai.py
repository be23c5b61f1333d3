"""Translation between the contract and OpenAI's API, for requests and replies.

It covers ``POST /audio/speech``, ``POST /audio/transcriptions`` and ``POST /chat/completions``, as OpenAI documents
them and other services offer them. A parameter without a counterpart is refused, never dropped.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, cast

import orjson

from speechlab.client._operations.call import HttpCall, json_body
from speechlab.client._operations.recording import RecordingBody
from speechlab.client._systems.functions import catalogue_of, named_voices, voice_id
from speechlab.contract import DEFAULT_SAMPLE_RATE, RECOGNITION_PATH, SPEECH_PATH, form_body, read_json_reply
from speechlab.errors import ConfigurationError, InvalidRequestError

_FORMATS = {"ogg": "opus"}
"""Formats with another name in OpenAI's API."""
_HEAD = 4_096
"""Bytes at the start of a recording that show its format."""
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
                name: _options(name, value) for name, value in languages.items() if isinstance(value, Mapping)
            }
            object.__setattr__(self, "_options", options)
            languages = {
                name: options.get(name, {}).pop("language", _LANGUAGES) if name in options else value
                for name, value in languages.items()
            }
        object.__setattr__(self, "voices", named_voices(languages, _LANGUAGES))

    @property
    def _languages(self) -> dict[str, str]:
        return dict(cast("Mapping[str, str]", self.voices))

    def _id(self, name: str) -> str:
        """The id of a voice, which is another one with other options."""
        options = self._options.get(name)
        return voice_id(
            f"{name} {orjson.dumps(options, option=orjson.OPT_SORT_KEYS).decode()}" if options else name
        )

    @property
    def catalogue(self) -> list[dict[str, Any]]:
        """The voices in the form of the contract's catalogue."""
        voices = catalogue_of(self._languages, str(self.speech))
        return [{**voice, "id": self._id(name)} for voice, name in zip(voices, self._languages, strict=True)]

    @property
    def identity(self) -> str:
        """Identity of the models, which keeps results of different models apart."""
        return "openai " + ", ".join(f"{name} {getattr(self, name) or 'none'}" for name in _MODELS)

    async def asked(self, call: HttpCall) -> HttpCall:
        """The call in the form of OpenAI's API; a call without a counterpart is returned unchanged."""
        if call.fields is None:
            return call
        if call.path == RECOGNITION_PATH:
            return await asyncio.to_thread(self._transcription, call)
        return self._speech(call) if call.path == SPEECH_PATH else self._chat(call)

    def _speech(self, call: HttpCall) -> HttpCall:
        fields = call.fields
        _refuse({"temperature": fields.get("temperature")})
        rate = fields.get("sample_rate")
        _refuse({"sample_rate": None if rate in {None, DEFAULT_SAMPLE_RATE} else rate})
        names = {self._id(name): name for name in self._languages}
        if fields["voice_id"] not in names:
            listing = ", ".join(names.values()) or "none"
            message = f"voice {fields['voice_id']!r} is none of the adapter's, which has {listing}"
            raise InvalidRequestError(message, parameter="voice_id")
        request = {
            "model": self._model("speech"),
            "input": fields["text"],
            "voice": names[fields["voice_id"]],
            "response_format": _FORMATS.get(fields["format"], fields["format"]),
            **self._options.get(names[fields["voice_id"]], {}),
        }
        return replace(call, path="/audio/speech", body=json_body(request))

    def _transcription(self, call: HttpCall) -> HttpCall:
        from speechlab.audio import sniff  # slow to import, and most calls do not need it

        recording, fields = cast("RecordingBody", call.body).recording, dict(call.fields)
        with closing(recording.open()) as file:
            kind = sniff(file.read(_HEAD))
        segments = fields.pop("vad", "off")
        if segments not in {"off", "segments"}:
            _refuse({"vad": segments})
        model = self._model("transcription")
        # the verbose form, which has the language, is not offered by all models
        verbose = segments == "segments" or ("language" not in fields and "whisper" in model.lower())
        pairs = [("model", model)]
        pairs += [(name, str(fields.pop(name))) for name in ("language", "temperature") if name in fields]
        if words := fields.pop("hotwords", None):
            pairs.append(("prompt", ", ".join(words)))
        _refuse(fields)
        pairs.append(("response_format", "verbose_json" if verbose else "json"))
        if segments == "segments":
            pairs += [("timestamp_granularities[]", unit) for unit in ("segment", "word")]
        boundary = secrets.token_hex(16)
        tail, form = form_body(pairs, boundary)
        disposition = f'name="file"; filename="audio.{kind}"'
        about = f"Content-Disposition: form-data; {disposition}\r\nContent-Type: application/octet-stream"
        head = f"--{boundary}\r\n{about}\r\n\r\n".encode()
        return replace(
            call, path="/audio/transcriptions", body=RecordingBody(recording, head, b"\r\n" + tail, form)
        )

    def _chat(self, call: HttpCall) -> HttpCall:
        from speechlab.text import language_name

        fields: dict[str, list[str]] = {}
        for name, value in call.fields:
            fields.setdefault(name, []).append(value)
        source, target = (language_name(fields[name][0]) for name in ("source_lang", "target_lang"))
        rules = [f"Translate the user's text from {source} into {target}. Reply with the translation alone."]
        if words := fields.get("keywords"):
            rules.append(f"Keep these terms exactly as they are: {'; '.join(words)}.")
        if context := fields.get("context"):
            rules.append(f"Context, which is not to be translated: {context[0]}")
        stream = fields.get("stream") == ["true"]
        request = {
            "model": fields["model"][0] if "model" in fields else self._model("translation"),
            "messages": [
                {"role": "system", "content": "\n".join(rules)},
                {"role": "user", "content": fields["text"][0]},
            ],
            **({"stream": True, "stream_options": {"include_usage": True}} if stream else {}),
        }
        return replace(call, path="/chat/completions", body=json_body(request))

    def _model(self, name: str) -> str:
        model: str | None = getattr(self, name)
        if model is None:
            message = f"the adapter has no model for {name}; give one, as in OpenAIAdapter({name}='…')"
            raise InvalidRequestError(message, parameter="model")
        return model

    @staticmethod
    def answered(call: HttpCall, status: int, content: bytes) -> tuple[int, bytes]:
        """Status and body of a complete reply in the form of the contract."""
        try:
            streamed = status == 200 and content.lstrip()[:6] in {b"data: ", b"event:"}
            fields = _of_events(content) if streamed else read_json_reply(content)
        except ValueError:
            return status, content
        if not isinstance(fields, dict):
            return status, content
        error = fields.get("error")
        if status == 429 and isinstance(error, dict) and error.get("code") == "insufficient_quota":
            return 403, content  # a retry does not help
        if status == 200 and call.path == RECOGNITION_PATH:
            fields["language"] = _code(fields.get("language"))
            if (call.fields or {}).get("vad") != "segments":
                fields.pop("segments", None)  # part of the verbose form that has the language
            segments = fields.get("segments")
            for segment in segments if isinstance(segments, list) else ():
                if isinstance(segment, dict):
                    segment["text"] = str(segment.get("text", "")).strip()
            return status, orjson.dumps(fields)
        return status, content

    def reads(self, call: HttpCall, status: int) -> bool:
        """Whether a reply has to be read completely before it is passed on."""
        return not call.raw and (status >= 400 or call.path == RECOGNITION_PATH)


_MODELS = ("speech", "transcription", "translation")


def _options(name: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a voice."""
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


def _of_events(content: bytes) -> dict[str, Any]:
    """A streamed transcript (``transcript.text.delta``, ``transcript.text.done``) as one reply."""
    lines = [line[5:].strip() for line in content.splitlines() if line.startswith(b"data:")]
    values = [read_json_reply(line) for line in lines if line != b"[DONE]"]
    events = [event for event in values if isinstance(event, dict)]
    last = next((event for event in events if event.get("type") == "transcript.text.done"), {})
    deltas = [event.get("delta") for event in events if event.get("type") == "transcript.text.delta"]
    return {"text": "".join(delta for delta in deltas if isinstance(delta, str)), **last}


def _refuse(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if value is not None:
            message = f"{name}={value!r:.40} has no counterpart in OpenAI's API{_ADVICE}"
            raise InvalidRequestError(message, parameter=name)


def _code(language: object) -> str:
    """The code of a language, given as a code or as its English name."""
    from speechlab.text import languages_in

    codes = languages_in(language) & {"ja", "en", "zh"} if isinstance(language, str) and language else set()
    return next(iter(codes)) if len(codes) == 1 else str(language or "")
