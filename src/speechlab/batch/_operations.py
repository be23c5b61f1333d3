"""The three one-liners: plan, run and assemble in one call."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from speechlab.batch._assemble import BOOKKEEPING, assemble, check_columns
from speechlab.batch._calls import Step, SynthesisStep, TranscriptionStep, TranslationStep
from speechlab.batch._plan import make_plan
from speechlab.batch._run import DEFAULT_CONCURRENCY, Progress, run_plan
from speechlab.errors import InvalidRequestError
from speechlab.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from speechlab.client import Client

__all__ = ["StoreLike", "synthesize", "transcribe", "translate"]

StoreLike = Store | str | os.PathLike[str] | None
"""A store, the folder of one, or None for the user's own."""


def synthesize(
    frame: pd.DataFrame,
    lab: Client,
    *,
    text: str = "text",
    voice: str = "voice",
    format: str = "flac",  # noqa: A002
    sample_rate: int | None = None,
    temperature: float | None = None,
    store: StoreLike = None,
    repeat: int = 0,
    concurrency: int = DEFAULT_CONCURRENCY,
    progress: Progress = True,
    prefix: str = "",
) -> pd.DataFrame:
    """Speak each row's text with its voice.

    Args:
        frame: The table.
        lab: The client.
        text: Column of the texts.
        voice: Column of the voices: ids, or names that are unambiguous in the catalogue.
        format: Format of the audio: flac (lossless), wav, mp3 or ogg.
        sample_rate: Hz, or None for 24,000.
        temperature: Variation, for voices that have it.
        store: Where results are kept and looked up; None for the user's own store.
        repeat: Number of a deliberate repetition: another number, another reading.
        concurrency: Calls under way at once.
        progress: True for a bar, False for none, or a function of (calls done, calls in all).
        prefix: Goes before the names of the new columns.

    Returns:
        The input's columns, index and order, and: ``audio`` (path of the file), ``duration_s``, ``sample_rate`` (Hz),
        ``processing_s`` (the service's own time, where it tells), ``status`` (ok, cached or error), ``error_type``,
        ``error``, ``http_status``, ``attempts``, ``latency_s`` and ``key``.

    Raises:
        InvalidRequestError: A column is missing, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    step = SynthesisStep(
        lab,
        text=text,
        voice=voice,
        format=format,
        sample_rate=sample_rate,
        temperature=temperature,
        repeat=repeat,
    )
    return _run(frame, step, store, concurrency, progress, prefix)


def transcribe(
    frame: pd.DataFrame,
    lab: Client,
    *,
    audio: str = "audio",
    language: str | None = None,
    store: StoreLike = None,
    repeat: int = 0,
    concurrency: int = DEFAULT_CONCURRENCY,
    progress: Progress = True,
    prefix: str = "",
    **options: Any,
) -> pd.DataFrame:
    """Transcribe each row's recording.

    Args:
        frame: The table.
        lab: The client.
        audio: Column of the recordings: paths, bytes or clips.
        language: Code for all rows, ``"language"`` for the column of that name, or None to identify it.
        store: As for :func:`synthesize`.
        repeat: As for :func:`synthesize`.
        concurrency: As for :func:`synthesize`.
        progress: As for :func:`synthesize`.
        prefix: As for :func:`synthesize`.
        **options: The other parameters of ``Client.transcribe``: hotwords, temperature, vad and so on.

    Returns:
        The input's columns, index and order, and: ``hypothesis``, ``hypothesis_language``, ``confidence`` (0 to 1),
        ``processing_s``, and the bookkeeping columns of :func:`synthesize`.

    Raises:
        InvalidRequestError: A column is missing, an option is not allowed, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    step = TranscriptionStep(lab, audio=audio, language=language, options=options, repeat=repeat)
    return _run(frame, step, store, concurrency, progress, prefix)


def translate(
    frame: pd.DataFrame,
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
    concurrency: int = DEFAULT_CONCURRENCY,
    progress: Progress = True,
    prefix: str = "",
) -> pd.DataFrame:
    """Translate each row's text.

    Args:
        frame: The table.
        lab: The client.
        text: Column of the texts.
        source_lang: Code of their language, or the name of a column that holds it.
        target_lang: Code of the language wanted, or the name of a column that holds it.
        keywords: Terms to preserve.
        context: Helps to understand; not translated.
        model: Model id, or None for the service's default.
        store: As for :func:`synthesize`.
        repeat: As for :func:`synthesize`.
        concurrency: As for :func:`synthesize`.
        progress: As for :func:`synthesize`.
        prefix: As for :func:`synthesize`.

    Returns:
        The input's columns, index and order, and: ``translation``, ``model``, ``prompt_tokens``,
        ``completion_tokens``, ``processing_s``, and the bookkeeping columns of :func:`synthesize`.

    Raises:
        InvalidRequestError: A column is missing, or a new column would overwrite one.
        AuthenticationError: The service refuses the API key.
        StoreError: The store cannot be written.
    """
    options = {"keywords": keywords, "context": context, "model": model}
    step = TranslationStep(
        lab, text=text, source_lang=source_lang, target_lang=target_lang, options=options, repeat=repeat
    )
    return _run(frame, step, store, concurrency, progress, prefix)


def _run(
    frame: pd.DataFrame, step: Step, store: StoreLike, concurrency: int, progress: Progress, prefix: str
) -> pd.DataFrame:
    if concurrency < 1:
        message = f"concurrency {concurrency} must be at least 1"
        raise InvalidRequestError(message, parameter="concurrency")
    check_columns(frame, [prefix + name for name in (*step.columns, *BOOKKEEPING)])
    with ExitStack() as stack:
        opened = _open(store, stack)
        made = make_plan(frame, step, opened)
        outcomes = run_plan(made, store=opened, concurrency=concurrency, progress=progress)
    return assemble(frame, made, outcomes, prefix=prefix)


def _open(store: StoreLike, stack: ExitStack) -> Store:
    if isinstance(store, Store):
        return store
    return stack.enter_context(Store.default() if store is None else Store(store))
