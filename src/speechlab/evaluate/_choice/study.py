"""The study of voices: spoken, recognised, scored, measured, timed, and put in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._arguments import is_whole_number, refused
from speechlab._brief import briefly
from speechlab.client import replaying_from
from speechlab.evaluate._arguments import keep_free, need_columns
from speechlab.evaluate._choice.measured import MEASURES, measured, rated_clips
from speechlab.evaluate._choice.order import ordered
from speechlab.evaluate._choice.report import VoicesReport
from speechlab.evaluate._failed import tell_failed
from speechlab.evaluate._round_trip import StageProgress, stage_of
from speechlab.evaluate._speech.rows import RESULTS, SEE, errors_of, recognised, reported, spoken
from speechlab.evaluate._speech.speed import check_speed, timed_or_why
from speechlab.evaluate._voices import cross, engines_of
from speechlab.evaluate._writing.record import record_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from speechlab.client import Client
    from speechlab.contract import Voice
    from speechlab.store import Store

_OWN = frozenset({"take", "engine", *MEASURES})


@briefly
def voices(
    lab: Client,
    frame: pd.DataFrame,
    voices: Iterable[Voice | str] | Voice | str | None = None,
    *,
    text: str = "text",
    language: str = "language",
    takes: int = 1,
    temperature: float | None = None,
    speed: int = 5,
    dnsmos: int | None = None,
    engines: Mapping[str, str] | None = None,
    identify: bool = False,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    give_up_after_s: float | None = None,
    progress: StageProgress = True,
    title: str = "Which voice?",
    **options: Any,
) -> VoicesReport:
    """Say which voice to take: how well each is understood, how fast it is, how it sounds, and how sure that is.

    All voices speak the same sentences, and the recogniser hears them. Voices of a language are ranked by what was
    understood (Japanese by readings), with groups that cannot be told apart (:func:`speechlab.metrics.rank`), and
    their errors are parted from those made whatever the voice (:func:`speechlab.metrics.attribute`).

    Args:
        lab: The client.
        frame: One row for each sentence.
        voices: Voices or their ids; None for all voices that speak a sentence's language.
        text: Column of the sentences; one that stands twice counts once.
        language: Column of their languages.
        takes: How often each voice speaks each sentence; with several, the spread of voices that vary is known.
        temperature: Variation, for voices that have it; None for their own.
        speed: With how many sentences of each language the speed of each voice is measured; 0 measures none.
        dnsmos: How many clips of each voice and language DNSMOS rates, at some seconds each; None for three where the
            extra ``quality`` is installed, 0 for none.
        engines: The engine of each voice, by its id; None takes what stands before a colon in the voice's short name
            (``kokoro: jf_alpha``).
        identify: As for :func:`round_trip`.
        store: As for :func:`round_trip`.
        concurrency: As for :func:`round_trip`.
        give_up_after_s: As for :func:`speechlab.batch.run`.
        progress: As for :func:`round_trip`.
        title: Title of the report.
        **options: Parameters of ``Client.transcribe``.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or there is no voice for any of the
            sentences.
        AuthenticationError: The service refuses the API key.
    """
    import pandas as pd

    need_columns(frame, text, language)
    keep_free(frame, RESULTS | _OWN)
    turns, rated = check_speed(speed), rated_clips(dnsmos)
    if not is_whole_number(takes) or takes < 1:
        raise refused("takes", takes, "a whole number from 1 on")
    once = frame.drop_duplicates([language, text])
    catalogue = replaying_from(lab, store).voices()
    pairs = _named(cross(once, catalogue, voices, language)).assign(take=0)
    mute = pairs["voice"].isna()
    running = {"store": store, "concurrency": concurrency, "give_up_after_s": give_up_after_s}
    sound = _takes(lab, pairs[~mute], text, takes, progress, {**running, "temperature": temperature})
    how = {**running, **options, "progress": stage_of(progress, "transcribe")}
    heard = recognised(lab, pd.concat(sound, ignore_index=True), language, identify=identify, **how)
    timed, untimed = timed_or_why(lab, pairs[~mute], text, language, turns)
    told = {"takes": takes, "temperature": temperature, "speed": turns, "dnsmos": rated, "identify": identify}
    scored = reported(
        title,
        heard,
        pairs[mute],
        [*once.columns, "take"],
        text,
        language,
        store=store,
        speed=timed,
        record=record_of("voices", store, *sound, heard, **told, **options),
        summary=False,
    )
    found = engines_of(catalogue, scored.table["voice"], engines)
    table = measured(scored.table.assign(engine=found), text, language, rated)
    order = ordered(table, text, language)
    notes = [*order.notes, *([untimed] if untimed else [])]
    if less := len(frame) - len(once):
        what = "1 row repeats a sentence" if less == 1 else f"{less} rows repeat sentences"
        notes.append(f"{what} of the table; each sentence counts once.")
    report = VoicesReport.ordered(replace(scored, table=table), order, notes)
    tell_failed(errors_of(report), len(report.table), SEE)
    return report


def _named(pairs: pd.DataFrame) -> pd.DataFrame:
    """Give voices of one short name a part of their ids as well, since figures go by the names."""
    names = pairs[["voice", "voice_name"]].drop_duplicates()
    twice = set(names.loc[names["voice_name"].duplicated(keep=False), "voice"].dropna())
    if not twice:
        return pairs
    full = pairs["voice_name"] + " [" + pairs["voice"].str[:8] + "]"
    return pairs.assign(voice_name=pairs["voice_name"].mask(pairs["voice"].isin(twice), full))


def _takes(
    lab: Client, pairs: pd.DataFrame, text: str, takes: int, progress: StageProgress, how: dict[str, Any]
) -> list[pd.DataFrame]:
    """Each sentence by each voice, as often as was asked for."""
    stages = (
        ["synthesize"] if takes == 1 else [f"synthesize, take {take + 1} of {takes}" for take in range(takes)]
    )
    return [
        spoken(lab, pairs.assign(take=take), text, repeat=take, progress=stage_of(progress, stage), **how)
        for take, stage in enumerate(stages)
    ]
