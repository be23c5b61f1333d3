"""The round trip: texts × voices → audio → transcripts → error rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab.evaluate._advice.speech_report import build_speech_report
from speechlab.evaluate._cast import Cast, build_recordings_client, request_and_pair_voices
from speechlab.evaluate._repeat import record_request
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.costs import CHARACTERS, resolve_prices
from speechlab.evaluate._speech.drift import describe_days, describe_drift
from speechlab.evaluate._speech.speech_rows import (
    SPEAK,
    recognize_with_first_available,
    score_rows,
    synthesize_rows_in_turns,
)
from speechlab.evaluate._speech.speed import (
    TimingPlan,
    build_empty_call_table,
    build_timing_plan,
    time_or_explain,
    time_voices,
)
from speechlab.evaluate._study_arguments import check_client, check_reserved_columns, resolve_columns
from speechlab.evaluate._study_columns import SPEECH
from speechlab.evaluate._systems import describe_unreachable_services, resolve_services
from speechlab.evaluate._writing.record import (
    RunOptions,
    StageProgress,
    announce_estimate,
    build_record,
    warn_failures,
)
from speechlab.text import Lexicon

if TYPE_CHECKING:
    from speechlab.batch import Price
    from speechlab.client import Client
    from speechlab.contract import Voice
    from speechlab.store import Store


@shorten_tracebacks
@record_request
def round_trip(
    lab: Client | Mapping[str, Client] | None,
    frame: pd.DataFrame,
    voices: Iterable[Voice | str] | Voice | str | Mapping[str, Any] | None = None,
    *,
    text: str = "text",
    language: str = "language",
    audio: str = "audio",
    voice: str = "voice",
    respell: Lexicon | None = None,
    recognizer: Client | None = None,
    speed: int = 0,
    speed_concurrency: int | Sequence[int] = 1,
    prices: Price | Mapping[str, Price] | None = None,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    executor: Any = None,
    give_up_after_s: float | None = None,
    progress: StageProgress = True,
    title: str = "Round trip: text to speech and back",
    **options: Any,
) -> Report:
    """Speak texts with voices, recognize the speech, and score the hypotheses.

    Japanese and Chinese are scored by characters, English by words. Japanese voices are ranked by the error rate of
    readings, because 精度/制度, 三時/3時 and 今日/きょう are not mispronunciations. The report also has the character
    error rate, and the rate that forgives spellings.

    Speed is measured on request, by separate calls: one call of each voice to warm up, then all voices in turns, one
    call at a time, without a store. ``report.speed`` has these calls, the summary the medians of their times.

    Args:
        lab: The client; or several by name, whose voices speak, as in ``{"ours": lab, "theirs": other}``.
            None takes recordings that exist, of the columns ``audio`` and ``voice``; only the recognizer is asked.
        frame: One row for each text; for recordings that exist, one for each recording.
        voices: Voices or their ids; None for all voices that speak the text's language. For several services a
            mapping by name, as in ``{"ours": "heart", "theirs": ["alloy", "nova"]}``.
        text: Column of the texts.
        language: Column of their languages, or a code for all of them.
        audio: For ``lab=None``, the column of the recordings.
        voice: Column of their voices or systems.
        respell: As for :func:`speechlab.batch.synthesize`; texts are scored as they are.
        recognizer: The client that recognizes. None for ``lab``, or the first of several services that can be asked:
            a comparison of voices needs one recognizer for all.
        speed: Number of texts of each language for the speed of each voice; 0 measures none.
        speed_concurrency: Timed calls that begin at the same time, from 1 to 256. Several numbers, as in ``(1, 4,
            16)``, are measured one after the other; ``report.speed`` has all, the summary the fewest.
        prices: What each service charges, by its name, as in ``{"ours":
            sl.evaluate.Price(per_million_characters=15)}``; one price for all. The report then has the cost.
        store: Where results are kept and reused; None for the user's own store.
        concurrency: Maximum of calls at once.
        executor: A ``dask.distributed.Client`` whose workers make the calls, as for :func:`speechlab.batch.run`.
        give_up_after_s: As for :func:`speechlab.batch.run`.
        progress: True for bars, False for none, a function of (stage, calls done, calls in all), or a watcher such
            as ``sl.widgets.BatchPreview()``, which is shown one batch after the other. The first stage of a function
            is an estimate, as in *estimate: 24 texts to speak, 1,240 characters*, with 0 calls.
        title: Title of the report.
        **options: Parameters of ``Client.transcribe``.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or no voice speaks any of the texts.
        AuthenticationError: The service refuses the API key.
        APIConnectionError: No service can be reached. If one of several cannot be asked, its rows fail.
    """
    frame, (text, language) = resolve_columns(frame, text=text, language=language)
    if lab is None:
        lab, frame, speed = *build_recordings_client(frame, text, language, audio, voice, recognizer), 0
    services = resolve_services(lab)
    check_reserved_columns(frame, SPEECH)
    run = RunOptions(title, store, concurrency, executor, give_up_after_s, progress)
    settings = resolve_prices(prices, list(services), CHARACTERS)
    clock = build_timing_plan(speed, speed_concurrency, "texts for each voice, or 0 for none", progress)
    cast = request_and_pair_voices(services, frame, voices, language, store, give_up_after_s)
    columns = [*frame.columns, *(["system"] if "" not in services else [])]
    scored, facts, batches = synthesize_recognize_and_score(
        cast,
        services,
        columns,
        text,
        language,
        run,
        recognizer=recognizer,
        clock=clock,
        options=options,
        respell=respell,
    )
    warn_failures(scored)
    record = build_record("round_trip", store, *batches, speed=clock[0], **settings, **options)
    facts |= {"text": text, "language": language, "record": record}
    return Report.of(build_speech_report(title, scored, **facts))


def synthesize_recognize_and_score(
    cast: Cast,
    services: Mapping[str, Client],
    columns: list[str],
    text: str,
    language: str,
    run: RunOptions,
    *,
    recognizer: Client | None,
    clock: TimingPlan,
    options: dict[str, Any],
    takes: int = 1,
    temperature: float | None = None,
    respell: Lexicon | None = None,
) -> tuple[pd.DataFrame, dict[str, Any], list[pd.DataFrame]]:
    """Have texts spoken, recognized by one recognizer, scored and timed.

    Returns:
        The scored rows, with the columns of the user that are named; ``segments``, ``speed`` and ``notes`` of the
        report; and the tables of the batches.
    """
    if recognizer is not None:
        check_client("recognizer", recognizer)
    settings: dict[str, Any] = {"text": text, "temperature": temperature}
    settings["respell"] = None if respell is None else Lexicon(respell)  # a record has a list of entries
    plans = [
        partial(
            batch.plan_synthesis,
            cast.select_service_rows(name),
            client,
            prefix=SPEAK,
            repeat=take,
            store=run.store,
            **settings,
        )
        for take in range(takes)
        for name, client in cast.services.items()
    ]
    announce_estimate(run.progress, "speak", plans, next_action="recognize")
    cast, sounds = _synthesize_takes(cast, takes, run, settings)
    transcripts, refusals = recognize_with_first_available(
        {"": recognizer} if recognizer is not None else cast.services or services,
        pd.concat(sounds, ignore_index=takes > 1),  # rows of one take stay at their places
        language,
        first_choice=next(iter(services)) if recognizer is None else "",
        **run.to_batch_arguments("transcribe"),
        **options,
    )
    first = transcripts[transcripts["take"] == 0]
    timed, untimed = time_or_explain(
        lambda: time_voices(cast.services, cast.catalogues, first, text, language, clock),
        build_empty_call_table(),
    )
    scored, segments = score_rows(transcripts, cast.rows_without_voice, columns, text, language, run.store)
    notes = [
        *cast.describe_skipped_texts(language),
        *describe_unreachable_services(cast.gone),
        *refusals,
        *untimed,
        *describe_drift(scored, "errors", "reference_length", [language, "voice"]),
        *describe_days(scored),
    ]
    return scored, {"segments": segments, "speed": timed, "notes": notes}, [*sounds, transcripts]


def _synthesize_takes(
    cast: Cast, takes: int, run: RunOptions, settings: dict[str, Any]
) -> tuple[Cast, list[pd.DataFrame]]:
    """Have each voice speak each text ``takes`` times; services that can no longer be asked are left out."""
    sounds: list[pd.DataFrame] = []
    pairs = []
    for take in range(takes):
        detail = "" if takes == 1 else f"take {take + 1} of {takes}"
        rows = cast.pairs if take == 0 else cast.pairs[cast.pairs["voice"].notna()]
        take_cast = cast._replace(pairs=rows.assign(take=take))
        arguments = {
            "repeat": take,
            **settings,
            **run.to_batch_arguments("synthesize", detail),
        }
        tables = {name: (lab, take_cast.select_service_rows(name)) for name, lab in cast.services.items()}
        spoken_tables, unreachable = synthesize_rows_in_turns(tables, needed=not sounds, **arguments)
        cast = cast.mark_services_unreachable(unreachable)
        sounds += list(spoken_tables.values())
        pairs.append(take_cast.mark_services_unreachable(unreachable).pairs)
    return cast._replace(pairs=pd.concat(pairs, ignore_index=True)), sounds
