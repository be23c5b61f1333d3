"""The public functions: plan, run, and both with the table; each to be awaited, and as one that blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from speechlab.batch._arguments import (
    SynthesisOptions,
    SynthesisPlanOptions,
    TranscriptionOptions,
    TranscriptionPlanOptions,
    TranslationOptions,
    TranslationPlanOptions,
    explicit,
    face_of,
)
from speechlab.batch._core import make_table, plan_table, run_awaiting, run_blocking, run_plan
from speechlab.batch._plan.steps import SynthesisStep, TranscriptionStep, TranslationStep
from speechlab.batch._run.options import RunOptions

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._history.run import Run
    from speechlab.batch._plan.plan import Plan
    from speechlab.batch._plan.source import Table
    from speechlab.client import AsyncClient, Client


@explicit(SynthesisPlanOptions)
async def aplan_synthesis(source: Table, lab: AsyncClient, **options: Unpack[SynthesisPlanOptions]) -> Plan:
    """Plan to speak each row's text, without doing it; see :func:`synthesize` and :func:`run` for the arguments."""
    return await run_awaiting(plan_table, lab, SynthesisStep, source, options)


@face_of(aplan_synthesis)
def plan_synthesis(source: Table, lab: Client, **options: Unpack[SynthesisPlanOptions]) -> Plan:
    return run_blocking(plan_table, lab, SynthesisStep, source, options)


@explicit(TranscriptionPlanOptions)
async def aplan_transcription(
    source: Table, lab: AsyncClient, **options: Unpack[TranscriptionPlanOptions]
) -> Plan:
    """Plan to transcribe each row's recording, without doing it; see :func:`transcribe` and :func:`run`."""
    return await run_awaiting(plan_table, lab, TranscriptionStep, source, options)


@face_of(aplan_transcription)
def plan_transcription(source: Table, lab: Client, **options: Unpack[TranscriptionPlanOptions]) -> Plan:
    return run_blocking(plan_table, lab, TranscriptionStep, source, options)


@explicit(TranslationPlanOptions)
async def aplan_translation(
    source: Table, lab: AsyncClient, **options: Unpack[TranslationPlanOptions]
) -> Plan:
    """Plan to translate each row's text, without doing it; see :func:`translate` and :func:`run`."""
    return await run_awaiting(plan_table, lab, TranslationStep, source, options)


@face_of(aplan_translation)
def plan_translation(source: Table, lab: Client, **options: Unpack[TranslationPlanOptions]) -> Plan:
    return run_blocking(plan_table, lab, TranslationStep, source, options)


@explicit(RunOptions)
async def arun(plan: Plan, lab: AsyncClient, **options: Unpack[RunOptions]) -> Run:
    """Make the calls of a plan that its store cannot answer.

    The table is written down piece by piece and does not stay in memory: ``run(…).table()`` reads it,
    ``run(…).export(path)`` writes a Parquet file, ``run(…).parts()`` gives the pieces.

    Args:
        plan: The plan, as :func:`plan_synthesis` and its like return it.
        lab: The client, of the service that the plan was made for.
        concurrency: Maximum of calls under way at once; the client's limiter may allow fewer.
        progress: True for a bar where there is a terminal or notebook, False for none, a function of (calls done,
            calls in all), or a :class:`Watcher` such as ``sl.widgets.BatchPreview()``.
        on_error: ``"raise"`` raises what failed, after the end, as an ExceptionGroup; ``"row"`` does not.
        retry_failed: False leaves out what failed in an earlier run; such rows are ``skipped``.
        max_error_share: Stop when a larger share (0 to 1) of the last 100 calls has failed (of at least 20), errors
            of rows left out; None never stops.
        budget: The maximum that may be spent; None for no limit.
        executor: A ``dask.distributed.Client`` whose workers make the calls, each of them up to ``concurrency`` at
            once; their key comes from ``SPEECHLAB_API_KEY`` where they run.
        rate: Maximum of attempts begun per second.
        give_up_after_s: Seconds without a success after which the service is given up and the run stops; None is an
            hour where it asks to wait, and a minute where it is not there.
        **options: These arguments, by name.

    Returns:
        The run, written down in the plan's store.

    Raises:
        InvalidRequestError: An argument is unknown, or not allowed.
        AuthenticationError: The service refuses the API key; nothing more is sent.
        StoreError: The store cannot be written, for example because the disk is full.
        ExceptionGroup: Rows failed, and ``on_error="raise"``.
        KeyboardInterrupt: It was interrupted. What had come is kept; the same again goes on from there.
        asyncio.CancelledError: The same, where it is awaited.
    """
    return await run_awaiting(run_plan, lab, plan, options)


@face_of(arun)
def run(plan: Plan, lab: Client, **options: Unpack[RunOptions]) -> Run:
    return run_blocking(run_plan, lab, plan, options)


@explicit(SynthesisOptions)
async def asynthesize(frame: Table, lab: AsyncClient, **options: Unpack[SynthesisOptions]) -> pd.DataFrame:
    """Speak each row's text with its voice.

    Which arguments are columns, and which are the same for all rows: see :class:`Column`.

    Args:
        frame: The table: a DataFrame of pandas or polars, a Series, an Arrow table, a list of dicts, the path of a
            Parquet, CSV, TSV or JSON Lines file or of a folder of Parquet files, or an iterable of DataFrames or
            dicts.
        lab: The client.
        text: Column of the texts.
        voice: The voice, by id or by a name that is unambiguous in the catalogue; or the column that holds it.
        format: Format of the audio: flac (lossless), wav, mp3 or ogg; or a column.
        sample_rate: Hz, or None for 24,000; or a column.
        temperature: Variation, for voices that have it; or a column.
        repeat: Number of a deliberate repetition: another number, another reading.
        store: Where results are kept and looked up; None for the user's own store.
        prefix: Goes before the names of the new columns.
        columns: ``"all"``, or ``"result"`` for the results without the bookkeeping (``processing_s`` to ``key``
            below). The run in the store has both. Bookkeeping that an earlier step left in the table is replaced.
        chunk_rows: Rows of a file or iterable that are worked on at once.
        **options: These arguments, and those of :func:`run`, by name.

    Returns:
        The input's columns, index and order, as a table of polars if it was one, and: ``audio`` (path of the file),
        ``duration_s``, ``sample_rate`` (Hz),
        ``processing_s`` (the service's own time, where it tells), ``status`` (ok, cached, error, skipped or
        cancelled), ``error_type``, ``error``, ``http_status``, ``attempts``, ``latency_s``, ``first_byte_s``,
        ``usage_characters``, ``usage_audio_s`` and ``usage_tokens`` (what this run spent on the row: nothing where
        it was known already), and ``key``. ``attrs["speechlab_run"]`` is the id of the run.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    return await run_awaiting(make_table, lab, SynthesisStep, frame, options)


@face_of(asynthesize)
def synthesize(frame: Table, lab: Client, **options: Unpack[SynthesisOptions]) -> pd.DataFrame:
    return run_blocking(make_table, lab, SynthesisStep, frame, options)


@explicit(TranscriptionOptions)
async def atranscribe(
    frame: Table, lab: AsyncClient, **options: Unpack[TranscriptionOptions]
) -> pd.DataFrame:
    """Transcribe each row's recording.

    Which arguments are columns, and which are the same for all rows: see :class:`Column`. What is None
    is left to the service.

    Args:
        frame: As for :func:`synthesize`.
        lab: The client.
        audio: Column of the recordings: paths, bytes or clips. A file is read when it is planned, and again just
            before it is sent.
        language: Code, or the column that holds it; None, or an empty cell, to identify it.
        hotwords: Words or phrases to boost, or the column that holds them.
        vad: ``"off"``, ``"on"`` (skip silence) or ``"segments"``; with that, :func:`segments` gives the timed pieces.
        min_silence_gap: With segments: milliseconds of silence that split.
        segment_padding: With segments: milliseconds added at their edges, 0 to 5,000.
        initial_segment_padding_ms: With segments: milliseconds before the first, 0 to 5,000.
        speech_pad_ms: With segments: milliseconds added to the speech that was found.
        min_segment_duration: With segments: seconds; shorter ones are merged.
        temperature: 0 to 2.
        top_p: 0 to 1.
        frequency_penalty: -2 to 2.
        repetition_penalty: 1 to 2.
        session_id: A label for the service; no part of the question.
        repeat: As for :func:`synthesize`.
        store: As for :func:`synthesize`.
        prefix: As for :func:`synthesize`.
        columns: As for :func:`synthesize`.
        chunk_rows: As for :func:`synthesize`.
        **options: These arguments, and those of :func:`run`, by name.

    Returns:
        The input's columns, index and order, and: ``hypothesis``, ``hypothesis_language``, ``confidence`` (0 to 1),
        ``processing_s``, and the bookkeeping columns of :func:`synthesize`.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    return await run_awaiting(make_table, lab, TranscriptionStep, frame, options)


@face_of(atranscribe)
def transcribe(frame: Table, lab: Client, **options: Unpack[TranscriptionOptions]) -> pd.DataFrame:
    return run_blocking(make_table, lab, TranscriptionStep, frame, options)


@explicit(TranslationOptions)
async def atranslate(frame: Table, lab: AsyncClient, **options: Unpack[TranslationOptions]) -> pd.DataFrame:
    """Translate each row's text.

    Which arguments are columns, and which are the same for all rows: see :class:`Column`.

    Args:
        frame: As for :func:`synthesize`.
        lab: The client.
        text: Column of the texts.
        source_lang: Code of their language, or the column that holds it.
        target_lang: Code of the language wanted, or the column that holds it.
        keywords: Terms to preserve, or the column that holds them.
        context: Helps to understand, and is not translated; or the column that holds it.
        model: Model id, or the column that holds it; None for the service's default.
        repeat: As for :func:`synthesize`.
        store: As for :func:`synthesize`.
        prefix: As for :func:`synthesize`.
        columns: As for :func:`synthesize`.
        chunk_rows: As for :func:`synthesize`.
        **options: These arguments, and those of :func:`run`, by name.

    Returns:
        The input's columns, index and order, and: ``translation``, ``model``, ``prompt_tokens``,
        ``completion_tokens``, ``processing_s``, and the bookkeeping columns of :func:`synthesize`.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    return await run_awaiting(make_table, lab, TranslationStep, frame, options)


@face_of(atranslate)
def translate(frame: Table, lab: Client, **options: Unpack[TranslationOptions]) -> pd.DataFrame:
    return run_blocking(make_table, lab, TranslationStep, frame, options)
