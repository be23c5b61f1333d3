"""Options of a run; none of them can change a result."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from speechlab._arguments import is_number
from speechlab.batch._keeping import is_count, refused
from speechlab.batch._run.progress import Progress, Watcher
from speechlab.batch._run.rules import Budget, check_error_share

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


RUN_DEFAULTS: RunOptions = {
    "concurrency": DEFAULT_CONCURRENCY,
    "progress": True,
    "on_error": "row",
    "retry_failed": True,
    "max_error_share": 0.5,
    "budget": None,
    "executor": None,
    "rate": None,
}


def run_options(given: RunOptions) -> RunOptions:
    """Check the options, and add the defaults of those not given; see :func:`speechlab.batch.run`.

    Raises:
        InvalidRequestError: One is not allowed.
    """
    options: RunOptions = {**RUN_DEFAULTS, **given}
    if not is_count(options["concurrency"]):
        raise refused("concurrency", options["concurrency"], "a whole number of at least 1")
    progress: object = options["progress"]
    if not isinstance(progress, bool | Watcher) and not callable(progress):
        kinds = "True, False, a function of (calls done, calls in all), or a watcher such as BatchPreview()"
        raise refused("progress", progress, kinds)
    if options["on_error"] not in ("row", "raise"):
        raise refused("on_error", options["on_error"], "'row' or 'raise'")
    if not isinstance(options["retry_failed"], bool):
        raise refused("retry_failed", options["retry_failed"], "True or False")
    if not isinstance(options["budget"], Budget | None):
        raise refused("budget", options["budget"], "a speechlab.batch.Budget, or None")
    rate: object = options["rate"]
    if rate is not None and not (is_number(rate) and rate > 0):
        raise refused("rate", rate, "a number of calls per second above 0, or None")
    check_error_share(options["max_error_share"])
    return options
