"""Points at which long work may be interrupted: between two windows of a recording, two sentences of a translation.

An engine is not told who else waits for it. It says where it could stop for a moment, with nothing half done, and
whoever called it may then let another request go first, or end the work by raising.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_here = threading.local()


def checkpoint() -> None:
    """Say that this is a good moment to stop; called by engines. Raises what the caller's function raises.

    Example:
        >>> with checkpoints(lambda: print("reached")):
        ...     checkpoint()
        reached
    """
    reached: Callable[[], None] | None = getattr(_here, "reached", None)
    if reached is not None:
        reached()


@contextlib.contextmanager
def checkpoints(reached: Callable[[], None]) -> Iterator[None]:
    """Have a function called at each checkpoint of this thread for as long as the block lasts.

    Args:
        reached: What to call. It may take its time, in which others use the engine; what it raises ends the work.

    Example:
        >>> reached = []
        >>> with checkpoints(lambda: reached.append(1)):
        ...     for _ in range(3):
        ...         checkpoint()
        >>> len(reached)
        3
    """
    before = getattr(_here, "reached", None)
    _here.reached = reached
    try:
        yield
    finally:
        _here.reached = before
