"""What a study shows while it works: an estimate before it starts, then its stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from speechlab import batch
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.batch import Progress

StageProgress = bool | Callable[[str, int, int], None] | batch.Watcher
"""True for bars, False for none, a function of (stage, calls done, calls in all), or a watcher of one stage after the
other."""


def stage_of(progress: object, stage: str) -> Progress:
    """Return the progress of one stage of a study, in the form for a batch."""
    if isinstance(progress, bool | batch.Watcher):
        return progress
    if not callable(progress):
        message = (
            f"progress is {progress!r}; it must be True, False, a function of (stage, calls done, calls in all), "
            "or a watcher such as BatchPreview()"
        )
        raise InvalidRequestError(message, parameter="progress")
    told = progress
    return lambda done, total: told(stage, done, total)
