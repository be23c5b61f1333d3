"""Predictions that others published, read as one table: a row for each system, set and utterance."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._proof.verify import open_report
from speechlab.tables import parse_json_lines, read_delimited, read_text

# The name of a file of the Open ASR leaderboard: its model, its data set.
_LEADERBOARD = re.compile(r"MODEL_(?P<system>.+?)_DATASET_(?P<set>.+)")
_ENDINGS = (".jsonl", ".json", ".csv", ".tsv")
# The names of columns in files of others, the first that a file has.
_NAMES = {
    "text": ("text", "reference", "ref"),
    "hypothesis": ("pred_text", "hypothesis", "prediction", "transcript"),
    "utterance": ("audio_filepath", "id", "utterance", "file", "audio"),
}


def read_predictions(paths: Iterable[Path]) -> pd.DataFrame:
    """Read files, folders of them by system and set, and our own reports of several systems."""
    tables = [table for path in paths for table in _read_path(path)]
    if not tables:
        message = f"there are no predictions; give files ({', '.join(_ENDINGS)}), folders of them, or reports"
        raise InvalidRequestError(message, parameter="source")
    return pd.concat(tables, ignore_index=True)


def _read_path(path: Path) -> list[pd.DataFrame]:
    if not path.exists():
        raise InvalidRequestError(f"{path} does not exist", parameter="source")
    if path.suffix == ".html" or (path / "record.json").is_file():
        return [_read_report(path)]
    if path.is_file():
        return [_read_file(path, path.parent.name)]
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in _ENDINGS and file.is_file())
    return [_read_file(file, path.name if file.parent == path else file.parent.name) for file in files]


def _read_file(path: Path, folder: str) -> pd.DataFrame:
    """Read a file, whose name has its system and set; else its folder is the system, and its name the set."""
    if path.suffix.lower() in {".jsonl", ".json"}:
        rows = pd.DataFrame(parse_json_lines(read_text(path)))
    else:
        rows = read_delimited(path)
    found = {
        role: next((name for name in names if name in rows.columns), None) for role, names in _NAMES.items()
    }
    for role in ("text", "hypothesis"):
        if found[role] is None:
            message = f"{path} has no column of the {role}; it takes one called {' or '.join(_NAMES[role])}"
            raise InvalidRequestError(message, parameter="source")
    known = _LEADERBOARD.fullmatch(path.stem)
    system, name = (known["system"], known["set"]) if known else (folder, path.stem)
    keys = rows[found["utterance"]] if found["utterance"] else pd.Series(range(len(rows)))
    keys = keys.astype(str)
    number = keys.groupby(keys).cumcount().astype(str)  # equal names stay as many
    cells = {role: rows[found[role]].map(_to_text) for role in ("text", "hypothesis")}
    cells["hypothesis"] = cells["hypothesis"].fillna("")  # an empty cell is an empty prediction
    return pd.DataFrame({"system": system, "set": name, "utterance": keys + "\n" + number, **cells})


def _to_text(cell: object) -> str | None:
    return None if is_missing(cell) else str(cell)


def _read_report(path: Path) -> pd.DataFrame:
    report = open_report(path)
    if not {"system", "recording", "hypothesis"} <= set(report.table.columns):
        message = f"{path} is no report of recognition with several systems"
        raise InvalidRequestError(message, parameter="source")
    table = report.table
    if "condition" in table.columns:
        table = table[table["condition"] == table["condition"].iloc[0]]
    facts = {"system": table["system"].astype(str), "set": report.title}
    texts = {"text": table[report.columns.get("text", "text")], "hypothesis": table["hypothesis"]}
    return pd.DataFrame({**facts, "utterance": table["recording"].astype(str), **texts})
