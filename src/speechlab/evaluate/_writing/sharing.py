"""Reports for others: for papers, in an experiment tracker, and as a data set with sound."""

from __future__ import annotations

import math
import os
import re
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import build_argument_error, is_missing, is_number, is_whole_number
from speechlab._brief import shorten_tracebacks
from speechlab._files import expand_user_path, write_atomically
from speechlab._traces import to_printable
from speechlab.audio import detect_format, to_clip
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.evaluate._writing.contents import Contents
from speechlab.evaluate._writing.folder import build_write_error, write_parquet
from speechlab.evaluate._writing.recordings import list_sound_columns
from speechlab.remote import find_file_name, locate_file

if TYPE_CHECKING:
    import pandas as pd

_TRACKERS = ("mlflow", "wandb", "trackio")
# Columns of summaries that name a row.
_LABELS = ("system", "condition", "voice_name", "language", "source_lang", "target_lang", "step")
_LABEL = re.compile(r"[A-Za-z0-9:.-]+")
# What MLflow allows in no name of a metric.
_INVALID_KEY_CHARACTERS = re.compile(r"[^\w ./-]+")
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "{}&%$#_"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        "\N{MINUS SIGN}": "$-$",
        "✓": "yes",
        "\N{REPLACEMENT CHARACTER}": "?",  # LuaTeX takes it for invalid UTF-8
    }
)
# Separator between characters that LaTeX would draw as one, such as dashes and quotation marks.
_LIGATURE = re.compile(r"(?<=([-',]))(?=\1)")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")
_SPACE = re.compile(r"\s+")


class ShareableContents(Contents):
    """The part of a report that gives it to others."""

    def to_markdown(self) -> str:
        """Return the answer, the headline as a Markdown table with its note, and the methods."""
        sources = [
            f"{number}. {_escape_markdown(source)}" for number, source in enumerate(self.said.sources, 1)
        ]
        headline = self.headline()
        table = _to_markdown_table(headline)
        note = _escape_markdown(headline.attrs["note"])
        lead = [f"**{_escape_markdown(self.title)}**", _escape_markdown(self.answer)]
        blocks = [*lead, table, note, _escape_markdown(self.said.text), "\n".join(sources)]
        return "\n\n".join(block for block in blocks if block) + "\n"

    @shorten_tracebacks
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
        methods = self.said
        items = [rf"\item {_escape_latex(source)}" for source in methods.sources]
        sources = [r"\begin{enumerate}", *items, r"\end{enumerate}"] if items else []
        table = _to_latex_table(self.headline(), self.title, label)
        return "\n".join([table, _escape_latex(methods.text), *sources, ""])

    @shorten_tracebacks
    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write the table into one Parquet file, with the record in its metadata under ``speechlab_report``.

        Raises:
            StoreError: The file cannot be written, or the table has values that Parquet does not support.
        """
        file = expand_user_path(path)
        metadata = {"study": self.study, "title": self.title, "record": dict(self.record)}
        try:
            write_parquet(self.table, file, metadata)
        except OSError as error:
            raise build_write_error(file, error) from error
        return file

    @shorten_tracebacks
    def log_to(self, run: Any, *, clips: int = 5) -> None:
        """Log the report to an experiment tracker: the summary as metrics, and the folder of :meth:`save` as files.

        Args:
            run: A run of MLflow (``mlflow.start_run()``), W&B (``wandb.init()``) or Trackio (``trackio.init()``).
            clips: Maximum of rows, the worst first, whose sound W&B and Trackio play next to the metrics.

        Raises:
            InvalidRequestError: The value is no such run, or ``clips`` is not a whole number of 0 or more.
        """
        tracker = str(getattr(type(run), "__module__", "")).partition(".")[0]
        if tracker not in _TRACKERS:
            raise build_argument_error(
                "run", run, "a run of MLflow, W&B or Trackio, such as mlflow.start_run()"
            )
        if not is_whole_number(clips) or clips < 0:
            raise build_argument_error("clips", clips, "a whole number of rows, or 0 for none")
        report: Any = self
        module = import_module(tracker)
        metrics = collect_metrics(self.summary)
        with TemporaryDirectory() as place:
            folder = Path(place) / "report"
            report.save(folder)
            if tracker == "mlflow":
                client = module.MlflowClient()
                for name, value in metrics.items():
                    client.log_metric(run.info.run_id, name, value)
                client.set_tag(run.info.run_id, "speechlab.answer", self.answer)
                client.log_artifacts(run.info.run_id, str(folder), "report")
                return
            sounds = {
                name: module.Audio(str(path), caption=caption)
                for name, path, caption in _write_worst_clips(self.table, Path(place), clips)
            }
            run.log({**metrics, **sounds})
            artifact = module.Artifact(
                _INVALID_KEY_CHARACTERS.sub("", self.title).strip().replace(" ", "-"), type="report"
            )
            artifact.add_dir(str(folder))
            run.log_artifact(artifact)

    @shorten_tracebacks
    def to_dataset(self, path: str | os.PathLike[str]) -> Path:
        """Write the rows as a data set of Hugging Face: Parquet with the sound in it, and a card with the methods.

        ``datasets.load_dataset("FOLDER")`` reads the folder, and the hub shows it.

        Args:
            path: The folder; its data set is replaced.

        Returns:
            The folder.

        Raises:
            InvalidRequestError: The folder has other files.
            StoreError: A file cannot be written.
        """
        folder = expand_user_path(path)
        data, card = folder / "data" / "rows.parquet", folder / "README.md"
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not data.is_file())):
            raise InvalidRequestError(f"{folder} has other files; name a new folder", parameter="path")
        language = next(
            (self.table[name] for name in ("language", "source_lang") if name in self.table), None
        )
        codes = sorted({str(code) for code in ([] if language is None else language.dropna())})
        language_lines = [f"  - {orjson.dumps(code).decode()}" for code in codes]
        head = ["---", f"pretty_name: {orjson.dumps(self.title).decode()}", "tags:", "  - speechlab"]
        head += ["language:", *language_lines] if language_lines else []
        head += ["configs:", "  - config_name: default", "    data_files: data/rows.parquet", "---", ""]
        try:
            data.parent.mkdir(parents=True, exist_ok=True)
            with write_atomically(data) as draft:
                _write_rows_as_parquet(self.table, draft)
            card.write_text("\n".join(head) + self.to_markdown(), encoding="utf-8")
        except OSError as error:
            raise build_write_error(folder, error) from error
        return folder


def collect_metrics(summary: pd.DataFrame) -> dict[str, float]:
    """Return the numbers of a summary by name: the column, and what names the row."""
    metrics = {}
    names = [name for name in _LABELS if name in summary.columns]
    names = [name for name in names if name != "voice_name" or summary[name].nunique() > 1]
    for row in summary.to_dict("records"):
        labels = [str(row[name]) for name in names if not is_missing(row[name])]
        for name, value in row.items():
            if is_number(value) and not is_missing(value) and math.isfinite(value):
                metrics[_INVALID_KEY_CHARACTERS.sub("", "/".join([str(name), *labels]))] = float(value)
    return metrics


def _write_worst_clips(table: pd.DataFrame, place: Path, count: int) -> list[tuple[str, Path, str]]:
    """Rows with their sound as WAV, the worst first: a name, the file, and its texts."""
    if not (columns := list_sound_columns(table)):
        return []
    worst = table.sort_values("error_rate", ascending=False) if "error_rate" in table.columns else table
    sounds: list[tuple[str, Path, str]] = []
    for row in worst.to_dict("records"):
        if len(sounds) >= count:
            break
        try:
            clip = to_clip(row[columns[0]])
        except (SpeechLabError, OSError, TypeError, ValueError):
            continue
        path = clip.save(place / f"row-{len(sounds) + 1}.wav")
        texts = [
            str(row[name]) for name in ("text", "hypothesis") if name in row and not is_missing(row[name])
        ]
        sounds.append((f"rows/{len(sounds) + 1}", path, " → ".join(texts)))
    return sounds


def _write_rows_as_parquet(table: pd.DataFrame, file: Path) -> None:
    """Write rows with their sound as Parquet, with the types that the package ``datasets`` reads."""
    import pyarrow as pa
    from pyarrow import parquet

    columns, features, sounds = {}, {}, list_sound_columns(table)
    for name in map(str, table.columns):
        cells = table[name]
        if name in sounds:
            kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            columns[name] = pa.array([_to_audio_cell(cell) for cell in cells], kind)
            features[name] = {"_type": "Audio"}
            continue
        plain_cells = cells.astype("object").where(cells.notna(), None)
        try:
            column = pa.array(plain_cells.tolist())
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            column = None
        if column is None or pa.types.is_nested(column.type):  # alignments and the like, as text
            column = pa.array([None if cell is None else str(cell) for cell in plain_cells], pa.string())
        columns[name] = column
    rows = pa.table({name: column for name, column in columns.items() if column.type != pa.null()})
    if features:
        values = {name: {"dtype": str(rows[name].type), "_type": "Value"} for name in rows.column_names}
        schema = {"info": {"features": {**values, **features}}}
        rows = rows.replace_schema_metadata({"huggingface": orjson.dumps(schema).decode()})
    parquet.write_table(rows, file)


def _to_audio_cell(cell: Any) -> dict[str, Any] | None:
    """Return the bytes of a recording as its file has them, or None if it cannot be read."""
    try:
        if isinstance(cell, str | Path):
            file = locate_file(cell)
            data = file.read_bytes() if file.is_file() else b""
            return {"bytes": data, "path": f"{Path(find_file_name(cell)).stem}.{detect_format(data)}"}
        return None if is_missing(cell) else {"bytes": to_clip(cell).encode("flac"), "path": None}
    except (SpeechLabError, OSError, TypeError, ValueError):
        return None


def _to_markdown_table(table: pd.DataFrame) -> str:
    """Write what :meth:`View.frame` returned as Markdown, its characters that Markdown or HTML interpret escaped."""
    lines = [
        list(map(_escape_markdown, table.columns)),
        ["---:" if name in table.attrs["figures"] else "---" for name in table.columns],
    ]
    lines += [[_escape_markdown(value) for value in row] for row in table.itertuples(index=False, name=None)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _to_latex_table(table: pd.DataFrame, caption: str, label: str) -> str:
    """Write what :meth:`View.frame` returned as LaTeX, with the rules of the package booktabs."""
    sides = "".join("r" if name in table.attrs["figures"] else "l" for name in table.columns)
    rows = [" & ".join(map(_escape_latex, row)) + r" \\" for row in table.itertuples(index=False, name=None)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escape_latex(caption)}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            " & ".join(map(_escape_latex, table.columns)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _escape_latex(value: object) -> str:
    """Escape a text or a cell for LaTeX, on one line."""
    text = _LIGATURE.sub(r"\\hbox{}", _to_one_line(value).translate(_LATEX))
    # After the end of a row, or after \item, these characters begin an argument.
    return f"{{}}{text}" if text.startswith(("[", "*")) else text


def _escape_markdown(value: object) -> str:
    """Escape a text or a cell for Markdown, on one line."""
    return _MARKDOWN.sub(r"\\\1", _to_one_line(value))


def _to_one_line(value: object) -> str:
    words = "–" if is_missing(value) else _SPACE.sub(" ", str(value)).strip()
    return to_printable(words)
