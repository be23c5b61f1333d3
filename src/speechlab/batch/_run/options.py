"""Options of a run; none of them can change a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from speechlab.batch._run.progress import Progress
    from speechlab.batch._run.rules import Budget

DEFAULT_CONCURRENCY = 16
"""Maximum number of concurrent attempts. The client's scheduler begins with fewer, and may stay below it."""


class WaitingOptions(TypedDict, total=False):
    """The maximum wait for a service that cannot be reached or asks to wait, and the display of the wait."""

    progress: Progress
    give_up_after_s: float | None


class RunOptions(WaitingOptions, total=False):
    """Options of a run; none of them can change a result."""

    concurrency: int
    on_error: Literal["row", "raise"]
    retry_failed: bool
    max_error_share: float | None
    budget: Budget | None
    executor: Any
    rate: float | None
