"""Folders in the layouts of published corpora, as rows of one table.

Layouts: LibriSpeech (openslr.org/12), and Common Voice since corpus 1 (TSV files next to ``clips``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from speechlab._files import check_is_regular_file
from speechlab.errors import InvalidRequestError

SOUND_ENDINGS = (".flac", ".wav", ".mp3", ".ogg", ".opus")
# Splits without overlap; ``validated`` contains them, ``other`` was not checked, ``invalidated`` was
# rejected.
_COMMON_VOICE_SPLITS = ("train", "dev", "test")
# Columns that are read; lists of sentences and of reports lack some of them.
_COMMON_VOICE_COLUMNS = {"client_id", "path", "sentence"}

# Id, recording, text, speaker, language, split.
Row = tuple[str, Path, str, "str | None", str, str]


@dataclass(frozen=True)
class Corpus:
    """The layout of a corpus."""

    name: str
    find: Callable[[Path], list[Path]]  # the transcripts in a folder; none for another layout
    read: Callable[[Path], Iterator[Row]]  # the rows of a transcript


def _read_nonempty_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file that are not empty."""
    check_is_regular_file(path)
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for line in stream:
                if stripped := line.rstrip("\r\n"):
                    yield stripped
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"{path} is not UTF-8 ({error.reason}); save it as UTF-8", parameter="path"
        ) from None


def _read_tsv_rows(path: Path) -> Iterator[list[str]]:
    """Cells of a TSV file without quotes, as Common Voice writes it."""
    return (line.split("\t") for line in _read_nonempty_lines(path))


def _resolve_recording_path(folder: Path, name: str) -> Path:
    """The file of a recording in any supported format; if it is missing, its path in LibriSpeech's own format."""
    return next(
        (path for end in SOUND_ENDINGS if (path := folder / f"{name}{end}").is_file()),
        folder / f"{name}{SOUND_ENDINGS[0]}",
    )


def _read_librispeech_rows(path: Path) -> Iterator[Row]:
    speaker, split = path.parents[1].name, path.parents[2].name
    for line in _read_nonempty_lines(path):
        name, _, text = line.partition(" ")
        yield name, _resolve_recording_path(path.parent, name), text, speaker, "en", split


def _read_common_voice_rows(path: Path) -> Iterator[Row]:
    cells = _read_tsv_rows(path)
    heads = next(cells)
    for row in cells:
        cell = dict(zip(heads, row, strict=False))
        if not cell.keys() >= _COMMON_VOICE_COLUMNS:
            found, wanted = len(row), len(heads)
            message = (
                f"{path} has a line of {found} columns where Common Voice has {wanted}; download it again"
            )
            raise InvalidRequestError(message, parameter="path")
        name = cell["path"] if "." in cell["path"] else f"{cell['path']}.mp3"
        file, speaker = path.parent / "clips" / name, cell["client_id"] or None
        yield name, file, cell["sentence"], speaker, cell.get("locale") or path.parent.name, path.stem


def _list_librispeech_transcripts(root: Path) -> list[Path]:
    return sorted(root.rglob("*.trans.txt"))


def _list_common_voice_tables(root: Path) -> list[Path]:
    """Return the tables next to a folder ``clips``, which is at most two folders down."""
    folders = sorted(path.parent for depth in ("", "*/", "*/*/") for path in root.glob(f"{depth}clips"))
    files = (file for folder in folders for file in sorted(folder.glob("*.tsv")))
    return [file for file in files if set(next(_read_tsv_rows(file), [])) >= _COMMON_VOICE_COLUMNS]


# Layouts by name, in the order in which they are tried.
CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus("librispeech", _list_librispeech_transcripts, _read_librispeech_rows),
        Corpus("common_voice", _list_common_voice_tables, _read_common_voice_rows),
    )
}


def find_corpus(root: Path, layout: str | None) -> tuple[Corpus, list[Path]] | None:
    """Return the corpus in a folder and its transcripts, or None; without a layout, the files there decide."""
    tried = [CORPORA[layout]] if layout is not None else list(CORPORA.values())
    return next(((corpus, files) for corpus in tried if (files := corpus.find(root))), None)


def read_corpus(corpus: Corpus, files: list[Path], splits: set[str] | None) -> list[Row]:
    """Read the rows of a corpus, also of other splits."""
    rows: list[Row] = []
    for path in files:
        if corpus.name == "common_voice":
            names = {file.stem for file in files if file.parent == path.parent}
            splits_read = names & set(_COMMON_VOICE_SPLITS) or names
            if path.stem not in (splits_read if splits is None else splits):
                continue
        rows += corpus.read(path)
    return rows
