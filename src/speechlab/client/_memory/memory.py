"""Calls and the store: answered from it, kept in it, or, replaying, answered from it alone.

A kept call is what a batch keeps under the same key, and beside it how the reply came, so that replaying gives the
same values to the last bit, the times that were measured included.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import orjson

from speechlab.client._events import Timing
from speechlab.client._memory.misses import miss
from speechlab.client._operations.call import RawResponse
from speechlab.client._operations.noted import note
from speechlab.contract import CONTENT_TYPES, AudioFormat, request_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speechlab.client._operations.call import Call
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.sender import Core
    from speechlab.contract import Operation
    from speechlab.store import Store, Stored

_HEADERS = ("content-type", "x-speechlab-service")


@dataclass(frozen=True, slots=True)
class Question:
    """A call as the store knows it.

    Attributes:
        operation: What is asked for.
        parameters: All that can change the result.
        service: Identity of the service, never a credential.
    """

    operation: str
    parameters: dict[str, Any]
    service: str

    @property
    def key(self) -> str:
        """Key of the call: the same as a batch's."""
        return request_key(cast("Operation", self.operation), self.parameters, service=self.service)


def timing_from(facts: Mapping[str, Any]) -> Timing:
    """The timing as it was measured."""
    return Timing(**facts["timing"]) if "timing" in facts else Timing()


class Memory:
    """The store of a client, and how it is used.

    Args:
        store: Where calls are kept.
        mode: ``auto``, ``live`` or ``replay``.
        pace: Whether streams are replayed ``at once`` or ``as recorded``.
    """

    def __init__(self, store: Store, mode: str, pace: str) -> None:
        self.store = store
        self.replaying = mode == "replay"
        self.paced = pace == "as recorded"
        self._asks = mode != "live"

    @classmethod
    def of(cls, settings: Settings) -> Memory | None:
        """The memory of a client; None if it has no store."""
        if settings.store is None:
            return None
        return cls(settings.store, settings.mode, settings.pace)

    def recall(self, question: Question) -> tuple[Stored, dict[str, Any]] | None:
        """What is kept of a call and how it came; None if it is to be made.

        Raises:
            ReplayMiss: It is not kept, and calls are not made.
            StoreError: The store cannot be read.
        """
        stored = self.store.get(question.key) if self._asks else None
        if stored is None and self.replaying:
            raise miss(self.store, question.operation, question.parameters, question.service)
        return None if stored is None else (stored, self.store.facts(stored.key))

    def keep(
        self,
        question: Question,
        response: Mapping[str, Any],
        facts: Mapping[str, Any],
        files: Mapping[str, tuple[bytes, str]] | None = None,
    ) -> None:
        """Keep a call.

        Raises:
            StoreError: It cannot be written.
        """
        with self.store.transaction():
            kept = self.store.put(
                question.key,
                operation=question.operation,
                request=question.parameters,
                response=response,
                files=files,
            )
            names = {role: path.name for role, path in kept.files.items()}
            told = {**facts, "response": dict(response), "files": names, "service": question.service}
            self.store.keep_facts(question.key, told)

    def reply(self, question: Question) -> RawResponse | None:
        """The reply that is kept of a call; None if it is to be made.

        Raises:
            ReplayMiss: It is not kept, and calls are not made.
        """
        found = self.recall(question)
        return None if found is None else rebuilt(*found)

    def keep_catalogue(self, base_url: str, service: str, body: Any) -> None:
        """Keep what a service says of itself: its voices, or None where it lists none."""
        question = Question("voices", {"base_url": base_url}, service)
        self.keep(question, {"service": service}, {"body": body})

    def catalogue(self, base_url: str) -> tuple[str, Any]:
        """Which service is replayed: that of this address, or else the one that was kept last.

        Returns:
            Its identity, and the body of its catalogue.

        Raises:
            ReplayMiss: None is kept.
        """
        known = self.store.newest("voices", 100)
        here = [key for key, asked in known if asked.get("base_url") == base_url]
        if not known:
            raise miss(self.store, "voices", {"base_url": base_url}, "")
        facts = self.store.facts((here or [known[0][0]])[0])
        return facts["service"], facts["body"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, from the store or from the service.

    Attributes:
        reply: The reply.
        fresh: Whether the service gave it.
    """

    reply: RawResponse
    fresh: bool
    _memory: Memory | None
    _question: Question | None

    async def keep(self, response: Mapping[str, Any], *, audio: str | None = None) -> None:
        """Keep it, now that it has proved to be what it should be.

        Args:
            response: What batches read of it.
            audio: Format of its audio, for speech.
        """
        if not self.fresh or self._memory is None or self._question is None:
            return
        reply = self.reply
        headers = {name: reply.headers[name] for name in _HEADERS if name in reply.headers}
        facts: dict[str, Any] = {"headers": headers, "timing": asdict(reply.timing)}
        files = {}
        if audio is None:
            facts["body"] = reply.json()
        else:
            files["audio"] = (reply.content, f".{audio}")
        told = {**response, "processing_s": reply.timing.processing_s}
        await asyncio.to_thread(self._memory.keep, self._question, told, facts, files)


async def answered(core: Core, call: Call, question: Question | None) -> Answer:
    """Answer a call from the store, or else by the service.

    Raises:
        ReplayMiss: It is not kept, and calls are not made.
        APIError: The service answered with an error.
        APIConnectionError: No answer came.
    """
    memory = Memory.of(core.settings) if question is not None else None
    kept = None
    if memory is not None and question is not None:
        kept = await asyncio.to_thread(memory.reply, question)
    reply = note(await core.send(call) if kept is None else kept)
    return Answer(reply, kept is None, memory, question)


def rebuilt(stored: Stored, facts: Mapping[str, Any]) -> RawResponse:
    """The reply of a kept call; one that only a batch knows is put together from its result."""
    files = {role: path.name for role, path in stored.files.items()}
    if facts.get("response") != stored.response or facts.get("files") != files:
        facts = {}  # the result was replaced by one that came otherwise
    timing = timing_from(facts) if facts else Timing(processing_s=stored.response.get("processing_s"))
    headers = dict(facts.get("headers", {}))
    if "audio" in stored.files:
        headers.setdefault("content-type", CONTENT_TYPES[AudioFormat(stored.request["format"])])
        return RawResponse(200, headers, stored.files["audio"].read_bytes(), timing)
    headers.setdefault("content-type", "application/json")
    body = facts["body"] if "body" in facts else _body(stored)
    return RawResponse(200, headers, orjson.dumps(body), timing)


def _body(stored: Stored) -> dict[str, Any]:
    kept = stored.response
    if stored.operation == "transcribe":
        names = ("text", "language", "confidence", "segments")
        return {name: kept[name] for name in names if kept.get(name) is not None}
    usage = {
        name: kept[name] for name in ("prompt_tokens", "completion_tokens") if kept.get(name) is not None
    }
    body: dict[str, Any] = {
        "model": kept.get("model") or "",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": kept["text"]}}],
    }
    return {**body, "usage": {**usage, "total_tokens": sum(usage.values())}} if usage else body
