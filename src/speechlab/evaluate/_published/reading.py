"""Predictions that others published, read as one table: a row for each system, set and utterance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.datasets import MANIFEST_ENDINGS, find_usual_columns, read_manifest
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError
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


def read_predictions(paths: Sequence[Path]) -> tuple[pd.DataFrame, list[str]]:
    """Read files, folders of them by system and set, and reports of several systems; and say what was left out."""
    notes: list[str] = []
    origins: dict[tuple[str, str], Path] = {}
    files = list(chain.from_iterable(_list_files(path, notes) for path in paths))
    tables = [_read_report(path) if is_report else _read_file(path, notes) for path, is_report in files]
    if _is_folder_of_one_set(tables):
        notes.append(f"Each file of {tables[0]['system'].iloc[0]} is taken as a system.")
        tables = [table.rename(columns={"system": "set", "set": "system"}) for table in tables]
    for (path, _), table in zip(files, tables, strict=True):
        if not len(table):
            raise InvalidRequestError(
                f"{path} has no rows; give predictions, or leave it out", parameter="source"
            )
        for system, name in table[["system", "set"]].drop_duplicates().itertuples(index=False):
            if (other := origins.setdefault((system, name), path)) != path:
                message = f"{other} and {path} both have {system} on {name}; give one of them"
                raise InvalidRequestError(message, parameter="source")
    if not tables:
        message = f"there are no predictions; give files ({', '.join(MANIFEST_ENDINGS)}), folders of them, or reports"
        raise InvalidRequestError(message, parameter="source")
    return pd.concat(tables, ignore_index=True), notes


def _is_folder_of_one_set(tables: Sequence[pd.DataFrame]) -> bool:
    """Return whether files of one folder, of which none names its system, have names of their own."""
    names = [table[["system", "set"]].drop_duplicates() for table in tables if table.attrs.get("is_unnamed")]
    pairs = pd.concat(names).drop_duplicates() if names else pd.DataFrame(columns=["system", "set"])
    return 1 < len(tables) == len(pairs) and pairs["system"].nunique() == 1


def _list_files(path: Path, notes: list[str]) -> list[tuple[Path, bool]]:
    """Return the files of a path, each with whether it is a report; and say which others a folder has."""
    if not path.exists():
        raise InvalidRequestError(f"{path} does not exist", parameter="source")
    if path.is_file():
        return [(path, path.suffix == ".html")]
    shown = [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
    ]
    reports = [file.parent for file in shown if file.name == "record.json"]
    own = [file for file in shown if not any(report in file.parents for report in reports)]
    files = [file for file in own if file.name.lower().removesuffix(".gz").endswith(MANIFEST_ENDINGS)]
    if others := [file.name for file in own if file not in files]:
        notes.append(f"{format_count(len(others), 'file')} of other kinds not read: {join_names(others)}.")
    return [*((report, True) for report in reports), *((file, False) for file in files)]


def _read_file(path: Path, notes: list[str]) -> pd.DataFrame:
    """Read a file. Columns or its name have its system and set; else its folder is the system, its name the set."""
    faults: list[str] = []
    rows = read_manifest(path, path, faults)
    notes += [f"{path.name}, {fault}: left out." for fault in faults]
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    known = _LEADERBOARD.fullmatch(stem)
    cells: dict[str, Any] = {"system": path.absolute().parent.name, "set": stem}
    cells |= known.groupdict() if known else {}
    by_name = {str(column).strip().casefold(): column for column in reversed(rows.columns)}
    columns = {
        role: next((by_name[name] for name in names if name in by_name), None)
        for role, names in _NAMES.items()
    }
    columns["speaker"] = find_usual_columns(rows).get("speaker")
    for role in ("text", "hypothesis"):
        if columns[role] is None:
            message = f"{path} has no column of the {role}; it takes one called {' or '.join(_NAMES[role])}"
            raise InvalidRequestError(message, parameter="source")
    cells |= {role: rows[name].map(_to_text) for role, name in columns.items() if name is not None}
    table = pd.DataFrame(cells, index=rows.index)
    if count := int(table[["system", "set"]].isna().any(axis=1).sum()):
        notes.append(f"{path.name}, {format_count(count, 'row')} without a system or a set: left out.")
        table = table.dropna(subset=["system", "set"])
    table.attrs["is_unnamed"] = known is None and columns["system"] is None
    return table.assign(hypothesis=table["hypothesis"].fillna(""))  # an empty cell is an empty prediction


def _to_text(cell: object) -> str | None:
    return None if is_missing(cell) else str(cell)


def _read_report(path: Path) -> pd.DataFrame:
    """Read a report of recognition; what failed there has no prediction."""
    report = open_report(path)
    rows = report.table
    if not {"system", "recording", "hypothesis"} <= set(rows.columns):
        message = f"{path} is no report of recognition with several systems"
        raise InvalidRequestError(message, parameter="source")
    if "condition" in rows.columns:
        rows = rows[rows["condition"] == rows["condition"].iloc[0]]
    roles = {role: report.columns.get(role, role) for role in ("text", "language")}
    names = {role: role for role in ("system", "recording", "hypothesis", "speaker")} | roles
    cells = {role: rows[name].map(_to_text) for role, name in names.items() if name in rows.columns}
    return pd.DataFrame({"set": report.title, **cells})
