"""What the size of batches changes: systems of functions asked again, with batches of another size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from speechlab.client import Client, copy_with_batch_size
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._study_arguments import check_whole_number

if TYPE_CHECKING:
    import pandas as pd

# Clients and their options, by the names of their systems.
Asked = Mapping[str, tuple[Client, dict[str, Any]]]


class OtherBatches:
    """The systems of a study with batches of another size, if that was asked for."""

    def __init__(
        self, asked: Mapping[str, tuple[Client | None, dict[str, Any]]], batch_size: int | None
    ) -> None:
        self._size, self._asked = batch_size, {}
        with ExitStack() as stack:
            if batch_size is not None:
                size = check_whole_number("other_batch_size", batch_size, least=1)
                for name, (lab, options) in asked.items():
                    copy = None if lab is None or options.get("stream") else copy_with_batch_size(lab, size)
                    if copy is not None:
                        self._asked[name] = stack.enter_context(copy), options
            self._left = stack.pop_all()
        if batch_size is not None and not self._asked:
            message = (
                "other_batch_size= needs a function in batches of another size, as of "
                "sl.system(name, transcribe_batch=f, batch_size=32)"
            )
            raise InvalidRequestError(message, parameter="other_batch_size")

    def describe_changes(
        self,
        made: Mapping[str, pd.DataFrame],
        column: str,
        ask: Callable[[Asked], tuple[Mapping[str, pd.DataFrame], object]],
    ) -> list[str]:
        """Ask again, and return how many texts change."""
        if not self._asked:
            return []
        with self._left:
            again, _ = ask(self._asked)
        notes = []
        for name, table in again.items():
            first, second = made[name][column].reset_index(drop=True), table[column].reset_index(drop=True)
            both = first.notna() & second.notna()
            changed, count = int((first[both] != second[both]).sum()), format_count(int(both.sum()), "text")
            of = f" of {name}" if name else ""
            verb = "changes" if changed == 1 else "change"
            notes.append(f"{changed:,} of {count}{of} {verb} in batches of {self._size}.")
        return notes
