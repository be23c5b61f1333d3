"""Translation: the operation and its result, whole and in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from speechlab.client._events import Timing
from speechlab.client._operations.call import HttpCall, RawResponse, Reply, build_form_body
from speechlab.client._operations.operation import (
    Operation,
    build_timeouts,
    check_and_build_content,
    to_encodable_fields,
    to_term_list,
)
from speechlab.contract import (
    TRANSLATION_PATH,
    Balance,
    TokenUsage,
    TranslationChunkReply,
    TranslationReply,
    TranslationRequest,
)
from speechlab.display import audio_figure

_S_PER_CHAR = 0.05
# Bytes of a reply: of the least, and for each character; as events, each token has a JSON object.
_LEAST_LIMIT, _LIMIT_PER_CHAR = 2 << 20, 2_000


@dataclass(frozen=True)
class Translation:
    """A translated text.

    Attributes:
        text: The translation.
        id: Id of the request at the service.
        model: Model id reported by the service; may differ from the requested one.
        source_lang: Source language code.
        target_lang: Target language code.
        transcription: The source text as received by the service, if it reports it.
        finish_reason: The reason why the model stopped, if the service reports it.
        usage: Token counts, or None if the service reports none.
        balance: Remaining credit, or None if the service reports none.
        created: Time of the reply in seconds since 1970, or None.
        timing: Duration and attempts.
        reply: The whole reply, including fields outside the contract; None for streams.

    Example:
        >>> translation = Translation("Good morning.", source_lang="ja", target_lang="en")
        >>> str(translation), translation.usage
        ('Good morning.', None)
    """

    text: str
    id: str = ""
    model: str = ""
    source_lang: str = ""
    target_lang: str = ""
    transcription: str | None = None
    finish_reason: str | None = None
    usage: TokenUsage | None = None
    balance: Balance | None = None
    created: int | None = None
    timing: Timing = field(default_factory=Timing)
    reply: TranslationReply | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        facts = [f"{self.source_lang or '?'} → {self.target_lang or '?'}"]
        if self.model:
            facts.append(self.model)
        if self.usage is not None:
            facts.append(f"{self.usage.total_tokens} tokens")
        lang = self.target_lang or None
        return str(audio_figure(None, title="Translation", facts=facts, text=self.text, lang=lang))


@dataclass(frozen=True)
class TranslationChunk:
    """A chunk of a streamed translation.

    Attributes:
        text: The text that this chunk adds; may be empty.
        id: Id of the request, the same in all chunks.
        finish_reason: The reason why the model stopped, in the last chunk, if the service reports it.
        usage: Token counts, in one chunk, if the service reports them.
        transcription: The source text, in the first chunk.
        source_lang: Source language code, in the first chunk.
        target_lang: Target language code, in the first chunk.
        reply: The whole event, including fields outside the contract.
    """

    text: str
    id: str = ""
    finish_reason: str | None = None
    usage: TokenUsage | None = None
    transcription: str | None = None
    source_lang: str | None = None
    target_lang: str | None = None
    reply: TranslationChunkReply | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return self.text


def parse_chunk(value: object) -> TranslationChunk:
    """Read one event of a stream."""
    reply = TranslationChunkReply.parse(value)
    return TranslationChunk(
        text=reply.content,
        id=reply.id,
        finish_reason=reply.choices[0].finish_reason if reply.choices else None,
        usage=reply.usage,
        transcription=reply.transcription,
        source_lang=reply.source_lang,
        target_lang=reply.target_lang,
        reply=reply,
    )


@dataclass(frozen=True, eq=False, slots=True)
class Translate(Operation[Translation]):
    """Translate a text (section 4.5 of the contract).

    Args:
        text: Text to translate, at most 10,000 characters.
        source_lang: Code of the source language, such as ``"ja"``.
        target_lang: Code of the target language, such as ``"en"``.
        keywords: Terms to preserve: at most 20, at most 100 bytes of UTF-8 each.
        context: Text that helps the translation and is not translated itself; at most 2,000 characters.
        model: Model id; None is the service's default.
        timeout: Seconds for this call with its retries; None is the client's.

    Example:
        >>> first = Translate("Hello.", source_lang="en", target_lang="ja", keywords=["Ada"])
        >>> again = Translate("Hello.", source_lang="en", target_lang="ja", keywords=("Ada",))
        >>> first.compute_key("service") == again.compute_key("service")
        True
    """

    name = "translate"
    text: str
    _: KW_ONLY
    source_lang: str
    target_lang: str
    keywords: Iterable[str] = ()
    context: str | None = None
    model: str | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.keywords, Iterator):  # which can be read only once
            object.__setattr__(self, "keywords", tuple(self.keywords))

    @property
    def request(self) -> TranslationRequest:
        """The checked request."""
        values = {
            "text": self.text,
            "source_lang": self.source_lang,
            "target_lang": self.target_lang,
            "keywords": tuple(to_term_list("keywords", self.keywords, rule="2.5")),
            "context": self.context,
            "model": self.model,
        }
        return TranslationRequest.parse({**to_encodable_fields(values), "stream": self.stream})

    @property
    def parameters(self) -> dict[str, Any]:
        return self.request.model_dump(mode="json", exclude={"stream"})

    @property
    def content(self) -> dict[str, Any]:
        return check_and_build_content(self.text, TranslationRequest.check_text)

    def call(self, timeout: float | None) -> HttpCall:
        request = self.request
        limits = build_timeouts(
            self.resolve_timeout(timeout), _S_PER_CHAR * len(request.text), stream=self.stream
        )
        accept = "text/event-stream" if self.stream else "application/json"
        pairs = request.form()
        body = build_form_body(pairs)
        return HttpCall(
            self.name,
            "translate",
            limits,
            "POST",
            TRANSLATION_PATH,
            body,
            accept=accept,
            reply_limit=_LEAST_LIMIT + _LIMIT_PER_CHAR * len(request.text),
            fields=pairs,
        )

    def read(self, reply: Reply | RawResponse) -> Translation:
        parsed = TranslationReply.parse(reply.fields)
        choice = parsed.choices[0]
        return Translation(
            text=choice.message.content,
            id=parsed.id,
            model=parsed.model,
            source_lang=parsed.source_lang or self.source_lang,
            target_lang=parsed.target_lang or self.target_lang,
            transcription=parsed.transcription,
            finish_reason=choice.finish_reason,
            usage=parsed.usage,
            balance=parsed.balance,
            created=parsed.created,
            timing=reply.timing,
            reply=parsed,
        )

    def count_usage(self, result: Translation) -> dict[str, float]:
        usage = result.usage
        return {
            "calls": 1,
            "translated_chars": len(self.text),
            "prompt_tokens": usage.prompt_tokens if usage else 0,
            "completion_tokens": usage.completion_tokens if usage else 0,
        }

    def build_record(self, result: Translation) -> dict[str, Any]:
        usage = result.usage
        return {
            "text": result.text,
            "model": result.model,
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "completion_tokens": usage.completion_tokens if usage else None,
            "processing_s": result.timing.processing_s,
        }

    @staticmethod
    def restore_body(kept: Mapping[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": kept.get("model") or "",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": kept["text"]}}],
        }
        counts = ("prompt_tokens", "completion_tokens")
        usage = {name: kept[name] for name in counts if kept.get(name) is not None}
        return {**body, "usage": {**usage, "total_tokens": sum(usage.values())}} if usage else body


class StreamTranslation(Translate):
    """Translate a text, and stream the translation while it is made."""

    __slots__ = ()
    name = "stream_translation"
    stream = True
