"""The accessors ``DataFrame.speech`` and ``Series.speech``, of pandas and polars; their rooms load on use."""

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from speechlab.widgets import AudioTable


class _BatchMethod:
    """A function of the batch room as a method; its first argument is the table of the accessor."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, accessor: SpeechAccessor | None, owner: type) -> Any:
        from speechlab import batch

        function = getattr(batch, self._name)
        return function if accessor is None else MethodType(function, accessor.table)


@pd.api.extensions.register_series_accessor("speech")
@pd.api.extensions.register_dataframe_accessor("speech")
class SpeechAccessor:
    """Batches over a DataFrame, or over a Series of texts or recordings as a table of one column."""

    synthesize = _BatchMethod()
    transcribe = _BatchMethod()
    transcribe_long = _BatchMethod()
    translate = _BatchMethod()

    def __init__(self, table: Any) -> None:
        self.table = table

    def show(self, **options: Any) -> AudioTable:
        """Show and play the table: calls ``speechlab.show`` with the same options."""
        from speechlab.widgets import show

        is_column = not hasattr(self.table, "columns")
        return show(self.table.to_frame() if is_column else self.table, **options)


def register_with_polars() -> None:
    """Give the tables and columns of polars the same accessor."""
    from polars import api

    for register in (
        api.register_dataframe_namespace,
        api.register_lazyframe_namespace,
        api.register_series_namespace,
    ):
        register("speech")(SpeechAccessor)
