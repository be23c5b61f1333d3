"""Checks of ``tts.speak`` and its events (sections 3, 4.3, 6 and 7.2)."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from speechlab.conform._model import checks_of
from speechlab.conform._probe.socket import SpeakAttempt, Talk
from speechlab.conform._probe.sounds import MEDIA_TYPES, clip_of, looks_like
from speechlab.contract import DEFAULT_SAMPLE_RATE

if TYPE_CHECKING:
    from speechlab.conform._probe.target import Target

check, advice = checks_of(__name__)
_START = ("request_id", "format", "content_type", "voice_id", "model", "audio_transport")


class _Spoken:
    """Two texts on one connection."""

    def __init__(self, t: Target, transport: str) -> None:
        with Talk(t) as talk:
            # binary is the default, so it is not requested.
            settings = {} if transport == "binary" else {"audio_transport": transport}
            self.created: dict[str, Any] = talk.configured(**settings).get("session") or {}
            self.first = talk.speak(t.text + " \U0001f600", "speak-1")
            self.second = talk.speak(t.several_sentences)  # long enough for several pieces

    @property
    def both(self) -> tuple[SpeakAttempt, SpeakAttempt]:
        return self.first, self.second


def _spoken(t: Target, transport: str) -> _Spoken:
    return t.kept(f"spoken {transport}", lambda: _Spoken(t, transport))


def _every(t: Target) -> list[tuple[_Spoken, SpeakAttempt, str]]:
    sessions = [(_spoken(t, transport), transport) for transport in ("binary", "base64_json")]
    return [(session, attempt, transport) for session, transport in sessions for attempt in session.both]


def _kinds(attempt: SpeakAttempt) -> list[str]:
    return ["audio" if isinstance(each, bytes) else str(each.get("type")) for each in attempt.events]


@check("139-early-speak", "tts.speak before session.update: session_not_configured, whatever the text")
def _early_speak(t: Target) -> None:
    with Talk(t) as talk:
        for text in (t.text, "", ...):
            answer = talk.ask(type="tts.speak", id="early", text=text)
            talk.refused(answer, "session_not_configured")
            t.require(answer.get("id") == "early", "the id is echoed", talk)
        talk.configured()


@check("140-sequence", "tts.audio.start, audio, tts.audio.done, tts.usage: in this order", metered=4)
def _sequence(t: Target) -> None:
    for _, attempt, transport in _every(t):
        kinds, sound = _kinds(attempt), "audio" if transport == "binary" else "tts.audio.delta"
        right = kinds[:1] == ["tts.audio.start"] and kinds[-2:] == ["tts.audio.done", "tts.usage"]
        t.require(right, "start first, done and usage last", attempt)
        right = len(kinds) > 3 and set(kinds[1:-2]) == {sound}
        t.require(right, "audio, and only audio, in between", attempt)


@check("141-start", "tts.audio.start has all its fields with the right values", metered=4)
def _start(t: Target) -> None:
    name = t.stream_format
    for session, attempt, transport in _every(t):
        start = attempt.one("tts.audio.start")
        for field in _START:
            t.require(isinstance(start.get(field), str), f"{field} is a string", attempt)
        t.require(start.get("format") == name, "format is the session's", attempt)
        t.require(start.get("sample_rate") == DEFAULT_SAMPLE_RATE, "sample_rate is 24000", attempt)
        t.require(start.get("audio_transport") == transport, f"audio_transport is {transport}", attempt)
        for field in ("voice_id", "model"):
            t.require(start.get(field) == session.created.get(field), f"{field} is the session's", attempt)
        kind = str(start.get("content_type")).partition(";")[0]
        t.require(kind in MEDIA_TYPES.get(name, {kind}), "content_type matches the format", attempt)


@check("142-transports", "binary frames or base64 deltas that join to the audio", metered=4)
def _transports(t: Target) -> None:
    name = t.stream_format
    for _, attempt, transport in _every(t):
        deltas = attempt.of("tts.audio.delta")
        right = bool(deltas) == (transport == "base64_json")
        t.require(right, "audio comes by the requested transport", attempt)
        t.require(len(attempt.frames) >= len(deltas), "the audio of each delta is standard base64", attempt)
        data = b"".join(attempt.frames)
        clip = clip_of(data, name, DEFAULT_SAMPLE_RATE) if looks_like(data, name) else None
        t.require(clip is not None and clip.duration_s > 0.05, f"the joined audio is {name}", attempt)


@check("143-seq", "seq increases by one with each delta", metered=4)
def _seq(t: Target) -> None:
    for attempt in _spoken(t, "base64_json").both:
        numbers = [delta.get("seq") for delta in attempt.of("tts.audio.delta")]
        t.insist(numbers and all(type(each) is int for each in numbers), "seq is an integer", attempt)
        counted = [int(numbers[0] or 0) + place for place in range(len(numbers))]
        t.require(numbers == counted, f"seq increases by one; it is {numbers[:12]}", attempt)


@advice("143-seq-zero", "seq begins with 0 for each text", metered=4)
def _seq_zero(t: Target) -> None:
    for attempt in _spoken(t, "base64_json").both:
        numbers = [delta.get("seq") for delta in attempt.of("tts.audio.delta")]
        t.require(numbers[:1] == [0], "the first seq is 0", attempt)


@check("144-done", "tts.audio.done has the numbers of bytes and pieces sent", metered=4)
def _done(t: Target) -> None:
    for _, attempt, _ in _every(t):
        summary, frames = attempt.one("tts.audio.done"), attempt.frames
        total = sum(map(len, frames))
        t.require(summary.get("audio_bytes") == total, f"audio_bytes is {total}", attempt)
        t.require(summary.get("chunks") == len(frames), f"chunks is {len(frames)}", attempt)


@check("145-usage", "tts.usage has all its fields, counts code points and bytes, and is final", metered=4)
def _usage(t: Target) -> None:
    for session, attempt, _ in _every(t):
        events = attempt.one("tts.usage")
        usage = events.get("usage")
        t.insist(isinstance(usage, dict), "usage is an object", attempt)
        assert isinstance(usage, dict)
        right = events.get("session_id") == session.created.get("id")
        t.require(right, "session_id is the session's", attempt)
        t.require(isinstance(events.get("model"), str), "model is a string", attempt)
        client_id = None if attempt.id is ... else attempt.id
        t.require(events.get("client_id") == client_id, f"client_id is {client_id}", attempt)
        amounts = {"input_chars": len(attempt.text), "input_bytes": len(attempt.text.encode())}
        for name, value in (amounts | {"audio_bytes": sum(map(len, attempt.frames))}).items():
            right = usage.get(name) == value and type(usage.get(name)) is int
            t.require(right, f"{name} is {value}", attempt)
        t.require(usage.get("status") == "completed", "status is completed", attempt)
        t.require(usage.get("final") is True, "final is true", attempt)


@check("146-ids", "each text has a different request_id; all its events have the id", metered=4)
def _ids(t: Target) -> None:
    ids: set[str] = set()
    for _, attempt, _ in _every(t):
        messages = [each for each in attempt.events if isinstance(each, dict)]
        attempt_ids = {str(each.get("request_id")) for each in messages}
        right = len(attempt_ids) == 1 and "None" not in attempt_ids
        t.require(right, "one request_id on all events", attempt)
        t.require(not attempt_ids & ids, "a request_id different from earlier ones", attempt)
        ids |= attempt_ids
        if attempt.id is not ...:
            echoed = [each.get("id") for each in messages if each.get("type") != "tts.usage"]
            t.require(set(echoed) == {attempt.id}, "the id is echoed on each event", attempt)


@check("142-base64", "deltas are padded, standard base64", metered=2, quick=False)
def _base64(t: Target) -> None:
    for attempt in _spoken(t, "base64_json").both:
        for delta in attempt.of("tts.audio.delta"):
            try:
                right = bool(base64.b64decode(delta.get("audio", ""), validate=True))
            except (binascii.Error, TypeError, ValueError):
                right = False
            t.require(right, "audio is standard base64, and not empty", attempt)


@check(
    "149-busy",
    "a second text during a synthesis: synthesis_in_progress; the first goes on",
    also=(164,),
    metered=1,
)
def _busy(t: Target) -> None:
    with Talk(t) as talk:
        talk.configured()
        talk.send(type="tts.speak", id="first", text=t.several_sentences)
        talk.send(type="tts.speak", id="second", text=t.text)
        attempt = talk.to_end(t.several_sentences, "first")
        refusals = attempt.of("tts.error")
        t.insist(len(refusals) == 1, "one tts.error, for the second text", attempt)
        talk.refused(refusals[0], "synthesis_in_progress")
        t.require(refusals[0].get("id") == "second", "the error has the id of the second text", attempt)
        summary, total = attempt.one("tts.audio.done"), sum(map(len, attempt.frames))
        right = summary.get("id") == "first" and summary.get("audio_bytes") == total
        t.require(right, "the first text is completed", attempt)
        answer = talk.ask(type="conform.unknown")
        t.require(answer.get("type") == "router.error", "no usage for the second text", talk)


@check("150-one-error", "a refused text gives one tts.error, and nothing else", metered=1, quick=False)
def _one_error(t: Target) -> None:
    with Talk(t) as talk:
        talk.configured()
        for text in ("", "a" * (t.options.text_limit + 1)):
            talk.send(type="tts.speak", id="refused", text=text)
            talk.send(type="conform.unknown")
            first, second = talk.message(), talk.message()
            t.require(first.get("type") == "tts.error", "one tts.error", talk)
            t.require(first.get("id") == "refused", "the error has the id of the text", talk)
            t.require(second.get("type") == "router.error", "no further message about the text", talk)
        attempt = talk.speak(t.text)
        t.require(attempt.of("tts.audio.done"), "the session accepts the next text", attempt)


@check("151-texts", "empty_text, and tts_text_too_long over the limit", also=(30,))
def _texts(t: Target) -> None:
    with Talk(t) as talk:
        talk.configured()
        talk.refused(talk.ask(type="tts.speak", text=""), "empty_text")
        talk.refused(talk.ask(type="tts.speak", text="a" * (t.options.text_limit + 1)), "tts_text_too_long")


@advice("151-odd-texts", "a missing or blank text: empty_text; not a string: invalid_message")
def _odd_texts(t: Target) -> None:
    with Talk(t) as talk:
        talk.configured()
        for text in (..., " \n　"):
            talk.refused(talk.ask(type="tts.speak", text=text), "empty_text")
        for invalid in (5, ["a"]):
            talk.refused(talk.ask(type="tts.speak", text=invalid), "invalid_message")


@check(
    "151-most-text",
    "a text of the maximum number of code points is spoken",
    also=(29,),
    metered=1,
    quick=False,
)
def _most_text(t: Target) -> None:
    with Talk(t) as talk:
        talk.configured()
        answer = talk.ask(type="tts.speak", text=t.longest_text)
        t.metered += answer.get("type") == "tts.audio.start"
        t.require(answer.get("type") == "tts.audio.start", "the synthesis begins", talk)
