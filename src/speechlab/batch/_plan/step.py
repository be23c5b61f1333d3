"""A call as data, what came back, and what an operation has to know: no client, no store, no table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from speechlab.client import replaying_from
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import os

    from speechlab.client import AsyncClient, Client, Timing, VoiceCatalogue
    from speechlab.contract import Operation
    from speechlab.store import Store, Stored

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """What has to be known of a service before a table can be planned.

    Attributes:
        service: Its identity, never a credential.
        voices: Its catalogue, where the operation needs it.
    """

    service: str
    voices: VoiceCatalogue | None = None

    @classmethod
    def of(
        cls, lab: Client, store: Store | str | os.PathLike[str] | None = None, *, voices: bool = False
    ) -> Facts:
        """Ask a synchronous client; one that only replays answers from the batch's store."""
        lab = replaying_from(lab, store)
        return cls(lab.identity(), lab.voices() if voices else None)

    @classmethod
    async def ask(
        cls, lab: AsyncClient, store: Store | str | os.PathLike[str] | None = None, *, voices: bool = False
    ) -> Facts:
        """Ask an asynchronous client; one that only replays answers from the batch's store."""
        lab = replaying_from(lab, store)
        return cls(await lab.identity(), await lab.voices() if voices else None)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        response: Values for the store.
        timing: How the call went.
        files: By role: bytes, and the suffix of their file.
        audio_s: Seconds of audio that were made or heard.
        tokens: Tokens read and written.
    """

    response: dict[str, Any]
    timing: Timing
    files: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    audio_s: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One request to make, for one row or several that ask the same.

    Attributes:
        key: Key of the request.
        parameters: All that can change the result; kept with it.
        payload: What the step needs besides to make the call.
        characters: Length of the text, in code points.
        audio_s: Length of the recording in seconds, as far as its header tells.
    """

    key: str
    parameters: dict[str, Any]
    payload: Any = field(default=None, repr=False)
    characters: int = 0
    audio_s: float = 0.0


class Step(ABC):
    """One of the operations, with the parameters that are the same for all rows.

    Attributes:
        operation: Its name in the contract.
        columns: Result columns and their types.
        content: Those of them that are the result, and not how it came about.
        wants_voices: Whether it has to know the service's catalogue.
        needs: Columns of the input.
        texts: Those of them whose cells are texts, also where a file does not say so.
        settings: The parameters, for the manifest.
    """

    operation: Operation
    columns: Mapping[str, str]
    content: tuple[str, ...]
    wants_voices: bool = False
    needs: tuple[str, ...]
    texts: frozenset[str]
    settings: Mapping[str, Any]

    @abstractmethod
    def __init__(self, facts: Facts, have: Sequence[Any], **parameters: Any) -> None:
        """Take the parameters, for a table with these columns.

        Raises:
            InvalidRequestError: One is not allowed, or the table lacks a column.
        """

    @abstractmethod
    def call(self, row: Row) -> Call:
        """Return the request of a row.

        Raises:
            SpeechLabError: The row has no valid request.
        """

    @abstractmethod
    async def send(self, call: Call, lab: AsyncClient) -> Answer:
        """Make a call.

        Raises:
            SpeechLabError: It failed.
        """

    @abstractmethod
    def values(self, stored: Stored) -> dict[str, Any]:
        """Return the result columns of a stored result."""

    def evidence(self, stored: Stored) -> list[Any]:
        """Return what a result comes down to, as JSON values; audio by its SHA-256."""
        values = self.values(stored)
        return [values[name] for name in self.content]


def text_cell(value: object, column: str) -> str:
    """Return a cell that must hold text.

    Raises:
        InvalidRequestError: It is empty, or something else.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            at = error.start
        else:
            return value
        message = f"column {column!r} holds half a surrogate pair at position {at}; remove or mend it"
    elif missing(value):
        message = f"column {column!r} is empty in this row"
    else:
        message = (
            f"column {column!r} holds {value!r:.40} ({type(value).__name__}) in this row, and must hold text"
        )
    raise InvalidRequestError(message, parameter=column)


def missing(value: object) -> bool:
    """Return whether a cell is empty."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor unequal to anything
        return True
    except ValueError:  # an array in a cell
        return False
