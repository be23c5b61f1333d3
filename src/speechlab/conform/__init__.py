"""Conformance checks: which statements of the contract a deployment keeps, as seen from outside.

The package uses the data of ``contract``, and its own HTTP and WebSocket code on bare sockets, because a client
library would hide what is checked here. It contains no client, no load test and no rating of speech, and its checks
do no harm. ``speechlab conform`` and the tests of the embedded service use it; it knows nothing of that service. It
could be distributed alone: besides the contract it needs ``errors``, and ``audio`` to decode audio.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.conform._model import Check, CheckOutcome, ConformReport, Statement, Verdict, read_statements
from speechlab.conform._probe.findings import Observation, ProbeOptions
from speechlab.conform._report import to_json, to_junit, write_report
from speechlab.conform._run import OUT_OF_REACH, list_checks, run, select_checks

__all__ = ["ProbeOptions", "run", "select_checks"]

_name_after(__name__, globals())
