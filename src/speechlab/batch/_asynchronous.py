"""The same for ``await``: in notebooks' cells and in programs that have a loop of their own."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack

from speechlab.batch._history.run import Run
from speechlab.batch._options import (
    Keeping,
    Options,
    RunOptions,
    SynthesisOptions,
    SynthesisPlanOptions,
    TranscriptionOptions,
    TranscriptionPlanOptions,
    TranslationOptions,
    TranslationPlanOptions,
    explicit,
)
from speechlab.batch._plan.operations import SynthesisStep, TranscriptionStep, TranslationStep
from speechlab.batch._plan.plan import opened
from speechlab.batch._plan.step import Facts
from speechlab.batch._request import Asked, joined, make_execution, perform
from speechlab.batch._run.progress import Display
from speechlab.client import AsyncClient
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    import pandas as pd

    from speechlab.batch._plan.plan import Plan
    from speechlab.batch._plan.source import Table
    from speechlab.batch._plan.step import Step
    from speechlab.batch._run.execution import Execution

_SHOW_S = 0.1


@explicit(SynthesisStep, Keeping)
async def aplan_synthesis(source: Table, lab: AsyncClient, **options: Unpack[SynthesisPlanOptions]) -> Plan:
    """As :func:`plan_synthesis`, awaited."""
    return await _plan(SynthesisStep, source, lab, options)


@explicit(TranscriptionStep, Keeping)
async def aplan_transcription(
    source: Table, lab: AsyncClient, **options: Unpack[TranscriptionPlanOptions]
) -> Plan:
    """As :func:`plan_transcription`, awaited."""
    return await _plan(TranscriptionStep, source, lab, options)


@explicit(TranslationStep, Keeping)
async def aplan_translation(
    source: Table, lab: AsyncClient, **options: Unpack[TranslationPlanOptions]
) -> Plan:
    """As :func:`plan_translation`, awaited."""
    return await _plan(TranslationStep, source, lab, options)


@explicit(Options)
async def arun(plan: Plan, lab: AsyncClient, **options: Unpack[RunOptions]) -> Run:
    """As :func:`run`, awaited; cancelling it stops the run, and keeps what had come."""
    execution = make_execution(plan, options)
    await _perform(execution, _checked(lab))
    return Run(execution.record, plan.store)


@explicit(SynthesisStep, Keeping, Options)
async def asynthesize(frame: Table, lab: AsyncClient, **options: Unpack[SynthesisOptions]) -> pd.DataFrame:
    """As :func:`synthesize`, awaited."""
    return await _table(SynthesisStep, frame, lab, options)


@explicit(TranscriptionStep, Keeping, Options)
async def atranscribe(
    frame: Table, lab: AsyncClient, **options: Unpack[TranscriptionOptions]
) -> pd.DataFrame:
    """As :func:`transcribe`, awaited."""
    return await _table(TranscriptionStep, frame, lab, options)


@explicit(TranslationStep, Keeping, Options)
async def atranslate(frame: Table, lab: AsyncClient, **options: Unpack[TranslationOptions]) -> pd.DataFrame:
    """As :func:`translate`, awaited."""
    return await _table(TranslationStep, frame, lab, options)


def _checked(lab: object) -> AsyncClient:
    if isinstance(lab, AsyncClient):
        return lab
    message = (
        f"lab is {lab!r}; give an AsyncClient; with a Client, call the functions without an a before them"
    )
    raise InvalidRequestError(message, parameter="lab")


async def _plan(kind: type[Step], source: Table, lab: AsyncClient, options: Mapping[str, Any]) -> Plan:
    return await _planned(Asked.of(kind, source, options, run=False), lab)


async def _planned(asked: Asked, lab: AsyncClient) -> Plan:
    import asyncio

    facts = await Facts.ask(_checked(lab), asked.keeping.store, voices=asked.kind.wants_voices)
    # hashing a table of recordings takes its time, and the loop has other things to do
    return await asyncio.to_thread(asked.plan, facts)


async def _table(
    kind: type[Step], source: Table, lab: AsyncClient, options: Mapping[str, Any]
) -> pd.DataFrame:
    asked = Asked.of(kind, source, options, run=True)
    execution = asked.execution(await _planned(asked, lab))
    await _perform(execution, lab)
    return joined(execution)


async def _perform(execution: Execution, lab: AsyncClient) -> None:
    import asyncio

    display = Display(execution.tally, execution.options.progress, execution.plan.step.operation)
    with opened(execution.plan.store) as store:
        task = asyncio.create_task(perform(execution, lab, store))
        try:
            while not task.done():
                await asyncio.wait([task], timeout=_SHOW_S)
                display.show()
            await task
        finally:
            await _ended(task)
            with suppress(Exception):
                display.close()
    execution.finish()


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancel what still runs, and wait until it has let go of the store."""
    import asyncio

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
