"""The same for ``await``: in notebooks' cells and in programs that have a loop of their own."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from speechlab.batch._calls import Facts
from speechlab.batch._operations import joined, make_execution, perform, split_options
from speechlab.batch._plan import CHUNK_ROWS, Plan, make_plan, opened
from speechlab.batch._progress import Display
from speechlab.batch._runs import Run
from speechlab.batch._source import Table, open_source
from speechlab.batch._steps import SynthesisStep, TranscriptionStep, TranslationStep

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    import pandas as pd

    from speechlab.batch._calls import Step
    from speechlab.batch._run import Execution
    from speechlab.client import AsyncClient

__all__ = [
    "aplan_synthesis",
    "aplan_transcription",
    "aplan_translation",
    "arun",
    "asynthesize",
    "atranscribe",
    "atranslate",
]

_SHOW_S = 0.1


async def aplan_synthesis(source: Table, lab: AsyncClient, **options: Any) -> Plan:
    """As :func:`plan_synthesis`, awaited."""
    return await _plan(SynthesisStep, source, lab, options, voices=True)


async def aplan_transcription(source: Table, lab: AsyncClient, **options: Any) -> Plan:
    """As :func:`plan_transcription`, awaited."""
    return await _plan(TranscriptionStep, source, lab, options)


async def aplan_translation(source: Table, lab: AsyncClient, **options: Any) -> Plan:
    """As :func:`plan_translation`, awaited."""
    return await _plan(TranslationStep, source, lab, options)


async def arun(plan: Plan, lab: AsyncClient, **options: Any) -> Run:
    """As :func:`run`, awaited; cancelling it stops the run, and keeps what had come."""
    execution = make_execution(plan, keep=False, options=options)
    await _perform(execution, lab)
    return Run(execution.record, plan.store)


async def asynthesize(frame: Table, lab: AsyncClient, **options: Any) -> pd.DataFrame:
    """As :func:`synthesize`, awaited."""
    how = split_options(options, None)
    return await _table(await aplan_synthesis(frame, lab, **options), lab, how)


async def atranscribe(frame: Table, lab: AsyncClient, **options: Any) -> pd.DataFrame:
    """As :func:`transcribe`, awaited."""
    how = split_options(options, None)
    return await _table(await aplan_transcription(frame, lab, **options), lab, how)


async def atranslate(frame: Table, lab: AsyncClient, **options: Any) -> pd.DataFrame:
    """As :func:`translate`, awaited."""
    how = split_options(options, None)
    return await _table(await aplan_translation(frame, lab, **options), lab, how)


async def _plan(
    kind: Callable[..., Step],
    source: Table,
    lab: AsyncClient,
    options: dict[str, Any],
    *,
    voices: bool = False,
) -> Plan:
    import asyncio

    facts = await Facts.ask(lab, voices=voices)
    store, prefix = options.pop("store", None), options.pop("prefix", "")
    rows = options.pop("chunk_rows", CHUNK_ROWS)
    step = kind(facts, **options)
    # hashing a table of recordings takes its time, and the loop has other things to do
    return await asyncio.to_thread(
        make_plan, open_source(source), step, store, prefix=prefix, service=facts.service, chunk_rows=rows
    )


async def _table(plan: Plan, lab: AsyncClient, options: dict[str, Any]) -> pd.DataFrame:
    execution = make_execution(plan, keep=True, options=options)
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
