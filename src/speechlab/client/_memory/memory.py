"""The store of a client: calls are answered from it and kept in it; a replay uses nothing else.

A kept call is what a batch keeps under the same key, and beside it how the reply came, so that replaying gives the
same values to the last bit, the times that were measured included.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._events import Timing
from speechlab.client._memory.misses import miss
from speechlab.client._operations.operation import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speechlab.client._operations.call import RawResponse
    from speechlab.client._operations.operation import Operation
    from speechlab.client._settings.settings import Settings
    from speechlab.store import Store, Stored

R = TypeVar("R")

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
        return key_of(self.operation, self.parameters, self.service)


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
    def from_settings(cls, settings: Settings) -> Memory | None:
        """The memory of a client; None if it has no store."""
        if settings.store is None:
            return None
        return cls(settings.store, settings.mode, settings.pace)

    def recall(self, question: Question) -> tuple[Stored, dict[str, Any]] | None:
        """The kept result of a call and how its reply came; None if the call is to be made.

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

    def reply(self, operation: Operation[Any], service: str) -> RawResponse | None:
        """The reply that is kept of an operation; None if the call is to be made.

        Raises:
            ReplayMiss: It is not kept, and calls are not made.
            StoreError: The store cannot be read.
        """
        found = self.recall(Question(operation.name, operation.parameters, service))
        if found is None:
            return None
        stored, facts = found
        files = {role: path.name for role, path in stored.files.items()}
        if facts.get("response") != stored.response or facts.get("files") != files:
            facts = {}  # the result was replaced by one that came otherwise, or only a batch knows it
        timing = timing_from(facts) if facts else Timing(processing_s=stored.response.get("processing_s"))
        return replace(operation.kept_reply(stored, facts), timing=timing)

    def keep_result(self, operation: Operation[R], service: str, reply: RawResponse, result: R) -> None:
        """Keep a result, now that its reply has proved to be what it should be.

        Raises:
            StoreError: It cannot be written.
        """
        headers = {name: reply.headers[name] for name in _HEADERS if name in reply.headers}
        facts: dict[str, Any] = {"headers": headers, "timing": asdict(reply.timing)}
        files = operation.files(result)
        if not files:
            facts["body"] = reply.json()
        question = Question(operation.name, operation.parameters, service)
        self.keep(question, operation.kept(result), facts, files)

    def keep_catalogue(self, base_url: str, service: str, body: Any) -> None:
        """Keep what a service says of itself: its voices, or None where it lists none."""
        question = Question("voices", {"base_url": base_url}, service)
        self.keep(question, {"service": service}, {"body": body})

    def catalogue(self, base_url: str) -> tuple[str, Any]:
        """The service to be replayed: that of this address, or else the one that was kept last.

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
