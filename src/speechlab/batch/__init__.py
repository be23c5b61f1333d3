"""Batches: a DataFrame goes in, a DataFrame comes out, row for row.

Each call is planned, run and put back into the table; results are kept in a store as they come, so that a run
that was interrupted goes on where it stopped, and asks nothing twice. A bad row becomes an error row and never
stops the others. Rooms above (studies) and users in notebooks work with it; retries and rate limits are the
client's.
"""

from __future__ import annotations

from speechlab.batch._accessor import SpeechAccessor
from speechlab.batch._assemble import STATUSES
from speechlab.batch._operations import synthesize, transcribe, translate
from speechlab.batch._plan import Plan
from speechlab.batch._run import DEFAULT_CONCURRENCY, Outcome, Progress

__all__ = [
    "DEFAULT_CONCURRENCY",
    "STATUSES",
    "Outcome",
    "Plan",
    "Progress",
    "SpeechAccessor",
    "synthesize",
    "transcribe",
    "translate",
]
