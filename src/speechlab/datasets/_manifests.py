"""Manifests: files with a row for each recording or text, with columns of any names."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path, PurePath
from typing import Any

import orjson

from speechlab._arguments import OWN_NAMES, find_text_column, is_missing
from speechlab._pandas import pd
from speechlab._traces import warn_user
from speechlab._untrusted import load_json
from speechlab.audio import FileSegment, measure_length_s
from speechlab.datasets._corpora import SOUND_ENDINGS
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.remote import is_remote
from speechlab.tables import (
    HELD_ROWS,
    check_parquet_unpacked_size,
    has_unsplit_rows,
    parse_delimited,
    parse_json_lines,
    read_text,
)

# Columns of starts and ends in seconds, which stand for segments if all their cells are numbers.
_TIME_COLUMNS = (("start", "end"), ("start_s", "end_s"), ("start_time", "end_time"))
_TIME_FRAGMENT = re.compile(r"(.+)#t=(\d+(?:\.\d+)?)(?:,(\d+(?:\.\d+)?))?$")
# Seconds by which a duration may differ from that of its recording, since tools round and estimate it.
_SLACK_S = 0.1
_SHOWN = 3  # lines that a warning names


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
        if cell not in lengths and is_remote(cell):
            lengths[cell] = float("inf")  # it is fetched when it is used, and the segment warns then
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
        warn_user(message, stacklevel=4)
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
_JSON_ENDINGS = (".jsonl", ".ndjson", ".json", ".list")
_TEXT_COLUMNS = ("text", "speaker", "language", "split")
MANIFEST_ENDINGS = (".csv", ".tsv", *_JSON_ENDINGS, ".parquet")


def read_manifest(path: Path, name: object, left_out: list[str] | None = None) -> pd.DataFrame:
    """Read a manifest with its own columns; cells of CSV and TSV are texts. ``name`` is that of messages.

    Lines that cannot be read are added to ``left_out``; without it, a warning names them.
    """
    ending = _get_inner_suffix(path)
    if ending not in MANIFEST_ENDINGS:
        allowed = f"{', '.join(MANIFEST_ENDINGS[:-1])} (also with .gz), {MANIFEST_ENDINGS[-1]}, or a folder"
        raise InvalidRequestError(f"{name} is not a manifest; give {allowed}", parameter="path")
    try:
        if ending == ".parquet":
            check_parquet_unpacked_size(path)
            return pd.read_parquet(path)
        text = read_text(path)
        if ending == ".tsv" and (rows := _parse_fairseq(text, path)) is not None:
            return rows
        faults: list[str] = []
        rows = (
            _parse_json_rows(text, ending, faults, path.stat().st_size)
            if ending in _JSON_ENDINGS
            else parse_delimited(text, "\t" if ending == ".tsv" else ",", faults)
        )
    except FileNotFoundError:
        raise InvalidRequestError(f"there is no file {name}; check the path", parameter="path") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).strip().splitlines()[0]
        message = f"{name} cannot be read as {ending[1:]}: {reason}; correct the file"
        raise InvalidRequestError(message, parameter="path") from error
    if left_out is not None:
        left_out += faults
    elif faults:
        more = f", and {len(faults) - _SHOWN:,} more" if len(faults) > _SHOWN else ""
        warn_user(f"{name}: left out: {'; '.join(faults[:_SHOWN])}{more}", stacklevel=4)
    return rows


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
    if own := {name: str(column) for column, name in new.items() if name != column}:
        renamed.attrs[OWN_NAMES] = own
    if not {"audio", "text"} & set(renamed.columns):
        have = ", ".join(repr(str(name)) for name in rows.columns) or "none"
        message = f"{path} has neither recordings nor texts, only {have}; say which they are"
        example = guess_audio_and_text_columns(rows) or {"text": "sentence"}
        raise InvalidRequestError(message, parameter="columns", example=example)
    return renamed


def normalize_columns(rows: pd.DataFrame, language: str | None) -> pd.DataFrame:
    """Columns of texts as texts, lengths as numbers."""
    if language is not None and "language" not in rows.columns:
        rows = rows.assign(language=language)
    typed = rows.assign(
        **{name: rows[name].astype("string") for name in _TEXT_COLUMNS if name in rows.columns}
    )
    typed = _blank_multirow_texts(typed)
    for name, meaning in (("duration_s", "length"), ("offset_s", "offset")):
        if name in typed.columns:
            typed[name] = _parse_seconds(typed[name], name, meaning)
    first = [name for name in ("id", "audio", *_TEXT_COLUMNS) if name in typed.columns]
    return typed[[*first, *(name for name in typed.columns if name not in first)]]


def _blank_multirow_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table without texts that hold rows of a file, and warn of them."""
    if "text" not in rows.columns:
        return rows
    held = [isinstance(text, str) and has_unsplit_rows(text) for text in rows["text"].tolist()]
    if any(held):
        first = held.index(True)
        message = (
            f"{sum(held):,} of {len(rows):,} texts are left out, the first in row {first + 1}: it {HELD_ROWS}"
        )
        warn_user(message, stacklevel=5)
        rows = rows.assign(text=rows["text"].mask(pd.Series(held, rows.index)))
    return rows


def _parse_seconds(lengths: pd.Series[Any], name: str, meaning: str) -> pd.Series[float]:
    """Return seconds as numbers; empty cells are missing values."""
    numbers = pd.to_numeric(lengths, errors="coerce").astype("float64")
    filled = lengths.notna() & (lengths.astype("string").str.strip() != "").fillna(value=False)
    invalid = (~numbers.between(0, float("inf"), inclusive="left") & filled).to_numpy(dtype=bool)
    if invalid.any():
        place = int(invalid.argmax())
        message = (
            f"row {place + 1}: the {meaning} {str(lengths.iloc[place])!r} is not a number of seconds; "
            "give one such as 3.25, or leave the cell empty"
        )
        raise InvalidRequestError(message, parameter=name)
    return numbers


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
    text = find_text_column({name: [str(first[name])] for name in texts if name not in {"key", sound}})
    return {name: column for name, column in (("audio", sound), ("text", text)) if column is not None}


def _has_nested_cells(cells: pd.Series[Any]) -> bool:
    """Return whether a column has lists or objects, such as the times of words."""
    first = next((cell for cell in cells if not is_missing(cell)), None)
    return isinstance(first, (list, dict)) and not (
        isinstance(first, dict) and {"array", "bytes", "path"} & first.keys()
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


def _parse_json_rows(text: str, ending: str, faults: list[str], packed_bytes: int) -> pd.DataFrame:
    """Rows of JSON: a line for each (NeMo, WeNet, Lhotse), a list, or an object by names (SpeechBrain)."""
    try:
        entries = load_json(text, packed_bytes) if ending == ".json" else parse_json_lines(text, faults)
    except orjson.JSONDecodeError:  # of a list that is torn no line is to be trusted
        entries = parse_json_lines(text, None if text.lstrip().startswith("[") else faults)
    if isinstance(entries, dict):
        if entries and all(isinstance(cells, list) for cells in entries.values()):  # a table by columns
            return pd.DataFrame(entries)
        is_by_name = entries and all(isinstance(row, dict) for row in entries.values())
        entries = [{"id": name, **row} for name, row in entries.items()] if is_by_name else [entries]
    rows = [row for row in entries if isinstance(row, dict)] if isinstance(entries, list) else []
    if not rows:
        raise ValueError("entry 1 is no object")
    faults += [f"entry {at:,} is no object" for at, row in enumerate(entries, 1) if not isinstance(row, dict)]
    return pd.DataFrame([_flatten_lhotse_row(row) for row in rows])


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
