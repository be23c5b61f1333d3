"""``GET /tts/voices`` and ``POST /tts`` (sections 4.1 and 4.2)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from starlette.responses import Response

from speechlab.audio import StreamResampler, encode, resample, stream_encoder, streams
from speechlab.contract import CONTENT_TYPES, AudioFormat, SpeechRequest, read_json_object
from speechlab.errors import InvalidRequestError
from speechlab.service._faults import Fault, Gone, from_engine, invalid
from speechlab.service._logs import facts_of, log
from speechlab.service._routes.bodies import read_body
from speechlab.service._routes.streams import StreamReply, until_gone
from speechlab.service._state import begin_use, principal_of, service_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from numpy.typing import NDArray
    from starlette.requests import Request

    from speechlab.service._accounts.metering import Use
    from speechlab.service._engines.voices import CatalogueVoice
    from speechlab.service._state import Service


@dataclass(slots=True)
class Spoken:
    """How much of an utterance was spoken so far.

    Attributes:
        audio_s: Seconds.
    """

    audio_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Utterance:
    """A text that was accepted: everything that its synthesis needs.

    Attributes:
        voice: Who speaks.
        text: What.
        format: Format of the audio.
        sample_rate: Rate of the audio in Hz.
        temperature: Variation, or None where the provider has none.
        spoken: How much was spoken so far, for the ledger.
    """

    voice: CatalogueVoice
    text: str
    format: AudioFormat
    sample_rate: int
    temperature: float | None
    spoken: Spoken = field(default_factory=Spoken, compare=False)

    def pieces(self) -> Iterator[NDArray[np.float32]]:
        """Speak; blocks at each piece. Samples are at the engine's rate."""
        engine = self.voice.lane.engine()
        made = engine.synthesise(self.text, self.voice.voice.name, temperature=self.temperature)
        with contextlib.closing(_as_generator(made)) as pieces:
            for piece in pieces:
                self.spoken.audio_s += len(piece) / engine.sample_rate
                yield piece

    def encoded(self) -> Iterator[bytes]:
        """Speak and encode; blocks at each piece. No piece is empty, and joined they are one file."""
        engine = self.voice.lane.engine()
        resampler = StreamResampler(engine.sample_rate, self.sample_rate)
        with (
            contextlib.closing(_as_generator(self.pieces())) as pieces,
            stream_encoder(self.format, self.sample_rate) as encoder,
        ):
            for piece in pieces:
                if data := encoder.write(resampler.write(piece)):
                    yield data
            if data := encoder.write(resampler.flush()) + encoder.close():
                yield data

    def joined(self, pieces: list[NDArray[np.float32]]) -> bytes:
        """Encode the whole of it; for worker threads."""
        samples = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.float32)
        own_rate = self.voice.lane.engine().sample_rate
        return encode(resample(samples, own_rate, self.sample_rate), self.format, self.sample_rate)

    def headers(self) -> dict[str, str]:
        """Headers that tell which engine speaks."""
        return {
            "X-Speechlab-Provider": self.voice.provider.name,
            "X-Speechlab-Model": str(self.voice.lane.engine().model),
            "X-Speechlab-Sample-Rate": str(self.sample_rate),
        }


async def list_voices(request: Request) -> Response:
    """The voice catalogue."""
    service = service_of(request)
    _require_speech(service)
    listing = await service.engines.threads.run(service.engines.catalogue.listing)
    headers = {"X-Speechlab-Service": service.identity}
    return Response(orjson.dumps(listing), media_type="application/json", headers=headers)


async def speak(request: Request) -> Response:
    """Speak a text, whole or as a stream."""
    service = service_of(request)
    _require_speech(service)
    use = begin_use(request, "tts")
    body = await read_body(request, service.config.tts_body_bytes, "tts")
    try:
        wanted = SpeechRequest.parse(read_json_object(body), text_limit=service.config.tts_text_limit)
        utterance = await _accept(service, wanted)
    except InvalidRequestError as error:
        raise invalid(error, "tts") from None
    if not principal_of(request).may_speak(utterance.voice.provider.name):
        message = f"this key may not use the provider {utterance.voice.provider.name!r}"
        raise Fault("ErrPermissionDenied", message, "tts", "voice_id")
    use.accept(
        utterance.voice.provider.name,
        characters=len(utterance.text),
        input_bytes=len(utterance.text.encode("utf-8")),
    )
    if not wanted.stream:
        return await until_gone(request, _whole(service, utterance, use))
    return await until_gone(request, _stream(service, utterance, use))


def _require_speech(service: Service) -> None:
    if not service.engines.synthesisers:
        raise Fault("ErrServiceNotFound", "no text-to-speech engine is registered here", "tts")


async def _accept(service: Service, wanted: SpeechRequest) -> Utterance:
    catalogue = service.engines.catalogue
    voice = await service.engines.threads.run(lambda: catalogue.find(wanted.voice_id))
    if voice is None:
        message = f"there is no voice {wanted.voice_id}; take one from GET /tts/voices"
        raise InvalidRequestError(message, parameter="voice_id", rule="2.2", code="unknown_voice_id")
    rate = voice.rules.check(format=wanted.format.value, sample_rate=wanted.sample_rate, stream=wanted.stream)
    if wanted.stream and not streams(wanted.format, rate):
        message = f"format {wanted.format.value!r} cannot stream at {rate:,} Hz"
        raise InvalidRequestError(
            message, parameter="stream", rule="2.2", code="unsupported_streaming_format"
        )
    default = voice.provider.temperature
    temperature = None if default is None else default if wanted.temperature is None else wanted.temperature
    return Utterance(voice, wanted.text, wanted.format, rate, temperature)


async def _whole(service: Service, utterance: Utterance, use: Use) -> Response:
    lane = utterance.voice.lane
    try:
        with _metered(use, utterance):
            async with (
                lane.job("tts") as job,
                contextlib.aclosing(lane.iterate(job, utterance.pieces)) as pieces,
            ):
                with use.backend():
                    spoken = [piece async for piece in pieces]
                    data = await service.engines.threads.run(lambda: utterance.joined(spoken))
                    use.audio_bytes = len(data)
    except Exception as error:
        raise _failed(error, utterance) from error
    headers = {
        **utterance.headers(),
        "Server-Timing": job.server_timing(),
        "X-Speechlab-Audio-Seconds": f"{utterance.spoken.audio_s:.3f}",
    }
    return Response(data, headers=headers, media_type=CONTENT_TYPES[utterance.format])


async def _stream(service: Service, utterance: Utterance, use: Use) -> Response:
    pieces = _spoken(utterance, use)
    try:
        first = await anext(pieces)
    except BaseException as error:
        await pieces.aclose()
        if isinstance(error, Exception):
            raise _failed(error, utterance) from error
        raise
    return StreamReply(
        first,
        pieces,
        media_type=CONTENT_TYPES[utterance.format],
        send_timeout_s=service.config.send_timeout_s,
        headers=utterance.headers(),
    )


async def _spoken(utterance: Utterance, use: Use) -> AsyncGenerator[bytes]:
    lane = utterance.voice.lane
    with _metered(use, utterance):
        async with (
            lane.job("tts") as job,
            contextlib.aclosing(lane.iterate(job, utterance.encoded)) as pieces,
        ):
            with use.backend():
                async for piece in pieces:
                    use.audio_bytes += len(piece)
                    yield piece


@contextlib.contextmanager
def _metered(use: Use, utterance: Utterance) -> Iterator[None]:
    """Tell the ledger at the end how much was spoken, however it ends."""
    try:
        yield
    finally:
        use.audio_s, use.model = utterance.spoken.audio_s, utterance.voice.lane.model


def _failed(error: Exception, utterance: Utterance) -> Exception:
    if isinstance(error, (Fault, Gone)):
        return error
    level = "info" if isinstance(error, InvalidRequestError) else "error"  # the client's mistake is no alarm
    log("synthesis failed", level=level, provider=utterance.voice.provider.name, **facts_of(error))
    return from_engine(error, "tts", "speech synthesis")


def _as_generator(pieces: Iterator[Any]) -> Any:
    """Give any iterator a ``close``, so that closing the outer one reaches the engine."""
    try:
        yield from pieces
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
