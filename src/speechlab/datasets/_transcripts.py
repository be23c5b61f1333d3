"""Files of transcripts that exist: replies of vendors, subtitles, CTM and STM, tables, and plain text."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import orjson

from speechlab._files import check_is_regular_file, expand_user_path, read_regular_file
from speechlab._pandas import pd
from speechlab._traces import warn_user
from speechlab._untrusted import load_json
from speechlab.audio import FileSegment
from speechlab.datasets._replies import join_pieces, transcript_of
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.remote import find_file_name
from speechlab.tables import HELD_ROWS, has_unsplit_rows

_SEGMENT_ENDINGS = (".srt", ".vtt", ".ctm", ".stm", ".TextGrid", ".eaf", ".csv", ".tsv")
_ENDINGS = (".json", ".txt", *_SEGMENT_ENDINGS)
_NAMED = 3  # maximum number of files that a warning names
_LABEL = re.compile(r"\d+(?:\.\d+)?\t\d+(?:\.\d+)?(?:\t|$)")


def transcripts_in(path: str | os.PathLike[str]) -> dict[str, str]:
    r"""Read the transcripts of a file or folder.

    Args:
        path: A file with the transcripts of several recordings (``.ctm``, ``.stm``, or a table of segments
            with a column ``file``), or a folder with a file for each recording: a reply as from
            :func:`transcript_of` (``.json``), subtitles, or plain text (``.txt``).

    Returns:
        The texts by the name of the recording, without its folder and ending. A file of a folder that cannot be read,
        such as the reply of a job that failed, is left out, with a warning that names it and the reason.

    Raises:
        InvalidRequestError: The path does not exist, or no file can be read.

    Example:
        >>> _ = Path("s1-001.txt").write_text("good morning\n")
        >>> transcripts_in("s1-001.txt")
        {'s1-001': 'good morning'}
    """
    where = expand_user_path(path)
    files = (
        sorted(path_in for path_in in where.iterdir() if path_in.suffix in _ENDINGS)
        if where.is_dir()
        else [where]
    )
    if not files or not where.exists():
        message = f"{where} has no transcripts; give a file or folder of {', '.join(_ENDINGS)}"
        raise InvalidRequestError(message, parameter="transcripts")
    texts: dict[str, str] = {}
    faults: list[str] = []
    for file in files:
        try:
            found = _READERS.get(file.suffix, _read_segment_transcripts)(file)
            "".join(found.values()).encode()
        except (OSError, ValueError, RecursionError, SpeechLabError) as error:
            reason = describe_fault(error)
            faults.append(f"{file} cannot be read as a transcript: {reason.removeprefix(f'{file}: ')}")
            continue
        for name, text in found.items():
            if "".join(texts.setdefault(name, text).split()) != "".join(text.split()):
                faults.append(
                    f"{file} has another transcript of {name!r} than the file before, and is left out"
                )
    if faults and not texts:
        raise InvalidRequestError(faults[0], parameter="transcripts")
    if faults:
        more = [f"and {len(faults) - _NAMED:,} more"] if len(faults) > _NAMED else []
        warn_user("; ".join([*faults[:_NAMED], *more]), stacklevel=2)
    return texts


def match_transcripts(table: pd.DataFrame, name: str, place: str | os.PathLike[str]) -> pd.Series[str]:
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
    stems = [None if place_of is None else Path(find_file_name(place_of)).stem for place_of in places]
    # A name that several recordings have in their folders says of none of them that the transcript is its own.
    shared = Counter(stem for stem, _ in set(zip(stems, places, strict=True)))
    matched = [
        texts.get(str(row_id), texts.get(str(stem)) if shared[stem] == 1 else None)
        for row_id, stem in zip(ids, stems, strict=True)
    ]
    count = sum(sound_name is not None for sound_name in matched)
    if not count:
        some = ", ".join(list(texts)[:_NAMED])
        message = f"{place} has no transcript of these recordings; its names are {some}, and so on"
        raise InvalidRequestError(message, parameter="transcripts")
    if count < len(table):
        warn_user(
            f"{len(table) - count:,} of {len(table):,} rows have no transcript of {name!r}", stacklevel=5
        )
    return pd.Series(matched, table.index, dtype="string")


def describe_fault(error: Exception) -> str:
    """Return the reason why a file cannot be read, in a few words."""
    if isinstance(error, UnicodeDecodeError):
        return "the text is not UTF-8; convert the file first"
    if isinstance(error, UnicodeEncodeError):
        return f"the text has {error.object[error.start]!r}, half of a character"
    if isinstance(error, RecursionError):
        return "its JSON is nested too deeply"
    return getattr(error, "message", None) or str(error)


def _read_json_transcripts(file: Path) -> dict[str, str]:
    data = read_regular_file(file)
    try:
        reply = load_json(data)
    except orjson.JSONDecodeError:
        reply = json.loads(data.decode("utf-8-sig"))  # Python writes NaN and halves of characters
    if isinstance(reply, list) and reply and isinstance(reply[0], dict) and "session_id" in reply[0]:
        return _read_segment_transcripts(file)
    if not isinstance(reply, dict):
        kind = "list" if isinstance(reply, list) else "text" if isinstance(reply, str) else "number"
        raise ValueError(f"it holds a {kind} of JSON, not an object")  # noqa: TRY004 - of the file, as the others
    return {file.stem: transcript_of(reply, unit="s")["text"]}  # times do not count here


def read_text_transcripts(file: Path) -> dict[str, str]:
    """Return the text of a file by the name of its recording; or those of labels of Audacity."""
    check_is_regular_file(file)
    text = file.read_text("utf-8-sig").strip()
    if all(map(_LABEL.match, text.split("\n"))):
        return _read_segment_transcripts(file)  # Audacity's labels
    if has_unsplit_rows(text):
        raise ValueError(f"the text {HELD_ROWS}; give the file the ending of its format")
    return {file.stem: " ".join(text.split())}


def _read_segment_transcripts(file: Path) -> dict[str, str]:
    from speechlab import segments

    table = segments.read(file, unit="s")  # times do not count here
    names = table["file"].astype("string").fillna("").tolist()
    texts_of: dict[str, list[str]] = {}
    for name, text in zip(names, table["text"].astype("string").fillna("").tolist(), strict=True):
        base = "" if file.suffix in {".srt", ".vtt"} else name.replace("\\", "/").rpartition("/")[2]
        texts_of.setdefault(base or file.stem, []).append(text)
    return {name: join_pieces(pieces) for name, pieces in texts_of.items()}


_READERS = {".json": _read_json_transcripts, ".txt": read_text_transcripts}
