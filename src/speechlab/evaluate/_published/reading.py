"""Predictions that others published, read as one table: a row for each system, set and utterance."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.datasets import MANIFEST_ENDINGS, find_usual_columns, read_manifest
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.evaluate._proof.verify import open_report
from speechlab.evaluate._writing.sentences import join_names

# The name of a file of the Open ASR leaderboard: its model, its data set.
_LEADERBOARD = re.compile(r"MODEL_(?P<system>.+?)_DATASET_(?P<set>.+)")
# The names of columns of predictions, the first that a file has; case and blanks around them do not count.
_NAMES = {
    "hypothesis": ("pred_text", "hypothesis", "prediction", "transcript"),
    "text": ("text", "reference", "ref"),
    "recording": ("audio_filepath", "id", "utterance", "file", "audio"),
    "system": ("system", "model"),
    "set": ("set", "dataset"),
}


def read_predictions(paths: Sequence[Path]) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Read files, folders of them by system and set, and reports; return their rows, faults by file, and notes.

    A file that cannot be read costs itself: it is a row of its system without texts. What is absent is None.
    """
    tables: dict[Path, pd.DataFrame] = {}
    faults: dict[str, str] = {}
    notes: list[str] = []
    for path, label in chain.from_iterable(_list_files(path, notes) for path in paths):
        try:
            is_report = path.is_dir() or path.suffix == ".html"
            tables[path] = _read_report(path, label) if is_report else _read_file(path, label, notes)
        except SpeechLabError as error:
            faults[label] = str(error)
            tables[path] = pd.DataFrame(_split_name(path)[1], index=[0])
    if len(tables) == len(faults):
        message = f"there are no predictions; give files ({', '.join(MANIFEST_ENDINGS)}), folders of them, or reports"
        raise InvalidRequestError("\n".join([message, *faults.values()]), parameter="source")
    unnamed = [path for path, table in tables.items() if "system" not in table.columns]
    folders = {path.absolute().parent.name for path in unnamed}
    is_one_set = len(unnamed) > 1 and len(folders) == 1
    notes += [f"Each file of {folder} is taken as a system." for folder in folders if is_one_set]
    for path, table in tables.items():
        cells = [path.absolute().parent.name, _split_name(path)[0]]
        system, name = reversed(cells) if is_one_set and path in unnamed else cells
        tables[path] = pd.DataFrame({"system": system, "set": name, "file": path.name, **table}, table.index)
    rows = pd.concat(tables.values(), ignore_index=True)
    for (owner, of_set), part in rows.groupby(["system", "set"], sort=False):
        files = part["file"].unique().tolist()
        notes += [f"{owner} on {of_set} is in {join_names(files)}."] if len(files) > 1 else []
    return rows, faults, notes


def _list_files(path: Path, notes: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the files and reports of a path, with their names in it; and note which others a folder has."""
    if not path.exists():
        raise InvalidRequestError(f"{path} does not exist", parameter="source")
    below, others = sorted(path.rglob("*")), []
    reports = {file.parent for file in below if file.name == "record.json"}
    for file in [path, *below]:
        label = path.name if file == path else file.relative_to(path).as_posix()
        if file in reports or path.is_file():
            yield file, label
        elif "/." in f"/{label}" or reports & {*file.parents} or (file.exists() and not file.is_file()):
            continue
        elif file.name.lower().removesuffix(".gz").endswith(MANIFEST_ENDINGS):
            yield file, label
        else:
            others.append(file.name)
    if others:
        notes.append(f"{format_count(len(others), 'file')} of other kinds not read: {join_names(others)}.")


def _split_name(path: Path) -> tuple[str, dict[str, str]]:
    """Return the name of a file without its ending, and the system and the set that one of the leaderboard has."""
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    known = _LEADERBOARD.fullmatch(stem)
    return stem, known.groupdict() if known else {}


def _read_file(path: Path, label: str, notes: list[str]) -> pd.DataFrame:
    """Read a file: its texts, and what else of predictions it has."""
    lines: list[str] = []
    rows = read_manifest(path, label, lines)
    notes += [f"{label}, {line}: left out." for line in lines]
    by_name = {str(column).strip().casefold(): column for column in reversed(rows.columns)}
    columns = {
        role: next((by_name[name] for name in names if name in by_name), None)
        for role, names in _NAMES.items()
    }
    columns["speaker"] = find_usual_columns(rows).get("speaker")
    for role in ("text", "hypothesis"):
        if columns[role] is None:
            message = f"{label} has no column of the {role}; it takes one called {' or '.join(_NAMES[role])}"
            raise InvalidRequestError(message, parameter="source")
    cells = {role: rows[name].map(_to_text) for role, name in columns.items() if name is not None}
    table = pd.DataFrame({**_split_name(path)[1], **cells}, index=rows.index)
    named = table.dropna(subset=table.columns.intersection(["system", "set"]))
    if count := len(table) - len(named):
        notes.append(f"{label}, {format_count(count, 'row')} without a system or a set: left out.")
    if not len(named):
        raise InvalidRequestError(f"{label} has no rows", parameter="source")
    if path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv")):
        # such a file cannot say whether a system came back empty or has no prediction
        texts = named["hypothesis"].astype("string")
        is_blank = texts.fillna("").str.strip() == ""
        named = named.assign(hypothesis=texts.mask(is_blank))
        if count := int(is_blank.sum()):
            notes.append(f"{label}: {format_count(count, 'empty cell')} taken as no prediction.")
    return named


def _to_text(cell: object) -> str | None:
    return None if is_missing(cell) else str(cell)


def _read_report(path: Path, label: str) -> pd.DataFrame:
    """Read a report of recognition; what failed there has no prediction."""
    report = open_report(path)
    rows = report.table
    if not {"system", "recording", "hypothesis"} <= set(rows.columns):
        message = f"{label} is no report of recognition with several systems"
        raise InvalidRequestError(message, parameter="source")
    if "condition" in rows.columns:
        rows = rows[rows["condition"] == rows["condition"].iloc[0]]
    roles = {role: report.columns.get(role, role) for role in ("text", "language")}
    names = {role: role for role in ("system", "recording", "hypothesis", "speaker")} | roles
    cells = {role: rows[name].map(_to_text) for role, name in names.items() if name in rows.columns}
    return pd.DataFrame({"set": report.title, **cells})
