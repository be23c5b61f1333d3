"""Translation: the form (section 2.5), the reply (2.6) and the stream's chunks (2.7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from pydantic import Field

from speechlab.contract._base import ReplyModel, RequestModel
from speechlab.contract._formats import LIMITS
from speechlab.errors import InvalidRequestError

# ``object`` of a complete reply.
COMPLETION_OBJECT = "translation.completion"
# ``object`` of each event of a stream.
CHUNK_OBJECT = "translation.completion.chunk"
# Prefix of each ``id`` of a translation.
TRANSLATION_ID_PREFIX = "trans_"
# Data of the event that ends a stream.
STREAM_END = "[DONE]"

_SINGLE = ("text", "source_lang", "target_lang", "stream", "context", "model")


class TranslationRequest(RequestModel):
    """Fields of ``POST /translate/``, sent as multipart/form-data (section 2.5).

    Attributes:
        text: Source text, at most 10,000 code points.
        source_lang: Code of the source language.
        target_lang: Code of the target language.
        stream: False for one JSON reply, True for server-sent events.
        keywords: Terms to preserve: at most 20, at most 100 bytes of UTF-8 each.
        context: Text that helps the translation and is not translated itself; at most 2,000 code points.
        model: Model id, or None for the service's default.

    Example:
        >>> request = TranslationRequest(
        ...     text="Hello.", source_lang="en", target_lang="ja", keywords=("Ada", "Bob")
        ... )
        >>> request.form()[-2:]
        [('keywords', 'Ada'), ('keywords', 'Bob')]
    """

    text: str
    source_lang: str
    target_lang: str
    stream: bool = False
    keywords: tuple[str, ...] = ()
    context: str | None = None
    model: str | None = None

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Read the fields and check the limits of section 8.

        Raises:
            InvalidRequestError: A field is missing or breaks its rule.
        """
        request = super().parse(fields)
        cls.check_text(request.text)
        for name in ("source_lang", "target_lang"):
            if not getattr(request, name).strip():
                raise _build_request_error(name, f"{name} is required, for example 'ja' or 'en'")
        _check_at_most("keywords", len(request.keywords), LIMITS.translation_keywords, "terms")
        for term in request.keywords:
            if not term.strip():
                raise _build_request_error("keywords", "a keyword is empty; leave it out")
            what = f"keywords: {term[:20]!r}"
            _check_at_most(what, len(term.encode()), LIMITS.translation_keyword_bytes, "bytes")
        if request.context is not None:
            _check_at_most("context", len(request.context), LIMITS.translation_context_chars, "characters")
        return request

    @staticmethod
    def check_text(text: str) -> None:
        """Refuse a text that cannot be translated.

        Raises:
            InvalidRequestError: The text is empty, only white space, or too long.
        """
        if not text.strip():
            raise _build_request_error("text", "text is empty; it must hold something to translate")
        _check_at_most("text", len(text), LIMITS.translation_text_chars, "characters")

    @classmethod
    def from_form(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Read form fields in the order sent; only ``keywords`` may repeat.

        Raises:
            InvalidRequestError: A field is missing, repeated, or breaks its rule.
        """
        fields: dict[str, Any] = {}
        keywords: list[str] = []
        for name, value in pairs:
            if name == "keywords":
                keywords.append(value)
            elif name in fields:
                raise _build_request_error(name, f"the field {name} is repeated; only keywords may be")
            elif name in _SINGLE:
                fields[name] = value
        stream = fields.pop("stream", "false")
        if stream not in {"false", "true"}:
            raise _build_request_error("stream", f"stream {stream[:20]!r} must be 'true' or 'false'")
        if not fields.get("model"):
            fields.pop("model", None)
        return cls.parse({**fields, "stream": stream == "true", "keywords": tuple(keywords)})

    def form(self) -> list[tuple[str, str]]:
        """Return the form fields to send: required ones, and the options that were set."""
        pairs = [("text", self.text), ("source_lang", self.source_lang), ("target_lang", self.target_lang)]
        if self.stream:
            pairs.append(("stream", "true"))
        pairs += [("keywords", term) for term in self.keywords]
        pairs += [
            (name, value) for name in ("context", "model") if (value := getattr(self, name)) is not None
        ]
        return pairs


def encode_form(pairs: Iterable[tuple[str, str]], boundary: str) -> tuple[bytes, str]:
    """Write a multipart/form-data body without files; names may repeat, and values keep their line breaks."""
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in pairs
    ]
    return "".join([*parts, f"--{boundary}--\r\n"]).encode(), f"multipart/form-data; boundary={boundary}"


def _build_request_error(parameter: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(message, parameter=parameter, rule="2.5")


def _check_at_most(what: str, count: int, limit: int, unit: str) -> None:
    if count > limit:
        message = f"{what} has {count:,} {unit}, and at most {limit:,} are allowed"
        raise InvalidRequestError(message, parameter=what.partition(":")[0], rule="8")


class TokenUsage(ReplyModel):
    """Token counts (section 2.6)."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class Balance(ReplyModel):
    """Remaining credit in tokens; either part may be missing (section 2.6)."""

    free: int | None = None
    premium: int | None = None


class TranslationMessage(ReplyModel):
    """The message of a choice; ``content`` is the translation."""

    role: str = "assistant"
    content: str


class TranslationChoice(ReplyModel):
    """An entry of ``choices`` (section 2.6)."""

    index: int = 0
    message: TranslationMessage
    finish_reason: str | None = None


class TranslationReply(ReplyModel):
    """Reply of translation without a stream (section 2.6)."""

    id: str = ""
    object: str = COMPLETION_OBJECT
    created: int | None = None
    model: str = ""
    choices: tuple[TranslationChoice, ...] = Field(min_length=1)
    transcription: str | None = None
    source_lang: str | None = None
    target_lang: str | None = None
    usage: TokenUsage | None = None
    balance: Balance | None = None


class ChunkDelta(ReplyModel):
    """Text that a chunk adds; may be empty."""

    content: str = ""


class ChunkChoice(ReplyModel):
    """An entry of a chunk's ``choices``; current services send no ``finish_reason``, earlier ones ``stop``."""

    index: int = 0
    delta: ChunkDelta = Field(default_factory=ChunkDelta)
    finish_reason: str | None = None


class TranslationChunkReply(ReplyModel):
    """One event of a translation stream (section 2.7)."""

    id: str = ""
    object: str = CHUNK_OBJECT
    choices: tuple[ChunkChoice, ...] = ()
    transcription: str | None = None
    source_lang: str | None = None
    target_lang: str | None = None
    usage: TokenUsage | None = None
    model: str | None = None
    balance: Balance | None = None

    @property
    def content(self) -> str:
        """The text added by this chunk."""
        return self.choices[0].delta.content if self.choices else ""
