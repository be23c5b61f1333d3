"""Batches: a DataFrame goes in, a DataFrame comes out, row for row.

A plan lists the calls that a table needs, a run makes them, and the results are joined to the rows. A store keeps
each result as soon as it arrives. An interrupted run therefore continues where it stopped and pays for nothing twice.
An invalid row becomes an error row and does not stop the others. The client is responsible for retries and rate
limits.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.batch._history import Run, failures, load, runs
from speechlab.batch._long import PIECE_S, transcribe_long
from speechlab.batch._operations import (
    plan_synthesis,
    plan_transcription,
    plan_translation,
    run,
    synthesize,
    transcribe,
    translate,
)
from speechlab.batch._options import DEFAULT_CONCURRENCY as DEFAULT_CONCURRENCY
from speechlab.batch._options import check_option_names as check_option_names
from speechlab.batch._options import list_call_options as list_call_options
from speechlab.batch._outcome import UNRECOGNIZED as UNRECOGNIZED
from speechlab.batch._outcome import Outcome
from speechlab.batch._outcome import PlannedCall as PlannedCall
from speechlab.batch._outcome import suppress_failure_warnings as suppress_failure_warnings
from speechlab.batch._plan.columns import STATUSES
from speechlab.batch._plan.columns import list_earlier_bookkeeping as list_earlier_bookkeeping
from speechlab.batch._plan.parameters import Column, Value
from speechlab.batch._plan.plan import S_PER_CHARACTER, Amounts, Plan
from speechlab.batch._plan.price import Price
from speechlab.batch._process import TableRequest as TableRequest
from speechlab.batch._process import process_in_turns as process_in_turns
from speechlab.batch._run.progress import Counts, Watcher, announce, show_progress
from speechlab.batch._run.progress import Progress as Progress
from speechlab.batch._run.progress import Tally as Tally
from speechlab.batch._run.rules import Budget
from speechlab.batch._run.rules import Spending as Spending
from speechlab.batch._table.assemble import assemble
from speechlab.batch._table.timed import FAULTS_ATTRIBUTE as FAULTS_ATTRIBUTE
from speechlab.batch._table.timed import to_segments
from speechlab.batch._timing import Arrivals as Arrivals
from speechlab.batch._timing import TimedCall as TimedCall
from speechlab.batch._timing import time_call_with_retries, time_in_turns
from speechlab.batch._verify import Verification

__all__ = [
    "Budget",
    "Column",
    "Price",
    "Value",
    "Watcher",
    "assemble",
    "failures",
    "load",
    "plan_synthesis",
    "plan_transcription",
    "plan_translation",
    "run",
    "runs",
    "synthesize",
    "to_segments",
    "transcribe",
    "transcribe_long",
    "translate",
]

_name_after(__name__, globals())
