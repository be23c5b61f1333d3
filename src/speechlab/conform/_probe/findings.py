"""Findings of a check, and its two early ends: a broken expectation, or a missing requirement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Evidence(Protocol):
    """A request and its reply as text, without keys."""

    @property
    def sent(self) -> str: ...

    @property
    def came(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Observation:
    """A broken expectation with its evidence, which never contains keys."""

    expected: str
    sent: str
    came: str


class Unmet(Exception):  # noqa: N818 - not an error of this program but a finding about another
    """The service does not behave as expected, and the check cannot continue."""

    def __init__(self, expected: str, evidence: Evidence | None = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.evidence = evidence


class Untried(Exception):  # noqa: N818 - not an error of this program either
    """The check cannot run; the message names the missing requirement."""
