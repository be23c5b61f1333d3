"""Findings of a check, and the two ways in which it ends early: a broken expectation, or nothing to try it with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Evidence(Protocol):
    """A request and its reply as text, without keys."""

    @property
    def sent(self) -> str:
        """The request."""
        ...

    @property
    def came(self) -> str:
        """The reply."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken expectation with its evidence; keys are never in it."""

    expected: str
    sent: str
    came: str


class Unmet(Exception):  # noqa: N818 - not an error of this program but a finding about another
    """The service does not do what is expected, and the check cannot go on.

    Args:
        expected: What the contract says.
        evidence: What was sent and what came.
    """

    def __init__(self, expected: str, evidence: Evidence | None = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.evidence = evidence


class Untried(Exception):  # noqa: N818 - neither is this
    """The check cannot be tried; the message says what it lacks."""
