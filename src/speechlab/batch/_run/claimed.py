"""Claims of calls: two processes never make the same call, and each takes the results of the other."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING

from speechlab.batch._outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from speechlab.batch._plan.rows import PlannedCall
    from speechlab.batch._run.progress import Tally
    from speechlab.batch._run.rules import Stop
    from speechlab.store import Store

_AT_ONCE = 8
"""Number of calls that are claimed and looked up in the store at a time, and the maximum that waits."""
_LOOK_S = 0.25
"""Interval in seconds at which the store is checked for results of other processes, after all other work."""


class ClaimedCalls:
    """The calls of a piece of the table, each claimed before it is made.

    Two processes with the same rows thereby share the work: each makes the calls that the other has not begun, and at
    the end waits for the other's results. A killed process loses its claims, and this process then makes its calls.
    """

    def __init__(self, calls: Sequence[PlannedCall], store: Store, tally: Tally) -> None:
        self.left: list[PlannedCall] = list(calls)
        """Calls not yet given out; after :meth:`give_out`, the calls that other processes are making."""
        self.found: dict[str, Outcome] = {}
        """The outcomes of calls that other processes made."""
        self._store, self._tally = store, tally
        self._claims = store.claims()

    def give_out(self, ended: dict[str, Outcome]) -> Iterator[PlannedCall]:
        """Yield the calls that no other process is making."""
        calls, self.left = iter(self.left), []
        while some := list(islice(calls, _AT_ONCE)):
            self._claims.give_back(self._claims.taken & ended.keys())
            claimed = [call for call in some if self._claims.take(call.key)]
            self.left += [call for call in some if call.key not in self._claims.taken]
            self._take_results(claimed)
            yield from (call for call in claimed if call.key not in self.found)

    async def look_again(self, stop: Stop) -> None:
        """Wait a moment, then take new results of other processes; a stop ends the wait."""
        if not stop:
            await asyncio.sleep(_LOOK_S)
        await asyncio.to_thread(self._take_results, self.left)
        self.left = [call for call in self.left if call.key not in self.found]

    def give_back(self) -> None:
        """Release all claims."""
        self._claims.give_back(self._claims.taken)

    def _take_results(self, calls: Sequence[PlannedCall]) -> None:
        """Take results that are in the store."""
        found = self._store.get_many([call.key for call in calls])
        self.found.update((key, Outcome("cached", stored)) for key, stored in found.items())
        self._claims.give_back(found)
        self._tally.planned(-len(found), len(found))
