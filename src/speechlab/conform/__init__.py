"""Conformance: which statements of the contract a deployment keeps, as seen from outside.

It takes the vocabulary from ``contract`` and speaks HTTP and WebSockets by the byte, for a client would hide what is
looked at here. It is neither a client, nor a load test, nor a judge of how good speech is; it never does harm.
Used by ``speechlab conform`` and by the tests of the embedded service, of which it knows nothing. It could be shipped
alone: beside the contract it needs ``errors``, and ``audio`` to decode the sound that comes.
"""

from __future__ import annotations

from speechlab._door import name_after as _name_after
from speechlab.conform._model import (
    Check,
    CheckOutcome,
    ConformReport,
    Statement,
    Verdict,
    statements,
)
from speechlab.conform._probe.findings import Finding
from speechlab.conform._probe.options import ProbeOptions
from speechlab.conform._report import as_json, as_junit, statement_table, write_report
from speechlab.conform._run import run
from speechlab.conform._selection import OUT_OF_REACH, checks, chosen

__all__ = [
    "OUT_OF_REACH",
    "Check",
    "CheckOutcome",
    "ConformReport",
    "Finding",
    "ProbeOptions",
    "Statement",
    "Verdict",
    "as_json",
    "as_junit",
    "checks",
    "chosen",
    "run",
    "statement_table",
    "statements",
    "write_report",
]

_name_after(__name__, globals(), __all__)
