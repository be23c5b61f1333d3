"""Statements, checks, outcomes and the report of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, wraps
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.conform._probe.findings import Finding
    from speechlab.conform._probe.target import Target


class Verdict(StrEnum):
    """Verdict on a check, worst first."""

    FAILS = "fails"
    """The plain words of the contract are broken."""
    ADVISORY = "advisory"
    """A reading of an ambiguous or silent place of the contract is not followed."""
    UNTRIED = "not tried"
    """It could not be tried; the outcome says why."""
    HOLDS = "holds"


@dataclass(frozen=True, slots=True)
class Statement:
    """A numbered statement about services, with the section of the API document that it comes from."""

    number: int
    section: str
    text: str


@cache
def statements() -> dict[int, Statement]:
    """Return all statements that are a service's duty, by number.

    Example:
        >>> statements()[29].section, statements()[29].text[:40]
        ('2.2, 8', 'Limit counts cp: 5,000 x U+20BB7 passes,')
    """
    lines = files("speechlab.conform").joinpath("_statements.txt").read_text("utf-8").splitlines()
    found = (line.split("|", 2) for line in lines)
    return {int(number): Statement(int(number), section, text) for number, section, text in found}


@dataclass(frozen=True, slots=True)
class Check:
    """Something that can be tried from outside.

    Attributes:
        id: Name, beginning with the number of the statement that it is first about.
        statements: Numbers of the statements that it tries.
        title: What must hold, in a line.
        area: Part of the service.
        binding: Whether the contract's plain words ask for it; readings of ambiguous places do not bind.
        metered: Most calls that it makes which a service may charge for; shared ones are counted at each.
        quick: Whether it is part of a quick run.
        needs: What it needs beyond a service and a key; empty for nothing.
        run: Tries it.

    Example:
        >>> [check.id for check in chosen("3") if not check.binding]
        ['3-challenge']
    """

    id: str
    statements: tuple[int, ...]
    title: str
    area: str
    binding: bool
    metered: int
    quick: bool
    needs: str
    run: Callable[[Target], None] = field(repr=False, compare=False)

    def __reduce__(self) -> tuple[Callable[[str, str], Check], tuple[str, str]]:
        # A check is where it is declared; a report that travels to another process names it.
        return _declared, (self.run.__module__, self.run.__name__)


def _declared(module: str, name: str) -> Check:
    return cast("Check", getattr(import_module(module), name))


def check(
    name: str,
    *statements: int,
    title: str,
    advisory: bool = False,
    metered: int = 0,
    quick: bool = True,
    needs: str = "",
    first: Callable[[Target], None] | None = None,
) -> Callable[[Callable[[Target], None]], Check]:
    """Make a check of the function that tries it.

    Args:
        name: What it is about, in a word or two; its id is the first number and this.
        *statements: Numbers of the statements.
        title: What must hold.
        advisory: Whether it only follows a reading of an ambiguous or silent place.
        metered: Most calls that may be charged for.
        quick: Whether a quick run has it.
        needs: What it needs beyond a service and a key.
        first: Called before it; raises ``Untried`` where the operation is not to be had.
    """

    def made(body: Callable[[Target], None]) -> Check:
        @wraps(body)
        def run(target: Target) -> None:
            if first is not None:
                first(target)
            body(target)

        area = body.__module__.rpartition(".")[2]
        identity = f"{statements[0]}-{name}"
        return Check(identity, statements, title, area, not advisory, metered, quick, needs, run)

    return made


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """Outcome of a check; ``reason`` says why it was not tried."""

    check: Check
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    metered: int = 0


@dataclass(frozen=True, slots=True)
class ConformReport:
    """Outcomes of a run.

    Attributes:
        base_url: Where HTTP requests went.
        ws_base_url: Where handshakes went.
        started: When it began, in ISO 8601, UTC.
        outcomes: One for each check that was chosen.

    Example:
        >>> report = ConformReport("http://127.0.0.1:8100", "ws://127.0.0.1:8100", "2026-01-01T00:00:00Z", ())
        >>> report.passed(), report.metered
        (True, 0)
    """

    base_url: str
    ws_base_url: str
    started: str
    outcomes: tuple[CheckOutcome, ...]

    @property
    def metered(self) -> int:
        """Calls made that a service may charge for."""
        return sum(outcome.metered for outcome in self.outcomes)

    @property
    def seconds(self) -> float:
        """Duration of all checks."""
        return sum(outcome.seconds for outcome in self.outcomes)

    def count(self, verdict: Verdict) -> int:
        """Return how many checks came out like this."""
        return sum(outcome.verdict is verdict for outcome in self.outcomes)

    def by_statement(self) -> dict[int, Verdict]:
        """Return the verdict on each statement: the worst of what was tried, if anything was."""
        found: dict[int, list[Verdict]] = {}
        for outcome in self.outcomes:
            for number in outcome.check.statements:
                found.setdefault(number, []).append(outcome.verdict)
        ranks = (Verdict.FAILS, Verdict.ADVISORY, Verdict.HOLDS, Verdict.UNTRIED)
        return {number: min(found[number], key=ranks.index) for number in sorted(found)}

    def passed(self, *, strict: bool = False) -> bool:
        """Whether nothing fails; ``strict`` counts advisory statements as well."""
        broken = {Verdict.FAILS, Verdict.ADVISORY} if strict else {Verdict.FAILS}
        return not any(outcome.verdict in broken for outcome in self.outcomes)
