"""Reports, which studies return: tables, a page, and files to keep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from speechlab._files import user_path, whole_file
from speechlab.display import Html, document, element, join
from speechlab.errors import StoreError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure


class Report(ABC):
    """The answer of a study.

    Attributes:
        title: What was studied.
        table: One row for each item.
        summary: One row for each group.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame

    @abstractmethod
    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return the parts of the page.

        Args:
            clips: How many recordings to put into the page, at most; None for all of them.
        """

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Return what it takes to read the numbers: versions, signatures, counts."""

    @abstractmethod
    def plot(self, **options: Any) -> Figure:
        """Draw the summary as a matplotlib ``Figure``.

        Args:
            **options: As for the function of :mod:`speechlab.plots` that draws it.
        """

    def to_html(self) -> str:
        """Return the report as one self-contained page: no network, no scripts, sound included."""
        footer = join(Html(" · "), [f"{name}: {value}" for name, value in self.facts().items()])
        return document(self.title, *self.sections(), footer=footer)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``results.parquet``, ``results.csv``, ``summary.csv`` and ``report.html`` into a folder.

        Raises:
            StoreError: A file cannot be written.
        """
        return self._write(user_path(folder), self.to_html())

    def _write(self, path: Path, html: str) -> Path:
        try:
            path.mkdir(parents=True, exist_ok=True)
            self.table.to_parquet(path / "results.parquet", index=False)
            self.table.to_csv(path / "results.csv", index=False)
            self.summary.to_csv(path / "summary.csv", index=False)
            with whole_file(path / "report.html") as draft:
                draft.write_text(html, encoding="utf-8")
        except OSError as error:
            reason = error.strerror or error
            message = f"cannot write the report into {path}: {reason}; free space or name another folder"
            raise StoreError(message) from error
        return path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r}, {len(self.table)} rows)"

    def _repr_html_(self) -> str:
        return join("", self.sections(clips=3))


def combined_page(title: str, reports: Sequence[Report]) -> str:
    """Return several reports as one self-contained page."""
    parts: list[Html] = []
    facts: dict[str, str] = {}
    for report in reports:
        parts += [element("h2", report.title), *report.sections()]
        facts |= report.facts()
    footer = join(Html(" · "), [f"{name}: {value}" for name, value in facts.items()])
    return document(title, *parts, footer=footer)
