"""Latency of speech: requested whole, as a stream, and in a realtime session."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from speechlab._arguments import refused
from speechlab._brief import briefly
from speechlab.client import AudioDelta, asking_afresh
from speechlab.errors import SpeechLabError
from speechlab.evaluate._arguments import check_client
from speechlab.evaluate._speech.speed import in_turns

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.client import Client, RealtimeSession
    from speechlab.contract import Voice

_WAYS = ("whole", "stream", "realtime")
_TYPES = {
    "way": "string",
    "text": "string",
    "turn": "Int64",
    **dict.fromkeys(("first_sound_s", "total_s", "duration_s", "rtf"), "Float64"),
    "error": "string",
}


@briefly
def latency(
    lab: Client, texts: str | Iterable[str], voice: Voice | str, *, ways: Iterable[str] = _WAYS
) -> pd.DataFrame:
    """Measure the latency of speech, by the way in which it is requested.

    Calls are made one at a time. The first call of each way does not count. Then the first text is spoken in all
    ways, then the second, and so on; each turn begins with another way. All realtime texts go through one session,
    which the call that does not count has opened. Each call reaches the service even if the store has its result, and
    the store keeps the new one. A client in replay makes no call: kept results arrive with the delays that they had.

    ::

        times = sl.evaluate.latency(lab, ["A sentence.", "Another one."], "heart")
        times.groupby("way", sort=False)[["first_sound_s", "total_s", "rtf"]].median()

    Args:
        lab: The client.
        texts: One text or several.
        voice: The voice. Streams and sessions need one that streams ``pcm``.
        ways: Which of ``whole`` (``synthesize``), ``stream`` (``stream_speech``) and ``realtime``.

    Returns:
        One row for each call: ``way``, ``text``, ``turn`` (from 0), ``first_sound_s`` (from the call to the first
        sound; equal to ``total_s`` for ``whole``), ``total_s`` (from the call to the last sound), ``duration_s`` (of
        the sound), ``rtf`` (real-time factor: total over duration) and ``error``. A failed call does not stop the
        others.

    Raises:
        InvalidRequestError: The client, a text, a way or the voice is not valid, or the voice cannot speak in a
            session.
        APIConnectionError: The service does not return its voices, or opens no session.
    """
    import pandas as pd

    asked = _texts(texts)
    if not asked:
        raise refused("texts", texts, "a text, or a list of texts")
    chosen = list(dict.fromkeys(_texts(ways)))
    if not chosen or set(chosen) - set(_WAYS):
        raise refused("ways", ways, f"some of {', '.join(map(repr, _WAYS))}")
    check_client("lab", lab)
    once = asking_afresh(lab, keep=True)
    known = once.voices().one(voice) if isinstance(voice, str) else voice
    with once.realtime(voice=known, format="pcm") if "realtime" in chosen else nullcontext() as session:
        found = in_turns(
            dict.fromkeys(chosen, asked),
            lambda way, text: {"way": way, "text": text, **_timed(once, way, text, known, session)},
        )
    return pd.DataFrame(found, columns=list(_TYPES)).astype(_TYPES)


def _texts(given: object) -> list[str]:
    """Return one or several texts as a list; an empty list for other values."""
    found = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    return found if all(isinstance(one, str) for one in found) else []


def _timed(lab: Client, way: str, text: str, voice: Voice, session: RealtimeSession | None) -> dict[str, Any]:
    """The measurements of one call."""
    try:
        first_s, total_s, length_s = _heard(lab, way, text, voice, session)
    except SpeechLabError as error:
        return {"error": str(error)}
    rtf = total_s / length_s if length_s else None
    return {"first_sound_s": first_s, "total_s": total_s, "duration_s": length_s, "rtf": rtf}


def _heard(
    lab: Client, way: str, text: str, voice: Voice, session: RealtimeSession | None
) -> tuple[float | None, float, float]:
    """Return the times of the first and of the last sound of a text, and its duration; in seconds."""
    if way == "whole":
        clip = lab.synthesize(text, voice=voice, format="pcm")
        return clip.timing.latency_s, clip.timing.latency_s, clip.duration_s
    begun = time.perf_counter()
    first_s = None
    if session is not None and way == "realtime":
        spoken = session.speak(text)
        for event in spoken:
            if first_s is None and isinstance(event, AudioDelta) and event.audio:
                first_s = time.perf_counter() - begun
        return first_s, time.perf_counter() - begun, spoken.collect().duration_s
    with lab.stream_speech(text, voice=voice, format="pcm") as stream:
        for data in stream:
            first_s = first_s or (time.perf_counter() - begun if data else None)
        return first_s, time.perf_counter() - begun, stream.collect().duration_s
