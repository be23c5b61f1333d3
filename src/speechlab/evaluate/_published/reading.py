"""Predictions that others published, read as one table: a row for each system, set and utterance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._proof.verify import open_report
from speechlab.tables import parse_delimited, parse_json_lines, read_text

# The name of a file of the Open ASR leaderboard: its model, its data set.
_LEADERBOARD = re.compile(r"MODEL_(?P<system>.+?)_DATASET_(?P<set>.+)")
_ENDINGS = (".jsonl", ".json", ".csv", ".tsv")
# The names of columns in files of others, the first that a file has.
_NAMES = {
    "text": ("text", "reference", "ref"),
    "hypothesis": ("pred_text", "hypothesis", "prediction", "transcript"),
    "recording": ("audio_filepath", "id", "utterance", "file", "audio"),
    "speaker": ("speaker", "speaker_id", "client_id"),
    "system": ("system", "model"),
    "set": ("set", "dataset"),
}


def read_predictions(paths: Sequence[Path]) -> tuple[pd.DataFrame, list[str]]:
    """Read files, folders of them by system and set, and reports of several systems; and say what was left out."""
    notes: list[str] = []
    origins: dict[tuple[str, str], Path] = {}
    tables = []
    for path, folder in chain.from_iterable(map(_list_files, paths)):
        table = _read_report(path) if folder is None else _read_file(path, folder, notes)
        if not len(table):
            raise InvalidRequestError(
                f"{path} has no rows; give predictions, or leave it out", parameter="source"
            )
        for system, name in table[["system", "set"]].drop_duplicates().itertuples(index=False):
            if (other := origins.setdefault((system, name), path)) != path:
                message = f"{other} and {path} both have {system} on {name}; give one of them"
                raise InvalidRequestError(message, parameter="source")
        tables.append(table)
    if not tables:
        message = f"there are no predictions; give files ({', '.join(_ENDINGS)}), folders of them, or reports"
        raise InvalidRequestError(message, parameter="source")
    return pd.concat(tables, ignore_index=True), notes


def _list_files(path: Path) -> list[tuple[Path, str | None]]:
    """Return the files of a path, each with the name of its folder; a report has none."""
    if not path.exists():
        raise InvalidRequestError(f"{path} does not exist", parameter="source")
    if path.is_file():
        return [(path, None if path.suffix == ".html" else path.parent.name)]
    reports = sorted(record.parent for record in path.rglob("record.json"))
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in _ENDINGS and file.is_file())
    own = [file for file in files if not any(report in file.parents for report in reports)]
    return [*((report, None) for report in reports), *((file, file.parent.name) for file in own)]


def _read_file(path: Path, folder: str, notes: list[str]) -> pd.DataFrame:
    """Read a file. Columns or its name have its system and set; else its folder is the system, its name the set."""
    faults: list[str] = []
    try:
        text, ending = read_text(path), path.suffix.lower()
        if ending in {".jsonl", ".json"}:
            rows = pd.DataFrame(parse_json_lines(text, faults))
        else:
            rows = parse_delimited(text, "\t" if ending == ".tsv" else ",", faults)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidRequestError(f"{path} cannot be read: {reason}", parameter="source") from None
    notes += [f"{path.name}, {fault}: left out." for fault in faults]
    known = _LEADERBOARD.fullmatch(path.stem)
    cells: dict[str, Any] = {"system": folder, "set": path.stem, **(known.groupdict() if known else {})}
    for role, names in _NAMES.items():
        found = next((name for name in names if name in rows.columns), None)
        if found is not None:
            cells[role] = rows[found].map(_to_text)
        elif role in {"text", "hypothesis"}:
            message = f"{path} has no column of the {role}; it takes one called {' or '.join(names)}"
            raise InvalidRequestError(message, parameter="source")
    table = pd.DataFrame(cells, index=rows.index)
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
