"""What a batch was asked for, checked before anything else is done; the same for scripts and for ``await``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from speechlab.batch._options import Keeping, Options, split
from speechlab.batch._plan.plan import Plan, check_plan, make_plan
from speechlab.batch._plan.source import Source, Table, open_source
from speechlab.batch._run.execution import ATTRIBUTE, Execution
from speechlab.batch._run.pace import paced
from speechlab.batch._run.window import lend_places
from speechlab.batch._table.assemble import join_frames
from speechlab.client import remember_service, replaying_from, telling

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from speechlab.batch._plan.step import Facts, Step
    from speechlab.client import AsyncClient
    from speechlab.store import Store


@dataclass(frozen=True, slots=True)
class Asked:
    """A table and the arguments of a call.

    Attributes:
        kind: The operation.
        source: The table.
        parameters: Arguments of the operation.
        keeping: Where results go.
        options: How it is run, if it is.
    """

    kind: type[Step]
    source: Source
    parameters: Mapping[str, Any]
    keeping: Keeping
    options: Options

    @classmethod
    def of(cls, kind: type[Step], source: Table, given: Mapping[str, Any], *, run: bool) -> Asked:
        """Check the arguments and look at the table; asks no service.

        Raises:
            InvalidRequestError: An argument is unknown or not allowed, or there is no such table.
        """
        takers = (kind, Keeping, Options) if run else (kind, Keeping)
        parameters, keeping, *how = split(kind.operation, given, *takers)
        options = Options(**how[0]) if how else Options()
        return cls(kind, open_source(source), parameters, Keeping(**keeping), options)

    def plan(self, facts: Facts) -> Plan:
        """Build the requests."""
        step = self.kind(facts, self.source.columns, **self.parameters)
        return make_plan(self.source, step, self.keeping, service=facts.service)

    def execution(self, plan: Plan) -> Execution:
        """Make ready to run the plan, and to keep the table."""
        return Execution(plan, self.options, keep=True)


def make_execution(plan: object, given: Mapping[str, Any]) -> Execution:
    """Make ready to run a plan.

    Raises:
        InvalidRequestError: An option is unknown, or not allowed.
    """
    (options,) = split("a run", given, Options)
    return Execution(check_plan(plan), Options(**options), keep=False)


async def perform(execution: Execution, lab: AsyncClient, store: Store) -> None:
    """Run an execution with the calls made here, or by workers elsewhere."""
    options, step = execution.options, execution.plan.step
    await remember_service(lab, store)
    lab = replaying_from(lab, store)
    if options.executor is not None:
        from speechlab.batch._run.dask import workers

        async with workers(options.executor, step, lab, options) as send:
            await execution.run(store, send)
        return
    lab = telling(lab, lend_places)
    await execution.run(store, paced(lambda call: step.send(call, lab), options.rate))


def joined(execution: Execution) -> pd.DataFrame:
    """Return the table of an execution that kept it."""
    table = join_frames(execution.frames, execution.plan.step, execution.plan.prefix)
    table.attrs[ATTRIBUTE] = execution.record.id
    return table
