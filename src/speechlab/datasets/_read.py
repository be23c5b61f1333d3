"""The user's data as tables of studies: manifests, folders of corpora, and data sets of Hugging Face."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from speechlab._arguments import build_argument_error, is_missing
from speechlab._files import expand_user_path
from speechlab._pandas import pd
from speechlab._require import require
from speechlab.audio import FileSegment
from speechlab.datasets._corpora import CORPORA, find_corpus, read_corpus
from speechlab.datasets._corrections import apply_corrections
from speechlab.datasets._manifests import (
    add_offsets,
    find_manifest,
    guess_audio_and_text_columns,
    read_manifest,
    rename_to_study_columns,
    replace_paths_by_segments,
    resolve_recordings,
)
from speechlab.datasets._transcripts import transcripts_in
from speechlab.errors import InvalidRequestError, MissingDependencyError
from speechlab.tables import HELD_ROWS, has_unsplit_rows

_COLUMNS = ("id", "audio", "text", "speaker", "language", "split")
_SHOWN = 3  # names of transcripts that an error shows
_TEXT_COLUMNS = ("text", "speaker", "language", "split")


def read(
    path: str | os.PathLike[str],
    *,
    layout: str | None = None,
    split: str | Iterable[str] | None = None,
    language: str | None = None,
    columns: Mapping[str, str] | None = None,
    corrections: str | os.PathLike[str] | pd.DataFrame | None = None,
    transcripts: Mapping[str, str | os.PathLike[str]] | None = None,
) -> pd.DataFrame:
    """Read recordings and their transcripts from a manifest, or from a folder in the layout of a corpus.

    Args:
        path: A manifest (``.csv``, ``.tsv``, ``.jsonl``, ``.json``, also with ``.gz``; ``.parquet``), also of NeMo,
            SpeechBrain, WeNet, Lhotse or DeepSpeech; or a folder as LibriSpeech or Common Voice publish it, whole or
            in part; or a folder with one manifest.
        layout: ``"librispeech"`` or ``"common_voice"``; None to detect it.
        split: Split or splits to read, such as ``"test"``; None for all, for Common Voice train, dev and test.
        language: Language code of the rows, for data that does not name it.
        columns: Own names of a manifest's columns by those of speechlab, such as ``{"text": "normalized"}``: for
            ``audio``, ``text``, ``speaker``, ``language``, ``split``, ``duration_s``, ``offset_s``, and for
            translations ``source_lang``, ``target_lang`` and ``reference``. Names of other tools
            (``audio_filepath``, ``sentence``, ``client_id`` …) are recognized without it.
        corrections: Corrections of the texts, as for :func:`apply_corrections`: a table, or a CSV file. None for the
            texts as they are.
        transcripts: Transcripts that exist, as columns: for each the file of several recordings (``.ctm``, ``.stm``,
            a table of segments with ``file``), or a folder with one for each recording (a reply as from
            :func:`transcript_of`, subtitles, plain text), such as ``{"deepgram": "out/deepgram"}``. A row gets the
            transcript with the name of its recording, or with its ``id``.

    Returns:
        One row for each recording or segment: ``audio`` (absolute path; relative paths in a manifest are resolved
        from its folder), ``text``, ``speaker``, ``language`` and ``split``. Where a row has an offset, or a start and
        an end, ``audio`` is a :class:`speechlab.audio.FileSegment`, unless that is the whole recording; ``offset_s``
        and ``duration_s`` are numbers of seconds. Corpora also have ``id``. Manifests keep all other columns
        unchanged; other cells of CSV and TSV are texts.

        Warnings name recordings that are not there, segments that end after their recording, rows without a recording
        or a text, and columns that may be meant where there is none of recordings or texts.

    Raises:
        InvalidRequestError: The file or folder does not exist, has another layout, or lacks a column or split;
            or a correction fits no row.

    Example:
        >>> sl.AudioClip([0.0] * 800, 8_000).save("a.wav")
        PosixPath('a.wav')
        >>> pd.DataFrame({"audio": ["a.wav"], "text": ["hello"], "language": ["en"]}).to_csv(
        ...     "list.csv", index=False
        ... )
        >>> read("list.csv")[["text", "language"]]
            text language
        0  hello       en
    """
    where = expand_user_path(path)
    splits = _parse_splits(split)
    if layout is not None and layout not in tuple(CORPORA):
        message = f"layout={layout!r} is not known; give {', '.join(CORPORA)}, or leave it out"
        raise InvalidRequestError(message, parameter="layout")
    corpus = find_corpus(where.absolute(), layout) if where.is_dir() else None
    manifest = find_manifest(where) if where.is_dir() and layout is None else where
    if corpus is not None:
        if columns:
            message = f"{where} is a folder, whose layout has no columns; columns= is for manifests"
            raise InvalidRequestError(message, parameter="columns")
        table = pd.DataFrame(read_corpus(*corpus, splits), columns=list(_COLUMNS))
        table = table.astype(dict.fromkeys(_COLUMNS, "string"))
        table = table if language is None else table.fillna({"language": language})
        table = _select_splits(table, splits, f"{where.absolute()} ({corpus[0].name})")
    elif layout is not None or manifest is None:
        raise _build_layout_error(where, layout)
    else:
        manifested = rename_to_study_columns(read_manifest(manifest), _check_column_names(columns), manifest)
        if "audio" in manifested.columns:
            manifested["audio"] = resolve_recordings(manifested["audio"].tolist(), manifest.absolute().parent)
            manifested = add_offsets(manifested)
        table = _select_splits(_convert_column_types(manifested, language), splits, manifest)
        if {"audio", "offset_s"} <= set(table.columns):
            table = replace_paths_by_segments(table)
        _warn_of_unrecognized_columns(table, manifest)
    _warn_of_missing_data(table)
    for name, place in (transcripts or {}).items():
        table[name] = _match_transcripts(table, name, place)
    return table if corrections is None else apply_corrections(table, corrections)


def _match_transcripts(table: pd.DataFrame, name: str, place: str | os.PathLike[str]) -> pd.Series[str]:
    """Return the transcripts of a file or folder for the rows of a table."""
    if name in table.columns:
        message = f"the table already has a column {name!r}; give the transcripts another name"
        raise InvalidRequestError(message, parameter="transcripts")
    texts = transcripts_in(place)
    empty = [None] * len(table)
    ids = table["id"].tolist() if "id" in table.columns else empty
    sounds = table["audio"].tolist() if "audio" in table.columns else empty
    names = [sound.path if isinstance(sound, FileSegment) else sound for sound in sounds]
    places = [str(sound_name) if isinstance(sound_name, str | Path) else None for sound_name in names]
    stems = [None if place_of is None else Path(place_of).stem for place_of in places]
    # A name that several recordings have in their folders says of none of them that the transcript is its own.
    shared = Counter(stem for stem, _ in set(zip(stems, places, strict=True)))
    matched = [
        texts.get(str(row_id), texts.get(str(stem)) if shared[stem] == 1 else None)
        for row_id, stem in zip(ids, stems, strict=True)
    ]
    count = sum(sound_name is not None for sound_name in matched)
    if not count:
        some = ", ".join(list(texts)[:_SHOWN])
        message = f"{place} has no transcript of these recordings; its names are {some}, and so on"
        raise InvalidRequestError(message, parameter="transcripts")
    if count < len(table):
        warnings.warn(
            f"{len(table) - count:,} of {len(table):,} rows have no transcript of {name!r}", stacklevel=4
        )
    return pd.Series(matched, table.index, dtype="string")


def from_hugging_face(
    dataset: Any, *, columns: Mapping[str, str] | None = None, language: str | None = None
) -> pd.DataFrame:
    """Convert a data set of Hugging Face's package ``datasets``, if that is installed.

    Recordings are not decoded: they are the paths of files, or the bytes of files without a path. All rows are in
    memory; select a part with ``dataset.select(range(100))`` first.

    Args:
        dataset: A ``Dataset``, or a ``DatasetDict``, whose names become the column ``split``.
        columns: Names of its columns, as for :func:`read`.
        language: Language code of all rows, if there is no column of languages.

    Returns:
        A table as :func:`read` returns it for a manifest; the version of a ``Dataset``, if it has one, is
        ``attrs["revision"]``, which a study records with the hash of the rows.

    Raises:
        MissingDependencyError: The package ``datasets`` is not installed.
        InvalidRequestError: The value is not such a data set, or a column is missing.
    """
    library = require("datasets")
    if not hasattr(library, "Dataset"):  # Python imported a folder of this name
        message = (
            "this needs the package 'datasets', which is not installed; install it with: pip install datasets"
        )
        raise MissingDependencyError(message)
    if isinstance(dataset, library.DatasetDict):
        tables = [
            from_hugging_face(split_rows, columns=columns, language=language).assign(split=str(name))
            for name, split_rows in dataset.items()
        ]
        if not tables:
            raise InvalidRequestError("the data set is empty; load a split of it", parameter="dataset")
        return pd.concat(tables, ignore_index=True)
    if not isinstance(dataset, library.Dataset):
        kind = type(dataset).__name__
        message = f"a {kind} is not a data set; give the result of datasets.load_dataset, not streamed"
        raise InvalidRequestError(message, parameter="dataset")
    sounds = [name for name, feature in dataset.features.items() if isinstance(feature, library.Audio)]
    for name in sounds:
        dataset = dataset.cast_column(name, library.Audio(decode=False))
    rows = pd.DataFrame({name: list(dataset[name]) for name in dataset.column_names})
    for name in sounds:
        rows[name] = pd.Series(resolve_recordings(rows[name].tolist(), Path()), dtype="object")
    audio_column = {"audio": sounds[0]} if sounds else {}
    table = _convert_column_types(
        rename_to_study_columns(rows, audio_column | _check_column_names(columns), "the data set"), language
    )
    if dataset.version is not None:
        table.attrs["revision"] = str(dataset.version)
    return table


def _build_layout_error(where: Path, layout: str | None) -> InvalidRequestError:
    if not where.is_dir():
        message = f"there is no folder {where}; check the path, or leave out layout= for a manifest"
        return InvalidRequestError(message, parameter="path")
    names = layout or " or ".join(CORPORA)
    endings = {".csv", ".tsv", ".jsonl", ".json", ".parquet"}
    files = sorted(path.name for path in where.iterdir() if path.suffix in endings)
    hint = f", as {' or '.join(files[:3])} there" if files else ""
    message = (
        f"{where} is not a folder in the layout of {names}; give the unpacked folder, or a manifest "
        f"(.csv, .tsv, .jsonl, .json or .parquet){hint}"
    )
    return InvalidRequestError(message, parameter="path")


def _convert_column_types(rows: pd.DataFrame, language: str | None) -> pd.DataFrame:
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
        warnings.warn(message, stacklevel=4)
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


def _check_column_names(columns: object) -> dict[str, str]:
    if columns is None or isinstance(columns, Mapping):
        return dict(columns or {})
    raise build_argument_error("columns", columns, "a dict such as {'text': 'normalized'}, or None")


def _parse_splits(split: object) -> set[str] | None:
    if split is None:
        return None
    names = [split] if isinstance(split, str) else list(split) if isinstance(split, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidRequestError(
            f"split={split!r} names no split; give names such as 'test'", parameter="split"
        )
    return set(names)


def _select_splits(rows: pd.DataFrame, wanted: set[str] | None, path: object) -> pd.DataFrame:
    if wanted is None:
        return rows
    named_so = "split" in rows.columns
    have = set(rows["split"].dropna()) if named_so else set()
    if absent := wanted - have:
        available_splits = ", ".join(sorted(have)) or ("none of these" if named_so else "no column of splits")
        message = f"{path} has no split {min(absent)!r}; it has {available_splits}"
        raise InvalidRequestError(message, parameter="split")
    return rows[rows["split"].isin(wanted)].reset_index(drop=True)


def _warn_of_unrecognized_columns(table: pd.DataFrame, path: Path) -> None:
    """Warn of columns that may be the recordings or the texts that the manifest seems to lack."""
    candidates = guess_audio_and_text_columns(table)
    timed = bool({"offset_s", "recording_id"} & set(table.columns))  # of recordings that are not named
    for name, kind, missed in (("audio", "recordings", timed), ("text", "texts", False)):
        if name not in table.columns and (missed or name in candidates):
            example = {name: candidates.get(name, "its name")}
            message = (
                f"{path} has no column of {kind} by a known name; if one of them is that, give "
                f"columns={example}"
            )
            warnings.warn(message, stacklevel=3)


def _warn_of_missing_data(table: pd.DataFrame) -> None:
    if "audio" not in table.columns:
        return
    for name, kind in (("audio", "recording"), ("text", "text")):
        cells = table[name] if name in table.columns else ()
        if count := sum(is_missing(cell) or (isinstance(cell, str) and not cell.strip()) for cell in cells):
            warnings.warn(f"{count:,} of {len(table):,} rows have no {kind}", stacklevel=3)
    sounds = [cell.path if isinstance(cell, FileSegment) else cell for cell in table["audio"]]
    paths = [str(cell) for cell in sounds if isinstance(cell, (str, Path))]
    absent_files = {path for path in set(paths) if not _is_file(path)}
    absent = [path for path in paths if path in absent_files]
    if absent:
        warnings.warn(
            f"{len(absent):,} of {len(table):,} recordings are not there, the first: {absent[0]:.300}; "
            "their rows will be errors",
            stacklevel=3,
        )


def _is_file(path: str) -> bool:
    try:
        return expand_user_path(path).is_file()
    except (OSError, ValueError):  # not a valid file name
        return False
