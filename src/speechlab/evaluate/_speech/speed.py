"""Speed of voices, recognizers and translators: separate timed calls in turns, and their summary."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from speechlab import batch
from speechlab._arguments import build_argument_error, is_missing, is_whole_number
from speechlab._pandas import pd
from speechlab.client import Client, SpeechClip, VoiceCatalogue, copy_for_timing
from speechlab.errors import SpeechLabError
from speechlab.evaluate._statistics import QUANTILES, estimate_quantile
from speechlab.evaluate._study_arguments import check_count, parse_language_code
from speechlab.evaluate._writing.record import build_stage_progress

if TYPE_CHECKING:
    from speechlab.batch import Progress

# What a study is asked to time: the number of items, the calls at once, and how they are shown.
TimingPlan: TypeAlias = tuple[int, list[int], "Progress"]
# Times of streamed recognition: of the first text since speech began, of the final one since it ended.
STREAM_TIMES = ("first_partial_s", "finalization_s")
# The columns of all tables of timed calls, in order.
_TYPES = {
    **dict.fromkeys(("system", "way", "voice", "voice_name", "language"), "string"),
    **dict.fromkeys(("source_lang", "target_lang", "file", "text"), "string"),
    **dict.fromkeys(("turn", "concurrency", "refusals"), "Int64"),
    **dict.fromkeys(("first_byte_s", "first_audible_s", "first_word_s", "total_s", "duration_s"), "Float64"),
    **dict.fromkeys(STREAM_TIMES, "Float64"),
    "rtf": "Float64",
    "stalls": "Int64",
    "stalled_s": "Float64",
    "characters": "Int64",
    "error": "string",
}
SPEECH_COLUMNS = ("first_byte_s", "first_audible_s", "total_s", "duration_s", "rtf", "stalls", "stalled_s")
_VOICE_COLUMNS = ("voice", "voice_name", "language", "text", *SPEECH_COLUMNS)
RECOGNIZER_COLUMNS = ("voice", "voice_name", "language", "file", "text", "total_s", "duration_s", "rtf")
_MAX_CONCURRENCY = 256
_GROUP_COLUMNS = ("system", "voice", "voice_name", "language", "source_lang", "target_lang")
_COMMON_COLUMNS = ("turn", "concurrency", "refusals", "error")
# Columns of timed calls that a summary has.
TIMES = ("first_byte_s", "first_audible_s", "first_word_s", "total_s", "rtf", *STREAM_TIMES)


def build_call_table(rows: Sequence[Mapping[Any, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Return timed calls as a table with columns of one order and type for all studies."""
    types = {name: kind for name, kind in _TYPES.items() if name in {*columns, *_COMMON_COLUMNS}}
    return pd.DataFrame(list(rows), columns=list(types)).astype(types)


def build_empty_call_table() -> pd.DataFrame:
    """Return the table of timed calls, without rows."""
    return build_call_table([], _VOICE_COLUMNS)


def time_voices(
    services: Mapping[str, Client],
    catalogues: Mapping[str, VoiceCatalogue],
    rows: pd.DataFrame,
    text: str,
    language: str,
    clock: TimingPlan,
) -> pd.DataFrame:
    """Time the voices of a study in turns, each with the same texts of a language; nothing comes from a store."""
    count, at_once, progress = clock
    if not count or not len(rows):
        return build_empty_call_table()
    fresh = {name: copy_for_timing(client) for name, client in services.items()}
    streams = {
        (name, voice.id): voice.streaming for name, catalogue in catalogues.items() for voice in catalogue
    }
    is_named = "" not in fresh
    texts = rows[rows[text].map(lambda cell: isinstance(cell, str) and bool(cell.strip())).astype(bool)]
    rows_of_services = texts[texts["system"].isin(list(services))] if is_named else texts.assign(system="")
    chosen = rows_of_services.drop_duplicates(["system", "voice", language, text])
    sentences = {
        tuple(map(str, key)): group[text].astype(str).tolist()[:count]
        for key, group in chosen.groupby(
            ["system", "voice", "voice_name", language], observed=True, sort=False
        )
    }

    def time_voice(key: tuple[str, ...], sentence: str) -> dict[str, Any]:
        system, voice, name, code = key
        facts = {"system": system, "voice": voice, "voice_name": name, "language": code, "text": sentence}
        return (
            facts | time_synthesis(fresh[system], sentence, voice, stream=streams[system, voice]).to_columns()
        )

    rows_of_calls = batch.time_in_turns(sentences, time_voice, at_once, progress)
    return build_call_table(rows_of_calls, (*(["system"] if is_named else []), *_VOICE_COLUMNS))


def time_synthesis(
    lab: Client, text: str, voice: Any, *, stream: bool, audio_format: str = "wav"
) -> batch.TimedCall[SpeechClip]:
    """Have a text spoken on the clock, in pieces or whole."""

    def synthesize(arrivals: batch.Arrivals) -> SpeechClip:
        if not stream:
            return lab.synthesize(text, voice=voice, format=audio_format)
        with lab.stream_speech(text, voice=voice, format=audio_format) as sound:
            return arrivals.read_stream(sound)

    return batch.time_call_with_retries(synthesize)


def time_recognizers(
    systems: Mapping[str, tuple[Client, Mapping[str, Any]]],
    rows: pd.DataFrame,
    text: str,
    language: str,
    clock: TimingPlan,
) -> pd.DataFrame:
    """Time the recognizers of a study in turns, each with the same recordings of a speaker and language."""
    count, at_once, progress = clock
    fresh = {name: copy_for_timing(client) for name, (client, _) in systems.items()}
    recordings = {
        (name, str(voice), str(code)): group.to_dict("records")[:count]
        for (voice, code), group in rows.groupby(["voice", language], observed=True, sort=False)
        for name in systems
    }
    is_named = "" not in fresh

    def time_recording(key: tuple[str, str, str], row: Mapping[Hashable, Any]) -> dict[str, Any]:
        system, voice, code = key
        facts = {"system": system, "voice": voice, "voice_name": voice, "language": code}
        facts |= {"file": row["file"], "text": row[text], "duration_s": row["duration_s"]}
        options = systems[system][1]
        arguments = resolve_row_options(fresh[system].transcribe, options, row)
        if "language" not in options:
            arguments["language"] = parse_language_code(code)
        times = batch.time_call_with_retries(
            lambda _: fresh[system].transcribe(row["audio"], **arguments)
        ).to_columns()
        if "total_s" in times and row["duration_s"]:
            times["rtf"] = times["total_s"] / row["duration_s"]
        return facts | times

    columns = (*(["system"] if is_named else []), *RECOGNIZER_COLUMNS)
    return build_call_table(batch.time_in_turns(recordings, time_recording, at_once, progress), columns)


def resolve_row_options(
    call: Callable[..., object], options: Mapping[str, Any], row: Mapping[Hashable, Any]
) -> dict[str, Any]:
    """Return options of a batch for a call of one row: cells instead of columns, without options of batches only."""
    parameters = inspect.signature(call).parameters

    def resolve_value(value: Any) -> Any:
        if isinstance(value, batch.Value):
            return value.value
        if isinstance(value, batch.Column):
            return row[value.name]
        return row[value] if isinstance(value, str) and value in row else value

    arguments = {name: resolve_value(value) for name, value in options.items() if name in parameters}
    return {name: value for name, value in arguments.items() if not is_missing(value)}


def time_or_explain(
    measure: Callable[[], pd.DataFrame], none: pd.DataFrame
) -> tuple[pd.DataFrame, list[str]]:
    """Return the timed calls, or none, and notes on what failed, which costs no study."""
    try:
        calls = measure()
    except SpeechLabError as error:
        return none, [f"Speed was not measured: {error}"]
    failed = calls["error"].dropna()
    if len(calls) and len(failed) == len(calls):
        return none, [f"Speed was not measured, all calls failed; the first: {failed.iloc[0]}"]
    if not len(failed):
        return calls, []
    return calls, [f"{len(failed)} of {len(calls)} timed calls failed; the first: {failed.iloc[0]}"]


def summarize_calls(speed: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Summarize the calls without errors of each group: ``timed_calls``, and of each time its median under its name.

    Also the lowest and highest call (``_low``, ``_high``), and from enough calls the quantiles (``_p50``, ``_p95``,
    ``_p99``) with 95% intervals. Only the calls with the fewest others at the same time count, unless ``by`` has
    ``concurrency``; then ``stalled_calls`` are counted, too.
    """
    names = [name for name in TIMES if name in speed.columns]
    rows = []
    chosen = speed if "concurrency" in by else select_least_concurrent_calls(speed)
    for key, calls in chosen[chosen["error"].isna()].groupby(list(by), observed=True, sort=False):
        row = {**dict(zip(by, key, strict=True)), "timed_calls": len(calls)}
        if "stalls" in calls.columns and "concurrency" in by and calls["stalls"].notna().any():
            row["stalled_calls"] = int((calls["stalls"] > 0).sum())
        for name in names:
            timed = calls.dropna(subset=[name])
            times = timed[name].to_numpy(dtype=np.float64)
            if not times.size:
                continue
            row |= {name: np.median(times), f"{name}_low": times.min(), f"{name}_high": times.max()}
            # The calls of a turn that began together share what slows them.
            together = "concurrency" in timed.columns and (timed["concurrency"] > 1).any()
            turns = timed["turn"].nunique() if together else None
            for percent, share in QUANTILES.items():
                if (estimate := estimate_quantile(times, share, turns)) is not None:
                    ends = [f"{name}_p{percent}{end}" for end in ("", "_low", "_high")]
                    row |= dict(zip(ends, estimate, strict=True))
        rows.append(row)
    columns = [f"{name}{part}" for name in names for part in ("", *(f"_p{percent}" for percent in QUANTILES))]
    filled = [column for column in columns if column in names or any(column in row for row in rows)]
    order = [f"{column}{end}" for column in filled for end in ("", "_low", "_high")]
    counts = ["timed_calls", *(["stalled_calls"] if any("stalled_calls" in row for row in rows) else [])]
    return pd.DataFrame(rows, columns=[*by, *counts, *order]).astype(
        dict.fromkeys(order, "Float64") | dict.fromkeys(counts, "Int64")
    )


def select_least_concurrent_calls(speed: pd.DataFrame) -> pd.DataFrame:
    """Return the timed calls with the fewest others at the same time."""
    if not len(speed) or "concurrency" not in speed.columns:
        return speed
    callers = speed["concurrency"].fillna(1)  # streams run as they are allowed
    fewest_at_once: pd.DataFrame = speed[callers == callers.min()]
    return fewest_at_once


def summarize_calls_by_load(speed: pd.DataFrame) -> pd.DataFrame:
    """Return the summary of timed calls by their number at the same time; the columns are those of a report."""
    by = [
        name for name in _GROUP_COLUMNS if name in speed.columns and (name != "system" or speed[name].any())
    ]
    summary = summarize_calls(speed, [*by, "concurrency"])
    places = summary.groupby(by, sort=False, dropna=False).ngroup()  # all loads of a voice stand together
    return summary.iloc[np.lexsort((summary["concurrency"].to_numpy(dtype=np.int64), places.to_numpy()))]


def build_timing_plan(count: object, at_once: object, what: str, progress: object) -> TimingPlan:
    """Check what a study is asked to time."""
    callers = check_concurrency("speed_concurrency", at_once)
    return check_count("speed", count, what), callers, build_stage_progress(progress, "speed")


def check_concurrency(argument: str, value: object) -> list[int]:
    """Return the numbers of calls at the same time, each once, the fewest first."""
    numbers: list[Any] = list(value) if isinstance(value, Iterable) else [value]
    if not numbers or not all(
        is_whole_number(number) and 1 <= number <= _MAX_CONCURRENCY for number in numbers
    ):
        raise build_argument_error(
            argument, value, f"a whole number from 1 to {_MAX_CONCURRENCY}, or several"
        )
    return sorted(set(map(int, numbers)))


_COLUMNS = ("system", "source_lang", "target_lang", "text", "first_word_s", "total_s", "characters")


def build_empty_stream_table() -> pd.DataFrame:
    """Return the table of timed streams, without rows."""
    return build_call_table([], _COLUMNS)


def time_translations(
    systems: Mapping[str, tuple[Client, Mapping[str, Any]]],
    frame: pd.DataFrame,
    columns: Sequence[str],
    clock: TimingPlan,
) -> pd.DataFrame:
    """Time the streams of a study in turns, each system with the same texts of a direction."""
    count, at_once, progress = clock
    if not count or not len(frame):
        return build_empty_stream_table()
    fresh = {name: copy_for_timing(lab) for name, (lab, _) in systems.items()}
    text, _, source_lang, target_lang = columns
    rows = frame[frame[text].astype(object).map(lambda cell: isinstance(cell, str) and bool(cell.strip()))]
    directions = list(
        rows.drop_duplicates([text, source_lang, target_lang]).groupby([source_lang, target_lang], sort=False)
    )
    texts = {
        (name, str(source), str(target)): group.to_dict("records")[:count]
        for name in systems
        for (source, target), group in directions
    }

    def time_translation(key: tuple[str, str, str], row: Mapping[Hashable, Any]) -> dict[str, Any]:
        system, source, target = key
        arguments = resolve_row_options(fresh[system].stream_translation, systems[system][1], row)
        arguments |= {"source_lang": source, "target_lang": target}

        def translate(arrivals: batch.Arrivals) -> str:
            with fresh[system].stream_translation(str(row[text]), **arguments) as stream:
                for piece in stream:
                    arrivals.add_text(piece.text)
                return stream.text

        timed = batch.time_call_with_retries(translate)
        facts = {"system": system, "source_lang": source, "target_lang": target, "text": row[text]}
        return {
            **facts,
            "characters": None if timed.result is None else len(timed.result),
            **timed.to_columns(),
        }

    return build_call_table(batch.time_in_turns(texts, time_translation, at_once, progress), _COLUMNS)
