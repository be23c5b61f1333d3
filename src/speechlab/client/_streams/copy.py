"""A file that is written while a stream of speech is read."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from speechlab._files import user_path, whole_file
from speechlab.audio import OPEN_ENDED_SIZE, wav_chunks
from speechlab.errors import InvalidRequestError, SpeechLabError

if TYPE_CHECKING:
    import os

    from speechlab.contract import AudioFormat

_LARGEST = (1 << 32) - 1
_NAMES = {"mp3": "mp3", "wav": "wav", "wave": "wav", "ogg": "ogg", "oga": "ogg", "flac": "flac", "pcm": "pcm"}


class FileCopy:
    """The file, which gets its name when the stream is complete and does not exist before."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = user_path(path)
        with ExitStack() as left:  # errors about the temporary file name the final file
            self._file = left.enter_context(left.enter_context(whole_file(self._path)).open("wb"))
            self._left = left.pop_all()

    def check(self, audio_format: AudioFormat) -> None:
        """Refuse a file name with the extension of another format."""
        named = _NAMES.get(self._path.suffix[1:].lower(), str(audio_format))
        if named != audio_format:
            self.drop()
            message = (
                f"the stream is {audio_format}, and {self._path.name} is named as {named}; ask for format={named!r}, "
                "or name the file otherwise"
            )
            raise InvalidRequestError(message, parameter="format")

    def add(self, piece: bytes) -> None:
        """Write the next bytes."""
        self._file.write(piece)

    def finish(self, data: bytes) -> None:
        """Give the file its name, and write the lengths that a streamed WAV header left open."""
        for place, value in _lengths(data):
            self._file.seek(place)
            self._file.write(value.to_bytes(4, "little"))
        self._left.close()

    def drop(self) -> None:
        """Delete the incomplete file."""
        failure = SpeechLabError("not whole")
        self._left.__exit__(type(failure), failure, None)


def _lengths(data: bytes) -> list[tuple[int, int]]:
    """Positions of open lengths in the header of a streamed WAV file, with the correct values."""
    if data[:4] != b"RIFF" or len(data) > _LARGEST:
        return []
    for name, start, size in wav_chunks(data):
        if name == b"data":
            is_open = size == 0 or size >= OPEN_ENDED_SIZE
            return [(4, len(data) - 8), (start - 4, len(data) - start)] if is_open else []
    return []
