"""Checks of the reply of ``POST /tts`` (section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.conform._model import build_decorators
from speechlab.conform._probe.findings import CheckSkipped
from speechlab.conform._probe.sounds import MEDIA_TYPES, can_be_format, decode_clip
from speechlab.conform._probe.target import Target, list_formats
from speechlab.contract import DEFAULT_SAMPLE_RATE

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

check, advice = build_decorators(__name__)


def _request_whole_speech_once(t: Target, name: str) -> Exchange:
    return t.get_or_make(f"whole {name}", lambda: t.speak(format=name))


def _request_streamed_speech_once(t: Target, name: str) -> Exchange:
    return t.get_or_make(f"streamed {name}", lambda: t.speak(format=name, stream=True))


def _require_body_format(t: Target, reply: Exchange, name: str) -> bool:
    return t.require_that(can_be_format(reply.body, name), f"the body is {name} and nothing else", reply)


def _require_decodable_sound(t: Target, reply: Exchange, name: str) -> None:
    if _require_body_format(t, t.insist_success(reply, f"200: the voice lists {name}"), name):
        clip = decode_clip(reply.body, name, DEFAULT_SAMPLE_RATE)
        right = clip is not None and clip.duration_s > 0.05
        t.require_that(right, "the audio decodes, and is longer than 0.05 s", reply)


@check("42-type", "the body is raw audio of the format, with its Content-Type", metered=5)
def _check_content_type(t: Target) -> None:
    for name in list_formats(t.voice):
        reply = t.insist_success(_request_whole_speech_once(t, name), f"200: the voice lists {name}")
        right = MEDIA_TYPES.get(name)
        if right:
            t.require_that(reply.media_type in right, f"Content-Type {min(right, key=len)}", reply)
        _require_body_format(t, reply, name)


@advice("42-pcm", "pcm is audio/pcm", metered=1, needs="a voice with pcm")
def _check_pcm_content_type(t: Target) -> None:
    if "pcm" not in list_formats(t.voice):
        raise CheckSkipped("the voice has no pcm")
    reply = _request_whole_speech_once(t, "pcm")
    t.require_that(reply.media_type == "audio/pcm", "Content-Type audio/pcm", reply)


@check("43-whole", "without stream: one body with Content-Length", also=(32,), metered=2)
def _check_content_length(t: Target) -> None:
    for reply in (_request_whole_speech_once(t, t.format), t.speak(stream=False)):
        t.require_that(t.insist_success(reply).framing == "length", "Content-Length, and not chunked", reply)
        t.require_that(reply.complete and not reply.trailing, "as many bytes as Content-Length", reply)


@check("43-chunked", "with stream=true: chunked, no Content-Length, nothing after the end", metered=2)
def _check_chunked_stream(t: Target) -> None:
    reply = t.insist_success(_request_streamed_speech_once(t, t.stream_format))
    t.require_that(reply.framing == "chunked", "Transfer-Encoding: chunked", reply)
    t.require_that(reply.find_header("content-length") is None, "no Content-Length", reply)
    t.require_that(reply.complete, "the stream ends with the final chunk", reply)
    t.require_that(not reply.trailing, "nothing comes after the final chunk", reply)
    t.require_that(b'"error"' not in reply.body[-2_000:], "no JSON is appended to audio", reply)


@check("44-early", "the first bytes of a stream come before synthesis ends", metered=2, quick=False)
def _check_first_byte_early(t: Target) -> None:
    reply = t.insist_success(t.speak(text=t.several_sentences, format=t.stream_format, stream=True))
    if reply.seconds < 0.5:
        within = f"the whole reply came within {reply.seconds:.2f} s"
        raise CheckSkipped(f"the voice is too fast for this check: {within}")
    share = reply.first_s / reply.seconds
    t.require_that(share < 0.9, f"the first byte comes early, not after {share:.0%} of the time", reply)


@check("48-decodes", "every format decodes, whole and streamed", metered=11, quick=False)
def _check_formats_decode(t: Target) -> None:
    streamed = t.stream_format
    for name in list_formats(t.voice):
        _require_decodable_sound(t, _request_whole_speech_once(t, name), name)
        reply = _request_streamed_speech_once(t, name)
        if name == streamed or reply.status == 200:
            _require_decodable_sound(t, reply, name)
            t.require_that(reply.complete, "the stream ends with the final chunk", reply)


@check("50-left", "the service continues after a client leaves during a stream", metered=3, quick=False)
def _check_recovery_after_disconnect(t: Target) -> None:
    t.speak(text=t.several_sentences, format=t.stream_format, stream=True, first_only=True)
    t.require_status(t.speak(), 200, "the next request is answered")
