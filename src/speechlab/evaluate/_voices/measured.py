"""The sound of voices: measures of clips, and their medians for each voice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from speechlab import batch
from speechlab.evaluate._arguments import code_or_none, count_of
from speechlab.evaluate._speech.scorers import opened, stored_answers
from speechlab.metrics import speech_measures

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from speechlab.batch import Progress
    from speechlab.store import Store

ClipMeasure: TypeAlias = Callable[["NDArray[np.float32]", int], float]
"""A function from the samples of a clip (mono, float32 in [-1, 1]) and their rate in Hz."""

_MEDIANS = (
    *("loudness_lufs", "morae_per_s", "words_per_s", "characters_per_s", "leading_silence_s"),
    *("trailing_silence_s", "longest_pause_s", "f0_median_hz", "dnsmos_overall", "dnsmos_signal"),
    "dnsmos_background",
)
RATED = "rated_"
"""Beginning of the columns of measures of the user."""
_RATED = 3
"""Default number of clips of each voice and language that DNSMOS rates."""
_AT_ONCE = 4
"""Clips that are measured between two steps of the bar."""
_CODES = "speechlab: language codes"


def rated_clips(count: object) -> int:
    """Return the number of clips of each voice that DNSMOS rates."""
    if count is None:
        installed = all(find_spec(name) is not None for name in ("onnxruntime", "speechmos"))
        return _RATED if installed else 0
    return count_of("dnsmos", count, "clips for each voice, or 0 for none")


def voice_keys(table: pd.DataFrame, language: str = "language") -> list[str]:
    """Columns that identify a voice in each language; with several services also that of the service."""
    return [*(["system"] if "system" in table.columns else []), "voice", language]


def _stored(name: str, measure: ClipMeasure, store: Store) -> ClipMeasure:
    """A measure whose answers are kept by its name and the sound."""

    def value(samples: NDArray[np.float32], rate: int) -> float:
        sound = hashlib.sha256(samples.tobytes()).hexdigest()
        request = {"measure": name, "sound": sound, "sample_rate": rate}
        computed: list[float] = []

        def measure_it(_: list[int]) -> list[float]:
            computed.append(measure(samples, rate))
            return computed

        (answer,) = stored_answers(store, [request], measure_it)
        return computed[0] if answer is None else answer

    return value


def measured(
    table: pd.DataFrame,
    text: str,
    language: str,
    rated: int,
    progress: Progress,
    measures: Mapping[str, ClipMeasure],
    store: Store | str | None,
) -> pd.DataFrame:
    """Measure the clips of a study, with a bar. DNSMOS rates ``rated`` clips of each voice and language."""
    codes = table[language].map(code_or_none)
    rows = table.assign(**{_CODES: codes}).drop(columns=["duration_s"])
    usable = table["audio"].notna()
    places = rows[usable].groupby(voice_keys(rows, language), observed=True).cumcount()
    first = places.index[places < rated]
    tables = []
    place: AbstractContextManager[Store | None] = opened(store) if measures else nullcontext(None)
    with place as keep, batch.counted(progress, len(rows), "quality", unit="clip") as tell:
        functions = {
            name: _stored(name, measure, keep) for name, measure in measures.items() if keep is not None
        }
        for group, with_dnsmos in ((rows.loc[first], bool(rated)), (rows.drop(index=first), False)):
            for begin in range(0, len(group), _AT_ONCE):
                clips = group.iloc[begin : begin + _AT_ONCE]
                options: Any = {"with_dnsmos": with_dnsmos, "measures": functions}
                tables.append(speech_measures(clips, text=text, language=_CODES, **options))
                tell(len(clips))
    measured_clips = pd.concat(tables).sort_index()
    lengths = table["duration_s"].astype("Float64").fillna(measured_clips["duration_s"])
    columns = [name for name in measured_clips.columns if name not in {_CODES, "duration_s"}]
    return measured_clips[columns].assign(duration_s=lengths)


def sounds(table: pd.DataFrame, language: str) -> pd.DataFrame:
    """Return the sound of each voice: medians of the measures of its clips, and the numbers of suspect clips.

    Returns:
        ``system`` (if there are several), ``voice``, ``language``, medians of the measures under their names;
        ``clipped``, ``truncated`` and ``repeated`` (numbers of clips with samples at full scale, that stop within a
        sound, that repeat their end), and ``rated`` (number of clips with DNSMOS).
    """
    keys = voice_keys(table, language)
    groups = table[table["voice"].notna()].groupby(keys, observed=True)
    names = [name for name in _MEDIANS if name in table.columns]
    names += [name for name in table.columns if str(name).startswith(RATED)]
    medians = groups[names].median()
    counts = {
        "clipped": (table["clipping_ratio"] > 0).fillna(value=False),
        "truncated": table["truncated_ending"].fillna(value=False),
        "repeated": table["repeated_ending"].fillna(value=False),
    }
    if "dnsmos_overall" in table.columns:
        counts["rated"] = table["dnsmos_overall"].notna()
    for name, column in counts.items():
        medians[name] = column.astype("Int64").groupby([table[key] for key in keys], observed=True).sum()
    return medians.reset_index().rename(columns={language: "language"})
