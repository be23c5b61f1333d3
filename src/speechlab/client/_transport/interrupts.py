"""Delivery of interrupts to an ``await`` in a cell, at once.

IPython cancels the cell from its signal handler, which does not wake the event loop: a loop that waits for a reply
would notice only when the reply arrives. During such a wait, the loop therefore wakes a few times a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TURN_S = 0.2
_NOTHING = contextlib.nullcontext()


def hearing_interrupts() -> contextlib.AbstractContextManager[None]:
    """A context in which interrupts reach the running loop; needed in a kernel's main thread only."""
    if "ipykernel" not in sys.modules or threading.current_thread() is not threading.main_thread():
        return _NOTHING
    return _turning(asyncio.get_running_loop())


@contextlib.contextmanager
def _turning(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    next_turn: asyncio.TimerHandle | None = None

    def turn() -> None:
        nonlocal next_turn
        next_turn = loop.call_later(_TURN_S, turn)

    turn()
    try:
        yield
    finally:
        if next_turn is not None:
            next_turn.cancel()
