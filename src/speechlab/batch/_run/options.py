"""Options of a run; none of them can change a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from speechlab.batch._run.progress import Progress
    from speechlab.batch._run.rules import Budget

DEFAULT_CONCURRENCY = 8
"""Maximum of calls under way at once; the client's limiter begins with fewer, and may stay below."""


class RunOptions(TypedDict, total=False):
    """Options of a run; none of them can change a result."""

    concurrency: int
    progress: Progress
    on_error: Literal["row", "raise"]
    retry_failed: bool
    max_error_share: float | None
    budget: Budget | None
    executor: Any
    rate: float | None
