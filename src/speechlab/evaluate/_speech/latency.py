"""Latency of speech by the way in which it is requested: whole, streamed, or in a realtime session."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._arguments import build_argument_error
from speechlab._brief import shorten_tracebacks
from speechlab.client import AudioDelta, Client, RealtimeSession, SpeechClip, copy_for_timing
from speechlab.evaluate._speech.speed import (
    SPEECH_COLUMNS,
    build_call_table,
    check_concurrency,
    time_synthesis,
)
from speechlab.evaluate._study_arguments import check_client

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.contract import Voice

_WAYS = ("whole", "stream", "realtime")


@shorten_tracebacks
def latency(
    lab: Client,
    texts: str | Iterable[str],
    voice: Voice | str,
    *,
    ways: Iterable[str] = _WAYS,
    concurrency: int | Iterable[int] = 1,
) -> pd.DataFrame:
    """Measure the latency of speech, by the way in which it is requested.

    The first call of each way does not count. Then the first text is spoken in all ways, then the second, and so on;
    each turn begins with another way. A call that the service refuses with "later" (429, or 503 with ``Retry-After``)
    is waited out, for a minute at most, and made again with a new clock. Each call reaches the service even if the
    store has its result, and the store keeps the new one. A client in replay makes no call: kept results arrive with
    the delays that they had.

    With a concurrency of four, each turn makes four calls of one way at the same time, with this text and the next
    three; the other ways wait. A realtime session speaks one text at a time, so four of them are open.

    ::

        times = sl.evaluate.latency(lab, ["A sentence.", "Another one."], "heart", concurrency=(1, 4))
        times.groupby(["way", "concurrency"], sort=False)[["first_audible_s", "total_s", "rtf"]].median()

    Args:
        lab: The client.
        texts: One text or several.
        voice: The voice. Streams and sessions need one that streams ``pcm``.
        ways: Which of ``whole`` (``synthesize``), ``stream`` (``stream_speech``) and ``realtime``.
        concurrency: Calls at the same time, from 1 to 256; several numbers are measured one after the other.

    Returns:
        One row for each call, with times in seconds from the call: ``way``, ``text``, ``turn`` (from 0),
        ``concurrency``, ``refusals`` (before this call, in no time), ``first_byte_s`` (the first samples; equal to
        ``total_s`` for ``whole``), ``first_audible_s`` (a player that starts with these samples reaches the first
        sound above the silence, which is 40 dB below the loudest 10 ms), ``total_s`` (the last samples),
        ``duration_s`` (of the sound), ``rtf`` (real-time factor: total over duration), ``stalls`` (how often that
        player has to wait for samples), ``stalled_s`` (for how long) and ``error``. A failed call does not stop the
        others.

    Raises:
        InvalidRequestError: The client, a text, a way, a concurrency or the voice is not valid, or the voice cannot
            speak in a session.
        APIConnectionError: The service does not return its voices, or opens no session.
    """
    sentences = _to_text_list(texts)
    if not sentences:
        raise build_argument_error("texts", texts, "a text, or a list of texts")
    chosen = list(dict.fromkeys(_to_text_list(ways)))
    if not chosen or set(chosen) - set(_WAYS):
        raise build_argument_error("ways", ways, f"some of {', '.join(map(repr, _WAYS))}")
    callers = check_concurrency("concurrency", concurrency)
    check_client("lab", lab)
    fresh = copy_for_timing(lab, keep=True)
    chosen_voice = fresh.voices().one(voice) if isinstance(voice, str) else voice
    sessions: SimpleQueue[RealtimeSession] = SimpleQueue()
    with ExitStack() as opened:
        for _ in range(max(callers) if "realtime" in chosen else 0):
            sessions.put(opened.enter_context(fresh.realtime(voice=chosen_voice, format="pcm")))

        def time_text(way: str, text: str) -> dict[str, Any]:
            if way == "realtime":
                timing = _time_text_in_session(sessions, text)
            else:
                timing = time_synthesis(fresh, text, chosen_voice, stream=way == "stream", audio_format="pcm")
            if way == "whole" and timing.result is not None:  # in replay, that of the call that was kept
                timing = replace(timing, total_s=timing.result.timing.latency_s)
            return {"way": way, "text": text, **timing.to_columns()}

        rows = batch.time_in_turns(dict.fromkeys(chosen, sentences), time_text, callers)
    return build_call_table(rows, ("way", "text", *SPEECH_COLUMNS))


def _to_text_list(values: object) -> list[str]:
    """Return one or several texts as a list; an empty list for other values."""
    texts = [values] if isinstance(values, str) else list(values) if isinstance(values, Iterable) else []
    return texts if all(isinstance(text, str) for text in texts) else []


def _time_text_in_session(sessions: SimpleQueue[RealtimeSession], text: str) -> batch.TimedCall[SpeechClip]:
    """Have a text spoken in a session that is free, on the clock."""
    session = sessions.get()

    def synthesize(arrivals: batch.Arrivals) -> SpeechClip:
        speech = session.speak(text)
        for event in speech:
            if isinstance(event, AudioDelta):
                arrivals.add_sound(len(event.audio))
        return speech.collect()

    try:
        return batch.time_call_with_retries(synthesize)
    finally:
        sessions.put(session)
