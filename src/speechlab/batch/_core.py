"""The work of a batch, written once: plan a table, run the plan, join its table.

How the caller waits, by blocking or by ``await``, is handed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.batch._arguments import sort_options
from speechlab.batch._history.run import Run
from speechlab.batch._keeping import KeepingOptions, keeping_options
from speechlab.batch._plan.plan import check_plan, make_plan
from speechlab.batch._plan.source import open_source
from speechlab.batch._run.execution import Execution
from speechlab.batch._run.options import RunOptions, run_options
from speechlab.batch._table.assemble import join_frames
from speechlab.batch._table.record import RUN_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from speechlab.batch._plan.plan import Plan
    from speechlab.batch._plan.source import Table
    from speechlab.batch._plan.step import RowStep
    from speechlab.batch._waiting import Waiting


async def plan_table(waiting: Waiting, kind: type[RowStep], table: Table, options: Mapping[str, Any]) -> Plan:
    """Plan an operation over a table."""
    parameters, keeping = sort_options(kind.operation, options, kind.parameters, KeepingOptions)
    return await _planned(waiting, kind, table, parameters, keeping)


async def run_plan(waiting: Waiting, plan: Plan, options: Mapping[str, Any]) -> Run:
    """Run a plan; its table is written down, and not kept in memory."""
    (how,) = sort_options("a run", options, RunOptions)
    execution = Execution(check_plan(plan), run_options(how), keep=False)
    await waiting.perform(execution)
    execution.finish()
    return Run(execution.record, plan.store)


async def make_table(
    waiting: Waiting, kind: type[RowStep], table: Table, options: Mapping[str, Any]
) -> pd.DataFrame:
    """Plan an operation over a table, run the plan, and join its table."""
    parameters, keeping, how = sort_options(
        kind.operation, options, kind.parameters, KeepingOptions, RunOptions
    )
    checked = run_options(how)
    execution = Execution(await _planned(waiting, kind, table, parameters, keeping), checked, keep=True)
    await waiting.perform(execution)
    execution.finish()
    joined = join_frames(execution.frames, kind, execution.plan.prefix)
    joined.attrs[RUN_ATTRIBUTE] = execution.record.id
    return joined


async def _planned(
    waiting: Waiting, kind: type[RowStep], table: Table, parameters: Mapping[str, Any], given: KeepingOptions
) -> Plan:
    keeping, source = keeping_options(given), open_source(table)
    service, voices = await waiting.ask(lambda lab: kind.ask(lab, keeping["store"]))

    def plan() -> Plan:
        step = kind(parameters, source.columns, service=service, voices=voices)
        return make_plan(source, step, keeping, service=service)

    return await waiting.compute(plan)
