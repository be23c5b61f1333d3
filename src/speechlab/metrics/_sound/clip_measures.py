"""Measures of synthesized speech: duration, rate, loudness, pitch, and signs of faults.

No measure says how natural a voice sounds. They find clips that are worth listening to.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from speechlab._arguments import (
    convert_table,
    has_column,
    is_missing,
    is_number,
    is_pandas_frame,
    require_columns,
)
from speechlab._pandas import pd
from speechlab.audio import AudioClip, resample, rms_dbfs, unify_recording
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.metrics._columns import add_columns
from speechlab.metrics._inputs import check_named_functions, check_number, to_texts
from speechlab.metrics._sound.networks import dnsmos, read_clip
from speechlab.metrics._sound.signal import (
    WINDOW_S,
    check_pitch_range,
    find_silence,
    has_abrupt_end,
    has_repeated_end,
    integrated_loudness,
    measure_clipping_ratio,
    measure_f0,
)
from speechlab.text import count_morae, language_code, normalizer, words, writes_without_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A function from the samples of a clip (mono, float32 in [-1, 1]) and their rate in Hz.
ClipMeasure: TypeAlias = Callable[["NDArray[np.float32]", int], float]

_PITCH_RATE = 16_000
_RATES = (
    *("duration_per_character_s", "duration_per_mora_s", "characters_per_s", "morae_per_s", "words_per_s"),
    "duration_z",
)
_SILENCES = ("silence_ratio", "leading_silence_s", "trailing_silence_s", "longest_pause_s")
_LEVELS = ("clipping_ratio", "peak_dbfs", "rms_dbfs", "loudness_lufs")
_PITCHES = ("f0_median_hz", "f0_mean_hz", "f0_sd_hz", "voiced_ratio")
_TYPES = {
    **dict.fromkeys(("duration_s", "speech_s"), "Float64"),
    **dict.fromkeys(("characters", "morae", "words"), "Int64"),
    **dict.fromkeys((*_RATES, *_SILENCES, *_LEVELS, *_PITCHES), "Float64"),
    **dict.fromkeys(("repeated_ending", "truncated_ending"), "boolean"),
}
_DNSMOS = ("dnsmos_signal", "dnsmos_background", "dnsmos_overall", "dnsmos_p808")
# Columns that :func:`speech_measures` adds.
MEASURE_COLUMNS = (*_TYPES, *_DNSMOS, "measure_error")


def loudness(clip: AudioClip | str | os.PathLike[str] | bytes) -> float:
    """Integrated loudness of a recording, in LUFS.

    Source: ITU-R BS.1770-4, annex 1.

    Args:
        clip: A clip, the path of a file, or its bytes, with any sample rate and any number of channels.

    Returns:
        The loudness; NaN for a clip of less than 0.4 s, and for a clip that is below -70 LUFS throughout.

    Raises:
        AudioError: The clip cannot be read.
        InvalidRequestError: ``clip`` is not a clip, a path or bytes.

    Example:
        >>> tone = sl.AudioClip(0.5 * np.sin(2 * np.pi * 997 * np.arange(48_000) / 48_000), 48_000)
        >>> round(loudness(tone), 1)
        -9.0
    """
    sound = read_clip(clip)
    return integrated_loudness(sound.samples, sound.sample_rate)


def speech_measures(
    clips: pd.DataFrame | Iterable[Any],
    texts: Sequence[str] | None = None,
    *,
    audio: str = "audio",
    text: str = "text",
    language: str = "language",
    silence_db: float = 40.0,
    f0_range_hz: tuple[float, float] = (60.0, 500.0),
    with_dnsmos: bool = False,
    measures: Mapping[str, ClipMeasure] | None = None,
) -> pd.DataFrame:
    """Measure clips of speech, one row each.

    Args:
        clips: Clips, paths or bytes; or a table with a column of them.
        texts: Intended texts, one for each clip; None for a table.
        audio: Column of the clips of a table.
        text: Column of the texts of a table; used if it exists.
        language: Column of the languages of a table; or the language of all rows.
        silence_db: Threshold of silence in dB, from 0 to 200. A window of 10 ms is silent if its power is this far
            below that of the loudest window, or below -70 dBFS.
        f0_range_hz: Lowest and highest pitch to search for, in Hz.
        with_dnsmos: Add the ratings of :func:`dnsmos`, which take some seconds for each clip.
        measures: For each new column a function from the samples of a clip (mono, float32 in [-1, 1]) and their rate
            in Hz to a number, such as a network that predicts ratings (UTMOS, NISQA).

    Returns:
        For a table, a new table with the same index and columns, and the following columns, which replace columns of
        the same name; for a list, only these:

        - ``duration_s``; ``speech_s``: without the silence at both ends.
        - ``characters``, ``words`` (missing for languages without spaces), ``morae`` (Japanese, with the extra
          ``ja``); letters and digits count as characters, punctuation does not.
        - ``duration_per_character_s``, ``duration_per_mora_s``, and the speaking rates ``characters_per_s``,
          ``morae_per_s``, ``words_per_s``, all over ``speech_s`` (pauses inside count, silence at the ends does not).
        - ``duration_z``: distance of ``speech_s`` per mora or character from the median of the language, in robust
          standard deviations of its logarithm; missing with fewer than 8 clips. Below -3.5, words may be missing;
          above 3.5, something may be said twice.
        - ``silence_ratio`` (fraction of the whole clip), ``leading_silence_s``, ``trailing_silence_s``,
          ``longest_pause_s`` (between sounds).
        - ``clipping_ratio``: fraction of samples at full scale in runs of three or more.
        - ``peak_dbfs``, ``rms_dbfs``, ``loudness_lufs`` (BS.1770-4, gated; missing below 0.4 s or for silence).
        - ``f0_median_hz``, ``f0_mean_hz``, ``f0_sd_hz``, ``voiced_ratio`` (voiced share of ``speech_s``).
        - ``repeated_ending``: whether the end sounds like the part before it, and the text has no repetition there.
        - ``truncated_ending``: whether the clip stops in the middle of a sound.
        - ``dnsmos_signal``, ``dnsmos_background``, ``dnsmos_overall``, ``dnsmos_p808`` (1 to 5), if requested;
          missing for a silent clip.
        - the columns of ``measures``.
        - ``measure_error``: the reason for missing measures: the clip could not be measured, or its words could not,
          because its language does not exist, or a function of ``measures`` failed. Such a row does not stop the
          others.

    Raises:
        InvalidRequestError: A column is missing or occurs twice, lists differ in length, the language of all rows
            does not exist, a range is invalid, or samples have no sample rate.

    Example:
        >>> clip = sl.AudioClip(np.concatenate([np.zeros(8_000), 0.5 * np.sin(np.arange(8_000))]), 8_000)
        >>> speech_measures([clip])[["duration_s", "leading_silence_s"]]
           duration_s  leading_silence_s
        0         2.0                1.0
    """
    check_number(silence_db, "silence_db", 0, 200, "decibels")
    check_pitch_range(f0_range_hz, _PITCH_RATE)
    functions = check_named_functions(measures, "measures", MEASURE_COLUMNS)
    frame, values, spoken_texts = _resolve_clips(clips, texts, audio, text)
    has_language = has_column(frame, language, "language")
    if not has_language and language != "language":
        language_code(language)
    languages = frame[language].tolist() if has_language else [language] * len(values)
    if len(spoken_texts) != len(values):
        message = f"there are {len(values)} clips and {len(spoken_texts)} texts; give one text for each clip"
        raise InvalidRequestError(message, parameter="texts")
    rows: list[dict[str, Any]] = []
    for value, line, tag in zip(values, spoken_texts, languages, strict=True):
        code, problem = _parse_language(tag)
        row: dict[str, Any] = {"_group": code}
        rows.append(row)
        try:
            clip = (
                None
                if value is None or (isinstance(value, float) and math.isnan(value))
                else read_clip(value)
            )
        except SpeechLabError as error:
            row["measure_error"] = str(error)
            continue
        if clip is not None:
            words_said = line if isinstance(line, str) else None
            row |= _measure_sound(clip, words_said, silence_db, f0_range_hz)
            if words_said is not None and row["speech_s"] > 0:
                row |= _measure_speaking_rates(words_said, code, row["speech_s"])
            if with_dnsmos and row["speech_s"] > 0:
                row |= dict(zip(_DNSMOS, dnsmos(clip), strict=True))
            measured, fault = _compute_user_measures(functions, clip.to_mono())
            row |= measured
            problem = problem or fault
        row["measure_error"] = problem
    _add_duration_z_scores(rows)
    rated = dict.fromkeys(_DNSMOS, "Float64") if with_dnsmos else {}
    return add_columns(
        frame, rows, _TYPES | rated | dict.fromkeys(functions, "Float64") | {"measure_error": "string"}
    )


def _resolve_clips(
    clips: Any, texts: Sequence[str] | None, audio: str, text: str
) -> tuple[pd.DataFrame, list[Any], list[Any]]:
    """Return the table for the measures, which may have no columns yet, the clips, and their intended texts."""
    clips = convert_table(clips)
    if is_pandas_frame(clips):
        clips = require_columns(clips, audio, argument="clips", hint="Name the right one, as in audio='path'")
        if texts is not None:
            message = (
                f"the table already has texts; leave texts out, and name their column (text={text!r:.60})"
            )
            raise InvalidRequestError(message, parameter="texts")
        spoken_texts = clips[text].tolist() if has_column(clips, text, "text") else [None] * len(clips)
        return clips, clips[audio].tolist(), spoken_texts
    values = _to_clip_list(clips)
    frame = pd.DataFrame(index=pd.RangeIndex(len(values)))
    if texts is None:
        return frame, values, [None] * len(values)
    return frame, values, to_texts(texts, "texts", "give '' for a clip without a text")


def _to_clip_list(clips: Any) -> list[Any]:
    """Return one clip or several as a list."""
    if not isinstance(clips, list | tuple) and unify_recording(clips) is not None:
        return [clips]
    if isinstance(clips, np.ndarray) and clips.dtype != object:
        message = (
            f"clips is an array of shape {clips.shape}, whose sample rate is not known; give "
            "AudioClip(samples, sample_rate), or a list of them"
        )
        raise InvalidRequestError(message, parameter="clips")
    if not isinstance(clips, Iterable) or isinstance(clips, Mapping):
        message = f"clips is {clips!r:.60} ({type(clips).__name__}); give clips, paths or bytes, or a table with them"
        raise InvalidRequestError(message, parameter="clips")
    return list(clips)


def _measure_sound(
    clip: AudioClip, text: str | None, silence_db: float, f0_range_hz: tuple[float, float]
) -> dict[str, Any]:
    rate = clip.sample_rate
    mono = clip.to_mono().samples
    quiet = find_silence(mono, rate, silence_db)
    edges = [min(windows * WINDOW_S, clip.duration_s) for windows in quiet.edges]
    sounding = bool(quiet.loud.any())
    speech_s = max(clip.duration_s - sum(edges), 0.0) if sounding else 0.0
    row: dict[str, Any] = {
        "duration_s": clip.duration_s,
        "speech_s": speech_s,
        "silence_ratio": quiet.ratio,
        "leading_silence_s": edges[0],
        "trailing_silence_s": edges[1],
        "longest_pause_s": quiet.longest_pause * WINDOW_S,
        "clipping_ratio": measure_clipping_ratio(clip.samples),
        "peak_dbfs": 20 * math.log10(clip.peak) if clip.peak else None,
        "rms_dbfs": rms_dbfs(clip.samples) if clip.peak else None,
        "loudness_lufs": integrated_loudness(clip.samples, rate),
        "repeated_ending": sounding
        and has_repeated_end(mono, rate, quiet)
        and not (text and _has_end_twice(_strip_case_and_signs(text))),
        "truncated_ending": sounding and has_abrupt_end(quiet),
    }
    if sounding:
        first, last = (round(edge * rate) for edge in edges)
        speech = mono[first : len(mono) - last]
        pitch = measure_f0(resample(speech, rate, _PITCH_RATE), _PITCH_RATE, *f0_range_hz)
        voiced = pitch[~np.isnan(pitch)]
        row["voiced_ratio"] = len(voiced) / len(pitch) if len(pitch) else None
        if len(voiced):
            row |= {
                "f0_median_hz": float(np.median(voiced)),
                "f0_mean_hz": float(voiced.mean()),
                "f0_sd_hz": float(voiced.std(ddof=1)) if len(voiced) > 1 else None,
            }
    return row


def _has_end_twice(text: str) -> bool:
    """Return whether a text says its end twice, of two characters or more."""
    return any(text[-size:] == text[-2 * size : -size] for size in range(2, len(text) // 2 + 1))


def _strip_case_and_signs(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _measure_speaking_rates(text: str, language: str | None, speech_s: float) -> dict[str, Any]:
    # Letters and digits as Python defines them: vowel signs of Thai and other scripts do not count.
    characters = len(_strip_case_and_signs(normalizer("none")(text)))
    row: dict[str, Any] = {"characters": characters}
    if characters:
        row |= {"duration_per_character_s": speech_s / characters, "characters_per_s": characters / speech_s}
    if language == "ja" and find_spec("pyopenjtalk") is not None:
        morae = count_morae(text)
        row["morae"] = morae
        if morae:
            row |= {"duration_per_mora_s": speech_s / morae, "morae_per_s": morae / speech_s}
    if language is not None and not writes_without_spaces(language):
        row["words"] = len([word for word in words(text) if _strip_case_and_signs(word)])
        row["words_per_s"] = row["words"] / speech_s
    return row


def _compute_user_measures(
    measures: Mapping[str, ClipMeasure], clip: AudioClip
) -> tuple[dict[str, float], str | None]:
    """Return the values of measures of the user, and what was wrong with the last of those that failed."""
    row, problem = {}, None
    for name, measure in measures.items():
        try:
            value = measure(clip.samples, clip.sample_rate)
        except Exception as error:  # noqa: BLE001 - a measure of the user; its error is reported in its row
            problem = f"{name}: {type(error).__name__}: {error}"
            continue
        if not is_number(value):
            problem = f"{name} gave {value!r:.60}, not a number"
        elif math.isfinite(value):
            row[name] = float(value)
    return row, problem


_MIN_GROUP_SIZE = 8
_MAD = 1.4826  # standard deviation over median absolute deviation, of a normal distribution


def _add_duration_z_scores(rows: list[dict[str, Any]]) -> None:
    groups: dict[Any, list[tuple[dict[str, Any], float]]] = {}
    for row in rows:
        pace = row.get("duration_per_mora_s") or row.get("duration_per_character_s")
        if pace:
            key = (row.get("_group"), "duration_per_mora_s" in row)
            groups.setdefault(key, []).append((row, math.log(pace)))
    for members in groups.values():
        paces = np.array([pace for _, pace in members])
        spread = _MAD * float(np.median(np.abs(paces - np.median(paces))))
        if len(members) >= _MIN_GROUP_SIZE and spread > 0:
            for row, pace in members:
                row["duration_z"] = (pace - float(np.median(paces))) / spread


def _parse_language(tag: object) -> tuple[str | None, str | None]:
    """Return the code of a row's language and its error; None for what does not apply."""
    # The default name of the column means no language if there is no such column.
    if is_missing(tag) or (isinstance(tag, str) and tag == "language"):
        return None, None
    try:
        return language_code(tag), None  # type: ignore[arg-type]  # whatever it is
    except InvalidRequestError as error:
        return None, str(error)
