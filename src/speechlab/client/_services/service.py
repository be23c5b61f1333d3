"""What a client asks of a service, whichever kind it is: the rules of its operations, and one attempt at a call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from speechlab.client._services.connections import ConnectionPool

if TYPE_CHECKING:
    from random import Random

    from speechlab.client._clock import Clock
    from speechlab.client._operations.call import RawResponse, Reply, ServiceCall
    from speechlab.client._operations.operation import Operation
    from speechlab.client._operations.voices import VoiceCatalogue
    from speechlab.client._scheduling.retry import Failure
    from speechlab.client._scheduling.scheduler import Scheduler
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._services.progress import Progress
    from speechlab.client._transport.http import ReplyBody


class Service(ABC):
    """Who performs the operations of a client, and of its copies."""

    home: str
    """The name under which a catalogue and an identity are kept."""
    place: str
    """Where calls go, for messages."""
    functions: frozenset[str] = frozenset()
    """The operations of a system of functions; empty for a service, which says itself what it can do."""
    places: int | None = None
    """Calls at once, where that is known; None if a scheduler has to learn it."""
    together: int = 1
    """Most calls that are made together; calls that wait here for others are no load."""
    other_api: str = ""
    """What is spoken in place of the contract, so that there is no realtime session."""

    def __init__(self) -> None:
        self.connections = ConnectionPool()

    # The rules: those of the contract, which the operations have themselves

    def build_parameters(self, operation: Operation[Any]) -> dict[str, Any]:
        """Return all parameters that can change the result, checked by the rules of the service."""
        return operation.parameters

    def build_content(self, operation: Operation[Any]) -> dict[str, Any]:
        """Return the parameters with the content to process, checked by themselves."""
        return operation.content

    def check_options(self, operation: Operation[Any]) -> None:
        """Refuse an operation whose parameters, other than a recording, are invalid."""
        operation.check_options()

    @abstractmethod
    def build_known_catalogue(self) -> VoiceCatalogue | None:
        """Return the voices, if no request is necessary for them."""

    # The work

    @abstractmethod
    def get_scheduler(self, queue: str, clock: Clock, rng: Random) -> Scheduler:
        """Return the scheduler of the calls to ``tts``, ``asr`` or ``translate``."""

    @abstractmethod
    def prepare(self, operation: Operation[Any], timeout: float | None) -> ServiceCall:
        """Check an operation, and return it as a call."""

    @abstractmethod
    async def perform(
        self, call: ServiceCall, progress: Progress, place: CallPlace
    ) -> Reply | RawResponse | Failure:
        """Make one attempt at a call, and return its whole reply; raise an error that is no fault of the service."""

    @abstractmethod
    async def open_stream(
        self, call: ServiceCall, progress: Progress, place: CallPlace
    ) -> ReplyBody | Failure:
        """Make one attempt at a call whose reply is used while it arrives."""
