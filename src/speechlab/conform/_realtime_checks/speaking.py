"""Checks of ``tts.speak`` and its events (sections 3, 4.3, 6 and 7.2)."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from speechlab.conform._model import build_decorators
from speechlab.conform._probe.socket import SpeakAttempt, Talk
from speechlab.conform._probe.sounds import MEDIA_TYPES, can_be_format, decode_clip
from speechlab.contract import DEFAULT_SAMPLE_RATE

if TYPE_CHECKING:
    from speechlab.conform._probe.target import Target

check, advice = build_decorators(__name__)
_START_FIELDS = ("request_id", "format", "content_type", "voice_id", "model", "audio_transport")


class _SpokenPair:
    """Two texts on one connection."""

    def __init__(self, t: Target, transport: str) -> None:
        with Talk(t) as talk:
            # binary is the default, so it is not requested.
            settings = {} if transport == "binary" else {"audio_transport": transport}
            self.created: dict[str, Any] = talk.configure_session(**settings).get("session") or {}
            self.first = talk.speak_text(t.text + " \U0001f600", "speak-1")
            self.second = talk.speak_text(t.several_sentences)  # long enough for several pieces

    @property
    def attempts(self) -> tuple[SpeakAttempt, SpeakAttempt]:
        return self.first, self.second


def _speak_pair_once(t: Target, transport: str) -> _SpokenPair:
    return t.get_or_make(f"spoken {transport}", lambda: _SpokenPair(t, transport))


def _collect_attempts(t: Target) -> list[tuple[_SpokenPair, SpeakAttempt, str]]:
    sessions = [(_speak_pair_once(t, transport), transport) for transport in ("binary", "base64_json")]
    return [(session, attempt, transport) for session, transport in sessions for attempt in session.attempts]


def _list_event_types(attempt: SpeakAttempt) -> list[str]:
    return ["audio" if isinstance(each, bytes) else str(each.get("type")) for each in attempt.events]


@check("139-early-speak", "tts.speak before session.update: session_not_configured, whatever the text")
def _check_early_speak(t: Target) -> None:
    with Talk(t) as talk:
        for text in (t.text, "", ...):
            answer = talk.ask_message(type="tts.speak", id="early", text=text)
            talk.require_error(answer, "session_not_configured")
            t.require_that(answer.get("id") == "early", "the id is echoed", talk)
        talk.configure_session()


@check("140-sequence", "tts.audio.start, audio, tts.audio.done, tts.usage: in this order", metered=4)
def _check_event_order(t: Target) -> None:
    for _, attempt, transport in _collect_attempts(t):
        kinds, sound = _list_event_types(attempt), "audio" if transport == "binary" else "tts.audio.delta"
        right = kinds[:1] == ["tts.audio.start"] and kinds[-2:] == ["tts.audio.done", "tts.usage"]
        t.require_that(right, "start first, done and usage last", attempt)
        right = len(kinds) > 3 and set(kinds[1:-2]) == {sound}
        t.require_that(right, "audio, and only audio, in between", attempt)


@check("141-start", "tts.audio.start has all its fields with the right values", metered=4)
def _check_start_fields(t: Target) -> None:
    name = t.stream_format
    for session, attempt, transport in _collect_attempts(t):
        start = attempt.insist_one_message("tts.audio.start")
        for field in _START_FIELDS:
            t.require_that(isinstance(start.get(field), str), f"{field} is a string", attempt)
        t.require_that(start.get("format") == name, "format is the session's", attempt)
        t.require_that(start.get("sample_rate") == DEFAULT_SAMPLE_RATE, "sample_rate is 24000", attempt)
        t.require_that(start.get("audio_transport") == transport, f"audio_transport is {transport}", attempt)
        for field in ("voice_id", "model"):
            t.require_that(
                start.get(field) == session.created.get(field), f"{field} is the session's", attempt
            )
        kind = str(start.get("content_type")).partition(";")[0]
        t.require_that(kind in MEDIA_TYPES.get(name, {kind}), "content_type matches the format", attempt)


@check("142-transports", "binary frames or base64 deltas that join to the audio", metered=4)
def _check_audio_transports(t: Target) -> None:
    name = t.stream_format
    for _, attempt, transport in _collect_attempts(t):
        deltas = attempt.select_messages("tts.audio.delta")
        right = bool(deltas) == (transport == "base64_json")
        t.require_that(right, "audio comes by the requested transport", attempt)
        t.require_that(
            len(attempt.audio_pieces) >= len(deltas), "the audio of each delta is standard base64", attempt
        )
        data = b"".join(attempt.audio_pieces)
        clip = decode_clip(data, name, DEFAULT_SAMPLE_RATE) if can_be_format(data, name) else None
        t.require_that(clip is not None and clip.duration_s > 0.05, f"the joined audio is {name}", attempt)


@check("143-seq", "seq increases by one with each delta", metered=4)
def _check_seq_increments(t: Target) -> None:
    for attempt in _speak_pair_once(t, "base64_json").attempts:
        numbers = [delta.get("seq") for delta in attempt.select_messages("tts.audio.delta")]
        t.insist_that(numbers and all(type(each) is int for each in numbers), "seq is an integer", attempt)
        counted = [int(numbers[0] or 0) + place for place in range(len(numbers))]
        t.require_that(numbers == counted, f"seq increases by one; it is {numbers[:12]}", attempt)


@advice("143-seq-zero", "seq begins with 0 for each text", metered=4)
def _check_first_seq(t: Target) -> None:
    for attempt in _speak_pair_once(t, "base64_json").attempts:
        numbers = [delta.get("seq") for delta in attempt.select_messages("tts.audio.delta")]
        t.require_that(numbers[:1] == [0], "the first seq is 0", attempt)


@check("144-done", "tts.audio.done has the numbers of bytes and pieces sent", metered=4)
def _check_done_totals(t: Target) -> None:
    for _, attempt, _ in _collect_attempts(t):
        summary, frames = attempt.insist_one_message("tts.audio.done"), attempt.audio_pieces
        total = sum(map(len, frames))
        t.require_that(summary.get("audio_bytes") == total, f"audio_bytes is {total}", attempt)
        t.require_that(summary.get("chunks") == len(frames), f"chunks is {len(frames)}", attempt)


@check("145-usage", "tts.usage has all its fields, counts code points and bytes, and is final", metered=4)
def _check_usage(t: Target) -> None:
    for session, attempt, _ in _collect_attempts(t):
        events = attempt.insist_one_message("tts.usage")
        usage = events.get("usage")
        t.insist_that(isinstance(usage, dict), "usage is an object", attempt)
        assert isinstance(usage, dict)
        right = events.get("session_id") == session.created.get("id")
        t.require_that(right, "session_id is the session's", attempt)
        t.require_that(isinstance(events.get("model"), str), "model is a string", attempt)
        client_id = None if attempt.id is ... else attempt.id
        t.require_that(events.get("client_id") == client_id, f"client_id is {client_id}", attempt)
        amounts = {"input_chars": len(attempt.text), "input_bytes": len(attempt.text.encode())}
        for name, value in (amounts | {"audio_bytes": sum(map(len, attempt.audio_pieces))}).items():
            right = usage.get(name) == value and type(usage.get(name)) is int
            t.require_that(right, f"{name} is {value}", attempt)
        t.require_that(usage.get("status") == "completed", "status is completed", attempt)
        t.require_that(usage.get("final") is True, "final is true", attempt)


@check("146-ids", "each text has a different request_id; all its events have the id", metered=4)
def _check_request_ids(t: Target) -> None:
    ids: set[str] = set()
    for _, attempt, _ in _collect_attempts(t):
        messages = [each for each in attempt.events if isinstance(each, dict)]
        attempt_ids = {str(each.get("request_id")) for each in messages}
        right = len(attempt_ids) == 1 and "None" not in attempt_ids
        t.require_that(right, "one request_id on all events", attempt)
        t.require_that(not attempt_ids & ids, "a request_id different from earlier ones", attempt)
        ids |= attempt_ids
        if attempt.id is not ...:
            echoed = [each.get("id") for each in messages if each.get("type") != "tts.usage"]
            t.require_that(set(echoed) == {attempt.id}, "the id is echoed on each event", attempt)


@check("142-base64", "deltas are padded, standard base64", metered=2, quick=False)
def _check_base64_deltas(t: Target) -> None:
    for attempt in _speak_pair_once(t, "base64_json").attempts:
        for delta in attempt.select_messages("tts.audio.delta"):
            try:
                right = bool(base64.b64decode(delta.get("audio", ""), validate=True))
            except (binascii.Error, TypeError, ValueError):
                right = False
            t.require_that(right, "audio is standard base64, and not empty", attempt)


@check(
    "149-busy",
    "a second text during a synthesis: synthesis_in_progress; the first continues",
    also=(164,),
    metered=1,
)
def _check_second_text_refused(t: Target) -> None:
    with Talk(t) as talk:
        talk.configure_session()
        talk.send_message(type="tts.speak", id="first", text=t.several_sentences)
        talk.send_message(type="tts.speak", id="second", text=t.text)
        attempt = talk.receive_to_end(t.several_sentences, "first")
        refusals = attempt.select_messages("tts.error")
        t.insist_that(len(refusals) == 1, "one tts.error, for the second text", attempt)
        talk.require_error(refusals[0], "synthesis_in_progress")
        t.require_that(refusals[0].get("id") == "second", "the error has the id of the second text", attempt)
        summary, total = attempt.insist_one_message("tts.audio.done"), sum(map(len, attempt.audio_pieces))
        right = summary.get("id") == "first" and summary.get("audio_bytes") == total
        t.require_that(right, "the first text is completed", attempt)
        answer = talk.ask_message(type="conform.unknown")
        t.require_that(answer.get("type") == "router.error", "no usage for the second text", talk)


@check("150-one-error", "a refused text gives one tts.error, and nothing else", metered=1, quick=False)
def _check_error_count(t: Target) -> None:
    with Talk(t) as talk:
        talk.configure_session()
        for text in ("", "a" * (t.options.text_limit + 1)):
            talk.send_message(type="tts.speak", id="refused", text=text)
            talk.send_message(type="conform.unknown")
            first, second = talk.receive_message(), talk.receive_message()
            t.require_that(first.get("type") == "tts.error", "one tts.error", talk)
            t.require_that(first.get("id") == "refused", "the error has the id of the text", talk)
            t.require_that(second.get("type") == "router.error", "no further message about the text", talk)
        attempt = talk.speak_text(t.text)
        t.require_that(
            attempt.select_messages("tts.audio.done"), "the session accepts the next text", attempt
        )


@check("151-texts", "empty_text, and tts_text_too_long over the limit", also=(30,))
def _check_text_length_errors(t: Target) -> None:
    with Talk(t) as talk:
        talk.configure_session()
        talk.require_error(talk.ask_message(type="tts.speak", text=""), "empty_text")
        talk.require_error(
            talk.ask_message(type="tts.speak", text="a" * (t.options.text_limit + 1)), "tts_text_too_long"
        )


@advice("151-odd-texts", "a missing or blank text: empty_text; not a string: invalid_message")
def _check_invalid_texts(t: Target) -> None:
    with Talk(t) as talk:
        talk.configure_session()
        for text in (..., " \n　"):
            talk.require_error(talk.ask_message(type="tts.speak", text=text), "empty_text")
        for invalid in (5, ["a"]):
            talk.require_error(talk.ask_message(type="tts.speak", text=invalid), "invalid_message")


@check(
    "151-most-text",
    "a text of the maximum number of code points is spoken",
    also=(29,),
    metered=1,
    quick=False,
)
def _check_longest_text(t: Target) -> None:
    with Talk(t) as talk:
        talk.configure_session()
        answer = talk.ask_message(type="tts.speak", text=t.longest_text)
        t.metered += answer.get("type") == "tts.audio.start"
        t.require_that(answer.get("type") == "tts.audio.start", "the synthesis begins", talk)
