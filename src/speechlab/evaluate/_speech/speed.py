"""Speed of voices and recognisers: separate timed calls, one at a time, systems in turns."""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab import batch
from speechlab._arguments import is_missing
from speechlab.client import asking_afresh
from speechlab.errors import SpeechLabError
from speechlab.evaluate._arguments import code_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import pandas as pd

    from speechlab.client import Client, VoiceCatalogue

K = TypeVar("K")
T = TypeVar("T")
_TYPES = {
    "voice": "string",
    "voice_name": "string",
    "language": "string",
    "text": "string",
    "turn": "Int64",
    "first_sound_s": "Float64",
    "total_s": "Float64",
    "duration_s": "Float64",
    "rtf": "Float64",
    "concurrency": "Int64",
    "error": "string",
}
_HEARD_TYPES = {
    **{name: _TYPES[name] for name in ("voice", "voice_name", "language")},
    "file": "string",
    "text": "string",
    "turn": "Int64",
    **dict.fromkeys(("result_s", "duration_s", "rtf"), "Float64"),
    "concurrency": "Int64",
    "error": "string",
}


def no_speed() -> pd.DataFrame:
    """The table of timed calls, without rows."""
    import pandas as pd

    return pd.DataFrame(columns=list(_TYPES)).astype(_TYPES)


def timed_voices(
    services: Mapping[str, Client],
    catalogues: Mapping[str, VoiceCatalogue],
    rows: pd.DataFrame,
    text: str,
    language: str,
    count: int,
) -> pd.DataFrame:
    """Time the voices of a study, each with the same texts of a language.

    Each voice speaks once to warm up. Then all voices speak the first text, then all voices the second one, and so
    on; each turn begins with another voice. There is one call at a time, nothing comes from a store, and there are no
    retries.

    Args:
        services: The clients by name; a single client has no name.
        catalogues: Their voices, by the name of the client.
        rows: Rows of the study: texts with voices; for several clients with the name of the client in ``system``.
        text: Column of the texts.
        language: Column of their languages.
        count: Texts for each voice and language; 0 for none.

    Returns:
        A row for each call: ``system`` (for several clients), ``voice``, ``voice_name``, ``language``, ``text``,
        ``turn`` (from 0), ``first_sound_s`` (from the call to the first sound; missing for a voice that cannot
        stream), ``total_s`` (to the last sound), ``duration_s`` (of the speech), ``rtf`` (total over duration),
        ``concurrency`` (1) and ``error``.
    """
    import pandas as pd

    if not count or not len(rows):
        return no_speed()
    once = {name: asking_afresh(one) for name, one in services.items()}
    streams = {(name, voice.id): voice.streaming for name, one in catalogues.items() for voice in one}
    several = "" not in once
    spoken = rows[rows[text].map(lambda cell: isinstance(cell, str) and bool(cell.strip())).astype(bool)]
    given = spoken[spoken["system"].isin(list(services))] if several else spoken.assign(system="")
    chosen = given.drop_duplicates(["system", "voice", language, text])
    parts = {
        tuple(map(str, key)): part[text].astype(str).tolist()[:count]
        for key, part in chosen.groupby(
            ["system", "voice", "voice_name", language], observed=True, sort=False
        )
    }

    def timed(key: tuple[str, ...], spoken: str) -> dict[str, Any]:
        system, voice, name, code = key
        facts = {"voice": voice, "voice_name": name, "language": code, "text": spoken, "concurrency": 1}
        of = {"system": system} if several else {}
        return of | facts | _timed(once[system], voice, spoken, stream=streams[system, voice])

    found = in_turns(parts, timed)
    types = {**({"system": "string"} if several else {}), **_TYPES}
    return pd.DataFrame(found, columns=list(types)).astype(types)


def timed_recognisers(
    systems: Mapping[str, tuple[Client, Mapping[str, Any]]],
    rows: pd.DataFrame,
    text: str,
    language: str,
    count: int,
) -> pd.DataFrame:
    """Time the recognisers of a study, each with the same recordings of a speaker and language.

    The calls are made as in :func:`timed_voices`. A transcription is not streamed, so there is one time for each
    call.

    Args:
        systems: The client and the options of each system by name; a single system has no name.
        rows: Recordings, with ``audio``, ``file``, ``voice`` (the speaker) and ``duration_s``.
        text: Column of the references.
        language: Column of the languages.
        count: Recordings of each speaker and language; 0 for none.

    Returns:
        A row for each call: ``system`` (if there are several), ``voice``, ``voice_name``, ``language``, ``file``,
            ``text``,
        ``turn`` (from 0), ``result_s`` (from the call to the text), ``duration_s`` (of the recording), ``rtf``
        (``result_s`` over duration), ``concurrency`` (1) and ``error``.
    """
    import pandas as pd

    once = {name: asking_afresh(one) for name, (one, _) in systems.items()}
    of_each = {
        (name, str(voice), str(code)): part.to_dict("records")[:count]
        for (voice, code), part in rows.groupby(["voice", language], observed=True, sort=False)
        for name in systems
    }
    several = "" not in once

    def timed(key: tuple[str, str, str], row: Mapping[Hashable, Any]) -> dict[str, Any]:
        system, voice, code = key
        facts = {"voice": voice, "voice_name": voice, "language": code, "file": row["file"]}
        facts |= {"text": row[text], "duration_s": row["duration_s"], "concurrency": 1}
        of = {"system": system} if several else {}
        return of | facts | _heard(once[system], row, code, systems[system][1])

    types = {**({"system": "string"} if several else {}), **_HEARD_TYPES}
    return pd.DataFrame(in_turns(of_each, timed), columns=list(types)).astype(types)


def in_turns(parts: Mapping[K, Sequence[T]], call: Callable[[K, T], dict[str, Any]]) -> list[dict[str, Any]]:
    """Make timed calls one after the other: the first item of all parts, then the second of all parts, and so on.

    One call of each part to warm up comes before. Each turn begins with another part.

    Args:
        parts: The items of each part.
        call: Function that makes the call of an item and returns its measurements.

    Returns:
        The measurements of each call, with the ``turn`` (from 0).
    """
    keys = [key for key, items in parts.items() if items]
    for key in keys:
        call(key, parts[key][0])
    found: list[dict[str, Any]] = []
    for turn in range(max((len(items) for items in parts.values()), default=0)):
        start = turn % len(keys)
        there = [key for key in keys[start:] + keys[:start] if turn < len(parts[key])]
        found.extend({**call(key, parts[key][turn]), "turn": turn} for key in there)
    return found


def row_options(
    call: Callable[..., object], options: Mapping[str, Any], row: Mapping[Hashable, Any]
) -> dict[str, Any]:
    """Return options of a batch for a call of one row: cells instead of columns, without options of batches only."""
    known = inspect.signature(call).parameters

    def of_row(value: Any) -> Any:
        if isinstance(value, batch.Value):
            return value.value
        if isinstance(value, batch.Column):
            return row[value.name]
        return row[value] if isinstance(value, str) and value in row else value

    given = {name: of_row(value) for name, value in options.items() if name in known}
    return {name: value for name, value in given.items() if not is_missing(value)}


def timed_or_why(measure: Callable[[], pd.DataFrame], none: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the timed calls, or none and the reason, so that a study is not lost if no call can be timed.

    Args:
        measure: Function that makes the calls.
        none: The table of the calls, without rows.
    """
    try:
        timed = measure()
    except SpeechLabError as error:
        return none, [f"Speed was not measured: {error}"]
    if len(timed) and timed["error"].notna().all():
        return none, [f"Speed was not measured, all calls failed; the first: {timed['error'].iloc[0]}"]
    return timed, []


def _heard(
    lab: Client, row: Mapping[Hashable, Any], language: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Recognise one recording with the options of a system."""
    given = row_options(lab.transcribe, options, row)
    found = options.get("identify") or "language" in options
    asked: dict[str, Any] = {"language": None if found else code_or_none(language), **given}
    begun = time.perf_counter()
    try:
        lab.transcribe(row["audio"], **asked)
    except (SpeechLabError, OSError) as error:
        return {"error": str(error)}
    result_s = time.perf_counter() - begun
    return {"result_s": result_s, "rtf": result_s / row["duration_s"] if row["duration_s"] else None}


def _timed(lab: Client, voice: str, text: str, *, stream: bool) -> dict[str, Any]:
    begun = time.perf_counter()
    first = None
    duration_s = 0.0
    try:
        if stream:
            with lab.stream_speech(text, voice=voice, format="wav") as sound:
                for clip in sound.clips():
                    if clip.frames and first is None:
                        first = time.perf_counter() - begun
                    duration_s += clip.duration_s
        else:
            duration_s = lab.synthesize(text, voice=voice).duration_s
    except SpeechLabError as error:
        return {"error": str(error)}
    total_s = time.perf_counter() - begun
    rtf = total_s / duration_s if duration_s else None
    return {"first_sound_s": first, "total_s": total_s, "duration_s": duration_s, "rtf": rtf}
