"""Reports, which studies return: tables, a page, files to keep, and tables for papers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from speechlab._arguments import is_frame, is_whole_number, refused
from speechlab._brief import briefly
from speechlab._files import user_path, whole_file
from speechlab.display import Html, document, element, join, notebook_output
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._failed import failures
from speechlab.evaluate._writing.columns import View, plain_columns
from speechlab.evaluate._writing.folder import (
    PAGES,
    read_folder,
    report_place,
    unwritten,
    write_folder,
    write_parquet,
)
from speechlab.evaluate._writing.methods import Methods, methods_of
from speechlab.evaluate._writing.page import report_page
from speechlab.evaluate._writing.texts import latex_table, latex_text, markdown_table, markdown_text

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from speechlab.evaluate._finding import Conclusion, Finding
    from speechlab.widgets import ShownTable

PAGE_BYTES = 20_000_000
"""Largest page that a report writes unless it is told another size: mail and browsers take it at once."""
WORSE, BETTER, ALIKE = "worse", "better", "no difference shown"
"""What a test says of a difference."""
_LABEL = re.compile(r"[A-Za-z0-9:.-]+")


class Report(ABC):
    """The answer of a study.

    Attributes:
        title: What was studied.
        table: One row for each item.
        summary: One row for each group.
        record: When, with which versions and settings, and what the batches say of themselves; empty if nobody knows.
        notes: What was left out or could not be done, and why.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    record: Mapping[str, Any] = MappingProxyType({})
    notes: tuple[str, ...] = ()
    _made: ClassVar[frozenset[str] | None] = None
    """Columns of the table that the study makes; None for all of them."""

    @property
    def answer(self) -> str:
        """What to do, or what was learnt, and how sure that is; two sentences to quote."""
        return str(self.conclude())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings behind the answer; ``str()`` of each is its text."""
        return ()

    @abstractmethod
    def conclude(self) -> Conclusion:
        """Return the answer in two parts, which the page shows in two sizes."""

    def _views(self) -> Sequence[View]:
        """Return the tables for people, the most important one first."""
        return [View(self.title, plain_columns(self.summary), self.summary.to_dict("records"))]

    def headline(self) -> pd.DataFrame:
        """Return the most important table as texts, as the page, the notebook and the terminal show it."""
        return self._views()[0].frame()

    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return the parts of the report as plain HTML: the answer, tables, findings, and rows.

        Args:
            clips: Maximum of rows with their recordings; None for all rows, 0 for none.
        """
        rows = [] if clips == 0 else self._shown_rows(clips)
        return [answer_html(self.conclude()), *self._parts(), *rows]

    def _parts(self) -> list[Html]:
        """Return what stands below the answer: what failed, tables, and findings."""
        tables = [view.html() for view in self._views() if view.rows]
        return [*self._failures(), *tables, *self._stands_out()]

    def _shown_rows(self, clips: int | None) -> Sequence[Html]:
        """Return rows with their sound, as plain HTML."""
        del clips
        return ()

    def _quoted(self) -> Sequence[Finding]:
        """Return the findings that no table shows."""
        return self.findings

    def _behind(self) -> Sequence[Finding]:
        """Return the findings that stand with the methods."""
        return [finding for finding in self.findings if finding not in self._quoted()]

    def _stands_out(self) -> list[Html]:
        """Return findings and notes as a list, if there are any."""
        said = [*map(str, self._quoted()), *self.notes]
        if not said:
            return []
        items = element("ul", *(element("li", words, dir="auto") for words in said))
        return [notebook_output(element("p", element("strong", "What stands out")), items)]

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Return the facts behind the numbers: versions, signatures, counts."""

    @abstractmethod
    def plot(self, **options: Any) -> Figure:
        """Draw the summary as a matplotlib ``Figure``.

        Args:
            **options: As for the function of :mod:`speechlab.plots` that draws it.
        """

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures of the page by their titles, without figures that would be empty."""
        return drawn({"Scores": self.plot})

    def rows(self, **options: Any) -> Any:
        """Return a :class:`speechlab.widgets.AudioTable` of the rows, to hear, search and sort them.

        Args:
            **options: As for the widget, such as ``columns=["text", "hypothesis"]``.
        """
        from speechlab.widgets import AudioTable

        return AudioTable(self._rows(**options))

    def _rows(self, **options: Any) -> ShownTable:
        """Return the rows as the page and the widget show them, the worst first."""
        from speechlab.widgets import ShownTable

        return ShownTable(self.table, **options)

    def methods(self) -> Methods:
        """Return the methods for a paper: sentences, and the source of each measure in the report."""
        return methods_of(self.title, *self._measured())

    @briefly
    def compare(
        self, earlier: Report | str | os.PathLike[str], *, names: Sequence[str] = ("earlier", "now")
    ) -> Any:
        """Return the significant changes since an earlier report of the study, or the differences of two services.

        Rows match if they agree in voice, language and text, and in ``id`` and ``file`` if both reports have them.
        Matching rows are compared in pairs (:func:`speechlab.metrics.compare`), Japanese by readings, for each voice
        and language. Failed rows have a separate test. All p-values are corrected by Holm's method. Rows without a
        match are counted and not tested.

        Args:
            earlier: The report, or its folder.
            names: Names of the two reports, the earlier one first, as in ``("ours", "theirs")``.

        Returns:
            A :class:`Changes`, a report itself: ``findings``, ``worse``, ``better``, ``summary``, ``plot()`` ….

        Raises:
            InvalidRequestError: The reports have no scores, or were scored in different ways; only one has several
                systems; or ``names`` is not two names.
            StoreError: There is no report in that folder.
        """
        changes: Any = _kinds(Report)["Changes"]  # a report too, in a module above this one
        return changes.between(self, earlier, names)

    @briefly
    def to_html(self, *, max_bytes: int = PAGE_BYTES) -> str:
        """Return the report as one self-contained page with figures, sound and sortable rows; it needs no network.

        Args:
            max_bytes: Maximum size of the page in bytes. Sounds beyond it are left out, and the page gives their
                number.

        Raises:
            InvalidRequestError: ``max_bytes`` is not a whole number from 1.
        """
        return self._page(self._vectors(), max_bytes)

    def _page(self, figures: Mapping[str, tuple[bytes, bytes]], max_bytes: int) -> str:
        if not is_whole_number(max_bytes) or max_bytes < 1:
            raise refused("max_bytes", max_bytes, "a whole number of bytes from 1 on")
        return report_page(
            self.title,
            self.conclude(),
            self._parts(),
            [str(finding) for finding in self._behind()],
            figures,
            self._rows(),
            self.methods(),
            self.facts(),
            self.record,
            max_bytes,
        )

    def _vectors(self) -> dict[str, tuple[bytes, bytes]]:
        """The figures as SVG, by what they show, each also for a phone."""
        figures: Mapping[str, Any] = self.figures()
        return {name: (figure.to_svg(), figure.to_phone_svg()) for name, figure in figures.items()}

    def to_markdown(self) -> str:
        """Return the answer, the headline as a Markdown table, and the methods."""
        methods = self.methods()
        sources = [f"{number}. {markdown_text(source)}" for number, source in enumerate(methods.sources, 1)]
        table = markdown_table(self.headline()).rstrip()
        said = [f"**{markdown_text(self.title)}**", markdown_text(self.answer)]
        parts = [*said, table, markdown_text(methods.text), "\n".join(sources)]
        return "\n\n".join(part for part in parts if part) + "\n"

    @briefly
    def to_latex(self, *, label: str = "tab:speechlab") -> str:
        """Return the headline as a LaTeX table, with the methods and their sources below it.

        The table needs the package booktabs, and for Japanese or Chinese text an engine such as LuaLaTeX.

        Args:
            label: Label of the table.

        Raises:
            InvalidRequestError: The label has characters that LaTeX interprets.
        """
        if not _LABEL.fullmatch(str(label)):
            message = (
                f"label={label!r} is no label; use letters, digits, colons and hyphens, as in 'tab:voices'"
            )
            raise InvalidRequestError(message, parameter="label")
        methods = self.methods()
        items = [rf"\item {latex_text(source)}" for source in methods.sources]
        sources = [r"\begin{enumerate}", *items, r"\end{enumerate}"] if items else []
        table = latex_table(self.headline(), self.title, label)
        return "\n".join([table, latex_text(methods.text), *sources, ""])

    @briefly
    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write the table into one Parquet file, with the record in its metadata under ``speechlab_report``.

        Raises:
            StoreError: The file cannot be written, or the table has values that Parquet does not support.
        """
        file = user_path(path)
        kept = {"kind": type(self).__name__, "title": self.title, "record": dict(self.record)}
        try:
            write_parquet(self.table, file, kept)
        except OSError as error:
            raise unwritten(file, error) from error
        return file

    @briefly
    def save(self, path: str | os.PathLike[str], *, max_bytes: int = PAGE_BYTES) -> Path:
        """Write the report: one page if the name ends in ``.html``, else a folder.

        The folder has ``results.parquet`` and ``.csv``, ``summary.parquet`` and ``.csv``, other tables of the report
        as Parquet, ``figures``, ``audio``, ``report.html`` and ``record.json``; its tables name the recordings beside
        them, and :meth:`load` reads it back.

        Args:
            path: The page or the folder.
            max_bytes: Maximum size of the page in bytes. Sounds beyond it are left out, and the page gives their
                number.

        Raises:
            InvalidRequestError: ``max_bytes`` is not a whole number from 1, the name has the ending of another kind
                of file, or the folder is no report and has files that would be overwritten.
            StoreError: A file cannot be written, or a table has values that Parquet does not support.
        """
        where = self.check_path(path)
        figures = self._vectors()
        html = self._page(figures, max_bytes)
        if where.suffix.lower() in PAGES and not where.is_dir():
            try:
                with whole_file(where) as draft:
                    draft.write_text(html, encoding="utf-8")
            except OSError as error:
                raise unwritten(where, error) from error
            return where
        write_folder(where, self, html=html, figures=figures)
        return where

    @staticmethod
    @briefly
    def check_path(path: str | os.PathLike[str]) -> Path:
        """Return the page or folder that :meth:`save` would write; refuse it before the work, and write nothing.

        Raises:
            InvalidRequestError: As of :meth:`save`.
            StoreError: The place cannot be written.
        """
        return report_place(path)

    @staticmethod
    @briefly
    def load(folder: str | os.PathLike[str]) -> Any:
        """Read a report back that :meth:`save` wrote into a folder.

        Returns:
            A report of the class that was saved.

        Raises:
            StoreError: It is no such folder, or a file of it is missing or damaged.
        """
        return read_folder(folder, _kinds(Report))

    def _frames(self) -> list[pd.DataFrame]:
        """All tables of the report."""
        return [value for value in vars(self).values() if is_frame(value)]

    def _measured(self) -> list[pd.DataFrame]:
        """All tables of the report, without columns that the study did not make."""
        own = self._made
        return [
            table
            if own is None or table is not self.table
            else table[[name for name in table if name in own]]
            for table in self._frames()
        ]

    def __repr__(self) -> str:
        told = f"{type(self).__name__}({self.title!r}, {len(self.table)} rows)"
        return "\n".join(line for line in (told, self.answer, *self.notes) if line)

    def _repr_html_(self) -> str:
        return str(join("", self.sections(clips=3)))

    def _failures(self) -> list[Html]:
        """The number of failed rows with the reasons, if any failed."""
        if "error" not in self.table:
            return []
        words = failures(self.table["error"].dropna(), len(self.table))
        return [element("p", words, dir="auto")] if words else []


def drawn(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Draw figures by their functions; those that have nothing to draw are left out."""
    found = {}
    for name, draw in figures.items():
        try:
            found[name] = draw()
        except InvalidRequestError:  # no rows, or none with a rate
            continue
    return found


def verdicts_of(significant: pd.Series[bool], more_wrong: pd.Series[float]) -> Any:
    """Return what tests say of differences, as an array of words.

    Args:
        significant: Whether each is significant.
        more_wrong: The differences; above 0 is worse.
    """
    import numpy as np

    return np.select([significant & (more_wrong > 0), significant], [WORSE, BETTER], ALIKE)


def answer_html(answer: Conclusion) -> Html:
    """Return the answer as a paragraph: what to do large, how sure that is below."""
    lead = element("strong", answer.text, style="font-size:1.25em;line-height:1.3")
    sure = [element("br"), element("span", answer.certainty)] if answer.certainty else []
    return notebook_output(element("p", lead, *sure, dir="auto"))


def combined_page(title: str, reports: Sequence[Report]) -> str:
    """Return several reports as one self-contained page, without scripts."""
    parts: list[Html] = []
    facts: dict[str, str] = {}
    for report in reports:
        parts += [element("h2", report.title), *report.sections()]
        facts |= report.facts()
    footer = join(Html(" · "), [f"{name}: {value}" for name, value in facts.items()])
    return document(title, *parts, footer=footer)


def _kinds(kind: type) -> dict[str, type]:
    found = {kind.__name__: kind}
    below: type
    for below in kind.__subclasses__():
        found |= _kinds(below)
    return found
