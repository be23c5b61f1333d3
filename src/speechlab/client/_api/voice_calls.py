"""What a client asks of the catalogue: the voices, who the service is, and which voice is meant."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from speechlab.client._api.base import ClientBase
from speechlab.client._memory.memory import Memory, Question
from speechlab.client._memory.misses import nothing_is_sent
from speechlab.client._operations.call import RawResponse
from speechlab.client._operations.noted import note
from speechlab.client._operations.recording import digest_of
from speechlab.client._operations.requests import voices_call
from speechlab.client._operations.voices import VoiceCatalogue, read_catalogue
from speechlab.client._settings.settings import plain_url
from speechlab.contract import Voice, VoiceList, canonical_uuid
from speechlab.errors import InvalidRequestError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.client._operations.call import Call
    from speechlab.client._operations.recording import Recording

T = TypeVar("T")
LARGE = 300_000
"""Bytes from which on work on them is done in a thread."""


class VoiceCalls(ClientBase):
    """The part of :class:`AsyncClient` that knows the catalogue; the other operations build on it."""

    async def voices(self) -> VoiceCatalogue:
        """List the voices (section 4.2 of the contract).

        Raises:
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
            ContractError: The answer is not a catalogue.
        """
        memory = Memory.of(self._settings)
        if memory is not None and memory.replaying:
            service, body = await asyncio.to_thread(memory.catalogue, plain_url(self.base_url))
            if body is None:
                raise nothing_is_sent("voices")
            note(RawResponse(200, {"content-type": "application/json"}, orjson.dumps(body)))
            self._catalogue = VoiceCatalogue(VoiceList.parse(body).voices, service)
            return self._catalogue
        reply = note(await self._core.send(voices_call(self._settings.timeout)))
        self._catalogue = read_catalogue(reply)
        if memory is not None:
            here = plain_url(self.base_url)
            service = self._catalogue.service or here
            await asyncio.to_thread(memory.keep_catalogue, here, service, reply.json())
        return self._catalogue

    async def identity(self) -> str:
        """Tell what the service is, for keys under which its results are kept.

        Returns:
            What the service says of itself (its version and a digest of its engines' settings, in the header
            ``X-Speechlab-Service`` of the catalogue), or else its address. Never a credential.

        Raises:
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
            ContractError: The answer is not a catalogue.
        """
        memory, here = Memory.of(self._settings), plain_url(self.base_url)
        if memory is not None and memory.replaying:
            return (await asyncio.to_thread(memory.catalogue, here))[0]
        if self._unlisted:
            return here
        try:
            return (self._catalogue if self._catalogue is not None else await self.voices()).service or here
        except NotFoundError:  # a service that only listens has no catalogue
            self._unlisted = True
            if memory is not None:
                await asyncio.to_thread(memory.keep_catalogue, here, here, None)
            return here

    async def _question(self, call: Call, recording: Recording | None = None) -> Question | None:
        """The call as the store knows it; None for a client without a store."""
        if self._settings.store is None:
            return None
        parameters = dict(call.parameters)
        if recording is not None:
            parameters["audio"] = await beside(recording.size, digest_of, recording)
        return Question(call.operation, parameters, await self.identity())

    async def _known(self, voice: object) -> Voice | None:
        """What the catalogue says of a voice; it is asked for only to turn a description into an id."""
        if not isinstance(voice, str):
            if isinstance(voice, Voice):
                return voice
            message = f"voice is a {type(voice).__name__}; give a Voice, its id, or part of its description"
            raise InvalidRequestError(message, parameter="voice_id", rule="2.2")
        if canonical_uuid(voice.strip()) is not None:
            return self._catalogue.get(voice.strip()) if self._catalogue is not None else None
        return (self._catalogue or await self.voices()).one(voice)


async def beside(size: int, function: Callable[..., T], *args: Any) -> T:
    """Call a function, in a thread if the work is large enough to hold up the loop noticeably.

    Args:
        size: Bytes to be worked on.
        function: What to call.
        *args: Its arguments.
    """
    return function(*args) if size < LARGE else await asyncio.to_thread(function, *args)
