"""The recognition of recordings: transcripts → error rates, of one system or of several beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._brief import shorten_tracebacks
from speechlab._platform import stack_tables
from speechlab.display import format_count
from speechlab.evaluate._advice.choice import MARGIN
from speechlab.evaluate._recognition.conditions import (
    AS_RECORDED,
    Condition,
    apply_conditions,
    build_conditions,
)
from speechlab.evaluate._recognition.hallucinations import build_speechless_rows, collect_silence_transcripts
from speechlab.evaluate._recognition.recognition_measures import (
    add_stream_calls,
    add_stream_times,
    compute_further_measures,
)
from speechlab.evaluate._recognition.recognition_report import build_recognition_report
from speechlab.evaluate._recognition.recognition_rows import (
    build_recognition_rows,
    drop_earlier_results,
    find_voice_column,
    resolve_table_and_columns,
    split_by_known_language,
)
from speechlab.evaluate._repeat import record_request
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.batch_sizes import OtherBatches
from speechlab.evaluate._speech.blocks import group_rows_into_blocks
from speechlab.evaluate._speech.costs import HOURS, resolve_prices
from speechlab.evaluate._speech.drift import describe_recognition_changes
from speechlab.evaluate._speech.scorers import (
    SCORE_PREFIX,
    Scorer,
    add_scores,
    check_user_functions,
    ensure_open_store,
)
from speechlab.evaluate._speech.speech_rows import (
    HEAR,
    build_existing_rows,
    build_failed_rows,
    is_only_punctuation,
    recognize_rows_in_turns,
    score_rows,
)
from speechlab.evaluate._speech.speed import (
    TimingPlan,
    build_empty_call_table,
    build_timing_plan,
    time_or_explain,
    time_recognizers,
)
from speechlab.evaluate._study_arguments import (
    check_count,
    check_margin_and_baseline,
    check_reserved_columns,
    parse_language_code,
)
from speechlab.evaluate._study_columns import INPUTS, REASON, RECOGNITION, STREAMING
from speechlab.evaluate._systems import (
    EXISTING_PREFIX,
    System,
    build_systems,
    describe_unreachable_services,
    resolve_existing_outputs,
)
from speechlab.evaluate._writing.record import (
    RunOptions,
    StageProgress,
    announce_estimate,
    build_record,
    warn_failures,
)

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch import Price
    from speechlab.client import Client
    from speechlab.store import Store


@shorten_tracebacks
@record_request
def recognition(
    lab: Client | Mapping[str, Client] | None,
    frame: pd.DataFrame,
    *,
    hypotheses: Mapping[str, str] | Sequence[str] | str | None = None,
    audio: str = "audio",
    text: str = "text",
    language: str = "language",
    voice: str | None = "auto",
    groups: str | None = "auto",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    noise_db: Sequence[float] = (),
    noise: Any = "speech",
    band_hz: Sequence[tuple[float, float]] = (),
    speechless: int = 0,
    formatting: bool = False,
    entities: str | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    speed: int = 0,
    speed_concurrency: int | Sequence[int] = 1,
    stream: bool = False,
    other_batch_size: int | None = None,
    margin: float = MARGIN,
    baseline: str | None = None,
    prices: Price | Mapping[str, Price] | None = None,
    seed: int = 0,
    store: Store | str | None = None,
    concurrency: int = batch.DEFAULT_CONCURRENCY,
    executor: Any = None,
    give_up_after_s: float | None = None,
    progress: StageProgress = True,
    title: str = "Recognition",
    **options: Any,
) -> Report:
    """Recognize recordings and score the hypotheses of one system, or of several systems side by side.

    A row may contain several languages, as in ``ja+en``. The recognizer then identifies the language, and the score
    counts words, and single characters of languages without spaces (the mixed error rate). With ``vad="segments"``
    the report keeps the segments. The column ``loop`` flags repeated text.

    Several systems are ranked by language, on the recordings that all of them have (:func:`speechlab.metrics.rank`).
    ``report.findings`` name the better system, and whether the difference may be chance. If a service cannot be
    asked, its rows fail, ``report.notes`` give the reason, and the other services continue.

    Args:
        lab: The client; or several by name, as in ``{"ours": lab, "theirs": other}``. None scores the outputs of
            ``hypotheses`` alone; then nothing is asked, and the table needs no recordings.
        frame: One row for each recording; or what :func:`speechlab.datasets.read` takes, such as a folder of them.
        hypotheses: Columns with hypotheses that exist, by the names of their systems, as in ``{"old": "text_old"}``.
            They are compared with each other, and with what ``lab`` recognizes.
        audio: Column of the recordings: paths.
        text: Column of the references.
        language: Column of the languages: codes, or several codes with ``+`` between them. A code in place of a
            column is for all rows.
        voice: Column of the speakers, for the summary. ``"auto"`` takes ``voice`` or ``speaker`` if the table has it
            and the study has one system and no condition; None puts all recordings of a language into one row.
        groups: Column of recordings that belong together, such as those of one speaker. They are one block, which is
            drawn and tested as a whole: intervals and verdicts are then about other speakers, too, and need twenty
            and six of them. ``"auto"`` takes a column such as ``speaker``, ``speaker_id``, ``client_id`` or
            ``voice``, if it has six names or more and any of them twice; with fewer, findings say that they are about
            these speakers. Equal files, and equal texts of one speaker, are one block as well. None takes each row
            for itself.
        settings: Parameters of ``Client.transcribe`` by the name of the setting, as in ``{"plain": {}, "with names":
            {"hotwords": ["Ada"]}}``. Each service recognizes with each setting. ``"language": None`` has it identify
            the language, which is sent otherwise. None for one setting.
        noise_db: Levels of noise to add, in dB: the level of the speech (ITU-T P.56) over that of the noise. As in
            ``[20, 10, 0]``; the unchanged recordings are recognized as well.
        noise: ``"speech"`` for noise with the long-term spectrum of the recording; ``"white"``; or a recording of
            noise (clip, path or bytes), which is repeated.
        band_hz: Bands to limit the recordings to, as in ``[(300, 3400)]``, in Hz.
        speechless: Number of recordings without speech, of each kind and language, in which any text is a
            hallucination. Kinds are silence and white noise at -60, -40 and -25 dBFS, of 1 to 15 s.
        formatting: Whether punctuation, capitals and digits get rates of their own, as in
            :func:`speechlab.metrics.formatting_rates`.
        entities: Column of the entities of the references, for rates by class, as in
            :func:`speechlab.metrics.entity_scores`.
        scorers: Functions by name from the lists of references and hypotheses to one number for each, such as a judge
            or a semantic distance. ``{"judge": f}`` gives the column ``score_judge``, and its means. Answers are kept
            in the store by the name and the texts, and taken from it again: give a changed function another name.
        speed: Number of recordings of each language (and speaker, if the summary has speakers) for the speed of each
            system; 0 measures none. The calls are separate: warmed up, one at a time, systems in turns, nothing from
            a store, recordings unchanged.
        speed_concurrency: As for :func:`round_trip`.
        stream: Whether recordings are also recognized while they are spoken, at the pace of speech, by the systems
            that can (``sl.system(…, transcribe_stream=f)``). Those that recognize whole recordings, too, do both, as
            the systems *streamed* and *whole*. The report has the times to the first and to the final text, and how
            often texts change. As many are streamed at once as the system and ``concurrency`` allow.
        other_batch_size: Size of batches with which the functions of systems in batches (``sl.system(…,
            transcribe_batch=f)``) are asked again. ``report.notes`` say how many texts that changes.
        margin: Difference of error rates, in points (of 100), within which systems are level: the answer says so if
            the 95% interval of their difference lies inside.
        baseline: The system that is in use. The answer is to keep it where no other is shown to be better.
        prices: What each system charges, by its name or that of its service, as in ``{"ours":
            sl.evaluate.Price(per_hour=0.36)}``; one price for all. The report then has the cost, and says which
            cheaper system makes at most ``margin`` errors more than a dearer one.
        seed: Seed of the noise. The same seed gives the same recordings, whose results a store reuses.
        store: As for :func:`round_trip`.
        concurrency: As for :func:`round_trip`.
        executor: A ``dask.distributed.Client`` whose workers make the calls, as for :func:`speechlab.batch.run`.
        give_up_after_s: As for :func:`speechlab.batch.run`.
        progress: As for :func:`round_trip`.
        title: Title of the report.
        **options: Parameters of ``Client.transcribe`` for all settings that do not override them.

    Raises:
        InvalidRequestError: A column is missing, or an argument is not allowed.
        AuthenticationError: The service refuses the API key.
        APIConnectionError: No service can be reached.
    """
    recordings_only = {"noise_db": noise_db, "band_hz": band_hz, "speechless": speechless}
    existing = resolve_existing_outputs(frame, hypotheses, **recordings_only)
    systems = build_systems(lab, settings, existing, stream=stream, options=options)
    outputs = {f"{EXISTING_PREFIX}{column}": frame[column].tolist() for column in existing.values()}
    frame = drop_earlier_results(frame, existing)
    others = OtherBatches({system.name: (system.lab, system.options) for system in systems}, other_batch_size)
    several, streams = len(systems) > 1, any(system.is_streaming for system in systems)
    conditions = build_conditions(noise_db, band_hz)
    silent_count = check_count("speechless", speechless, "recordings of each kind, or 0 for none")
    clock = build_timing_plan(speed, speed_concurrency, "recordings, or 0 for none", progress)
    claims = check_margin_and_baseline(margin, baseline, [system.name for system in systems])
    claims |= resolve_prices(prices, [system.name for system in systems], HOURS)
    side_by_side = several or bool(conditions) or streams
    voice = find_voice_column(frame, voice, alone=not side_by_side)
    roles = {"text": text, "language": language, "voice": voice, "entities": entities}
    roles["groups"] = None if groups == "auto" else groups
    frame, (audio, text, language, *_) = resolve_table_and_columns(
        frame, audio, needed=lab is not None, **roles
    )
    check_reserved_columns(frame, RECOGNITION - INPUTS)
    scores = check_user_functions(scorers, "scorers", SCORE_PREFIX, frame.columns)
    blocks = group_rows_into_blocks(frame, audio, text, groups, by_speaker=voice is not None)
    columns, rows = build_recognition_rows(frame, audio, voice, blocks, outputs)
    rows, silent = _add_conditions_and_silence(rows, conditions, noise, silent_count, language, seed, store)
    extra = {"recording": side_by_side, "system": several, "condition": conditions, "snr_db": conditions}
    columns += [name for name, has_it in extra.items() if has_it]
    count = len(rows)
    rows, unknown = split_by_known_language(rows, language)
    run = RunOptions(title, store, concurrency, executor, give_up_after_s, progress)
    callable_systems = [system for system in systems if system.lab is not None]
    announce_estimate(progress, "recognize", recordings=rows["duration_s"].tolist() * len(callable_systems))
    by_system, unreachable = _request_transcripts(systems, rows, language, run)
    ask = partial(_recognize_in_other_batches, rows=rows, language=language, run=run)
    changes = others.describe_changes(by_system, f"{HEAR}hypothesis", ask)
    reached = [system for system in callable_systems if system.name not in unreachable]
    calls, untimed = _time_systems(reached, rows, text, language, clock)
    transcripts = _stack_tables(by_system, count)
    left_out = _stack_tables(dict.fromkeys(by_system, unknown), count)
    if streams:
        transcripts, left_out = add_stream_times(transcripts, left_out, language, store)
        columns += STREAMING
    scored, segments = score_rows(transcripts, left_out, columns, text, language, store)
    scored, unscored = add_scores(scored, scores, (text, "hypothesis"), store)
    measures = compute_further_measures(
        scored, text, language, formatting=formatting, entities=entities, scores=scores
    )
    calls = add_stream_calls(scored, text, language, reached, concurrency, calls)
    if len(silent):
        of_silence, _ = _request_transcripts(reached, silent, "language", run, needed=False)
        silent = collect_silence_transcripts(silent, of_silence)
    notes = [*describe_unreachable_services(unreachable), *untimed, *changes]
    notes += [*_list_missing_score_notes(unknown, count, scored, text), *unscored, *blocks.notes]
    notes += describe_recognition_changes(scored, transcripts, language)
    warn_failures(scored)
    claims |= {"groups": blocks.column, "about": blocks.about} | _collect_system_settings(systems, clock)
    recorded = {**claims, **_collect_sound_settings(conditions, noise, seed, silent_count)}
    record = build_record("recognition", store, *by_system.values(), **recorded)
    tables: dict[str, Any] = {"segments": segments, "speed": calls, "nothing": silent, "measures": measures}
    tables |= {"record": record, "notes": notes, "about": blocks.about}
    return Report.of(build_recognition_report(title, scored, text, language, systems=systems, **tables))


def _recognize_in_other_batches(
    asked: Mapping[str, tuple[Client, Mapping[str, Any]]], rows: pd.DataFrame, language: str, run: RunOptions
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Recognize the same rows again, in batches of another size."""
    arguments = run.to_batch_arguments("transcribe", "other batches")
    return recognize_rows_in_turns(asked, rows, language, needed=False, **arguments)


def _add_conditions_and_silence(
    rows: pd.DataFrame,
    conditions: list[Condition],
    noise: Any,
    silent_count: int,
    language: str,
    seed: int,
    store: Store | str | None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the recordings in each condition, and the recordings without speech."""
    with ensure_open_store(store) as open_store:
        if conditions:
            rows = apply_conditions(rows, conditions, noise, seed, open_store)
        codes = sorted({code for cell in rows[language] if (code := parse_language_code(cell)) is not None})
        return rows, build_speechless_rows(silent_count, codes, seed, open_store)


def _request_transcripts(
    systems: Sequence[System],
    rows: pd.DataFrame,
    language: str,
    run: RunOptions,
    *,
    needed: bool = True,
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Return the transcripts of each system by its name, and the reasons of systems that could not be asked."""
    asked = {system.name: (system.lab, system.options) for system in systems if system.lab is not None}
    transcripts, unreachable = recognize_rows_in_turns(
        asked, rows, language, needed=needed, **run.to_batch_arguments("transcribe")
    )
    for system in systems:
        if system.had:
            transcripts[system.name] = build_existing_rows(rows, system.had, language)
        elif system.name in unreachable:
            transcripts[system.name] = build_failed_rows(rows, unreachable[system.name])
    return {system.name: transcripts[system.name] for system in systems}, unreachable


def _list_missing_score_notes(unknown: pd.DataFrame, rows: int, table: pd.DataFrame, text: str) -> list[str]:
    """Return notes on rows that were left out, and on references that are missing or empty after normalization."""
    notes = []
    if len(unknown):
        notes.append(f"{len(unknown):,} of {rows:,} rows were left out; mostly: {unknown[REASON].mode()[0]}.")
    replies = table[table["hypothesis"].notna()]
    if "recording" in table.columns:  # those that any system has recognized, each once
        replies = replies.drop_duplicates("recording")
    unsaid = int((replies[text].isna() | replies[text].map(is_only_punctuation).astype(bool)).sum())
    empty = int((replies["errors"].notna() & (replies["reference_normalized"].fillna("") == "")).sum())
    for number, what in (
        (unsaid, "no reference, and no score."),
        (
            empty,
            "a reference that is empty after normalization; what was recognized counts as inserted.",
        ),
    ):
        if number:
            has = "has" if number == 1 else "have"
            notes.append(f"{number:,} of {format_count(len(replies), 'recognized row')} {has} {what}")
    return notes


def _collect_system_settings(systems: Sequence[System], clock: TimingPlan) -> dict[str, Any]:
    """Return the options for the record: of each system, if there are several; and what was timed."""
    speed = {"speed": clock[0]} if clock[0] else {}
    if len(systems) == 1:
        return systems[0].options | speed
    services = list(dict.fromkeys(id(system.lab) for system in systems))
    options = {
        system.name: {"service": services.index(id(system.lab)), **system.options} for system in systems
    }
    return {"systems": options, **speed}


def _collect_sound_settings(
    conditions: Sequence[Condition], noise: object, seed: int, speechless: int
) -> dict[str, Any]:
    """Return the settings of what was done to recordings, and of those without speech, for the record."""
    if not (conditions or speechless):
        return {}
    kind = noise if isinstance(noise, str) else type(noise).__name__
    names = [condition.name for condition in conditions]
    return {"conditions": names, "noise": kind, "seed": seed, "speechless": speechless}


def _time_systems(
    systems: Sequence[System], rows: pd.DataFrame, text: str, language: str, clock: TimingPlan
) -> tuple[pd.DataFrame, list[str]]:
    """Return the timed calls of the systems, or none and the reason, so that no hypotheses are lost."""
    clean = rows[rows["condition"] == AS_RECORDED] if "condition" in rows.columns else rows
    clients = {
        system.name: (system.lab, system.options)
        for system in systems
        if system.lab is not None and not system.is_streaming
    }
    if not clock[0] or not len(clean) or not clients:
        return build_empty_call_table(), []
    calls, why = time_or_explain(
        lambda: time_recognizers(clients, clean, text, language, clock), build_empty_call_table()
    )
    return calls if why or clean is rows else calls.assign(condition=AS_RECORDED), why


def _stack_tables(tables: Mapping[str, pd.DataFrame], rows: int) -> pd.DataFrame:
    """Concatenate the tables of the systems; the rows of each keep their order."""
    return stack_tables(
        table.assign(system=name).set_axis(table.index + number * rows)
        for number, (name, table) in enumerate(tables.items())
    )
