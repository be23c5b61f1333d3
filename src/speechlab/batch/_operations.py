"""The public functions: plan, run, and both with the joined table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from speechlab.batch._options import (
    CallingOptions,
    CheckingOptions,
    SynthesisOptions,
    SynthesisPlanOptions,
    TranscriptionOptions,
    TranscriptionPlanOptions,
    TranslationOptions,
    TranslationPlanOptions,
    check_and_sort_options,
    check_idle_options,
    expose_options,
)
from speechlab.batch._plan.steps import SynthesisStep, TranscriptionStep, TranslationStep
from speechlab.batch._process import plan_table, process_table, run_plan

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._history import Run
    from speechlab.batch._plan.plan import Plan
    from speechlab.batch._plan.source import Table
    from speechlab.client import Client


@expose_options(SynthesisPlanOptions)
def plan_synthesis(source: Table, lab: Client, **options: Unpack[SynthesisPlanOptions]) -> Plan:
    """Plan the synthesis of each row's text, without a call; see :func:`synthesize` for the arguments."""
    return plan_table(lab, SynthesisStep, source, options)


@expose_options(TranscriptionPlanOptions)
def plan_transcription(source: Table, lab: Client, **options: Unpack[TranscriptionPlanOptions]) -> Plan:
    """Plan the transcription of each row's recording, without a call; see :func:`transcribe` for the arguments."""
    return plan_table(lab, TranscriptionStep, source, options)


@expose_options(TranslationPlanOptions)
def plan_translation(source: Table, lab: Client, **options: Unpack[TranslationPlanOptions]) -> Plan:
    """Plan the translation of each row's text, without a call; see :func:`translate` for the arguments."""
    return plan_table(lab, TranslationStep, source, options)


@expose_options(CallingOptions)
def run(plan: Plan, lab: Client, **options: Unpack[CallingOptions]) -> Run:
    """Make the calls of a plan that its store cannot answer.

    The table is written to the store piece by piece and does not stay in memory: ``run(…).table()`` reads it,
    ``run(…).export(path)`` writes it to a file, ``run(…).parts()`` yields the pieces.

    Args:
        plan: The plan, as returned by :func:`plan_synthesis`, :func:`plan_transcription` or :func:`plan_translation`.
        lab: A client of the service that the plan was made for.
        concurrency: Maximum number of concurrent calls; the client's limiter may allow fewer.
        progress: True for a bar in a terminal or notebook, False for none, a function of (calls done, calls in
            all), or a :class:`Watcher` such as ``sl.widgets.BatchPreview()``.
        on_error: ``"raise"`` raises the errors of all rows after the end, as an ExceptionGroup. ``"row"`` only
            writes them into the table.
        retry_failed: False does not retry rows that failed in an earlier run; they are ``skipped``.
        max_error_share: Stop the run if the first 20 calls are refused with one and the same error, or a larger share
            (0 to 1) of the last 100 calls failed. At least 20 calls are needed, and errors that a row causes do not
            count. None never stops the run.
        budget: The maximum that the run may spend; None for no limit.
        executor: A ``dask.distributed.Client`` whose workers make the calls in leases of some hundred rows, up to
            ``concurrency`` at once on each. The workers read the API key from their own ``SPEECHLAB_API_KEY``.
        rate: Maximum number of attempts begun per second; None for no limit.
        give_up_after_s: Seconds without a success after which the run gives up the service and stops. None means an
            hour if the service asks to wait, and a minute if it cannot be reached.
        **options: These arguments, by name.

    Returns:
        The run, recorded in the plan's store.

    Raises:
        InvalidRequestError: An argument is unknown or not allowed.
        AuthenticationError: The service refuses the API key; nothing more is sent.
        StoreError: The store cannot be written, for example because the disk is full.
        ExceptionGroup: Rows failed, and ``on_error="raise"``.
        KeyboardInterrupt: The user interrupted the run. Results received are kept; the same call again continues.
    """
    return run_plan(lab, plan, options)


@expose_options(SynthesisOptions)
def synthesize(frame: Table, lab: Client, **options: Unpack[SynthesisOptions]) -> pd.DataFrame:
    """Synthesize each row's text with its voice.

    :class:`Column` says which arguments name columns and which are the same for all rows.

    Args:
        frame: The table: a DataFrame of pandas or polars, a Series, an Arrow table, a list of dicts or texts, the
            path of a Parquet, CSV, TSV or JSON Lines file or of a folder of Parquet files, a DataFrame of Dask (which
            comes back as one), or an iterable of DataFrames or dicts.
        lab: The client.
        text: Column of the texts.
        voice: Id of the voice, or a name that is unambiguous in the catalogue; or a column.
        format: Format of the audio: flac, wav, mp3 or ogg; or a column. None for flac (lossless), or else the first
            of wav, ogg and mp3 that the voice has.
        sample_rate: Sample rate in Hz; None for 24,000; or a column.
        temperature: Variation, for voices that support it; or a column. Other voices ignore it, but each value is
            a call of its own.
        respell: A :class:`speechlab.text.Lexicon` of words that voices misread. The text is sent with its spellings;
            a row with a word of several readings is an error.
        repeat: Number of a deliberate repetition, from 0. Each number gives another reading of the same text.
        store: The store that keeps the results; None for the user's own store.
        prefix: Prefix of the names of the new columns.
        columns: ``"all"``, or ``"result"`` for the results without the bookkeeping (``processing_s`` to ``key``
            below). The run in the store has both. The bookkeeping of an earlier step is replaced.
        chunk_rows: Rows of a file or iterable that are processed at a time.
        check: The client that recognizes each line, which is then compared with its text, measured, and spoken again
            where words are lost, repeated or others, where it is silent, clipped, cut off, of another language, too
            long or short, or unlike its voice. A difference of notation is none, and what is misheard is recognized
            twice. None checks nothing.
        takes: With ``check``: the most takes of a line. A voice that varies is asked again, any other with another
            cut of the text.
        fallback_voice: With ``check``: a voice for the last take, or a column; None for none.
        language: With ``check``: the language of the texts, or a column; None for the column ``language``, or
            else that of the voice.
        **options: These arguments, and those of :func:`run`, by name. With ``check``, ``budget`` is for the speech of
            all takes; what is recognized is at most twice as much.

    Returns:
        A table with the input's columns, index and order, of polars if the input was of polars. It also has
        ``audio`` (path of the file), ``duration_s``, ``sample_rate`` (Hz), ``processing_s`` (seconds of work as the
        service reports them), ``status`` (ok, cached, error, skipped or cancelled), ``error_type``, ``error``,
        ``http_status``, ``attempts``, ``latency_s``, ``first_byte_s``, ``usage_characters``, ``usage_audio_s``,
        ``usage_tokens``, ``answered_at`` (when the answer came, in UTC) and ``key``. The columns ``attempts`` to
        ``usage_tokens`` are what this run spent on the row: zero for a stored result. ``attrs["speechlab_run"]`` is
        the id of the run. With ``check``, the row has the best take, and also ``transcript`` (of the recognizer),
        ``take`` (its number, from 0), ``takes`` (how many were made; all are in the store), ``check`` (``ready``,
        ``faulty``, or ``unclear``: what is misheard in every take cannot be judged) and ``why``; the costs are those
        of all takes. :func:`speechlab.evaluate.acceptance` reports it.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    if options.get("check") is not None:
        from speechlab.batch._takes.checked import synthesize_with_check

        return synthesize_with_check(lab, frame, options)
    check_and_sort_options("synthesize", options, SynthesisOptions)
    check_idle_options(options)
    return process_table(
        lab,
        SynthesisStep,
        frame,
        {name: value for name, value in options.items() if name not in CheckingOptions.__annotations__},
    )


@expose_options(TranscriptionOptions)
def transcribe(frame: Table, lab: Client, **options: Unpack[TranscriptionOptions]) -> pd.DataFrame:
    """Transcribe each row's recording.

    :class:`Column` says which arguments name columns and which are the same for all rows. The service chooses the
    value of an argument that is None.

    Args:
        frame: As for :func:`synthesize`; or a folder or a list of recordings.
        lab: The client.
        audio: Column of the recordings, as ``Client.transcribe`` takes them. A file is read for the plan, and
            again just before it is sent.
        language: Language code, or a column; None or an empty cell lets the service identify the language.
        hotwords: Words or phrases to boost, or a column.
        vad: ``"off"``, ``"on"`` (skip silence) or ``"segments"`` (also return timed segments, which
            :func:`to_segments` makes a table of).
        min_silence_gap: With segments: milliseconds of silence that separate two segments.
        segment_padding: With segments: milliseconds added at both edges of a segment, 0 to 5,000.
        initial_segment_padding_ms: With segments: milliseconds added before the first segment, 0 to 5,000.
        speech_pad_ms: With segments: milliseconds added to the detected speech.
        min_segment_duration: With segments: seconds; shorter segments are merged.
        temperature: 0 to 2.
        top_p: 0 to 1.
        frequency_penalty: -2 to 2.
        repetition_penalty: 1 to 2.
        session_id: A label for the service. It does not change the key of the result.
        stream: Whether recordings are recognized while they are spoken: only for a system with ``transcribe_stream``.
        repeat: As for :func:`synthesize`.
        store: As for :func:`synthesize`.
        prefix: As for :func:`synthesize`.
        columns: As for :func:`synthesize`.
        chunk_rows: As for :func:`synthesize`.
        **options: These arguments, and those of :func:`run`, by name.

    Returns:
        The input's columns, index and order, and: ``hypothesis``, ``hypothesis_language``, ``confidence`` (0 to 1),
        ``hypothesis_model`` (as the service states it), ``processing_s``, and the bookkeeping columns of
        :func:`synthesize`.

    Raises:
        InvalidRequestError: A column is missing, an argument is not allowed, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    return process_table(lab, TranscriptionStep, frame, options)


@expose_options(TranslationOptions)
def translate(frame: Table, lab: Client, **options: Unpack[TranslationOptions]) -> pd.DataFrame:
    """Translate each row's text.

    :class:`Column` says which arguments name columns and which are the same for all rows.

    Args:
        frame: As for :func:`synthesize`.
        lab: The client.
        text: Column of the texts.
        source_lang: Language code of the texts, or a column.
        target_lang: Language code of the translations, or a column.
        keywords: Terms to preserve, or a column.
        context: Text that helps the model to understand, and is not translated; or a column.
        model: Model id, or a column; None for the service's default.
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
    return process_table(lab, TranslationStep, frame, options)
