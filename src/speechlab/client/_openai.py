"""Translation between the contract and OpenAI's API, for requests and replies.

It covers ``POST /audio/speech``, ``POST /audio/transcriptions`` and ``POST /chat/completions``, as OpenAI documents
them and other services offer them. A parameter without a counterpart is refused, never dropped.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import closing
from dataclasses import dataclass, replace
from email import message_from_bytes
from typing import TYPE_CHECKING, Any, cast

import orjson

from speechlab.client._operations.call import json_body
from speechlab.client._operations.recording import FormBody, sent_fields, sent_recording
from speechlab.client._systems.functions import catalogue_of, named_voices, voice_id
from speechlab.contract import (
    DEFAULT_SAMPLE_RATE,
    RECOGNITION_PATH,
    SPEECH_PATH,
    TRANSLATION_PATH,
    form_body,
)
from speechlab.errors import ConfigurationError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from speechlab.client._operations.call import Body, HttpCall

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
        voices: Names of the voices, or a dict from each name to its languages; the API has no catalogue.

    Raises:
        ConfigurationError: A model or a voice is not text.
    """

    speech: str | None = None
    transcription: str | None = None
    translation: str | None = None
    voices: Iterable[str] | Mapping[str, str] = ()

    def __post_init__(self) -> None:
        for name in _MODELS:
            if not isinstance(getattr(self, name) or "-", str):
                raise ConfigurationError(
                    f"{name} of the adapter is {getattr(self, name)!r:.40}; it must be a text"
                )
        object.__setattr__(self, "voices", named_voices(self.voices, _LANGUAGES))

    @property
    def _languages(self) -> dict[str, str]:
        return dict(cast("Mapping[str, str]", self.voices))

    @property
    def catalogue(self) -> list[dict[str, Any]]:
        """The voices in the form of the contract's catalogue."""
        return catalogue_of(self._languages, str(self.speech))

    @property
    def identity(self) -> str:
        """Identity of the models, which keeps results of different models apart."""
        return "openai " + ", ".join(f"{name} {getattr(self, name) or 'none'}" for name in _MODELS)

    async def asked(self, call: HttpCall) -> HttpCall:
        """The call in the form of OpenAI's API; a call without a counterpart is returned unchanged.

        Raises:
            InvalidRequestError: A parameter has no counterpart in OpenAI's API.
        """
        if call.raw or call.body is None:
            return call
        if call.path == RECOGNITION_PATH:
            return await asyncio.to_thread(self._transcription, call, call.body)
        make = {SPEECH_PATH: self._speech, TRANSLATION_PATH: self._chat}
        return make[call.path](call, await _content(call.body)) if call.path in make else call

    def _speech(self, call: HttpCall, body: bytes) -> HttpCall:
        fields = orjson.loads(body)
        _refuse({"temperature": fields.get("temperature")})
        rate = fields.get("sample_rate")
        _refuse({"sample_rate": None if rate in {None, DEFAULT_SAMPLE_RATE} else rate})
        names = {voice_id(name): name for name in self._languages}
        if fields["voice_id"] not in names:
            known = ", ".join(names.values()) or "none"
            message = f"voice {fields['voice_id']!r} is none of the adapter's, which has {known}"
            raise InvalidRequestError(message, parameter="voice_id")
        asked = {
            "model": self._model("speech"),
            "input": fields["text"],
            "voice": names[fields["voice_id"]],
            "response_format": _FORMATS.get(fields["format"], fields["format"]),
        }
        return replace(call, path="/audio/speech", body=json_body(asked))

    def _transcription(self, call: HttpCall, body: Body) -> HttpCall:
        from speechlab.audio import sniff  # slow to import, and most calls do not need it

        recording, fields = sent_recording(body)
        with closing(recording.open()) as file:
            kind = sniff(file.read(_HEAD))
        segments = fields.pop("vad", "off")
        if segments not in {"off", "segments"}:
            _refuse({"vad": segments})
        verbose = segments == "segments" or self._identifies("language" in fields)
        asked = [("model", self._model("transcription"))]
        asked += [(name, str(fields.pop(name))) for name in ("language", "temperature") if name in fields]
        if words := fields.pop("hotwords", None):
            asked.append(("prompt", ", ".join(words)))
        _refuse(fields)
        asked.append(("response_format", "verbose_json" if verbose else "json"))
        if segments == "segments":
            asked.append(("timestamp_granularities[]", "segment"))
        boundary = secrets.token_hex(16)
        tail, form = form_body(asked, boundary)
        named = f'name="file"; filename="audio.{kind}"'
        about = f"Content-Disposition: form-data; {named}\r\nContent-Type: application/octet-stream"
        head = f"--{boundary}\r\n{about}\r\n\r\n".encode()
        return replace(
            call, path="/audio/transcriptions", body=FormBody(recording, head, b"\r\n" + tail, form)
        )

    def _identifies(self, told: bool) -> bool:
        """Whether to request the verbose form, which has the language; not all models offer it."""
        return not told and "whisper" in self._model("transcription").lower()

    def _chat(self, call: HttpCall, body: bytes) -> HttpCall:
        from speechlab.text import language_name

        kind = call.body.content_type if call.body else ""
        fields: dict[str, list[str]] = {}
        for part in message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body).walk():
            name, value = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
            if isinstance(name, str) and isinstance(value, bytes):
                fields.setdefault(name, []).append(value.decode())
        source, target = (language_name(fields[name][0]) for name in ("source_lang", "target_lang"))
        rules = [f"Translate the user's text from {source} into {target}. Reply with the translation alone."]
        if words := fields.get("keywords"):
            rules.append(f"Keep these terms exactly as they are: {'; '.join(words)}.")
        if context := fields.get("context"):
            rules.append(f"Context, which is not to be translated: {context[0]}")
        stream = fields.get("stream") == ["true"]
        asked = {
            "model": fields["model"][0] if "model" in fields else self._model("translation"),
            "messages": [
                {"role": "system", "content": "\n".join(rules)},
                {"role": "user", "content": fields["text"][0]},
            ],
            **({"stream": True, "stream_options": {"include_usage": True}} if stream else {}),
        }
        return replace(call, path="/chat/completions", body=json_body(asked))

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
            fields = orjson.loads(content)
        except orjson.JSONDecodeError:
            return status, content
        if not isinstance(fields, dict):
            return status, content
        error = fields.get("error")
        if status == 429 and isinstance(error, dict) and error.get("code") == "insufficient_quota":
            return 403, content  # a retry does not help
        if status == 200 and call.path == RECOGNITION_PATH:
            fields["language"] = _code(fields.get("language"))
            if call.body is None or sent_fields(call.body).get("vad") != "segments":
                fields.pop("segments", None)  # part of the verbose form that has the language
            for segment in fields.get("segments") or ():
                segment["text"] = str(segment.get("text", "")).strip()
            return status, orjson.dumps(fields)
        return status, content

    def reads(self, call: HttpCall, status: int) -> bool:
        """Whether a reply has to be read completely before it is passed on."""
        return not call.raw and (status >= 400 or call.path == RECOGNITION_PATH)


async def _content(body: Body) -> bytes:
    content = body.open()
    return content if isinstance(content, bytes) else b"".join([piece async for piece in content])


_MODELS = ("speech", "transcription", "translation")


def _refuse(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if value is not None:
            message = f"{name}={value!r:.40} has no counterpart in OpenAI's API{_ADVICE}"
            raise InvalidRequestError(message, parameter=name)


def _code(language: object) -> str:
    """The code of a language, given as a code or as its English name."""
    from speechlab.text import languages_in

    known = languages_in(language) & {"ja", "en", "zh"} if isinstance(language, str) and language else set()
    return next(iter(known)) if len(known) == 1 else str(language or "")
