"""Manifests: files with a row for each recording or text, with columns of any names."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path, PurePath
from typing import Any

import orjson

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.audio import FileSegment, measure_length_s
from speechlab.datasets._corpora import SOUND_ENDINGS
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.tables import check_parquet_unpacked_size, parse_delimited, parse_json_lines, read_text

# Columns of starts and ends in seconds, which stand for segments if all their cells are numbers.
_TIME_COLUMNS = (("start", "end"), ("start_s", "end_s"), ("start_time", "end_time"))
_TIME_FRAGMENT = re.compile(r"(.+)#t=(\d+(?:\.\d+)?)(?:,(\d+(?:\.\d+)?))?$")
# Seconds by which a duration may differ from that of its recording, since tools round and estimate it.
_SLACK_S = 0.1


def parse_sound(cell: str) -> str | FileSegment:
    """Return the segment that a path names with its seconds, as in ``talk.wav#t=1.5,4``; otherwise the path."""
    fragment = _TIME_FRAGMENT.fullmatch(cell)
    if fragment is None:
        return cell
    path, start, end = fragment.groups()
    try:
        return FileSegment(path, float(start), None if end is None else float(end))
    except AudioError:
        return cell


def add_offsets(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with ``offset_s`` and ``duration_s`` where they have starts and ends instead."""
    lower = {str(name).lower(): name for name in rows.columns}
    for first, last in _TIME_COLUMNS:
        if "offset_s" in rows.columns or first not in lower or last not in lower:
            continue
        start, end = (pd.to_numeric(rows[lower[name]], errors="coerce") for name in (first, last))
        if bool(((start >= 0) & (end > start)).fillna(value=False).all()):
            rows = rows.drop(columns=[lower[first], lower[last]])
            return rows.assign(offset_s=start.astype("float64"), duration_s=(end - start).round(9))
    return rows


def replace_paths_by_segments(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a clip of its segment for each row that has an offset; whole recordings stay paths."""
    durations = rows["duration_s"] if "duration_s" in rows.columns else [float("nan")] * len(rows)
    lengths: dict[str, float] = {}
    cells: list[Any] = []
    late: list[str] = []
    for number, (cell, offset, duration) in enumerate(
        zip(rows["audio"], rows["offset_s"], durations, strict=True), start=1
    ):
        if not isinstance(cell, str) or offset != offset:
            cells.append(cell)
            continue
        if duration == 0:
            message = (
                f"row {number}: the segment has no length; give its duration in seconds, or drop the row"
            )
            raise InvalidRequestError(message, parameter="duration_s")
        end = None if duration != duration else round(offset + duration, 9)
        if cell not in lengths:
            try:
                lengths[cell] = measure_length_s(cell)
            except (AudioError, OSError, ValueError):
                lengths[cell] = float("inf")  # its row will say that it cannot be read
        length = lengths[cell]
        if (offset if end is None else end) > length + _SLACK_S:
            late.append(
                f"row {number} goes from {offset:.10g} s to {end or length:.10g} s of {length:.10g} s"
            )
        is_whole = offset == 0 and (end is None or abs(end - length) <= _SLACK_S)
        cells.append(cell if is_whole else FileSegment(cell, offset, end))
    if late:
        message = f"{len(late):,} of {len(rows):,} segments end after their recordings, and are cut there: {late[0]}"
        message += "; are the times in seconds?" if 2 * len(late) > len(rows) else ""
        warnings.warn(message, stacklevel=3)
    return rows.assign(audio=pd.Series(cells, rows.index, dtype="object"))


# Names of columns in speechlab, with the names in other tools, the most frequent first.
COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "audio": (
        "audio", "audio_filepath", "audio_path", "audio_file", "wav_filename", "path", "file", "file_name",
        "filename", "wav",
    ),
    "text": (
        "text", "sentence", "transcript", "transcription", "wrd", "words", "txt", "src_text", "tgt_text", "reference",
        "normalized_text",
    ),
    "speaker": ("speaker", "speaker_id", "speaker_name", "spk_id", "spk", "client_id"),
    "language": ("language", "lang", "locale"),
    "split": ("split", "subset"),
    "duration_s": ("duration_s", "duration"),
    "offset_s": ("offset_s", "offset"),
    "source_lang": ("source_lang", "src_lang"),
    "target_lang": ("target_lang", "tgt_lang"),
    "reference": ("reference", "tgt_text"),
}  # fmt: skip
# The folder of a corpus in manifests of SpeechBrain, such as ``{data_root}/`` or ``$data_root/``.
_PLACEHOLDER = re.compile(r"(?:(?<!\{)\{+\w+\}+|\$\{?\w+\}?)/")
_JSON_ENDINGS = (".jsonl", ".ndjson", ".json", ".list")
_ENDINGS = (".csv", ".tsv", *_JSON_ENDINGS, ".parquet")


def read_manifest(path: Path) -> pd.DataFrame:
    """Read a manifest with its own columns; cells of CSV and TSV are texts."""
    ending = _get_inner_suffix(path)
    if ending not in _ENDINGS:
        allowed = f"{', '.join(_ENDINGS[:-1])} (also with .gz), {_ENDINGS[-1]}, or a folder"
        raise InvalidRequestError(f"{path} is not a manifest; give {allowed}", parameter="path")
    try:
        if ending == ".parquet":
            check_parquet_unpacked_size(path)
            return pd.read_parquet(path)
        text = read_text(path)
        if ending == ".tsv" and (rows := _parse_fairseq(text, path)) is not None:
            return rows
        return (
            _parse_json_rows(text, ending)
            if ending in _JSON_ENDINGS
            else parse_delimited(text, "\t" if ending == ".tsv" else ",")
        )
    except FileNotFoundError:
        raise InvalidRequestError(f"there is no file {path}; check the path", parameter="path") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).strip().splitlines()[0]
        message = f"{path} cannot be read as {ending[1:]}: {reason}; correct the file"
        raise InvalidRequestError(message, parameter="path") from error


def rename_to_study_columns(rows: pd.DataFrame, columns: Mapping[str, str], path: object) -> pd.DataFrame:
    """Rename columns to the names of studies."""
    if unknown := sorted(set(columns) - set(COLUMN_NAMES)):
        message = f"columns has the name {unknown[0]!r}, which no study uses; give {', '.join(COLUMN_NAMES)}"
        raise InvalidRequestError(message, parameter="columns")
    new: dict[Any, str] = {}
    for name, column in columns.items():
        if column not in rows.columns:
            have = ", ".join(repr(str(name)) for name in rows.columns)
            message = f"{path} has no column {column!r} for {name!r}; its columns are: {have}"
            raise InvalidRequestError(message, parameter="columns")
        if column in new:
            names = f"{new[column]!r} and for {name!r}"
            message = f"the column {column!r} is given for {names}; name another column for one of them"
            raise InvalidRequestError(message, parameter="columns")
        new[column] = name
    new |= {column: name for name, column in find_usual_columns(rows, met=columns, taken=new).items()}
    # a column that another one replaces keeps its content under its own name with an underscore
    for name in set(new.values()) - set(new):
        if name in rows.columns:
            new[name] = f"{name}_"
            while new[name] in rows.columns:
                new[name] += "_"
    renamed = rows.rename(columns=new)
    if not {"audio", "text"} & set(renamed.columns):
        have = ", ".join(repr(str(name)) for name in rows.columns) or "none"
        message = f"{path} has neither recordings nor texts, only {have}; say which they are"
        example = guess_audio_and_text_columns(rows) or {"text": "sentence"}
        raise InvalidRequestError(message, parameter="columns", example=example)
    return renamed


def find_usual_columns(
    rows: pd.DataFrame, *, met: Collection[str] = (), taken: Collection[Any] = ()
) -> dict[str, Any]:
    """Names of columns by what they hold, as in other tools; case does not count, and lists are not taken.

    ``met`` is not looked for, and ``taken`` holds something else.
    """
    by_name = {str(column).strip().lower(): column for column in reversed(rows.columns)}
    by_name |= {str(column): column for column in rows.columns}
    columns: dict[str, Any] = {}
    for name, aliases in COLUMN_NAMES.items():
        present = (by_name[column] for column in aliases if column in by_name and name not in met)
        free = (
            column
            for column in present
            if column not in {*taken, *columns.values()} and not _has_nested_cells(rows[column])
        )
        if (column := next(free, None)) is not None:
            columns[name] = column
    return columns


def guess_audio_and_text_columns(rows: pd.DataFrame) -> dict[str, str]:
    """Return the columns of other names that may be the recordings and the texts, by their first cells."""
    names = [name for name in rows.columns if name not in COLUMN_NAMES and str(name).lower() != "id"]
    first = {str(name): next((cell for cell in rows[name] if not is_missing(cell)), None) for name in names}
    texts = {name: PurePath(cell).suffix.lower() for name, cell in first.items() if isinstance(cell, str)}
    sound = next((name for name, ending in texts.items() if ending in SOUND_ENDINGS), None)
    text = next(
        (name for name, ending in texts.items() if ending not in SOUND_ENDINGS and name != "key"), None
    )
    return {name: column for name, column in (("audio", sound), ("text", text)) if column is not None}


def find_manifest(folder: Path) -> Path | None:
    """Return the manifest in a folder: the only one, or else the only one that is named so."""
    files = sorted(
        path for path in folder.iterdir() if _get_inner_suffix(path) in _ENDINGS and path.is_file()
    )
    manifests = [path for path in files if re.search("manifest|metadata", path.name, re.IGNORECASE)]
    # Other programs keep their settings in .json.
    tables = [path for path in files if _get_inner_suffix(path) != ".json"]
    return next((candidates[0] for candidates in (manifests, tables) if len(candidates) == 1), None)


def resolve_recordings(cells: list[Any], folder: Path) -> list[Any]:
    """Recordings: absolute paths (relative ones are seen from the manifest's folder), segments of files, or bytes."""
    return [
        None
        if is_missing(cell) or (isinstance(cell, str) and not cell.strip())
        else _resolve_recording(cell, folder)
        for cell in cells
    ]


def _resolve_recording(cell: Any, folder: Path) -> Any:
    if isinstance(cell, dict):  # as Hugging Face's data sets have them in Parquet
        data, path = cell.get("bytes"), cell.get("path")
        return data if data is not None or path is None else _resolve_recording(path, folder)
    return parse_sound(str(folder / _PLACEHOLDER.sub("", cell.strip()))) if isinstance(cell, str) else cell


def _has_nested_cells(cells: pd.Series[Any]) -> bool:
    """Return whether a column has lists or objects, such as the times of words."""
    first = next((cell for cell in cells if not is_missing(cell)), None)
    return isinstance(first, (list, dict)) and not (
        isinstance(first, dict) and {"bytes", "path"} & first.keys()
    )


def _get_inner_suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def _parse_fairseq(text: str, path: Path) -> pd.DataFrame | None:
    """Rows of fairseq's lists for wav2vec: a folder, then paths and frames, and texts in ``.wrd`` next to it."""
    root, *lines = text.strip("\n").split("\n")
    cells = [line.split("\t") for line in lines]
    if "\t" in root or not cells or not all(len(row) == 2 and row[1].strip().isdigit() for row in cells):
        return None
    rows = pd.DataFrame({"audio": [f"{root.strip()}/{row[0]}" for row in cells]}, dtype="string")
    words = path.with_name(path.name.removesuffix(".gz")).with_suffix(".wrd")
    if words.is_file():
        texts = words.read_text("utf-8").splitlines()
        if len(texts) != len(rows):
            raise ValueError(f"it has {len(rows):,} recordings, and {words.name} has {len(texts):,} texts")
        rows["text"] = pd.array(texts, dtype="string")
    return rows


def _parse_json_rows(text: str, ending: str) -> pd.DataFrame:
    """Rows of JSON: a line for each (NeMo, WeNet, Lhotse), a list, or an object by names (SpeechBrain)."""
    try:
        entries = orjson.loads(text) if ending == ".json" else parse_json_lines(text)
    except orjson.JSONDecodeError:
        entries = parse_json_lines(text)
    if isinstance(entries, dict):
        is_by_name = entries and all(isinstance(row, dict) for row in entries.values())
        entries = [{"id": name, **row} for name, row in entries.items()] if is_by_name else [entries]
    if not isinstance(entries, list) or not all(isinstance(row, dict) for row in entries):
        number = next((at for at, row in enumerate(entries, start=1) if not isinstance(row, dict)), 1)
        raise ValueError(f"entry {number:,} is no object")
    return pd.DataFrame([_flatten_lhotse_row(row) for row in entries])


def _flatten_lhotse_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the nested objects of Lhotse: the recording of a cut, and its supervisions."""
    recording = row.get("recording", row)
    sources = recording.get("sources") if isinstance(recording, dict) else None
    supervisions = row.get("supervisions", [])
    if not isinstance(supervisions, list) or not (sources or supervisions):
        return row
    flat = {name: row[name] for name in row if name not in {"recording", "supervisions", "sources"}}
    if sources:
        flat["audio"] = sources[0].get("source")
    if supervisions:
        flat["text"] = " ".join(filter(None, (supervision.get("text") for supervision in supervisions)))
        for name in ("speaker", "language"):
            values = {supervision[name] for supervision in supervisions if supervision.get(name)}
            flat |= {name: values.pop()} if len(values) == 1 else {}
    if "start" in flat:
        flat["offset"] = flat.pop("start")
    return flat
