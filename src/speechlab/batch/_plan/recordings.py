"""Recordings in the cells of a table: their bytes, and their length."""

from __future__ import annotations

import os
from io import BytesIO
from typing import TypeGuard

from speechlab._arguments import is_missing
from speechlab._files import user_path
from speechlab.audio import AudioClip
from speechlab.errors import AudioDecodeError, InvalidRequestError


def is_path(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a cell names a file."""
    return isinstance(source, str | os.PathLike)


def recording_of(source: object, column: str) -> bytes | AudioClip:
    """Return the recording in a cell: the bytes of the named file, or the bytes or clip in the cell."""
    if isinstance(source, bytes | AudioClip):
        return source
    if is_missing(source) or (isinstance(source, str) and not source.strip()):
        raise InvalidRequestError(f"column {column!r} is empty in this row", parameter=column)
    if not is_path(source):
        message = (
            f"column {column!r} holds {source!r:.40} ({type(source).__name__}) in this row, and must hold a path, "
            "bytes or an AudioClip"
        )
        raise InvalidRequestError(message, parameter=column)
    path = user_path(source)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        message = f"there is no file {str(path)!r}"
        if "://" in str(source):
            message = f"{source} is a URL; download the recording and give the path of the file"
    except IsADirectoryError:
        message = f"{path} is a folder; give the path of a recording"
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    raise AudioDecodeError(message)


def seconds_of(recording: bytes | AudioClip) -> float:
    """Return the duration of a recording in seconds from its header; 0 if the header does not have it."""
    if isinstance(recording, AudioClip):
        return recording.duration_s
    import soundfile

    try:
        with soundfile.SoundFile(BytesIO(recording)) as file:  # soundfile.info reads much more
            found: float = file.frames / file.samplerate
    except (soundfile.LibsndfileError, ValueError):
        return 0.0
    # the header of a streamed WAV file may have a length of days
    return found if 0 <= found < len(recording) else 0.0
