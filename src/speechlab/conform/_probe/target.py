"""The deployment under test: its address, its voices (whose form is not trusted), its replies, and the findings."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast
from uuid import uuid4

from speechlab.conform._probe.findings import Evidence, Observation, ProbeOptions, Unmet, Untried
from speechlab.conform._probe.http import Address, Exchange, exchange, shortened
from speechlab.contract import (
    DEFAULT_SAMPLE_RATE,
    RECOGNITION_PATH,
    SPEECH_PATH,
    TRANSLATION_PATH,
    VOICES_PATH,
    form_body,
    realtime_base,
)

_T = TypeVar("_T")
_METERED = {SPEECH_PATH: "audio/", RECOGNITION_PATH: "application/json", TRANSLATION_PATH: ""}


class Target:
    """A deployment under test."""

    def __init__(self, options: ProbeOptions) -> None:
        self.options = options
        self.http = Address.of(options.base_url)
        self.ws = Address.of(options.ws_base_url or realtime_base(options.base_url))
        self.metered = 0
        self.findings: list[Observation] = []
        self._kept: dict[str, Any] = {}
        self._secrets = [key for key in options.keys if key]

    # Findings

    def require(self, condition: object, expected: str, evidence: Evidence | None = None) -> bool:
        """Record a finding unless the condition holds; the check continues."""
        if not condition:
            self.note(Unmet(expected, evidence))
        return bool(condition)

    def insist(self, condition: object, expected: str, evidence: Evidence | None = None) -> None:
        """Record a finding and end the check unless the condition holds."""
        if not condition:
            raise Unmet(expected, evidence)

    def answers(self, reply: Exchange, status: int, expected: str = "") -> bool:
        """Record a finding unless a reply has this status."""
        return self.require(reply.status == status, expected or str(status), reply)

    def succeeded(self, reply: Exchange, expected: str = "200") -> Exchange:
        """Return a reply of status 200, or end the check."""
        self.insist(reply.status == 200, expected, reply)
        return reply

    def note(self, unmet: Unmet) -> None:
        sent, came = (unmet.evidence.sent, unmet.evidence.came) if unmet.evidence else ("", "")
        self.findings.append(Observation(unmet.expected, self.redacted(sent), self.redacted(came)))

    def redacted(self, text: str) -> str:
        """Return a text without any key, even one that the service sends back."""
        for secret in self._secrets:
            text = text.replace(secret, "•••")
            text = text.replace(secret.partition(":")[2] or secret, "•••")
        return text

    def kept(self, name: str, make: Callable[[], _T]) -> _T:
        """Return the object with this name, which is made on first use.

        A failure is kept as well: the first check with it fails, and later ones are not tried.
        """
        if name not in self._kept:
            try:
                self._kept[name] = make()
            except (Unmet, Untried, OSError) as trouble:
                self._kept[name] = trouble
                raise
        value = self._kept[name]
        if isinstance(value, Unmet):
            raise Untried(f"a precondition fails: {value.expected}") from value
        if isinstance(value, Exception):
            raise value
        return cast("_T", value)

    # HTTP

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        headers: Iterable[tuple[str, str]] = (),
        auth: str | tuple[str, ...] | None = "",
        shown: str = "",
        first_only: bool = False,
    ) -> Exchange:
        """Send a request; ``auth`` is "" for the key, None for no header, else the values of the header."""
        given_auth: tuple[str, ...] = (auth,) if isinstance(auth, str) else auth or ()
        if auth == "":
            given_auth = (f"Bearer {self.options.api_key}",)
        given = [
            ("Host", self.http.name),
            ("User-Agent", "speechlab-conform"),
            ("Accept", "*/*"),
            ("Connection", "close"),
            *(("Authorization", value) for value in given_auth),
            *headers,
        ]
        if body or method != "GET":
            given.append(("Content-Length", str(len(body))))
        head = f"{method} {self.http.path}{path} HTTP/1.1\r\n"
        raw = (head + "".join(f"{name}: {value}\r\n" for name, value in given)).encode("latin-1")
        extra = "".join(f"; {name}: {value}" for name, value in headers)
        shown_auth = ""
        if auth != "":
            values = " | ".join(given_auth)
            shown_auth = "(no Authorization) " if auth is None else f"(Authorization: {values}) "
        text = shown or shortened(body.decode("utf-8", "replace"))
        summary = f"{method} {path}{extra} {shown_auth}{text}".rstrip()
        raw += b"\r\n" + body
        for attempt in range(4):
            reply = exchange(self.http, raw, summary, self.options.timeout_s, first_only=first_only)
            if reply.status != 429:
                break
            wait = reply.header("retry-after") or ""
            time.sleep(min(float(wait) if wait.isdigit() else 2.0**attempt, 30.0))
        else:
            raise Untried("the service keeps answering 429: too many calls")
        kind = _METERED.get(path)
        if kind is not None and reply.status == 200 and reply.media_type.startswith(kind):
            self.metered += 1
        return reply

    def post(self, path: str, fields: Any, **options: Any) -> Exchange:
        """Post JSON: a value, or unchanged bytes."""
        raw = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        if isinstance(fields, dict) and isinstance(fields.get("audio"), str):
            brief = {**fields, "audio": shortened(fields["audio"], 60)}
            options.setdefault("shown", shortened(json.dumps(brief, ensure_ascii=False)))
        headers = options.pop("headers", (("Content-Type", "application/json"),))
        return self.request("POST", path, raw, headers=headers, **options)

    def speak(self, *, first_only: bool = False, auth: Any = "", **fields: Any) -> Exchange:
        """``POST /tts`` with a short text; fields replace those of the request, and ``...`` leaves one out."""
        sent = {"voice_id": self.voice["id"], "text": self.text, "format": self.format} | fields
        return self.post(SPEECH_PATH, given(sent), first_only=first_only, auth=auth)

    def recognize(self, audio: Any = ..., **fields: Any) -> Exchange:
        """``POST /asr/srt/audio_llm``; bytes are encoded, ``...`` leaves the audio out."""
        if isinstance(audio, bytes):
            audio = base64.b64encode(audio).decode()
        return self.post(RECOGNITION_PATH, fields if audio is ... else {"audio": audio, **fields})

    def translate(self, *pairs: tuple[str, str], **fields: str | None) -> Exchange:
        """``POST /translate/`` with a short text; None leaves a field out."""
        sent = {"text": "Hello.", "source_lang": "en", "target_lang": "ja"} | fields
        return self.form([(name, value) for name, value in sent.items() if value is not None] + list(pairs))

    def form(self, pairs: list[tuple[str, str]], path: str = TRANSLATION_PATH) -> Exchange:
        body, kind = form_body(pairs, "speechlab-boundary")
        text = shortened(json.dumps(pairs, ensure_ascii=False))
        return self.request("POST", path, body, headers=[("Content-Type", kind)], shown=text)

    # Voices, texts and keys

    @property
    def catalogue(self) -> Exchange:
        return self.kept("catalogue", lambda: self.request("GET", VOICES_PATH))

    @property
    def voices(self) -> list[dict[str, Any]]:
        """Voices, from either of the two documented forms."""

        def read() -> list[dict[str, Any]]:
            body = self.catalogue.json()
            listed = body.get("voices") if isinstance(body, dict) else body
            right = self.catalogue.status == 200 and isinstance(listed, list)
            self.insist(right, "voices are listed", self.catalogue)
            assert isinstance(listed, list)
            usable = [each for each in listed if isinstance(each, dict) and isinstance(each.get("id"), str)]
            if not usable:
                raise Untried("the catalogue lists no voice")
            return usable

        return self.kept("voices", read)

    @property
    def voice(self) -> dict[str, Any]:
        if self.options.voice is not None:
            return self._named(self.options.voice)
        return min(self.voices, key=lambda each: ("wav" not in formats_of(each), not each.get("streaming")))

    @property
    def q_voice(self) -> dict[str, Any]:
        if self.options.q_voice is None:
            raise Untried("needs --q-voice, the id of a voice of provider Q")
        return self._named(self.options.q_voice)

    def voice_where(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Return the first voice that fulfils a condition."""
        voice = next(filter(wanted, [self.voice, *self.voices]), None)
        if voice is None:
            raise Untried(f"the catalogue has no voice {what}")
        return voice

    @property
    def format(self) -> str:
        """A format of the voice; WAV if it has that."""
        formats = formats_of(self.voice)
        return "wav" if "wav" in formats or not formats else formats[0]

    @property
    def stream_format(self) -> str:
        """A format in which the voice streams."""

        def find() -> str:
            if self.voice.get("streaming") is not True:
                raise Untried("the voice does not stream; choose another one with --voice")
            for name in sorted(formats_of(self.voice), key=_place):
                if self.speak(format=name, stream=True).status == 200:
                    return name
            raise Untried("the voice streams in none of its formats")

        return self.kept("stream_format", find)

    def unstreamable(self, refused: Callable[[int], bool]) -> list[str]:
        """Formats of the voice whose streams are answered with such a status."""
        assert self.stream_format  # or no format would stream, and nothing could be said of the others
        formats = formats_of(self.voice)
        cannot = [name for name in formats if refused(self.speak(format=name, stream=True).status)]
        if not cannot:
            raise Untried("the voice streams in each of its formats")
        return cannot

    @property
    def text(self) -> str:
        """A short text that the voice can read."""
        return "Hello." if "en" in str(self.voice.get("language", "en")).lower() else "こんにちは。"

    @property
    def longest_text(self) -> str:
        """A text of the maximum number of code points, most of which need two units of UTF-16."""
        return self.text + "\U0001f600" * (self.options.text_limit - len(self.text))

    @property
    def several_sentences(self) -> str:
        """A text whose synthesis takes a moment."""
        if self.text.isascii():
            return "This is the first of them. Here is the second one. And a third one ends it. " * 3
        return "これは最初の文です。ここに二つ目の文があります。三つ目でおしまいです。" * 3

    def restricted(self, name: str = "restricted_key") -> str:
        """Return another key of the options."""
        key = getattr(self.options, name)
        if key is None:
            raise Untried(f"needs --{name.replace('_', '-')}")
        return cast("str", key)

    def unknown_id(self) -> str:
        return str(uuid4())

    def unknown_key(self) -> str:
        """Return a key of the right form that does not exist."""
        prefix, colon, _ = self.options.api_key.partition(":")
        return f"{prefix if colon else 'sl'}:conform-{self.unknown_id()}"

    def _named(self, voice_id: str) -> dict[str, Any]:
        lowered = voice_id.lower()
        voice = next((each for each in self.voices if each["id"].lower() == lowered), None)
        if voice is None:
            raise Untried(f"the catalogue has no voice {voice_id}")
        return voice

    def need_recognition(self) -> None:
        self._need("recognition", self.recognize)

    def need_translation(self) -> None:
        self._need("translation", lambda: self.form([("target_lang", "ja")]))

    def _need(self, what: str, ask: Callable[[], Exchange]) -> None:
        reply = self.kept(f"{what} is there", ask)
        if reply.status in {403, 404} or reply.status >= 500:
            raise Untried(f"{what} is not available here: {shortened(reply.came, 120)}")


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields without those that are ``...``."""
    return {name: value for name, value in fields.items() if value is not ...}


def _place(name: str) -> int:
    # Raw samples arrive earliest. Formats that are not in the contract are tried last.
    order = ("pcm", "wav", "mp3", "ogg", "flac")
    return order.index(name) if name in order else len(order)


def formats_of(voice: dict[str, Any]) -> list[str]:
    """Return a voice's formats that are strings."""
    formats = voice.get("formats")
    return [each for each in formats if isinstance(each, str)] if isinstance(formats, list) else []


def rates_of(voice: dict[str, Any]) -> list[int]:
    """Return a voice's sample rates; none if the field is absent."""
    rates = voice.get("sample_rates")
    return [each for each in rates if type(each) is int] if isinstance(rates, list) else []


def another_rate(voice: dict[str, Any]) -> int | None:
    """Return a rate of a voice other than the default, or None."""
    return next((rate for rate in rates_of(voice) if rate != DEFAULT_SAMPLE_RATE), None)


def unlisted_rate(voice: dict[str, Any]) -> int:
    """Return a usual rate that a voice with one rate does not list."""
    return 16_000 if rates_of(voice) != [16_000] else 8_000


def has_one_rate(voice: dict[str, Any]) -> bool:
    """Whether a voice has one sample rate only."""
    return len(rates_of(voice)) == 1


def refused(t: Target, reply: Exchange, why: str) -> None:
    """Record a finding unless the reply is a 400."""
    t.answers(reply, 400, f"400: {why}")


def with_each(attempt: Callable[..., object], **values: Iterable[Any]) -> Callable[[Target], None]:
    """A part of a check: an attempt with each of these values of a field."""

    def step(t: Target) -> None:
        for name, several in values.items():
            for value in several:
                attempt(t, **{name: value})

    return step


def refuses(ask: Callable[..., Exchange], why: str, **wrong: Iterable[Any]) -> Callable[[Target], None]:
    """A part of a check: each of these values of a field is refused with 400."""
    return with_each(lambda t, **fields: refused(t, ask(t, **fields), why), **wrong)


def json_object(t: Target, reply: Exchange) -> dict[str, Any]:
    """Return the JSON object of a successful reply, or end the check."""
    t.require(t.succeeded(reply).media_type == "application/json", "application/json", reply)
    body = reply.json()
    t.insist(isinstance(body, dict), "an object", reply)
    assert isinstance(body, dict)
    return body


def full_body(reply: Exchange) -> dict[str, Any] | None:
    """Return the body in the form of section 2.8, or None if it has another form."""
    body = reply.json() if reply.media_type == "application/json" else None
    if not isinstance(body, dict) or not isinstance(body.get("context"), list):
        return None
    strings = [*body["context"], body.get("name"), body.get("error")]
    right = type(body.get("code")) is int and all(isinstance(value, str) for value in strings)
    return body if right else None
