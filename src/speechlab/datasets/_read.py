"""The user's data as tables of studies: manifests, folders of corpora, and data sets of Hugging Face."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from speechlab._arguments import build_argument_error, is_whole_number
from speechlab._files import expand_user_path
from speechlab._frames import to_pandas_frame
from speechlab._pandas import pd
from speechlab._platform import stack_tables
from speechlab._require import require
from speechlab._traces import warn_user
from speechlab.audio import AudioClip, FileSegment, unify_recording
from speechlab.datasets._corpora import CORPORA, find_corpus, read_corpus
from speechlab.datasets._corrections import apply_corrections
from speechlab.datasets._manifests import (
    add_offsets,
    guess_audio_and_text_columns,
    normalize_columns,
    read_manifest,
    rename_to_study_columns,
    replace_paths_by_segments,
)
from speechlab.datasets._places import (
    build_layout_error,
    find_manifest,
    find_remote_manifest,
    is_blank,
    locate_manifest,
    read_recordings,
    resolve_recordings,
    select_recordings,
)
from speechlab.datasets._transcripts import match_transcripts
from speechlab.errors import InvalidRequestError, MissingDependencyError
from speechlab.remote import find_file_name, is_remote

# What counts as a table, for messages.
TABLES_ALLOWED = (
    "a DataFrame of pandas or polars, an Arrow table, a list of dicts, the path of a manifest, or a folder or a list "
    "of recordings"
)
_COLUMNS = ("id", "audio", "text", "speaker", "language", "split")
_STREAMED_ROWS = 1_000  # of a data set of Hugging Face that are read at once
_SHOWN = 3  # names of transcripts that an error shows


def read(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    layout: str | None = None,
    split: str | Iterable[str] | None = None,
    language: str | None = None,
    columns: Mapping[str, str] | None = None,
    corrections: str | os.PathLike[str] | pd.DataFrame | None = None,
    transcripts: Mapping[str, str | os.PathLike[str]] | None = None,
) -> pd.DataFrame:
    """Read recordings and their transcripts: a folder or a list of them, a manifest, or a corpus in its layout.

    Args:
        path: A manifest (``.csv``, ``.tsv``, ``.jsonl``, ``.json``, also with ``.gz``; ``.parquet``), also of NeMo,
            SpeechBrain, WeNet, Lhotse or DeepSpeech; or a folder as LibriSpeech or Common Voice publish it, whole or
            in part; or a folder with one manifest; or a folder of recordings, or a list of recordings and folders,
            where the text of ``a.wav`` is that of ``a.txt`` beside it; or an archive (``.zip``, ``.tar``) with one
            manifest, or with a text (``.txt``) or an object (``.json``) beside each recording, as WebDataset has it.
            Or the address of a manifest, archive or folder with one: ``https://…``, ``s3://…``, ``hf://…`` (the extra
            ``remote``).
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
    splits = _parse_splits(split)
    if (sounds := select_recordings(path, layout)) is not None:
        table = normalize_columns(read_recordings(sounds), language)
        if columns or splits:
            name = "columns" if columns else "split"
            message = (
                f"{path!r:.80} has recordings alone, without {name}; {name}= is for manifests and corpora"
            )
            raise InvalidRequestError(message, parameter=name)
        return _finish_table(table, transcripts, corrections)
    assert isinstance(path, str | os.PathLike)  # a list has been read
    if layout is not None and layout not in tuple(CORPORA):
        message = f"layout={layout!r} is not known; give {', '.join(CORPORA)}, or leave it out"
        raise InvalidRequestError(message, parameter="layout")
    if (distant := find_remote_manifest(path)) is not None:
        if layout is not None:
            message = f"layout= is for folders on this machine, and {distant[0]} is none; leave it out for a manifest"
            raise InvalidRequestError(message, parameter="layout")
        table = _read_rows(*distant, columns, language, splits)
        return _finish_table(table, transcripts, corrections)
    where = expand_user_path(path)
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
        raise build_layout_error(where, layout)
    else:
        table = _read_rows(manifest, None, columns, language, splits)
    return _finish_table(table, transcripts, corrections)


def _read_rows(
    manifest: Path | str,
    samples: pd.DataFrame | None,
    columns: Mapping[str, str] | None,
    language: str | None,
    splits: set[str] | None,
) -> pd.DataFrame:
    """Return the rows of a manifest, a path or an address, or the samples of an archive, as a table of studies."""
    if samples is None:
        file, folder = locate_manifest(manifest)
        rows = rename_to_study_columns(read_manifest(file, manifest), _check_column_names(columns), manifest)
        if "audio" in rows.columns:
            rows["audio"] = resolve_recordings(rows["audio"].tolist(), folder)
    else:
        rows = rename_to_study_columns(samples, {"audio": "audio"} | _check_column_names(columns), manifest)
    if "audio" in rows.columns:
        rows = add_offsets(rows)
    table = _select_splits(normalize_columns(rows, language), splits, manifest)
    if {"audio", "offset_s"} <= set(table.columns):
        table = replace_paths_by_segments(table)
    _warn_of_unrecognized_columns(table, manifest)
    return table


def to_table(value: Any, argument: str = "frame") -> pd.DataFrame:
    """Return a table of any kind: of pandas, polars or Arrow, dicts, or what :func:`read` reads."""
    if (frame := to_pandas_frame(value)) is not None:
        return frame
    if isinstance(value, str | os.PathLike):
        return read(value)
    if (
        isinstance(value, Iterable)
        and not isinstance(value, Mapping | bytes)
        and not hasattr(value, "columns")
    ):
        rows = list(value)
        if rows and all(isinstance(row, Mapping) for row in rows):
            return pd.DataFrame(rows)
        if rows and all(isinstance(row, str | os.PathLike) for row in rows):
            return read(rows)
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}".removeprefix("builtins.")
    message = f"{argument} is {value!r:.60} ({kind}), and no table; give {TABLES_ALLOWED}"
    raise InvalidRequestError(message, parameter=argument)


def _finish_table(
    table: pd.DataFrame,
    transcripts: Mapping[str, str | os.PathLike[str]] | None,
    corrections: str | os.PathLike[str] | pd.DataFrame | None,
) -> pd.DataFrame:
    _warn_of_missing_data(table)
    for name, place in (transcripts or {}).items():
        table[name] = match_transcripts(table, name, place)
    return table if corrections is None else apply_corrections(table, corrections)


@overload
def from_hugging_face(
    dataset: Any,
    *,
    columns: Mapping[str, str] | None = None,
    language: str | None = None,
    chunk_rows: None = None,
) -> pd.DataFrame: ...
@overload
def from_hugging_face(
    dataset: Any, *, columns: Mapping[str, str] | None = None, language: str | None = None, chunk_rows: int
) -> Iterable[pd.DataFrame]: ...
def from_hugging_face(
    dataset: Any,
    *,
    columns: Mapping[str, str] | None = None,
    language: str | None = None,
    chunk_rows: int | None = None,
) -> pd.DataFrame | Iterable[pd.DataFrame]:
    """Convert a data set of Hugging Face's package ``datasets``, if that is installed, also a streamed one.

    Recordings are not decoded, so that neither FFmpeg nor torchcodec is needed: they are the paths or addresses of
    files, or the bytes of files without a path. All rows are in memory, unless ``chunk_rows`` is given; select a part
    with ``dataset.select(range(100))``, or ``dataset.take(100)`` of a streamed one, first.

    Args:
        dataset: A ``Dataset`` or ``IterableDataset``, or a mapping of them, as ``load_dataset`` gives it without a
            split, whose names become the column ``split``.
        columns: Names of its columns, as for :func:`read`.
        language: Language code of all rows, if there is no column of languages.
        chunk_rows: Rows of a table. The result is then an iterable of tables, which are read one after the other;
            batches take it.

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
    if chunk_rows is not None and not (is_whole_number(chunk_rows) and chunk_rows > 0):
        raise build_argument_error("chunk_rows", chunk_rows, "a whole number of at least 1, or None")
    is_split = isinstance(dataset, Mapping)
    splits: dict[str | None, Any] = dict(dataset.items()) if is_split else {None: dataset}
    if not splits:
        raise InvalidRequestError("the data set is empty; load a split of it", parameter="dataset")
    for rows in splits.values():
        if not isinstance(rows, library.Dataset | library.IterableDataset):
            message = f"a {type(rows).__name__} is not a data set; give the result of datasets.load_dataset"
            raise InvalidRequestError(message, parameter="dataset")
    if chunk_rows is not None:
        return _HuggingFacePieces(splits, _check_column_names(columns), language, chunk_rows)
    pieces = list(_HuggingFacePieces(splits, _check_column_names(columns), language))
    return pieces[0] if len(pieces) == 1 else stack_tables(pieces).reset_index(drop=True)


@dataclass(frozen=True)
class _HuggingFacePieces:
    """The tables of a data set, which is read anew each time."""

    splits: Mapping[str | None, Any]
    columns: dict[str, str]
    language: str | None
    rows: int | None = None  # of a piece

    def __iter__(self) -> Iterator[pd.DataFrame]:
        for name, dataset in self.splits.items():
            for piece in self._iterate_split(dataset):
                yield piece if name is None else piece.assign(split=str(name))

    def _iterate_split(self, dataset: Any) -> Iterator[pd.DataFrame]:
        library = require("datasets")
        features = (
            dataset.features or {}
        )  # of some streams they are not known before, and none of those is decoded
        sounds = [name for name, feature in features.items() if isinstance(feature, library.Audio)]
        for name in sounds:
            dataset = dataset.cast_column(name, _build_undecoded_feature(library))
        names = {"audio": sounds[0]} if sounds else {}
        empty = True
        usual = len(dataset) if isinstance(dataset, library.Dataset) else _STREAMED_ROWS
        try:
            for batch in dataset.iter(batch_size=self.rows or max(usual, 1)):
                empty = False
                yield self._build_table(pd.DataFrame(batch), sounds, names | self.columns, dataset)
        except ImportError as error:
            if "torchcodec" not in str(error):
                raise
            message = "its recordings are decoded before they are read here, as by map or filter of a stream"
            raise InvalidRequestError(f"{message}; change the table instead", parameter="dataset") from None
        if empty:
            yield self._build_table(
                pd.DataFrame(columns=list(features)), sounds, names | self.columns, dataset
            )

    def _build_table(
        self, rows: pd.DataFrame, sounds: list[str], columns: Mapping[str, str], dataset: Any
    ) -> pd.DataFrame:
        renamed = rename_to_study_columns(rows, columns, "the data set")
        renamed.attrs.clear()
        for name in {*sounds, "audio"} & set(renamed.columns):
            found = resolve_recordings(renamed[name].tolist(), Path())
            renamed[name] = pd.Series(found, renamed.index, dtype="object")
        table = normalize_columns(renamed, self.language)
        if dataset.version is not None:
            table.attrs["revision"] = str(dataset.version)
        return table


def _build_undecoded_feature(library: Any) -> Any:
    """Return a feature of recordings that needs no torchcodec, as that of the library does to pass them on."""

    class Undecoded(library.Audio):  # type: ignore[misc]  # of a package that may be missing
        def encode_example(self, value: Any) -> dict[str, Any]:
            found = unify_recording(value)
            data = found.encode("wav") if isinstance(found, AudioClip) else found
            return {"bytes": data, "path": None} if isinstance(data, bytes) else {"bytes": None, "path": data}

    return Undecoded(decode=False)


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


def _warn_of_unrecognized_columns(table: pd.DataFrame, path: Path | str) -> None:
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
            warn_user(message, stacklevel=4)


def _warn_of_missing_data(table: pd.DataFrame) -> None:
    if "audio" not in table.columns:
        return
    sounds = [cell.path if isinstance(cell, FileSegment) else cell for cell in table["audio"]]
    for name, kind in (("audio", "recording"), ("text", "text")):
        if blank := [row for row, cell in enumerate(table.get(name, ()), 1) if is_blank(cell)]:
            sound = sounds[blank[0] - 1]
            file = find_file_name(sound).strip() if isinstance(sound, (str, Path)) else ""
            what = f"{len(blank):,} of {len(table):,} rows have no {kind}"
            warn_user(f"{what}, the first: {file or f'row {blank[0]:,}'}", stacklevel=4)
    paths = [str(cell) for cell in sounds if isinstance(cell, (str, Path)) and not is_remote(cell)]
    absent_files = {path for path in set(paths) if not _is_file(path)}
    if absent := [path for path in paths if path in absent_files]:
        warn_user(
            f"{len(absent):,} of {len(table):,} recordings are not there, the first: {absent[0]:.300}; "
            "their rows will be errors",
            stacklevel=4,
        )


def _is_file(path: str) -> bool:
    try:
        return expand_user_path(path).is_file()
    except (OSError, ValueError):  # not a valid file name
        return False
