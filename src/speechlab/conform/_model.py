"""Statements, checks, outcomes and the report of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speechlab.conform._probe.findings import Observation
    from speechlab.conform._probe.target import Target


# A part of a check: it asks a deployment, and records what is not as expected.
Step = Callable[["Target"], object]
Declare = Callable[..., Callable[..., "Check"]]


class Verdict(StrEnum):
    """Verdict on a check, worst first."""

    FAILS = "fails"
    """An explicit rule of the contract is broken."""
    ADVISORY = "advisory"
    """A reading of an ambiguous or silent point of the contract is not followed."""
    UNTRIED = "not tried"
    """The check could not run; the outcome has the reason."""
    HOLDS = "holds"


@dataclass(frozen=True, slots=True)
class Statement:
    """A numbered statement about services, with its section of the API document."""

    number: int
    section: str
    text: str


@cache
def read_statements() -> dict[int, Statement]:
    """Return all statements that apply to services, by number."""
    lines = files("speechlab.conform").joinpath("_statements.txt").read_text("utf-8").splitlines()
    fields = (line.split("|", 2) for line in lines)
    return {int(number): Statement(int(number), section, text) for number, section, text in fields}


@dataclass(frozen=True, slots=True)
class Check:
    """A check that can run from outside."""

    id: str
    statements: tuple[int, ...]
    title: str
    area: str
    binding: bool
    metered: int
    quick: bool
    needs: str
    steps: tuple[Step, ...] = field(repr=False, compare=False)

    def __reduce__(self) -> tuple[Callable[[str], Check], tuple[str]]:
        # A check is identified by its declaration; a report pickled to another process refers to it by its id.
        return _get_check, (self.id,)


def _get_check(identity: str) -> Check:
    return CHECKS[identity]


# All checks of the areas that are imported, by id.
CHECKS: dict[str, Check] = {}


def build_decorators(module: str, *first: Step) -> tuple[Declare, Declare]:
    """Decorators of the checks of an area, binding and advisory ones, which all begin with some steps."""
    area = module.rpartition(".")[2]
    return partial(_build_check_declarer, area, first, True), partial(
        _build_check_declarer, area, first, False
    )


def _build_check_declarer(
    area: str,
    first: tuple[Step, ...],
    binding: bool,
    identity: str,
    title: str,
    *,
    also: tuple[int, ...] = (),
    metered: int = 0,
    quick: bool = True,
    needs: str = "",
) -> Callable[..., Check]:
    """Declare a check of the statement that its id begins with, and of others; call the result with its steps."""
    if identity in CHECKS:
        raise ValueError(f"there are two checks named {identity}")

    def declare_steps(*steps: Step) -> Check:
        statements = (int(identity.partition("-")[0]), *also)
        every_step = (*first, *steps)
        check = Check(identity, statements, title, area, binding, metered, quick, needs, every_step)
        return CHECKS.setdefault(identity, check)

    return declare_steps


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """Outcome of a check; ``reason`` is the reason why it did not run."""

    check: Check
    verdict: Verdict
    findings: tuple[Observation, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    metered: int = 0


@dataclass(frozen=True, slots=True)
class ConformReport:
    """Outcomes of a run.

    Attributes:
        base_url: Base URL of the HTTP requests.
        ws_base_url: Base URL of the handshakes.
        started: Time of the start in ISO 8601, UTC.
        outcomes: One for each selected check.

    Example:
        >>> report = ConformReport("http://127.0.0.1:8100", "ws://127.0.0.1:8100", "2026-01-01T00:00:00Z", ())
        >>> report.has_passed(), report.metered
        (True, 0)
    """

    base_url: str
    ws_base_url: str
    started: str
    outcomes: tuple[CheckOutcome, ...]

    @property
    def metered(self) -> int:
        """Number of calls that a service may charge for."""
        return sum(outcome.metered for outcome in self.outcomes)

    @property
    def seconds(self) -> float:
        """Duration of all checks."""
        return sum(outcome.seconds for outcome in self.outcomes)

    def count_checks(self, verdict: Verdict) -> int:
        """Return the number of checks with a verdict."""
        return sum(outcome.verdict is verdict for outcome in self.outcomes)

    def summarize_statements(self) -> dict[int, Verdict]:
        """Return the verdict on each statement: the worst of its checks that ran, if any."""
        verdicts: dict[int, list[Verdict]] = {}
        for outcome in self.outcomes:
            for number in outcome.check.statements:
                verdicts.setdefault(number, []).append(outcome.verdict)
        ranks = (Verdict.FAILS, Verdict.ADVISORY, Verdict.HOLDS, Verdict.UNTRIED)
        return {number: min(verdicts[number], key=ranks.index) for number in sorted(verdicts)}

    def has_passed(self, *, strict: bool = False) -> bool:
        """Whether nothing fails; ``strict`` counts advisory statements as well."""
        broken = {Verdict.FAILS, Verdict.ADVISORY} if strict else {Verdict.FAILS}
        return not any(outcome.verdict in broken for outcome in self.outcomes)
