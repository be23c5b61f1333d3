"""Checks of the reply of ``POST /tts`` (section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.conform._model import checks_of
from speechlab.conform._probe.findings import Untried
from speechlab.conform._probe.sounds import MEDIA_TYPES, clip_of, looks_like
from speechlab.conform._probe.target import Target, formats_of
from speechlab.contract import DEFAULT_SAMPLE_RATE

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

check, advice = checks_of(__name__)


def _whole(t: Target, name: str) -> Exchange:
    return t.kept(f"whole {name}", lambda: t.speak(format=name))


def _streamed(t: Target, name: str) -> Exchange:
    return t.kept(f"streamed {name}", lambda: t.speak(format=name, stream=True))


def _has_header(t: Target, reply: Exchange, name: str) -> bool:
    return t.require(looks_like(reply.body, name), f"the body is {name} and nothing else", reply)


def _is_sound(t: Target, reply: Exchange, name: str) -> None:
    if _has_header(t, t.succeeded(reply, f"200: the voice lists {name}"), name):
        clip = clip_of(reply.body, name, DEFAULT_SAMPLE_RATE)
        right = clip is not None and clip.duration_s > 0.05
        t.require(right, "the audio decodes, and is longer than 0.05 s", reply)


@check("42-type", "the body is raw audio of the format, with its Content-Type", metered=5)
def _type(t: Target) -> None:
    for name in formats_of(t.voice):
        reply = t.succeeded(_whole(t, name), f"200: the voice lists {name}")
        right = MEDIA_TYPES.get(name)
        if right:
            t.require(reply.media_type in right, f"Content-Type {min(right, key=len)}", reply)
        _has_header(t, reply, name)


@advice("42-pcm", "pcm is audio/pcm", metered=1, needs="a voice with pcm")
def _pcm(t: Target) -> None:
    if "pcm" not in formats_of(t.voice):
        raise Untried("the voice has no pcm")
    reply = _whole(t, "pcm")
    t.require(reply.media_type == "audio/pcm", "Content-Type audio/pcm", reply)


@check("43-whole", "without stream: one body with Content-Length", also=(32,), metered=2)
def _one_body(t: Target) -> None:
    for reply in (_whole(t, t.format), t.speak(stream=False)):
        t.require(t.succeeded(reply).framing == "length", "Content-Length, and not chunked", reply)
        t.require(reply.complete and not reply.trailing, "as many bytes as Content-Length", reply)


@check("43-chunked", "with stream=true: chunked, no Content-Length, nothing after the end", metered=2)
def _chunked(t: Target) -> None:
    reply = t.succeeded(_streamed(t, t.stream_format))
    t.require(reply.framing == "chunked", "Transfer-Encoding: chunked", reply)
    t.require(reply.header("content-length") is None, "no Content-Length", reply)
    t.require(reply.complete, "the stream ends with the final chunk", reply)
    t.require(not reply.trailing, "nothing comes after the final chunk", reply)
    t.require(b'"error"' not in reply.body[-2_000:], "no JSON is appended to audio", reply)


@check("44-early", "the first bytes of a stream come before synthesis ends", metered=2, quick=False)
def _early(t: Target) -> None:
    reply = t.succeeded(t.speak(text=t.several_sentences, format=t.stream_format, stream=True))
    if reply.seconds < 0.5:
        within = f"the whole reply came within {reply.seconds:.2f} s"
        raise Untried(f"the voice is too fast for this check: {within}")
    share = reply.first_s / reply.seconds
    t.require(share < 0.9, f"the first byte comes early, not after {share:.0%} of the time", reply)


@check("48-decodes", "every format decodes, whole and streamed", metered=11, quick=False)
def _decodes(t: Target) -> None:
    streamed = t.stream_format
    for name in formats_of(t.voice):
        _is_sound(t, _whole(t, name), name)
        reply = _streamed(t, name)
        if name == streamed or reply.status == 200:
            _is_sound(t, reply, name)
            t.require(reply.complete, "the stream ends with the final chunk", reply)


@check("50-left", "the service goes on after a client leaves during a stream", metered=3, quick=False)
def _left(t: Target) -> None:
    t.speak(text=t.several_sentences, format=t.stream_format, stream=True, first_only=True)
    t.answers(t.speak(), 200, "the next request is answered")
