"""Reports, which studies return: tables, a page, files to keep, and tables for papers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._arguments import build_argument_error, is_whole_number
from speechlab._brief import shorten_tracebacks
from speechlab._files import write_atomically
from speechlab._pandas import pd
from speechlab.display import Html, element, join, notebook_output
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.evaluate._acceptance.acceptance_report import SAMPLE_SIZE, select_lines_to_hear
from speechlab.evaluate._advice.speech_report import (
    build_speech_report,
    build_wide_table,
    combine_reports,
    select_system_report,
    select_system_rows,
)
from speechlab.evaluate._changes.changes_report import compare_reports
from speechlab.evaluate._repeat import repeat_study
from speechlab.evaluate._study_arguments import check_count
from speechlab.evaluate._writing.contents import Contents, Drawing, select_shown_rows
from speechlab.evaluate._writing.folder import (
    PAGES,
    build_write_error,
    read_folder,
    resolve_report_path,
    write_folder,
)
from speechlab.evaluate._writing.page import build_row_finder, render_failures, render_page
from speechlab.evaluate._writing.recordings import list_sound_columns
from speechlab.evaluate._writing.sharing import ShareableContents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from speechlab.evaluate._writing.methods import Methods
    from speechlab.widgets import TableView

# Largest page that a report writes unless another size is given: mail and browsers take it at once.
PAGE_BYTES = 20_000_000
# Width of figures for pages, whose letters are then as large as those of the text.
PAGE_INCHES = 8.4


@dataclass(frozen=True, eq=False, repr=False)
class Report(ShareableContents):
    """The answer of a study, as values.

    Attributes:
        title: What was studied.
        table: One row for each item.
        summary: One row for each group.
        conclusion: The answer in two parts, which a page shows in two sizes.
        study: Name of the study.
        findings: The findings behind the answer; ``str()`` of each is its text.
        notes: What was left out or could not be done, and why.
        differences: What was compared, one row for each difference: the columns of :func:`speechlab.metrics.judge`,
            and for some studies others behind them.
        speed: One row for each timed call; without rows if speed was not measured.
        tables: Further tables by name; docs/evaluate.md has those of each study.
        columns: The columns of ``table`` by their role, such as ``{"text": "sentence"}``.
        views: Tables for people, the most important one first; without any, the summary is one.
        drawings: Figures, the most important one first.
        shown: How the rows are shown.
        said: The methods.
        facts: The facts behind the numbers: versions, signatures, counts.
        record: When, with which versions and settings, and what the batches say of themselves; empty if nobody knows.
    """

    @classmethod
    def of(cls, contents: Contents) -> Report:
        """Return a report with these contents."""
        return cls(**vars(contents))

    @classmethod
    @shorten_tracebacks
    def of_scores(cls, title: str, scored: pd.DataFrame, **facts: Any) -> Report:
        """Summarize rows of speech that were scored elsewhere, by voice and language.

        Args:
            title: Title of the report.
            scored: What :func:`speechlab.metrics.score` returned, with ``voice``, ``voice_name``, ``gender``,
                ``audio``, ``duration_s``, ``status`` and ``error``.
            **facts: ``text`` and ``language``, names of columns; ``speed``, ``record`` and ``notes`` of the report.
        """
        return cls.of(build_speech_report(title, scored, **facts))

    @classmethod
    def combine(cls, title: str, reports: Sequence[Report]) -> Report:
        """Put several reports of speech into one."""
        return cls.of(combine_reports(title, reports))

    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return the parts of the report as plain HTML: the answer, tables, findings, and rows.

        Args:
            clips: Maximum of rows with their recordings; None for all rows, 0 for none.
        """
        rows = [] if clips == 0 else [self.build_shown_table().render_static(clips)]
        lead = element("strong", self.conclusion.text, style="font-size:1.25em;line-height:1.3")
        certainty = (
            [element("br"), element("span", join(Html("<br>"), self.conclusion.certainty.split("\n")))]
            if self.conclusion.certainty
            else []
        )
        return [notebook_output(element("p", lead, *certainty, dir="auto")), *self.below(), *rows]

    def below(self, rows: TableView | None = None) -> list[Html]:
        """Return the part below the answer: what failed, tables, findings and notes.

        Args:
            rows: The rows of a page, to which the tables lead; None for tables without links.
        """
        find_rows = None if rows is None else build_row_finder(rows.rows.layout.by_title, self.columns)
        failed = render_failures(self, find_rows)
        blocks = [failed] if failed else []
        explained: set[str] = set()
        for view in self.build_views():
            blocks += [view.render_html(explained, find_rows)] if len(view) else []
            explained |= {*view.headings}
        findings = [str(finding) for finding in self.findings if finding.shown == "page"]
        if remarks := [*findings, *self.notes]:
            title = element("strong", "Notable findings" if findings else "Notes")
            items = element("ul", *(element("li", words, dir="auto") for words in remarks))
            highlights = notebook_output(element("p", title, class_="stands-out"), items)
            blocks.insert(min(len(blocks), 2 if failed else 1), highlights)
        return blocks

    def plot(self, title: str | None = None, **options: Any) -> Figure:
        """Draw a figure of the report as a matplotlib ``Figure``.

        Args:
            title: Its title, as in ``figures()``; None for the first.
            **options: As for the function of :mod:`speechlab.plots` that draws it.

        Raises:
            InvalidRequestError: The report has no such figure.
        """
        drawing = next((figure for figure in self.drawings if title in {None, figure.title}), None)
        if drawing is None:
            titles = (
                ", ".join(repr(figure.title) for figure in self.drawings) or "none, as nothing has a score"
            )
            raise build_argument_error("title", title, f"the title of a figure of this report: {titles}")
        return self._draw_figure(drawing, **options)

    def _draw_figure(self, drawing: Drawing, **options: Any) -> Figure:
        from speechlab import plots

        # The record of a saved report names the function; a recording to be drawn would be any file of its reader.
        function = getattr(plots, drawing.function) if drawing.function in plots.__all__ else None
        if function is None or not set(drawing.options) <= set(signature(function).parameters) - {
            "audio",
            "ax",
        }:
            message = f"the figure {drawing.title!r:.60} is none that speechlab draws; the report is damaged"
            raise StoreError(message)
        figure: Figure = function(*map(self.resolve_frame, drawing.frames), **{**drawing.options, **options})
        return figure

    def figures(self, **options: Any) -> dict[str, Figure]:
        """Return the figures of the page by their titles, without figures that would be empty.

        Args:
            **options: As for ``plot``, of all figures, such as their width.
        """
        figures = {}
        for drawing in self.drawings:
            with suppress(InvalidRequestError):  # no rows, or none with a rate
                figures[drawing.title] = self._draw_figure(drawing, **options)
        return figures

    def rows(self, **options: Any) -> Any:
        """Return a :class:`speechlab.widgets.AudioTable` of the rows, to hear, search and sort them.

        Args:
            **options: As for the widget, such as ``columns=["text", "hypothesis"]``.
        """
        from speechlab.widgets import AudioTable

        return AudioTable(self.build_shown_table(**options))

    def errors(self, other: Report | None = None, **options: Any) -> Any:
        """Hear the errors: a :class:`speechlab.widgets.ErrorBrowser` of the table.

        Args:
            other: Another system's report of the same rows, which are shown next to these.
            **options: As for the browser, such as ``names=("small", "large")``.
        """
        from speechlab.widgets import ErrorBrowser

        columns = {role: self.columns.get(role, role) for role in ("text", "language")}
        roles = {"reference": columns["text"], "language": columns["language"]}
        if other is not None:
            return ErrorBrowser(
                self.table, other.table, **{**roles, **_build_audio_option(self.table), **options}
            )
        row_options = self.shown.options if self.shown.scored and "names" not in self.shown.options else {}
        return ErrorBrowser(
            self.table, **{**roles, **_build_audio_option(self.table), **row_options, **options}
        )

    def build_shown_table(self, **options: Any) -> TableView:
        """Return the rows as the page and the widget show them, the worst first."""
        from speechlab.widgets import TableView, to_error_table

        frame = self.resolve_frame(self.shown.frame)
        arguments = {**_build_audio_option(frame), **self.shown.options, **options}
        if not self.shown.scored:
            by = self.shown.lowest
            return TableView(
                select_shown_rows(frame.sort_values(by, kind="stable") if by else frame), **arguments
            )
        sides = [select_system_rows(frame, name) for name in arguments.get("names", ())] or [
            select_shown_rows(frame)
        ]
        return to_error_table(*sides, **arguments)

    def part(self, system: str, condition: str | None = None) -> Report:
        """Return the report of one of several systems, such as for ``errors`` or ``compare``.

        Args:
            system: Its name.
            condition: One of the conditions; None for all of them.

        Raises:
            InvalidRequestError: There is no such system or condition.
        """
        return self.of(select_system_report(self, system, condition))

    def suspects(self) -> pd.DataFrame:
        """Return the rows whose reference is likely wrong, since all systems agree against it.

        Returns:
            As from :func:`speechlab.metrics.suspects`, of the wide table of :meth:`side_by_side`, with ``row``: the
            name of the row for a file of corrections (:func:`speechlab.datasets.row_keys`).

        Raises:
            InvalidRequestError: The report has fewer than two systems.
        """
        from speechlab.datasets import row_keys
        from speechlab.metrics import suspects

        if len(self.systems) < 2:
            message = (
                "one system has nobody to agree with; give recognition two or more, or a person's transcripts"
            )
            raise InvalidRequestError(message, parameter="report")
        first = self.part(self.systems[0]).table
        if "condition" in first.columns:
            first = first[first["condition"] == first["condition"].iloc[0]]
        keys = pd.Series(row_keys(first), index=first.index)
        wide = self.side_by_side()
        wide = wide[wide.index.isin(keys.index)]
        roles = {"reference": self.columns["text"], "language": self.columns["language"]}
        transcripts = [f"hypothesis_{name}" for name in self.systems]
        return suspects(wide.assign(row=keys.reindex(wide.index)), transcripts, **roles)

    def review(self, suspects: pd.DataFrame | None = None, **options: Any) -> Any:
        """Hear the suspected references, and decide: a :class:`speechlab.widgets.ReferenceBrowser` of them.

        Args:
            suspects: The rows; None for those of :meth:`suspects`.
            **options: As for the browser.

        Raises:
            InvalidRequestError: The report has fewer than two systems.
        """
        from speechlab.widgets import ReferenceBrowser

        rows = self.suspects() if suspects is None else suspects
        roles = {"reference": self.columns["text"], "language": self.columns["language"]}
        return ReferenceBrowser(rows, **{**roles, **options})

    def sample(self, count: int = SAMPLE_SIZE, **options: Any) -> Any:
        """Hear the exceptions and a sample of the ready lines, and decide: a :class:`speechlab.widgets.AudioTable`.

        The key y says that a line is right, x that it is wrong. ``sl.evaluate.acceptance(made, heard=table)`` then
        has a bound. A longer sample keeps the lines of a shorter one.

        Args:
            count: Number of ready lines.
            **options: As for the table, such as ``columns=["text"]``.

        Raises:
            InvalidRequestError: The report is not of :func:`speechlab.evaluate.acceptance`.
        """
        from speechlab.widgets import AudioTable, TableView

        if self.study != "acceptance":
            message = f"a report of {self.study!r} has no lines to accept; give one of sl.evaluate.acceptance"
            raise InvalidRequestError(message, parameter="report")
        marks = {name: options.pop(name) for name in ("marks",) if name in options}
        rows = select_lines_to_hear(self.table, check_count("count", count, "lines"))
        fixed = {"answers": ("right", "wrong"), "max_rating": 0, "title": "Lines to hear"}
        return AudioTable(TableView(rows, **{**self.shown.options, **fixed, **options}), **marks)

    def side_by_side(self) -> pd.DataFrame:
        """Return one row for each recording, with what each system made of it.

        Returns:
            ``file``, text, language, ``audio`` and, of each system, ``hypothesis_<name>``, ``error_rate_<name>`` and
            ``errors_<name>``; the rows first in which the systems differ most (``error_spread``, in errors).

        Raises:
            InvalidRequestError: The report has several systems that spoke, and not of recognition.
        """
        return build_wide_table(self.table, self.systems, self.columns["text"], self.columns["language"])

    def methods(self) -> Methods:
        """Return the methods for a paper: sentences, and the source of each measure in the report."""
        return self.said

    @shorten_tracebacks
    def compare(
        self, earlier: Report | str | os.PathLike[str], *, names: Sequence[str] = ("earlier", "now")
    ) -> Report:
        """Return the significant changes since an earlier report of the study, or the differences of two services.

        Rows match if they agree in voice, language and text, and in ``id`` and ``file`` if both reports have them.
        Matching rows are compared in pairs (:func:`speechlab.metrics.compare`), Japanese by readings, for each voice
        and language. Failed rows have a separate test. All p-values are corrected by Holm's method. Rows without a
        match are counted and not tested.

        Args:
            earlier: The report, or its folder.
            names: Names of the two reports, the earlier one first, as in ``("ours", "theirs")``.

        Returns:
            A report with the changes in ``summary`` and ``differences``: ``findings``, ``worse``, ``better``,
            ``slower`` ….

        Raises:
            InvalidRequestError: The reports have no scores, or were scored in different ways; only one has several
                systems; or ``names`` is not two names.
            StoreError: There is no report in that folder.
        """
        return self.of(
            compare_reports(self, earlier if isinstance(earlier, Report) else self.load(earlier), names)
        )

    @shorten_tracebacks
    def rerun(self, lab: Any, **options: Any) -> Report:
        """Ask the same again, and return the new report, to be compared with this one (:meth:`compare`).

        The rows, and the arguments of the study, are those of the record. Nothing is taken from the store of the
        first time, unless it is given as ``store``.

        Args:
            lab: The client, or several by the names of the first time; None for outputs that exist.
            **options: Arguments of the study that differ, such as ``store``, and functions, which no record holds.

        Raises:
            InvalidRequestError: The record does not say what was asked, for example of joined reports;
                or the report lacks what was asked.
        """
        report: Report = repeat_study(self, lab, options)
        return report

    @shorten_tracebacks
    def to_html(self, *, max_bytes: int = PAGE_BYTES) -> str:
        """Return the report as one self-contained page with figures, sound and sortable rows; it needs no network.

        Args:
            max_bytes: Maximum size of the page in bytes. Sounds beyond it are left out, and the page gives their
                number.

        Raises:
            InvalidRequestError: ``max_bytes`` is not a whole number from 1.
        """
        return self._render_page(max_bytes)[0]

    def _render_page(self, max_bytes: int) -> tuple[str, dict[str, tuple[bytes, bytes]]]:
        """Return the page, and the figures that it shows."""
        if not is_whole_number(max_bytes) or max_bytes < 1:
            raise build_argument_error("max_bytes", max_bytes, "a whole number of bytes from 1 on")
        figures, rows = draw_page_figures(self), self.build_shown_table()
        return render_page(self, self.below(rows), figures, rows, max_bytes), figures

    @shorten_tracebacks
    def save(self, path: str | os.PathLike[str], *, max_bytes: int = PAGE_BYTES) -> Path:
        """Write the report: one page if the name ends in ``.html``, else a folder.

        The folder has ``results.parquet`` and ``.csv``, ``summary.parquet`` and ``.csv``, other tables of the report
        as Parquet, ``figures``, ``audio``, ``report.html`` and ``record.json``; its tables name the recordings in
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
        html, figures = self._render_page(max_bytes)
        if where.suffix.lower() in PAGES and not where.is_dir():
            try:
                with write_atomically(where) as draft:
                    draft.write_text(html, encoding="utf-8")
            except OSError as error:
                raise build_write_error(where, error) from error
            return where
        vectors = {name: wide for name, (wide, _) in figures.items()}
        for name, figure in _draw_figures(self, charted=True).items():
            vectors[name] = figure.to_svg()
        write_folder(where, self, html=html, figures=vectors)
        return where

    @staticmethod
    @shorten_tracebacks
    def check_path(path: str | os.PathLike[str]) -> Path:
        """Return the page or folder that :meth:`save` would write; refuse it before the work, and write nothing.

        Raises:
            InvalidRequestError: As in :meth:`save`.
            StoreError: The place cannot be written.
        """
        return resolve_report_path(path)

    @staticmethod
    @shorten_tracebacks
    def load(folder: str | os.PathLike[str]) -> Report:
        """Read a report back that :meth:`save` wrote into a folder.

        Raises:
            StoreError: It is no such folder, another version of speechlab saved it, or a file is missing or damaged.
        """
        return Report.of(read_folder(folder))

    def __repr__(self) -> str:
        size = f"Report({self.title!r}, {len(self.table)} rows)"
        return "\n".join(line for line in (size, self.answer, *self.notes) if line)

    def _repr_html_(self) -> str:
        return str(notebook_output(*self.sections(clips=3)))


def draw_page_figures(report: Report) -> dict[str, tuple[bytes, bytes]]:
    """Return the figures that a page shows as SVG, each also for a phone."""
    figures = _draw_figures(report, charted=False)
    return {name: (figure.to_svg(), figure.to_phone_svg()) for name, figure in figures.items()}


def _draw_figures(report: Report, *, charted: bool) -> dict[str, Any]:
    """Return the figures that a table of the page has as bars, or the others."""
    titles = report.charted
    drawings = [drawing for drawing in report.drawings if (drawing.title in titles) is charted]
    return {**replace(report, drawings=drawings).figures(width=PAGE_INCHES)}


def _build_audio_option(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the column of recordings, so that none is searched: paths in another one are of no report."""
    return {"audio": next(iter(list_sound_columns(frame)), False)}
