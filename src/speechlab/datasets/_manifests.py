"""Manifests: files with a row for each recording or text, whatever their columns are called."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import is_missing
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

NAMES: dict[str, tuple[str, ...]] = {
    "audio": ("audio", "audio_filepath", "audio_path", "path", "file", "file_name", "filename", "wav"),
    "text": ("text", "sentence", "transcript", "transcription", "reference"),
    "speaker": ("speaker", "speaker_id", "spk_id", "spk", "client_id"),
    "language": ("language", "lang", "locale"),
    "split": ("split", "subset"),
    "duration_s": ("duration_s", "duration"),
}
"""Names of columns in tables of speechlab, and what other tools call them, the likeliest first."""
_ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


def manifest_rows(path: Path) -> pd.DataFrame:
    """Read a manifest with its own columns; cells of CSV and TSV are texts.

    Raises:
        InvalidRequestError: It is not there, has another format, or is damaged.
    """
    import pandas as pd

    ending = _ending(path)
    if ending not in _ENDINGS:
        allowed = f"{', '.join(_ENDINGS[:-1])} (also with .gz), {_ENDINGS[-1]} or a folder"
        raise InvalidRequestError(f"{path} is no manifest; give {allowed}", parameter="path")
    try:
        if ending == ".parquet":
            return pd.read_parquet(path)
        if ending in {".csv", ".tsv"}:
            separator = "\t" if ending == ".tsv" else ","
            return pd.read_csv(
                path,
                sep=separator,
                dtype="string",
                keep_default_na=False,
                na_values=[""],
                encoding="utf-8-sig",
            )
        return _json_lines(path)
    except FileNotFoundError:
        raise InvalidRequestError(f"there is no file {path}; check the path", parameter="path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).strip().splitlines()[0]
        message = f"{path} cannot be read as {ending[1:]}: {reason}; mend the file"
        raise InvalidRequestError(message, parameter="path") from error


def named(rows: pd.DataFrame, columns: Mapping[str, str], path: object) -> pd.DataFrame:
    """Give columns the names that studies know.

    Args:
        rows: The table.
        columns: What its columns are called, by the names of studies.
        path: What errors call the table.

    Raises:
        InvalidRequestError: There is no such column, or neither recordings nor texts.
    """
    if unknown := sorted(set(columns) - set(NAMES)):
        message = f"columns names {unknown[0]!r}, which no study knows; give {', '.join(NAMES)}"
        raise InvalidRequestError(message, parameter="columns")
    for name, own in columns.items():
        if own not in rows.columns:
            have = ", ".join(map(str, rows.columns))
            message = f"{path} has no column {own!r} for {name!r}; its columns are: {have}"
            raise InvalidRequestError(message, parameter="columns")
    new = {own: name for name, own in columns.items()}
    for name, others in NAMES.items():
        known = next((one for one in others if one in rows.columns and one not in new), None)
        if name not in columns and known is not None:
            new[known] = name
    # a column that another one replaces keeps its content under its own name with an underscore
    for name in set(new.values()) - set(new):
        if name in rows.columns:
            new[name] = f"{name}_"
            while new[name] in rows.columns:
                new[name] += "_"
    found = rows.rename(columns=new)
    if not {"audio", "text"} & set(found.columns):
        have = ", ".join(map(str, rows.columns)) or "none"
        message = f"{path} has neither recordings nor texts, only {have}; say which they are: columns={{'audio': …}}"
        raise InvalidRequestError(message, parameter="columns")
    return found


def whole_paths(cells: list[Any], folder: Path) -> list[Any]:
    """Paths of recordings as whole paths; those in a manifest are seen from its folder."""
    return [None if is_missing(one) else str(folder / one) if isinstance(one, str) else one for one in cells]


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def _json_lines(path: Path) -> pd.DataFrame:
    import pandas as pd

    rows = []
    with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                row = orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
            except orjson.JSONDecodeError as error:
                raise ValueError(f"line {number:,}: {error}") from None
            if not isinstance(row, dict):
                raise ValueError(f"line {number:,} is no object")  # noqa: TRY004 - what the file holds
            rows.append(row)
    return pd.DataFrame(rows)
