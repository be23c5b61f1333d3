"""The user's data as tables of studies: manifests, folders of corpora, and data sets of Hugging Face."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing, refused
from speechlab._files import user_path
from speechlab._require import require
from speechlab.datasets._corpora import CORPORA, corpus_rows
from speechlab.datasets._manifests import manifest_rows, named, whole_paths
from speechlab.errors import InvalidRequestError, MissingDependencyError

if TYPE_CHECKING:
    import os

    import pandas as pd

_COLUMNS = ("id", "audio", "text", "speaker", "language", "split")
_TOLD = 3
"""Maximum number of transcripts without a recording that a warning names."""
_TEXTS = ("text", "speaker", "language", "split")


def read(
    path: str | os.PathLike[str],
    *,
    layout: str | None = None,
    split: str | Iterable[str] | None = None,
    language: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Read recordings and their transcripts from a manifest, or from a folder in the layout of a corpus.

    Args:
        path: A manifest (``.csv``, ``.tsv``, ``.jsonl``, the three also with ``.gz``; ``.parquet``), or a folder as
            LibriSpeech, AISHELL-1, JSUT, Common Voice or FLEURS publish it, whole or in part.
        layout: ``"librispeech"``, ``"aishell"``, ``"jsut"``, ``"common_voice"`` or ``"fleurs"``; None to detect it.
        split: Split or splits to read, such as ``"test"``; None for all, for Common Voice train, dev and test.
        language: Language code of all rows, for a manifest without a column of languages.
        columns: Own names of a manifest's columns by those of speechlab, such as ``{"text": "normalised"}``: for
            ``audio``, ``text``, ``speaker``, ``language``, ``split``, ``duration_s``, and for translations
            ``source_lang``, ``target_lang`` and ``reference``. Names of other tools (``audio_filepath``,
            ``sentence``, ``client_id`` …) are recognised without it.

    Returns:
        One row for each recording: ``audio`` (absolute path; relative paths in a manifest are resolved from its
        folder), ``text``, ``speaker``, ``language`` and ``split``. Corpora also have ``id``; a warning names
        transcripts without a recording. Manifests keep all other columns unchanged. Cells of CSV and TSV are texts,
        except ``duration_s``, which is a number.

    Raises:
        InvalidRequestError: The file or folder does not exist, has another layout, or lacks a column or split.

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
    import pandas as pd

    where = user_path(path)
    wanted = _splits(split)
    if layout is not None and layout not in tuple(CORPORA):
        message = f"layout={layout!r} is not known; give {', '.join(CORPORA)}, or leave it out"
        raise InvalidRequestError(message, parameter="layout")
    if where.is_dir():
        if columns:
            message = f"{where} is a folder, whose layout has no columns; columns= is for manifests"
            raise InvalidRequestError(message, parameter="columns")
        rows, lost, transcripts = corpus_rows(where.absolute(), layout, wanted)
        _tell_lost(lost, transcripts)
        found = pd.DataFrame(rows, columns=list(_COLUMNS))
        found["audio"] = [str(one) for one in found["audio"]]
        table = found.astype(dict.fromkeys(_COLUMNS, "string"))
    elif layout is not None:
        message = f"there is no folder {where}; check the path, or leave out layout= for a manifest"
        raise InvalidRequestError(message, parameter="path")
    else:
        given = named(manifest_rows(where), _names(columns), where)
        if "audio" in given.columns:
            given["audio"] = whole_paths(given["audio"].tolist(), where.absolute().parent)
        table = _kept(_tidy(given, language), wanted, where)
    _tell_missing(table)
    return table


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
        A table as :func:`read` returns it for a manifest.

    Raises:
        MissingDependencyError: The package ``datasets`` is not installed.
        InvalidRequestError: The value is not such a data set, or a column is missing.
    """
    import pandas as pd

    library = require("datasets")
    if not hasattr(library, "Dataset"):  # Python imported a folder of this name
        message = (
            "this needs the package 'datasets', which is not installed; install it with: pip install datasets"
        )
        raise MissingDependencyError(message)
    if isinstance(dataset, library.DatasetDict):
        parts = [
            from_hugging_face(part, columns=columns, language=language).assign(split=str(name))
            for name, part in dataset.items()
        ]
        if not parts:
            raise InvalidRequestError("the data set is empty; load a split of it", parameter="dataset")
        return pd.concat(parts, ignore_index=True)
    if not isinstance(dataset, library.Dataset):
        kind = type(dataset).__name__
        message = f"a {kind} is not a data set; give the result of datasets.load_dataset, not streamed"
        raise InvalidRequestError(message, parameter="dataset")
    sounds = [name for name, feature in dataset.features.items() if isinstance(feature, library.Audio)]
    for name in sounds:
        dataset = dataset.cast_column(name, library.Audio(decode=False))
    rows = pd.DataFrame({name: list(dataset[name]) for name in dataset.column_names})
    for name in sounds:
        rows[name] = pd.Series([_sound(cell) for cell in rows[name]], dtype="object")
    usual = {"audio": sounds[0]} if sounds else {}
    return _tidy(named(rows, usual | _names(columns), "the data set"), language)


def _sound(cell: Any) -> str | bytes | None:
    if not isinstance(cell, dict):
        return None
    path, data = cell.get("path"), cell.get("bytes")
    return data if data is not None else path


def _tidy(rows: pd.DataFrame, language: str | None) -> pd.DataFrame:
    """Columns of texts as texts, lengths as numbers."""
    if language is not None and "language" not in rows.columns:
        rows = rows.assign(language=language)
    found = rows.assign(**{name: rows[name].astype("string") for name in _TEXTS if name in rows.columns})
    if "duration_s" in found.columns:
        found["duration_s"] = _seconds(found["duration_s"])
    first = [name for name in ("id", "audio", *_TEXTS) if name in found.columns]
    return found[[*first, *(name for name in found.columns if name not in first)]]


def _seconds(lengths: pd.Series[Any]) -> pd.Series[float]:
    """Return durations as numbers; empty cells are missing values.

    Raises:
        InvalidRequestError: A cell is not a number; the message names the row.
    """
    import pandas as pd

    numbers = pd.to_numeric(lengths, errors="coerce").astype("float64")
    told = lengths.notna() & (lengths.astype("string").str.strip() != "").fillna(value=False)
    wrong = (~numbers.between(0, float("inf"), inclusive="left") & told).to_numpy(dtype=bool)
    if wrong.any():
        place = int(wrong.argmax())
        message = (
            f"row {place + 1}: the length {str(lengths.iloc[place])!r} is not a number of seconds; give one such as "
            "3.25, or leave the cell empty"
        )
        raise InvalidRequestError(message, parameter="duration_s")
    return numbers


def _names(columns: object) -> dict[str, str]:
    if columns is None or isinstance(columns, Mapping):
        return dict(columns or {})
    raise refused("columns", columns, "a dict such as {'text': 'normalised'}, or None")


def _splits(split: object) -> set[str] | None:
    if split is None:
        return None
    names = [split] if isinstance(split, str) else list(split) if isinstance(split, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidRequestError(
            f"split={split!r} names no split; give names such as 'test'", parameter="split"
        )
    return set(names)


def _kept(rows: pd.DataFrame, wanted: set[str] | None, path: object) -> pd.DataFrame:
    if wanted is None:
        return rows
    have = set(rows["split"].dropna()) if "split" in rows.columns else set()
    if absent := wanted - have:
        known = ", ".join(sorted(have)) or "no column of splits"
        message = f"{path} has no split {min(absent)!r}; it has {known}"
        raise InvalidRequestError(message, parameter="split")
    return rows[rows["split"].isin(wanted)].reset_index(drop=True)


def _tell_missing(table: pd.DataFrame) -> None:
    if "audio" not in table.columns:
        return
    cells = [one for one in table["audio"] if not is_missing(one) and isinstance(one, str)]
    gone = [one for one in cells if not _is_file(one)]
    if gone:
        warnings.warn(
            f"{len(gone):,} of {len(table):,} recordings are not there, the first: {gone[0]:.300}; "
            "their rows will be errors",
            stacklevel=3,
        )


def _tell_lost(lost: list[str], transcripts: int) -> None:
    if lost:
        first = ", ".join(lost[:_TOLD]) + (" …" if len(lost) > _TOLD else "")
        warnings.warn(
            f"{len(lost):,} of {transcripts:,} transcripts have no recording and are left out: {first}",
            stacklevel=3,
        )


def _is_file(cell: str) -> bool:
    try:
        return user_path(cell).is_file()
    except (OSError, ValueError):  # not a valid file name
        return False
