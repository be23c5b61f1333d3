"""The deployment under test: its address, its voices (whose form is not trusted), its replies, and the findings."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast
from uuid import uuid4

from speechlab.conform._probe.findings import (
    CheckSkipped,
    Evidence,
    ExpectationUnmet,
    Observation,
    ProbeOptions,
)
from speechlab.conform._probe.http import Address, Exchange, send_request, shorten_middle
from speechlab.contract import (
    DEFAULT_SAMPLE_RATE,
    RECOGNITION_PATH,
    SPEECH_PATH,
    TRANSLATION_PATH,
    VOICES_PATH,
    encode_form,
    to_realtime_url,
)

_T = TypeVar("_T")
_METERED_TYPES = {SPEECH_PATH: "audio/", RECOGNITION_PATH: "application/json", TRANSLATION_PATH: ""}


class Target:
    """A deployment under test."""

    def __init__(self, options: ProbeOptions) -> None:
        self.options = options
        self.http = Address.parse_url(options.base_url)
        self.ws = Address.parse_url(options.ws_base_url or to_realtime_url(options.base_url))
        self.metered = 0
        self.findings: list[Observation] = []
        self._kept: dict[str, Any] = {}
        self._secrets = [key for key in options.keys if key]

    # Findings

    def require_that(self, condition: object, expected: str, evidence: Evidence | None = None) -> bool:
        """Record a finding unless the condition holds; the check continues."""
        if not condition:
            self.record_finding(ExpectationUnmet(expected, evidence))
        return bool(condition)

    def insist_that(self, condition: object, expected: str, evidence: Evidence | None = None) -> None:
        """Record a finding and end the check unless the condition holds."""
        if not condition:
            raise ExpectationUnmet(expected, evidence)

    def require_status(self, reply: Exchange, status: int, expected: str = "") -> bool:
        """Record a finding unless a reply has this status."""
        return self.require_that(reply.status == status, expected or str(status), reply)

    def insist_success(self, reply: Exchange, expected: str = "200") -> Exchange:
        """Return a reply of status 200, or end the check."""
        self.insist_that(reply.status == 200, expected, reply)
        return reply

    def record_finding(self, unmet: ExpectationUnmet) -> None:
        sent, came = (unmet.evidence.sent, unmet.evidence.came) if unmet.evidence else ("", "")
        self.findings.append(Observation(unmet.expected, self.redact_keys(sent), self.redact_keys(came)))

    def redact_keys(self, text: str) -> str:
        """Return a text without any key, even one that the service sends back."""
        for secret in self._secrets:
            text = text.replace(secret, "•••")
            text = text.replace(secret.partition(":")[2] or secret, "•••")
        return text

    def get_or_make(self, name: str, make: Callable[[], _T]) -> _T:
        """Return the object with this name, which is made on first use.

        A failure is kept as well: the first check with it fails, and later ones are not tried.
        """
        if name not in self._kept:
            try:
                self._kept[name] = make()
            except (ExpectationUnmet, CheckSkipped, OSError) as trouble:
                self._kept[name] = trouble
                raise
        value = self._kept[name]
        if isinstance(value, ExpectationUnmet):
            raise CheckSkipped(f"a precondition fails: {value.expected}") from value
        if isinstance(value, Exception):
            raise value
        return cast("_T", value)

    # HTTP

    def send_request(
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
            ("Host", self.http.host_header),
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
        text = shown or shorten_middle(body.decode("utf-8", "replace"))
        summary = f"{method} {path}{extra} {shown_auth}{text}".rstrip()
        raw += b"\r\n" + body
        for attempt in range(4):
            reply = send_request(self.http, raw, summary, self.options.timeout_s, first_only=first_only)
            if reply.status != 429:
                break
            wait = reply.find_header("retry-after") or ""
            time.sleep(min(float(wait) if wait.isdigit() else 2.0**attempt, 30.0))
        else:
            raise CheckSkipped("the service keeps answering 429: too many calls")
        kind = _METERED_TYPES.get(path)
        if kind is not None and reply.status == 200 and reply.media_type.startswith(kind):
            self.metered += 1
        return reply

    def post_json(self, path: str, fields: Any, **options: Any) -> Exchange:
        """Post JSON: a value, or unchanged bytes."""
        raw = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        if isinstance(fields, dict) and isinstance(fields.get("audio"), str):
            brief = {**fields, "audio": shorten_middle(fields["audio"], 60)}
            options.setdefault("shown", shorten_middle(json.dumps(brief, ensure_ascii=False)))
        headers = options.pop("headers", (("Content-Type", "application/json"),))
        return self.send_request("POST", path, raw, headers=headers, **options)

    def speak(self, *, first_only: bool = False, auth: Any = "", **fields: Any) -> Exchange:
        """``POST /tts`` with a short text; fields replace those of the request, and ``...`` leaves one out."""
        sent = {"voice_id": self.voice["id"], "text": self.text, "format": self.format} | fields
        return self.post_json(SPEECH_PATH, drop_omitted(sent), first_only=first_only, auth=auth)

    def recognize(self, audio: Any = ..., **fields: Any) -> Exchange:
        """``POST /asr/srt/audio_llm``; bytes are encoded, ``...`` leaves the audio out."""
        if isinstance(audio, bytes):
            audio = base64.b64encode(audio).decode()
        return self.post_json(RECOGNITION_PATH, fields if audio is ... else {"audio": audio, **fields})

    def translate(self, *pairs: tuple[str, str], **fields: str | None) -> Exchange:
        """``POST /translate/`` with a short text; None leaves a field out."""
        sent = {"text": "Hello.", "source_lang": "en", "target_lang": "ja"} | fields
        return self.post_form(
            [(name, value) for name, value in sent.items() if value is not None] + list(pairs)
        )

    def post_form(self, pairs: list[tuple[str, str]], path: str = TRANSLATION_PATH) -> Exchange:
        body, kind = encode_form(pairs, "speechlab-boundary")
        text = shorten_middle(json.dumps(pairs, ensure_ascii=False))
        return self.send_request("POST", path, body, headers=[("Content-Type", kind)], shown=text)

    # Voices, texts and keys

    @property
    def catalogue(self) -> Exchange:
        return self.get_or_make("catalogue", lambda: self.send_request("GET", VOICES_PATH))

    @property
    def voices(self) -> list[dict[str, Any]]:
        """Voices, from either of the two documented forms."""

        def read_voices() -> list[dict[str, Any]]:
            body = self.catalogue.parse_json()
            listed = body.get("voices") if isinstance(body, dict) else body
            right = self.catalogue.status == 200 and isinstance(listed, list)
            self.insist_that(right, "voices are listed", self.catalogue)
            assert isinstance(listed, list)
            usable = [each for each in listed if isinstance(each, dict) and isinstance(each.get("id"), str)]
            if not usable:
                raise CheckSkipped("the catalogue lists no voice")
            return usable

        return self.get_or_make("voices", read_voices)

    @property
    def voice(self) -> dict[str, Any]:
        if self.options.voice is not None:
            return self._resolve_voice(self.options.voice)
        return min(self.voices, key=lambda each: ("wav" not in list_formats(each), not each.get("streaming")))

    @property
    def q_voice(self) -> dict[str, Any]:
        if self.options.q_voice is None:
            raise CheckSkipped("needs --q-voice, the id of a voice of provider Q")
        return self._resolve_voice(self.options.q_voice)

    def choose_voice_or_skip(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Return the first voice that fulfils a condition."""
        voice = next(filter(wanted, [self.voice, *self.voices]), None)
        if voice is None:
            raise CheckSkipped(f"the catalogue has no voice {what}")
        return voice

    @property
    def format(self) -> str:
        """A format of the voice; WAV if it has that."""
        formats = list_formats(self.voice)
        return "wav" if "wav" in formats or not formats else formats[0]

    @property
    def stream_format(self) -> str:
        """A format in which the voice streams."""

        def find_stream_format() -> str:
            if self.voice.get("streaming") is not True:
                raise CheckSkipped("the voice does not stream; choose another one with --voice")
            for name in sorted(list_formats(self.voice), key=_rank_format):
                if self.speak(format=name, stream=True).status == 200:
                    return name
            raise CheckSkipped("the voice streams in none of its formats")

        return self.get_or_make("stream_format", find_stream_format)

    def probe_unstreamable_formats(self, refused: Callable[[int], bool]) -> list[str]:
        """Formats of the voice whose streams are answered with such a status."""
        assert self.stream_format  # or no format would stream, and nothing could be said of the others
        formats = list_formats(self.voice)
        cannot = [name for name in formats if refused(self.speak(format=name, stream=True).status)]
        if not cannot:
            raise CheckSkipped("the voice streams in each of its formats")
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

    def get_key_or_skip(self, name: str = "restricted_key") -> str:
        """Return another key of the options."""
        key = getattr(self.options, name)
        if key is None:
            raise CheckSkipped(f"needs --{name.replace('_', '-')}")
        return cast("str", key)

    def build_unknown_id(self) -> str:
        return str(uuid4())

    def build_unknown_key(self) -> str:
        """Return a key of the right form that does not exist."""
        prefix, colon, _ = self.options.api_key.partition(":")
        return f"{prefix if colon else 'sl'}:conform-{self.build_unknown_id()}"

    def _resolve_voice(self, voice_id: str) -> dict[str, Any]:
        lowered = voice_id.lower()
        voice = next((each for each in self.voices if each["id"].lower() == lowered), None)
        if voice is None:
            raise CheckSkipped(f"the catalogue has no voice {voice_id}")
        return voice

    def skip_without_recognition(self) -> None:
        self._skip_if_unavailable("recognition", self.recognize)

    def skip_without_translation(self) -> None:
        self._skip_if_unavailable("translation", lambda: self.post_form([("target_lang", "ja")]))

    def _skip_if_unavailable(self, what: str, ask: Callable[[], Exchange]) -> None:
        reply = self.get_or_make(f"{what} exists", ask)
        if reply.status in {403, 404} or reply.status >= 500:
            raise CheckSkipped(f"{what} is not available here: {shorten_middle(reply.came, 120)}")


def drop_omitted(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields without those that are ``...``."""
    return {name: value for name, value in fields.items() if value is not ...}


def _rank_format(name: str) -> int:
    # Raw samples arrive earliest. Formats that are not in the contract are tried last.
    order = ("pcm", "wav", "mp3", "ogg", "flac")
    return order.index(name) if name in order else len(order)


def list_formats(voice: dict[str, Any]) -> list[str]:
    """Return a voice's formats that are strings."""
    formats = voice.get("formats")
    return [each for each in formats if isinstance(each, str)] if isinstance(formats, list) else []


def list_rates(voice: dict[str, Any]) -> list[int]:
    """Return a voice's sample rates; none if the field is absent."""
    rates = voice.get("sample_rates")
    return [each for each in rates if type(each) is int] if isinstance(rates, list) else []


def find_other_rate(voice: dict[str, Any]) -> int | None:
    """Return a rate of a voice other than the default, or None."""
    return next((rate for rate in list_rates(voice) if rate != DEFAULT_SAMPLE_RATE), None)


def choose_unlisted_rate(voice: dict[str, Any]) -> int:
    """Return a usual rate that a voice with one rate does not list."""
    return 16_000 if list_rates(voice) != [16_000] else 8_000


def has_one_rate(voice: dict[str, Any]) -> bool:
    """Whether a voice has one sample rate only."""
    return len(list_rates(voice)) == 1


def require_refusal(t: Target, reply: Exchange, why: str) -> None:
    """Record a finding unless the reply is a 400."""
    t.require_status(reply, 400, f"400: {why}")


def build_step_for_each_value(
    attempt: Callable[..., object], **values: Iterable[Any]
) -> Callable[[Target], None]:
    """A part of a check: an attempt with each of these values of a field."""

    def try_each(t: Target) -> None:
        for name, several in values.items():
            for value in several:
                attempt(t, **{name: value})

    return try_each


def build_refusal_step(
    ask: Callable[..., Exchange], why: str, **wrong: Iterable[Any]
) -> Callable[[Target], None]:
    """A part of a check: each of these values of a field is refused with 400."""
    return build_step_for_each_value(lambda t, **fields: require_refusal(t, ask(t, **fields), why), **wrong)


def insist_json_object(t: Target, reply: Exchange) -> dict[str, Any]:
    """Return the JSON object of a successful reply, or end the check."""
    t.require_that(t.insist_success(reply).media_type == "application/json", "application/json", reply)
    body = reply.parse_json()
    t.insist_that(isinstance(body, dict), "an object", reply)
    assert isinstance(body, dict)
    return body


def parse_error_body(reply: Exchange) -> dict[str, Any] | None:
    """Return the body in the form of section 2.8, or None if it has another form."""
    body = reply.parse_json() if reply.media_type == "application/json" else None
    if not isinstance(body, dict) or not isinstance(body.get("context"), list):
        return None
    strings = [*body["context"], body.get("name"), body.get("error")]
    right = type(body.get("code")) is int and all(isinstance(value, str) for value in strings)
    return body if right else None
