"""Recordings compared with reference recordings: by a built-in ratio, and by measures of the user."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from speechlab._arguments import is_frame, is_missing, refuse_other_tables, require_columns
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.metrics._arguments import check_index, check_number
from speechlab.metrics._columns import with_columns
from speechlab.metrics._sound.clips import checked_measures, clips_in, measured_by, read_clip
from speechlab.metrics._sound.networks import speaker_similarity

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

RecordingMeasure: TypeAlias = Callable[["NDArray[np.float32]", "NDArray[np.float32]", int], float]
"""A function from the samples of a recording and of its reference (mono, float32 in [-1, 1]) and their rate in Hz."""


def compare_recordings(
    recordings: pd.DataFrame | Iterable[Any],
    references: Iterable[Any] | None = None,
    *,
    measures: Mapping[str, RecordingMeasure] | None = None,
    sample_rate: int = 16_000,
    with_speakers: bool = False,
    audio: str = "audio",
    reference: str = "reference_audio",
) -> pd.DataFrame:
    """Compare recordings with reference recordings: the amount of distortion, or the similarity of speakers.

    Other packages have measures such as STOI or PESQ; give them as functions. Both recordings are first mixed to mono
    and resampled to one rate.

    Args:
        recordings: Clips, paths or bytes; or a table with a column of them.
        references: One for each recording; None for a table. Two Series must have the same index.
        measures: For each new column a function from the samples of a recording, those of its reference (float32,
            mono, of any two lengths) and the sample rate to a number.
        sample_rate: Rate in Hz, 1,000 to 192,000, at which samples are compared.
        with_speakers: Add the column ``speaker_similarity``, by the function of this name, which needs weights.
        audio: Column of the recordings of a table.
        reference: Column of the references of a table.

    Returns:
        The table with the following columns, or, for lists, these columns alone: ``si_sdr_db``, the scale-invariant
        signal-to-distortion ratio in dB (Le Roux et al., 2019); the columns of ``measures``; and ``compare_error``,
        the reason for a row without figures. Such a row does not stop the others. The ratio is over the length of the
        shorter recording, and assumes that both begin at the same time. It is missing if a recording is silent, or if
        both are equal.

    Raises:
        InvalidRequestError: A column is missing, lists differ in length, or an argument is invalid.
        ModelError: The weights for ``with_speakers`` are missing or not the pinned ones.

    Example:
        >>> import numpy as np
        >>> from speechlab.audio import AudioClip
        >>> tone = np.sin(np.arange(16_000) / 9).astype("f4") / 2
        >>> noise = np.random.default_rng(0).normal(0, 0.05, 16_000).astype("f4")
        >>> table = compare_recordings([AudioClip(tone + noise, 16_000)], [AudioClip(tone, 16_000)])
        >>> round(float(table["si_sdr_db"][0]))
        17
    """
    import pandas as pd

    check_number(sample_rate, "sample_rate", 1_000, 192_000, "Hz")
    functions = checked_measures(measures)
    refuse_other_tables(recordings, "recordings")
    if is_frame(recordings) or is_frame(references):
        if not is_frame(recordings) or references is not None:
            message = "the table already has references; leave references out, or give two lists"
            raise InvalidRequestError(message, parameter="references")
        require_columns(recordings, audio, reference, hint="Name the right one, as in audio='path'")
        frame, sides = recordings, (recordings[audio].tolist(), recordings[reference].tolist())
    else:
        index = getattr(recordings, "index", None)
        check_index(references, index, "references")
        sides = clips_in(recordings), clips_in(() if references is None else references)
        if len(sides[0]) != len(sides[1]):
            message = (
                f"there are {len(sides[0])} recordings and {len(sides[1])} references; give one for each"
            )
            raise InvalidRequestError(message, parameter="references")
        frame = pd.DataFrame(
            index=pd.RangeIndex(len(sides[0])) if index is None or callable(index) else index
        )
    rows = [
        _row(one, other, functions, int(sample_rate), with_speakers)
        for one, other in zip(*sides, strict=True)
    ]
    names = ("si_sdr_db", *(["speaker_similarity"] if with_speakers else []), *functions)
    types = dict.fromkeys(names, "Float64") | {"compare_error": "string"}
    return with_columns(frame, rows, types)


def _row(
    one: Any, other: Any, measures: dict[str, RecordingMeasure], rate: int, speakers: bool
) -> dict[str, Any]:
    if is_missing(one) or is_missing(other):
        return {}
    row: dict[str, Any] = {}
    try:
        clips = [read_clip(side) for side in (one, other)]
        sound, model = (clip.to_mono().resample(rate).samples for clip in clips)
        row["si_sdr_db"] = si_sdr(sound, model)
        if speakers:
            row["speaker_similarity"] = speaker_similarity(*clips)
    except (AudioError, InvalidRequestError) as error:
        row["compare_error"] = str(error)
        if "si_sdr_db" not in row:
            return row
    values, problem = measured_by(measures, sound, model, rate)
    return row | values | ({"compare_error": problem} if problem else {})


def si_sdr(sound: NDArray[np.float32], model: NDArray[np.float32]) -> float | None:
    """Scale-invariant signal-to-distortion ratio in dB; None if a recording is silent, or if both are equal.

    Source: J. Le Roux, S. Wisdom, H. Erdogan, J. R. Hershey, SDR - half-baked or well done? (ICASSP 2019).
    """
    n = min(len(sound), len(model))
    one, other = sound[:n].astype(np.float64), model[:n].astype(np.float64)
    if not n:
        return None
    one, other = one - one.mean(), other - other.mean()
    power = float(other @ other)
    if power == 0 or not one.any():
        return None
    target = (float(one @ other) / power) * other
    target_energy, noise_energy = float(target @ target), float((one - target) @ (one - target))
    if noise_energy == 0 or target_energy == 0:
        return None
    return 10 * math.log10(target_energy / noise_energy)
