"""Tables through an operation: planned, run, and joined; one alone, or several in turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab.batch._history import Run
from speechlab.batch._options import CallingOptions, WaitingOptions, check_and_sort_options
from speechlab.batch._outcome import add_advice
from speechlab.batch._plan.plan import Plan, build_plan, check_plan
from speechlab.batch._plan.source import Partitions, Table, open_source
from speechlab.batch._plan.steps import RowStep, SynthesisStep, TranscriptionStep, TranslationStep
from speechlab.batch._run.caller import BatchPart, BlockingCaller, make_calls
from speechlab.batch._run.execution import Execution
from speechlab.batch._run.progress import Tally, show_progress
from speechlab.batch._run.turns import CallTurns, LeaseTurns
from speechlab.batch._store_options import KeepingOptions, is_existing_store, use_store
from speechlab.batch._table.assemble import RUN_ATTRIBUTE, join_frames, to_requested_form
from speechlab.client import (
    AsyncClient,
    Client,
    VoiceCatalogue,
    get_service,
    identify_service_and_voices,
    replace_store_if_replaying,
)
from speechlab.errors import InvalidRequestError, SpeechLabError

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.store import Store

# Seconds of reading recordings before a bar shows it.
_BAR_DELAY_S = 2.0
_STEPS: dict[str, type[RowStep]] = {
    step.operation: step for step in (SynthesisStep, TranscriptionStep, TranslationStep)
}


def plan_table(lab: Client, kind: type[RowStep], table: Table, given: Mapping[str, Any]) -> Plan:
    """Plan an operation over a table."""
    lists = kind.parameters, KeepingOptions, WaitingOptions
    if later := sorted(
        set(given) & (set(CallingOptions.__annotations__) - set(WaitingOptions.__annotations__))
    ):
        names = ", ".join(map(repr, later))
        message = f"{names} is no option of a plan; give it to the run: sl.batch.run(plan, lab, …)"
        raise InvalidRequestError(message, parameter=later[0])
    parameters, keeping, patience = check_and_sort_options(f"a plan to {kind.operation}", given, *lists)
    with _open_plan_and_store(lab, kind, table, parameters, keeping, patience) as (_, plan, _):
        return plan


def run_plan(lab: Client, plan: Plan, given: Mapping[str, Any]) -> Run:
    """Run a plan. Its table is written to the store and not kept in memory."""
    (options,) = check_and_sort_options("a run", given, CallingOptions)
    with BlockingCaller(lab, options) as caller:
        execution = Execution(check_plan(plan), options, keep=False)
        with use_store(plan.store) as store:
            make_calls([BatchPart(caller, execution, store)])
    execution.warn_or_raise_failures()
    return Run(execution.record, plan.store)


def process_table(lab: Client, kind: type[RowStep], table: Table, given: Mapping[str, Any]) -> pd.DataFrame:
    """Plan an operation over a table, run the plan, and join its table."""
    lists = kind.parameters, KeepingOptions, CallingOptions
    parameters, keeping, options = check_and_sort_options(kind.operation, given, *lists)
    with _open_plan_and_store(
        lab, kind, table, parameters, keeping, options, in_pieces=options["executor"] is None
    ) as (caller, plan, store):
        of_dask = isinstance(plan.source.frames, Partitions)
        execution = Execution(plan, options, keep=not of_dask)
        make_calls([BatchPart(caller, execution, store)])
    execution.warn_or_raise_failures()
    if of_dask:
        frame: pd.DataFrame = Run(execution.record, store.path).dask(columns=keeping["columns"])
        return frame
    return _join_table(execution)


def _join_table(execution: Execution) -> pd.DataFrame:
    """Join the pieces of a batch to a table in the user's form."""
    plan = execution.plan
    joined = join_frames(execution.frames, type(plan.step), plan.prefix)
    if execution.recorded:
        joined.attrs[RUN_ATTRIBUTE] = execution.record.id
    return to_requested_form(joined, plan.source, plan.prefix, plan.columns)


class TableRequest(NamedTuple):
    """What an operation of a batch gets for one of several tables."""

    operation: str  # synthesize, transcribe or translate
    lab: Client
    frame: pd.DataFrame
    options: Mapping[str, Any]


def process_in_turns(
    requests: Mapping[str, TableRequest], lost: tuple[type[SpeechLabError], ...]
) -> tuple[dict[str, pd.DataFrame], dict[str, SpeechLabError]]:
    """Process tables in memory at the same time, the calls of their first rows first.

    So a service that changes meanwhile changes for all of them. The workers of a cluster get leases in turns.

    Returns:
        The tables, and the errors that end a batch alone; a client that has one is asked for no further table.
    """
    tables: dict[str, pd.DataFrame] = {}
    errors: dict[str, SpeechLabError] = {}
    of_clients: dict[int, SpeechLabError] = {}
    parts: dict[str, BatchPart] = {}
    tally, turns = Tally(), None
    leases: list[LeaseTurns] = []
    with ExitStack() as stack:
        for name, (operation, lab, frame, given) in requests.items():
            kind = _STEPS[operation]
            lists = kind.parameters, KeepingOptions, CallingOptions
            parameters, keeping, options = check_and_sort_options(kind.operation, given, *lists)
            try:
                if (known := of_clients.get(id(lab))) is not None:
                    raise known
                if options["executor"] is not None:  # each worker makes the calls of all
                    options["concurrency"] = max(1, options["concurrency"] // len(requests))
                opening = _open_plan_and_store(lab, kind, frame, parameters, keeping, options)
                caller, plan, store = stack.enter_context(opening)
            except lost as error:
                errors[name] = of_clients[id(lab)] = error
                continue
            execution, places = Execution(plan, options, tally=tally), get_service(lab).places or 0
            if options["executor"] is None:
                turns = turns or CallTurns(options["concurrency"])
                parts[name] = BatchPart(caller, execution, store, turns.add_batch(plan, places))
            else:
                parts[name] = BatchPart(caller, execution, store, LeaseTurns.of_plan(leases, plan))
        ends = make_calls(list(parts.values()), lost) if parts else []
        errors |= {name: error for name, error in zip(parts, ends, strict=True) if error is not None}
    for name in parts.keys() - errors.keys():
        parts[name].execution.warn_or_raise_failures()
    tables |= {name: _join_table(part.execution) for name, part in parts.items() if name not in errors}
    return {name: tables[name] for name in requests if name in tables}, errors


@contextmanager
def _open_plan_and_store(
    lab: Client,
    kind: type[RowStep],
    table: Table,
    parameters: Mapping[str, Any],
    keeping: KeepingOptions,
    patience: WaitingOptions | CallingOptions,
    *,
    in_pieces: bool = False,
) -> Iterator[tuple[BlockingCaller, Plan, Store]]:
    """A caller, a plan, and its store, open for the block; ``in_pieces`` is for a run that follows at once."""
    progress = patience["progress"]
    with ExitStack() as stack:
        caller = stack.enter_context(BlockingCaller(lab, patience))
        source = open_source(table, kind.works_on)
        if source.series and parameters[kind.works_on] == kind.works_on:
            parameters = {**parameters, kind.works_on: source.columns[0]}
        if kind.works_on == "audio":
            source = source.with_recordings(getattr(column := parameters["audio"], "name", column))
            source = source.in_pieces() if in_pieces else source
        store = (
            stack.enter_context(use_store(keeping["store"])) if is_existing_store(keeping["store"]) else None
        )

        async def identify_with_advice(lab: AsyncClient, tally: Tally) -> tuple[str, VoiceCatalogue | None]:
            lab = replace_store_if_replaying(lab, keeping["store"])
            mine, _ = caller.open_client_and_group(lab, tally)
            try:
                return await identify_service_and_voices(lab, mine, store, voices=kind.wants_voices)
            except SpeechLabError as error:
                if error.service_lost:
                    advice = "the batch gave the service up before it began; give_up_after_s says how long it waits"
                    add_advice(error, advice)
                raise

        service, voices = caller.ask_with_progress(identify_with_advice, kind.operation)
        step = kind(parameters, source.columns, service, voices, get_service(caller.lab))
        store = store or stack.enter_context(use_store(keeping["store"]))
        rows = len(source.whole) if source.whole is not None and kind.works_on == "audio" else 0
        # a function and a watcher are for calls
        with show_progress(
            progress is True, rows, "read recordings", unit="row", delay_s=_BAR_DELAY_S
        ) as advance:
            plan = build_plan(source, step, keeping, store, service, advance)
        yield caller, plan, store
