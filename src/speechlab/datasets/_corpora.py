"""Folders in the layouts of published corpora, as rows of one table.

Layouts: LibriSpeech (openslr.org/12), AISHELL-1 (openslr.org/33), JSUT 1.1 (R. Sonobe, S. Takamichi, H. Saruwatari,
2017), Common Voice since corpus 1 (TSV files beside ``clips``), FLEURS (TSV files without headings beside ``audio``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SOUNDS = (".flac", ".wav", ".mp3", ".ogg", ".opus")
_COMMON_VOICE_SPLITS = ("train", "dev", "test")
"""Splits without overlap; ``validated`` contains them, ``other`` was not checked, ``invalidated`` was rejected."""
_COMMON_VOICE_COLUMNS = {"client_id", "path", "sentence"}
"""Columns that are read; lists of sentences and of reports lack some of them."""
_FLEURS_COLUMNS = 7
_CODES = {"cmn": "zh", "nb": "no"}
"""Language codes of FLEURS that differ from those of recognisers."""

Row = tuple[str, "Path | None", str, str | None, str, str]
"""Id, recording (None if it is missing and its path is not known), text, speaker, language, split."""


@dataclass(frozen=True)
class Corpus:
    """The layout of a corpus.

    Attributes:
        name: Name of the layout.
        find: Function of a folder and its text files that returns the transcripts; empty for another layout.
        read: Function of a transcript that returns its rows.
    """

    name: str
    find: Callable[[Path, list[Path]], list[Path]]
    read: Callable[[Path], Iterator[Row]]


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file that are not empty."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for line in stream:
                if stripped := line.rstrip("\r\n"):
                    yield stripped
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"{path} is not UTF-8 ({error.reason}); save it as UTF-8", parameter="path"
        ) from None


def _cells(path: Path) -> Iterator[list[str]]:
    """Cells of a TSV file without quotes, as Common Voice and FLEURS write it."""
    return (line.split("\t") for line in _lines(path))


def _torn(path: Path, found: int, corpus: str, wanted: int) -> InvalidRequestError:
    message = f"{path} has a line of {found} columns where {corpus} has {wanted}; download it again"
    return InvalidRequestError(message, parameter="path")


def _recording(folder: Path, name: str) -> Path:
    """The file of a recording in any supported format; if it is missing, its path in LibriSpeech's own format."""
    return next(
        (path for end in _SOUNDS if (path := folder / f"{name}{end}").is_file()),
        folder / f"{name}{_SOUNDS[0]}",
    )


def _librispeech(path: Path) -> Iterator[Row]:
    speaker, split = path.parents[1].name, path.parents[2].name
    for line in _lines(path):
        name, _, text = line.partition(" ")
        yield name, _recording(path.parent, name), text, speaker, "en", split


def _aishell(path: Path) -> Iterator[Row]:
    root = path.parents[1] / "wav"
    files = {file.stem: file for file in sorted(root.glob("*/*/*.wav"))}
    for line in _lines(path):
        name, *words = line.split()
        file = files.get(name)
        if file is None:  # some lines of the published transcript have no recording
            yield name, None, "".join(words), None, "zh", ""
        else:
            yield name, file, "".join(words), file.parent.name, "zh", file.parents[1].name


def _jsut(path: Path) -> Iterator[Row]:
    for line in _lines(path):
        name, colon, text = line.partition(":")
        if not colon:
            message = (
                f"{path} has the line {line!r:.80} without a colon, which JSUT has in each; download it again"
            )
            raise InvalidRequestError(message, parameter="path")
        yield name, path.parent / "wav" / f"{name}.wav", text, "jsut", "ja", path.parent.name


def _common_voice(path: Path) -> Iterator[Row]:
    cells = _cells(path)
    heads = next(cells)
    for row in cells:
        cell = dict(zip(heads, row, strict=False))
        if not cell.keys() >= _COMMON_VOICE_COLUMNS:
            raise _torn(path, len(row), "Common Voice", len(heads))
        name = cell["path"] if "." in cell["path"] else f"{cell['path']}.mp3"
        language = cell.get("locale") or path.parent.name
        yield (
            name,
            path.parent / "clips" / name,
            cell["sentence"],
            cell["client_id"] or None,
            language,
            path.stem,
        )


def _fleurs(path: Path) -> Iterator[Row]:
    code = path.parent.name.partition("_")[0]
    for cells in _cells(path):
        if len(cells) != _FLEURS_COLUMNS:
            raise _torn(path, len(cells), "FLEURS", _FLEURS_COLUMNS)
        name, text = cells[1], cells[2]
        file = path.parent / "audio" / path.stem / name
        yield f"{cells[0]}/{name}", file, text, None, _CODES.get(code, code), path.stem


def _aishell_files(_: Path, texts: list[Path]) -> list[Path]:
    return [
        one for one in texts if one.parent.name == "transcript" and one.name.startswith("aishell_transcript")
    ]


def _common_voice_files(root: Path, _: list[Path]) -> list[Path]:
    folders = [path.parent for path in (*root.glob("clips"), *root.glob("*/clips"), *root.glob("*/*/clips"))]
    return [file for folder in sorted(folders) for file in sorted(folder.glob("*.tsv")) if _has_clips(file)]


def _has_clips(file: Path) -> bool:
    return set(next(_cells(file), [])) >= _COMMON_VOICE_COLUMNS


def _fleurs_files(root: Path, _: list[Path]) -> list[Path]:
    folders = [path.parent for path in (*root.glob("audio"), *root.glob("*/audio"), *root.glob("*/*/audio"))]
    return [file for folder in sorted(folders) for file in sorted(folder.glob("*.tsv"))]


CORPORA = {
    one.name: one
    for one in (
        Corpus(
            "librispeech",
            lambda _, texts: [one for one in texts if one.name.endswith(".trans.txt")],
            _librispeech,
        ),
        Corpus("aishell", _aishell_files, _aishell),
        Corpus("jsut", lambda _, texts: [one for one in texts if one.name == "transcript_utf8.txt"], _jsut),
        Corpus("common_voice", _common_voice_files, _common_voice),
        Corpus("fleurs", _fleurs_files, _fleurs),
    )
}
"""Layouts by name, in the order in which they are tried."""


def corpus_rows(root: Path, layout: str | None, splits: set[str] | None) -> tuple[list[Row], list[str], int]:
    """Read a folder.

    Args:
        root: The corpus, or a part of it.
        layout: Name of the layout; None to detect it.
        splits: Splits to read; None for all, for Common Voice the splits without overlap.

    Returns:
        The rows; the ids of transcripts without a recording, which are left out; and the number of transcripts.

    Raises:
        InvalidRequestError: The folder has another layout or no recordings, or lacks a split.
    """
    tried = [CORPORA[layout]] if layout is not None else list(CORPORA.values())
    texts = sorted(root.rglob("*.txt"))  # once: a corpus may have a million files
    for corpus in tried:
        if found := corpus.find(root, texts):
            rows = [row for path in found for row in _wanted(corpus, path, found, splits)]
            there = [row for row in rows if row[1] is not None]
            lost = [row[0] for row in rows if row[1] is None]
            return _checked(there, root, corpus.name, splits), lost, len(rows)
    names = ", ".join(one.name for one in tried)
    message = (
        f"{root} is not a folder in the layout of {names}; give the unpacked folder, or a manifest "
        f"(.csv, .tsv, .jsonl or .parquet){_manifests_in(root)}"
    )
    raise InvalidRequestError(message, parameter="path")


def _manifests_in(root: Path) -> str:
    """Hint for a folder that is not a corpus: the manifests in it."""
    there = sorted(
        path.name for path in root.iterdir() if path.suffix in {".csv", ".tsv", ".jsonl", ".parquet"}
    )
    return f", as {' or '.join(there[:3])} there" if there else ""


def _wanted(corpus: Corpus, path: Path, found: list[Path], splits: set[str] | None) -> Iterator[Row]:
    if corpus.name == "common_voice":
        names = {file.stem for file in found if file.parent == path.parent}
        usual = names & set(_COMMON_VOICE_SPLITS) or names
        if path.stem not in (usual if splits is None else splits):
            return iter(())
    return corpus.read(path)


def _checked(rows: list[Row], root: Path, layout: str, splits: set[str] | None) -> list[Row]:
    if splits is None:
        if not rows:
            message = (
                f"{root} ({layout}) has transcripts, but none of their recordings; unpack the archives in it"
            )
            raise InvalidRequestError(message, parameter="path")
        return rows
    kept = [row for row in rows if row[-1] in splits]
    if absent := splits - {row[-1] for row in kept}:
        have = ", ".join(sorted({row[-1] for row in rows})) or "none of these"
        message = f"{root} ({layout}) has no split {min(absent)!r}; it has {have}"
        raise InvalidRequestError(message, parameter="split")
    return kept
