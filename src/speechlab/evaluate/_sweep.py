"""The sweep over the parameters of ``vad="segments"``: one parameter by calls, the others by arithmetic."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab import batch
from speechlab._arguments import build_argument_error, describe_missing_columns
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab._platform import text_dtype
from speechlab.contract import RecognitionRequest
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._study_arguments import check_columns, measure_duration
from speechlab.evaluate._writing.record import warn_failures
from speechlab.segments import coverage, from_speech, score
from speechlab.segments import frame as segment_frame

if TYPE_CHECKING:
    from speechlab.batch import Progress
    from speechlab.client import Client
    from speechlab.store import Store

# The only parameter that changes what the detector finds. Each of its values needs a call.
_SERVICE_PARAMETER = "min_silence_gap"
_LOCAL_PARAMETERS = ("segment_padding", "initial_segment_padding_ms", "speech_pad_ms", "min_segment_duration")
_PARAMETERS = (_SERVICE_PARAMETER, *_LOCAL_PARAMETERS)
_PREFIX = "vad_"


@shorten_tracebacks
def vad_sweep(
    lab: Client,
    frame: pd.DataFrame,
    grid: Mapping[str, Iterable[float]],
    *,
    audio: str = "audio",
    reference: pd.DataFrame | str | None = None,
    collar: float = 0.25,
    language: str | None = None,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    executor: Any = None,
    give_up_after_s: float | None = None,
    progress: Progress = True,
    **options: Any,
) -> pd.DataFrame:
    """Try the parameters of ``vad="segments"`` in all combinations.

    Only ``min_silence_gap`` changes what the service's detector finds: each recording is sent once for each of its
    values. The calls are a batch, so that no result is requested twice and an interrupted sweep can be continued. The
    other four parameters are arithmetic, computed here by :func:`speechlab.segments.from_speech`.

    Args:
        lab: The client.
        frame: One row for each recording. A recording in several rows counts once for each row.
        grid: Values to try, by parameter: ``min_silence_gap``, ``segment_padding``, ``initial_segment_padding_ms``,
            ``speech_pad_ms``, ``min_segment_duration``. A parameter that is left out has the contract's default.
        audio: Column of the recordings: paths, bytes or clips.
        reference: The reference segments: a segment frame whose ``file`` equals the cell of the column ``audio`` (for
            bytes and clips, the label of the row); or the column whose cells hold the segments of each recording, in
            any form that ``speechlab.segments.frame`` accepts.
        collar: Tolerance on either side of a boundary in seconds, for the scores with collar.
        language: Language code, or the column that holds it; None lets the service identify it.
        store: The store for results; None for the user's own store.
        concurrency: Maximum number of simultaneous calls.
        executor: A ``dask.distributed.Client`` whose workers make the calls, as for :func:`speechlab.batch.run`.
        give_up_after_s: As for :func:`speechlab.batch.run`.
        progress: True for a bar, False for none, a function of (calls done, calls in all), or a watcher.
        **options: Other parameters of ``Client.transcribe``.

    Returns:
        One row for each combination: its five parameters; ``recordings``; ``failed`` (rows without a valid reply,
        which count nowhere else); ``segments``, ``covered_s``, ``share`` (of the recordings' time), ``mean_s`` and
        ``longest_s``. With a reference also ``detection_error_rate``, ``miss_s``, ``false_alarm_s``, ``precision``,
        ``recall``, ``f1``, ``iou``, ``lenient_error_rate`` (with collar), ``boundary_f1`` (both boundaries within the
        collar), ``splits`` and ``joins``.

    Raises:
        InvalidRequestError: A column is missing, a parameter or a value of the grid is not allowed, or two rows with
            bytes or clips have one label.
        SegmentError: The reference is not a segment frame.
        AuthenticationError: The service refuses the API key.
    """
    check_columns(frame, audio)
    combinations = _build_combinations(grid)
    if misplaced := sorted({"vad", *_PARAMETERS} & set(options)):
        name = misplaced[0]
        message = f"{name} belongs into the grid" if name != "vad" else "a sweep is of vad='segments'"
        raise InvalidRequestError(message, parameter=name)
    files, names = _name_recordings(frame[audio])
    references = _resolve_reference(frame, reference, files, names)
    gaps = list(dict.fromkeys(combination[_SERVICE_PARAMETER] for combination in combinations))
    requests = pd.concat([frame.assign(**{_SERVICE_PARAMETER: gap}) for gap in gaps], ignore_index=True)
    with batch.suppress_failure_warnings():
        replies = batch.transcribe(
            requests,
            lab,
            audio=audio,
            language=language,
            vad="segments",
            min_silence_gap=batch.Column(_SERVICE_PARAMETER),
            prefix=_PREFIX,
            store=store,
            concurrency=concurrency,
            executor=executor,
            give_up_after_s=give_up_after_s,
            progress=progress,
            **{**options, **dict.fromkeys(_LOCAL_PARAMETERS, 0)},
        )
    see = "A recording counts once for each min_silence_gap; the column 'failed' says how many are left out"
    warn_failures(replies, see, _PREFIX, frames=4)
    speech = batch.to_segments(replies, store, prefix=_PREFIX, audio=audio)
    places = speech["position"].to_numpy() % max(1, len(frame))
    speech["file"] = pd.Series(names, dtype=text_dtype()).iloc[places].to_numpy()
    is_failed = ~replies[f"{_PREFIX}status"].isin(["ok", "cached"])
    failed_places = [*np.flatnonzero(is_failed), *speech.attrs.get(batch.FAULTS_ATTRIBUTE, ())]
    failed = {names[place % len(names)] for place in failed_places}
    complete = [name for name in names if name not in failed]
    speech = speech[speech["file"].isin(complete)]
    latest = speech.groupby("file")["end"].max()
    lengths = {  # times come rounded to the millisecond, and may so lie past the last sample
        name: max(measure_duration(cell), latest.get(name, 0.0))
        for name, cell in zip(names, frame[audio], strict=True)
        if name not in failed
    }
    gap_by_segment = requests[_SERVICE_PARAMETER].to_numpy()[speech["position"]]
    by_gap = {gap: speech.loc[gap_by_segment == gap, ["file", "start", "end", "text"]] for gap in gaps}
    if references is not None:
        references = references[references["file"].isin(complete)]
    rows = []
    for combination in combinations:
        segments = from_speech(by_gap[combination[_SERVICE_PARAMETER]], extent=lengths, **combination)
        counts = {"recordings": len(complete), "failed": len(names) - len(complete)}
        scores = _score_segments(references, segments, lengths, collar)
        rows.append({**combination, **counts, **_summarize_segments(segments, lengths), **scores})
    return pd.DataFrame(rows)


def _build_combinations(grid: object) -> list[dict[str, Any]]:
    if not isinstance(grid, Mapping):
        raise build_argument_error("grid", grid, "a mapping from a parameter's name to the values to try")
    values: dict[str, list[Any]] = {
        name: [RecognitionRequest.model_fields[name].default] for name in _PARAMETERS
    }
    for name, tried in grid.items():
        if name not in values:
            message = f"{name!r} is no parameter of segments; they are {', '.join(_PARAMETERS)}"
            raise InvalidRequestError(message, parameter="grid")
        if isinstance(tried, str) or not isinstance(tried, Iterable):
            raise build_argument_error(f"grid[{name!r}]", tried, "a list of values to try")
        values[name] = [getattr(value, "item", lambda value=value: value)() for value in tried]
    combinations = [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]
    if not combinations:
        raise InvalidRequestError("a parameter of the grid has no values to try", parameter="grid")
    for combination in combinations:  # what the contract refuses is refused before anything is sent
        RecognitionRequest.parse({"audio": "AAAA", "vad": "segments", **combination})
    return combinations


def _name_recordings(cells: pd.Series[Any]) -> tuple[list[str], list[str]]:
    """Return the names of recordings for references (paths, or else row labels), and unique short names."""
    files = [
        os.fspath(cell) if isinstance(cell, str | os.PathLike) else str(label)
        for label, cell in zip(cells.index, cells, strict=True)
    ]
    uses: Counter[str] = Counter()
    names, used = [], set(files)
    for file, cell in zip(files, cells, strict=True):
        uses[file] += 1
        if uses[file] > 1 and not isinstance(cell, str | os.PathLike):
            message = (
                f"the label {file!r} occurs twice, and names recordings without a path; give each row its own"
            )
            raise InvalidRequestError(message, parameter="frame")
        name, number = file, uses[file]
        while number > 1 and (name := f"{file} ({number})") in used:
            number += 1
        used.add(name)
        names.append(name)
    return files, names


def _resolve_reference(
    frame: pd.DataFrame, reference: object, files: list[str], names: list[str]
) -> pd.DataFrame | None:
    if reference is None:
        return None
    if not isinstance(reference, str):
        rows = pd.DataFrame({"file": files, "_name": names})
        merged = segment_frame(reference).merge(rows, on="file")
        return segment_frame(merged.assign(file=merged["_name"]).drop(columns="_name"))
    if reference not in frame.columns:
        raise InvalidRequestError(
            describe_missing_columns(list(frame.columns), reference), parameter="reference"
        )
    frames = [
        segment_frame(cell).assign(file=name) for name, cell in zip(names, frame[reference], strict=True)
    ]
    return segment_frame(pd.concat(frames) if frames else [])


def _summarize_segments(segments: pd.DataFrame, lengths: Mapping[str, float]) -> dict[str, float]:
    lasting = segments["end"] - segments["start"]
    total_s, covered = sum(lengths.values()), coverage(segments, lengths)["covered_s"].sum()
    return {
        "segments": len(segments),
        "covered_s": float(covered),
        "share": float(covered) / total_s if total_s else float("nan"),
        "mean_s": float(lasting.mean()),
        "longest_s": float(lasting.max()),
    }


def _score_segments(
    references: pd.DataFrame | None, segments: pd.DataFrame, lengths: Mapping[str, float], collar: float
) -> dict[str, float]:
    if references is None:
        return {}
    result = score(references, segments, extent=lengths, collar=collar)
    names = ("detection_error_rate", "miss_s", "false_alarm_s", "precision", "recall", "f1", "iou")
    return {
        **{name: getattr(result.detection, name) for name in names},
        "lenient_error_rate": result.lenient.detection_error_rate,
        "boundary_f1": result.segments.f1,
        "splits": result.segmentation.splits,
        "joins": result.segmentation.joins,
    }
