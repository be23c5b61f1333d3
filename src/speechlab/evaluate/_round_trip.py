"""The round trip, texts × voices → audio → transcripts → error rates; and its second half alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._speech import SpeechReport
from speechlab.metrics import score

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from speechlab.batch import Progress
    from speechlab.client import Client, VoiceCatalogue
    from speechlab.contract import Voice
    from speechlab.store import Store

__all__ = ["StageProgress", "recognition", "round_trip", "speaks", "voice_name"]

StageProgress = bool | Callable[[str, int, int], None]
"""True for bars, False for none, or a function of (stage, calls done, calls in all)."""

_NAMES = {
    "asr_hypothesis": "hypothesis",
    "asr_hypothesis_language": "hypothesis_language",
    "asr_confidence": "confidence",
    "asr_latency_s": "asr_latency_s",
}


def speaks(voice: Voice, language: str) -> bool:
    """Return whether a voice's free-text ``language`` names a language code."""
    return language.lower() in re.findall(r"[a-z]{2,3}", voice.language.lower())


def voice_name(voice: Voice) -> str:
    """Return a short name: what a description ends with in brackets, or else what it begins with."""
    if found := re.search(r"\(([^()]+)\)\s*$", voice.description):
        return found[1][:40]
    return re.split(r"[:;,.—]", voice.description, maxsplit=1)[0].strip()[:40] or voice.id[:8]


def round_trip(
    lab: Client,
    frame: pd.DataFrame,
    voices: Iterable[Voice | str] | None = None,
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
        progress: True for bars, False for none, or a function of (stage, calls done, calls in all).
        title: Title of the report.
        **options: Parameters of ``Client.transcribe``, the same for all rows.

    Raises:
        InvalidRequestError: A column is missing, or there is no voice for any of the texts.
        AuthenticationError: The service refuses the API key.
    """
    _need(frame, text, language)
    pairs = _cross(frame, lab.voices(), voices, language)
    spoken = batch.synthesize(
        pairs,
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
    return _recognise(
        lab,
        spoken,
        given=list(frame.columns),
        text=text,
        language=language,
        identify=identify,
        store=store,
        concurrency=concurrency,
        progress=_stage(progress, "transcribe"),
        title=title,
        options=options,
    )


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
        progress: True for a bar, False for none, or a function of (calls done, calls in all).
        title: Title of the report.
        **options: Parameters of ``Client.transcribe``.

    Raises:
        InvalidRequestError: A column is missing.
        AuthenticationError: The service refuses the API key.
    """
    from speechlab.audio import AudioClip

    _need(frame, audio, text, language, *([voice] if voice else []))
    speaker = frame[voice] if voice else "recordings"
    clips = [AudioClip.from_file(path) for path in frame[audio]] if "duration_s" not in frame.columns else []
    heard = frame.assign(
        audio=frame[audio],
        voice=speaker,
        voice_name=speaker,
        gender="",
        duration_s=[clip.duration_s for clip in clips] if clips else frame.get("duration_s", float("nan")),
        sample_rate=None,
        tts_rtf=float("nan"),
        tts_status="cached",  # nothing had to be spoken
        tts_error=None,
    )
    return _recognise(
        lab,
        heard,
        given=list(frame.columns),
        text=text,
        language=language,
        identify=identify,
        store=store,
        concurrency=concurrency,
        progress=progress,
        title=title,
        options=options,
    )


def _recognise(
    lab: Client,
    spoken: pd.DataFrame,
    *,
    given: list[str],
    text: str,
    language: str,
    identify: bool,
    store: Store | str | None,
    concurrency: int,
    progress: Progress,
    title: str,
    options: dict[str, Any],
) -> SpeechReport:
    heard = batch.transcribe(
        spoken.rename(columns={language: "language"}),
        lab,
        audio="audio",
        language=None if identify else "language",
        prefix="asr_",
        store=store,
        concurrency=concurrency,
        progress=progress,
        **options,
    ).rename(columns={"language": language})
    return SpeechReport.of(title, score(_tidy(heard, given), text, "hypothesis", language), language=language)


def _tidy(table: pd.DataFrame, given: list[str]) -> pd.DataFrame:
    """Give the columns of the batches the names of one study."""
    unspoken = table["tts_status"] == "error"
    failed = unspoken | (table["asr_status"] == "error")
    both = table["tts_status"].isin(["cached"]) & (table["asr_status"] == "cached")
    status = both.map({True: "cached", False: "ok"}).mask(failed, "error")
    table = table.assign(
        status=status.astype("category"),
        error=table["asr_error"].mask(unspoken, table["tts_error"]),
        asr_rtf=table["asr_processing_s"] / table["duration_s"],
    ).rename(columns=_NAMES)
    fresh = ("voice", "voice_name", "gender", "audio", "duration_s", "sample_rate", *_NAMES.values())
    last = ("tts_rtf", "asr_rtf", "status", "error")
    return table[[*given, *(name for name in (*fresh, *last) if name not in given)]]


def _need(frame: pd.DataFrame, *columns: str) -> None:
    for name in columns:
        if name not in frame.columns:
            message = (
                f"the table has no column {name!r}; it has {', '.join(map(repr, frame.columns)) or 'none'}"
            )
            raise InvalidRequestError(message, parameter=name)


def _cross(
    frame: pd.DataFrame, catalogue: VoiceCatalogue, voices: Iterable[Voice | str] | None, language: str
) -> pd.DataFrame:
    """Every text with every voice that speaks its language."""
    import pandas as pd

    chosen = (
        list(catalogue)
        if voices is None
        else [catalogue[voice] if isinstance(voice, str) else voice for voice in voices]
    )
    parts = []
    for voice in chosen:
        part = frame[[speaks(voice, str(code)) for code in frame[language]]]
        parts.append(part.assign(voice=voice.id, voice_name=voice_name(voice), gender=voice.gender))
    if not sum(map(len, parts)):
        spoken = ", ".join(sorted({voice.language for voice in chosen})) or "none"
        message = f"no voice speaks a language of these texts; the voices speak: {spoken}"
        raise InvalidRequestError(message, parameter="voices")
    return pd.concat(parts, ignore_index=True)


def _stage(progress: StageProgress, stage: str) -> Progress:
    if isinstance(progress, bool):
        return progress
    told = progress
    return lambda done, total: told(stage, done, total)
