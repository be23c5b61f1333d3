"""The recognition of recordings: transcripts → error rates."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab.evaluate._arguments import NO_LANGUAGE, keep_free, need_columns, recording_seconds
from speechlab.evaluate._failed import tell_failed
from speechlab.evaluate._speech.mixed import languages_of
from speechlab.evaluate._speech.rows import RESULTS, SEE, errors_of, recognised, reported
from speechlab.evaluate._speech.summary import NO_SPEAKER
from speechlab.evaluate._writing.record import record_of

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch import Progress
    from speechlab.client import Client
    from speechlab.evaluate._speech.report import SpeechReport
    from speechlab.store import Store

_SPEAKERS = ("voice", "speaker")


def recognition(
    lab: Client,
    frame: pd.DataFrame,
    *,
    audio: str = "audio",
    text: str = "text",
    language: str = "language",
    voice: str | None = "auto",
    identify: bool = False,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    progress: Progress = True,
    title: str = "Recognition",
    **options: Any,
) -> SpeechReport:
    """Recognise recordings and score what was understood.

    A row may be of several languages, as in ``ja+en``: the recogniser then identifies the language, and the score
    counts words, and single characters of languages without spaces (the mixed error rate). With ``vad="segments"``
    the report keeps the segments. The column ``loop`` says where the recogniser repeated itself.

    Args:
        lab: The client.
        frame: One row for each recording.
        audio: Column of the recordings: paths.
        text: Column of what is said.
        language: Column of the languages: codes, or several codes with ``+`` between them.
        voice: Column of who speaks, for the summary; ``"auto"`` takes ``voice`` or ``speaker`` if the table has it;
            None puts all recordings of a language into one row.
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
    import pandas as pd

    if voice == "auto":
        voice = next((name for name in _SPEAKERS if name in getattr(frame, "columns", ())), None)
    need_columns(frame, audio, text, language, *([] if voice is None else [voice]))
    keep_free(frame, RESULTS - {"audio", "voice", "duration_s", "sample_rate"})
    files = [_file(cell, label) for cell, label in zip(frame[audio], frame.index, strict=True)]
    speaker = NO_SPEAKER if voice is None else frame[voice]
    own = {} if "file" in frame.columns else {"file": pd.array(files, dtype="string")}
    given = frame.assign(**own)
    heard = given.assign(
        audio=frame[audio],
        voice=speaker,
        voice_name=files if voice is None else speaker,
        gender="",
        duration_s=frame["duration_s"]
        if "duration_s" in frame.columns
        else [recording_seconds(one) for one in frame[audio]],
        sample_rate=pd.array([pd.NA] * len(frame), dtype="Int64"),
        tts_status="cached",  # nothing had to be spoken
        tts_error=None,
    )
    known = pd.Series([bool(languages_of(value)) for value in heard[language]], index=heard.index)
    found = recognised(
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
    record = record_of("recognition", store, found, identify=identify, **options)
    report = reported(title, found, skipped, list(given.columns), text, language, store=store, record=record)
    tell_failed(errors_of(report), len(report.table), SEE)
    return report


def _file(cell: object, label: object) -> str:
    """Name of a recording: of its file, or else of its row."""
    return Path(os.fspath(cell)).name if isinstance(cell, str | os.PathLike) else f"row {label}"
