"""Plan, run and assemble: each alone, and the three in one call; for scripts here, awaited in ``_awaited``."""

from __future__ import annotations

from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack

from speechlab.batch._assemble import join_frames
from speechlab.batch._calls import Facts
from speechlab.batch._pace import paced
from speechlab.batch._plan import CHUNK_ROWS, Plan, StoreLike, make_plan, opened
from speechlab.batch._progress import Display
from speechlab.batch._run import ATTRIBUTE, Execution, Options, RunOptions
from speechlab.batch._runs import Run
from speechlab.batch._source import Table, open_source
from speechlab.batch._steps import SynthesisStep, TranscriptionStep, TranslationStep
from speechlab.client import begin
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    import pandas as pd

    from speechlab.client import AsyncClient, Client
    from speechlab.store import Store

__all__ = [
    "make_execution",
    "plan_synthesis",
    "plan_transcription",
    "plan_translation",
    "run",
    "synthesize",
    "transcribe",
    "translate",
]

_LOOK_S = 0.05
"""How often the caller's thread looks at what the loop's thread has done."""
_END_S = 10.0


def plan_synthesis(
    source: Table,
    lab: Client,
    *,
    text: str = "text",
    voice: str = "voice",
    format: str = "flac",  # noqa: A002
    sample_rate: int | None = None,
    temperature: float | None = None,
    store: StoreLike = None,
    repeat: int = 0,
    prefix: str = "",
    chunk_rows: int = CHUNK_ROWS,
) -> Plan:
    """Find out what speaking each row's text takes, without doing it; see :func:`synthesize` for the arguments."""
    facts = Facts.of(lab, voices=True)
    step = SynthesisStep(
        facts,
        text=text,
        voice=voice,
        format=format,
        sample_rate=sample_rate,
        temperature=temperature,
        repeat=repeat,
    )
    return make_plan(
        open_source(source), step, store, prefix=prefix, service=facts.service, chunk_rows=chunk_rows
    )


def plan_transcription(
    source: Table,
    lab: Client,
    *,
    audio: str = "audio",
    language: str | None = None,
    store: StoreLike = None,
    repeat: int = 0,
    prefix: str = "",
    chunk_rows: int = CHUNK_ROWS,
    **options: Any,
) -> Plan:
    """Find out what transcribing each row's recording takes, without doing it; see :func:`transcribe`."""
    facts = Facts.of(lab)
    step = TranscriptionStep(facts, audio=audio, language=language, repeat=repeat, **options)
    return make_plan(
        open_source(source), step, store, prefix=prefix, service=facts.service, chunk_rows=chunk_rows
    )


def plan_translation(
    source: Table,
    lab: Client,
    *,
    text: str = "text",
    source_lang: str,
    target_lang: str,
    keywords: Sequence[str] = (),
    context: str | None = None,
    model: str | None = None,
    store: StoreLike = None,
    repeat: int = 0,
    prefix: str = "",
    chunk_rows: int = CHUNK_ROWS,
) -> Plan:
    """Find out what translating each row's text takes, without doing it; see :func:`translate`."""
    facts = Facts.of(lab)
    step = TranslationStep(
        facts,
        text=text,
        source_lang=source_lang,
        target_lang=target_lang,
        keywords=keywords,
        context=context,
        model=model,
        repeat=repeat,
    )
    return make_plan(
        open_source(source), step, store, prefix=prefix, service=facts.service, chunk_rows=chunk_rows
    )


def run(plan: Plan, lab: Client, **options: Unpack[RunOptions]) -> Run:
    """Make the calls of a plan that its store cannot answer.

    The table is written down piece by piece and does not stay in memory: ``run(…).table()`` reads it,
    ``run(…).export(path)`` writes a Parquet file, ``run(…).parts()`` gives the pieces.

    Args:
        plan: What to ask.
        lab: The client, of the service that the plan was made for.
        **options: ``concurrency`` (8): calls under way at once; the client's limiter may allow fewer.
            ``progress`` (True): a bar where there is a terminal or notebook, False for none, a function of
            (calls done, calls in all), or a :class:`Watcher` such as ``sl.widgets.BatchPreview()``.
            ``on_error`` (``"row"``): ``"raise"`` raises what failed, after the end, as an ExceptionGroup.
            ``retry_failed`` (True): False leaves out what failed in an earlier run; such rows are ``skipped``.
            ``max_error_share`` (0.5): stop when a larger share of at least 20 calls has failed, errors
            of rows left out; None never stops. ``budget``: a :class:`Budget`. ``rate``: calls begun per second, at
            most. ``executor``: a ``dask.distributed.Client`` whose workers make the calls, each of them up to
            ``concurrency`` at once; their key comes from ``SPEECHLAB_API_KEY`` where they run.

    Returns:
        The run, written down in the plan's store.

    Raises:
        AuthenticationError: The service refuses the API key; nothing more is sent.
        StoreError: The store cannot be written, for example because the disk is full.
        ExceptionGroup: Rows failed, and ``on_error="raise"``.
        KeyboardInterrupt: Someone interrupted it. What had come is kept; the same again goes on from there.
    """
    execution = make_execution(plan, keep=False, options=options)
    _perform(execution, lab)
    return Run(execution.record, plan.store)


def synthesize(
    frame: Table,
    lab: Client,
    *,
    text: str = "text",
    voice: str = "voice",
    format: str = "flac",  # noqa: A002
    sample_rate: int | None = None,
    temperature: float | None = None,
    store: StoreLike = None,
    repeat: int = 0,
    prefix: str = "",
    chunk_rows: int = CHUNK_ROWS,
    **options: Unpack[RunOptions],
) -> pd.DataFrame:
    """Speak each row's text with its voice.

    Args:
        frame: The table: a DataFrame, an Arrow table, an iterable of DataFrames, or the path of a Parquet, CSV or
            JSON Lines file.
        lab: The client.
        text: Column of the texts.
        voice: Column of the voices: ids, or names that are unambiguous in the catalogue.
        format: Format of the audio: flac (lossless), wav, mp3 or ogg.
        sample_rate: Hz, or None for 24,000.
        temperature: Variation, for voices that have it.
        store: Where results are kept and looked up; None for the user's own store.
        repeat: Number of a deliberate repetition: another number, another reading.
        prefix: Goes before the names of the new columns.
        chunk_rows: Rows of a file or iterable that are worked on at once.
        **options: How it is run; see :func:`run`.

    Returns:
        The input's columns, index and order, and: ``audio`` (path of the file), ``duration_s``, ``sample_rate`` (Hz),
        ``processing_s`` (the service's own time, where it tells), ``status`` (ok, cached, error, skipped or
        cancelled), ``error_type``, ``error``, ``http_status``, ``attempts``, ``latency_s``, ``first_byte_s``,
        ``usage_characters``, ``usage_audio_s`` and ``usage_tokens`` (what this run spent on the row: nothing where
        it was known already), and ``key``. ``attrs["speechlab_run"]`` is the id of the run.

    Raises:
        InvalidRequestError: A column is missing, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    plan = plan_synthesis(
        frame,
        lab,
        text=text,
        voice=voice,
        format=format,
        sample_rate=sample_rate,
        temperature=temperature,
        store=store,
        repeat=repeat,
        prefix=prefix,
        chunk_rows=chunk_rows,
    )
    return _table(plan, lab, options)


def transcribe(
    frame: Table,
    lab: Client,
    *,
    audio: str = "audio",
    language: str | None = None,
    store: StoreLike = None,
    repeat: int = 0,
    prefix: str = "",
    chunk_rows: int = CHUNK_ROWS,
    concurrency: int | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Transcribe each row's recording.

    Args:
        frame: As for :func:`synthesize`.
        lab: The client.
        audio: Column of the recordings: paths, bytes or clips. A file is read when it is planned, and again just
            before it is sent.
        language: Code for all rows, ``"language"`` for the column of that name, or None to identify it.
        store: As for :func:`synthesize`.
        repeat: As for :func:`synthesize`.
        prefix: As for :func:`synthesize`.
        chunk_rows: As for :func:`synthesize`.
        concurrency: As for :func:`run`.
        **options: How it is run (see :func:`run`), and the other parameters of ``Client.transcribe``: hotwords,
            temperature, vad and so on. With ``vad="segments"``, :func:`segments` gives the timed pieces.

    Returns:
        The input's columns, index and order, and: ``hypothesis``, ``hypothesis_language``, ``confidence`` (0 to 1),
        ``processing_s``, and the bookkeeping columns of :func:`synthesize`.

    Raises:
        InvalidRequestError: A column is missing, an option is not allowed, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    how = split_options(options, concurrency)
    plan = plan_transcription(
        frame,
        lab,
        audio=audio,
        language=language,
        store=store,
        repeat=repeat,
        prefix=prefix,
        chunk_rows=chunk_rows,
        **options,
    )
    return _table(plan, lab, how)


def translate(
    frame: Table,
    lab: Client,
    *,
    text: str = "text",
    source_lang: str,
    target_lang: str,
    keywords: Sequence[str] = (),
    context: str | None = None,
    model: str | None = None,
    store: StoreLike = None,
    repeat: int = 0,
    prefix: str = "",
    chunk_rows: int = CHUNK_ROWS,
    **options: Unpack[RunOptions],
) -> pd.DataFrame:
    """Translate each row's text.

    Args:
        frame: As for :func:`synthesize`.
        lab: The client.
        text: Column of the texts.
        source_lang: Code of their language, or the name of a column that holds it.
        target_lang: Code of the language wanted, or the name of a column that holds it.
        keywords: Terms to preserve.
        context: Helps to understand; not translated.
        model: Model id, or None for the service's default.
        store: As for :func:`synthesize`.
        repeat: As for :func:`synthesize`.
        prefix: As for :func:`synthesize`.
        chunk_rows: As for :func:`synthesize`.
        **options: How it is run; see :func:`run`.

    Returns:
        The input's columns, index and order, and: ``translation``, ``model``, ``prompt_tokens``,
        ``completion_tokens``, ``processing_s``, and the bookkeeping columns of :func:`synthesize`.

    Raises:
        InvalidRequestError: A column is missing, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    plan = plan_translation(
        frame,
        lab,
        text=text,
        source_lang=source_lang,
        target_lang=target_lang,
        keywords=keywords,
        context=context,
        model=model,
        store=store,
        repeat=repeat,
        prefix=prefix,
        chunk_rows=chunk_rows,
    )
    return _table(plan, lab, options)


def split_options(options: dict[str, Any], concurrency: int | None) -> dict[str, Any]:
    """Take out of recognition's options those that say how to run it."""
    how = {name: options.pop(name) for name in RunOptions.__annotations__ if name in options}
    return how if concurrency is None else {**how, "concurrency": concurrency}


def make_execution(plan: Plan, *, keep: bool, options: Any) -> Execution:
    """Check the options of a run.

    Raises:
        InvalidRequestError: One is unknown, or not allowed.
    """
    unknown = set(options) - set(RunOptions.__annotations__)
    if unknown:
        allowed = ", ".join(sorted(RunOptions.__annotations__))
        message = f"{', '.join(map(repr, sorted(unknown)))} is no option of a run; they are {allowed}"
        raise InvalidRequestError(message, parameter=min(unknown))
    return Execution(plan, Options(**options), keep)


def _table(plan: Plan, lab: Client, options: Any) -> pd.DataFrame:
    execution = make_execution(plan, keep=True, options=options)
    _perform(execution, lab)
    return joined(execution)


def joined(execution: Execution) -> pd.DataFrame:
    """Return the table of an execution that kept it."""
    table = join_frames(execution.frames, execution.plan.step, execution.plan.prefix)
    table.attrs[ATTRIBUTE] = execution.record.id
    return table


def _perform(execution: Execution, lab: Client) -> None:
    """Run on the client's loop, and show progress from here, where the caller's output is."""
    display = Display(execution.tally, execution.options.progress, execution.plan.step.operation)
    with opened(execution.plan.store) as store:
        future = begin(lab, lambda alab: perform(execution, alab, store))
        try:
            _wait(future, display)
        except KeyboardInterrupt:
            execution.stop.set("someone interrupted it", "interrupted")
            with suppress(NotYet):
                future.result(_END_S)
            raise
        except BaseException:
            # the user's own function of progress failed: let nothing go on unseen
            execution.stop.set("showing progress failed", "interrupted")
            with suppress(Exception):
                future.result(_END_S)
            raise
        finally:
            future.cancel()
            with suppress(Exception):
                display.close()
    execution.finish()


async def perform(execution: Execution, lab: AsyncClient, store: Store) -> None:
    """Run an execution with the calls made here, or by workers elsewhere."""
    options, step = execution.options, execution.plan.step
    if options.executor is not None:
        from speechlab.batch._dask import workers

        async with workers(options.executor, step, lab, options) as send:
            await execution.run(store, send)
        return
    await execution.run(store, paced(lambda call: step.send(call, lab), options.rate))


def _wait(future: Future[None], display: Display) -> None:
    while True:
        try:
            future.result(_LOOK_S)
        except NotYet:
            if future.done():
                raise
            display.show()
        else:
            return
