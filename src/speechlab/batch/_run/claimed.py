"""Calls that this process may make: those that another one is making are left to it, and its results are taken."""

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
"""Calls that are claimed, and looked up in the store, at once; so many wait to be given out at most."""
_LOOK_S = 0.25
"""How often the store is asked for what others are making, once nothing else is left to do."""


class ClaimedCalls:
    """The calls of a piece of the table, each claimed before it is given out.

    Two processes with the same rows so share them: each goes on with what the other has not begun, and waits for the
    other's results at the end. A process that is killed loses its claims, and its calls are made here.

    Args:
        calls: The calls.
        store: Where claims and results are.
        tally: Progress.
    """

    def __init__(self, calls: Sequence[PlannedCall], store: Store, tally: Tally) -> None:
        self.left: list[PlannedCall] = list(calls)
        """Calls that have not been given out: before, all of them; after, those that others are making."""
        self.found: dict[str, Outcome] = {}
        """The outcomes of calls that others made meanwhile."""
        self._store, self._tally = store, tally
        self._claims = store.claims()

    def give_out(self, ended: dict[str, Outcome]) -> Iterator[PlannedCall]:
        """Give out the calls that nobody else is making.

        Args:
            ended: The outcomes of those that were given out, as they come; their claims are given back.
        """
        calls, self.left = iter(self.left), []
        while some := list(islice(calls, _AT_ONCE)):
            self._claims.give_back(self._claims.taken & ended.keys())
            claimed = [call for call in some if self._claims.take(call.key)]
            self.left += [call for call in some if call.key not in self._claims.taken]
            self._take_results(claimed)
            yield from (call for call in claimed if call.key not in self.found)

    async def look_again(self, stop: Stop) -> None:
        """Wait a moment, and take the results that others have by then; a stop ends the wait."""
        if not stop:
            await asyncio.sleep(_LOOK_S)
        await asyncio.to_thread(self._take_results, self.left)
        self.left = [call for call in self.left if call.key not in self.found]

    def give_back(self) -> None:
        """Give all claims back."""
        self._claims.give_back(self._claims.taken)

    def _take_results(self, calls: Sequence[PlannedCall]) -> None:
        """Take results that are in the store."""
        found = self._store.get_many([call.key for call in calls])
        self.found.update((key, Outcome("cached", stored)) for key, stored in found.items())
        self._claims.give_back(found)
        self._tally.planned(-len(found), len(found))
