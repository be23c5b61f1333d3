"""The round trip, texts × voices → audio → transcripts → error rates; and its second half alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab.client import replaying_from
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._arguments import (
    NO_LANGUAGE,
    code_or_none,
    keep_free,
    need_columns,
    recording_seconds,
)
from speechlab.evaluate._failed import tell_failed
from speechlab.evaluate._speech import SpeechReport
from speechlab.evaluate._voices import cross
from speechlab.metrics import score

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from speechlab.batch import Progress
    from speechlab.client import Client
    from speechlab.contract import Voice
    from speechlab.store import Store

StageProgress = bool | Callable[[str, int, int], None] | batch.Watcher
"""True for bars, False for none, a function of (stage, calls done, calls in all), or a watcher of one batch after the
other."""

_CODES = "speechlab: language codes"
_PLACES = "speechlab: places"
_NAMES = {
    "asr_hypothesis": "hypothesis",
    "asr_hypothesis_language": "hypothesis_language",
    "asr_confidence": "confidence",
    "asr_latency_s": "asr_latency_s",
}


RESULTS = frozenset(
    {
        *("voice", "voice_name", "gender", "audio", "duration_s", "sample_rate"),
        *("hypothesis", "hypothesis_language", "confidence", "asr_latency_s", "tts_rtf", "asr_rtf"),
        *("status", "error", "unit", "error_rate", "alignment"),
    }
)
"""Columns that a study makes, and that its input may not have."""

_SEE = "report.failed() has them"


def round_trip(
    lab: Client,
    frame: pd.DataFrame,
    voices: Iterable[Voice | str] | Voice | str | None = None,
    *,
    text: str = "text",
    language: str = "language",
    identify: bool = False,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    progress: StageProgress = True,
    title: str = "Round trip: text to speech and back",
    **options: Any,
) -> SpeechReport:
    """Speak texts with voices, recognise the speech, and score what was understood.

    Japanese and Chinese are scored by characters, English by words; for Japanese the rate of readings stands beside
    it, because 精度/制度, 三時/3時 and 今日/きょう are not mispronunciations.

    Args:
        lab: The client.
        frame: One row for each text.
        voices: Voices or their ids; None for all voices that speak the text's language.
        text: Column of the texts.
        language: Column of their languages.
        identify: Whether the recogniser must identify the language instead of being told.
        store: Where results are kept and reused; None for the user's own store.
        concurrency: Calls under way at once.
        progress: True for bars, False for none, a function of (stage, calls done, calls in all), or a watcher such
            as ``sl.widgets.BatchPreview()``, which is shown one batch after the other.
        title: Title of the report.
        **options: Parameters of ``Client.transcribe``.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or there is no voice for any of the
            texts.
        AuthenticationError: The service refuses the API key.
    """
    need_columns(frame, text, language)
    keep_free(frame, RESULTS)
    pairs = cross(frame, replaying_from(lab, store).voices(), voices, language)
    mute = pairs["voice"].isna()
    with batch.failures_told_elsewhere():
        spoken = batch.synthesize(
            pairs[~mute],
            lab,
            text=text,
            prefix="tts_",
            store=store,
            concurrency=concurrency,
            progress=_stage(progress, "synthesize"),
        )
    spoken = spoken.assign(
        audio=spoken["tts_audio"],
        duration_s=spoken["tts_duration_s"],
        sample_rate=spoken["tts_sample_rate"],
        tts_rtf=spoken["tts_processing_s"] / spoken["tts_duration_s"],
    )
    heard = _recognised(
        lab,
        spoken,
        language,
        identify=identify,
        store=store,
        concurrency=concurrency,
        progress=_stage(progress, "transcribe"),
        **options,
    )
    timed = _timed(heard, store)
    report = _report(title, heard, pairs[mute], list(frame.columns), text, language, timed)
    tell_failed(_errors(report), len(report.table), _SEE)
    return report


def recognition(
    lab: Client,
    frame: pd.DataFrame,
    *,
    audio: str = "audio",
    text: str = "text",
    language: str = "language",
    voice: str | None = "voice",
    identify: bool = False,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    progress: Progress = True,
    title: str = "Recognition",
    **options: Any,
) -> SpeechReport:
    """Recognise recordings and score what was understood.

    Args:
        lab: The client.
        frame: One row for each recording.
        audio: Column of the recordings: paths.
        text: Column of what is said.
        language: Column of the languages.
        voice: Column of who speaks, for the summary; None if there is none.
        identify: As for :func:`round_trip`.
        store: As for :func:`round_trip`.
        concurrency: As for :func:`round_trip`.
        progress: True for a bar, False for none, a function of (calls done, calls in all), or a watcher such as
            ``sl.widgets.BatchPreview()``.
        title: Title of the report.
        **options: Parameters of ``Client.transcribe``.

    Raises:
        InvalidRequestError: A column is missing.
        AuthenticationError: The service refuses the API key.
    """
    need_columns(frame, audio, text, language, *([] if voice is None else [voice]))
    import pandas as pd

    keep_free(frame, RESULTS - {"audio", "voice", "duration_s", "sample_rate"})
    speaker = "recordings" if voice is None else frame[voice]
    heard = frame.assign(
        audio=frame[audio],
        voice=speaker,
        voice_name=speaker,
        gender="",
        duration_s=frame["duration_s"]
        if "duration_s" in frame.columns
        else [recording_seconds(one) for one in frame[audio]],
        sample_rate=pd.array([pd.NA] * len(frame), dtype="Int64"),
        tts_rtf=float("nan"),
        tts_status="cached",  # nothing had to be spoken
        tts_error=None,
    )
    known = pd.Series([code_or_none(value) is not None for value in heard[language]], index=heard.index)
    recognised = _recognised(
        lab,
        heard[known],
        language,
        identify=identify,
        store=store,
        concurrency=concurrency,
        progress=progress,
        **options,
    )
    skipped = heard[~known].assign(why=NO_LANGUAGE)
    timed = _timed(recognised, store)
    report = _report(title, recognised, skipped, list(frame.columns), text, language, timed)
    tell_failed(_errors(report), len(report.table), _SEE)
    return report


def _errors(report: SpeechReport) -> pd.Series[str]:
    return report.table.loc[report.table["status"] == "error", "error"]


def _recognised(
    lab: Client, spoken: pd.DataFrame, language: str, *, identify: bool, **how: Any
) -> pd.DataFrame:
    codes = spoken[language].map(code_or_none)
    with batch.failures_told_elsewhere():
        heard = batch.transcribe(
            spoken.drop(columns=[language, "language"], errors="ignore").assign(language=codes),
            lab,
            audio="audio",
            language=None if identify else "language",
            prefix="asr_",
            **how,
        )
    return heard.assign(**{language: spoken[language]})


def _timed(heard: pd.DataFrame, store: Store | str | None) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the report's rows say it
        return batch.segments(heard, store, prefix="asr_", audio="audio")


def _report(
    title: str,
    heard: pd.DataFrame,
    skipped: pd.DataFrame,
    given: list[str],
    text: str,
    language: str,
    timed: pd.DataFrame,
) -> SpeechReport:
    """Score what was heard, and put rows that nobody could speak or hear beside it."""
    import pandas as pd

    tidy = _tidy(heard, given).assign(**{_PLACES: range(len(heard))})
    if faults := timed.attrs.get(batch.FAULTS_ATTRIBUTE):
        errors = tidy["error"].tolist()
        tidy["error"] = [faults.get(position, error) for position, error in enumerate(errors)]
    rows = pd.concat([tidy, _untried(skipped, given)]).sort_index(kind="stable").reset_index(drop=True)
    places = pd.Series(rows.index, index=rows.pop(_PLACES))
    places = places[places.index.notna()]  # without rows that nobody could hear
    timed = timed.assign(position=places.reindex(timed["position"]).to_numpy(dtype="int64"))
    scored = score(
        rows.assign(**{_CODES: rows[language].map(code_or_none)}),
        reference=text,
        hypothesis="hypothesis",
        language=_CODES,
    )
    return SpeechReport.of(title, scored.drop(columns=_CODES), text=text, language=language, segments=timed)


def _untried(skipped: pd.DataFrame, given: list[str]) -> pd.DataFrame:
    """Keep the rows that nobody could speak or hear, with the reason."""
    kept = skipped[[*given, *(name for name in ("voice", "voice_name", "gender") if name not in given)]]
    return kept.assign(status="skipped", error=skipped.get("why"))


def _tidy(table: pd.DataFrame, given: list[str]) -> pd.DataFrame:
    """Give the columns of the batches the names of one study."""
    known = ["ok", "cached"]
    unspoken = ~table["tts_status"].isin(known)  # an error, or a batch that stopped before its turn came
    failed = unspoken | ~table["asr_status"].isin(known)
    both = table["tts_status"].isin(["cached"]) & (table["asr_status"] == "cached")
    status = both.map({True: "cached", False: "ok"}).mask(failed, "error")
    table = table.assign(
        status=status,
        error=table["asr_error"].mask(unspoken, table["tts_error"]),
        asr_rtf=table["asr_processing_s"] / table["duration_s"],
    ).rename(columns=_NAMES)
    fresh = ("voice", "voice_name", "gender", "audio", "duration_s", "sample_rate", *_NAMES.values())
    last = ("tts_rtf", "asr_rtf", "status", "error")
    return table[[*given, *(name for name in (*fresh, *last) if name not in given)]]


def _stage(progress: object, stage: str) -> Progress:
    if isinstance(progress, bool | batch.Watcher):
        return progress
    if not callable(progress):
        message = (
            f"progress is {progress!r}; it must be True, False, a function of (stage, calls done, calls in all), "
            "or a watcher such as BatchPreview()"
        )
        raise InvalidRequestError(message, parameter="progress")
    told = progress
    return lambda done, total: told(stage, done, total)
