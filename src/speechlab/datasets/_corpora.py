"""Folders in the layouts of published corpora, as rows of one table.

Layouts: LibriSpeech (openslr.org/12), AISHELL-1 (openslr.org/33), JSUT 1.1 (R. Sonobe, S. Takamichi, H. Saruwatari,
2017), Common Voice since corpus 1 (TSV files beside ``clips``), FLEURS (TSV files without headings beside ``audio``),
LJSpeech (``metadata.csv`` beside ``wavs``), MLS (``transcripts.txt`` beside ``audio``), and data folders of Kaldi
(``wav.scp``, with ``text``, ``segments``, ``utt2spk`` and ``utt2lang`` where they exist).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from speechlab.audio import FileSegment
from speechlab.errors import AudioError, InvalidRequestError

SOUNDS = (".flac", ".wav", ".mp3", ".ogg", ".opus")
_COMMON_VOICE_SPLITS = ("train", "dev", "test")
"""Splits without overlap; ``validated`` contains them, ``other`` was not checked, ``invalidated`` was rejected."""
_COMMON_VOICE_COLUMNS = {"client_id", "path", "sentence"}
"""Columns that are read; lists of sentences and of reports lack some of them."""
_FLEURS_COLUMNS = 7
_CODES = {"cmn": "zh", "nb": "no"}  # language codes of FLEURS that differ from those of recognisers

_FLAC = re.compile(r"flac((?: -[cds]+| --(?:decode|stdout|silent))+) (\S+) \|")
"""The command with which recipes of Kaldi decode a FLAC file, which needs no command here."""

Row = tuple[str, "Path | FileSegment | None", "str | None", "str | None", "str | None", str]
"""Id, recording (None if it is missing and its path is not known), text, speaker, language, split."""


@dataclass(frozen=True)
class Corpus:
    """The layout of a corpus."""

    name: str
    # the transcripts, of a folder and its text files; none for another layout
    find: Callable[[Path, list[Path]], list[Path]]
    read: Callable[[Path], Iterator[Row]]  # the rows of a transcript


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
        (path for end in SOUNDS if (path := folder / f"{name}{end}").is_file()), folder / f"{name}{SOUNDS[0]}"
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
        file, speaker = path.parent / "clips" / name, cell["client_id"] or None
        yield name, file, cell["sentence"], speaker, cell.get("locale") or path.parent.name, path.stem


def _fleurs(path: Path) -> Iterator[Row]:
    code = path.parent.name.partition("_")[0]
    for cells in _cells(path):
        if len(cells) != _FLEURS_COLUMNS:
            raise _torn(path, len(cells), "FLEURS", _FLEURS_COLUMNS)
        name, text = cells[1], cells[2]
        file = path.parent / "audio" / path.stem / name
        yield f"{cells[0]}/{name}", file, text, None, _CODES.get(code, code), path.stem


def _ljspeech(path: Path) -> Iterator[Row]:
    for line in _lines(path):
        name, _, texts = line.partition("|")
        file = _recording(path.parent / "wavs", name)
        yield name, file, texts.partition("|")[0], None, None, path.parent.name


def _mls(path: Path) -> Iterator[Row]:
    for line in _lines(path):
        name, _, text = line.partition("\t")
        speaker, book, _ = f"{name}__".split("_", 2)
        folder = path.parent / "audio" / speaker / book
        yield name, _recording(folder, name), text, speaker, None, path.parent.name


def _kaldi(path: Path) -> Iterator[Row]:
    folder = path.parent
    sounds = {name: _kaldi_sound(path, line) for name, line in _keyed(path)}
    texts, speakers, languages, segments = (
        dict(_keyed(folder / name)) for name in ("text", "utt2spk", "utt2lang", "segments")
    )
    cells: dict[str, Path | FileSegment | None] = dict(sounds)
    if (folder / "segments").is_file():
        cells = {}
        for name, line in segments.items():
            try:
                recording, start, end, *_ = line.split()
                file = sounds.get(recording)
                last = None if float(end) == -1 else float(end)
                cells[name] = None if file is None else FileSegment(file, float(start), last)
            except (ValueError, AudioError):
                message = f"{folder / 'segments'} has {line!r:.80} for {name!r}; give a recording, a start and an end"
                raise InvalidRequestError(message, parameter="path") from None
    for name in (*cells, *(name for name in texts if name not in cells)):
        yield (name, cells.get(name), texts.get(name), speakers.get(name), languages.get(name), folder.name)


def _keyed(path: Path) -> Iterator[tuple[str, str]]:
    """Names and values of a table of Kaldi, which may not exist."""
    for line in _lines(path) if path.is_file() else ():
        name, *value = line.split(maxsplit=1)
        yield name, value[0].strip() if value else ""


def _kaldi_sound(path: Path, line: str) -> Path:
    """The file of a line of ``wav.scp``; a relative path is seen from the recipe, some folders above."""
    command = _FLAC.fullmatch(line)
    if line.endswith("|") and command is None:
        message = (
            f"{path} has the command {line!r:.80}, and commands are not run; write the files with Kaldi's wav-copy "
            "and name them there"
        )
        raise InvalidRequestError(message, parameter="path")
    if re.search(r"\.ark:\d+$", line):
        message = (
            f"{path} names the archive {line!r:.80}, which is not read; write the files with Kaldi's wav-copy"
        )
        raise InvalidRequestError(message, parameter="path")
    file = Path(command[2] if command else line)
    places = [folder / file for folder in (Path.cwd(), *path.parents)]
    return next((place for place in places if place.is_file()), places[0])


def _named(pattern: str) -> Callable[[Path, list[Path]], list[Path]]:
    """Find the text files whose path ends so."""
    return lambda _, texts: [path for path in texts if re.search(f"/{pattern}$", path.as_posix())]


def _beside(root: Path, folder: str, name: str) -> list[Path]:
    """The files of such names beside a folder, which is at most two folders down."""
    places = (path.parent for depth in ("", "*/", "*/*/") for path in root.glob(f"{depth}{folder}"))
    return [file for place in sorted(places) for file in sorted(place.glob(name))]


def _common_voice_files(root: Path, _: list[Path]) -> list[Path]:
    files = _beside(root, "clips", "*.tsv")
    return [file for file in files if set(next(_cells(file), [])) >= _COMMON_VOICE_COLUMNS]


def _fleurs_files(root: Path, _: list[Path]) -> list[Path]:
    files = _beside(root, "audio", "*.tsv")
    return files if any(len(next(_cells(file), [])) == _FLEURS_COLUMNS for file in files) else []


def _ljspeech_files(root: Path, _: list[Path]) -> list[Path]:
    return [path for path in _beside(root, "wavs", "metadata.csv") if "|" in next(_lines(path), "")]


def _mls_files(root: Path, texts: list[Path]) -> list[Path]:
    return [path for path in _named(r"transcripts\.txt")(root, texts) if (path.parent / "audio").is_dir()]


def _kaldi_files(root: Path, _: list[Path]) -> list[Path]:
    return sorted(path for form in ("wav.scp", "*/wav.scp", "data/*/wav.scp") for path in root.glob(form))


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus("librispeech", _named(r"[^/]*\.trans\.txt"), _librispeech),
        Corpus("aishell", _named(r"transcript/aishell_transcript[^/]*"), _aishell),
        Corpus("jsut", _named(r"transcript_utf8\.txt"), _jsut),
        Corpus("common_voice", _common_voice_files, _common_voice),
        Corpus("fleurs", _fleurs_files, _fleurs),
        Corpus("ljspeech", _ljspeech_files, _ljspeech),
        Corpus("mls", _mls_files, _mls),
        Corpus("kaldi", _kaldi_files, _kaldi),
    )
}
"""Layouts by name, in the order in which they are tried."""


def corpus_in(root: Path, layout: str | None) -> tuple[Corpus, list[Path]] | None:
    """Return the corpus in a folder and its transcripts, or None; without a layout, the files there decide."""
    texts = sorted(root.rglob("*.txt"))  # once: a corpus may have a million files
    tried = [CORPORA[layout]] if layout is not None else list(CORPORA.values())
    return next(((corpus, files) for corpus in tried if (files := corpus.find(root, texts))), None)


def corpus_rows(
    root: Path, corpus: Corpus, files: list[Path], splits: set[str] | None
) -> tuple[list[Row], list[str]]:
    """Read a corpus: its rows, also of other splits, and the ids of those whose recordings are lost."""
    rows: list[Row] = []
    for path in files:
        if corpus.name == "common_voice":
            names = {file.stem for file in files if file.parent == path.parent}
            splits_read = names & set(_COMMON_VOICE_SPLITS) or names
            if path.stem not in (splits_read if splits is None else splits):
                continue
        rows += corpus.read(path)
    present = [row for row in rows if row[1] is not None]
    if not present and splits is None:
        message = (
            f"{root} ({corpus.name}) has transcripts, but none of their recordings; unpack the archives in it"
        )
        raise InvalidRequestError(message, parameter="path")
    return present, [row[0] for row in rows if row[1] is None]
